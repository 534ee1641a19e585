#include "assay/search/serving/under_load.h"

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
  return times.stable && times.first_token.p99 <= choices.first_token.value_or(HUGE_VAL) &&
         times.per_token.p99 <= choices.per_token.value_or(HUGE_VAL);
}

Result<serving::ServingPoint> best_under_load(const serving::ServingQuestion& question,
                                              const hardware::Cluster& cluster, const ServingSearch& found,
                                              const ServingChoices& choices, const serving::LoadChoices& load,
                                              double rate) {
  const serving::ServingPoint* best = found.best ? &*found.best : &*found.closest;
  if (choices.batch || found.front.empty()) return *best;
  double least = HUGE_VAL, most = 0.0;
  int best_rank = -1;
  for (const serving::ServingPoint* point : largest_batches(found.front)) {
    ASSAY_TRY(server, serving::loaded_server(question, cluster, *point, load));
    const serving::LoadedTimes times = serving::loaded_times(server, rate / server.replicas);
    const int rank = meets_limits(times, choices) ? 2 : times.stable ? 1 : 0;
    const double seconds = times.stable ? times.last_token : HUGE_VAL;
    const double saturation = times.saturation * server.replicas;
    const bool better = rank > best_rank || (rank == best_rank && (rank == 0 ? saturation > most : seconds < least));
    if (!better) continue;
    best = point;
    best_rank = rank;
    least = seconds;
    most = saturation;
  }
  return *best;
}

}  // namespace assay::search
