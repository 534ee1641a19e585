#include "assay/lower/lowering.h"

#include <algorithm>

namespace assay {
namespace {

using enum LogicalDim;

std::size_t at(int id) { return static_cast<std::size_t>(id); }

Program empty_program(const Mesh& mesh) {
  Program program;
  program.mesh = mesh;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) program.axis_sizes[i] = static_cast<double>(mesh.axes[i].size);
  program.tensors.reserve(448);  // of a dense layer with all its gradients and updates
  program.steps.reserve(320);
  program.blocks.reserve(16);
  return program;
}

/// Tensors and steps that belong to one forward block, for its backward pass.
struct Written {
  std::int32_t first = 0, last = 0;
  int input = -1, output = -1;
};

class Lowering {
 public:
  Lowering(Program& program, const Transformer& model, const ShardingRules& rules, const Formats& formats,
           Recompute recompute)
      : build_(program, rules, formats, recompute), program_(program), model_(model), rules_(rules) {
    for (const Weight& weight : outer_weights(model)) outer_.push_back({weight, -1});
  }

  int residual(std::string_view name, const Workload& work) {
    return build_.given(name, {{batch, work.sequences}, {sequence, work.queries}, {d_model, model_.d_model}},
                        TensorClass::residual, build_.formats().activations);
  }

  int outer(std::string_view name) {
    for (auto& [weight, id] : outer_)
      if (weight.name == name) return id >= 0 ? id : id = build_.weight(weight);
    return -1;
  }

