#include "assay/predict/collective/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "assay/base/text.h"

namespace assay::collective {
namespace {

using Parts = std::vector<AxisParts>;  ///< by mesh axis

/// Assigns whole physical axes to every mesh axis from `at` on; earlier ones first, so that equal sizes stay in order.
bool whole_axes(const program::Mesh& mesh, const PhysicalAxes& physical, std::size_t at, unsigned used, Parts& parts) {
  if (at == mesh.axes.size()) return used + 1 == 1u << physical.size();
  const std::int64_t size = mesh.axes[at].size;
  if (size == 1) return whole_axes(mesh, physical, at + 1, used, parts);
  std::vector<unsigned> sets;
  for (unsigned set = 1; set < 1u << physical.size(); ++set) {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < physical.size(); ++i)
      if (set >> i & 1u) product *= physical[i].size;
    if (!(set & used) && product == size) sets.push_back(set);
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](unsigned a, unsigned b) { return std::popcount(a) < std::popcount(b); });
  for (const unsigned set : sets) {
    parts[at] = {};
    for (std::size_t i = 0; i < physical.size(); ++i)
      if (set >> i & 1u) parts[at].push_back({physical[i].axis, physical[i].size, 1});
    if (whole_axes(mesh, physical, at + 1, used | set, parts)) return true;
  }
  return false;
}

/// Places mesh axes along the physical_axes in the given order. Returns the mesh axis that does not fit.
std::optional<std::size_t> in_sequence(const program::Mesh& mesh, const PhysicalAxes& physical_axes, Parts& parts) {
  AxisFilling filling(physical_axes);
  for (std::size_t i = mesh.axes.size(); i-- > 0;) {
    const auto laid = filling.lay(mesh.axes[i].size);
    if (!laid) return i;
    parts[i] = *laid;
  }
  return std::nullopt;
}

using TreeLevels = FixedList<CollectiveGroup::TreeLevel, max_tree_levels>;

TreeLevels tree_levels(const hardware::Cluster& cluster) {
  TreeLevels levels;
  for (std::size_t i = 0; i < cluster.levels.size(); ++i) {
    const hardware::Level& level = cluster.levels[i];
    levels.push_back({1.0, 1.0, level.chip_bandwidth, level.in_network_reduction, static_cast<std::uint8_t>(i)});
  }
  return levels;
}

Result<Parts> torus_parts(const program::Mesh& mesh, const hardware::Cluster& cluster, std::string_view where,
                          std::size_t torus_order) {
  const PhysicalAxes physical = physical_axes_of(cluster);
  Parts parts(mesh.axes.size());
  if (torus_order == 0 && whole_axes(mesh, physical, 0, 0, parts)) return parts;
  const std::vector<PhysicalAxes> orders = physical_axis_orders(physical);
  const auto misfit = in_sequence(mesh, orders[torus_order == 0 ? 0 : torus_order - 1], parts);
  if (!misfit) return parts;
  // A product that does not fit in this order of the torus axes may fit in another; the slices stay outermost.
  if (torus_order == 0)
    for (const PhysicalAxes& order : orders)
      if ((cluster.slices == 1 || order[0].axis == PhysicalAxis::slices) && !in_sequence(mesh, order, parts))
        return parts;
  std::vector<std::string> sizes;
  for (const PhysicalAxis& each : physical) sizes.push_back(std::to_string(each.size));
  const program::MeshAxis& axis = mesh.axes[*misfit];
  return fail(
      std::string(where),
      fmt::format(
          "axis {}={} of mesh {} does not fit the axes of {}: it would end inside an axis that it does not divide",
          axis.name, axis.size, program::mesh_text(mesh), cluster.text),
      fmt::format("each mesh axis takes whole axes of {}, or a part of one that divides it", join(sizes, "x")),
      Error::Kind::usage);
}

}  // namespace

