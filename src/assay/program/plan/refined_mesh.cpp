// Meshes whose axes are split into parts, and plans that may move such parts.
#include "assay/program/plan/planner.h"

namespace assay::plan {

RefinedMesh refine(const program::Mesh& mesh) {
  RefinedMesh refined;
  for (const program::MeshAxis& axis : mesh.axes) {
    std::vector<std::int64_t> factors;
    std::int64_t rest = axis.size;
    for (std::int64_t prime = 2; prime * prime <= rest; ++prime)
      for (; rest % prime == 0; rest /= prime) factors.push_back(prime);
    if (rest > 1 || factors.empty()) factors.push_back(rest);
    std::vector<int> parts;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      parts.push_back(static_cast<int>(refined.mesh.axes.size()));
      refined.mesh.axes.push_back({factors.size() == 1 ? axis.name : program::part_name(axis.name, i + 1), factors[i]});
    }
    refined.parts.push_back(std::move(parts));
  }
  return refined;
}

program::Sharding RefinedMesh::refine(const program::Sharding& sharding) const {
  program::Sharding fine;
  for (std::size_t d = 0; d < program::max_tensor_rank; ++d)
    for (int axis : sharding.dims[d].axes())
      for (int part : parts[static_cast<std::size_t>(axis)]) fine.dims[d] = fine.dims[d].pushed(part);
  for (std::size_t axis = 0; axis < parts.size(); ++axis)
    if (sharding.unreduced & program::axis_bit(static_cast<int>(axis)))
      for (int part : parts[axis]) fine.unreduced |= program::axis_bit(part);
  return fine;
}

namespace {

/// True if splitting by the parts of an axis in turn gives the same shards as splitting by the axis:
/// below the first part of each axis nothing is padded.
bool keeps_shards(const RefinedMesh& fine, const program::Tensor& tensor) {
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    std::int64_t size = tensor.dims[d].size;
    for (int axis : tensor.sharding.dims[d].axes()) {
      const std::vector<int>& parts = fine.parts[static_cast<std::size_t>(axis)];
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t ways = fine.mesh.size(parts[i]);
        if (i > 0 && size % ways != 0) return false;
        size = (size + ways - 1) / ways;
      }
    }
  }
  return true;
}

}  // namespace

ThoroughPlan plan_product_thoroughly(const program::Mesh& mesh, const ShardingExpression& expression) {
  return plan_product_thoroughly(mesh, expression, plan_product(mesh, expression, byte_prices(mesh)).best);
}

ThoroughPlan plan_product_thoroughly(const program::Mesh& mesh, const ShardingExpression& expression, Plan whole_axes) {
  constexpr std::size_t most_parts = 6;  // beyond this, the space is too large for an interactive search
  ThoroughPlan coarse{mesh, std::move(whole_axes)};
  const RefinedMesh fine = plan::refine(mesh);
  if (coarse.plan.cost == 0.0 || fine.mesh.axes.size() == mesh.axes.size() || fine.mesh.axes.size() > most_parts)
    return coarse;
  for (const program::Tensor* tensor : {&expression.left, &*expression.right, &*expression.result})
    if (!keeps_shards(fine, *tensor)) return coarse;
  ShardingExpression parts = expression;
  parts.left.sharding = fine.refine(expression.left.sharding);
  parts.right->sharding = fine.refine(expression.right->sharding);
  parts.result->sharding = fine.refine(expression.result->sharding);
  Plan plan = plan_product(fine.mesh, parts, byte_prices(fine.mesh)).best;
  if (plan.cost < coarse.plan.cost * (1.0 - 1e-12)) return {fine.mesh, std::move(plan)};
  return coarse;
}

}  // namespace assay::plan
