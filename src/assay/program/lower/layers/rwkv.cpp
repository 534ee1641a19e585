// RWKV: mixes each token with the one before it, and scans the rest of the past.
#include <algorithm>

#include "assay/base/index.h"
#include "assay/program/lower/layers/layer_writer.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

}  // namespace

int LayerWriter::also_made(int like, std::string_view name) {
  program::Program& program = build_.program();
  program::ProgramTensor made = program.tensor(like);
  made.name = name;
  const int id = program.add(made);
  program::Step& step = program.steps.back();
  program.tensors[at(id)].producer = static_cast<std::int16_t>(program.steps.size() - 1);
  *std::find(step.out.begin(), step.out.end(), std::int16_t{-1}) = static_cast<std::int16_t>(id);
  step.bytes += build_.bytes(id);
  return id;
}

int LayerWriter::token_before(int x) {
  program::Program& program = build_.program();
  int edge = -1;
  if (const program::AxisList parts = sharding(x).dims[1]; !parts.empty()) {
    // Devices that hold parts of a sequence exchange their last tokens.
    program::ProgramTensor made = program.tensor(x);
    made.name = "Edge";
    made.tensor_class = program::TensorClass::activation;
    made.is_given = made.is_kept = false;
    made.dims.set(1, {sequence, static_cast<std::int64_t>(program.ways(parts))});
    edge = program.add(made);
    build_.count_traffic(build_.emit(program::Op::edge, {x}, {edge}));
    program::Sharding everywhere = made.sharding;
    everywhere.dims[1] = {};
    edge = build_.reshard(edge, everywhere, program::Urgency::critical);
  }
  const int before = build_.pointwise(program::Op::shift, "Before", {x, edge}, x);
  // A serving step reads the last token of each sequence and stores a new one.
  if (work_.cached) {
    program.steps.back().detail = 0;
    build_.count_traffic(program.steps.back());
  }
  return before;
}

std::array<int, 5> LayerWriter::mixed(int x, int y, int weights, std::initializer_list<std::string_view> names) {
  std::array<int, 5> out{};
  std::size_t n = 0;
  for (const std::string_view name : names) {
    out[n] = n == 0 ? build_.pointwise(program::Op::mix, name, {x, y, weights}, x) : also_made(out[0], name);
    ++n;
  }
  return out;
}

int LayerWriter::narrow_product(std::string_view name, int x, const NarrowMatrices& by,
                                std::initializer_list<model::LogicalDim> result, bool activated) {
  int narrow = build_.settle_sums(build_.product("Low", x, weight(by.low), {batch, sequence, rank}));
  if (activated) narrow = build_.pointwise(program::Op::activate, "Low", {narrow}, narrow);
  return build_.settle_sums(build_.product(name, narrow, weight(by.high), result, -1, weight(by.bias)));
}

int LayerWriter::rwkv4(const model::StateSpace& s, int x) {
  const int receptance = weight("W_r");
  x = build_.brought_to(x, receptance);
  const auto [xr, xk, xv, no, none] =
      mixed(x, token_before(x), along_channels("mix", x), {"MixedR", "MixedK", "MixedV"});
  const auto projected = [&](std::string_view name, int from, int w) {
    return build_.settle_sums(build_.product(name, from, w, {batch, sequence, inner}));
  };
  const int r = projected("R", xr, receptance);
  const int k = whole_sequence(projected("K", xk, weight("W_k")));
  const int v = whole_sequence(projected("V", xv, weight("W_v")));
  const int y = scan(s, {v, k, along_channels("A", k), along_channels("bonus", k)});
  return build_.pointwise(program::Op::activate, "Y", {scan_result(y, r), r}, r);
}

int LayerWriter::rwkv5(const model::StateSpace& s, int x) {
  const int receptance = weight("W_r");
  x = build_.brought_to(x, receptance);
  const int before = token_before(x);
  int weights = weight("mix");
  if (s.mix_rank > 0) {  // the mixing weights depend on mixed tokens
    const int base = mixed(x, before, along_channels("mix_x", x), {"MixedX"})[0];
    int low = build_.settle_sums(build_.product("MixLow", base, weight("W_mix_low"), {batch, sequence, other, rank}));
    low = build_.pointwise(program::Op::activate, "MixLow", {low}, low);
    weights =
        build_.settle_sums(build_.product("Mix", low, weight("W_mix"), {batch, sequence, other, d_model}, -1, weights));
    program::Sharding beside = sharding(x);
    beside.dims[3] = beside.dims[2];
    beside.dims[2] = {};
    weights = build_.reshard(weights, beside, program::Urgency::critical);
  } else {
    weights = build_.bias_for(weights, build_.program().tensor(x));
  }
  const auto streams = s.decay_rank > 0 ? mixed(x, before, weights, {"MixedR", "MixedK", "MixedV", "MixedG", "MixedW"})
                                        : mixed(x, before, weights, {"MixedR", "MixedK", "MixedV", "MixedG"});
  const int decay = s.decay_rank > 0 ? whole_sequence(narrow_product("W", streams[4], {"W_w_low", "W_w", "A"},
                                                                     {batch, sequence, heads, head_dim}, true))
                                     : -1;
  const auto of_heads = [&](std::string_view name, int from, int w) {
    return whole_sequence(build_.settle_sums(build_.product(name, from, w, {batch, sequence, heads, head_dim})));
  };
  const auto of_values = [&](std::string_view name, int from, std::string_view w) {
    return build_.settle_sums(build_.product(name, from, weight(w), {batch, sequence, inner}));
  };
  const int r = of_heads("R", streams[0], receptance), k = of_heads("K", streams[1], weight("W_k"));
  const int v = whole_sequence(of_values("V", streams[2], "W_v")), gate = of_values("Gate", streams[3], "W_g");
  int y = scan(s, {v, r, k, decay >= 0 ? decay : along_channels("A", r), along_channels("bonus", r)});
  y = build_.norm("Y", scan_result(y, gate), weight("inner_norm"), weight("b_inner_norm"), s.heads);
  y = scan_result(y, gate);
  return build_.pointwise(program::Op::activate, "Y", {y, gate}, gate);
}