Result<Placement> Placement::make(const program::Mesh& mesh, const hardware::Cluster& cluster, std::string_view where,
                                  std::size_t torus_order) {
  if (mesh.devices() != cluster.chips())
    return fail(std::string(where),
                fmt::format("the mesh covers {} devices, {} has {}", mesh.devices(), cluster.text, cluster.chips()),
                "make both equal", Error::Kind::usage);
  Placement placement;
  placement.mesh_axes_ = mesh.axes.size();
  ASSAY_TRY(bare, bare_group(cluster, where));
  placement.bare_ = bare;
  placement.bare_.levels = tree_levels(cluster);
  for (std::size_t i = 0; i < cluster.levels.size(); ++i) placement.unit_chips_[i] = cluster.levels[i].chips;
  if (cluster.torus) {
    ASSAY_TRY(parts, torus_parts(mesh, cluster, where, torus_order));
    std::copy(parts.begin(), parts.end(), placement.parts_.begin());
    for (const hardware::Axis& axis : cluster.torus->axes) placement.torus_.push_back({axis.size, axis.ring});
    return placement;
  }
  FixedList<std::int64_t, program::max_mesh_axes> sizes;
  for (const program::MeshAxis& axis : mesh.axes) sizes.push_back(axis.size);
  placement.stretch({sizes.begin(), sizes.size()});
  return placement;
}

void Placement::stretch(std::span<const std::int64_t> sizes) {
  mesh_axes_ = sizes.size();
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) {
    parts_[i] = {};
    parts_[i].push_back({0, sizes[i], stride});
  }
}

namespace {

/// Members of a group in each unit of the levels of a switched network, from the lowest upwards.
void add_levels(CollectiveGroup& group, const TreeLevels& levels, const std::array<double, max_tree_levels>& members) {
  double below = 1;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    CollectiveGroup::TreeLevel level = levels[l];
    level.groups = members[l] / below;
    level.lanes = below;
    group.levels.push_back(level);
    below = members[l];
  }
  group.devices = below;
  if (group.levels.empty()) group.levels.push_back({1.0, 1.0, BytesPerSecond(1.0), false, 0});
}

/// Makes the group span `between` slices.
void add_slices(CollectiveGroup& group, double between, const CollectiveGroup::TreeLevel& network) {
  if (between <= 1.0) return;
  group.levels.push_back({between, group.devices, network.chip_bandwidth, false, 0});
  if (group.axes.empty()) group.hop_latency = Seconds(0);  // the catalogue has no latency for the data-centre network
  group.devices *= between;
}

}  // namespace

CollectiveGroup Placement::group(program::AxisSet axes) const {
  CollectiveGroup group = bare_;
  group.levels = {};
  if (torus_.empty()) {
    // Members below one unit of a level; if the axes do not divide a unit, members count as if in whole groups.
    std::array<double, max_tree_levels> members;
    members.fill(1.0);
    for (std::size_t l = 0; l < bare_.levels.size(); ++l) {
      for (std::size_t i = 0; i < mesh_axes_; ++i) {
        if (!(axes >> i & 1u)) continue;
        const AxisPart& part = parts_[i][0];
        const bool top = l + 1 == bare_.levels.size();
        members[l] *= static_cast<double>(top ? part.size : devices_within(part, unit_chips_[l]));
      }
    }
    add_levels(group, bare_.levels, members);
    return group;
  }
  double between = 1;
  for (std::size_t axis = 0; axis < torus_.size(); ++axis) {
    FixedList<AxisPart, program::max_mesh_axes> along;
    for (std::size_t i = 0; i < mesh_axes_; ++i)
      if (axes >> i & 1u)
        for (const AxisPart& part : parts_[i])
          if (part.axis == axis) along.push_back(part);
    add_axis_parts(group, torus_[axis].size, torus_[axis].ring, along.begin(), along.size());
  }
  for (std::size_t i = 0; i < mesh_axes_; ++i)
    if (axes >> i & 1u)
      for (const AxisPart& part : parts_[i])
        if (part.axis == slices) between *= static_cast<double>(part.size);
  if (between > 1.0) add_slices(group, between, bare_.levels.front());
  return group;
}

namespace {

/// Enumerates the ways to place the devices of a group in the units of a cluster.
class Densest {
 public:
  Densest(const hardware::Cluster& cluster, const CollectiveGroup& bare, const TreeLevels& levels)
      : cluster_(cluster), bare_(bare), levels_(levels) {
    if (cluster.torus) physical_axes_ = physical_axes_of(cluster);
  }

  std::vector<CollectiveGroup> of(std::int64_t devices) {
    if (cluster_.torus)
      fill(0, devices, 1, bare_);
    else
      nest(0, devices);
    return std::move(found_);
  }

