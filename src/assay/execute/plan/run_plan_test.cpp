#include "assay/execute/plan/run_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/testing/random_case.h"

namespace assay {
namespace {

using testing::Choose;
using testing::Sizes;

/// Choices drawn by rapidcheck.
Choose chooser() {
  return [](std::int64_t n) { return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n)); };
}

std::string plan_text(const Mesh& mesh, const Plan& plan) {
  std::string text = mesh_text(mesh);
  for (const PlanStep& step : plan.steps) text += "\n  " + step_text(mesh, step);
  return text;
}

void expect_right(const Mesh& mesh, const Plan& plan, const ShardingExpression& e, std::uint64_t seed) {
  RC_LOG(expression_text(mesh, e) + "\n" + plan_text(mesh, plan));
  const PlanRun<double> run = run_plan<double>(mesh, plan, e, seed);
  RC_ASSERT(run.max_error == 0.0);
  RC_ASSERT(run.bytes_agree);
  RC_ASSERT(std::abs(run.predicted.value() - plan.bytes.value()) <= 1e-9 * plan.bytes.value());
}

void expect_product_right(Sizes sizes, bool thorough) {
  const Choose choose = chooser();
  const Mesh mesh = testing::random_mesh(choose);
  const ShardingExpression e = testing::random_product(choose, mesh, sizes);
  RC_LOG(mesh_text(mesh) + " " + expression_text(mesh, e));
  if (thorough) {
    const ThoroughPlan plan = plan_product_thoroughly(mesh, e);
    expect_right(plan.mesh, plan.plan, over_plan_mesh(mesh, plan.mesh, e), 1);
  } else {
    expect_right(mesh, plan_product(mesh, e, byte_prices(mesh)).best, e, 2);
  }
}

RC_GTEST_PROP(RunPlan, ProductsOfSizesThatDivideEqualTheUnsharded, ()) { expect_product_right(Sizes::divide, false); }
RC_GTEST_PROP(RunPlan, ProductsOfAnySizesEqualTheUnsharded, ()) { expect_product_right(Sizes::any, false); }
RC_GTEST_PROP(RunPlan, ThoroughProductsEqualTheUnsharded, ()) { expect_product_right(Sizes::divide, true); }
RC_GTEST_PROP(RunPlan, ThoroughProductsOfAnySizesEqualTheUnsharded, ()) { expect_product_right(Sizes::any, true); }

RC_GTEST_PROP(RunPlan, AlternativesEqualTheUnsharded, ()) {
  const Choose choose = chooser();
  const Mesh mesh = testing::random_mesh(choose);
  const ShardingExpression e = testing::random_product(choose, mesh, Sizes::divide);
  RC_LOG(mesh_text(mesh) + " " + expression_text(mesh, e));
  for (const Plan& plan : plan_product(mesh, e, byte_prices(mesh), 3).others) expect_right(mesh, plan, e, 3);
}

void expect_reshard_right(Sizes sizes) {
  const Choose choose = chooser();
  const Mesh mesh = testing::random_mesh(choose);
  ShardingExpression e;
  e.left = testing::random_tensor(choose, mesh, sizes);
  e.result = e.left;
  e.result->sharding = testing::random_sharding(choose, mesh, e.left.dims.size(), ~e.left.sharding.unreduced);
  RC_LOG(mesh_text(mesh) + " " + expression_text(mesh, e));
  expect_right(mesh, plan_reshard(mesh, e.left, e.result->sharding, byte_prices(mesh)), e, 4);
}

RC_GTEST_PROP(RunPlan, ReshardingsOfSizesThatDivideKeepTheArray, ()) { expect_reshard_right(Sizes::divide); }
RC_GTEST_PROP(RunPlan, ReshardingsOfAnySizesKeepTheArray, ()) { expect_reshard_right(Sizes::any); }

TEST(RunPlan, RealNumbersAgreeToRounding) {
  const Mesh mesh = *parse_mesh("X=4,Y=2", "");
  const ShardingExpression e =
      *parse_sharding("A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]", mesh, {{"I", 40}, {"J", 48}, {"K", 24}}, Dtype::fp32);
  const Plan plan = plan_product(mesh, e, byte_prices(mesh)).best;
  EXPECT_LT(run_plan<double>(mesh, plan, e, 1, Fill::reals).max_error, 1e-14);
  EXPECT_LT(run_plan<float>(mesh, plan, e, 1, Fill::reals).max_error, 1e-6);
  EXPECT_EQ(run_plan<float>(mesh, plan, e, 1).max_error, 0.0);
}

TEST(RunPlan, AWrongPlanIsFound) {
  // C is a partial sum over X; taking it as it is loses all addends but one.
  const Mesh mesh = *parse_mesh("X=2", "");
  const ShardingExpression e =
      *parse_sharding("A[I, J_X] * B[J_X, K] -> C[I, K]", mesh, {{"I", 4}, {"J", 4}, {"K", 4}}, Dtype::bf16);
  Plan plan = plan_product(mesh, e, byte_prices(mesh)).best;
  for (PlanStep& step : plan.steps)
    if (step.kind == StepKind::all_reduce) step.kind = StepKind::slice;
  const PlanRun<double> run = run_plan<double>(mesh, plan, e);
  EXPECT_GT(run.max_error, 1e-9);
  EXPECT_FALSE(run.bytes_agree);
}

TEST(RunPlan, EveryDeviceReceivesWhatIsPredicted) {
  // A[I_X, J] * B[J, K] -> C[I, K]: 4 devices, gather C of 8 x 8 bf16 in shards of 32 B: 3 * 32 B.
  const Mesh mesh = *parse_mesh("X=4", "");
  const ShardingExpression e =
      *parse_sharding("A[I_X, J] * B[J, K] -> C[I, K]", mesh, {{"I", 8}, {"J", 16}, {"K", 8}}, Dtype::bf16);
  const PlanRun<double> run = run_plan<double>(mesh, plan_product(mesh, e, byte_prices(mesh)).best, e);
  for (Bytes bytes : run.received) EXPECT_EQ(bytes.value(), 96.0);
}

TEST(RunPlan, RefusesWhatIsTooLarge) {
  const Mesh mesh = *parse_mesh("X=4", "");
  const DimensionSizes sizes{{"I", 1 << 20}, {"J", 1 << 10}, {"K", 8}};
  const ShardingExpression e = *parse_sharding("A[I_X, J] * B[J, K] -> C[I, K]", mesh, sizes, Dtype::bf16);
  const auto refused = check_runnable(mesh, plan_product(mesh, e, byte_prices(mesh)).best, e);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("67108864 elements"), std::string::npos) << refused.error().what;
}

}  // namespace
}  // namespace assay
