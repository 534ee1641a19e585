// Feed-forward blocks: dense blocks, experts with their token exchange, and the shared expert.
#include <cmath>

#include "assay/program/lower/layers/layer_writer.h"

namespace assay::lower {

double touched_share(double tokens, double k, double n) { return 1.0 - std::pow(1.0 - k / n, tokens); }

int LayerWriter::feed_forward(const model::FeedForward& f, int x, int onto) {
  if (f.experts > 0) return experts_block(f, x);
  if (f.shifted) return shifted_feed_forward(f, x);
  const int out = dense(f, x, {}, onto);
  postpone(weight("b_out"));
  return out;
}

int LayerWriter::dense(const model::FeedForward& f, int x, const DenseProjections& by, int onto) {
  int up = build_.product("Up", x, weight(by.in), by.hidden, -1, by.biased ? weight("b_in") : -1);
  up = build_.settle_sums(up);
  int gate = -1;
  if (f.gated) {
    gate = build_.product("Gate", x, weight(by.gate), by.hidden, -1, by.biased ? weight("b_gate") : -1);
    gate = build_.settle_sums(gate);
  }
  const int act = build_.pointwise(program::Op::activate, "Act", {up, gate}, up);
  program::Step& made = build_.program().steps.back();
  made.composed = static_cast<std::uint8_t>(f.function);
  made.is_joined = f.joined;
  return build_.product("Down", act, weight(by.out), by.result, onto);
}

/// Shardings of the tokens on their way through a block of experts.
struct LayerWriter::ExpertPlaces {
  model::LogicalDim inside = model::LogicalDim::d_model;  ///< what experts read: the model's dimension or a latent one
  std::int64_t row = 0;                                   ///< size of that dimension
  program::Sharding home;                                 ///< tokens before and after
  program::Sharding near;                                 ///< tokens when only the exchange between experts remains
  program::Sharding there;                                ///< slots at their experts
  program::Sharding matrix;                               ///< the experts' first matrix

