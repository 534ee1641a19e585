#include "assay/program/plan/propagation.h"

#include <algorithm>

#include "assay/program/plan/correspondence.h"

namespace assay::plan {
namespace {

/// Calls back with every sharding of a tensor by some axes that divides evenly.
template <class F>
void each_sharding(const program::Mesh& mesh, const program::Tensor& tensor, const std::vector<int>& axes, F&& visit) {
  program::Sharding sharding;
  const auto descend = [&](const auto& self, std::size_t i) -> void {
    if (i == axes.size()) return visit(sharding);
    self(self, i + 1);
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
      const program::AxisList before = sharding.dims[d];
      const program::AxisList list = before.pushed(axes[i]);
      if (tensor.dims[d].size % static_cast<std::int64_t>(program::shard_count(mesh, list.set())) != 0) continue;
      sharding.dims[d] = list;
      self(self, i + 1);
      sharding.dims[d] = before;
    }
  };
  descend(descend, 0);
}

}  // namespace

Result<PropagatedResult> propagated_result(const program::Mesh& mesh, const ShardingExpression& expression,
                                           const Prices& prices) {
  constexpr std::size_t most_axes = 5;  // beyond, the space is too large for an interactive search
  ShardingExpression e = expression;
  program::Tensor result;
  result.dtype = e.left.dtype;
  for (const char* name : {"C", "Out", "Result"})
    if (result.name.empty() && e.left.name != name && e.right->name != name) result.name = name;
  for (const auto& [from, other] : {std::pair{&e.left, &*e.right}, std::pair{&*e.right, &e.left}})
    for (const program::Dimension& dim : from->dims)
      if (find_dim(*other, dim.name) < 0) result.dims.push_back(dim);
  if (result.dims.empty())
    return fail("expression", "the result is missing: both operands have the same dimensions",
                "write A[I_X, J] * B[J, K] -> C[I_X, K]");
  if (result.dims.size() > program::max_tensor_rank)
    return fail("expression", "the result has too many dimensions", "write A[I_X, J] * B[J, K] -> C[I_X, K]");
  e.result = result;
  ASSAY_CHECK(check_product(e));
  std::vector<int> axes;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if ((e.left.sharding.used_axes() | e.right->sharding.used_axes()) & program::axis_bit(static_cast<int>(i)))
      if (mesh.axes[i].size > 1) axes.push_back(static_cast<int>(i));
  if (axes.size() > most_axes)
    return fail("expression", "the result is missing: with more than 5 axes it is not searched for",
                "write A[I_X, J] * B[J, K] -> C[I_X, K]");
  Planner planner(mesh);
  struct Candidate {
    program::Tensor tensor;
    double cost, held;
  };
  std::vector<Candidate> all;
  each_sharding(mesh, result, axes, [&](const program::Sharding& sharding) {
    e.result->sharding = sharding;
    all.push_back({*e.result, planner.outline(e, prices).total, program::local_bytes(mesh, *e.result).value()});
  });
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.held < b.held;
  });
  PropagatedResult out{all.front().tensor, all.front().cost, all.size(), {}, 0.0};
  for (const Candidate& candidate : all)
    if (!out.next && candidate.cost > out.cost) {
      out.next = candidate.tensor;
      out.next_cost = candidate.cost;
    }
  return out;
}

}  // namespace assay::plan
