// The steps of plans: their names, prices and transposes.
#include <fmt/format.h>

#include "assay/plan/correspondence.h"
#include "assay/plan/planner.h"

namespace assay::plan {

std::string_view name(StepKind kind) {
  switch (kind) {
    case StepKind::slice:
      return "slice";
    case StepKind::all_gather:
      return "all-gather";
    case StepKind::all_to_all:
      return "all-to-all";
    case StepKind::permute:
      return "permute";
    case StepKind::reduce_scatter:
      return "reduce-scatter";
    case StepKind::all_reduce:
      return "all-reduce";
    case StepKind::multiply:
      break;
  }
  return "multiply";
}

Bytes received_bytes(const program::Mesh& mesh, StepKind kind, program::AxisSet axes, Bytes local) {
  const double n = program::shard_count(mesh, axes);
  switch (kind) {
    case StepKind::all_gather:
      return (n - 1.0) * local;
    case StepKind::reduce_scatter:
    case StepKind::all_to_all:
      return (n - 1.0) / n * local;
    case StepKind::all_reduce:
      return 2.0 * ((n - 1.0) / n) * local;
    case StepKind::permute:
      return local;
    case StepKind::slice:
    case StepKind::multiply:
      break;
  }
  return Bytes(0);
}

Prices::Prices(const program::Mesh& mesh)
    : axes_(mesh.axes.size()), table_(static_cast<std::size_t>(StepKind::multiply) << mesh.axes.size()) {}

bool Prices::proportional() const {
  for (const Line& line : table_)
    if (line.floor != 0.0) return false;
  return true;
}

Prices byte_prices(const program::Mesh& mesh) {
  Prices prices(mesh);
  for (program::AxisSet axes = 1; axes < program::axis_bit(static_cast<int>(mesh.axes.size())); ++axes)
    for (StepKind kind : {StepKind::all_gather, StepKind::all_to_all, StepKind::permute, StepKind::reduce_scatter,
                          StepKind::all_reduce})
      prices.set(kind, axes, {received_bytes(mesh, kind, axes, 1_B).value(), 0.0});
  return prices;
}

program::Sharding without_unit_axes(const program::Mesh& mesh, const program::Sharding& sharding) {
  program::AxisSet unit = 0;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
    if (mesh.axes[axis].size == 1) unit |= program::axis_bit(static_cast<int>(axis));
  if (!(sharding.used_axes() & unit)) return sharding;
  program::Sharding bare = sharding;
  bare.unreduced &= ~unit;
  for (program::AxisList& list : bare.dims) {
    program::AxisList rest;
    for (int kept : list.axes())
      if (!(unit & program::axis_bit(kept))) rest = rest.pushed(kept);
    list = rest;
  }
  return bare;
}

PlanStep transpose(const PlanStep& step, const program::Mesh& mesh) {
  PlanStep back = step;
  std::swap(back.before, back.after);
  // The gradient of a partial sum is the same for every addend: it is replicated.
  back.before.sharding.unreduced = back.after.sharding.unreduced = 0;
  switch (step.kind) {
    case StepKind::all_gather:
      // Every device used all of the gathered tensor, so its gradient there is a partial sum.
      back.kind = StepKind::reduce_scatter;
      back.before.sharding.unreduced = step.axes;
      break;
    case StepKind::reduce_scatter:
    case StepKind::slice:
      back.kind = StepKind::all_gather;
      break;
    case StepKind::all_reduce:
      back.kind = StepKind::slice;
      back.axes = 0;
      break;
    default:
      break;
  }
  back.bytes = received_bytes(mesh, back.kind, back.axes, program::local_bytes(mesh, back.before));
  return back;
}

std::string step_text(const program::Mesh& mesh, const PlanStep& step) {
  const std::string after = program::tensor_text(mesh, step.after);
  static constexpr std::pair<StepKind, std::string_view> names[] = {
      {StepKind::slice, "Slice"},     {StepKind::all_gather, "AllGather"},         {StepKind::all_to_all, "AllToAll"},
      {StepKind::permute, "Permute"}, {StepKind::reduce_scatter, "ReduceScatter"}, {StepKind::all_reduce, "AllReduce"}};
  for (const auto& [kind, text] : names)
    if (kind == step.kind)
      return fmt::format("{} = {}{}{}({})", after, text, step.axes ? "_" : "", program::axes_text(mesh, step.axes),
                         program::tensor_text(mesh, step.before));
  std::string contracted;
  for (const program::Dimension& dim : step.before.dims)
    if (find_dim(*step.second, dim.name) >= 0 && find_dim(step.after, dim.name) < 0) contracted += dim.name;
  return fmt::format("{} = {} *{} {}", after, program::tensor_text(mesh, step.before), contracted,
                     program::tensor_text(mesh, *step.second));
}

}  // namespace assay::plan
