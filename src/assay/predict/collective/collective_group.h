// The links that a collective may use. Allocates nothing, so a search can cost millions of groups; names and sources
// are in CollectiveLabels.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/cluster.h"
#include "assay/program/form/mesh.h"

namespace assay::collective {

/// A list of up to N values that does not allocate.
template <class T, std::size_t N>
class FixedList {
 public:
  static_assert(std::is_trivially_copyable_v<T>);  // unused slots need neither construction nor copying

  constexpr FixedList() {}
  constexpr FixedList(const FixedList& other) { *this = other; }
  constexpr FixedList& operator=(const FixedList& other) {
    std::copy_n(other.items_, size_ = other.size_, items_);
    return *this;
  }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + size_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }
  constexpr T& operator[](std::size_t i) { return items_[i]; }
  constexpr const T& operator[](std::size_t i) const { return items_[i]; }
  constexpr T& front() { return items_[0]; }
  constexpr const T& front() const { return items_[0]; }
  constexpr void push_back(const T& item) {
    if (size_ == N) throw InternalError("a fixed list is full");
    items_[size_++] = item;
  }
  friend constexpr bool operator==(const FixedList& a, const FixedList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  union {
    T items_[N];
  };
  std::size_t size_ = 0;
};

inline constexpr std::size_t max_torus_axes = 6;
inline constexpr std::size_t max_tree_levels = 8;

/// Each token goes to several experts, all equally likely; some models first select groups of experts.
struct Routing {
  double copies = 1, experts = 1, groups = 1, picked = 1;

  /// Share of the copies that enter a level's children: a token's experts in the same child need only one copy.
  double sent_share(double children) const;
};

/// Some axes of a torus, or the levels of a tree that are crossed; both if a collective spans slices.
struct CollectiveGroup {
  /// `share` groups interleave along the axis and use the same links: each gets 1/share of their bandwidth, and its
  /// members are `share` links apart. 1 for whole axes and for neighbours.
  struct TorusAxis {
    double size = 1;
    bool ring = false;
    double share = 1;
  };
  struct TreeLevel {
    double groups = 1;  ///< participants at this level that hold different shards
    double lanes = 1;   ///< chips whose links work in parallel for one copy of the array
    BytesPerSecond chip_bandwidth;
    bool reduces = false;    ///< the switches reduce
    std::uint8_t level = 0;  ///< number of the level in the cluster
  };
  FixedList<TorusAxis, max_torus_axes> axes;
  FixedList<TreeLevel, max_tree_levels> levels;
  BytesPerSecond link;
  Seconds hop_latency;   ///< latency of a torus link, or of a switch
  double devices = 1;    ///< participants of one collective
  bool one_way = false;  ///< rings carry data in one direction only
  double inner = 1;      ///< devices that hold other shards of the same array
  double imbalance = 1;  ///< ragged all-to-all only: bytes received by the busiest device over the mean
  Routing routing;       ///< all-to-all only

  bool torus() const { return levels.empty(); }
  /// Torus axes within slices, and the network between slices.
  bool mixed() const { return !axes.empty() && !levels.empty(); }
};
static_assert(std::is_trivially_destructible_v<CollectiveGroup>);

/// Names and sources of the numbers of a cluster's groups.
struct CollectiveLabels {
  struct Level {
    std::string name, source;
  };
  std::string link, hop_latency;
  std::vector<Level> levels;  ///< levels of the cluster
};
CollectiveLabels collective_labels(const hardware::Cluster& cluster);

/// Part of a torus axis: `size` chips, `stride` apart.
struct AxisPart {
  std::size_t axis = 0;
  std::int64_t size = 1, stride = 1;
  friend bool operator==(const AxisPart&, const AxisPart&) = default;
};

/// Adds the chips of some parts of one torus axis to a group. n chips that span s in a row share their links with
/// s / n - 1 other groups; they form a ring only if they span a ring, else a line.
void add_axis_parts(CollectiveGroup& group, std::int64_t axis_size, bool ring, const AxisPart* parts,
                    std::size_t count);

/// A group without axes or levels, with the latency and the link of the cluster.
Result<CollectiveGroup> bare_group(const hardware::Cluster& cluster, std::string_view where);

/// The group of a cluster for torus axes by name, X, Y=4 (four neighbours), Y=4:2 (every second chip), `slices`; or
/// nothing for all chips of a slice. `inner` devices hold other shards of the array and are closer together than the
/// group (switched networks).
Result<CollectiveGroup> make_group(const hardware::Cluster& cluster, const std::vector<std::string>& axes, double inner,
                                   std::string_view where);

/// Torus axes over which an array is neither exchanged nor sharded, and the group with these added.
struct IdleAxes {
  std::vector<std::string> names;
  CollectiveGroup wider;
};
/// `axes` are those of make_group, by which `group` was made; empty for all.
IdleAxes idle_axes(const hardware::Cluster& cluster, const std::vector<std::string>& axes, const CollectiveGroup& group,
                   const program::Mesh& sharded_by);

}  // namespace assay::collective