 private:
  /// Chooses how many of the group's devices are in a unit of the level `at`; the highest level holds all.
  void nest(std::size_t at, std::int64_t devices) {
    if (at + 1 >= levels_.size()) {
      members_[at] = static_cast<double>(devices);
      CollectiveGroup group = bare_;
      add_levels(group, levels_, members_);
      found_.push_back(group);
      return;
    }
    const std::int64_t below = at == 0 ? 1 : static_cast<std::int64_t>(members_[at - 1]);
    const std::int64_t children = cluster_.levels[at].chips / (at == 0 ? 1 : cluster_.levels[at - 1].chips);
    for (std::int64_t n = 1; below * n <= devices && n <= children; ++n)
      if (devices % (below * n) == 0 && cluster_.levels[at].chips % (below * n) == 0) {
        members_[at] = static_cast<double>(below * n);
        nest(at + 1, devices);
      }
  }

  /// A torus axis is used best by adjacent chips that close the ring.
  void fill(std::size_t at, std::int64_t left, std::int64_t between, const CollectiveGroup& group) {
    if (at == physical_axes_.size()) {
      if (left > 1) return;
      found_.push_back(group);
      if (between > 1) add_slices(found_.back(), static_cast<double>(between), levels_.front());
      return;
    }
    const PhysicalAxis& physical = physical_axes_[at];
    for (std::int64_t n = 1; n <= std::min(left, physical.size); ++n) {
      if (left % n != 0 || physical.size % n != 0) continue;
      CollectiveGroup more = group;
      if (n > 1 && physical.axis != PhysicalAxis::slices) {
        more.axes.push_back({static_cast<double>(n), physical.ring, 1.0});
        more.devices *= static_cast<double>(n);
      }
      fill(at + 1, left / n, physical.axis == PhysicalAxis::slices ? n : between, more);
    }
  }

  const hardware::Cluster& cluster_;
  CollectiveGroup bare_;
  TreeLevels levels_;
  PhysicalAxes physical_axes_;
  std::array<double, max_tree_levels> members_{};
  std::vector<CollectiveGroup> found_;
};

}  // namespace

Result<std::vector<CollectiveGroup>> densest_groups(const hardware::Cluster& cluster, std::int64_t devices,
                                                    std::string_view where) {
  ASSAY_TRY(bare, bare_group(cluster, where));
  return Densest(cluster, bare, tree_levels(cluster)).of(devices);
}

bool Placement::plain() const {
  if (torus_.empty()) return true;
  for (std::size_t i = 0; i < mesh_axes_; ++i) {
    if (parts_[i].size() > 1) return false;
    for (const AxisPart& part : parts_[i])
      if (part.axis == slices || part.size != torus_[part.axis].size) return false;
  }
  return true;
}

std::string placement_text(const Placement& placement, const program::Mesh& mesh, const hardware::Cluster& cluster) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    std::vector<std::string> parts;
    for (const AxisPart& part : placement.parts(static_cast<int>(i))) {
      const bool between = part.axis == Placement::slices;
      const std::int64_t whole = between ? cluster.slices : cluster.torus->axes[part.axis].size;
      const std::string on = between ? "slices" : cluster.torus->axes[part.axis].name;
      if (part.size == whole)
        parts.push_back(on);
      else
        parts.push_back(part.stride == 1 ? fmt::format("{} neighbours of {}", part.size, on)
                                         : fmt::format("{} of {}, {} apart", part.size, on, part.stride));
    }
    if (!parts.empty()) texts.push_back(fmt::format("{} on {}", mesh.axes[i].name, join(parts, " and ")));
  }
  return join(texts, "; ");
}

CollectiveCost<Plain> movement_cost(const Placement& placement, const program::Mesh& mesh, program::Collective kind,
                                    program::AxisSet axes, Bytes local) {
  return collective_cost(Plain{}, kind, local * program::array_share(kind, program::shard_count(mesh, axes)),
                         placement.group(axes));
}

plan::Prices time_prices(const Placement& placement, const program::Mesh& mesh,
                         const std::optional<FlopsPerSecond>& peak) {
  plan::Prices prices(mesh);
  for (program::AxisSet axes = 1; axes < program::axis_bit(static_cast<int>(mesh.axes.size())); ++axes)
    for (const program::CollectiveFacts& each : program::all_collectives) {
      if (!each.reshards) continue;
      // The bandwidth term is proportional to the bytes, so one byte gives the rate.
      const CollectiveCost<Plain> one = movement_cost(placement, mesh, each.kind, axes, 1_B);
      prices.set(each.kind, axes, {one.bandwidth.value(), one.latency.value()});
    }
  if (peak) prices.per_flop = (1_FLOP / *peak).value();
  return prices;
}

}  // namespace assay::collective
