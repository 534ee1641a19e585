// Gradients computed by backward plans on virtual devices equal those of the unsharded product.
#include "assay/program/plan/backward.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/engine/plan/run_plan.h"
#include "assay/testing/random_case.h"

namespace assay::engine {
namespace {

using testing::Choose;
using testing::Sizes;

Choose random_choices() {
  return [](std::int64_t n) { return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n)); };
}

void expect_gradient(const program::Mesh& mesh, const program::Tensor& operand, const Shards& shards,
                     const Array& expected) {
  program::Tensor gradient = operand;
  gradient.sharding = plan::without_unit_axes(mesh, operand.sharding);
  gradient.sharding.unreduced = 0;
  const Collected collected = collect(shards, gradient, mesh);
  RC_ASSERT(collected.disagreement == 0.0);
  RC_ASSERT(largest_difference(collected.array, expected) == 0.0);
}

void expect_gradients_right(const program::Mesh& mesh, const plan::ShardingExpression& e, const plan::Plan& plan) {
  RC_LOG(program::mesh_text(mesh) + " " + plan::expression_text(mesh, e));
  const plan::BackwardPlan back = plan::plan_backward(mesh, e, plan, plan::byte_prices(mesh));
  for (const program::Step& step : back.plan.steps) RC_LOG(program::step_text(mesh, back.plan.tensors, step));
  const Array left = random_integers(global_shape(e.left), 1);
  const Array right = random_integers(global_shape(*e.right), 2);
  const Array flowing = random_integers(global_shape(*e.result), 3);
  // The forward factors, cut directly: that plans lead there is tested elsewhere.
  std::vector<Shards> memory(back.plan.tensors.size());
  const auto give = [&](int id, const Array& array) {
    memory[static_cast<std::size_t>(id)] =
        distribute(array, back.plan.tensor(id), mesh, 4 + static_cast<std::uint64_t>(id));
  };
  give(back.flowing, flowing);
  give(back.left_factor, left);
  give(back.right_factor, right);
  VirtualDevices devices(mesh);
  RC_ASSERT(run_steps(devices, back.plan, memory).agree);
  expect_gradient(mesh, e.left, memory[static_cast<std::size_t>(back.left_gradient)],
                  product_by_loops(flowing, names_of(*e.result), right, names_of(*e.right), names_of(e.left)));
  expect_gradient(mesh, *e.right, memory[static_cast<std::size_t>(back.right_gradient)],
                  product_by_loops(left, names_of(e.left), flowing, names_of(*e.result), names_of(*e.right)));
}

void expect_random_gradients_right(Sizes sizes, bool alternatives) {
  const Choose choose = random_choices();
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, sizes);
  const plan::PlanChoice choice = plan::plan_product(mesh, e, plan::byte_prices(mesh), alternatives ? 4 : 0);
  expect_gradients_right(mesh, e, choice.best);
  for (const plan::Plan& other : choice.others) expect_gradients_right(mesh, e, other);
}

RC_GTEST_PROP(Backward, GradientsOfSizesThatDivideEqualTheUnsharded, ()) {
  expect_random_gradients_right(Sizes::divide, false);
}
RC_GTEST_PROP(Backward, GradientsOfAnySizesEqualTheUnsharded, ()) { expect_random_gradients_right(Sizes::any, false); }
RC_GTEST_PROP(Backward, GradientsOfAlternativesEqualTheUnsharded, ()) {
  expect_random_gradients_right(Sizes::divide, true);
}

RC_GTEST_PROP(Backward, GradientsOfThoroughPlansEqualTheUnsharded, ()) {
  const Choose choose = random_choices();
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, Sizes::divide);
  const plan::ThoroughPlan plan = plan::plan_product_thoroughly(mesh, e);
  expect_gradients_right(plan.mesh, over_plan_mesh(mesh, plan.mesh, e), plan.plan);
}

// The gradient of a resharding is the resharding backwards: dA summed over nothing, since A's copies are used once.
RC_GTEST_PROP(Backward, GradientsOfReshardingsComeBack, ()) {
  const Choose choose = random_choices();
  const program::Mesh mesh = testing::random_mesh(choose);
  const program::Tensor from = testing::random_tensor(choose, mesh, Sizes::divide);
  const program::Sharding to = testing::random_sharding(choose, mesh, from.dims.size(), ~from.sharding.unreduced);
  const plan::Plan plan = plan::plan_reshard(mesh, from, to, plan::byte_prices(mesh));
  const Array flowing = random_integers(global_shape(from), 1);
  const plan::Plan back = plan::reshard_backward(mesh, plan, plan::byte_prices(mesh));
  std::vector<Shards> memory(back.tensors.size());
  memory[0] = distribute(flowing, back.tensor(0), mesh, 2);
  VirtualDevices devices(mesh);
  RC_ASSERT(run_steps(devices, back, memory).agree);
  expect_gradient(mesh, from, memory[static_cast<std::size_t>(back.last())], flowing);
}

/// The steps after the local product that makes an operand's gradient.
std::vector<std::string> steps_to(const program::Mesh& mesh, const plan::BackwardPlan& back, int gradient) {
  std::vector<std::string> texts;
  for (std::size_t i = back.plan.steps.size(); i-- > 0;) {
    const program::Step& step = back.plan.steps[i];
    if (step.out[0] != gradient || step.op == program::Op::product) continue;
    texts.insert(texts.begin(), program::step_text(mesh, back.plan.tensors, step));
    gradient = step.in[0];
  }
  return texts;
}

// Data parallelism: weights replicated over X, the batch split over it. Their gradient is summed over X.
TEST(Backward, WeightsThatAreReplicatedOverTheBatchAreReduced) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const plan::ShardingExpression e =
      *plan::parse_sharding("In[B_X, D] * W[D, F] -> Out[B_X, F]", mesh, {{"B", 8}, {"D", 4}, {"F", 4}}, Dtype::bf16);
  const plan::Prices prices = plan::byte_prices(mesh);
  const plan::BackwardPlan back = plan::plan_backward(mesh, e, plan::plan_product(mesh, e, prices).best, prices);
  EXPECT_TRUE(steps_to(mesh, back, back.left_gradient).empty());
  EXPECT_EQ(steps_to(mesh, back, back.right_gradient),
            std::vector<std::string>{"dW[D, F] = AllReduce_X(dW[D, F] {U_X})"});
}

// Fully sharded weights: gathered forwards, so their gradient is reduce-scattered.
TEST(Backward, WeightsThatAreGatheredAreReduceScattered) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const plan::ShardingExpression e = *plan::parse_sharding("In[B_X, D] * W[D_X, F] -> Out[B_X, F]", mesh,
                                                           {{"B", 64}, {"D", 4}, {"F", 4}}, Dtype::bf16);
  const plan::Prices prices = plan::byte_prices(mesh);
  const plan::BackwardPlan back = plan::plan_backward(mesh, e, plan::plan_product(mesh, e, prices).best, prices);
  EXPECT_EQ(steps_to(mesh, back, back.right_gradient),
            std::vector<std::string>{"dW[D_X, F] = ReduceScatter_X(dW[D, F] {U_X})"});
}

}  // namespace
}  // namespace assay::engine
