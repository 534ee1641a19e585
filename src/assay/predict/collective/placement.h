// How mesh axes map to a cluster, and therefore which links their collectives use.
// A mesh axis is a product of parts of physical axes: whole torus axes, a part of one, the slices of the data-centre
// network, or consecutive chips of a switched cluster, where the last mesh axis maps to adjacent ranks.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "assay/base/result.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/collective/axis_layout.h"
#include "assay/predict/collective/collectives.h"
#include "assay/program/form/program.h"
#include "assay/program/form/sharding.h"
#include "assay/program/form/traffic.h"
#include "assay/program/plan/planner.h"

namespace assay::collective {

/// A mesh mapped to a cluster. Allocates nothing, so that copies and groups are cheap.
class Placement {
 public:
  static constexpr std::size_t slices = PhysicalAxis::slices;  ///< stands for the slices in place of a torus axis

  /// Maps axes in order, the first one outermost. On a torus, whole axes are preferred, then parts whose sizes divide;
  /// the error says why nothing fits. For `torus_order` see AxisLayout.
  static Result<Placement> make(const program::Mesh& mesh, const hardware::Cluster& cluster, std::string_view where,
                                std::size_t torus_order = 0);

  /// Maps axes of other sizes to the same switched cluster, the first one outermost.
  void stretch(std::span<const std::int64_t> sizes);

  /// The links of a collective over a set of mesh axes; all lines of these axes run it concurrently.
  CollectiveGroup group(program::AxisSet axes) const;
  /// The parts that a mesh axis maps to, outermost first; on a switched cluster one part of axis 0.
  const AxisParts& parts(int axis) const { return parts_[static_cast<std::size_t>(axis)]; }
  /// True if every mesh axis is one whole axis, or the cluster is switched.
  bool plain() const;

 private:
  std::array<AxisParts, program::max_mesh_axes> parts_;
  std::size_t mesh_axes_ = 0;
  CollectiveGroup bare_;  ///< has the cluster's levels
  struct Physical {
    std::int64_t size = 1;
    bool ring = false;
  };
  FixedList<Physical, max_torus_axes> torus_;  ///< none if switched
  std::array<std::int64_t, max_tree_levels> unit_chips_{};
};

/// Groups of `devices` chips that are at least as fast as every group of that size in any placement.
Result<std::vector<CollectiveGroup>> densest_groups(const hardware::Cluster& cluster, std::int64_t devices,
                                                    std::string_view where);

/// "S on slices, X on 4 of X": for placements that are not one to one.
std::string placement_text(const Placement& placement, const program::Mesh& mesh, const hardware::Cluster& cluster);

/// Bytes of the array that one group of a collective step sees, as collective_cost counts them.
template <class N>
NumberOf<N, Bytes> array_bytes(const N& num, const program::Program& program, const program::Step& step) {
  const double parts = program::array_share(step.collective, program.ways(step.axes));
  return num.times("parts", parts, "of the array, one on each device", program::named_bytes(num, program, step.in[0]));
}
inline Bytes array_bytes(const program::Program& program, const program::Step& step) {
  return array_bytes(Plain{}, program, step);
}
/// The cost of a collective over some axes, from the bytes a device holds before it.
CollectiveCost<Plain> movement_cost(const Placement& placement, const program::Mesh& mesh, program::Collective kind,
                                    program::AxisSet axes, Bytes local);
/// The planner's costs in seconds; with the chip's rate, arithmetic is traded against communication.
plan::Prices time_prices(const Placement& placement, const program::Mesh& mesh,
                         const std::optional<FlopsPerSecond>& peak);

}  // namespace assay::collective
