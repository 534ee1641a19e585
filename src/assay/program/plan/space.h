// The space of shardings of a tensor of some rank on a mesh: a graph whose edges are single steps. It grows where
// searches go and is kept, so that later plans on the same mesh only walk it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "assay/program/plan/planner.h"

namespace assay::plan {

/// A hash that depends on one more value.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  const std::uint64_t product = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return product ^ product >> 29;
}

/// A step to another sharding. Forwards it runs from here to there, backwards from there to here.
struct SpaceEdge {
  int to = -1;
  MoveKind kind;
  std::uint8_t dim = 0;  ///< dimension of a slice
  program::AxisSet axes = 0;
};

class ShardingSpace {
 public:
  /// `contains` leaves shardings out; all are in the space without it.
  ShardingSpace(const program::Mesh& mesh, std::size_t rank, bool forward,
                std::function<bool(const program::Sharding&)> contains = {});

  int id(const program::Sharding& sharding);
  const program::Sharding& sharding(int id) const { return nodes_[index(id)].sharding; }
  int size() const { return static_cast<int>(nodes_.size()); }
  std::size_t rank() const { return rank_; }
  bool forward() const { return forward_; }

  /// All steps except permutations.
  const std::vector<SpaceEdge>& edges(int id) {
    if (!nodes_[index(id)].expanded) expand(id);
    return edges_[index(id)];
  }
  /// Shardings with the same local shapes, including this one: one permutation of devices leads to each.
  const std::vector<int>& permutations(int id);
  /// The axes that split some dimension.
  program::AxisSet split_axes(int id) const { return nodes_[index(id)].split; }
  /// Shards along a dimension.
  double ways(int id, std::size_t dim) const { return nodes_[index(id)].ways[dim]; }

 private:
  struct Node {
    program::Sharding sharding;
    std::array<double, program::max_tensor_rank> ways{};
    program::AxisSet split = 0;
    int group = -1;  ///< number of its group of permutations
    bool expanded = false;
  };

  struct Slot {
    std::uint64_t key = 0;
    int id = -1;  ///< -1: free
  };

  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  std::uint64_t key(const program::Sharding& sharding) const;
  std::size_t slot(std::uint64_t key) const;
  void expand(int from);
  void expand_gathers(int from, std::size_t dim, program::Sharding at, program::AxisSet moved);
  void expand_scatters(int from, std::size_t dim, program::Sharding at, program::AxisSet moved);
  void add(int from, const program::Sharding& to, MoveKind kind, program::AxisSet axes, std::size_t dim = 0);

  const program::Mesh mesh_;
  std::function<bool(const program::Sharding&)> contains_;
  std::size_t rank_;
  bool forward_;
  program::AxisSet all_axes_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::vector<SpaceEdge>> edges_;
  std::vector<std::vector<int>> groups_;
  std::vector<Slot> table_ = std::vector<Slot>(256);  ///< open addressing
};

}  // namespace assay::plan
