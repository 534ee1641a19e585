#include "assay/program/plan/backward.h"

#include <algorithm>

#include "assay/program/plan/correspondence.h"

namespace assay::plan {
namespace {

program::Sharding without_partial_sums(program::Sharding sharding) {
  sharding.unreduced = 0;
  return sharding;
}

program::Tensor gradient_of(const program::Tensor& tensor, const program::Sharding& sharding) {
  program::Tensor gradient = tensor;
  gradient.name = "d" + tensor.name;
  gradient.sharding = sharding;
  return gradient;
}

/// The sharding of one operand's gradient after the local product: like the forward factor, partial over the
/// axes that split a summed dimension.
program::Sharding summed_gradient(const Correspondence& c, bool left, const program::Sharding& factor,
                                  const program::Sharding& other) {
  program::Sharding gradient = without_partial_sums(factor);
  for (const auto& row : c.rows())
    if ((left ? row.left : row.right) < 0) gradient.unreduced |= list_of(other, left ? row.right : row.left).set();
  gradient.unreduced |= other.unreduced;  // a product with addends gives addends
  return gradient;
}

}  // namespace

BackwardPlan plan_backward(const program::Mesh& mesh, const ShardingExpression& e, const Plan& forward,
                           const Prices& prices) {
  const auto product = std::find_if(forward.steps.begin(), forward.steps.end(),
                                    [](const program::Step& step) { return step.op == program::Op::product; });
  if (product == forward.steps.end()) throw InternalError("a plan does not multiply");
  const program::Tensor &left = forward.tensor(product->in[0]), &right = forward.tensor(product->in[1]);
  const program::Sharding of_left = summed_gradient(correspond(e), true, left.sharding, right.sharding),
                          of_right = summed_gradient(correspond(e), false, right.sharding, left.sharding);
  BackwardPlan back;
  Plan& plan = back.plan;
  Planner planner(mesh, true);
  const auto move = [&](int gradient, int tensor) {
    return planner.reshard(plan, gradient, without_partial_sums(forward.tensor(tensor).sharding), prices);
  };
  back.flowing = plan.add(gradient_of(*e.result, without_partial_sums(without_unit_axes(mesh, e.result->sharding))));
  back.left_factor = plan.add(left);
  back.right_factor = plan.add(right);
  const int arriving = move(back.flowing, product->out[0]);
  back.left_gradient = move(plan.multiply(mesh, arriving, back.right_factor, gradient_of(left, of_left)), 0);
  back.right_gradient = move(plan.multiply(mesh, back.left_factor, arriving, gradient_of(right, of_right)), 1);
  return back;
}

Plan reshard_backward(const program::Mesh& mesh, const Plan& forward, const Prices& prices) {
  const program::Tensor& end = forward.tensor(forward.last());
  return plan_reshard(mesh, gradient_of(end, without_partial_sums(end.sharding)),
                      without_partial_sums(forward.tensor(0).sharding), prices);
}

}  // namespace assay::plan
