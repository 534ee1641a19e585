// Replicas that only work on prompts, and the links over which caches leave them.
#pragma once
#include <queue>
#include <unordered_map>
#include <vector>

#include "assay/predict/serving/load/prefix_cache.h"
#include "assay/predict/serving/load/replica.h"

namespace assay::serving {

struct PrefillPlan {
  const LoadedServer* server = nullptr;
  std::int64_t replicas = 1;
  Bytes per_token;      ///< of cache, over all chips of the replica that decodes
  BytesPerSecond link;  ///< out of a replica, or into one that decodes, whichever is slower
};

/// Takes requests in the order of their arrival and hands them on when their caches are with the servers that decode.
class PrefillPool {
 public:
  /// `block`: tokens of blocks that prompts share; 0 where they share none. The plan has to outlive it.
  PrefillPool(const PrefillPlan& plan, std::int64_t block);
  PrefillPool(const PrefillPool&) = delete;

  bool holds(const FleetRequest& request) const { return model_.holds(request.prompt, 1); }
  /// To the replica with the fewest prompts.
  void add(const FleetRequest& request, std::vector<std::int64_t> path);
  /// Takes all steps that begin before a moment.
  void advance(double until);
  /// When the next cache arrives, of those prompts whose last step has been taken.
  double next() const { return handed_.empty() ? Traffic::never : handed_.top().prefilled->here; }
  FleetRequest take();

  double busy() const { return busy_; }        ///< seconds that replicas worked, all together
  double sending() const { return sending_; }  ///< and that links did
  std::int64_t held() const;                   ///< pages that are still held
  std::int64_t waiting() const;

 private:
  void ended(const ServedRequest& one);

  struct Later {
    bool operator()(const FleetRequest& a, const FleetRequest& b) const {
      return a.prefilled->here != b.prefilled->here ? a.prefilled->here > b.prefilled->here : a.id > b.id;
    }
  };
  const PrefillPlan& plan_;
  std::int64_t block_;
  ReplicaModel model_;
  Replica::Watchers watchers_;
  std::vector<Replica> replicas_;
  std::vector<double> link_free_;                         ///< of each replica
  std::unordered_map<std::int64_t, FleetRequest> asked_;  ///< by number, with its output
  std::priority_queue<FleetRequest, std::vector<FleetRequest>, Later> handed_;
  std::size_t turn_ = 0;
  double busy_ = 0, sending_ = 0;
};

}  // namespace assay::serving