  /// Axes that split experts.
  program::AxisSet expert_axes() const { return there.dims[0].set(); }
  /// Axes over the slots of tokens with that sharding. Slots have no order of their own, so the axes that leave
  /// for the experts go innermost where possible.
  program::AxisList slot_holders(const program::Sharding& held) const {
    const program::AxisList all = joined(held.dims[0], held.dims[1]);
    const program::AxisSet stay = there.dims[1].set();
    return joined(joined(remaining(there.dims[1], ~all.set()), remaining(all, stay | expert_axes())),
                  remaining(there.dims[0], ~all.set()));
  }
};

LayerWriter::ExpertPlaces LayerWriter::expert_places(const model::FeedForward& f, int tokens) {
  using enum model::LogicalDim;
  ExpertPlaces places;
  places.home = sharding(tokens);
  places.inside = f.latent > 0 ? rank : d_model;
  places.row = build_.program().tensor(tokens).dims[2].size;
  const std::array<model::Weight::Size, 2> slots{model::Weight::Size{experts, f.experts},
                                                 model::Weight::Size{capacity, 1}};
  places.there = build_.ruled(program::TensorClass::dispatched, slots);
  const std::array<model::Weight::Size, 3> first{slots[0], model::Weight::Size{places.inside, places.row},
                                                 model::Weight::Size{width, f.width}};
  places.matrix = build_.ruled(program::TensorClass::used_weight, first);
  places.near = places.home;
  for (std::size_t i = 0; i < 2; ++i)
    places.near.dims[i] = remaining(places.home.dims[i], places.matrix.split_axes() & ~places.expert_axes());
  places.near.dims[2] = places.matrix.dims[1];
  return places;
}

double LayerWriter::slots_per_expert(const model::FeedForward& f, program::AxisList holders) const {
  const double k = static_cast<double>(f.experts_per_token), n = static_cast<double>(f.experts);
  const double ways = build_.program().ways(holders.set());
  return std::ceil(work_.tokens() * k * work_.expert_load / n / ways) * ways;
}

bool LayerWriter::gathers_before_dispatch(const model::FeedForward& f, const ExpertPlaces& places) const {
  if (places.near == places.home) return true;
  // An exchange between experts would carry the copies of all devices that share a token. So each sends its own
  // tokens and gets whole sums back.
  if ((places.expert_axes() & (places.home.split_axes() | places.near.split_axes())) != 0) return false;
  const auto n = static_cast<double>(f.experts), row = static_cast<double>(places.row);
  return 2.0 * n * slots_per_expert(f, places.slot_holders(places.near)) * row > work_.tokens() * (2.0 * row + n);
}

program::ProgramTensor LayerWriter::sent_slots(const model::FeedForward& f, const ExpertPlaces& places, int tokens) {
  const program::ProgramTensor& held = build_.program().tensor(tokens);
  program::ProgramTensor sent = held;
  sent.name = "Sent";
  sent.tensor_class = program::TensorClass::activation;
  sent.is_given = sent.is_kept = false;
  sent.sharding = {};
  sent.sharding.dims[0] = remaining(places.there.dims[0], held.sharding.split_axes());
  sent.sharding.dims[1] = places.slot_holders(held.sharding);
  sent.sharding.dims[2] = held.sharding.dims[2];
  sent.dims.set(0, {model::LogicalDim::experts, f.experts});
  sent.dims.set(1,
                {model::LogicalDim::capacity, static_cast<std::int64_t>(slots_per_expert(f, sent.sharding.dims[1]))});
  return sent;
}

LayerWriter::ExpertResults LayerWriter::expert_results(const model::FeedForward& f, const ExpertPlaces& places,
                                                       const program::ProgramTensor& sent, int slots, bool sums_stay) {
  using enum model::LogicalDim;
  program::Program& program = build_.program();
  const double k = static_cast<double>(f.experts_per_token), n = static_cast<double>(f.experts);
  program.expert_loads.push_back({work_.tokens(), k, work_.expert_load, n, static_cast<double>(sent.dims[1].size),
                                  touched_share(work_.tokens() / program.ways(places.there.dims[1].set()), k, n)});
  build_.expert_load = static_cast<int>(program.expert_loads.size()) - 1;
  program::Sharding at_experts = places.there;
  at_experts.dims[2] = places.matrix.dims[1];
  const int arrived = build_.reshard(slots, at_experts, program::Urgency::critical, "Expert");
  program.tensors[static_cast<std::size_t>(arrived)].tensor_class = program::TensorClass::dispatched;
  int done =
      dense(f, arrived, {.hidden = {experts, capacity, width}, .result = {experts, capacity, places.inside}}, -1);
  program::Sharding back = sent.sharding;
  if (sums_stay) back.unreduced = sharding(done).unreduced;
  if (const int bias = weight("b_out"); bias >= 0) {  // added at the experts; one term if sums are partial
    if (!sums_stay) done = build_.reshard(done, summed(done, sent.sharding), program::Urgency::critical);
    done = build_.pointwise(program::Op::add, "Down", {done, build_.bias_for(bias, program.tensor(done))}, done);
  }
  done = build_.reshard(done, back, program::Urgency::critical, "Back");
  build_.expert_load = -1;
  return {done, back.unreduced};
}

int LayerWriter::experts_block(const model::FeedForward& f, int x) {
  using enum model::LogicalDim;
  program::Program& program = build_.program();
  const int scores = build_.settle_sums(
      build_.product("Router", x, weight("W_router"), {batch, sequence, other}, -1, weight("b_router")));
  int gates = build_.pointwise(program::Op::route, "Route", {scores}, scores);
  int tokens = x;
  if (f.latent > 0)
    tokens = build_.settle_sums(build_.product("Latent", x, weight("W_latent_in"), {batch, sequence, rank}));
  const ExpertPlaces places = expert_places(f, tokens);
  // Gather tokens before copying them for their experts, and sum partial results over experts before summing them
  // over devices, if that moves less data.
  const bool gathers_first = gathers_before_dispatch(f, places);
  if (gathers_first) {
    tokens = build_.moved_once(tokens, places.near);
    program::Sharding gates_place = places.near;
    gates_place.dims[2] = {};
    gates = build_.reshard(gates, gates_place, program::Urgency::critical);
  }
  // Tokens as each device sends them: slots of all experts, filled from the tokens it holds. Devices that hold the
  // same tokens each fill the slots of their own experts, whose results are one part of the token's sum.
  const program::ProgramTensor sent = sent_slots(f, places, tokens);
  const int slots = program.add(sent);
  build_.emit(program::Op::dispatch, {tokens, gates}, {slots});
  const ExpertResults done = expert_results(f, places, sent, slots, gathers_first);
  int y = build_.pointwise(program::Op::combine, "Moe", {done.slots, gates}, tokens);
  program.tensors[static_cast<std::size_t>(y)].sharding.unreduced = done.unreduced | sent.sharding.dims[0].set();
  if (f.latent > 0) {
    y = build_.reshard(y, places.home, program::Urgency::critical);
    y = build_.product("Moe", y, weight("W_latent_out"), {batch, sequence, d_model});
  }
  return f.shared_width == 0 ? y : with_shared_expert(f, x, y);
}

int LayerWriter::with_shared_expert(const model::FeedForward& f, int x, int y) {
  using enum model::LogicalDim;
  const DenseProjections shared{.in = "W_in_shared", .gate = "W_gate_shared", .out = "W_out_shared", .biased = false};
  int common = dense(f, x, shared, -1);
  // Partial sums with the same sharding are added before they are reduced.
  const bool together = sharding(y) == sharding(common);
  if (!together) common = build_.settle(common, program::TensorClass::residual);
  if (f.shared_gate) {
    const int gate = build_.product("Share", x, weight("W_shared_gate"), {batch, sequence, other});
    program::Sharding gate_place = sharding(common);
    gate_place.unreduced = 0;
    gate_place.dims[2] = {};
    common = build_.pointwise(program::Op::gate, "Shared",
                              {common, build_.reshard(gate, gate_place, program::Urgency::critical)}, common);
  }
  if (!together) y = build_.settle(y, program::TensorClass::residual);
  return build_.pointwise(program::Op::add, "Moe", {y, common}, y);
}

program::Sharding LayerWriter::summed(int from, const program::Sharding& target) {
  program::Sharding out = sharding(from);
  for (std::size_t i = 0; i < out.dims.size(); ++i)
    out.dims[i] = joined(out.dims[i], remaining(target.dims[i], ~out.unreduced));
  out.unreduced = 0;
  return out;
}

}  // namespace assay::lower
