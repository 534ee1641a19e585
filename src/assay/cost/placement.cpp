#include "assay/cost/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "assay/base/text.h"

namespace assay {
namespace {

/// An axis to lay mesh axes on: the slices, or one of a torus.
struct Ground {
  std::size_t axis = 0;
  std::int64_t size = 1;
};
using Parts = std::vector<std::vector<AxisPart>>;  ///< by mesh axis

/// Every mesh axis from `at` on gets whole physical axes; earlier ones first, so that equal sizes stay in order.
bool whole_axes(const Mesh& mesh, const std::vector<Ground>& ground, std::size_t at, unsigned used, Parts& parts) {
  if (at == mesh.axes.size()) return used + 1 == 1u << ground.size();
  const std::int64_t size = mesh.axes[at].size;
  if (size == 1) return whole_axes(mesh, ground, at + 1, used, parts);
  std::vector<unsigned> sets;
  for (unsigned set = 1; set < 1u << ground.size(); ++set) {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < ground.size(); ++i)
      if (set >> i & 1u) product *= ground[i].size;
    if (!(set & used) && product == size) sets.push_back(set);
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](unsigned a, unsigned b) { return std::popcount(a) < std::popcount(b); });
  for (const unsigned set : sets) {
    parts[at].clear();
    for (std::size_t i = 0; i < ground.size(); ++i)
      if (set >> i & 1u) parts[at].push_back({ground[i].axis, ground[i].size, 1});
    if (whole_axes(mesh, ground, at + 1, used | set, parts)) return true;
  }
  return false;
}

/// Lays the mesh axes, innermost first, along the physical axes in the given order, the last one innermost. Where one
/// ends inside of the other, the rest goes on; sizes must divide. Returns the mesh axis that does not fit.
std::optional<std::size_t> in_sequence(const Mesh& mesh, const std::vector<Ground>& ground, Parts& parts) {
  std::size_t next = ground.size();
  std::int64_t room = 1, stride = 1;  // left on the current physical axis, and what lies inside
  for (std::size_t i = mesh.axes.size(); i-- > 0;) {
    parts[i].clear();
    for (std::int64_t size = mesh.axes[i].size; size > 1;) {
      if (room == 1) {
        if (next == 0) return i;
        room = ground[--next].size;
        stride = 1;
      }
      const std::int64_t taken = std::gcd(size, room);
      if (taken != size && taken != room) return i;  // would leave a hole
      if (taken > 1) parts[i].insert(parts[i].begin(), {ground[next].axis, taken, stride});
      size /= taken, room /= taken, stride *= taken;
    }
  }
  return std::nullopt;
}

Result<Parts> torus_parts(const Mesh& mesh, const Cluster& cluster, std::string_view where) {
  std::vector<Ground> ground;
  if (cluster.slices > 1) ground.push_back({Placement::slices, cluster.slices});
  for (std::size_t i = 0; i < cluster.torus->axes.size(); ++i)
    if (cluster.torus->axes[i].size > 1) ground.push_back({i, cluster.torus->axes[i].size});
  Parts parts(mesh.axes.size());
  if (whole_axes(mesh, ground, 0, 0, parts)) return parts;
  const auto misfit = in_sequence(mesh, ground, parts);
  if (!misfit) return parts;
  // In another order of the torus axes a product may fit that does not fit in this one; the slices stay outermost.
  std::vector<Ground> turned = ground;
  const auto first = turned.begin() + (cluster.slices > 1 ? 1 : 0);
  const auto by_axis = [](const Ground& a, const Ground& b) { return a.axis < b.axis; };
  while (std::next_permutation(first, turned.end(), by_axis))
    if (!in_sequence(mesh, turned, parts)) return parts;
  std::vector<std::string> sizes;
  for (const Ground& each : ground) sizes.push_back(std::to_string(each.size));
  const MeshAxis& axis = mesh.axes[*misfit];
  return fail(
      std::string(where),
      fmt::format("axis {}={} of {} does not lie on the axes of {}: it would end inside of an axis that it does "
                  "not divide",
                  axis.name, axis.size, mesh_text(mesh), cluster.text),
      fmt::format("each mesh axis takes whole axes of {}, or a part of one that divides it", join(sizes, "x")),
      Error::Kind::usage);
}

}  // namespace

