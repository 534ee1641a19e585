// A fleet of equal replicas that serves traffic, event by event: which replica a request goes to, and what all of them
// yield.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "assay/predict/serving/load/bootstrap.h"
#include "assay/predict/serving/load/fleet_changes.h"
#include "assay/predict/serving/load/load_record.h"
#include "assay/predict/serving/load/prefill_pool.h"
#include "assay/predict/serving/load/prefix_cache.h"
#include "assay/predict/serving/load/replica.h"

namespace assay::serving {

enum class FleetRouting {
  random,
  in_turn,
  least_loaded,  ///< to the replica with the fewest requests
  by_session,    ///< requests of a session to the same replica, others in turn
  by_prefix      ///< to the replica that has most of the prompt, if that is over half of it; else the least loaded
};

/// What a request may wait, and the share of all requests that has to be served so.
struct FleetLimits {
  std::optional<Seconds> first_token, per_token;
  double share = 0.99;
  bool given() const { return first_token || per_token; }
  bool met_by(const ServedRequest& request) const;
};

struct FleetPlan {
  const LoadedServer* server = nullptr;
  std::int64_t replicas = 1;  ///< at most, where their number changes
  FleetChangePlan changes{};
  std::optional<PrefillPlan> prefill{};  ///< replicas of their own work on prompts; not with clients, nor with changes
  FleetRouting routing = FleetRouting::least_loaded;
  FleetLimits limits{};
  const PrefixTrie* prefixes = nullptr;  ///< of the trace, where its prompts share blocks
  std::int64_t context = 0;              ///< tokens that the model takes; longer requests are refused; 0: any
  std::optional<std::int64_t> kept{};    ///< the number of a request to be kept whole
  bool may_stop = false;                 ///< as soon as the limits cannot be met any more
  bool has_intervals = false;            ///< says how far percentiles may be off
  std::function<void(const ServedRequest&)> each{};
  std::function<void(const ReplicaSpan&)> each_span{};
};

struct FleetReplay {
  std::int64_t requests = 0, refused = 0, good = 0, preemptions = 0, evicted_blocks = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;  ///< of served requests
  Quantiles first_token, per_token, whole;
  double last_arrival = 0, end = 0;  ///< seconds
  std::int64_t waiting_at_last_arrival = 0;
  double busy = 0;                          ///< seconds that replicas worked, all together
  std::optional<ServedRequest> first_miss;  ///< by the moment it was late
  double missed_at = 0;                     ///< that moment
  std::optional<ServedRequest> kept;
  std::int64_t held_blocks = 0;  ///< pages that are still held at the end: none
  bool stopped = false;          ///< the limits cannot be met
  enum Series { arriving, waiting, running, cached_pages, ready, all_series };
  TimeSeries series{all_series};
  enum Blocked { first_token_counts, per_token_counts, whole_counts, all_counts };
  std::optional<BlockedCounts> counts;  ///< of the three times

  std::vector<FleetChange> changes;      ///< the first thousand
  std::int64_t lost = 0, moved = 0;      ///< replicas, and requests that had to go to another one
  std::int64_t fewest = 0, most = 0;     ///< replicas that were ready
  double prefill_busy = 0, sending = 0;  ///< seconds that replicas for prompts worked, and that they sent caches
  double paid = 0;                       ///< seconds of replicas from their order to their end, all together

  std::int64_t served() const { return requests - refused; }
  double good_share() const { return requests == 0 ? 1.0 : static_cast<double>(good) / static_cast<double>(requests); }
  double hit_rate() const {
    return prompt_tokens == 0 ? 0.0 : static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
  }
  double per_second(double count) const { return end > 0.0 ? count / end : 0.0; }
  Hertz served_per_second() const { return Hertz(per_second(static_cast<double>(served()))); }
  Hertz good_per_second() const { return Hertz(per_second(static_cast<double>(good))); }
  TokensPerSecond tokens_per_second() const { return Tokens(per_second(static_cast<double>(output_tokens))) / 1_s; }
};

/// Plays the traffic until its last request has ended.
FleetReplay replay_fleet(const FleetPlan& plan, const TrafficPlan& traffic);

/// Whether the limits are met; without limits, whether the queue is no longer in the end than a batch, or a twentieth
/// of all requests.
bool holds(const FleetPlan& plan, const FleetReplay& replay);

}  // namespace assay::serving