  Written embedding(const Workload& work) {
    build_.begin_block("embedding", Phase::forward, -1, 1);
    Written out{static_cast<std::int32_t>(program_.steps.size()), 0, -1, -1};
    const int tokens = build_.given("Tokens", {{batch, work.sequences}, {sequence, work.queries}},
                                    TensorClass::residual, Dtype::int32);
    program_.tensors[at(tokens)].tensor_class = TensorClass::activation;
    const int table = build_.used(outer("embedding"));
    const int rows = residual("Emb", work);
    ProgramTensor& made = program_.tensors[at(rows)];
    made.is_given = false;
    made.tensor_class = TensorClass::activation;
    const ProgramTensor& weights = program_.tensor(table);
    const int along = weights.find(vocabulary);
    made.sharding.unreduced = along < 0 ? 0 : weights.sharding.dims[at(along)].set();
    for (AxisList& list : made.sharding.dims) list = remaining(list, made.sharding.unreduced);
    for (std::size_t i = 0; i < 2; ++i) program_.tensors[at(tokens)].sharding.dims[i] = made.sharding.dims[i];
    // Reads one row per token, not the table.
    Step& step = build_.emit(Op::embed, {tokens, table}, {rows});
    step.bytes = local_bytes(program_, program_.tensor(tokens)) + 2.0 * local_bytes(program_, program_.tensor(rows));
    out.output = build_.settle(rows, TensorClass::residual);
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  Written layer(std::string_view name, const LayerStack& stack, std::size_t kind, int number, const Workload& work,
                int encoded) {
    build_.begin_block(name, Phase::forward, number, stack.count(kind));
    Written out{static_cast<std::int32_t>(program_.steps.size()), 0, residual("In", work), -1};
    out.output = forward_layer(build_, model_, stack.kinds[kind], work, out.input, encoded);
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  /// Final norm and logits.
  int logits(const Workload& work, Written& out) {
    out.input = residual("In", work);
    int x = out.input;
    if (model_.final_norm) x = build_.norm("Norm", x, outer("norm"), outer("b_norm"));
    int head = outer("W_head");
    if (head < 0) head = outer("embedding");
    return build_.product("Logits", x, head, {batch, sequence, vocabulary});
  }

  Written head_and_loss(const Workload& work) {
    build_.begin_block("head", Phase::forward, -1, 1);
    Written out{static_cast<std::int32_t>(program_.steps.size()), 0, -1, -1};
    const int scores = build_.settle_sums(logits(work, out));
    const int targets = copy_shape(scores, "Targets", Dtype::int32, 1);
    program_.tensors[at(targets)].is_given = true;
    const int sums = copy_shape(scores, "Sums", Dtype::fp32, 2);
    ProgramTensor& partial = program_.tensors[at(sums)];
    partial.sharding.unreduced = program_.tensor(scores).sharding.dims[2].set();
    build_.emit(Op::loss_sums, {scores, targets}, {sums});
    const int total = build_.settle_sums(sums);
    out.output = copy_shape(total, "Loss", Dtype::fp32, 1);
    build_.emit(Op::loss, {total}, {out.output});
    build_.end_block();
    out.last = static_cast<std::int32_t>(program_.steps.size());
    return out;
  }

  void head_and_sample(const Workload& work) {
    Workload last = work;
    last.queries = 1;
    build_.begin_block("head", Phase::forward, -1, 1);
    Written out;
    const int scores = build_.settle_sums(logits(last, out));
    // Each device finds the best of its part of the vocabulary; value and number of each go to all.
    const AxisList parts = program_.tensor(scores).sharding.dims[2];
    int best = scores;
    if (!parts.empty()) {
      best = copy_shape(scores, "Best", Dtype::fp32, 2 * static_cast<std::int64_t>(program_.ways(parts.set())));
      program_.tensors[at(best)].sharding.dims[2] = parts;
      build_.emit(Op::sample, {scores}, {best});
      Sharding everywhere = program_.tensor(best).sharding;
      everywhere.dims[2] = {};
      best = build_.reshard(best, everywhere, Urgency::critical);
    }
    build_.emit(Op::sample, {best}, {copy_shape(scores, "Token", Dtype::int32, 1)});
    build_.end_block();
  }

  /// [B, S] or [B, S, n] with the sharding of the tokens of `like`.
  int copy_shape(int like, std::string_view name, Dtype dtype, std::int64_t n) {
    ProgramTensor made;
    const ProgramTensor& source = program_.tensor(like);
    made.name = name;
    made.dtype = dtype;
    made.rank = n > 1 ? 3 : 2;
    for (std::size_t i = 0; i < 2; ++i) made.dims[i] = source.dims[i], made.sharding.dims[i] = source.sharding.dims[i];
    made.dims[2] = {other, n};
    program_.tensors.push_back(made);
    return static_cast<int>(program_.tensors.size()) - 1;
  }

  void backward(std::string_view name, int number, std::int64_t layers, const Written& forward, int result, int seed) {
    build_.begin_block(name, Phase::backward, number, layers);
    build_.backward(forward.first, forward.last, result, seed);
    if (forward.input >= 0) build_.settle_gradient(forward.input);
    build_.end_block();
  }

  /// The gradient that arrives at a block's result.
  int seed(int result) {
    ProgramTensor made = program_.tensor(result);
    made.is_gradient = made.is_given = true;
    program_.tensors.push_back(made);
    return static_cast<int>(program_.tensors.size()) - 1;
  }

  /// Updates the weights among tensors [first, last) of a stack of `layers`.
  void update(std::string_view name, int kind, std::int64_t layers, std::size_t first, std::size_t last,
              const Optimizer& optimizer) {
    build_.begin_block(name, Phase::update, kind, layers);
    for (std::size_t i = first; i < last; ++i) {
      const ProgramTensor weight = program_.tensors[i];
      const int gradient = build_.gradient(static_cast<int>(i));
      if (weight.tensor_class != TensorClass::weight || gradient < 0) continue;
      ProgramTensor mine = weight;
      mine.sharding = rule_sharding(rules_, program_, TensorClass::optimizer, {weight.dims.data(), weight.rank});
      mine.is_given = false;
      program_.tensors.push_back(mine);
      const int updated = static_cast<int>(program_.tensors.size()) - 1;
      Step& step = build_.emit(Op::update, {gradient, static_cast<int>(i)}, {updated});
      const double elements = local_elements(program_, mine);
      step.once = true;
      step.bytes = storage(build_.formats().gradients, elements) + Bytes(2.0 * elements * optimizer.state_bytes()) +
                   storage(build_.formats().weights, optimizer.master ? elements : 2.0 * elements);
      const std::size_t before = program_.steps.size();
      build_.reshard(updated, weight.sharding, Urgency::afterwards);
      for (std::size_t s = before; s < program_.steps.size(); ++s) program_.steps[s].once = true;
    }
    build_.end_block();
  }

  Builder& builder() { return build_; }

 private:
  Builder build_;
  Program& program_;
  const Transformer& model_;
  const ShardingRules& rules_;
  std::vector<std::pair<Weight, int>> outer_;
};

}  // namespace

double Optimizer::state_bytes() const {
  double bytes = master ? storage(Dtype::fp32, 1.0).value() : 0.0;
  if (moments > 0) bytes += storage(first_moment, 1.0).value();
  if (moments > 1) bytes += storage(second_moment, 1.0).value();
  return bytes;
}

Program lower_training(const Transformer& model, const Mesh& mesh, const ShardingRules& rules,
                       const TrainingPlan& plan) {
  Program program = empty_program(mesh);
  program.microbatches = plan.microbatches;
  Lowering lowering(program, model, rules, plan.formats, plan.recompute);
  struct Stacked {
    Written written;
    std::size_t first_tensor, last_tensor;
    std::int64_t layers;
    int number;
    std::string_view name;
  };
  std::vector<Stacked> stacked;
  const std::size_t outer_first = program.tensors.size();
  const Written embedded = lowering.embedding(plan.work);
  const std::size_t outer_last = program.tensors.size();
  // Kinds of the decoder are numbered first, also where an encoder runs before it.
  int number = static_cast<int>(model.decoder.kinds.size()), encoded = -1;
  const auto write = [&](std::string_view name, const LayerStack& stack, const Workload& work) {
    for (std::size_t kind = 0; kind < stack.kinds.size(); ++kind, ++number) {
      const std::size_t first = program.tensors.size();
      const Written written = lowering.layer(name, stack, kind, number, work, encoded);
      stacked.push_back({written, first, program.tensors.size(), stack.count(kind), number, name});
    }
  };
  if (model.encoder) {
    Workload source = plan.work;
    source.queries = source.keys = plan.work.source;
    write("encoder layer", *model.encoder, source);
    encoded = lowering.residual("Encoded", source);
  }
  number = 0;
  write("layer", model.decoder, plan.work);
  const std::size_t head_first = program.tensors.size();
  const Written head = lowering.head_and_loss(plan.work);
  const std::size_t head_last = program.tensors.size();
  // The embedding's weight is used by a tied head too; its gradient is complete after the embedding's backward pass.
  if (model.tied) lowering.builder().postponed = lowering.outer("embedding");
  lowering.backward("head", -1, 1, head, head.output, lowering.seed(head.output));
  for (std::size_t i = stacked.size(); i-- > 0;) {
    const Stacked& s = stacked[i];
    lowering.backward(s.name, s.number, s.layers, s.written, s.written.output, lowering.seed(s.written.output));
  }
  lowering.builder().postponed = -1;
  lowering.backward("embedding", -1, 1, embedded, embedded.output, lowering.seed(embedded.output));
  lowering.update("embedding", -1, 1, outer_first, outer_last, plan.optimizer);
  for (const Stacked& s : stacked)
    lowering.update(s.name, s.number, s.layers, s.first_tensor, s.last_tensor, plan.optimizer);
  lowering.update("head", -1, 1, head_first, head_last, plan.optimizer);
  return program;
}

Program lower_serving(const Transformer& model, const Mesh& mesh, const ShardingRules& rules, const Workload& work,
                      const Formats& formats) {
  Program program = empty_program(mesh);
  Lowering lowering(program, model, rules, formats, Recompute::none());
  lowering.embedding(work);
  int encoded = -1;
  if (model.encoder) {
    Workload source = work;
    source.queries = source.keys = work.source;
    encoded = lowering.residual("Encoded", source);
  }
  for (std::size_t kind = 0; kind < model.decoder.kinds.size(); ++kind)
    lowering.layer("layer", model.decoder, kind, static_cast<int>(kind), work, encoded);
  lowering.head_and_sample(work);
  return program;
}

Bytes kept_bytes(const Program& program, const Block& forward) {
  Bytes sum;
  std::vector<char> counted(program.tensors.size(), 0);
  const auto add = [&](int id) {
    if (id < 0 || counted[at(id)]) return;
    counted[at(id)] = 1;
    const ProgramTensor& tensor = program.tensor(id);
    if (tensor.is_kept) sum += local_bytes(program, tensor);
  };
  for (std::int32_t i = forward.first; i < forward.last; ++i) {
    for (int id : program.steps[at(i)].in) add(id);
    for (int id : program.steps[at(i)].out) add(id);
  }
  return sum;
}

}  // namespace assay
