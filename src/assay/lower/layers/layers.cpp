#include "assay/lower/layers/layers.h"

#include <algorithm>
#include <cmath>

#include "assay/base/index.h"
#include "assay/lower/layers/layer_writer.h"
#include "assay/model/layer_parts.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

constexpr std::string_view taken = " ";

}  // namespace

BranchSet branches_of(const model::Layer& layer) {
  if (layer.needs_image) return 0;
  if (model::is_aside(layer)) return branch_bit(Branch::mixer);  // all of the layer
  if (layer.parallel && layer.feed_forward && layer.attention) return branch_bit(Branch::parallel);
  const auto one = [](bool there, Branch branch) { return there ? branch_bit(branch) : BranchSet{0}; };
  return one(layer.attention || layer.state_space, Branch::mixer) |
         one(layer.cross_attention.has_value(), Branch::cross_attention) |
         one(layer.feed_forward.has_value(), Branch::feed_forward) | one(layer.token_input > 0, Branch::token_input);
}

LayerWriter::LayerWriter(Builder& builder, const model::Transformer& model, const model::Layer& layer,
                         const Workload& work, int encoded)
    : build_(builder),
      model_(model),
      layer_(layer),
      work_(work),
      encoded_(encoded),
      sandwich_(model::has_sandwich_norms(layer)) {}

int LayerWriter::write(Branch branch, int x) {
  switch (branch) {
    case Branch::parallel:
      return parallel(x);
    case Branch::mixer: {
      if (model::is_aside(layer_))
        return joined_to(x, state_space(*layer_.state_space, normed(with_block_aside(x))), "Mid");
      const int normal = normed(x);  // of both, where they lie side by side
      if (layer_.state_space) x = joined_to(x, state_space(*layer_.state_space, normal), "Mid");
      if (layer_.attention) x = joined_to(x, attention_block(*layer_.attention, normal), "Mid");
      return x;
    }
    case Branch::cross_attention:
      return joined_to(x, attention_block(*layer_.cross_attention, normed(x)), "Mid");
    case Branch::feed_forward:
      return joined_to(x, feed_forward(*layer_.feed_forward, normed(x), -1), "Out");
    default:
      return with_token_input(x);
  }
}

int LayerWriter::with_token_input(int x) {
  int gate = build_.settle_sums(build_.product("TokenGate", x, weight("W_token_gate"), {batch, sequence, rank}));
  const int token =
      build_.given("TokenInput", {{batch, work_.sequences}, {sequence, work_.queries}, {rank, layer_.token_input}},
                   program::TensorClass::residual, build_.formats().activations);
  gate = build_.reshard(gate, sharding(token), program::Urgency::critical);
  const int act = build_.pointwise(program::Op::activate, "TokenAct", {token, gate}, gate);
  const int y = build_.product("TokenOut", act, weight("W_token"), {batch, sequence, d_model});
  return add({x, norm(build_.settle(y, program::TensorClass::residual), "norm", "PostNorm")}, "Out");
}

int LayerWriter::weight(std::string_view name) {
  if (weights_.empty()) weights_ = model::layer_weights(model_, layer_);  // a layer of copied branches asks for none
  // They are listed in the order of their use.
  while (next_ < weights_.size() && weights_[next_].name == taken) ++next_;
  for (std::size_t i = next_; i < weights_.size(); ++i) {
    model::Weight& weight = weights_[i];
    // Of names that are as long, most differ in the last letter.
    if (weight.name.size() != name.size() || weight.name.back() != name.back() || weight.name != name) continue;
    const int id = build_.weight(weight);
    weight.name = taken;
    if (i + 1 < weights_.size() && weights_[i + 1].is_adapter()) adapt(id, i + 1);
    return id;
  }
  return -1;
}

void LayerWriter::adapt(int weight, std::size_t next) {
  const auto take = [&] {
    const int id = build_.weight(weights_[next]);
    weights_[next++].name = taken;
    return id;
  };
  if (weights_[next].dims[0].dim != adapter) adapter_in_ = take();  // else the one before shares its first half
  build_.adapt(weight, adapter_in_, take());
}

