// Groups of devices that communicate with each other, in all notations of XLA:
//   {{0,1},{2,3}}   [2,4]<=[8]   [4,2]<=[2,4]T(1,0)   mesh['X'=4,'Y'=2] {'X'}   {} for all
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/profile/hlo/cursor.h"

namespace assay::hlo {

/// The numbers 0 to n - 1 in order, as an array of `dims`, with its axes in the order `permutation`, read row by row.
struct Iota {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> permutation;  ///< empty: as they are

  std::int64_t size() const;
  std::vector<std::int64_t> values() const;
};
/// "[2,4]T(1,0)"
Result<Iota> read_iota(Cursor& in);

/// A named axis of a mesh.
using NamedAxis = std::pair<std::string, std::int64_t>;

struct ReplicaGroups {
  std::vector<std::vector<std::int64_t>> lists;  ///< empty: one group of all devices
  std::vector<NamedAxis> mesh;                   ///< where the text has names: all axes
  std::vector<std::string> axes;                 ///< and those within a group

  /// Devices of a group, of `devices` in the whole program.
  std::int64_t size(std::int64_t devices) const;
};

/// Most devices of a program that are listed one by one.
inline constexpr std::int64_t most_devices = 1 << 20;

Result<ReplicaGroups> parse_replica_groups(std::string_view text, std::string_view where);
/// {{0,1},{1,2}}: from, to.
Result<std::vector<std::pair<std::int64_t, std::int64_t>>> parse_pairs(std::string_view text, std::string_view where);

/// What a group is made of: `size` devices, `stride` apart.
struct StridedAxis {
  std::int64_t size = 1, stride = 1;
  friend bool operator==(const StridedAxis&, const StridedAxis&) = default;
};
/// The axes of the first group, the most minor first; empty where its devices are in no such order.
std::vector<StridedAxis> strided_axes(const ReplicaGroups& groups, std::int64_t devices);

}  // namespace assay::hlo
