// State spaces and linear attention: projections, short convolutions, and a scan along the sequence.

#include "assay/base/index.h"
#include "assay/model/accounting.h"
#include "assay/model/layer_parts.h"
#include "assay/model/mixers.h"
#include "assay/program/lower/layers/layer_writer.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

}  // namespace

int LayerWriter::state_space(const model::StateSpace& s, int x) {
  static constexpr int (LayerWriter::*const by_kind[])(const model::StateSpace&, int) = {
      &LayerWriter::mamba1,
      &LayerWriter::mamba2,
      &LayerWriter::gated_delta,
      &LayerWriter::lightning,
      &LayerWriter::gated_convolution,
      &LayerWriter::gated_linear,
      &LayerWriter::rwkv4,
      &LayerWriter::rwkv5,
      &LayerWriter::rwkv7,
      &LayerWriter::mlstm};
  static_assert(std::size(by_kind) == std::size(model::mixers));
  const int y = (this->*by_kind[static_cast<std::size_t>(s.kind)])(s, x);
  postpone(weight("b_so"));
  return build_.product("Mixed", y, weight("W_so"), {batch, sequence, d_model});
}

int LayerWriter::mamba1(const model::StateSpace& s, int x) {
  const int values = projected("X", x, {"W_x", "b_x"}, inner), z = projected("Z", x, {"W_z", "b_z"}, inner);
  const int mixed = convolved(whole_sequence(values), "conv", "b_conv");
  // Sums over all channels, which are split across devices.
  const auto summed = [&](std::string_view name, std::string_view w, model::LogicalDim to) {
    return build_.settle_sums(build_.product(name, mixed, along_channels(w, mixed), {batch, sequence, to}));
  };
  int low = summed("Low", "W_dt_down", rank), b = summed("B", "W_B", state), c = summed("C", "W_C", state);
  if (s.inner_norms) {
    low = norm(low, "dt_norm", "Low");
    b = norm(b, "B_norm", "B");
    c = norm(c, "C_norm", "C");
  }
  int dt = build_.settle_sums(build_.product("Dt", low, along_channels("W_dt", mixed), {batch, sequence, inner}));
  dt = build_.reshard(dt, sharding(mixed), program::Urgency::critical);
  const int y = scan(
      s, {mixed, b, c, dt, along_channels("A", mixed), along_channels("b_dt", mixed), along_channels("skip", mixed)});
  return build_.pointwise(program::Op::activate, "Y", {scan_result(y, z), z}, z);
}

int LayerWriter::mamba2(const model::StateSpace& s, int x) {
  const int z = projected("Z", x, {"W_z", "b_z"}, inner);
  const int mixed = convolved(whole_sequence(projected("X", x, {"W_x", "b_x"}, inner)), "conv_x", "b_conv_x");
  const int b = convolved(whole_sequence(projected("B", x, {"W_B", "b_B"}, state)), "conv_B", "b_conv_B");
  const int c = convolved(whole_sequence(projected("C", x, {"W_C", "b_C"}, state)), "conv_C", "b_conv_C");
  const int dt = whole_sequence(projected("Dt", x, {"W_dt", "b_dt_in"}, heads));
  const int y =
      scan(s, {mixed, b, c, dt, along_channels("A", dt), along_channels("b_dt", dt), along_channels("skip", dt)});
  const int gated = build_.pointwise(program::Op::activate, "Y", {scan_result(y, z), z}, z);
  return s.output_norm ? build_.norm("Y", gated, weight("inner_norm"), -1, s.key_heads) : gated;
}

int LayerWriter::gated_delta(const model::StateSpace& s, int x) {
  const int q = convolved(whole_sequence(projected("Q", x, {"W_q"}, state)), "conv_q", "b_conv_q");
  const int k = convolved(whole_sequence(projected("K", x, {"W_k"}, state)), "conv_k", "b_conv_k");
  const int v = convolved(whole_sequence(projected("V", x, {"W_v"}, inner)), "conv_v", "b_conv_v");
  const bool low = s.gate_rank > 0;
  const int z =
      low ? build_.product("Z", projected("ZLow", x, {"W_z_low"}, rank), weight("W_z"), {batch, sequence, inner})
          : projected("Z", x, {"W_z"}, inner);
  const int beta = whole_sequence(projected("Beta", x, {"W_beta"}, heads));
  const int alpha = whole_sequence(low ? build_.product("Alpha", projected("AlphaLow", x, {"W_alpha_low"}, rank),
                                                        weight("W_alpha"), {batch, sequence, heads, head_dim})
                                       : projected("Alpha", x, {"W_alpha"}, heads));
  int y = scan(s, {v, q, k, beta, alpha, along_channels("A", beta), along_channels("b_dt", alpha)});
  by_heads(y, value_dim, s);  // each head is normalised separately
  y = scan_result(y, z);
  if (s.output_norm) y = norm(y, "head_norm", "Y");
  return build_.pointwise(program::Op::activate, "Y", {y, z}, z);
}

int LayerWriter::lightning(const model::StateSpace& s, int x) {
  const auto [q, k, v, gate] = heads_of(x);
  int y = scan_result(scan(s, {v, q, k}), gate);
  if (s.output_norm) y = norm(y, "inner_norm", "Y");
  return build_.pointwise(program::Op::activate, "Y", {y, gate}, gate);
}

int LayerWriter::gated_convolution(const model::StateSpace&, int x) {
  const int values = projected("X", x, {"W_x", "b_x"}, inner), before = projected("B", x, {"W_B", "b_B"}, inner),
            behind = projected("C", x, {"W_C", "b_C"}, inner);
  const int gated = build_.pointwise(program::Op::activate, "X", {values, before}, values);
  const int y = scan_result(convolved(whole_sequence(gated), "conv", "b_conv"), behind);
  return build_.pointwise(program::Op::activate, "Y", {y, behind}, behind);
}

