// Measured prefill and decode as requests of `assay serve`.
#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/validate/rows/inference_rows.h"

namespace assay::validate {
namespace {

/// The words of an engine, where it differs from what a request assumes.
std::vector<std::string> engine_words(const estimate::EngineSoftware& software) {
  const estimate::ServingSoftware usual, &step = software.step;
  std::vector<std::string> words;
  const auto add = [&](bool differs, std::initializer_list<std::string> these) {
    if (differs) words.insert(words.end(), these);
  };
  add(step.fusion != usual.fusion,
      {"--fusion", std::string(estimate::fusion_names[static_cast<std::size_t>(step.fusion)])});
  // Kernels are captured by default, but not eager ones.
  if (step.captured != (step.fusion != estimate::Fusion::eager))
    words.emplace_back(step.captured ? "--graphs" : "--graphs=no");
  add(step.scheduler != usual.scheduler,
      {"--scheduler", std::string(estimate::scheduler_names[static_cast<std::size_t>(step.scheduler)])});
  add(software.attention != hardware::AttentionKernel::automatic,
      {"--attention-kernel", software.attention == hardware::AttentionKernel::cudnn ? "cudnn" : "flash2"});
  const char* cache = step.repeats_kv      ? "copies"
                      : step.vector_decode ? step.whole_rows ? "unsplit" : "vector"
                      : step.whole_rows    ? "unsplit-matrix"
                                           : "";
  add(*cache != '\0', {"--cache-kernel", cache});
  add(!step.one_shot, {"--all-reduce", "library"});
  return words;
}

}  // namespace

std::optional<Question> question_of(const InferenceRow& row) {
  const bool first = row.figure == InferenceFigure::first_token;
  // Answers have prompts and decode steps at a context; a batch to its end, or a load, are not among them.
  if (row.catalogue_id.empty() || row.strategy.chips() > 1 || row.cache > 0 ||
      !(first || (row.figure == InferenceFigure::step && row.output <= 1)))
    return std::nullopt;
  // A step reads the cache of the prompt and of its own token.
  const std::int64_t prompt = first ? row.prompt : row.prompt - 1;
  const std::string batch = fmt::format("{:.0f}", row.batch);
  Question question{{"serve", row.catalogue_id, "--on", row.cluster, "--prompt", std::to_string(prompt), "--output",
                     "1", "--batch", batch},
                    engine_words(row.software),
                    first ? "prefill.time" : "decode.step_time"};
  std::vector<std::string>& words = question.words;
  if (first && row.batch > 1.0) words.insert(words.end(), {"--prompts", batch});
  if (row.model.max_context > 0 && prompt + 1 > row.model.max_context) words.emplace_back("--stretch");
  words.insert(words.end(), {"--weights", std::string(name(row.formats.weights)), "--compute",
                             std::string(name(row.formats.compute))});
  if (row.formats.outer) words.insert(words.end(), {"--head-weights", std::string(name(*row.formats.outer))});
  if (row.formats.kv_cache != Dtype::bf16) words.insert(words.end(), {"--kv", std::string(name(row.formats.kv_cache))});
  return question;
}

}  // namespace assay::validate
