// Which device holds which elements of a sharded tensor; cuts arrays into shards and reassembles them.
// Invariants: the axes of a dimension split it in turn, major first, each into equal blocks rounded up, so
// that an inner axis always splits the block of the outer ones; positions beyond the end are padding and hold zeros.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/engine/array.h"
#include "assay/program/form/mesh.h"
#include "assay/program/form/sharding.h"

namespace assay::engine {

/// A position on each axis of a mesh.
using Coordinates = std::vector<std::int64_t>;
Coordinates coordinates(const program::Mesh& mesh, std::int64_t device);
/// Devices are numbered with the last axis innermost.
std::int64_t device_at(const program::Mesh& mesh, const Coordinates& at);

/// The part of one dimension on one device: `count` elements from `start`, padded to `size`.
struct Extent {
  std::int64_t start = 0, count = 0, size = 0;
};
Extent extent_on(const program::Mesh& mesh, std::int64_t size, program::AxisList axes, const Coordinates& at);
std::vector<Extent> extents_on(const program::Mesh& mesh, const program::Tensor& tensor, const Coordinates& at);

/// The axes of a set in the order of the mesh.
std::vector<int> axes_of(program::AxisSet set);
/// The index among the shards of some axes, major first: 0 if there are none.
std::int64_t shard_index(const program::Mesh& mesh, const std::vector<int>& axes, const Coordinates& at);

/// One local array per device.
using Shards = std::vector<Array>;

Shape global_shape(const program::Tensor& tensor);

/// Cuts a global array. Over unreduced axes each device gets a random addend; the addends sum to the array.
Shards distribute(const Array& global, const program::Tensor& tensor, const program::Mesh& mesh,
                  std::uint64_t seed = 0);

/// The global array, and by how much devices that should hold the same values disagree (or padding differs from zero).
struct Collected {
  Array array;
  double disagreement = 0;
};
Collected collect(const Shards& shards, const program::Tensor& tensor, const program::Mesh& mesh);

}  // namespace assay::engine
