#include "assay/predict/training/memory.h"

#include <algorithm>
#include <cmath>

#include "assay/predict/clock/closed_forms.h"
#include "assay/predict/training/memory_formulas.h"

namespace assay::training {
namespace {

Sharing sharing(const lower::Parallelism& p, const StageLinks& links) {
  constexpr RoleSet everyone =
      role_bit(Role::data) | role_bit(Role::fsdp) | role_bit(Role::expert) | role_bit(Role::context);
  constexpr RoleSet sharded = everyone & ~role_bit(Role::data);
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
      weight(storage(question.setup.formats.weights, 1.0)),
      gradient(storage(question.setup.formats.gradients, 1.0)),
      outer(storage(question.setup.formats.outer.value_or(question.setup.formats.weights), 1.0)),
      used(std::min(weight, storage(question.setup.formats.activations, 1.0))),
      optimizer(&question.setup.optimizer),
      formats(&question.setup.formats),
      states_move(moves_states(strategy.offload)) {
  updated = updated_bytes(Plain{});
  // A master copy on the host is too far away to gather from.
  casts = optimizer->master && optimizer->cast_when_gathered && shared.weights > 1.0 && !states_move &&
          !question.setup.model->adapters;
}

StageElements add_memory(const StepInputs& inputs, const StateBytes& bytes, const clock::StageSplit::Part& part,
                         MicrobatchCost::Part& out) {
  const Plain num;
  const ProfiledLayers layers{inputs.profile};
  const StageMemory<Plain, ProfiledLayers> stage(num, inputs, bytes, layers);
  const StageElements sum = stage.add(part, out.kept, out.memory);
  for (std::size_t k = 0; k < inputs.profile.kinds.size(); ++k) out.layers += part.layers[k];
  out.stages = part.stages;
  out.at = part.at;
  out.to = part.to;
  out.first = part.first;
  out.last = part.last;
  return sum;
}

void move_to_host(Offload offload, const StageElements& elements, MicrobatchCost::Part& out) {
  if (moves_activations(offload)) {
    out.offloaded = out.kept;
    out.kept = kept_on_chip(Plain{}, out.kept, elements);
  }
  if (moves_states(offload)) {
    out.memory.host = out.memory.master + out.memory.moments;
    out.memory.buffers += passing_states(Plain{}, out.memory.host, elements);
    out.memory.master = out.memory.moments = Bytes();
  }
}

void set_memory_rules(const TrainingQuestion& question, const Strategy& strategy, const StateBytes& bytes,
                      MicrobatchCost& microbatch) {
  const numbers::StepEffects& effects = question.setup.effects;
  microbatch.microbatches = microbatches(question, strategy);
  microbatch.stages = static_cast<double>(strategy.parallelism.pipeline);
  microbatch.frees_gradients = effects.frees_gradients && microbatch.microbatches <= 1.0;
  microbatch.scatters_gradients = bytes.shared.gradients > 1.0;
  microbatch.reserved = effects.reserved;
  microbatch.context = effects.context;
  microbatch.most_layers = 0.0;
  microbatch.parts.clear();
}

void fill_memory(const StepInputs& inputs, const clock::StageSplit& split, MicrobatchCost& microbatch) {
  const StateBytes bytes(inputs.question, inputs.strategy, inputs.links);
  set_memory_rules(inputs.question, inputs.strategy, bytes, microbatch);
  for (const clock::StageSplit::Part& part : split.parts) {
    MicrobatchCost::Part& out = microbatch.parts.emplace_back();
    const StageElements sum = add_memory(inputs, bytes, part, out);
    microbatch.most_layers = std::max(microbatch.most_layers, out.layers);
    move_to_host(inputs.strategy.offload, sum, out);
  }
}

MemoryParts memory_holding(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, double held) {
  // Activations go to the host one microbatch at a time, so only one is in transit.
  const Bytes activations = part.offloaded > Bytes() ? part.kept : part.kept * held;
  MemoryParts memory =
      at_peak(Plain{}, part.memory, activations,
              {microbatch.frees_gradients, microbatch.scatters_gradients, microbatch.reserved, microbatch.context});
  memory.host += part.offloaded * held;
  return memory;
}

double largest_chunk(const MicrobatchCost& microbatch, const Strategy& strategy, double layers) {
  if (strategy.schedule != clock::PipelineSchedule::interleaved || strategy.interleave == 1) return 1.0;
  const auto chunks = static_cast<double>(strategy.interleave);
  return chunks * std::ceil(microbatch.most_layers / chunks) / layers;
}

double held_microbatches(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy,
                         std::int64_t stage) {
  const clock::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline,
                                   static_cast<std::int64_t>(microbatch.microbatches), strategy.interleave};
  return shape.stages > 1 ? std::min(microbatch.microbatches, largest_chunk(microbatch, strategy, part.layers) *
                                                                  clock::peak_microbatches(shape, stage))
                          : 1.0;
}

MemoryParts memory_at(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy,
                      std::int64_t stage) {
  MemoryParts memory = memory_holding(microbatch, part, held_microbatches(microbatch, part, strategy, stage));
  memory.stage = stage;
  return memory;
}

MemoryParts memory_at(const MicrobatchCost& microbatch, const MicrobatchCost::Part& part, const Strategy& strategy) {
  // Where stages fold, the later ones hold more microbatches.
  return memory_at(microbatch, part, strategy,
                   layout_of(strategy.schedule) == clock::StageLayout::folded ? part.to : part.at);
}

std::vector<MemoryParts> stage_memory(const MicrobatchCost& microbatch, const clock::StageSplit& split,
                                      const Strategy& strategy) {
  std::vector<MemoryParts> out;
  for (std::size_t s = 0; s < split.part_of.size(); ++s)
    out.push_back(memory_at(microbatch, microbatch.parts[static_cast<std::size_t>(split.part_of[s])], strategy,
                            static_cast<std::int64_t>(s)));
  return out;
}

}  // namespace assay::training
