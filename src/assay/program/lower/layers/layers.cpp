#include "assay/program/lower/layers/layers.h"

#include "assay/base/index.h"
#include "assay/model/layer_parts.h"
#include "assay/program/lower/layers/layer_writer.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

constexpr std::string_view taken = " ";

}  // namespace

BranchSet branches_of(const model::Layer& layer) {
  if (layer.needs_image) return 0;
  if (model::is_aside(layer)) return branch_bit(Branch::mixer);  // the whole layer
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
      sandwich_(model::has_sandwich_norms(layer) || layer.norms_after) {}

int LayerWriter::write(Branch branch, int x) {
  switch (branch) {
    case Branch::parallel:
      return parallel(x);
    case Branch::mixer: {
      if (model::is_aside(layer_))
        return joined_to(x, state_space(*layer_.state_space, normed(with_block_aside(x))), "Mid");
      const int normal = normed(x);  // shared by both mixers if the layer has two
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
  if (weights_.empty()) weights_ = model::layer_weights(model_, layer_);  // layers of copied branches need none
  // Weights are listed in order of use.
  while (next_ < weights_.size() && weights_[next_].name == taken) ++next_;
  for (std::size_t i = next_; i < weights_.size(); ++i) {
    model::Weight& weight = weights_[i];
    // Names of equal length mostly differ in the last letter.
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
  if (weights_[next].dims[0].dim != adapter) adapter_in_ = take();  // else the previous one shares its first half
  build_.adapt(weight, adapter_in_, take());
}

int LayerWriter::with_block_aside(int x) {
  program::Program& program = build_.program();
  const int embedded =
      build_.given("Embedded", {{batch, work_.sequences}, {sequence, work_.queries}, {d_model, model_.d_model}},
                   program::TensorClass::residual, build_.formats().activations);
  program.tensors[at(embedded)].is_cross_layer = program.tensors[at(embedded)].is_kept = true;  // for all layers
  // Rows of both are joined where they are not split.
  program::Sharding rows = sharding(x);
  rows.dims[2] = {};
  const int stream = build_.reshard(x, rows, program::Urgency::critical),
            beside = build_.reshard(embedded, rows, program::Urgency::critical);
  const int both = resized(stream, "Both", d_model, 2 * model_.d_model);
  program.tensors[at(both)].tensor_class = program::TensorClass::activation;
  build_.emit(program::Op::split, {stream, beside}, {both});
  int y = attention_block(*layer_.attention, norm(both, "norm", "Norm"));
  y = biased(build_.settle(y, program::TensorClass::residual));
  y = dense(*layer_.feed_forward, norm(y, "norm", "Norm"), {.result = {batch, sequence, rank}}, -1);
  postpone(weight("b_out"));
  y = biased(build_.settle(y, program::TensorClass::residual));
  y = build_.settle(build_.product("Link", y, weight("W_link"), {batch, sequence, d_model}),
                    program::TensorClass::residual);
  return build_.pointwise(program::Op::add, "Fed", {x, y}, x);
}

int LayerWriter::normed(int x) {
  if (layer_.norms == 0 || layer_.norms_after) return x;
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

}  // namespace assay::lower
