// The requests that reach a fleet, in the order of their arrival: those of a trace, made ones at a rate, or those of
// clients that wait for an answer before they ask again.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <vector>

#include "assay/predict/serving/load/prefix_cache.h"
#include "assay/predict/serving/load/random.h"
#include "assay/predict/serving/load/request_trace.h"

namespace assay::serving {

/// What is asked, and when. Times of requests are in seconds from the start.
struct TrafficPlan {
  const RequestTrace* trace =
      nullptr;                ///< lengths, sessions and blocks in its order, and times without a rate or clients
  Lengths prompts, outputs;   ///< without a trace: drawn from these
  std::optional<Hertz> rate;  ///< arrivals at random
  double burstiness = 1;      ///< shape of the gamma distribution of the times between them; 1: Poisson
  /// Each asks again when it has its answer. Where a trace says how long it thought, it goes through a session so, and
  /// then takes the next one.
  std::optional<std::int64_t> clients;
  Seconds think;              ///< mean of the exponential time before that
  double scale = 1;           ///< so many times as many requests in the same time, or clients
  double stretch = 1;         ///< all times between requests are so many times as long
  std::int64_t requests = 0;  ///< in all; 0: those of the trace
  std::uint64_t seed = 1;
};

struct FleetRequest {
  std::int64_t id = 0;  ///< in the order of arrival
  double arrival = 0;
  std::int64_t prompt = 1, output = 1;
  std::int64_t session = -1;
  std::int64_t traced = -1;  ///< its place in the trace
  std::int64_t copy = 0;     ///< of the trace: copies share no sessions and no blocks
  /// Where another server worked on its prompt: when its first token is with the client, and its cache is here.
  struct Prefilled {
    double first = 0, here = 0;
    double made = 0;          ///< the last step of its prompt ended
    std::int64_t cached = 0;  ///< tokens of its prompt that were cached there
  };
  std::optional<Prefilled> prefilled{};
};

/// Keeps no more than the requests of a trace between two arrivals, and the clients.
class Traffic {
 public:
  /// The plan has to outlive it.
  explicit Traffic(const TrafficPlan& plan);

  static constexpr double never = std::numeric_limits<double>::infinity();
  /// When the next request arrives; `never` after the last, and where all clients wait.
  double next() const { return coming_.empty() ? never : coming_.top().arrival; }
  FleetRequest take();
  /// A client has its answer.
  void ended(const FleetRequest& request, double at);
  bool waits_for_answers() const { return plan_.clients.has_value(); }

 private:
  struct Later {
    bool operator()(const FleetRequest& a, const FleetRequest& b) const {
      return a.arrival != b.arrival ? a.arrival > b.arrival : a.id > b.id;
    }
  };
  void prepare();
  void add(double arrival, std::int64_t traced = -1, std::int64_t copy = 0);
  void next_of_client(double at);
  double thought(double at);
  void find_sessions();
  void fill_body(FleetRequest& request);

  const TrafficPlan& plan_;
  Random arrivals_, bodies_;
  double gap_ = 1, at_ = 0;
  std::int64_t most_ = 0, made_ = 0, taken_ = 0;
  std::size_t traced_ = 0;                       ///< requests of the trace whose copies are made
  std::vector<std::int64_t> heads_, following_;  ///< first requests of sessions, and the next one of each; -1: none
  std::int64_t sessions_ = 0;                    ///< that were begun
  std::priority_queue<FleetRequest, std::vector<FleetRequest>, Later> coming_;
};

}  // namespace assay::serving
