// The steps of plans and their prices.
#include "assay/program/plan/correspondence.h"
#include "assay/program/plan/planner.h"

namespace assay::plan {

int Plan::add(program::Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<int>(tensors.size()) - 1;
}

int Plan::move(const program::Mesh& mesh, int from, MoveKind kind, program::AxisSet axes, const program::Sharding& to,
               double price) {
  program::Tensor after = tensor(from);
  after.sharding = to;
  const int made = add(std::move(after));
  program::Step& step = steps.emplace_back(program::movement(kind, axes, from, made));
  step.bytes =
      program::received_bytes(step, program::shard_count(mesh, axes), program::local_bytes(mesh, tensor(from)));
  bytes += step.bytes;
  costs.push_back(price);
  cost += price;
  return made;
}

int Plan::multiply(const program::Mesh& mesh, int left, int right, program::Tensor result) {
  const int made = add(std::move(result));
  program::Step& step = steps.emplace_back();
  step.in[0] = static_cast<std::int16_t>(left);
  step.in[1] = static_cast<std::int16_t>(right);
  step.out[0] = static_cast<std::int16_t>(made);
  const ShardingExpression e{tensor(left), tensor(right), tensor(made)};
  step.flops = local_flops(mesh, correspond(e), e.left.sharding, e.right->sharding);
  for (const int id : {left, right, made}) step.bytes += program::local_bytes(mesh, tensor(id));
  flops += step.flops;
  costs.push_back(0.0);
  return made;
}

Prices::Prices(const program::Mesh& mesh)
    : axes_(mesh.axes.size()), table_(program::collective_kinds << mesh.axes.size()) {}

bool Prices::proportional() const {
  for (const Line& line : table_)
    if (line.floor != 0.0) return false;
  return true;
}

Prices byte_prices(const program::Mesh& mesh) {
  Prices prices(mesh);
  for (program::AxisSet axes = 1; axes < program::axis_bit(static_cast<int>(mesh.axes.size())); ++axes)
    for (const program::CollectiveFacts& each : program::all_collectives)
      if (each.reshards)
        prices.set(each.kind, axes, {program::received_share(each.kind, program::shard_count(mesh, axes)), 0.0});
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

}  // namespace assay::plan
