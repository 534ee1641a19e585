// The search for a way to serve where a prefill or a decode step was measured.
#pragma once
#include "assay/predict/search/serving/search.h"

namespace assay::search {

/// Measured times that replace estimates: of a step and of a prefill, or the share of the peak that prefill reaches.
struct MeasuredTimes {
  std::optional<Seconds> step, prefill;
  std::optional<double> prefill_mfu;
  Flops prefill_flops_per_token;
  FlopsPerSecond peak;  ///< peak of a chip

  bool any() const { return step || prefill || prefill_mfu; }
};

/// A measured time replaces the estimate of the chosen point, all other estimates are scaled by the same factor, and
/// latency limits apply to the measured time. `known` as search_serving() takes it.
Result<ServingSearch> search_measured(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                      const ServingChoices& choices, const MeasuredTimes& measured,
                                      serving::KnownProfiles* known = nullptr);

}  // namespace assay::search
