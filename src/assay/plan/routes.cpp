#include "assay/plan/routes.h"

#include "assay/plan/explorer.h"

namespace assay::plan {
namespace {

/// Of every axis that moves. A power of two: equal costs are then equal numbers.
constexpr std::int64_t nominal_size = 4;

/// Slices of one dimension are one step.
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
  program::Tensor tensor{"", {}, Dtype::bf16, change.from};
  for (std::size_t d = 0; d < change.rank; ++d) tensor.dims.push_back({"", mesh.devices()});
  const Plan plan = plan_reshard(mesh, tensor, change.to, prices);
  std::vector<RouteMove> route;
  program::Sharding before = change.from, here = change.from;  // of the last move, and of the next one
  for (const program::Step& step : plan.steps) {
    const MoveKind kind = program::is_collective(step.op) ? MoveKind(step.collective) : std::nullopt;
    const RouteMove move{kind, step.axes, plan.tensor(step.out[0]).sharding};
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
    h = (h ^ change.from.dims[d].bits()) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
    h = (h ^ change.to.dims[d].bits()) * 0x9e3779b97f4a7c15ull, h ^= h >> 31;
  }
  return static_cast<std::size_t>(h);
}

const std::vector<RouteMove>& Routes::find(const ShardingChange& change) {
  const auto [known, is_new] = known_.try_emplace(change);
  if (is_new) known->second = planned(change);
  return known->second;
}

}  // namespace assay::plan
