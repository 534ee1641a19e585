// Gradients computed by backward plans on virtual devices equal those of the unsharded product.
#include "assay/plan/backward.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/execute/kernels/product.h"
#include "assay/execute/plan/run_plan.h"
#include "assay/execute/plan/run_step.h"
#include "assay/testing/random_case.h"

namespace assay::execute {
namespace {

using testing::Choose;
using testing::Sizes;

Choose drawn() {
  return [](std::int64_t n) { return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n)); };
}

/// Runs the steps, and checks that each starts where the tensor is and moves what it predicts.
Shards<double> run(VirtualDevices<double>& devices, const std::vector<plan::PlanStep>& steps, Shards<double> shards,
                   bool even) {
  for (const plan::PlanStep& step : steps) {
    const std::vector<Bytes> before = devices.received();
    shards = run_step(devices, step, shards);
    for (std::size_t d = 0; d < before.size() && even; ++d) {
      const double got = (devices.received()[d] - before[d]).value();
      const bool may_be_less = step.kind == plan::StepKind::permute;
      RC_ASSERT(got <= step.bytes.value() + 1e-6);
      RC_ASSERT(may_be_less || got >= step.bytes.value() - 1e-6);
    }
  }
  return shards;
}

void expect_gradient(const program::Mesh& mesh, const program::Tensor& operand, const Shards<double>& shards,
                     const Array<double>& expected) {
  program::Tensor gradient = operand;
  gradient.sharding = plan::without_unit_axes(mesh, operand.sharding);
  gradient.sharding.unreduced = 0;
  const Collected<double> collected = collect(shards, gradient, mesh);
  RC_ASSERT(collected.disagreement == 0.0);
  RC_ASSERT(largest_difference(collected.array, expected) == 0.0);
}

/// Left operand's steps first, as in the plan; `factors` are the shards that the local product multiplied.
void expect_gradients_right(const program::Mesh& mesh, const plan::ShardingExpression& e, const plan::Plan& plan,
                            bool even) {
  RC_LOG(program::mesh_text(mesh) + " " + plan::expression_text(mesh, e));
  const plan::BackwardPlan back = plan::plan_backward(mesh, e, plan);
  for (const auto* steps : {&back.result, &back.left, &back.right})
    for (const plan::PlanStep& step : *steps) RC_LOG(plan::step_text(mesh, step));
  const Array<double> left = random_integers<double>(global_shape(e.left), 1);
  const Array<double> right = random_integers<double>(global_shape(*e.right), 2);
  const Array<double> flowing = random_integers<double>(global_shape(*e.result), 3);
  VirtualDevices<double> devices(mesh);
  // The forward factors, cut directly: that plans lead there is tested elsewhere.
  const plan::PlanStep* multiply = nullptr;
  for (const plan::PlanStep& step : plan.steps)
    if (step.kind == plan::StepKind::multiply) multiply = &step;
  const Shards<double> a = distribute(left, multiply->before, mesh, 4),
                       b = distribute(right, *multiply->second, mesh, 5);
  program::Tensor result = *e.result;
  result.sharding = plan::without_unit_axes(mesh, result.sharding);
  result.sharding.unreduced = 0;
  const Shards<double> arrived = run(devices, back.result, distribute(flowing, result, mesh, 6), even);
  const Shards<double> to_left = run(devices, back.left, run_multiply(back.left_product, arrived, b), even);
  const Shards<double> to_right = run(devices, back.right, run_multiply(back.right_product, a, arrived), even);
  expect_gradient(mesh, e.left, to_left,
                  product_by_loops(flowing, names_of(*e.result), right, names_of(*e.right), names_of(e.left)));
  expect_gradient(mesh, *e.right, to_right,
                  product_by_loops(left, names_of(e.left), flowing, names_of(*e.result), names_of(*e.right)));
  RC_ASSERT(devices.idle());
}

