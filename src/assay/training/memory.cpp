#include "assay/training/memory.h"

#include <algorithm>
#include <cmath>

#include "assay/pipeline/closed_forms.h"

namespace assay::training {
namespace {

Sharing sharing(const lower::Parallelism& p, const StageLinks& links) {
  constexpr RoleSet everyone =
      role_bit(Role::replica) | role_bit(Role::fsdp) | role_bit(Role::expert) | role_bit(Role::context);
  constexpr RoleSet sharded = everyone & ~role_bit(Role::replica);
  const RoleSet weights = p.zero >= 3 ? everyone : p.fsdp > 1 ? sharded : 0;
  const RoleSet states = p.zero >= 1 ? everyone : weights;
  const RoleSet gradients = p.zero >= 2 ? everyone : weights;
  const auto no_expert =
      static_cast<RoleSet>(~(role_bit(Role::expert) | (p.expert_over.context ? role_bit(Role::context) : RoleSet(0))));
  return {links.ways(weights),
          links.ways(gradients),
          links.ways(states),
          links.ways(weights & no_expert),
          links.ways(gradients & no_expert),
          links.ways(states & no_expert),
          links.ways(everyone),
          links.ways(everyone & no_expert)};
}

}  // namespace

StateBytes::StateBytes(const TrainingQuestion& question, const Strategy& strategy, const StageLinks& links)
    : shared(sharing(strategy.parallelism, links)),
      weight(storage(question.setup.formats.weights, 1.0).value()),
      gradient(storage(question.setup.formats.gradients, 1.0).value()),
      outer(storage(question.setup.formats.outer.value_or(question.setup.formats.weights), 1.0).value()),
      used(std::min(weight, storage(question.setup.formats.activations, 1.0).value())),
      optimizer(&question.setup.optimizer),
      states_move(moves_states(strategy.offload)) {
  updated = gradient + 2.0 * optimizer->state_bytes() + (optimizer->master ? 1.0 : 2.0) * weight;
  // A master copy on the host is too far away to gather from.
  casts = optimizer->master && optimizer->cast_when_gathered && shared.weights > 1.0 && !states_move &&
          !question.setup.model->adapters;
}

std::array<double, 2> StateBytes::cast(const TrainingProfile& profile, const pipeline::StageSplit::Part& part,
                                       double dense, double expert) const {
  if (used == weight) return {0.0, 0.0};
  const double table = part.first ? elements_of(profile.embedding) : 0.0;
  const double head = part.last ? elements_of(profile.head) : 0.0;
  const double tied = part.last ? profile.tied_elements : 0.0;
  const double layers = dense - table - head - (part.first ? 0.0 : tied);
  const double ends = shared.weights > 1.0 ? dense - layers : head + tied;
  const double experts = expert / shared.expert_weights;
  return {(weight + used) * ((layers + ends) / shared.weights + experts),
          (weight + used) * (layers / shared.weights + experts)};
}

StageElements add_memory(const StepInputs& inputs, const StateBytes& bytes, const pipeline::StageSplit::Part& part,
                         MicrobatchCost::Part& out) {
  const TrainingProfile& profile = inputs.profile;
  const estimate::StepEffects& effects = inputs.question.setup.effects;
  const double over_fewest = kept_over_fewest(effects, inputs.strategy.recompute);
  const Bytes head_gathered = (inputs.weights ? *inputs.weights : profile).head.gathered;
  StageElements sum;
  const auto hold = [&sum](const LayerProfile& layer, double n) {
    sum.dense += n * layer.dense_elements;
    sum.expert += n * layer.expert_elements;
    sum.trained_dense += n * layer.trained_dense;
    sum.trained_experts += n * layer.trained_experts;
  };
  // Experts of their own devices are neither gathered nor reduced.
  const Sharing& shared = bytes.shared;
  const auto moving = [](double dense, double ways, double experts, double expert_ways) {
    return (ways > 1.0 ? dense : 0.0) + (expert_ways > 1.0 ? experts : 0.0);
  };
  double encoded = 0.0;
  const std::size_t kinds = profile.kinds.size();
  for (std::size_t k = 0; k < kinds; ++k) {
    const double n = part.layers[k];
    if (n == 0.0) continue;
    const LayerProfile& layer = profile.kinds[k];
    const double kept = layer.kept.value() * over_fewest;
    out.layers += n;
    hold(layer, n);
    double dense = layer.dense_elements, trained = layer.trained_dense;
    if (!profile.shared.empty()) {
      const LayerProfile& common = profile.shared[k];
      hold(common, 1.0);
      sum.used_again += (n - 1.0) * common.dense_elements;
      dense += common.dense_elements;
      trained += common.trained_dense;
    }
    out.kept += n * part.passed * kept;
    encoded = std::max(encoded, layer.encoded.value() * over_fewest);
    sum.largest_trained = std::max(sum.largest_trained, trained + layer.trained_experts);
    sum.most_gathered =
        std::max(sum.most_gathered, moving(dense, shared.weights, layer.expert_elements, shared.expert_weights));
    sum.most_reduced =
        std::max(sum.most_reduced, moving(dense, shared.gradients, layer.expert_elements, shared.expert_gradients));
    sum.most_trained_reduced = std::max(
        sum.most_trained_reduced, moving(trained, shared.gradients, layer.trained_experts, shared.expert_gradients));
    sum.most_kept = std::max(sum.most_kept, kept);
    out.memory.workspace =
        std::max(out.memory.workspace, layer.recomputed.value() * effects.activations + layer.widest.value());
  }
  out.kept += encoded;
  if (part.first) {
    hold(profile.embedding, 1.0);
    sum.outer += elements_of(profile.embedding);
  }
  if (part.last) {
    const double tied = part.first ? 0.0 : profile.tied_elements;
    sum.dense += elements_of(profile.head) + tied;
    sum.outer += elements_of(profile.head) + tied;
    sum.trained_dense += trained_of(profile.head) + (trained_of(profile.embedding) > 0.0 ? tied : 0.0);
    out.memory.head =
        effects.logits * (profile.head.kept.value() + profile.head.widest.value()) + head_gathered.value();
    // Its gradient is unsharded until it is reduced, and no memory of the loss is free yet.
    if (bytes.shared.gradients > 1.0) out.memory.head += bytes.gradient * trained_of(profile.head);
  }
  out.stages = part.stages;
  out.at = part.at;
  out.to = part.to;
  out.first = part.first;
  out.last = part.last;
  // Two copies of the model have their own states: only data-parallel devices shard them.
  const double states = bytes.states_of(sum);
  out.memory.weights = bytes.casts ? 0.0
                                   : bytes.weight * (sum.dense / shared.weights + sum.expert / shared.expert_weights) +
                                         (bytes.outer - bytes.weight) * sum.outer / shared.weights;
  out.memory.gradients =
      bytes.gradient * (sum.trained_dense / shared.gradients + sum.trained_experts / shared.expert_gradients);
  out.memory.master = bytes.optimizer->master_bytes() * states;
  out.memory.moments = bytes.optimizer->moment_bytes() * states;
  // Weights in use are unsharded: this layer's and the next one's. So are gradients that are not yet reduced.
  out.memory.buffers =
      2.0 * bytes.used * sum.most_gathered + bytes.used * sum.most_reduced + bytes.gradient * sum.most_trained_reduced;
  return sum;
}

void move_to_host(Offload offload, double layer_kept, double layer_share, MicrobatchCost::Part& out) {
  if (moves_activations(offload)) {
    out.offloaded = out.kept;
    out.kept = std::min(out.kept, layers_on_chip * layer_kept);
  }
  if (moves_states(offload)) {
    out.memory.host = out.memory.master + out.memory.moments;
    out.memory.buffers += std::min(1.0, layers_passing * layer_share) * out.memory.host;
    out.memory.master = out.memory.moments = 0.0;
  }
}

void set_memory_rules(const TrainingQuestion& question, const Strategy& strategy, const StateBytes& bytes,
                      MicrobatchCost& microbatch) {
  const estimate::StepEffects& effects = question.setup.effects;
  microbatch.microbatches = microbatches(question, strategy);
  microbatch.stages = static_cast<double>(strategy.parallelism.pipeline);
  microbatch.frees_gradients = effects.frees_gradients && microbatch.microbatches <= 1.0;
  microbatch.scatters_gradients = bytes.shared.gradients > 1.0;
  microbatch.reserved = effects.reserved;
  microbatch.context = effects.context.value();
  microbatch.most_layers = 0.0;
  microbatch.parts.clear();
}

void fill_memory(const StepInputs& inputs, const pipeline::StageSplit& split, MicrobatchCost& microbatch) {
  const StateBytes bytes(inputs.question, inputs.strategy, inputs.links);
  set_memory_rules(inputs.question, inputs.strategy, bytes, microbatch);
  for (const pipeline::StageSplit::Part& part : split.parts) {
    MicrobatchCost::Part& out = microbatch.parts.emplace_back();
    const StageElements sum = add_memory(inputs, bytes, part, out);
    microbatch.most_layers = std::max(microbatch.most_layers, out.layers);
    move_to_host(inputs.strategy.offload, sum.most_kept, sum.trained_share(), out);
  }
}

MemoryParts memory_holding(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, double held) {
  MemoryParts memory = part.memory;
  // Activations go to the host one microbatch at a time, so only one is in transit.
  memory.activations = part.offloaded > 0.0 ? part.kept : part.kept * held;
  memory.host += part.offloaded * held;
  // At the loss no gradient exists yet; after it, freed activations make room for gradients. The allocator keeps
  // separate pools per stream, and scattered gradients are allocated on the collectives' stream: memory freed on other
  // streams does not help them.
  const double late = microbatch.frees_gradients ? std::min(memory.gradients, memory.activations + memory.head) : 0.0;
  memory.gradients -= late;
  // Logits and the workspace of a backward pass are not held at the same time.
  (memory.head > memory.workspace ? memory.workspace : memory.head) = 0.0;
  memory.reserve = (microbatch.reserved - 1.0) * memory.allocated() + (microbatch.scatters_gradients ? late : 0.0);
  memory.context = microbatch.context;
  return memory;
}

double largest_chunk(const MicrobatchCost& microbatch, const Strategy& strategy, double layers) {
  if (strategy.schedule != pipeline::PipelineSchedule::interleaved || strategy.interleave == 1) return 1.0;
  const auto chunks = static_cast<double>(strategy.interleave);
  return chunks * std::ceil(microbatch.most_layers / chunks) / layers;
}

MemoryParts memory_at(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy,
                      std::int64_t stage) {
  const pipeline::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline,
                                      static_cast<std::int64_t>(microbatch.microbatches), strategy.interleave};
  const double held = shape.stages > 1
                          ? std::min(microbatch.microbatches, largest_chunk(microbatch, strategy, part.layers) *
                                                                  pipeline::peak_microbatches(shape, stage))
                          : 1.0;
  MemoryParts memory = memory_holding(microbatch, part, held);
  memory.stage = stage;
  return memory;
}

MemoryParts memory_at(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy) {
  // Where stages fold, the later ones hold more microbatches.
  return memory_at(microbatch, part, strategy,
                   layout_of(strategy.schedule) == pipeline::StageLayout::folded ? part.to : part.at);
}

std::vector<MemoryParts> stage_memory(const MicrobatchCost& microbatch, const pipeline::StageSplit& split,
                                      const Strategy& strategy) {
  std::vector<MemoryParts> out;
  for (std::size_t s = 0; s < split.part_of.size(); ++s)
    out.push_back(memory_at(microbatch, microbatch.parts[static_cast<std::size_t>(split.part_of[s])], strategy,
                            static_cast<std::int64_t>(s)));
  return out;
}

}  // namespace assay::training