int LayerWriter::with_block_aside(int x) {
  program::Program& program = build_.program();
  const int embedded =
      build_.given("Embedded", {{batch, work_.sequences}, {sequence, work_.queries}, {d_model, model_.d_model}},
                   program::TensorClass::residual, build_.formats().activations);
  program.tensors[at(embedded)].is_lent = program.tensors[at(embedded)].is_kept = true;  // for all layers
  // Rows of both are joined where they are whole.
  program::Sharding rows = sharding(x);
  rows.dims[2] = {};
  const int stream = build_.reshard(x, rows, program::Urgency::critical),
            beside = build_.reshard(embedded, rows, program::Urgency::critical);
  const int both = resized(stream, "Both", d_model, 2 * model_.d_model);
  program.tensors[at(both)].tensor_class = program::TensorClass::activation;
  build_.emit(program::Op::split, {stream, beside}, {both});
  int y = attention_block(*layer_.attention, norm(both, "norm", "Norm"));
  y = biased(build_.settle(y, program::TensorClass::residual));
  y = dense(*layer_.feed_forward, norm(y, "norm", "Norm"), "W_in", "W_gate", "W_out", -1, {batch, sequence, width},
            {batch, sequence, rank}, true);
  postpone(weight("b_out"));
  y = biased(build_.settle(y, program::TensorClass::residual));
  y = build_.settle(build_.product("Link", y, weight("W_link"), {batch, sequence, d_model}),
                    program::TensorClass::residual);
  return build_.pointwise(program::Op::add, "Fed", {x, y}, x);
}

int LayerWriter::normed(int x) {
  if (layer_.norms == 0) return x;
  return norm(x, "norm", "Norm");
}

int LayerWriter::norm(int x, std::string_view scale, std::string_view name) {
  const int w = weight(scale);
  return build_.norm(name, x, w, scale == "norm" ? weight("b_norm") : -1);
}

int LayerWriter::joined_to(int x, int branch, std::string_view name) {
  int settled = build_.settle(branch, program::TensorClass::residual);
  if (sandwich_) settled = norm(biased(settled), "norm", "PostNorm");
  for (int& bias : pending_)
    if (bias >= 0) bias = build_.bias_for(bias, build_.program().tensor(settled));
  const int sum = add({x, settled, pending_[0], pending_[1]}, name);
  pending_ = {-1, -1};
  return sum;
}

int LayerWriter::biased(int x) {
  if (pending_[0] < 0) return x;
  for (int& bias : pending_)
    if (bias >= 0) bias = build_.bias_for(bias, build_.program().tensor(x));
  const int sum = build_.pointwise(program::Op::add, "Biased", {x, pending_[0], pending_[1]}, x);
  pending_ = {-1, -1};
  return sum;
}

int LayerWriter::add(std::initializer_list<int> terms, std::string_view name) {
  const int out = build_.pointwise(program::Op::add, name, terms, *terms.begin());
  build_.program().tensors[at(out)].tensor_class = program::TensorClass::residual;
  return out;
}

int LayerWriter::parallel(int x) {
  const int normal = normed(x);
  const int second = layer_.norms > 1 ? normed(x) : normal;
  const int mixed = attention_block(*layer_.attention, normal);
  const int both = layer_.feed_forward->experts > 0 ? -1 : feed_forward(*layer_.feed_forward, second, mixed);
  if (both >= 0) return joined_to(x, both, "Out");
  const int mid = joined_to(x, mixed, "Mid");
  return joined_to(mid, feed_forward(*layer_.feed_forward, second, -1), "Out");
}

int LayerWriter::resized(int like, std::string_view name, model::LogicalDim dim, std::int64_t size) {
  program::ProgramTensor made = build_.program().tensor(like);
  made.name = name;
  made.is_given = made.is_kept = false;
  made.dims.set(at(made.find(dim)), {dim, size});
  return build_.program().add(made);
}

