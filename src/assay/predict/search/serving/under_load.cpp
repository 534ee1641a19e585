#include "assay/predict/search/serving/under_load.h"

#include <algorithm>
#include <cmath>

namespace assay::search {
namespace {

/// The largest batch of each sharding on the front: it serves the most, and decodes fewer if fewer requests arrive.
std::vector<const serving::ServingPoint*> largest_batches(const std::vector<serving::ServingPoint>& front) {
  std::vector<const serving::ServingPoint*> out;
  for (const serving::ServingPoint& point : front) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const serving::ServingPoint* p) { return p->strategy == point.strategy; });
    if (same == out.end())
      out.push_back(&point);
    else if (point.batch > (*same)->batch)
      *same = &point;
  }
  return out;
}

}  // namespace

bool meets_limits(const serving::LoadedTimes& times, const ServingChoices& choices) {
  return times.stable && times.first_token.p99 <= choices.first_token.value_or(times.first_token.p99) &&
         times.per_token.p99 <= choices.per_token.value_or(times.per_token.p99);
}

Result<serving::ServingPoint> best_under_load(const serving::ServingQuestion& question,
                                              const hardware::Cluster& cluster, const ServingSearch& found,
                                              const ServingChoices& choices, Hertz rate) {
  const serving::ServingPoint* best = found.best ? &*found.best : &*found.closest;
  if (choices.batch || found.front.empty()) return *best;
  const bool limited = choices.first_token || choices.per_token;
  constexpr Seconds no_limit(HUGE_VAL);
  Seconds least = no_limit;
  Hertz most(-1.0);
  bool found_one = false;
  for (const serving::ServingPoint* point : largest_batches(found.front)) {
    ASSAY_TRY(server, serving::loaded_server(question, cluster, *point));
    const serving::LoadedTimes times = serving::loaded_times(server, rate / server.replicas);
    const bool meets = meets_limits(times, choices);
    if (found_one && !meets) continue;
    if (meets) {
      if (found_one && times.last_token >= least) continue;
      found_one = true;
      least = times.last_token;
    } else {
      const Hertz serves =
          server.replicas * (limited ? serving::largest_rate(server, choices.first_token.value_or(no_limit),
                                                             choices.per_token.value_or(no_limit))
                                     : times.saturation);
      if (serves <= most) continue;
      most = serves;
    }
    best = point;
  }
  return *best;
}

}  // namespace assay::search
