#include "assay/program/plan/bounded.h"

#include <bit>
#include <utility>

namespace assay::plan {

using program::AxisList;
using program::AxisSet;
using program::Sharding;

struct BoundedPlanner::Ways {
  Sharding before, after, stays;
};

namespace {

/// What two shardings have in common: the outer axes of each dimension, and partial sums.
Sharding common_part(const Sharding& a, const Sharding& b, std::size_t rank) {
  Sharding out;
  out.unreduced = a.unreduced & b.unreduced;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto of_a = a.dims[d].axes(), of_b = b.dims[d].axes();
    for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()) && of_a[i] == of_b[i]; ++i)
      out.dims[d] = out.dims[d].pushed(of_a[i]);
  }
  return out;
}

/// A mesh of some of the axes of another one.
struct Part {
  std::vector<int> axes;  ///< for each axis of the part: its axis in the whole mesh

  AxisSet whole(AxisSet set) const {
    AxisSet out = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (set & program::axis_bit(static_cast<int>(i))) out |= program::axis_bit(axes[i]);
    return out;
  }
  AxisSet part(AxisSet set) const {
    AxisSet out = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (set & program::axis_bit(axes[i])) out |= program::axis_bit(static_cast<int>(i));
    return out;
  }
  /// The axes of the part in a sharding of the whole.
  Sharding part(const Sharding& sharding, std::size_t rank) const {
    Sharding out;
    out.unreduced = part(sharding.unreduced);
    for (std::size_t d = 0; d < rank; ++d)
      for (const int axis : sharding.dims[d].axes())
        for (std::size_t i = 0; i < axes.size(); ++i)
          if (axes[i] == axis) out.dims[d] = out.dims[d].pushed(static_cast<int>(i));
    return out;
  }
  /// A sharding of the part behind what stays.
  Sharding whole(const Sharding& sharding, const Sharding& stays, std::size_t rank) const {
    Sharding out = stays;
    out.unreduced |= whole(sharding.unreduced);
    for (std::size_t d = 0; d < rank; ++d)
      for (const int axis : sharding.dims[d].axes())
        out.dims[d] = out.dims[d].pushed(axes[static_cast<std::size_t>(axis)]);
    return out;
  }
  Prices part(const Prices& prices, const program::Mesh& mesh) const {
    Prices out(mesh);
    out.per_flop = prices.per_flop;
    for (AxisSet set = 1; set < program::axis_bit(static_cast<int>(axes.size())); ++set)
      for (const program::CollectiveFacts& each : program::all_collectives)
        out.set(each.kind, set, prices.line(each.kind, whole(set)));
    return out;
  }
};

}  // namespace

BoundedPlanner::BoundedPlanner(const program::Mesh& mesh) : mesh_(mesh), exact_(mesh) {
  for (const program::MeshAxis& axis : mesh.axes) axes_ += axis.size > 1;
}

Plan BoundedPlanner::reshard(const program::Tensor& from, const Sharding& to, const Prices& prices) {
  if (axes_ <= most_exact_axes) return exact_.reshard(from, to, prices);
  Ways ways{without_unit_axes(mesh_, from.sharding), without_unit_axes(mesh_, to), {}};
  ways.stays = common_part(ways.before, ways.after, from.dims.size());
  const AxisSet moving = (ways.before.used_axes() | ways.after.used_axes()) & ~ways.stays.used_axes();
  return std::popcount(moving) > most_exact_axes ? gathered_and_sliced(from, ways, prices)
                                                 : on_moving_axes(from, ways, moving, prices);
}

Plan BoundedPlanner::on_moving_axes(const program::Tensor& from, const Ways& ways, AxisSet moving,
                                    const Prices& prices) {
  const std::size_t rank = from.dims.size();
  Part part;
  program::Mesh mesh;
  for (int axis = 0; axis < static_cast<int>(mesh_.axes.size()); ++axis)
    if (moving & program::axis_bit(axis)) {
      part.axes.push_back(axis);
      mesh.axes.push_back(mesh_.axes[static_cast<std::size_t>(axis)]);
    }
  program::Tensor less = from;
  for (std::size_t d = 0; d < rank; ++d)
    less.dims[d].size = program::local_size(mesh_, from.dims[d].size, ways.stays.dims[d]);
  less.sharding = part.part(ways.before, rank);
  auto planner = smaller_.find(moving);
  if (planner == smaller_.end()) planner = smaller_.emplace(moving, Planner(mesh)).first;
  const Plan found = planner->second.reshard(less, part.part(ways.after, rank), part.part(prices, mesh));
  Plan out;
  program::Tensor start = from;
  start.sharding = ways.before;
  int now = out.add(std::move(start));
  for (std::size_t i = 0; i < found.steps.size(); ++i) {
    const program::Step& step = found.steps[i];
    const MoveKind kind = step.op == program::Op::slice ? MoveKind() : MoveKind(step.collective);
    now = out.move(mesh_, now, kind, part.whole(step.axes),
                   part.whole(found.tensor(step.out[0]).sharding, ways.stays, rank), found.costs[i]);
  }
  out.total = out.cost;
  return out;
}

Plan BoundedPlanner::gathered_and_sliced(const program::Tensor& from, const Ways& ways, const Prices& prices) const {
  const std::size_t rank = from.dims.size();
  Plan out;
  program::Tensor start = from;
  start.sharding = ways.before;
  int now = out.add(std::move(start));
  const auto held = [&] { return program::local_bytes(mesh_, out.tensor(now)); };
  const auto move = [&](MoveKind kind, AxisSet axes, const Sharding& to) {
    now = out.move(mesh_, now, kind, axes, to, kind ? prices(*kind, axes, held()) : 0.0);
  };
  Sharding at = ways.before;
  if (const AxisSet sums = at.unreduced & ~ways.stays.unreduced) {
    at.unreduced = ways.stays.unreduced;
    move(program::Collective::all_reduce, sums, at);
  }
  if (const AxisSet leaving = at.used_axes() & ~ways.stays.used_axes()) {
    at = ways.stays;
    move(program::Collective::all_gather, leaving, at);
  }
  for (std::size_t d = 0; d < rank; ++d) {
    const auto axes = ways.after.dims[d].axes();
    for (std::size_t i = at.dims[d].axes().size(); i < axes.size(); ++i) {
      at.dims[d] = at.dims[d].pushed(axes[i]);
      move({}, program::axis_bit(axes[i]), at);
    }
  }
  out.total = out.cost;
  return out;
}

}  // namespace assay::plan
