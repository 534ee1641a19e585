// Measured training steps as requests of `assay train`.
#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/training_rows.h"

namespace assay::validate {
namespace {

/// The words of a strategy, all of it, so that nothing is searched.
void add_strategy(const training::Strategy& strategy, std::vector<std::string>& words) {
  const lower::Parallelism& p = strategy.parallelism;
  const auto add = [&](const char* option, std::int64_t value) {
    words.insert(words.end(), {option, std::to_string(value)});
  };
  if (p.devices() > 1) {
    const std::pair<const char*, std::int64_t> axes[] = {{"--dp", p.data},     {"--fsdp", p.fsdp},  {"--tp", p.tensor},
                                                         {"--pp", p.pipeline}, {"--cp", p.context}, {"--ep", p.expert},
                                                         {"--zero", p.zero}};
    for (const auto& [option, ways] : axes) add(option, ways);
    words.insert(words.end(), {"--order", "pp,dp,fsdp,ep,cp,tp"});
  }
  if (p.tensor > 1)
    words.insert(words.end(),
                 {"--residual", p.residual == lower::ResidualScheme::sequence ? "sequence" : "replicated"});
  if (p.context > 1) words.insert(words.end(), {"--context-scheme", "ring"});
  if (p.expert > 1) {
    std::string over = p.expert_over.tensor ? "tp" : "";
    if (p.expert_over.context) over += over.empty() ? "cp" : ",cp";
    words.insert(words.end(), {"--ep-over", over.empty() ? "dp" : over});
  }
  add("--micro-batch", strategy.micro_batch);
  if (p.pipeline > 1) {
    add("--interleave", strategy.interleave);
    words.insert(words.end(), {"--schedule", std::string(clock::schedule_name(strategy.schedule))});
  }
  words.insert(words.end(), {"--offload", "none"});
}

/// The words of software, where it differs from what a request assumes, for a model that `routes` tokens or not.
std::vector<std::string> software_words(const kernel::TrainingSoftware& software, bool routes) {
  const kernel::TrainingSoftware usual;
  const numbers::StepSoftware& step = software.step;
  std::vector<std::string> words{"--software", "any"};
  const auto add = [&](bool differs, std::initializer_list<std::string> these) {
    if (differs) words.insert(words.end(), these);
  };
  const auto fusion = [](numbers::Fusion way) {
    return std::string(numbers::fusion_names[static_cast<std::size_t>(way)]);
  };
  add(step.fusion != usual.step.fusion, {"--fusion", fusion(step.fusion)});
  if (step.loss) add(true, {"--loss", fusion(*step.loss)});
  add(software.attention != usual.attention,
      {"--attention-kernel", step.wide_attention                                      ? "math"
                             : step.first_flash                                       ? "flash1"
                             : software.attention == hardware::AttentionKernel::cudnn ? "cudnn"
                                                                                      : "flash2"});
  add(step.explicit_mask, {"--explicit-mask"});
  add(!software.flash && !step.wide_attention, {"--plain-attention"});
  add(step.captured, {"--graphs"});
  add(step.fixed_capacity, {"--drop-tokens"});
  add(step.fused_experts, {"--fused-experts"});
  add(step.tensor_overlap != usual.step.tensor_overlap,
      {"--tensor-overlap", step.tensor_overlap == numbers::TensorOverlap::none ? "none" : "backward"});
  add(!step.expert_overlap && routes, {"--no-expert-overlap"});
  add(software.copies_per_expert && routes, {"--dispatch", "expert"});
  add(step.contiguous_context, {"--contiguous-context"});
  add(!software.overlap, {"--no-overlap"});
  add(software.dropout, {"--dropout"});
  add(software.pads_vocabulary, {"--padded-vocabulary"});
  add(step.unfused_update, {"--unfused-update"});
  add(software.shared_master, {"--optimizer", "shared"});
  return words;
}

}  // namespace

Question question_of(const TrainingRow& row, StepFigure figure) {
  Question question;
  std::vector<std::string>& words = question.words;
  words = {"train",   row.named,
           "--on",    row.cluster,
           "--batch", fmt::format("{:.0f}seq", row.sequences),
           "--seq",   std::to_string(row.sequence)};
  const auto add = [&](std::initializer_list<std::string> these) { words.insert(words.end(), these); };
  for (const hardware::Override& change : row.changes) add({"--set", change.path + "=" + change.value});
  if (row.power) add({"--power", fmt::format("{}W", row.power->value())});
  add_strategy(row.strategy, words);
  // What is recomputed is searched where the row does not say it.
  if (row.states_recompute) add({"--recompute", std::string(lower::name(row.strategy.recompute))});
  if (row.compute != Dtype::bf16) add({"--compute", std::string(name(row.compute))});
  if (row.small_states) add({"--grads", "bf16", "--moments", "bf16", "--optimizer", "none"});
  if (const auto& adapters = row.model.adapters)
    add({"--lora", std::to_string(adapters->rank), "--lora-on", adapters->feed_forward ? "all" : "attention"});
  question.own_way = software_words(row.software, row.model.has_experts());
  const auto add_own = [&](std::initializer_list<std::string> these) {
    question.own_way.insert(question.own_way.end(), these);
  };
  if (row.gradients != Dtype::fp32 && !row.small_states) add_own({"--grads", std::string(name(row.gradients))});
  // The run did fit, so no memory needs to be left free for surprises.
  if (!row.states_recompute) add_own({"--memory-margin", "none"});
  question.result = "step_time";
  if (figure == StepFigure::memory) {
    constexpr const char* views[] = {"memory.allocated", "memory.reserved", "memory.total"};
    question.result = views[static_cast<std::size_t>(row.view)];
    question.around = {"memory_interval", "memory.total"};
  }
  return question;
}

}  // namespace assay::validate
