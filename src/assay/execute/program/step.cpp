#include "assay/execute/program/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/execute/kernels/attention.h"
#include "assay/execute/kernels/expert.h"
#include "assay/execute/kernels/product.h"
#include "assay/execute/kernels/recurrence.h"
#include "assay/execute/kernels/shift.h"
#include "assay/execute/plan/run_step.h"

namespace assay::execute {
namespace {

DimensionNames names_of(const program::ProgramTensor& tensor) {
  // Numbers of the logical dimensions: letters are shared by some.
  DimensionNames names;
  for (int i = 0; i < tensor.rank; ++i) names.push_back(std::to_string(static_cast<int>(tensor.dims[at(i)].dim)));
  return names;
}

plan::StepKind kind_of(program::Op op) {
  switch (op) {
    case program::Op::slice:
      return plan::StepKind::slice;
    case program::Op::all_gather:
      return plan::StepKind::all_gather;
    case program::Op::reduce_scatter:
      return plan::StepKind::reduce_scatter;
    case program::Op::all_reduce:
      return plan::StepKind::all_reduce;
    case program::Op::all_to_all:
      return plan::StepKind::all_to_all;
    default:
      throw InternalError("not a collective");
  }
}

}  // namespace

/// The inputs of a step on one device.
struct StepRunner::Operands {
  const program::Step& step;
  const ProgramMemory& memory;
  std::size_t device;
  Numbers* state = nullptr;  ///< of a recurrent step, from earlier tokens

