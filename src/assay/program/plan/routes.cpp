#include "assay/program/plan/routes.h"

#include "assay/program/plan/explorer.h"

namespace assay::plan {
namespace {

/// Size of every axis that moves. A power of two: equal costs are then equal numbers.
constexpr std::int64_t nominal_size = 4;

/// Whether two moves make one step: slices of one dimension.
bool continues(const RouteMove& last, const RouteMove& next, const program::Sharding& before, std::size_t rank) {
  if (last.kind || next.kind) return false;
  for (std::size_t d = 0; d < rank; ++d)
    if (before.dims[d] != last.after.dims[d]) return last.after.dims[d] != next.after.dims[d];
  return false;
}

std::vector<RouteMove> planned(const ShardingChange& change) {
  const program::AxisSet moved = change.from.used_axes() | change.to.used_axes();
  program::Mesh mesh;
  for (int axis = 0; moved >> axis != 0; ++axis)
    mesh.axes.push_back({"", moved & program::axis_bit(axis) ? nominal_size : 1});
  Prices prices = byte_prices(mesh);
  for (program::AxisSet axes = 1; axes >> mesh.axes.size() == 0; ++axes)
    prices.set(program::Collective::permute, axes, {infinity, infinity});
  // On the way no dimension is split further than at one of the ends, so that shards come out even.
  ShardingSpace space(mesh, change.rank, true, [&](const program::Sharding& sharding) {
    for (std::size_t d = 0; d < change.rank; ++d)
      if (const program::AxisSet set = sharding.dims[d].set();
          set & ~change.from.dims[d].set() && set & ~change.to.dims[d].set())
        return false;
    return true;
  });
  Explorer explorer(space, {{}, Dtype::bf16, true}, change.from, prices, true);
  const int end = explorer.find(change.to);
  while (!explorer.settled(end))
    if (!explorer.next(infinity)) throw InternalError("a sharding cannot be reached");
  std::vector<RouteMove> steps;
  for (int id = end; explorer.at(id).parent >= 0; id = explorer.at(id).parent)
    steps.insert(steps.begin(), {explorer.at(id).kind, explorer.at(id).axes, explorer.sharding(id)});
  std::vector<RouteMove> route;
  program::Sharding before = change.from, here = change.from;  // before the last move, and before the next
  for (const RouteMove& move : steps) {
    if (!route.empty() && continues(route.back(), move, before, change.rank)) {
      route.back().axes |= move.axes;
      route.back().after = move.after;
    } else {
      before = here;
      route.push_back(move);
    }
    here = move.after;
  }
  return route;
}

}  // namespace

std::size_t Routes::Hash::operator()(const ShardingChange& change) const {
  std::uint64_t h = change.from.unreduced << 8 | change.to.unreduced;
  for (std::size_t d = 0; d < change.rank; ++d) {
    h = mixed(h, change.from.dims[d].bits());
    h = mixed(h, change.to.dims[d].bits());
  }
  return static_cast<std::size_t>(h);
}

const std::vector<RouteMove>& Routes::find(const ShardingChange& change) {
  const auto [known, is_new] = known_.try_emplace(change);
  if (is_new) known->second = planned(change);
  return known->second;
}

}  // namespace assay::plan
