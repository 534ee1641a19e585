// Measured prefill and decode as requests of `assay serve`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/lab/validate/rows/inference_rows.h"

namespace assay::validate {
namespace {

/// The words of an engine, where it differs from what a request that names it assumes.
std::vector<std::string> engine_words(const InferenceRow& row) {
  const numbers::ServingSoftware &usual = row.assumed.step, &step = row.software.step;
  std::vector<std::string> words;
  const auto add = [&](bool differs, std::initializer_list<std::string> these) {
    if (differs) words.insert(words.end(), these);
  };
  add(!row.engine.empty(), {"--software", row.engine});
  add(step.fusion != usual.fusion,
      {"--fusion", std::string(numbers::fusion_names[static_cast<std::size_t>(step.fusion)])});
  // Without an engine kernels are captured by default, but not eager ones.
  if (step.captured != (row.engine.empty() ? step.fusion != numbers::Fusion::eager : usual.captured))
    words.emplace_back(step.captured ? "--graphs" : "--graphs=no");
  add(step.scheduler != usual.scheduler,
      {"--scheduler", std::string(numbers::scheduler_names[static_cast<std::size_t>(step.scheduler)])});
  add(row.software.attention != row.assumed.attention,
      {"--attention-kernel", row.software.attention == hardware::AttentionKernel::cudnn ? "cudnn" : "flash2"});
  const auto cache = [](const numbers::ServingSoftware& of) {
    return of.repeats_kv      ? "copies"
           : of.vector_decode ? of.whole_rows ? "unsplit" : "vector"
           : of.whole_rows    ? "unsplit-matrix"
                              : "matrix";
  };
  add(std::string_view(cache(step)) != cache(usual), {"--cache-kernel", cache(step)});
  add(step.experts != usual.experts,
      {"--expert-kernel", std::string(numbers::expert_kernel_names[static_cast<std::size_t>(step.experts)])});
  add(step.one_shot != usual.one_shot, {"--all-reduce", step.one_shot ? "one-shot" : "library"});
  return words;
}

/// The words of a strategy, all of it, so that nothing is searched.
void add_strategy(const InferenceRow& row, std::vector<std::string>& words) {
  const serving::ServingStrategy& s = row.strategy;
  if (s.chips() == 1) return;
  for (const auto& [option, ways] : {std::pair{"--tp", s.tensor}, std::pair{"--pp", s.pipeline},
                                     std::pair{"--dp", s.data}, std::pair{"--weights-2d", std::int64_t{1}}})
    words.insert(words.end(), {option, std::to_string(ways)});
  if (row.model.has_experts()) {
    words.insert(words.end(), {"--ep", std::to_string(s.expert)});
    if (s.expert > 1) words.insert(words.end(), {"--ep-over", s.expert_over.tensor ? "tp" : "dp"});
  }
  words.insert(words.end(), {"--cache", "heads"});
}

/// The most sequences of a server at full load: its clients, or what the engine takes.
void add_load(const InferenceRow& row, std::vector<std::string>& words) {
  double most = row.batch > 0.0 ? row.batch : HUGE_VAL;
  if (row.sequences > 0.0) most = std::min(most, row.sequences * static_cast<double>(row.strategy.data));
  if (most < HUGE_VAL) words.insert(words.end(), {"--most-batch", fmt::format("{:.0f}", most)});
}

/// Where answers have what a row measured.
std::string result_of(InferenceFigure figure) {
  using enum InferenceFigure;
  switch (figure) {
    case first_token:
      return "prefill.time";
    case step:
      return "decode.step_time";
    case static_token:
      return "batch_run.time_per_token";
    case loaded_token:
      return "served.time_per_token";
    case throughput:
      break;
  }
  return "served.output_tokens_per_second";
}

}  // namespace

Question question_of(const InferenceRow& row) {
  using enum InferenceFigure;
  const bool first = row.figure == first_token, one_step = row.figure == step && row.output <= 1;
  // A step reads the cache of the prompt and of its own token.
  const std::int64_t prompt = one_step ? std::max<std::int64_t>(1, row.prompt - 1) : row.prompt,
                     output = first || one_step ? 1 : std::max<std::int64_t>(1, row.output);
  Question question{
      {"serve", row.named, "--on", row.cluster, "--prompt", std::to_string(prompt), "--output", std::to_string(output)},
      engine_words(row),
      result_of(row.figure)};
  std::vector<std::string>& words = question.words;
  const std::string batch = fmt::format("{:.0f}", row.batch);
  if (row.figure == throughput)
    add_load(row, words);
  else if (row.batch > 0.0)
    words.insert(words.end(), {"--batch", batch});
  if (first || row.figure == static_token) words.insert(words.end(), {"--prompts", batch});
  if (row.model.max_context > 0 && prompt + output > row.model.max_context) words.emplace_back("--stretch");
  add_strategy(row, words);
  words.insert(words.end(), {"--weights", std::string(name(row.formats.weights)), "--compute",
                             std::string(name(row.formats.compute)), "--kv", std::string(name(row.formats.kv_cache))});
  if (row.formats.outer) words.insert(words.end(), {"--head-weights", std::string(name(*row.formats.outer))});
  // The batch was run, so no memory needs to be left free for surprises.
  if (row.figure == static_token) question.own_way.insert(question.own_way.end(), {"--memory-margin", "none"});
  if (!first && row.figure != step) question.around = {"decode.step_time.interval", "decode.step_time.estimate"};
  return question;
}

}  // namespace assay::validate
