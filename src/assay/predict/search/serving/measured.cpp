#include "assay/predict/search/serving/measured.h"

#include <utility>

namespace assay::search {
namespace {

/// A measured prefill of one prompt on each replica, or of one at a share of the peak.
std::optional<Seconds> measured_prefill(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                        const MeasuredTimes& measured, std::int64_t replicas) {
  if (measured.prefill || !measured.prefill_mfu) return measured.prefill;
  const Flops flops = measured.prefill_flops_per_token * static_cast<double>(serving::fresh_prompt(question));
  const double chips = static_cast<double>(cluster.chips()) / static_cast<double>(replicas);
  return flops / (chips * measured.peak * *measured.prefill_mfu);
}

/// A measured time does not depend on the sharding, but a share of the peak takes longer the fewer chips a replica has:
/// then the best of all numbers of replicas that meet the time to first token.
Result<ServingSearch> search_replicas(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                      ServingChoices choices, const MeasuredTimes& measured,
                                      serving::KnownProfiles* known) {
  const std::optional<Seconds> limit = choices.first_token;
  if (measured.step) choices.per_token.reset();
  if (measured.prefill || measured.prefill_mfu) choices.first_token.reset();
  ASSAY_TRY(found, search_serving(question, cluster, choices, ServingGoal::best, known));
  const auto late = [&](std::int64_t replicas) {
    return measured_prefill(question, cluster, measured, replicas).value_or(Seconds()) > *limit;
  };
  const bool by_mfu = measured.prefill_mfu && !measured.prefill;
  if (!limit || !by_mfu || choices.data || !found.best || !late(found.best->strategy.data)) return found;
  std::optional<ServingSearch> best;
  for (std::int64_t replicas = 1; replicas <= cluster.chips() && !late(replicas); ++replicas) {
    if (cluster.chips() % replicas != 0) continue;
    choices.data = replicas;
    ASSAY_TRY(other, search_serving(question, cluster, choices, ServingGoal::best, known));
    if (other.best && (!best || other.best->served.tokens_per_second > best->best->served.tokens_per_second))
      best = std::move(other);
  }
  return best ? std::move(*best) : std::move(found);
}

}  // namespace

Result<ServingSearch> search_measured(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                      const ServingChoices& choices, const MeasuredTimes& measured,
                                      serving::KnownProfiles* known) {
  ASSAY_TRY(found, search_replicas(question, cluster, choices, measured, known));
  std::optional<serving::ServingPoint>& taken = found.best ? found.best : found.closest;
  if (!taken || !measured.any()) return found;
  const auto first = measured_prefill(question, cluster, measured, taken->strategy.data);
  const Seconds step_time = measured.step.value_or(taken->decode.estimate),
                prefill_time = first.value_or(taken->prefill.estimate);
  const double step = step_time / taken->decode.estimate, prefill = prefill_time / taken->prefill.estimate;
  const auto scale = [&](serving::ServingPoint& point) {
    point.scale(step, prefill);
    if (first) point.prompts = static_cast<double>(point.strategy.data);
  };
  for (std::optional<serving::ServingPoint>* point :
       {&found.best, &found.closest, &found.fastest_token, &found.fastest_prompt})
    if (*point) scale(**point);
  for (serving::ServingPoint& point : found.front) scale(point);
  if (found.most_prompts) found.most_prompts->time.estimate *= prefill;
  // Restores the measured times to the last digit.
  taken->decode.estimate = step_time;
  taken->prefill.estimate = prefill_time;
  if (found.best &&
      (step_time > choices.per_token.value_or(step_time) || prefill_time > choices.first_token.value_or(prefill_time)))
    found.closest = std::exchange(found.best, std::nullopt);
  return found;
}

}  // namespace assay::search