int LayerWriter::rwkv7(const model::StateSpace& s, int x) {
  const int receptance = weight("W_r");
  x = build_.brought_to(x, receptance);
  const int before = token_before(x);
  const auto [xw, xa, xg, no, none] = mixed(x, before, along_channels("mix_low", x), {"MixedW", "MixedA", "MixedG"});
  const auto decay = narrow_product("W", xw, {"W_w_low", "W_w", "b_w"}, {batch, sequence, heads, head_dim}, true);
  const auto rate = narrow_product("A", xa, {"W_a_low", "W_a", "b_a"}, {batch, sequence, heads, head_dim}, false);
  const int gate = narrow_product("Gate", xg, {"W_g_low", "W_g", {}}, {batch, sequence, inner}, true);
  const auto [xr, xk, xv, no_more, none_more] =
      mixed(x, before, along_channels("mix", x), {"MixedR", "MixedK", "MixedV"});
  const auto of_heads = [&](std::string_view name, int from, int w) {
    return whole_sequence(build_.settle_sums(build_.product(name, from, w, {batch, sequence, heads, head_dim})));
  };
  const int r = of_heads("R", xr, receptance), k = of_heads("K", xk, weight("W_k"));
  int v = build_.settle_sums(build_.product("V", xv, weight("W_v"), {batch, sequence, inner}));
  v = whole_sequence(with_first_values(s, xv, v));
  int y = scan(s, {v, r, k, whole_sequence(decay), whole_sequence(rate), along_channels("key_scales", r)});
  const int bonus = scan_result(also_made(y, "Bonus"), gate);  // bypasses the norm
  y = build_.norm("Y", scan_result(y, gate), weight("inner_norm"), weight("b_inner_norm"), s.heads);
  y = build_.pointwise(program::Op::add, "Y", {scan_result(y, gate), bonus}, gate);
  return build_.pointwise(program::Op::activate, "Y", {y, gate}, gate);
}

int LayerWriter::with_first_values(const model::StateSpace& s, int x, int v) {
  program::Program& program = build_.program();
  constexpr std::string_view name = "V_first";
  if (s.lends_values) {
    program.tensors[at(v)].tensor_class = program::TensorClass::key_value;
    program.tensors[at(v)].is_kept = true;  // for the backward passes of all other layers
    lend(v, name);
    lent_.values = v;
  }
  if (s.value_rank == 0) return v;
  int share = narrow_product("Share", x, {"W_vg_low", "W_vg", "b_vg"}, {batch, sequence, inner}, false);
  share = build_.pointwise(program::Op::activate, "Share", {share}, share);
  program::ProgramTensor given = program.tensor(v);
  given.tensor_class = program::TensorClass::key_value;
  given.is_given = true;
  const int first = program.add(given);
  lend(first, name);
  return mixed(v, first, share, {"V"})[0];
}

int LayerWriter::shifted_feed_forward(const model::FeedForward& f, int x) {
  const int up = weight("W_in");
  x = build_.brought_to(x, up);
  const int weights = along_channels("mix_ffn", x), before = token_before(x);
  const auto streams =
      f.receptance ? mixed(x, before, weights, {"MixedK", "MixedR"}) : mixed(x, before, weights, {"MixedK"});
  const int hidden =
      build_.settle_sums(build_.product("Up", streams[0], up, {batch, sequence, width}, -1, weight("b_in")));
  const int act = build_.pointwise(program::Op::activate, "Act", {hidden}, hidden);
  int y = build_.product("Down", act, weight("W_out"), {batch, sequence, d_model});
  if (!f.receptance) return y;
  y = build_.settle(y, program::TensorClass::residual);
  int r = build_.settle_sums(build_.product("R", streams[1], weight("W_receptance"), {batch, sequence, width}));
  r = build_.reshard(r, sharding(y), program::Urgency::critical);
  return build_.pointwise(program::Op::activate, "Down", {y, r}, y);
}

}  // namespace assay::lower
