#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "assay/predict/search/training/caches.h"

namespace assay::verbs::train {
namespace {

bool is_limited(const TrainQuery& query) { return query.software.named() && !query.software.plan.empty(); }

bool runs(const Result<search::TrainingSearch>& found) { return found && (!found->best.empty() || found->closest); }

/// What another strategy does differently, in a few words: "zb-v schedule, recompute products".
std::string difference_text(const training::Strategy& from, const training::Strategy& to) {
  std::vector<std::string> words;
  const lower::Parallelism &a = from.parallelism, &b = to.parallelism;
  const auto degree = [&](std::string_view name, std::int64_t before, std::int64_t after) {
    if (before != after) words.push_back(fmt::format("{} {}", name, after));
  };
  degree("dp", a.data, b.data);
  degree("fsdp", a.fsdp, b.fsdp);
  degree("tp", a.tensor, b.tensor);
  degree("cp", a.context, b.context);
  degree("ep", a.expert, b.expert);
  degree("pp", a.pipeline, b.pipeline);
  if (a.zero != b.zero) words.push_back(fmt::format("zero {}", b.zero));
  degree("micro-batch", from.micro_batch, to.micro_batch);
  if (b.pipeline > 1 && (from.schedule != to.schedule || from.interleave != to.interleave))
    words.push_back(fmt::format("schedule {}{}", clock::schedule_name(to.schedule),
                                to.interleave > 1 ? fmt::format(" x{}", to.interleave) : ""));
  if (from.recompute != to.recompute) words.push_back(fmt::format("recompute {}", lower::name(to.recompute)));
  if (from.offload != to.offload) words.push_back(fmt::format("offload {}", training::name(to.offload)));
  if (a.residual != b.residual || a.context_scheme != b.context_scheme || a.expert_over != b.expert_over)
    words.emplace_back("other shardings");
  if (words.empty()) words.emplace_back("another order of mesh axes");
  constexpr std::size_t few = 3;
  return words.size() <= few ? join(words, ", ") : strategy_text(to);
}

}  // namespace

Result<search::TrainingSearch> search_plans(TrainQuery& query, search::TrainingCaches& caches,
                                            const search::SearchLimits& limits) {
  Result<search::TrainingSearch> found = search::search_training(caches, query.choices, limits);
  if (runs(found) || !is_limited(query) || !std::isinf(limits.slowest.value())) return found;
  Result<search::TrainingSearch> open = search::search_training(caches, query.open_choices, limits);
  if (!runs(open)) {  // the reason is not the software
    query.choices = query.open_choices;
    return open;
  }
  const std::string why = fmt::format("{} can run no such strategy on {}", query.software.text(), query.cluster.text);
  if (query.software.binds())
    return fail("--software", why, "--software any searches the open space; `assay software NAME` lists its rules");
  widen(query, why);
  return open;
}

Result<std::optional<search::Candidate>> better_in_open_space(const SizedTraining& size) {
  const TrainQuery& query = size.query;
  const search::Candidate* shown = size.shown();
  if (!is_limited(query) || !shown) return std::optional<search::Candidate>();
  const Bytes capacity = query.cluster.chip.hbm().capacity.value;
  search::SearchLimits limits{capacity, 1, true, Seconds(HUGE_VAL), query.margin.budget};
  if (size.fits()) {
    const bool keeps = memory_verdict(query, shown->cost) == MemoryVerdict::fits;
    limits = {keeps ? query.margin.budget : capacity, 1, true, shown->cost.estimate};
  }
  std::optional<search::TrainingCaches> own;
  search::TrainingCaches& caches =
      size.caches ? *size.caches : own.emplace(query.question, query.sequence, query.cluster);
  const auto found = search::search_training(caches, query.open_choices, limits);
  if (progress.is_stopped()) return std::optional<search::Candidate>();
  if (!found) return tl::unexpected<Error>(found.error());
  if (found->best.empty()) return std::optional<search::Candidate>();
  return std::optional<search::Candidate>(found->best.front());
}

Result<void> add_open_space(const SizedTraining& size, report::Response& response) {
  const TrainQuery& query = size.query;
  if (!is_limited(query) || !size.shown()) return {};
  const search::Candidate& shown = *size.shown();
  ASSAY_TRY(better, better_in_open_space(size));
  if (progress.is_stopped()) return {};  // what was not searched through says nothing
  if (!size.fits()) {
    if (!better) return {};
    response.results.emplace_back("open_space", report::Members{{"step_time", better->cost.estimate},
                                                                {"strategy", strategy_text(better->strategy)}});
    response.headline += fmt::format("; --software any fits: {} per step with {}", human(better->cost.estimate),
                                     strategy_text(better->strategy));
    return {};
  }
  const search::Candidate& best = better ? *better : shown;
  const double gain = 1.0 - best.cost.estimate / shown.cost.estimate;
  response.results.emplace_back(
      "open_space",
      report::Members{{"step_time", best.cost.estimate}, {"gain", gain}, {"strategy", strategy_text(best.strategy)}});
  constexpr double noticeable = 0.001;
  if (gain >= noticeable)
    response.notes.push_back(fmt::format("the open space would gain {:.1f} %: {} (--software any)", 100.0 * gain,
                                         difference_text(shown.strategy, best.strategy)));
  return {};
}

}  // namespace assay::verbs::train
