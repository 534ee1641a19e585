// Measured training steps as requests of `assay train`.
#include <fmt/format.h>

#include <cmath>

#include "assay/base/text.h"
#include "assay/validate/rows/training_rows.h"

namespace assay::validate {
namespace {

/// The words of software, where it differs from what a request assumes.
std::vector<std::string> software_words(const estimate::TrainingSoftware& software) {
  const estimate::TrainingSoftware usual;
  const estimate::StepSoftware& step = software.step;
  std::vector<std::string> words;
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

std::optional<Question> question_of(const TrainingRow& row, StepFigure figure) {
  // Requests name a model of the catalogue, and take a network or a power limit from the chip's file. Strategies of
  // several chips are not written yet.
  if (row.catalogue_id.empty() || row.strategy.parallelism.devices() > 1 || row.network > BytesPerSecond(0) ||
      row.omni_path || row.power != 1.0 || row.model.adapters || !row.states_recompute ||
      row.sequences != std::floor(row.sequences))
    return std::nullopt;
  Question question;
  std::vector<std::string>& words = question.words;
  words = {"train",   row.catalogue_id,
           "--on",    row.cluster,
           "--batch", fmt::format("{:.0f}seq", row.sequences),
           "--seq",   std::to_string(row.sequence)};
  for (const hardware::Override& change : row.changes)
    words.insert(words.end(), {"--set", change.path + "=" + change.value});
  words.insert(words.end(), {"--micro-batch", std::to_string(row.strategy.micro_batch), "--recompute",
                             std::string(lower::name(row.strategy.recompute)), "--offload", "none"});
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
