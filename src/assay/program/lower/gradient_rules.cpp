// Gradient rules: the backward steps of one forward step, by the rule of its operation (program/form/ops.h).
#include <algorithm>

#include "assay/program/lower/backward_pass.h"

namespace assay::lower {

void BackwardPass::transpose_step(program::GradientRule rule, const program::Step& step) {
  switch (rule) {
    case program::GradientRule::none:
      return;
    case program::GradientRule::per_input:
      return transpose_per_input(step);
    case program::GradientRule::product:
      return transpose_product(step);
    case program::GradientRule::norm:
      return transpose_norm(step);
    case program::GradientRule::attention:
      return transpose_attention(step);
    case program::GradientRule::dispatch:
      return transpose_dispatch(step);
    case program::GradientRule::embed:
      return transpose_embed(step);
    case program::GradientRule::place:
      return transpose_place(step);
    case program::GradientRule::loss_sums:
      return transpose_loss_sums(step);
    case program::GradientRule::loss:
      sums_ = step.in[0];
      return;
    case program::GradientRule::pass_on:
      return pass_on_gradient(step);
    case program::GradientRule::reshard:
      return reshard_gradient(step);
  }
}

void BackwardPass::transpose_product(const program::Step& step) {
  const int a = step.in[0], b = step.in[1];
  const bool narrow = build_.multiplies_narrow(b);
  int d_out = narrow && step.in[3] < 0 ? slot(step.out[0]) : gradient(step.out[0]);
  if (d_out < 0) return;
  if (step.in[2] >= 0) accumulate(step.in[2], d_out);
  if (step.in[3] >= 0) transpose_bias(step.in[3], d_out);
  if (narrow) d_out = build_.quantised_at(d_out, settled_sharding(step.out[0], d_out));
  if (wants_gradient(a)) add_product(a, d_out, forward_value(b));
  if (wants_gradient(b)) add_product(b, forward_value(a), d_out);
}

void BackwardPass::transpose_bias(int bias, int dy) {
  if (!wants_gradient(bias)) return;
  const int made = make_gradient(bias, partial_over(bias, dy) | program_.tensor(dy).sharding.unreduced);
  build_.emit(program::Op::bias_grad, {dy}, {made});
  accumulate(bias, made);
}

void BackwardPass::add_product(int of, int x, int y) {
  std::array<model::LogicalDim, 5> dims{};
  const program::ProgramTensor& target = program_.tensor(of);  // valid until the next tensor is added
  for (int i = 0; i < target.rank; ++i) dims[at(i)] = target.dims[at(i)].dim;
  const int held = slot(of);
  const int made = build_.product(target.name, x, y, std::span<const model::LogicalDim>(dims.data(), target.rank));
  program::ProgramTensor& result = program_.tensors[at(made)];
  result.is_gradient = true;
  if (is_weight(of)) {
    program::Step& step = program_.steps.back();
    step.bytes -= build_.bytes(made);
    result.store_as(build_.formats_.gradients);
    step.bytes += build_.bytes(made);
  }
  if (held >= 0 && program_.tensor(held).sharding == result.sharding) {  // sums in place
    program::Step& step = program_.steps.back();
    step.in[2] = static_cast<std::int16_t>(held);
    step.bytes += build_.bytes(made);
    note_weight(of, false);
    slot(of) = made;
  } else {
    accumulate(of, made);
  }
}

void BackwardPass::transpose_norm(const program::Step& step) {
  int dy = gradient(step.out[0]);
  if (dy < 0) return;
  const int x = step.in[0], scale = step.in[1];
  int sums = -1;
  if (step.in[2] >= 0) {  // devices share rows: sum the two dot products of each row's gradient
    dy = build_.settle_sums(dy);
    sums = make_gradient(step.in[2],
                         program_.tensor(x).sharding.split_axes() & ~program_.tensor(step.in[2]).sharding.split_axes());
    program_.tensors[at(sums)].store_as(build_.sums_format());
    build_.emit(program::Op::norm_grad, {dy, forward_value(x), forward_value(scale), forward_value(step.in[2])}, {sums})
        .is_centred = step.is_centred;
    sums = build_.settle_sums(sums);
  }
  const int dx = make_gradient(x);
  const program::AxisSet late = program_.tensor(dy).sharding.unreduced;
  program_.tensors[at(dx)].sharding.unreduced = late;
  const auto of_weight = [&](int id) {
    return wants_gradient(id) ? make_gradient(id, partial_over(id, x) | late) : -1;
  };
  const int bias = step.in[3], d_scale = of_weight(scale), d_bias = of_weight(bias);
  program::Step& back =
      build_.emit(program::Op::norm_grad, {dy, forward_value(x), forward_value(scale), forward_value(step.in[2]), sums},
                  {dx, d_scale, d_bias});
  back.detail = step.detail;
  back.is_centred = step.is_centred;
  back.composed = step.composed;
  accumulate(scale, d_scale);
  accumulate(bias, d_bias);
  accumulate(x, dx);
}

void BackwardPass::transpose_attention(const program::Step& step) {
  const int d_out = gradient(step.out[0]);
  if (d_out < 0) return;
  const int q = step.in[0], k = step.in[1], v = step.in[2], terms = step.in[3], picked = step.in[4];
  const int dq = make_gradient(q), dk = make_gradient(k, partial_over(k, q)), dv = make_gradient(v, partial_over(v, q));
  const int d_terms = wants_gradient(terms) ? make_gradient(terms, partial_over(terms, q)) : -1;
  const program::AttentionShape& shape = program_.attentions[at(step.detail)];
  const int rest = forward_value(step.out[1]);  // the sums of flash attention, or the probabilities
  program::Step& back =
      build_.emit(program::Op::attention_grad,
                  {d_out, forward_value(q), forward_value(k), forward_value(v), forward_value(step.out[0], true), rest,
                   forward_value(terms), forward_value(picked)},
                  {dq, dk, dv, d_terms});
  back.detail = step.detail;
  back.composed = step.composed;
  back.flops = attention_flops(Plain{}, program_, back);
  if (!shape.flash) build_.count_traffic(back);
  accumulate(q, dq);
  accumulate(k, dk);
  accumulate(v, dv);
  accumulate(terms, d_terms);
}

program::AxisSet BackwardPass::common_sums(const program::Step& step) {
  program::AxisSet common = ~program::AxisSet{0};
  for (int id : step.out)
    if (id >= 0) {
      if (slot(id) < 0) return 0;
      const program::ProgramTensor& held = program_.tensor(slot(id));
      common &= held.sharding.unreduced & ~program_.tensor(id).sharding.split_axes();
      if (held.sharding.unreduced != common) return 0;  // the other partial sums would have to end first
    }
  return common;
}

program::AxisSet BackwardPass::partial_by_others(const program::Step& step, int id) const {
  program::AxisSet axes = 0;
  for (int other : step.in)
    if (other >= 0 && other != id)
      axes |= program_.tensor(other).sharding.unreduced |
              (step.op == program::Op::combine ? partial_over(id, other) : program::AxisSet{0});
  return axes;
}

void BackwardPass::transpose_per_input(const program::Step& step) {
  if (step.op == program::Op::largest && program_.tensor(step.out[0]).sharding.unreduced != 0)
    return transpose_split_largest(step);
  if (std::none_of(step.in.begin(), step.in.end(), [&](int id) { return wants_gradient(id); })) return;
  const program::OpGradient& rule = program::facts(step.op).gradient;
  program::Step back;
  back.op = *rule.op;
  std::size_t n = 0;
  program::AxisSet late = 0;
  // What a function of one tensor returns is as large as what arrives: its partial sums end together with others.
  const bool is_of_one = step.op == program::Op::map &&
                         std::count_if(step.in.begin(), step.in.end(), [&](int id) { return wants_gradient(id); }) == 1;
  const program::AxisSet staying = rule.is_linear || is_of_one ? common_sums(step) : program::AxisSet{0};
  for (int id : step.out)
    if (id >= 0) {
      const int g = gradient(id, staying);
      if (g < 0) continue;
      late |= program_.tensor(g).sharding.unreduced;
      back.in[n++] = static_cast<std::int16_t>(g);
    }
  if (n == 0) return;
  if (rule.reads_inputs)
    for (int id : step.in)
      if (id >= 0 && n < back.in.size()) back.in[n++] = static_cast<std::int16_t>(forward_value(id));
  // Every input has a slot among the results, even if its gradient is not needed.
  const auto has_gradient = [&](int id) { return wants_gradient(id) || (id >= 0 && program_.tensor(id).is_frozen); };
  n = 0;
  for (int id : step.in)
    if (has_gradient(id)) {
      const program::AxisSet unreduced = partial_over(id, step.out[0]) | partial_by_others(step, id) | late;
      back.out[n++] = static_cast<std::int16_t>(wants_gradient(id) ? make_gradient(id, unreduced) : -1);
    }
  build_.count_traffic(back);
  back.flops = 2.0 * step.flops;
  back.detail = step.detail;
  back.composed = step.composed;
  back.is_joined = step.is_joined;
  program_.steps.push_back(back);
  n = 0;
  for (int id : step.in)
    if (has_gradient(id)) accumulate(id, back.out[n++]);
}

void BackwardPass::transpose_split_largest(const program::Step& step) {
  const int x = step.in[0], own = step.out[0], dy = gradient(own);
  if (dy < 0 || !wants_gradient(x)) return;
  const program::Step& ends = program_.steps[at(program_.tensor(own).producer + 1)];
  if (!ends.takes_largest() || ends.in[0] != own) throw InternalError("a maximum of parts does not end");
  const int most = ends.out[0];
  const auto mapped = [&](program::Function function, int of, int a, int b) {
    const int made = make_gradient(of);
    program_.tensors[at(made)].sharding = reduced_sharding(program_.tensor(of));
    build_.emit(program::Op::map, {a, b}, {made}).detail = static_cast<std::int16_t>(function);
    return made;
  };
  const int is_largest = mapped(program::Function::equal, x, forward_value(x), forward_value(most));
  const int count = make_gradient(own, program_.tensor(own).sharding.unreduced);
  build_.emit(program::Op::sum, {is_largest}, {count});
  const int share = mapped(program::Function::divide, most, dy, build_.settle_sums(count));
  accumulate(x, mapped(program::Function::multiply, x, is_largest, share));
}

void BackwardPass::transpose_dispatch(const program::Step& step) {
  int dy = slot(step.out[0]);
  if (dy < 0) return;
  // Sum a token's copies before ending partial sums.
  program::Sharding target = program_.tensor(step.out[0]).sharding;
  target.unreduced = program_.tensor(dy).sharding.unreduced & ~target.split_axes();
  dy = build_.reshard(dy, target, program::Urgency::critical);
  const int dx = make_gradient(step.in[0], target.unreduced | partial_over(step.in[0], step.out[0]));
  build_.emit(program::Op::dispatch_grad, {dy, forward_value(step.in[1])}, {dx});
  accumulate(step.in[0], dx);
}

void BackwardPass::transpose_embed(const program::Step& step) {
  const int dy = gradient(step.out[0]);
  const int table = step.in[1];
  if (dy < 0 || !wants_gradient(table)) return;
  const int d_table = make_gradient(table, partial_over(table, step.out[0]));
  build_.emit(program::Op::embed_grad, {dy, step.in[0]}, {d_table}).detail = step.detail;
  accumulate(table, d_table);
}

void BackwardPass::transpose_place(const program::Step& step) {
  const int dy = gradient(step.out[0]);
  if (dy < 0) return;
  if (const int table = step.in[1]; wants_gradient(table)) {
    const int d_table = make_gradient(table, partial_over(table, dy));
    build_.emit(program::Op::place_grad, {dy}, {d_table});
    accumulate(table, d_table);
  }
  accumulate(step.in[0], dy);
}

void BackwardPass::transpose_loss_sums(const program::Step& step) {
  const int logits = step.in[0], d_logits = make_gradient(logits);
  build_.emit(program::Op::loss_grad, {forward_value(logits), step.in[1], forward_value(sums_)}, {d_logits}).composed =
      step.composed;
  accumulate(logits, d_logits);
}

void BackwardPass::pass_on_gradient(const program::Step& step) {
  int dy = slot(step.out[0]);
  if (dy < 0) return;
  for (int id : step.in)
    if (id >= 0 && is_bias(step, id)) {
      dy = gradient(step.out[0]);
      transpose_bias(id, dy);
    }
  for (int id : step.in)
    if (id >= 0 && !is_bias(step, id)) accumulate(id, dy);
}

void BackwardPass::send_back(const program::Step& step) {
  const int dy = gradient(step.out[0]), dx = make_gradient(step.in[0]);
  program::Step back = program::movement(step.collective, step.axes, dy, dx);
  back.detail = static_cast<std::int16_t>(step.detail ^ 1);  // the inverse is its neighbour
  back.in[1] = step.in[1];
  back.bytes = step.bytes;
  program_.tensors[at(dx)].producer = static_cast<std::int16_t>(program_.steps.size());
  program_.steps.push_back(back);
  accumulate(step.in[0], dx);
}

void BackwardPass::reshard_gradient(const program::Step& step) {
  const int x = step.in[0], dy = slot(step.out[0]);
  if (dy < 0 || step.out[0] == sums_) return;
  if (step.detail >= 0 && (step.is(program::Collective::permute) || step.is(program::Collective::ragged_all_to_all)))
    return send_back(step);
  if (step.takes_largest()) return accumulate(x, gradient(step.out[0]));
  if (is_weight(x)) return accumulate(x, dy);  // reduced when the block's gradients are complete
  // A narrow product that made partial sums gathers their gradient in its own format.
  if (build_.narrow_products_ && step.op == program::Op::collective && program::scatters(step.collective) &&
      program_.steps[at(program_.tensor(x).producer)].op == program::Op::product)
    return accumulate(x, dy);
  program::Sharding target = settled_sharding(x, dy);
  // An exchange carries partial sums just like whole values.
  if (step.op == program::Op::collective && program::is_exchange(step.collective))
    target.unreduced |= program_.tensor(dy).sharding.unreduced & ~target.split_axes();
  accumulate(x, build_.reshard(dy, target, program::Urgency::critical));
}

}  // namespace assay::lower