int LayerWriter::feed_forward(const model::FeedForward& f, int x, int onto) {
  if (f.experts > 0) return experts_block(f, x);
  if (f.shifted) return shifted_feed_forward(f, x);
  const int out =
      dense(f, x, "W_in", "W_gate", "W_out", onto, {batch, sequence, width}, {batch, sequence, d_model}, true);
  postpone(weight("b_out"));
  return out;
}

int LayerWriter::dense(const model::FeedForward& f, int x, std::string_view in, std::string_view gate,
                       std::string_view out, int onto, std::initializer_list<model::LogicalDim> hidden,
                       std::initializer_list<model::LogicalDim> result, bool biased) {
  int up = build_.product("Up", x, weight(in), hidden, -1, biased ? weight("b_in") : -1);
  up = build_.settle_sums(up);
  int g = -1;
  if (f.gated) {
    g = build_.product("Gate", x, weight(gate), hidden, -1, biased ? weight("b_gate") : -1);
    g = build_.settle_sums(g);
  }
  const int act = build_.pointwise(program::Op::activate, "Act", {up, g}, up);
  return build_.product("Down", act, weight(out), result, onto);
}

int LayerWriter::experts_block(const model::FeedForward& f, int x) {
  program::Program& program = build_.program();
  const double k = static_cast<double>(f.experts_per_token), n = static_cast<double>(f.experts);
  const int scores = build_.settle_sums(
      build_.product("Router", x, weight("W_router"), {batch, sequence, other}, -1, weight("b_router")));
  int gates = build_.pointwise(program::Op::route, "Route", {scores}, scores);
  int through = x;
  if (f.latent > 0)
    through = build_.settle_sums(build_.product("Latent", x, weight("W_latent_in"), {batch, sequence, rank}));
  const program::Sharding home = sharding(through);
  const model::LogicalDim inside = f.latent > 0 ? rank : d_model;
  const std::int64_t row = program.tensor(through).dims[2].size;
  const std::array<model::Weight::Size, 2> places{model::Weight::Size{experts, f.experts},
                                                  model::Weight::Size{capacity, 1}};
  const program::Sharding there = build_.ruled(program::TensorClass::dispatched, places);
  const std::array<model::Weight::Size, 3> first{places[0], model::Weight::Size{inside, row},
                                                 model::Weight::Size{width, f.width}};
  const program::Sharding matrix = build_.ruled(program::TensorClass::used_weight, first);
  // Where tokens lie when only the exchange between experts is left to do.
  const program::AxisSet leave = there.dims[0].set();
  program::Sharding near = home;
  for (std::size_t i = 0; i < 2; ++i) near.dims[i] = remaining(home.dims[i], matrix.split_axes() & ~leave);
  near.dims[2] = matrix.dims[1];
  const auto slots_of = [&](program::AxisList holders) {
    const double ways = program.ways(holders.set());
    return std::ceil(work_.tokens() * k * work_.expert_load / n / ways) * ways;
  };
  // Slots have no order of their own, so the axes that leave for the experts go innermost, where they can.
  const auto holders_of = [&](const program::Sharding& held) {
    const program::AxisList all = joined(held.dims[0], held.dims[1]);
    const program::AxisSet stay = there.dims[1].set();
    return joined(joined(remaining(there.dims[1], ~all.set()), remaining(all, stay | leave)),
                  remaining(there.dims[0], ~all.set()));
  };
  // Tokens are brought together before they are copied for their experts, and the experts' partial sums are added up
  // over experts before they are over devices, if that moves fewer numbers. An exchange between experts would carry
  // the copies of all devices that share a token: then each sends its own tokens, and gets whole sums back.
  bool late = near == home;
  if (!late && (leave & (home.split_axes() | near.split_axes())) == 0)
    late = 2.0 * n * slots_of(holders_of(near)) * static_cast<double>(row) >
           work_.tokens() * (2.0 * static_cast<double>(row) + n);
  if (late) {
    through = build_.moved_once(through, near);
    program::Sharding beside = near;
    beside.dims[2] = {};
    gates = build_.reshard(gates, beside, program::Urgency::critical);
  }
  // The tokens as each device sends them: slots of all experts, from the tokens that it holds. Of devices that hold the
  // same tokens, each fills the slots of its own experts, and what these make of a token is a part of the sum.
  const program::ProgramTensor held = program.tensor(through);
  program::ProgramTensor sent = held;
  sent.name = "Sent";
  sent.tensor_class = program::TensorClass::activation;
  sent.is_given = sent.is_kept = false;
  sent.sharding = {};
  sent.sharding.dims[1] = holders_of(held.sharding);
  sent.sharding.dims[2] = held.sharding.dims[2];
  const program::AxisList own = remaining(there.dims[0], held.sharding.split_axes());
  sent.sharding.dims[0] = own;
  const double slots = slots_of(sent.sharding.dims[1]);
  sent.dims.set(0, {experts, f.experts});
  sent.dims.set(1, {capacity, static_cast<std::int64_t>(slots)});
  const int out = program.add(sent);
  build_.emit(program::Op::dispatch, {through, gates}, {out});
  build_.touched_experts = touched_share(work_.tokens() / program.ways(there.dims[1].set()), k, n);
  build_.filled_slots = work_.tokens() * k * work_.expert_load / (n * slots);
  program::Sharding at_experts = there;
  at_experts.dims[2] = matrix.dims[1];
  const int arrived = build_.reshard(out, at_experts, program::Urgency::critical, "Expert");
  program.tensors[at(arrived)].tensor_class = program::TensorClass::dispatched;
  int done =
      dense(f, arrived, "W_in", "W_gate", "W_out", -1, {experts, capacity, width}, {experts, capacity, inside}, true);
  program::Sharding back = sent.sharding;
  if (late) back.unreduced = sharding(done).unreduced;
  if (const int bias = weight("b_out"); bias >= 0) {  // where the experts are; of partial sums, it is a term of one
    if (!late) done = build_.reshard(done, summed(done, sent.sharding), program::Urgency::critical);
    done = build_.pointwise(program::Op::add, "Down", {done, build_.bias_for(bias, program.tensor(done))}, done);
  }
  done = build_.reshard(done, back, program::Urgency::critical, "Back");
  build_.touched_experts = build_.filled_slots = 1.0;
  int y = build_.pointwise(program::Op::combine, "Moe", {done, gates}, through);
  program.tensors[at(y)].sharding.unreduced = back.unreduced | own.set();
  if (f.latent > 0) {
    y = build_.reshard(y, home, program::Urgency::critical);
    y = build_.product("Moe", y, weight("W_latent_out"), {batch, sequence, d_model});
  }
  return f.shared_width == 0 ? y : with_shared_expert(f, x, y);
}

int LayerWriter::with_shared_expert(const model::FeedForward& f, int x, int y) {
  int common = dense(f, x, "W_in_shared", "W_gate_shared", "W_out_shared", -1, {batch, sequence, width},
                     {batch, sequence, d_model}, false);
  // Partial sums that lie alike are added before they are reduced.
  const bool together = sharding(y) == sharding(common);
  if (!together) common = build_.settle(common, program::TensorClass::residual);
  if (f.shared_gate) {
    const int share = build_.product("Share", x, weight("W_shared_gate"), {batch, sequence, other});
    program::Sharding beside = sharding(common);
    beside.unreduced = 0, beside.dims[2] = {};
    common = build_.pointwise(program::Op::gate, "Shared",
                              {common, build_.reshard(share, beside, program::Urgency::critical)}, common);
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

double touched_share(double tokens, double k, double n) { return 1.0 - std::pow(1.0 - k / n, tokens); }

}  // namespace assay::lower