void expect_random_gradients_right(Sizes sizes, bool alternatives) {
  const Choose choose = drawn();
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, sizes);
  const plan::PlanChoice choice = plan::plan_product(mesh, e, plan::byte_prices(mesh), alternatives ? 4 : 0);
  expect_gradients_right(mesh, e, choice.best, sizes == Sizes::divide);
  for (const plan::Plan& other : choice.others) expect_gradients_right(mesh, e, other, sizes == Sizes::divide);
}

RC_GTEST_PROP(Backward, GradientsOfSizesThatDivideEqualTheUnsharded, ()) {
  expect_random_gradients_right(Sizes::divide, false);
}
RC_GTEST_PROP(Backward, GradientsOfAnySizesEqualTheUnsharded, ()) { expect_random_gradients_right(Sizes::any, false); }
RC_GTEST_PROP(Backward, GradientsOfAlternativesEqualTheUnsharded, ()) {
  expect_random_gradients_right(Sizes::divide, true);
}

RC_GTEST_PROP(Backward, GradientsOfThoroughPlansEqualTheUnsharded, ()) {
  const Choose choose = drawn();
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, Sizes::divide);
  const plan::ThoroughPlan plan = plan::plan_product_thoroughly(mesh, e);
  expect_gradients_right(plan.mesh, over_plan_mesh(mesh, plan.mesh, e), plan.plan, true);
}

// The gradient of a resharding is the resharding backwards: dA summed over nothing, since A's copies are used once.
RC_GTEST_PROP(Backward, GradientsOfReshardingsComeBack, ()) {
  const Choose choose = drawn();
  const program::Mesh mesh = testing::random_mesh(choose);
  const program::Tensor from = testing::random_tensor(choose, mesh, Sizes::divide);
  const program::Sharding to = testing::random_sharding(choose, mesh, from.dims.size(), ~from.sharding.unreduced);
  const plan::Plan plan = plan::plan_reshard(mesh, from, to, plan::byte_prices(mesh));
  const Array<double> flowing = random_integers<double>(global_shape(from), 1);
  program::Tensor end = from;
  end.sharding = plan::without_unit_axes(mesh, to);
  end.sharding.unreduced = 0;
  VirtualDevices<double> devices(mesh);
  const Shards<double> back = run(devices, plan::reshard_backward(mesh, plan), distribute(flowing, end, mesh, 2), true);
  expect_gradient(mesh, from, back, flowing);
}

// Data parallelism: weights replicated over X, the batch split over it. Their gradient is summed over X.
TEST(Backward, WeightsThatAreReplicatedOverTheBatchAreReduced) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const plan::ShardingExpression e =
      *plan::parse_sharding("In[B_X, D] * W[D, F] -> Out[B_X, F]", mesh, {{"B", 8}, {"D", 4}, {"F", 4}}, Dtype::bf16);
  const plan::BackwardPlan back =
      plan::plan_backward(mesh, e, plan::plan_product(mesh, e, plan::byte_prices(mesh)).best);
  EXPECT_TRUE(back.left.empty());
  ASSERT_EQ(back.right.size(), 1u);
  EXPECT_EQ(plan::step_text(mesh, back.right[0]), "dW[D, F] = AllReduce_X(dW[D, F] {U_X})");
}

// Fully sharded weights: gathered forwards, so their gradient is reduce-scattered.
TEST(Backward, WeightsThatAreGatheredAreReduceScattered) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const plan::ShardingExpression e = *plan::parse_sharding("In[B_X, D] * W[D_X, F] -> Out[B_X, F]", mesh,
                                                           {{"B", 64}, {"D", 4}, {"F", 4}}, Dtype::bf16);
  const plan::BackwardPlan back =
      plan::plan_backward(mesh, e, plan::plan_product(mesh, e, plan::byte_prices(mesh)).best);
  ASSERT_EQ(back.right.size(), 1u);
  EXPECT_EQ(plan::step_text(mesh, back.right[0]), "dW[D_X, F] = ReduceScatter_X(dW[D, F] {U_X})");
}

}  // namespace
}  // namespace assay::execute
