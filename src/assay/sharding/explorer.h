// Best-first search over the shardings of one tensor, forwards from where it is or backwards from where it must be.
#pragma once
#include <vector>

#include "assay/sharding/space.h"

namespace assay {

/// What is known of a sharding: its cost, and the step that leads to (or, backwards, away from) its neighbour on the
/// path.
struct Reached {
  double cost = 0;
  int steps = -1;  ///< below 0: not reached yet
  int parent = -1;
  AxisSet axes = 0;
  StepKind kind = StepKind::slice;
  bool settled = false;
};

/// Settles shardings in order of cost. Forward space: cost from the start to here; otherwise from here to the start.
class Explorer {
 public:
  Explorer(ShardingSpace& space, const Tensor& tensor, const Sharding& start, const Prices& prices);

  /// The next cheapest sharding, or -1 when all are known or the cheapest costs more than `limit`, which never grows
  /// from call to call.
  int next(double limit);
  const Reached& at(int id) const { return reached_[static_cast<std::size_t>(id)]; }
  const Sharding& sharding(int id) const { return space_.sharding(id); }
  /// The number of a sharding in the space.
  int find(const Sharding& sharding) const { return space_.id(sharding); }
  bool settled(int id) const { return static_cast<std::size_t>(id) < reached_.size() && at(id).settled; }
  /// Cost of the cheapest sharding not settled yet.
  double frontier() const;

 private:
  struct Entry {
    double cost;
    int steps, id;
    /// std heaps keep the largest in front.
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.steps > b.steps;
    }
  };

  void expand(int id, double limit);
  void reach(int from, int to, StepKind kind, AxisSet axes, double price, double limit);
  double local(int id);

  ShardingSpace& space_;
  const Tensor& tensor_;
  const Prices& prices_;
  std::vector<Reached> reached_;
  std::vector<double> local_;  ///< bytes on each device; below 0: not computed yet
  std::vector<char> permuted_;
  std::vector<Entry> heap_;
};

}  // namespace assay
