// Sharding: which mesh axes split which dimension of a tensor, and over which axes it is still a partial sum.
// Invariants: an axis appears at most once in a tensor, in one dimension or as unreduced; the order of axes in a
// dimension is the traversal order, major first.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/units.h"
#include "assay/program/form/mesh.h"

namespace assay::program {

inline constexpr std::size_t max_tensor_rank = 8;

/// A set of mesh axes, one bit each.
using AxisSet = std::uint32_t;
constexpr AxisSet axis_bit(int axis) { return AxisSet{1} << axis; }

/// An ordered list of up to eight axes in one word: their set in the low byte, above it three bits per axis, with the
/// last (minor-most) axis in the lowest bits.
class AxisList {
 public:
  constexpr AxisList() = default;
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int last() const { return static_cast<int>(bits_ >> 8 & 7u); }
  constexpr AxisList pushed(int axis) const {
    return AxisList((bits_ & ~255u) << 3 | static_cast<std::uint32_t>(axis) << 8 | set() | axis_bit(axis));
  }
  constexpr AxisList popped() const { return AxisList((bits_ >> 3 & ~255u) | (set() & ~axis_bit(last()))); }
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr AxisSet set() const { return bits_ & 255u; }
  constexpr bool has(int axis) const { return (set() & axis_bit(axis)) != 0; }
  /// All axes, major first.
  std::vector<int> axes() const {
    std::vector<int> all;
    for (AxisList rest = *this; !rest.empty(); rest = rest.popped()) all.insert(all.begin(), rest.last());
    return all;
  }
  friend constexpr bool operator==(AxisList, AxisList) = default;

 private:
  static_assert(max_mesh_axes <= 8);
  constexpr explicit AxisList(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

/// The sharding of one tensor: an axis list per dimension and the axes over which it holds partial sums.
struct Sharding {
  std::array<AxisList, max_tensor_rank> dims{};
  AxisSet unreduced = 0;

  constexpr AxisSet split_axes() const {
    AxisSet all = 0;
    for (const AxisList list : dims) all |= list.set();
    return all;
  }
  constexpr AxisSet used_axes() const { return split_axes() | unreduced; }
  friend constexpr bool operator==(const Sharding& a, const Sharding& b) {
    if (a.unreduced != b.unreduced) return false;
    // Element by element: a wide load right after narrow stores would stall.
    for (std::size_t i = 0; i < max_tensor_rank; ++i)
      if (a.dims[i] != b.dims[i]) return false;
    return true;
  }
};

/// A dimension of a tensor: a name (or the number as text) and its global size.
struct Dimension {
  std::string name;
  std::int64_t size = 1;
};

struct Tensor {
  std::string name;
  std::vector<Dimension> dims;
  Dtype dtype = Dtype::bf16;
  Sharding sharding;
};

/// Ways a set of axes splits something.
double shard_count(const Mesh& mesh, AxisSet axes);
/// Elements of one dimension on one device; sizes that do not divide are padded up.
std::int64_t local_size(const Mesh& mesh, std::int64_t size, AxisList axes);
std::vector<std::int64_t> local_shape(const Mesh& mesh, const Tensor& tensor);
Bytes local_bytes(const Mesh& mesh, const Tensor& tensor);
Bytes global_bytes(const Tensor& tensor);
/// Devices that hold the same shard.
std::int64_t replication(const Mesh& mesh, const Tensor& tensor);
/// True if some dimension does not divide by its axes, so that shards are padded.
bool is_padded(const Mesh& mesh, const Tensor& tensor);

/// A set as a list: in the order of one of those known, else in that of the mesh.
AxisList ordered(const Mesh& mesh, AxisSet set, const std::vector<AxisList>& known);

/// Axes of a dimension, major first, or of a set: letters next to each other, words with a plus: "YZ", "dp+fsdp". All
/// parts X(1), X(2), ... of an axis in order are written as the axis.
std::string axes_text(const Mesh& mesh, AxisList axes);
std::string axes_text(const Mesh& mesh, AxisSet axes);
/// "A[I_X, J_YZ] {U_W}", "In[B_dp+fsdp, D_tp]"
std::string tensor_text(const Mesh& mesh, const Tensor& tensor);

}  // namespace assay::program