Result<Placement> Placement::make(const Mesh& mesh, const Cluster& cluster, std::string_view where) {
  if (mesh.devices() != cluster.chips())
    return fail(std::string(where),
                fmt::format("the mesh covers {} devices, {} has {}", mesh.devices(), cluster.text, cluster.chips()),
                "make both equal", Error::Kind::usage);
  Placement placement;
  placement.mesh_axes_ = mesh.axes.size();
  ASSAY_TRY(bare, bare_group(cluster, where));
  placement.bare_ = bare;
  for (std::size_t i = 0; i < cluster.levels.size(); ++i) {
    const Level& level = cluster.levels[i];
    placement.bare_.levels.push_back(
        {1.0, 1.0, level.chip_bandwidth, level.in_network_reduction, static_cast<std::uint8_t>(i)});
    placement.unit_chips_[i] = level.chips;
  }
  if (cluster.torus) {
    ASSAY_TRY(parts, torus_parts(mesh, cluster, where));
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (const AxisPart& part : parts[i]) placement.parts_[i].push_back(part);
    for (const Axis& axis : cluster.torus->axes) placement.torus_.push_back({axis.size, axis.ring});
    return placement;
  }
  std::int64_t stride = 1;
  for (std::size_t i = mesh.axes.size(); i-- > 0; stride *= mesh.axes[i].size)
    placement.parts_[i].push_back({0, mesh.axes[i].size, stride});
  return placement;
}

CollectiveGroup Placement::group(AxisSet axes) const {
  CollectiveGroup group = bare_;
  group.levels = {};
  if (torus_.empty()) {
    // Members below one unit of a level; units that the axes do not divide count as if members lay in whole groups.
    double below = 1;
    for (std::size_t l = 0; l < bare_.levels.size(); ++l) {
      double members = 1;
      for (std::size_t i = 0; i < mesh_axes_; ++i) {
        if (!(axes >> i & 1u)) continue;
        const AxisPart& part = parts_[i][0];
        const bool top = l + 1 == bare_.levels.size();
        const std::int64_t within =
            top ? part.size : std::gcd(part.size * part.stride, unit_chips_[l]) / std::gcd(part.stride, unit_chips_[l]);
        members *= static_cast<double>(within);
      }
      CollectiveGroup::TreeLevel level = bare_.levels[l];
      level.groups = members / below;
      level.lanes = below;
      group.levels.push_back(level);
      below = members;
    }
    group.devices = below;
    if (group.levels.empty()) group.levels.push_back({1.0, 1.0, BytesPerSecond(1.0), false, 0});
    return group;
  }
  double between = 1;
  for (std::size_t axis = 0; axis < torus_.size(); ++axis) {
    FixedList<AxisPart, max_mesh_axes> along;
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
  if (between > 1.0) {
    group.levels.push_back({between, group.devices, bare_.levels.front().chip_bandwidth, false, 0});
    if (group.axes.empty()) group.hop_latency = Seconds(0);  // the catalogue has none for the data-centre network
    group.devices *= between;
  }
  return group;
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

std::string placement_text(const Placement& placement, const Mesh& mesh, const Cluster& cluster) {
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

CollectiveKind collective_of(StepKind kind) {
  switch (kind) {
    case StepKind::all_gather:
      return CollectiveKind::all_gather;
    case StepKind::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case StepKind::all_reduce:
      return CollectiveKind::all_reduce;
    case StepKind::all_to_all:
      return CollectiveKind::all_to_all;
    default:
      return CollectiveKind::permute;
  }
}

CollectiveKind collective_of(Op op) {
  switch (op) {
    case Op::all_gather:
      return CollectiveKind::all_gather;
    case Op::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case Op::all_reduce:
      return CollectiveKind::all_reduce;
    default:
      return CollectiveKind::all_to_all;
  }
}

Bytes array_bytes(const Program& program, const Step& step) {
  const bool grows = step.op == Op::all_gather || step.op == Op::all_to_all;
  return local_bytes(program, program.tensor(step.in[0])) * (grows ? program.ways(step.axes) : 1.0);
}

CollectiveCost<Plain> step_cost(const Placement& placement, const Mesh& mesh, StepKind kind, AxisSet axes,
                                Bytes local) {
  const bool grows = kind == StepKind::all_gather || kind == StepKind::all_to_all;
  return collective_cost(Plain{}, collective_of(kind), local * (grows ? shard_count(mesh, axes) : 1.0),
                         placement.group(axes));
}

Prices time_prices(const Placement& placement, const Mesh& mesh, const std::optional<FlopsPerSecond>& peak) {
  Prices prices(mesh);
  for (AxisSet axes = 1; axes < axis_bit(static_cast<int>(mesh.axes.size())); ++axes)
    for (StepKind kind : {StepKind::all_gather, StepKind::all_to_all, StepKind::permute, StepKind::reduce_scatter,
                          StepKind::all_reduce}) {
      // The bandwidth term is proportional to the bytes, so one byte tells the rate.
      const CollectiveCost<Plain> one = step_cost(placement, mesh, kind, axes, 1_B);
      prices.set(kind, axes, {one.bandwidth.value(), one.latency.value()});
    }
  if (peak) prices.per_flop = (1_FLOP / *peak).value();
  return prices;
}

}  // namespace assay
