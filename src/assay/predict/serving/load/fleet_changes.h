// How the number of replicas changes while a fleet serves: replicas that are lost, the time a new one takes to start,
// and scaling by load.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "assay/base/units.h"

namespace assay::serving {

/// From the order of a replica until it takes requests.
struct StartUp {
  Seconds node, weights, graphs;
  Seconds time() const { return node + weights + graphs; }
};

/// Scaling by a measure: as many replicas as bring that of each to the target, more at once, fewer when that was enough
/// for some time. catalogue/fleets/autoscaling.toml has the times.
struct ScaleRule {
  enum class By {
    queue,  ///< requests that wait
    use     ///< requests over places of the batch
  };
  By by = By::queue;
  double target = 1;
  std::int64_t least = 1, most = 1;
  Seconds every, down_after;
  double tolerance = 0;  ///< a number of replicas this share off stays
};

/// What replaces and adds replicas in a replay.
struct FleetChangePlan {
  StartUp start;
  std::vector<Seconds> lost_at;         ///< moments at which some replica is lost
  std::optional<Seconds> lost_between;  ///< mean time until a replica is lost, exponential
  std::optional<ScaleRule> scale;
  bool is_fixed() const { return lost_at.empty() && !lost_between && !scale; }
};

/// What happened to a replica.
struct FleetChange {
  enum class What { ordered, ready, lost, drains, stopped };
  double at = 0;
  std::int64_t replica = 0;
  What what = What::ordered;
};

/// Remembers what was wanted lately.
class Scaler {
 public:
  explicit Scaler(const ScaleRule& rule) : rule_(rule) {}
  /// The replicas that there should be, where `there` are or start, and this is waiting or in places over all of them.
  std::int64_t wanted(double now, std::int64_t there, double load);

 private:
  ScaleRule rule_;
  std::deque<std::pair<double, std::int64_t>> lately_;
};

}  // namespace assay::serving