int LayerWriter::gated_linear(const model::StateSpace& s, int x) {
  const int z = projected("Z", x, {"W_z", "b_z"}, inner);
  const int mixed = convolved(whole_sequence(projected("X", x, {"W_x", "b_x"}, inner)), "conv", "b_conv");
  by_heads(mixed, head_dim, s);
  const auto gate = [&](std::string_view name, std::string_view w, std::string_view bias) {
    return build_.product(name, mixed, along_channels(w, mixed), {batch, sequence, heads, value_dim}, -1, weight(bias));
  };
  const int input = gate("I", "W_input", "b_input"), decay = gate("R", "W_decay", "b_decay");
  const int y = scan(s, {mixed, input, decay, along_channels("A", input)});
  return build_.pointwise(program::Op::activate, "Y", {scan_result(y, z), z}, z);
}

int LayerWriter::mlstm(const model::StateSpace& s, int x) {
  const auto [q, k, v, gate] = heads_of(x);
  const int input = whole_sequence(projected("I", x, {"W_input", "b_input"}, heads)),
            forget = whole_sequence(projected("F", x, {"W_forget", "b_forget"}, heads));
  int y = scan_result(scan(s, {v, q, k, input, forget}), gate);
  if (s.output_norm) y = scan_result(build_.norm("Y", y, weight("inner_norm"), -1, s.heads, true), gate);
  return build_.pointwise(program::Op::activate, "Y", {y, gate}, gate);
}

int LayerWriter::projected(std::string_view name, int x, const WeightAndBias& by, model::LogicalDim to) {
  return build_.settle_sums(
      build_.product(name, x, weight(by.weight), {batch, sequence, to}, -1, by.bias.empty() ? -1 : weight(by.bias)));
}

LayerWriter::HeadInputs LayerWriter::heads_of(int x) {
  const auto of_heads = [&](std::string_view name, std::string_view w) {
    return whole_sequence(build_.settle_sums(build_.product(name, x, weight(w), {batch, sequence, heads, head_dim})));
  };
  const int q = of_heads("Q", "W_q"), k = of_heads("K", "W_k");
  const int v = whole_sequence(projected("V", x, {"W_v"}, inner));
  return {q, k, v, projected("Gate", x, {"W_og"}, inner)};
}

void LayerWriter::by_heads(int x, model::LogicalDim last, const model::StateSpace& s) {
  program::ProgramTensor& made = build_.program().tensors[at(x)];
  made.rank = 4;
  made.dims.set(2, {heads, s.heads});
  made.dims.set(3, {last, s.inner / s.heads});
  build_.program().place(x, program::Sharding(made.sharding));
}

int LayerWriter::whole_sequence(int x) {
  program::Sharding target = sharding(x);
  const program::AxisList along = target.dims[1];
  if (along.empty()) return x;
  target.dims[1] = {};
  // Heads are exchanged for tokens, and so are the keys that heads share, if both divide; otherwise they are
  // gathered.
  const model::StateSpace& s = *layer_.state_space;
  const bool is_key = build_.program().tensor(x).dims[2].dim == state;
  const std::int64_t whole = is_key ? s.key_heads : model::has_free_channels(s) ? s.inner : s.heads;
  const model::Weight::Size values{inner, s.inner};
  const program::AxisList split = build_.ruled(program::TensorClass::used_weight, std::span(&values, 1)).dims[0];
  const program::AxisList channels = joined(split, remaining(along, split.set()));
  if (whole % static_cast<std::int64_t>(build_.program().ways(channels.set())) == 0) target.dims[2] = channels;
  return build_.reshard(x, target, program::Urgency::critical);
}

int LayerWriter::convolved(int x, std::string_view weight_name, std::string_view bias) {
  const int w = weight(weight_name), b = weight(bias);
  if (w < 0) return x;
  const program::ProgramTensor channels = build_.program().tensor(x);
  const int kernel = build_.bias_for(w, channels);
  const int y =
      build_.pointwise(program::Op::convolve, channels.name, {x, kernel, b < 0 ? b : build_.bias_for(b, channels)}, x);
  program::Step& step = build_.program().steps.back();
  step.flops = arithmetic(Plain{}, build_.program(), step);
  return y;
}

int LayerWriter::along_channels(std::string_view name, int like) {
  return build_.bias_for(weight(name), build_.program().tensor(like));
}

int LayerWriter::scan(const model::StateSpace& s, std::initializer_list<int> in) {
  program::Program& program = build_.program();
  const int y = build_.pointwise(program::Op::scan, "State", in, *in.begin());
  program::Step& step = program.steps.back();
  const model::ScanWork work = model::scan_work(s);
  step.detail = static_cast<std::int16_t>(program.scans.size());
  program::ScanShape& shape = program.scans.emplace_back();
  shape = {work.per_cell, work.formula, static_cast<double>(s.key_dim), 0.0, model::scan_kernels(s)};
  // A serving step reads the state of each sequence and writes it back.
  if (work_.cached) shape.kept = static_cast<double>(model::state_cells(s)) / static_cast<double>(s.inner);
  step.flops = arithmetic(Plain{}, program, step);
  if (work_.cached) build_.count_traffic(step);
  return y;
}

int LayerWriter::scan_result(int y, int beside) {
  return build_.reshard(y, sharding(beside), program::Urgency::critical);
}

}  // namespace assay::lower
