#include "assay/engine/plan/run_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/testing/random_case.h"

namespace assay::engine {
namespace {

using testing::Choose;
using testing::Sizes;

/// Choices drawn by rapidcheck.
Choose chooser() {
  return [](std::int64_t n) { return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n)); };
}

std::string plan_text(const program::Mesh& mesh, const plan::Plan& plan) {
  std::string text = program::mesh_text(mesh);
  for (const program::Step& step : plan.steps) text += "\n  " + program::step_text(mesh, plan.tensors, step);
  return text;
}

void expect_right(const program::Mesh& mesh, const plan::Plan& plan, const plan::ShardingExpression& e,
                  std::uint64_t seed) {
  RC_LOG(plan::expression_text(mesh, e) + "\n" + plan_text(mesh, plan));
  const PlanRun run = run_plan(mesh, plan, e, seed);
  RC_ASSERT(run.max_error == 0.0);
  RC_ASSERT(run.bytes.agree);
  RC_ASSERT(std::abs(run.bytes.predicted.value() - plan.bytes.value()) <= 1e-9 * plan.bytes.value());
}

void expect_product_right(Sizes sizes, bool thorough) {
  const Choose choose = chooser();
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, sizes);
  RC_LOG(program::mesh_text(mesh) + " " + plan::expression_text(mesh, e));
  if (thorough) {
    const plan::ThoroughPlan plan = plan::plan_product_thoroughly(mesh, e);
    expect_right(plan.mesh, plan.plan, over_plan_mesh(mesh, plan.mesh, e), 1);
  } else {
    expect_right(mesh, plan::plan_product(mesh, e, plan::byte_prices(mesh)).best, e, 2);
  }
}

RC_GTEST_PROP(RunPlan, ProductsOfSizesThatDivideEqualTheUnsharded, ()) { expect_product_right(Sizes::divide, false); }
RC_GTEST_PROP(RunPlan, ProductsOfAnySizesEqualTheUnsharded, ()) { expect_product_right(Sizes::any, false); }
RC_GTEST_PROP(RunPlan, ThoroughProductsEqualTheUnsharded, ()) { expect_product_right(Sizes::divide, true); }
RC_GTEST_PROP(RunPlan, ThoroughProductsOfAnySizesEqualTheUnsharded, ()) { expect_product_right(Sizes::any, true); }

RC_GTEST_PROP(RunPlan, AlternativesEqualTheUnsharded, ()) {
  const Choose choose = chooser();
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, Sizes::divide);
  RC_LOG(program::mesh_text(mesh) + " " + plan::expression_text(mesh, e));
  for (const plan::Plan& plan : plan::plan_product(mesh, e, plan::byte_prices(mesh), 3).others)
    expect_right(mesh, plan, e, 3);
}

void expect_reshard_right(Sizes sizes) {
  const Choose choose = chooser();
  const program::Mesh mesh = testing::random_mesh(choose);
  plan::ShardingExpression e;
  e.left = testing::random_tensor(choose, mesh, sizes);
  e.result = e.left;
  e.result->sharding = testing::random_sharding(choose, mesh, e.left.dims.size(), ~e.left.sharding.unreduced);
  RC_LOG(program::mesh_text(mesh) + " " + plan::expression_text(mesh, e));
  expect_right(mesh, plan::plan_reshard(mesh, e.left, e.result->sharding, plan::byte_prices(mesh)), e, 4);
}

RC_GTEST_PROP(RunPlan, ReshardingsOfSizesThatDivideKeepTheArray, ()) { expect_reshard_right(Sizes::divide); }
RC_GTEST_PROP(RunPlan, ReshardingsOfAnySizesKeepTheArray, ()) { expect_reshard_right(Sizes::any); }

TEST(RunPlan, AWrongPlanIsFound) {
  // C is a partial sum over X; taking it as it is loses all addends but one.
  const program::Mesh mesh = *program::parse_mesh("X=2", "");
  const plan::ShardingExpression e =
      *plan::parse_sharding("A[I, J_X] * B[J_X, K] -> C[I, K]", mesh, {{"I", 4}, {"J", 4}, {"K", 4}}, Dtype::bf16);
  plan::Plan plan = plan::plan_product(mesh, e, plan::byte_prices(mesh)).best;
  for (program::Step& step : plan.steps)
    if (step.is(program::Collective::all_reduce)) step.op = program::Op::slice;
  const PlanRun run = run_plan(mesh, plan, e);
  EXPECT_GT(run.max_error, 1e-9);
  EXPECT_FALSE(run.bytes.agree);
}

TEST(RunPlan, EveryDeviceReceivesWhatIsPredicted) {
  // A[I_X, J] * B[J, K] -> C[I, K]: 4 devices, gather C of 8 x 8 bf16 in shards of 32 B: 3 * 32 B.
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const plan::ShardingExpression e =
      *plan::parse_sharding("A[I_X, J] * B[J, K] -> C[I, K]", mesh, {{"I", 8}, {"J", 16}, {"K", 8}}, Dtype::bf16);
  const PlanRun run = run_plan(mesh, plan::plan_product(mesh, e, plan::byte_prices(mesh)).best, e);
  for (Bytes bytes : run.received) EXPECT_EQ(bytes.value(), 96.0);
}

TEST(RunPlan, RefusesWhatIsTooLarge) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const plan::DimensionSizes sizes{{"I", 1 << 20}, {"J", 1 << 10}, {"K", 8}};
  const plan::ShardingExpression e = *plan::parse_sharding("A[I_X, J] * B[J, K] -> C[I, K]", mesh, sizes, Dtype::bf16);
  const auto refused = check_runnable(mesh, plan::plan_product(mesh, e, plan::byte_prices(mesh)).best, e);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("67108864 elements"), std::string::npos) << refused.error().what;
}

}  // namespace
}  // namespace assay::engine
