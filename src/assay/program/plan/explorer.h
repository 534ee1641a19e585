// Best-first search over the shardings of one tensor, forwards from its current sharding or backwards from its target.
#pragma once
#include <limits>
#include <vector>

#include "assay/program/plan/space.h"

namespace assay::plan {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// How a sharding was reached: the step that leads to (or, backwards, away from) its neighbour on the path.
struct Reached {
  int steps = -1;
  int parent = -1;
  program::AxisSet axes = 0;
  MoveKind kind;
};

/// The size of a tensor, as far as a search depends on it. Proportional: if all sizes divide, only the bytes matter;
/// costs are then per byte of the whole tensor.
struct TensorExtent {
  std::array<std::int64_t, program::max_tensor_rank> sizes{};
  Dtype dtype = Dtype::bf16;
  bool proportional = false;

  friend bool operator==(const TensorExtent&, const TensorExtent&) = default;
};

/// Settles shardings in order of cost. Forward space: cost from the start to here; otherwise from here to the start.
class Explorer {
 public:
  /// `once`: limits only shrink from call to call, so more expensive shardings need not be remembered.
  Explorer(ShardingSpace& space, const TensorExtent& extent, const program::Sharding& start, const Prices& prices,
           bool once);

  /// Settles the next cheapest sharding; false when all are known or the cheapest costs more than `limit`.
  bool next(double limit);
  /// Shardings in the order in which they were settled.
  const std::vector<int>& order() const { return order_; }
  double cost(int id) const { return cost_[static_cast<std::size_t>(id)]; }
  const Reached& at(int id) const { return reached_[static_cast<std::size_t>(id)]; }
  const program::Sharding& sharding(int id) const { return space_->sharding(id); }
  /// The number of a sharding in the space.
  int find(const program::Sharding& sharding) const { return space_->id(sharding); }
  bool settled(int id) const {
    return static_cast<std::size_t>(id) < settled_.size() && settled_[static_cast<std::size_t>(id)] != 0;
  }
  /// Cost of the cheapest sharding not settled yet.
  double frontier() const { return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().cost; }

  struct Entry {
    double cost;
    int steps, id;
    /// std heaps keep the largest in front. No two compare equal: what a heap does with those depends on the library.
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.steps != b.steps ? a.steps > b.steps : a.id > b.id;
    }
  };

 private:
  void grow();
  void expand(int id, double limit);
  void reach(int from, int to, MoveKind kind, program::AxisSet axes, double cost);
  double local(int id);

  ShardingSpace* space_;
  const Prices* prices_;
  TensorExtent extent_;
  bool once_;
  std::vector<int> order_;
  std::vector<double> cost_;  ///< infinite until reached
  std::vector<Reached> reached_;
  std::vector<double> local_;  ///< bytes on each device; below 0: not computed yet
  std::vector<char> settled_, permuted_;
  std::vector<Entry> heap_;
};

}  // namespace assay::plan
