// Best-first exploration of the shardings of one tensor, forwards from where it is or backwards from where it must be.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/sharding/planner.h"

namespace assay {

/// A reached sharding: its cost, and the step that leads to (or, backwards, away from) its neighbour on the path.
struct Reached {
  Sharding sharding;
  double cost = 0;
  int steps = 0;
  int parent = -1;
  StepKind kind = StepKind::slice;
  AxisSet axes = 0;
};

/// Settles shardings in order of cost. `forward`: cost from the start to here; otherwise: from here to the start.
class Explorer {
 public:
  Explorer(const Mesh& mesh, const Tensor& tensor, const Sharding& start, bool forward, const Prices& prices);

  /// The next cheapest sharding, or -1 when all are known or the cheapest costs more than `limit`, which never grows
  /// from call to call.
  int next(double limit);
  const Reached& at(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  int find(const Sharding& sharding) const;
  bool settled(int id) const { return done_[static_cast<std::size_t>(id)] != 0; }
  /// Cost of the cheapest sharding not settled yet.
  double frontier() const;

 private:
  struct Entry {
    double cost;
    int steps;
    int id;
  };

  void expand(int id);
  void expand_gathers(int id, std::size_t dim, Sharding at, AxisSet moved);
  void expand_scatters(int id, std::size_t dim, Sharding at, AxisSet moved);
  void permute_all(int id);
  void reach(int from, const Sharding& to, StepKind kind, AxisSet axes);
  Bytes local(const Sharding& sharding) const;
  std::size_t slot(const Sharding& sharding) const;
  void push(double cost, int steps, int id);

  const Mesh& mesh_;
  const Tensor& tensor_;
  const Prices& prices_;
  bool forward_;
  AxisSet all_axes_ = 0;
  double limit_ = 0;                 ///< of the current expansion; dearer neighbours are not recorded
  std::size_t rank_;
  std::vector<double> ways_;         ///< shards of every axis set
  std::array<double, max_tensor_rank> sizes_{};
  double element_ = 0;               ///< bytes
  std::vector<Sharding> permuted_;   ///< scratch
  std::vector<Reached> nodes_;
  std::vector<char> done_;
  std::vector<char> class_done_;     ///< permutations of this sharding are recorded
  std::vector<Entry> heap_;
  std::vector<int> table_;  ///< open addressing, -1 is free
};

}  // namespace assay