  /// nullptr where the step has no such input.
  const Numbers* maybe(std::size_t i) const {
    return i < step.in.size() && step.in[i] >= 0 ? &memory[at(step.in[i])][device] : nullptr;
  }
  const Numbers& operator[](std::size_t i) const {
    const Numbers* found = maybe(i);
    if (!found) throw InternalError(fmt::format("{} lacks an input", program::name(step.op)));
    return *found;
  }
  std::vector<const Numbers*> all() const {
    std::vector<const Numbers*> out;
    for (std::size_t i = 0; i < step.in.size(); ++i)
      if (maybe(i)) out.push_back(maybe(i));
    return out;
  }
  /// The first ones, and the others.
  std::pair<std::vector<const Numbers*>, std::vector<const Numbers*>> cut(std::size_t first) const {
    const std::vector<const Numbers*> each = all();
    const auto end = each.begin() + static_cast<std::ptrdiff_t>(first);
    return {{each.begin(), end}, {end, each.end()}};
  }
};

StepRunner::StepRunner(const program::Program& program, double tokens)
    : program_(program), tokens_(tokens), devices_(program.mesh) {
  for (const program::ProgramTensor& tensor : program.tensors) {
    tensors_.push_back(program::to_tensor(tensor));
    program::Tensor checked = tensors_.back();
    // Attention leaves the padding of a cache out.
    if (const int along = tensor.find(model::LogicalDim::context); along >= 0) checked.sharding.dims[at(along)] = {};
    if (program::is_padded(program.mesh, checked))
      throw InternalError("padded tensors are not executed: " + program::tensor_text(program.mesh, checked));
    auto& here = extents_.emplace_back();
    for (std::size_t d = 0; d < devices_.count(); ++d)
      here.push_back(extents_on(program.mesh, tensors_.back(), devices_.at(d)));
  }
}

Shards<double> StepRunner::distributed(const Array<double>& global, int tensor) const {
  return distribute(global, tensors_[at(tensor)], program_.mesh);
}

Array<double> StepRunner::collected(int tensor, const ProgramMemory& memory) {
  const Collected<double> all = collect(memory[at(tensor)], tensors_[at(tensor)], program_.mesh);
  disagreement_ = std::max(disagreement_, all.disagreement);
  return all.array;
}

const Extent& StepRunner::extent(int tensor, model::LogicalDim dim, std::size_t device) const {
  return extents_[at(tensor)][device][at(program_.tensor(tensor).find(dim))];
}

std::int64_t StepRunner::sequence_part(int tensor, std::size_t device) const {
  const Extent& here = extent(tensor, model::LogicalDim::sequence, device);
  return here.start / here.size;
}

std::int64_t StepRunner::first_position() const {
  if (program_.attentions.empty()) return 0;
  return program_.attentions.front().keys - program_.attentions.front().queries;
}

void StepRunner::check_layouts(const program::Step& step) const {
  const auto same = [&](int a, int b) {
    if (a < 0 || b < 0 || program_.tensor(a).sharding == program_.tensor(b).sharding) return;
    throw InternalError("operands lie differently: " + program::step_text(program_, step));
  };
  switch (step.op) {
    case program::Op::add:
      for (int id : step.in)
        if (id >= 0 && program_.tensor(id).rank == program_.tensor(step.out[0]).rank) same(id, step.out[0]);
      break;
    case program::Op::activate:
      same(step.in[1], step.out[0]);
      [[fallthrough]];
    case program::Op::rotate:
    case program::Op::rotate_grad:
      same(step.in[0], step.out[0]);
      break;
    case program::Op::product:
      same(step.in[2], step.out[0]);
      break;
    case program::Op::activate_grad:
      same(step.in[0], step.out[0]), same(step.in[1], step.out[0]), same(step.in[2], step.out[0]);
      break;
    default:
      break;
  }
}

void StepRunner::run(const program::Step& step, const model::Layer* layer, ProgramMemory& memory) {
  for (int id : step.in)
    if (id >= 0 && memory[at(id)].empty())
      throw InternalError("a step reads what was not made: " + program::step_text(program_, step));
  if (step.op == program::Op::slice || program::is_collective(step.op)) {
    memory[at(step.out[0])] = run_collective(step, memory[at(step.in[0])]);
    return;
  }
  check_layouts(step);
  if (step.op == program::Op::update) {
    // The optimizer's part of the weight may be smaller than what lies in memory.
    const plan::PlanStep cut{plan::StepKind::slice, 0, tensors_[at(step.in[1])], {}, tensors_[at(step.out[0])], {}, 0};
    Shards<double> mine = run_step(devices_, cut, memory[at(step.in[1])]);
    for (std::size_t d = 0; d < mine.size(); ++d)
      for (std::size_t i = 0; i < mine[d].values.size(); ++i)
        mine[d].values[i] -= descent_rate * memory[at(step.in[0])][d].values.at(i);
    memory[at(step.out[0])] = std::move(mine);
    return;
  }
  for (int id : step.out)
    if (id >= 0) memory[at(id)].assign(devices_.count(), {});
  Shards<double>* state = nullptr;
  if (states_ && (step.op == program::Op::scan || step.op == program::Op::convolve || step.op == program::Op::shift)) {
    if (states_->size() == next_state_) states_->emplace_back(devices_.count());
    state = &(*states_)[next_state_++];
  }
  for (std::size_t d = 0; d < devices_.count(); ++d) {
    std::vector<Numbers> made = run_local(step, layer, {step, memory, d, state ? &(*state)[d] : nullptr});
    std::size_t next = 0;
    for (int id : step.out) {
      if (id < 0) continue;
      Numbers& result = made.at(next++);
      result.shape = program::local_shape(program_.mesh, tensors_[at(id)]);
      if (element_count(result.shape) != static_cast<std::int64_t>(result.values.size()))
        throw InternalError("a step's result has the wrong size: " + program::step_text(program_, step));
      memory[at(id)][d] = std::move(result);
    }
  }
}

Shards<double> StepRunner::run_collective(const program::Step& step, const Shards<double>& from) {
  const plan::PlanStep plan{kind_of(step.op), step.axes, tensors_[at(step.in[0])], {}, tensors_[at(step.out[0])],
                            step.bytes,       0};
  const auto total = [&] {
    Bytes sum;
    for (Bytes b : devices_.received()) sum += b;
    return sum;
  };
  const Bytes before = total();
  Shards<double> out = run_step(devices_, plan, from);
  // Scales travel with what they belong to.
  const program::ProgramTensor& tensor = program_.tensor(step.in[0]);
  const double scaled = tensor.bits / facts(tensor.dtype).bits;
  const Bytes moved = scaled * (total() - before) / static_cast<double>(devices_.count());
  const Bytes said = step.op == program::Op::slice ? Bytes(0) : step.bytes;
  moved_ += moved;
  byte_error_ = std::max(byte_error_, std::abs((moved - said).value()) / std::max(1.0, said.value()));
  return out;
}

Array<double> StepRunner::multiplied(const program::Step& step, const Operands& in) const {
  const auto names = [&](int id) { return names_of(program_.tensor(id)); };
  Numbers out = product(in[0], names(step.in[0]), in[1], names(step.in[1]), names(step.out[0]));
  if (const Numbers* onto = in.maybe(2)) add(out, *onto);
  if (const Numbers* bias = in.maybe(3)) {
    out.shape = program::local_shape(program_.mesh, tensors_[at(step.out[0])]);
    add_spread(out, *bias, spread(step.in[3], step.out[0], in.device));
  }
  return out;
}

/// The strides of a tensor along the dimensions of another one that has all of its dimensions.
Shape StepRunner::spread(int small, int large, std::size_t device) const {
  const program::ProgramTensor &part = program_.tensor(small), &whole = program_.tensor(large);
  Shape strides(whole.rank, 0);
  std::int64_t stride = 1;
  for (int i = part.rank; i-- > 0;) {
    strides[at(whole.find(part.dims[at(i)].dim))] = stride;
    stride *= extents_[at(small)][device][at(i)].size;
  }
  return strides;
}

Array<double> StepRunner::added(const program::Step& step, const Operands& in) const {
  Numbers sum = in[0];
  for (std::size_t i = 1; i < step.in.size(); ++i) {
    const Numbers* term = in.maybe(i);
    if (!term) continue;
    if (program_.tensor(step.in[i]).rank == program_.tensor(step.out[0]).rank)
      add(sum, *term);
    else if (is_first_of(step.out[0], in.device))
      add_spread(sum, *term, spread(step.in[i], step.out[0], in.device));
  }
  return sum;
}

bool StepRunner::is_first_of(int tensor, std::size_t device) const {
  const program::AxisSet summed = program_.tensor(tensor).sharding.unreduced;
  const Coordinates& place = devices_.at(device);
  for (std::size_t axis = 0; axis < place.size(); ++axis)
    if ((summed & program::axis_bit(static_cast<int>(axis))) != 0 && place[axis] != 0) return false;
  return true;
}

Array<double> StepRunner::written_cache(const program::Step& step, const Operands& in) const {
  Numbers out = in[1];
  const Numbers& fresh = in[0];
  const Extent& here = extent(step.in[1], model::LogicalDim::context, in.device);
  const std::int64_t added = fresh.shape[1], all = program_.tensor(step.in[1]).dims[1].size;
  const std::int64_t row = element_count(out.shape) / (out.shape[0] * out.shape[1]);
  for (std::int64_t b = 0; b < out.shape[0]; ++b)
    for (std::int64_t t = 0; t < here.count; ++t) {
      const std::int64_t s = here.start + t - (all - added);
      if (s >= 0)
        std::copy_n(fresh.values.begin() + (b * added + s) * row, row,
                    out.values.begin() + (b * out.shape[1] + t) * row);
    }
  return out;
}

bool StepRunner::is_sums_of(int made, int x) const {
  const program::ProgramTensor &sums = program_.tensor(made), &rows = program_.tensor(x);
  return sums.rank != rows.rank || sums.dims[at(sums.rank - 1)].dim != rows.dims[at(rows.rank - 1)].dim;
}

NormShape StepRunner::norm_shape(int x, int scale, const Operands& in) const {
  const program::ProgramTensor& rows = program_.tensor(x);
  const int over = scale >= 0 ? program_.tensor(scale).rank : 1;
  NormShape shape{1, 1, in.step.is_centred};
  for (int i = rows.rank - over; i < rows.rank; ++i) {
    shape.local *= extents_[at(x)][in.device][at(i)].size;
    shape.whole *= rows.dims[at(i)].size;
  }
  return shape;
}

/// Where each device holds whole groups, they are rows of their own, each with its part of the scale.
void StepRunner::cut_into_groups(const program::Step& step, NormShape& shape) const {
  if (step.detail <= 0) return;
  shape.rows_per_scale = shape.local * step.detail / shape.whole;
  shape.whole /= step.detail;
  shape.local = shape.whole;
}

std::vector<Array<double>> StepRunner::run_attention(const program::Step& step, const model::Attention& a,
                                                     const Operands& in) const {
  if (step.op == program::Op::attention && step.detail < 0) return {attention_quotient(in[0], in[1], in.maybe(2))};
  const bool grad = step.op == program::Op::attention_grad;
  const int q = step.in[grad ? 1 : 0], k = step.in[grad ? 2 : 1], out = grad ? step.in[4] : step.out[0];
  const program::AttentionShape& shape = program_.attentions[at(step.detail)];
  const program::ProgramTensor& keys = program_.tensor(k);
  const model::LogicalDim along =
      keys.find(model::LogicalDim::context) >= 0 ? model::LogicalDim::context : model::LogicalDim::sequence;
  AttentionPlace place;
  place.first_query = shape.keys - shape.queries + extent(q, model::LogicalDim::sequence, in.device).start;
  place.first_key = shape.keys - keys.dims[1].size + extent(k, along, in.device).start;
  place.key_count = extent(k, along, in.device).count;
  place.first_head = extent(q, model::LogicalDim::heads, in.device).start;
  const model::LogicalDim by =
      keys.find(model::LogicalDim::kv_heads) >= 0 ? model::LogicalDim::kv_heads : model::LogicalDim::heads;
  if (keys.find(by) < 0) {
    place.heads_per_kv_head = 0;
  } else {
    place.first_kv_head = extent(k, by, in.device).start;
    place.heads_per_kv_head = a.heads / keys.dims[at(keys.find(by))].size;
  }
  place.value_dim = program_.tensor(out).dims[3].size;
  place.scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
  place.causal = a.causal && !a.cross;
  place.buckets = a.sinks ? 0 : a.relative_buckets;
  place.window = a.window, place.chunk = a.chunk;
  place.flash = shape.flash;
  place.picks = in.maybe(grad ? 7 : 4);
  place.partial = program_.tensor(out).sharding.unreduced != 0;
  if (!grad) {
    auto [result, rest] = attention(in[0], in[1], in.maybe(2), in.maybe(3), place);
    return {std::move(result), std::move(rest)};
  }
  AttentionGradients made = attention_grad(in[0], in[1], in[2], in[3], in[4], in[5], in.maybe(6), place);
  return {std::move(made.dq), std::move(made.dk), std::move(made.dv), std::move(made.d_terms)};
}

RecurrencePlace StepRunner::recurrence_place(int values, int keys, const model::StateSpace& s,
                                             const Operands& in) const {
  RecurrencePlace place;
  place.kind = s.kind;
  const bool linear = s.kind == model::StateSpace::Kind::gated_linear;
  const bool channels = linear || s.kind == model::StateSpace::Kind::mamba1;  // a head for each of them
  place.heads = channels ? s.inner : s.heads;
  place.value_dim = s.inner / place.heads;
  place.key_heads = linear ? s.inner : channels ? 1 : s.key_heads;
  place.key_dim = s.key_dim;
  place.first_head = extents_[at(values)][in.device][2].start / place.value_dim;
  const bool by_heads = program_.tensor(keys).rank == 4;
  place.first_key_head = extents_[at(keys)][in.device][2].start / (by_heads ? 1 : place.key_dim);
  return place;
}

std::vector<Array<double>> StepRunner::run_local(const program::Step& step, const model::Layer* layer,
                                                 const Operands& in) const {
  const auto width = [&](int id) { return extents_[at(id)][in.device][at(program_.tensor(id).rank - 1)].size; };
  const auto vocabulary = [&](int id) { return extent(id, model::LogicalDim::vocabulary, in.device); };
  const auto experts = [&](int id) { return extent(id, model::LogicalDim::experts, in.device); };
  const auto widths = [&] {
    std::vector<std::int64_t> out;
    for (int id : step.out)
      if (id >= 0) out.push_back(width(id));
    return out;
  };
  const auto experts_per_token = [&] { return layer->feed_forward->experts_per_token; };
  switch (step.op) {
    case program::Op::product:
      return {multiplied(step, in)};
    case program::Op::embed:
      return {embed(in[0], in[1], vocabulary(step.in[1]))};
    case program::Op::embed_grad:
      return {embed_grad(in[0], in[1], vocabulary(step.out[0]))};
    case program::Op::norm: {
      if (is_sums_of(step.out[0], step.in[0])) {
        // All dimensions that the sums lack were summed over.
        NormShape shape{1, 1, step.is_centred};
        for (int i = program_.tensor(step.out[0]).rank - 1; i < program_.tensor(step.in[0]).rank; ++i)
          shape.local *= extents_[at(step.in[0])][in.device][at(i)].size;
        return {norm_sums(in[0], shape)};
      }
      NormShape shape = norm_shape(step.in[0], step.in[1], in);
      cut_into_groups(step, shape);
      return {norm(in[0], in.maybe(1), in.maybe(3), in.maybe(2) ? in[2] : norm_sums(in[0], shape), shape)};
    }
    case program::Op::norm_grad: {
      NormShape shape = norm_shape(step.in[1], step.in[2], in);
      cut_into_groups(step, shape);
      const Numbers sums = in.maybe(3) ? in[3] : norm_sums(in[1], shape);
      const Numbers own = in.maybe(4) ? in[4] : norm_grad_sums(in[0], in[1], in.maybe(2), sums, shape);
      if (is_sums_of(step.out[0], step.in[1])) return {own};
      auto [dx, d_scale, d_bias] = norm_grad(in[0], in[1], in.maybe(2), sums, own, shape);
      return {std::move(dx), std::move(d_scale), std::move(d_bias)};
    }
    case program::Op::rotate:
    case program::Op::rotate_grad: {
      const std::int64_t rope = layer->attention->rope_dim;
      return {rotate(in[0], first_position() + extent(step.in[0], model::LogicalDim::sequence, in.device).start,
                     rope > 0 ? rope : width(step.in[0]), step.op == program::Op::rotate_grad)};
    }
    case program::Op::attention:
    case program::Op::attention_grad:
      return run_attention(
          step,
          step.detail >= 0 && program_.attentions[at(step.detail)].cross ? *layer->cross_attention : *layer->attention,
          in);
    case program::Op::pick:
      return {picked_keys(in[0], in[1], in[2], width(step.out[0]),
                          first_position() + extent(step.in[0], model::LogicalDim::sequence, in.device).start)};
    case program::Op::scan:
      return recurrence(in.all(), recurrence_place(step.in[0], step.in[1], *layer->state_space, in), in.state);
    case program::Op::scan_grad: {
      const model::StateSpace& s = *layer->state_space;
      const std::size_t results = s.kind == model::StateSpace::Kind::rwkv7 ? 2 : 1;
      const auto [dy, inputs] = in.cut(results);
      return recurrence_grad(dy, inputs, recurrence_place(step.in[results], step.in[results + 1], s, in));
    }
    case program::Op::edge:
      return {edge(in[0])};
    case program::Op::edge_grad:
      return {edge_grad(in[0], program::local_shape(program_.mesh, tensors_[at(step.out[0])]))};
    case program::Op::shift:
      return {shifted(in[0], in.maybe(1), sequence_part(step.in[0], in.device), in.state)};
    case program::Op::shift_grad:
      return shifted_grad(in[0], sequence_part(step.in[0], in.device),
                          step.out[1] < 0 ? 0 : program_.tensor(step.out[1]).dims[1].size);
    case program::Op::mix:
      return mixes(in[0], in[1], in[2], std::ssize(widths()));
    case program::Op::mix_grad: {
      const auto [dy, inputs] = in.cut(in.all().size() - 3);
      return mixes_grad(dy, *inputs[0], *inputs[1], *inputs[2]);
    }
    case program::Op::convolve:
      return {convolve(in[0], in[1], in.maybe(2), in.state)};
    case program::Op::convolve_grad:
      return convolve_grad(in[0], in[1], in[2], in.maybe(3));
    case program::Op::activate:
      return {activate(in[0], in.maybe(1))};
    case program::Op::activate_grad: {
      auto [d_up, d_gate] = activate_grad(in[0], in[1], in.maybe(2));
      return {std::move(d_up), std::move(d_gate)};
    }
    case program::Op::gate:
      return {gated(in[0], in[1])};
    case program::Op::gate_grad: {
      auto [dx, d_gate] = gated_grad(in[0], in[1], in[2]);
      return {std::move(dx), std::move(d_gate)};
    }
    case program::Op::place:
      return {
          placed(in[0], in[1], first_position() + extent(step.in[0], model::LogicalDim::sequence, in.device).start)};
    case program::Op::place_grad:
      return {placed_grad(in[0], extent(step.out[0], model::LogicalDim::positions, in.device).size,
                          first_position() + extent(step.in[0], model::LogicalDim::sequence, in.device).start)};
    case program::Op::bias_grad:
      return {summed_up(in[0], element_count(program::local_shape(program_.mesh, tensors_[at(step.out[0])])),
                        spread(step.out[0], step.in[0], in.device))};
    case program::Op::add:
      return {added(step, in)};
    case program::Op::cast:
      return {in.maybe(1) ? written_cache(step, in) : in[0]};
    case program::Op::split:
      return split(in.all(), widths());
    case program::Op::split_grad:
      return split_grad(in.all(), widths());
    case program::Op::route:
      return {route(in[0], experts_per_token())};
    case program::Op::route_grad:
      return {route_grad(in[0], in[1], experts_per_token())};
    case program::Op::dispatch:
      return {dispatch(in[0], in[1], experts(step.out[0]).start, experts(step.out[0]).count,
                       extent(step.out[0], model::LogicalDim::capacity, in.device).size)};
    case program::Op::dispatch_grad:
      return {dispatch_grad(in[0], in[1], experts(step.in[0]).start)};
    case program::Op::combine:
      return {combine(in[0], in[1], experts(step.in[0]).start)};
    case program::Op::combine_grad: {
      auto [d_slots, d_gates] = combine_grad(in[0], in[1], in[2], experts(step.in[1]).start);
      return {std::move(d_slots), std::move(d_gates)};
    }
    case program::Op::loss_sums:
      return {loss_sums(in[0], in[1], vocabulary(step.in[0]))};
    case program::Op::loss:
      return {loss(in[0])};
    case program::Op::loss_grad:
      return {loss_grad(in[0], in[1], in[2], vocabulary(step.in[0]), tokens_)};
    case program::Op::sample: {
      if (program_.tensor(step.in[0]).find(model::LogicalDim::vocabulary) < 0) return {best_of_all(in[0])};
      const Numbers best = best_of_part(in[0], vocabulary(step.in[0]));
      return {program_.tensor(step.out[0]).rank == 3 ? best : best_of_all(best)};
    }
    default:
      throw InternalError(fmt::format("{} is not executed", program::name(step.op)));
  }
}

}  // namespace assay::execute
