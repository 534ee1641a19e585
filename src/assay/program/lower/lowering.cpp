#include "assay/program/lower/lowering.h"

#include <fmt/format.h>

#include "assay/base/index.h"
#include "assay/model/layer_parts.h"
#include "assay/program/lower/branches.h"
#include "assay/program/lower/layers/layer_writer.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

program::Program empty_program(const model::Transformer& model, const program::Mesh& mesh) {
  const std::size_t kinds = model.decoder.kinds.size() + (model.encoder ? model.encoder->kinds.size() : 0);
  program::Program program;
  program.set_mesh(mesh);
  program.centred_norms = model.norm.mean;
  program.composed_norms = model.norm.composed;
  program.tensors.reserve(160 + 288 * kinds);  // for dense layers with all gradients and updates
  program.steps.reserve(64 + 160 * kinds);
  program.blocks.reserve(3 * kinds + 6);
  program.attentions.reserve(kinds);
  return program;
}

/// Tensors and steps of one forward block, for its backward pass.
struct Written {
  std::int32_t first = 0, last = 0;
  int input = -1, output = -1;
  int encoded = -1;             ///< input of cross attention or of a block aside, one for all layers
  int token = -1;               ///< a layer's input from the token itself; for the embedding, the inputs of all layers
  CrossLayerKeys shared, lent;  ///< keys and values of an earlier layer, and those lent to later layers
  int first_branch = 0, last_branch = 0;
  bool shares_weights = false;  ///< with the other layers of its kind
};

/// The two stacks of an encoder-decoder; blocks outside their layers have kind -1 or -2.
enum class StackOf : std::uint8_t { decoder, encoder };
int kind_of(StackOf stack) { return stack == StackOf::decoder ? -1 : -2; }

class Lowering {
 public:
  Lowering(program::Program& program, const model::Transformer& model, const ShardingRules& rules,
           const Formats& formats, Recompute recompute)
      : build_(program, rules, formats, recompute), program_(program), branches_(program), model_(model) {
    const std::vector<model::Weight> weights = model::outer_weights(model);
    outer_.reserve(weights.size());
    for (const model::Weight& weight : weights) outer_.push_back({weight, -1});
  }

  /// The encoder's part of a workload.
  static Workload source_of(const Workload& work) {
    Workload source = work;
    source.queries = source.keys = work.source;
    return source;
  }

  int residual(std::string_view name, const Workload& work) {
    return build_.given(name, {{batch, work.sequences}, {sequence, work.queries}, {d_model, model_.d_model}},
                        program::TensorClass::residual, build_.formats().activations);
  }

  Written begun(int input = -1) const {
    Written out;
    out.first = static_cast<std::int32_t>(program_.steps.size());
    out.input = input;
    return out;
  }

  /// The nth weight of that name outside the layers; below 0 if the model has none.
  int outer(std::string_view name, int nth = 0) {
    for (auto& [weight, id] : outer_)
      if (weight.name == name && nth-- == 0) return id >= 0 ? id : id = build_.weight(weight);
    return -1;
  }

