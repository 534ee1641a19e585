// Measured training steps as requests of `assay train`.
#include <fmt/format.h>

#include <cmath>

#include "assay/base/text.h"
#include "assay/validate/rows/training_rows.h"

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
    std::string over = p.expert_over.tensor ? "tensor" : "";
    if (p.expert_over.context) over += over.empty() ? "context" : ",context";
    words.insert(words.end(), {"--ep-over", over.empty() ? "data" : over});
  }
  add("--micro-batch", strategy.micro_batch);
  if (p.pipeline > 1) {
    add("--interleave", strategy.interleave);
    words.insert(words.end(), {"--schedule", std::string(pipeline::schedule_name(strategy.schedule))});
  }
  words.insert(words.end(), {"--recompute", std::string(lower::name(strategy.recompute)), "--offload", "none"});
}

/// The words of software, where it differs from what a request assumes.
std::vector<std::string> software_words(const estimate::TrainingSoftware& software) {
  const estimate::TrainingSoftware usual;
  const estimate::StepSoftware& step = software.step;
  std::vector<std::string> words{"--software", "any"};
  const auto add = [&](bool differs, std::initializer_list<std::string> these) {
    if (differs) words.insert(words.end(), these);
  };
  const auto fusion = [](estimate::Fusion way) {
    return std::string(estimate::fusion_names[static_cast<std::size_t>(way)]);
  };
  add(step.fusion != usual.step.fusion, {"--fusion", fusion(step.fusion)});
  if (step.loss) add(true, {"--loss", fusion(*step.loss)});
  add(software.attention != usual.attention,
      {"--attention-kernel", step.first_flash                                         ? "flash1"
                             : software.attention == hardware::AttentionKernel::cudnn ? "cudnn"
                                                                                      : "flash2"});
  add(!software.flash, {"--plain-attention"});
  add(step.captured, {"--graphs"});
  add(step.fixed_capacity, {"--drop-tokens"});
  add(step.fused_experts, {"--fused-experts"});
  add(step.tensor_overlap != usual.step.tensor_overlap,
      {"--tensor-overlap", step.tensor_overlap == estimate::TensorOverlap::none ? "none" : "backward"});
  add(!step.expert_overlap, {"--no-expert-overlap"});
  add(!software.overlap, {"--no-overlap"});
  add(software.dropout, {"--dropout"});
  add(software.shared_master, {"--optimizer", "shared"});
  return words;
}

}  // namespace

std::optional<Question> question_of(const TrainingRow& row, StepFigure figure,
                                    const std::vector<hardware::Override>& changes) {
  // Requests name a model of the catalogue and what is recomputed.
  if (row.catalogue_id.empty() || row.model.adapters || !row.states_recompute ||
      row.sequences != std::floor(row.sequences))
    return std::nullopt;
  Question question;
  std::vector<std::string>& words = question.words;
  words = {"train",   row.catalogue_id,
           "--on",    row.cluster,
           "--batch", fmt::format("{:.0f}seq", row.sequences),
           "--seq",   std::to_string(row.sequence)};
  for (const hardware::Override& change : changes)
    words.insert(words.end(), {"--set", change.path + "=" + change.value});
  if (row.power) words.insert(words.end(), {"--power", fmt::format("{}W", row.power->value())});
  add_strategy(row.strategy, words);
  if (row.compute != Dtype::bf16) words.insert(words.end(), {"--compute", std::string(name(row.compute))});
  if (row.small_states) words.insert(words.end(), {"--grads", "bf16", "--moments", "bf16", "--optimizer", "none"});
  question.own_way = software_words(row.software);
  if (figure == StepFigure::time) {
    question.result = "step_time";
  } else {
    // Answers list what tensors take and all that is in use, not what the allocator holds.
    if (row.view == MemoryView::reserved) return std::nullopt;
    question.result = row.view == MemoryView::allocated ? "memory.allocated" : "memory.total";
  }
  return question;
}

}  // namespace assay::validate
