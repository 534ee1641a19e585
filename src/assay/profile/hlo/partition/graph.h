// A program of whole arrays as operations over values: calls inlined, tuples as single values, loops and branches as
// regions.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/profile/hlo/mesh.h"
#include "assay/program/form/sharding.h"

namespace assay::hlo {

/// Values, operations and regions refer to each other by number.
constexpr std::size_t at(int number) { return static_cast<std::size_t>(number); }

/// A list of axes without some of them.
program::AxisList without_axes(program::AxisList list, program::AxisSet gone);

/// An array that an operation makes. In a manual computation it has the sizes that a device sees along manual axes.
struct PartitionValue {
  Shape shape;
  int operation = -1;
  program::AxisSet manual = 0;  ///< axes that split it by hand, so that nobody else may
};

/// One instruction at one place that it runs at.
struct PartitionOperation {
  enum class Kind : std::uint8_t { plain, parameter, constraint, enter, leave, loop, branch };
  Kind kind = Kind::plain;
  const Instruction* at = nullptr;
  std::vector<int> in, out;  ///< values
  std::vector<int> regions;  ///< of a loop its condition and its body, of a conditional its branches
  int number = -1;           ///< of a parameter of the program, of what enters or leaves a manual computation
  double trips = 1.0;        ///< of a loop; 1 where they are not known
};

struct PartitionRegion {
  std::vector<int> operations;
  std::vector<int> parameters, results;  ///< values
};

struct PartitionGraph {
  std::vector<PartitionValue> values;
  std::vector<PartitionOperation> operations;
  std::vector<PartitionRegion> regions;  ///< the first one is the program; those inside of another come after it

  const Shape& shape(int value) const { return values[static_cast<std::size_t>(value)].shape; }
};

/// A mesh whose axes are so short that each sharding of the program divides dimensions by whole ones.
struct PartitionMesh {
  program::Mesh mesh;
  std::vector<std::int64_t> strides;    ///< of each axis, in device numbers
  std::vector<NamedAxis> named;         ///< the axes as the program names them
  std::vector<program::AxisSet> parts;  ///< what each of them consists of

  /// The axes that one step of device numbers covers, major first.
  program::AxisList covered(const StridedAxis& step) const;
  program::AxisSet axes_of(std::string_view names) const;  ///< "X", "Y" in quotes
};

Result<PartitionMesh> partition_mesh(const Module& module);
/// A sharding of the program as one of the mesh; nothing for one that says nothing.
program::Sharding placed_sharding(const PartitionMesh& mesh, const Sharding& sharding, std::size_t rank);
/// The shardings of a list: [<@mesh, [{"X"}]>, <@mesh, [{}]>].
Result<std::vector<Sharding>> sharding_list(const Module& module, const Instruction& at, std::string_view key);

Result<PartitionGraph> partition_graph(const Module& module, const PartitionMesh& mesh);

}  // namespace assay::hlo