  Written embedding(const Workload& work, StackOf stack) {
    build_.begin_block("embedding", program::Phase::forward, kind_of(stack), 1);
    Written out = begun();
    const int tokens = build_.given("Tokens", {{batch, work.sequences}, {sequence, work.queries}},
                                    program::TensorClass::residual, Dtype::int32);
    program_.tensors[at(tokens)].tensor_class = program::TensorClass::activation;
    int x = build_.settle(looked_up("Emb", tokens, outer("embedding")), program::TensorClass::residual);
    if (model_.narrow_positions) x = placed(x, stack);
    if (model_.embedding_width > 0)
      x = build_.settle(
          build_.product("Emb", x, outer("W_embed_in"), {batch, sequence, d_model}, -1, outer("b_embed_in")),
          program::TensorClass::residual);
    out.output = model_.narrow_positions ? x : placed(x, stack);
    program_.tensors[at(out.output)].tensor_class = program::TensorClass::residual;
    if (stack == StackOf::decoder && model::token_input_width(model_.decoder) > 0) out.token = token_inputs(tokens, x);
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  /// The rows of a table for the given tokens, as partial sums if its vocabulary is split.
  int looked_up(std::string_view name, int tokens, int table) {
    table = build_.used(table);
    const program::ProgramTensor weights = program_.tensor(table);
    const program::TensorDims& of = program_.tensor(tokens).dims;
    const model::Weight::Size dims[] = {of[0], of[1], weights.dims[1], weights.dims[2]};
    const int rows = build_.tensor(name, std::span(dims, weights.rank + 1u), program::TensorClass::residual,
                                   build_.formats().activations);
    program_.tensors[at(rows)].tensor_class = program::TensorClass::activation;
    program::Sharding there = program_.tensor(rows).sharding, named = program_.tensor(tokens).sharding;
    there.unreduced = weights.sharding.dims[0].set();
    for (program::AxisList& list : there.dims) list = remaining(list, there.unreduced);
    for (std::size_t i = 0; i < 2; ++i) named.dims[i] = there.dims[i];
    program_.place(rows, there);
    program_.place(tokens, named);
    build_.count_traffic(build_.emit(program::Op::embed, {tokens, table}, {rows}));
    return rows;
  }

  /// The token inputs of all layers: a row of the token's own table and a part of its embedding.
  int token_inputs(int tokens, int embedded) {
    const int rows =
        build_.settle(looked_up("TokenRows", tokens, outer("token_inputs")), program::TensorClass::residual);
    int part = build_.product("TokenPart", embedded, outer("W_token_inputs"), {batch, sequence, other, rank});
    part = build_.norm("TokenPart", build_.settle(part, program::TensorClass::residual), outer("token_norm"));
    const int sum = build_.pointwise(program::Op::add, "TokenInputs", {rows, part}, part);
    program_.tensors[at(sum)].tensor_class = program::TensorClass::residual;
    return sum;
  }

  /// The number of a stack's first norm among the norms outside layers.
  int norms_of(StackOf stack) const {
    return stack == StackOf::decoder ? 0 : (model_.embedding_norm ? 1 : 0) + (model_.final_norm ? 1 : 0);
  }
  int outer_norm(int x, int nth) { return build_.norm("Norm", x, outer("norm", nth), outer("b_norm", nth)); }
  int final_norm(int x, StackOf stack) {
    return model_.final_norm ? outer_norm(x, norms_of(stack) + (model_.embedding_norm ? 1 : 0)) : x;
  }

  /// The encoder's output for the decoder.
  Written encoder_end(const Workload& work) {
    build_.begin_block("head", program::Phase::forward, kind_of(StackOf::encoder), 1);
    Written out = begun(residual("In", work));
    out.output = final_norm(out.input, StackOf::encoder);
    program_.tensors[at(out.output)].tensor_class = program::TensorClass::residual;
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  /// Embedded tokens with their learned positions, normalised if the model does so.
  int placed(int x, StackOf stack) {
    if (const int table = outer("positions", stack == StackOf::decoder ? 0 : 1); table >= 0) {
      program::Sharding like;
      like.dims[1] = program_.tensor(x).sharding.dims[2];
      const int rows = build_.reshard(build_.used(table), like, program::Urgency::ahead);
      x = build_.pointwise(program::Op::place, "Emb", {x, rows}, x);
      build_.count_traffic(program_.steps.back());
    }
    return model_.embedding_norm ? outer_norm(x, norms_of(stack)) : x;
  }

  Written layer(std::string_view name, const model::Layer& shape, std::int64_t layers, int number,
                const Workload& work) {
    build_.begin_block(name, program::Phase::forward, number, layers);
    Written out = begun(residual("In", work));
    const BranchSet present = branches_of(shape);
    if (present & branch_bit(Branch::cross_attention)) {
      out.encoded = residual("Encoded", source_of(work));
      program_.tensors[at(out.encoded)].is_cross_layer = true;  // for all layers
    }
    const std::size_t before = program_.tensors.size();
    LayerWriter writer(build_, model_, shape, work, out.encoded);
    out.first_branch = branches_.size();
    out.output = out.input;
    for (const Branch branch : all_branches) {
      if (!(present & branch_bit(branch))) continue;
      if (!branches_.begin(shape, branch, work, out.output)) branches_.end(writer.write(branch, out.output));
      out.output = branches_[branches_.size() - 1].output;
    }
    out.last_branch = branches_.size();
    out.lent = writer.lent();
    out.shares_weights = shape.shared.has_value();
    const bool has_given = shape.token_input > 0 || model::is_aside(shape) ||
                           (shape.attention && shape.attention->shares_kv) ||
                           (shape.state_space && shape.state_space->value_rank > 0);
    for (std::size_t i = before; has_given && i < program_.tensors.size(); ++i) {
      const program::ProgramTensor& tensor = program_.tensors[i];
      if (!tensor.is_given) continue;
      if (tensor.tensor_class == program::TensorClass::residual)
        (tensor.is_cross_layer ? out.encoded : out.token) = static_cast<int>(i);
      else if (tensor.is_cross_layer)
        (out.shared.keys < 0 ? out.shared.keys : out.shared.values) = static_cast<int>(i);
    }
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  /// Final norm and logits.
  int logits(const Workload& work, Written& out) {
    out.input = residual("In", work);
    int x = out.input;
    x = final_norm(x, StackOf::decoder);
    if (model_.head_transform) x = transformed(x);
    if (model_.embedding_width > 0 && !model_.narrow_positions)
      x = build_.settle_sums(build_.product("Narrow", x, outer("W_embed_out"), {batch, sequence, rank}));
    int head = outer("W_head");
    if (head < 0) head = outer("embedding");
    return build_.product("Logits", x, head, {batch, sequence, vocabulary}, -1, outer("b_head"));
  }

  int transformed(int x) {
    x = build_.settle_sums(
        build_.product("Turned", x, outer("W_transform"), {batch, sequence, rank}, -1, outer("b_transform")));
    x = build_.pointwise(program::Op::activate, "Turned", {x}, x);
    if (!model_.narrow_positions)
      program_.tensors[at(x)].dims.set(2, {d_model, model_.d_model});  // same width; the head multiplies this dimension
    const int norms = (model_.embedding_norm ? 1 : 0) + (model_.final_norm ? 1 : 0);
    return outer_norm(x, (model_.encoder ? 2 : 1) * norms);
  }

  Written head_and_loss(const Workload& work) {
    build_.begin_block("head", program::Phase::forward, -1, 1);
    Written out = begun();
    const int scores = build_.settle_sums(logits(work, out));
    const int targets = copy_shape(scores, "Targets", Dtype::int32, 1);
    program_.tensors[at(targets)].is_given = true;
    const int sums = copy_shape(scores, "Sums", build_.sums_format(), 2);
    program::ProgramTensor& partial = program_.tensors[at(sums)];
    partial.sharding.unreduced = program_.tensor(scores).sharding.dims[2].set();
    build_.emit(program::Op::loss_sums, {scores, targets}, {sums}).composed = static_cast<std::uint8_t>(model_.logits);
    const int total = build_.settle_sums(sums);
    out.output = copy_shape(total, "Loss", build_.sums_format(), 1);
    build_.emit(program::Op::loss, {total}, {out.output});
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  void head_and_sample(const Workload& work) {
    Workload last = work;
    last.queries = 1;
    build_.begin_block("head", program::Phase::forward, -1, 1);
    Written out;
    const int scores = build_.settle_sums(logits(last, out));
    // Each device finds the maximum in its part of the vocabulary; all devices receive every value and index.
    const program::AxisList parts = program_.tensor(scores).sharding.dims[2];
    int best = scores;
    if (!parts.empty()) {
      best =
          copy_shape(scores, "Best", build_.sums_format(), 2 * static_cast<std::int64_t>(program_.ways(parts.set())));
      program::Sharding split = program_.tensor(best).sharding;
      split.dims[2] = parts;
      program_.place(best, split);
      build_.emit(program::Op::sample, {scores}, {best});
      program::Sharding everywhere = program_.tensor(best).sharding;
      everywhere.dims[2] = {};
      best = build_.reshard(best, everywhere, program::Urgency::critical);
    }
    build_.emit(program::Op::sample, {best}, {copy_shape(scores, "Token", Dtype::int32, 1)});
    build_.end_block();
  }

  /// A new tensor [B, S] or [B, S, n] with the sharding of the tokens of `like`.
  int copy_shape(int like, std::string_view name, Dtype dtype, std::int64_t n) {
    program::ProgramTensor made;
    const program::ProgramTensor& source = program_.tensor(like);
    made.name = name;
    made.store_as(dtype);
    made.rank = n > 1 ? 3 : 2;
    made.dims = source.dims;
    made.dims.set(2, {other, n});
    for (std::size_t i = 0; i < 2; ++i) made.sharding.dims[i] = source.sharding.dims[i];
    return program_.add(made);
  }

  void backward(std::string_view name, int number, std::int64_t layers, const Written& forward) {
    build_.begin_block(name, program::Phase::backward, number, layers);
    if (forward.input < 0 && model_.adapters) return build_.end_block();  // the embedding needs no gradient
    std::array<Builder::Seed, 4> seeds;
    std::size_t count = 0;
    const int for_layers = number < 0 ? forward.token : -1;
    for (int result : {forward.output, forward.lent.keys, forward.lent.values, for_layers})
      if (result >= 0) seeds[count++] = {result, seed(result)};
    const std::span<const Builder::Seed> arriving(seeds.data(), count);
    if (forward.first_branch == forward.last_branch)
      build_.backward(forward.first, forward.last, arriving);
    else
      build_.backward(forward.first, forward.last, arriving, branches_, forward.first_branch, forward.last_branch);
    const int from_token = number < 0 ? -1 : forward.token;
    for (int input : {forward.input, forward.encoded, forward.shared.keys, forward.shared.values, from_token})
      if (input >= 0) build_.settle_gradient(input);
    build_.end_block();
    if (!forward.shares_weights) return;
    begin_shared(program::Phase::backward, number);
    for (int i = forward.first_branch; i < forward.last_branch; ++i)
      build_.reduce_shared(branches_[i].forward.first_tensor, branches_[i].forward.last_tensor);
    build_.end_block();
  }

  /// Writes the steps done once for the weights that layers of a kind share.
  void begin_shared(program::Phase phase, int number) {
    build_.begin_block("shared block", phase, number, 1);
    program_.blocks.back().is_shared = true;
  }

  /// The gradient that arrives at a block's result.
  int seed(int result) {
    program::ProgramTensor made = program_.tensor(result);
    made.is_gradient = made.is_given = true;
    return program_.add(made);
  }

  /// Updates the weights among tensors [first, last).
  void update(std::string_view name, int kind, std::size_t first, std::size_t last, const Optimizer& optimizer) {
    build_.begin_block(name, program::Phase::update, kind, 1);
    update_weights(first, last, optimizer, false);
    build_.end_block();
  }

  void update_layer(std::string_view name, int kind, std::int64_t layers, const Written& forward,
                    const Optimizer& optimizer) {
    build_.begin_block(name, program::Phase::update, kind, layers);
    for (int i = forward.first_branch; i < forward.last_branch; ++i) {
      if (branches_.copy_updated(i)) continue;
      LoweredBranch& branch = branches_[i];
      branch.updated = Stretch::begin(program_);
      update_weights(at(branch.forward.first_tensor), at(branch.forward.last_tensor), optimizer, false);
      branch.updated.end(program_);
    }
    build_.end_block();
    if (!forward.shares_weights) return;
    begin_shared(program::Phase::update, kind);
    for (int i = forward.first_branch; i < forward.last_branch; ++i)
      update_weights(at(branches_[i].forward.first_tensor), at(branches_[i].forward.last_tensor), optimizer, true);
    build_.end_block();
  }

  /// Updates only shared weights, or only the others.
  void update_weights(std::size_t first, std::size_t last, const Optimizer& optimizer, bool shared) {
    const Bytes state_bytes = optimizer.state_bytes();
    for (std::size_t i = first; i < last; ++i) {
      if (program_.tensors[i].tensor_class != program::TensorClass::weight || program_.tensors[i].is_shared != shared)
        continue;
      const int gradient = build_.gradient(static_cast<int>(i));
      if (gradient < 0) continue;
      const program::Sharding sharding = program_.tensors[i].sharding;
      const program::Sharding mine = build_.beside(static_cast<int>(i), program::TensorClass::optimizer);
      const int updated = static_cast<int>(program_.tensors.size());
      program_.tensors.push_back(program_.tensors[i]);
      program_.tensors.back().is_given = false;
      const bool moves = mine != sharding;
      if (moves) program_.place(updated, mine);
      program::Step& step = build_.emit(program::Op::update, {gradient, static_cast<int>(i)}, {updated});
      const double elements = program_.tensor(updated).elements;
      step.once = true;
      step.bytes = storage(build_.formats().gradients, elements) + 2.0 * elements * state_bytes +
                   storage(build_.formats().weights, optimizer.master ? elements : 2.0 * elements);
      if (!moves) continue;
      const std::size_t before = program_.steps.size();
      build_.reshard(updated, sharding, program::Urgency::afterwards);
      for (std::size_t s = before; s < program_.steps.size(); ++s) program_.steps[s].once = true;
    }
  }

  Builder& builder() { return build_; }

 private:
  Builder build_;
  program::Program& program_;
  Branches branches_;
  const model::Transformer& model_;
  std::vector<std::pair<model::Weight, int>> outer_;
};

}  // namespace

Bytes Optimizer::master_bytes() const { return master ? storage(Dtype::fp32, 1.0) : Bytes(); }

Bytes Optimizer::moment_bytes() const {
  Bytes bytes;
  if (moments > 0) bytes += storage(first_moment, 1.0);
  if (moments > 1) bytes += storage(second_moment, 1.0);
  return bytes;
}

Result<void> check_lowers(const model::Transformer& model, std::string_view where) {
  const std::size_t kinds = model.decoder.kinds.size() + (model.encoder ? model.encoder->kinds.size() : 0);
  std::string_view what = model.streams > 1                ? "several residual streams"
                          : kinds > model::max_layer_kinds ? "more than 64 kinds of layers"
                                                           : "";
  for (const model::Layer& layer : model.decoder.kinds) {
    if (!layer.attention) continue;
    const model::Attention& a = *layer.attention;
    if (a.compression > 0)
      what = "attention over compressed keys";
    else if (a.index_heads > 0 && (a.kv_rank == 0 || a.q_rank == 0) && what.empty())
      what = "attention over indexed keys";
    else if ((a.output_groups > 0 || a.one_cache || (a.q_rank > 0 && a.kv_rank == 0)) && what.empty())
      what = "attention with low-rank queries or outputs";
  }
  if (what.empty()) return {};
  return fail(std::string(where),
              fmt::format("{} has {}, which can be counted but not yet trained or served", model.id, what),
              "`assay models` shows its parameters, FLOP and cache");
}

program::Program lower_training(const model::Transformer& model, const program::Mesh& mesh, const ShardingRules& rules,
                                const TrainingPlan& plan) {
  program::Program program = empty_program(model, mesh);
  program.microbatches = plan.microbatches;
  Lowering lowering(program, model, rules, plan.formats, plan.recompute);
  struct Stacked {
    Written written;
    std::int64_t layers;
    int number;
    std::string_view name;
  };
  std::vector<Stacked> stacked;
  stacked.reserve(model.decoder.kinds.size() + (model.encoder ? model.encoder->kinds.size() : 0));
  // Decoder kinds are numbered first, even though an encoder runs before the decoder.
  const auto write = [&](std::string_view name, const model::LayerStack& stack, int number, const Workload& work) {
    for (std::size_t kind = 0; kind < stack.kinds.size(); ++kind, ++number) {
      const std::int64_t layers = stack.count(kind);
      const Written written = lowering.layer(name, stack.kinds[kind], layers, number, work);
      stacked.push_back({written, layers, number, name});
    }
  };
  const std::size_t outer_first = program.tensors.size();
  const Workload source = Lowering::source_of(plan.work);
  Written source_embedded, source_end;
  if (model.encoder) source_embedded = lowering.embedding(source, StackOf::encoder);
  const Written embedded = lowering.embedding(plan.work, StackOf::decoder);
  const std::size_t outer_last = program.tensors.size();
  if (model.encoder) write("encoder layer", *model.encoder, static_cast<int>(model.decoder.kinds.size()), source);
  const std::size_t encoder_kinds = stacked.size(), end_first = program.tensors.size();
  if (model.encoder) source_end = lowering.encoder_end(source);
  const std::size_t end_last = program.tensors.size();
  write("layer", model.decoder, 0, plan.work);
  const std::size_t head_first = program.tensors.size();
  const Written head = lowering.head_and_loss(plan.work);
  const std::size_t head_last = program.tensors.size();
  // A tied head and both stacks use the embedding's weight; its gradient is complete after the last of them.
  if (model.tied || model.encoder) lowering.builder().postponed = lowering.outer("embedding");
  lowering.backward("head", -1, 1, head);
  const auto back = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = last; i-- > first;)
      lowering.backward(stacked[i].name, stacked[i].number, stacked[i].layers, stacked[i].written);
  };
  back(encoder_kinds, stacked.size());
  if (!model.encoder) lowering.builder().postponed = -1;
  lowering.backward("embedding", -1, 1, embedded);
  if (model.encoder) {
    lowering.backward("head", -2, 1, source_end);
    back(0, encoder_kinds);
    lowering.builder().postponed = -1;
    lowering.backward("embedding", -2, 1, source_embedded);
  }
  lowering.update("embedding", -1, outer_first, outer_last, plan.optimizer);
  for (const Stacked& s : stacked) lowering.update_layer(s.name, s.number, s.layers, s.written, plan.optimizer);
  if (model.encoder) lowering.update("head", -2, end_first, end_last, plan.optimizer);
  lowering.update("head", -1, head_first, head_last, plan.optimizer);
  return program;
}

program::Program lower_serving(const model::Transformer& model, const program::Mesh& mesh, const ShardingRules& rules,
                               const Workload& work, const Formats& formats) {
  program::Program program = empty_program(model, mesh);
  Lowering lowering(program, model, rules, formats, Recompute::none());
  lowering.embedding(work, StackOf::decoder);
  for (std::size_t kind = 0; kind < model.decoder.kinds.size(); ++kind)
    lowering.layer("layer", model.decoder.kinds[kind], model.decoder.count(kind), static_cast<int>(kind), work);
  lowering.head_and_sample(work);
  return program;
}

program::Program lower_encoder(const model::Transformer& model, const program::Mesh& mesh, const ShardingRules& rules,
                               const Workload& work, const Formats& formats) {
  program::Program program = empty_program(model, mesh);
  Lowering lowering(program, model, rules, formats, Recompute::none());
  Workload source = Lowering::source_of(work);
  source.cached = false;  // all of its tokens see each other, once
  lowering.embedding(source, StackOf::encoder);
  for (std::size_t kind = 0; kind < model.encoder->kinds.size(); ++kind)
    lowering.layer("encoder layer", model.encoder->kinds[kind], model.encoder->count(kind), static_cast<int>(kind),
                   source);
  lowering.encoder_end(source);
  return program;
}

}  // namespace assay::lower
