// Layouts of a mesh on a cluster: the order of the mesh axes, and on a torus the order of the physical axes that they
// fill. Only one of several layouts that give every mesh axis the same links is kept.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assay/predict/collective/collective_group.h"
#include "assay/program/form/mesh.h"

namespace assay::collective {

struct AxisLayout {
  std::array<std::uint8_t, program::max_mesh_axes> order{0, 1, 2, 3,
                                                         4, 5, 6, 7};  ///< mesh axes, the first one outermost
  /// On a torus: 0 uses whole axes if possible, else the first order that fits; n > 0 is physical_axis_orders()[n - 1].
  std::uint16_t torus_order = 0;
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;
};

/// All layouts of mesh axes of these sizes that differ in the links of some axis; the given order comes first. Empty if
/// none fits.
std::vector<AxisLayout> axis_layouts(std::span<const std::int64_t> sizes, const hardware::Cluster& cluster);

/// What mesh axes map to: an axis of a torus, or its slices.
struct PhysicalAxis {
  static constexpr std::size_t slices = max_torus_axes;  ///< stands for the slices in place of a torus axis
  std::size_t axis = 0;
  std::int64_t size = 1;
  bool ring = false;

  /// Whether two axes differ only in their names.
  bool is_like(const PhysicalAxis& other) const {
    return size == other.size && ring == other.ring && (axis == slices) == (other.axis == slices);
  }
};
using PhysicalAxes = FixedList<PhysicalAxis, max_torus_axes + 1>;
/// Axes of more than one chip: the slices, then the axes of the torus.
PhysicalAxes physical_axes_of(const hardware::Cluster& cluster);
/// All distinct orders of physical axes, the given one first.
std::vector<PhysicalAxes> physical_axis_orders(const PhysicalAxes& physical_axes);

using AxisParts = FixedList<AxisPart, max_torus_axes + 1>;

/// Places mesh axes, innermost first, along the physical axes, the last one innermost. Where one ends inside the other,
/// the rest continues; sizes must divide. Keeps a reference to the physical axes.
class AxisFilling {
 public:
  explicit AxisFilling(const PhysicalAxes& physical_axes)
      : physical_axes_(&physical_axes), next_(physical_axes.size()) {}
  /// The parts of the next mesh axis, outermost first; empty if it would leave a hole.
  std::optional<AxisParts> lay(std::int64_t size);

 private:
  const PhysicalAxes* physical_axes_;
  std::size_t next_;
  std::int64_t room_ = 1, stride_ = 1;  ///< left on the current physical axis, and chips already placed inside
};

/// The devices of an axis in one unit of a given number of chips, on a switched network.
std::int64_t devices_within(const AxisPart& part, std::int64_t unit_chips);

}  // namespace assay::collective
