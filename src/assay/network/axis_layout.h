// The ways to lay the axes of a mesh on a cluster: in which order, and on a torus along which of its axes first. Many
// give every axis the same links; one of these stands for all.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "assay/network/collective_group.h"
#include "assay/program/mesh.h"

namespace assay::network {

struct AxisLayout {
  std::array<std::uint8_t, program::max_mesh_axes> order{0, 1, 2, 3,
                                                         4, 5, 6, 7};  ///< mesh axes, the first one outermost
  /// On a torus: 0 takes whole axes where it can, else the first sequence that fits; then ground_orders(), from 1 on.
  std::uint16_t turn = 0;
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;
};

/// Every way to lay mesh axes of these sizes on a cluster in sequence, one of those that give all of them the same
/// links. The order as it is comes first. Empty where no way exists.
std::vector<AxisLayout> axis_layouts(std::span<const std::int64_t> sizes, const hardware::Cluster& cluster);

/// What mesh axes lie on: an axis of a torus, or its slices.
struct Ground {
  static constexpr std::size_t slices = max_torus_axes;  ///< stands for the slices where a torus axis is named
  std::size_t axis = 0;
  std::int64_t size = 1;
  bool ring = false;

  /// Whether axes cannot be told apart but by their names.
  bool is_like(const Ground& other) const {
    return size == other.size && ring == other.ring && (axis == slices) == (other.axis == slices);
  }
};
using Grounds = FixedList<Ground, max_torus_axes + 1>;
/// Those of more than one chip: the slices, then the axes of the torus.
Grounds grounds_of(const hardware::Cluster& cluster);
/// The orders of these that differ, the given one first.
std::vector<Grounds> ground_orders(const Grounds& grounds);

using AxisParts = FixedList<AxisPart, max_torus_axes + 1>;

/// Lays mesh axes, innermost first, along the grounds, the last one innermost. Where one ends inside of the other, the
/// rest goes on; sizes must divide. Refers to the grounds.
class GroundFilling {
 public:
  explicit GroundFilling(const Grounds& grounds) : grounds_(&grounds), next_(grounds.size()) {}
  /// The parts of the next mesh axis, outermost first; nothing where it would leave a hole.
  std::optional<AxisParts> lay(std::int64_t size);

 private:
  const Grounds* grounds_;
  std::size_t next_;
  std::int64_t room_ = 1, stride_ = 1;  ///< left on the current ground, and what lies inside
};

/// Of an axis on a switched network: its devices in one unit of so many chips.
std::int64_t devices_within(const AxisPart& part, std::int64_t unit_chips);

}  // namespace assay::network
