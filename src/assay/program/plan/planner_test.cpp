#include "assay/program/plan/planner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/program/plan/correspondence.h"
#include "assay/program/plan/explorer.h"

namespace assay::plan {
namespace {

const program::Mesh mesh{{{"X", 4}, {"Y", 2}}};
const DimensionSizes sizes{{"I", 512}, {"J", 1024}, {"K", 2048}};

ShardingExpression parse(const char* text) { return *parse_sharding(text, mesh, sizes, Dtype::fp32); }

PlanChoice plan(const char* text) { return plan_product(mesh, parse(text), byte_prices(mesh), 3); }

TEST(Planner, NothingContractedNeedsNothing) {
  const PlanChoice choice = plan("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]");
  EXPECT_EQ(choice.best.bytes, 0_B);
  EXPECT_EQ(choice.best.steps.size(), 1u);
  EXPECT_EQ(product_case(parse("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]")), 1);
}

// Case 3: each device holds [128, 1024/2] x [512, 2048]; the sums are 128 x 2048 x 4 B = 1 MiB, and an all-reduce over
// two devices receives 2 x 1/2 of them. Gathering instead would bring 128 x 512 x 4 B of A and 512 x 2048 x 4 B of B.
TEST(Planner, PartialSumsAreReduced) {
  const PlanChoice choice = plan("A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]");
  EXPECT_EQ(choice.best.bytes, 1_MiB);
  EXPECT_TRUE(choice.best.steps.back().is(program::Collective::all_reduce));
  EXPECT_EQ(product_case(parse("A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]")), 3);
  EXPECT_EQ(product_case(parse("A[I, J_Y] * B[J, K] -> C[I, K]")), 2);
  EXPECT_EQ(product_case(parse("A[I_X, J] * B[J, K_X] -> C[I_X, K]")), 4);
}

// Case 4 with the result sharded as A: gather B[J, K_X], 3/4 of 1024 x 2048 x 4 B = 6 MiB, or keep B's columns and
// gather A, 3/4 of 2 MiB = 1.5 MiB, then move the result: all-to-all of 512 x 512 x 4 B x 3/4 = 0.75 MiB.
TEST(Planner, MovesTheCheaperOperand) {
  const program::Mesh line{{{"X", 4}}};
  const ShardingExpression e = *parse_sharding("A[I_X, J] * B[J, K_X] -> C[I_X, K]", line, sizes, Dtype::fp32);
  const PlanChoice choice = plan_product(line, e, byte_prices(line), 3);
  EXPECT_DOUBLE_EQ(choice.best.bytes.value(), (2.25 * 1_MiB).value());
  EXPECT_FALSE(choice.others.empty());
  // With an idle second axis the same product is cheaper still: shards are sliced over it for free first.
  EXPECT_LT(plan("A[I_X, J] * B[J, K_X] -> C[I_X, K]").best.bytes, choice.best.bytes);
}

TEST(Planner, ReshardingMovesAnAxisByAllToAll) {
  const ShardingExpression e = parse("A[I_X, J] -> A[I, J_X]");
  const Plan moved = plan_reshard(mesh, e.left, e.result->sharding, byte_prices(mesh));
  ASSERT_EQ(moved.steps.size(), 1u);
  EXPECT_TRUE(moved.steps[0].is(program::Collective::all_to_all));
  EXPECT_DOUBLE_EQ(moved.bytes.value(), 0.75 * 128 * 1024 * 4);
}

// A[I_X, J_Y] must become I_Y: with X in halves the plan gathers less than with X as a whole.
TEST(Planner, PartsOfAnAxisCanBeCheaper) {
  const ShardingExpression e = parse("A[I_X, J_Y] * B[J, K] -> C[I_Y, K]");
  const Plan whole = plan_product(mesh, e, byte_prices(mesh)).best;
  const ThoroughPlan parts = plan_product_thoroughly(mesh, e);
  EXPECT_LT(parts.plan.bytes, whole.bytes);
  EXPECT_LE(parts.plan.bytes.value(), 1048576.0);  // what a production partitioner moves for this row
}

// The text is that of a program's listing.
TEST(Planner, StepsReadLikeThoseOfAProgram) {
  const Plan best = plan("A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]").best;
  ASSERT_EQ(best.steps.size(), 2u);
  EXPECT_EQ(program::step_text(mesh, best.tensors, best.steps[0]), "C[I_X, K] {U_Y} = A[I_X, J_Y] ·J B[J_Y, K]");
  EXPECT_EQ(program::step_text(mesh, best.tensors, best.steps[1]), "C[I_X, K] = AllReduce_Y(C[I_X, K] {U_Y})");
  EXPECT_EQ(best.steps[0].flops, best.flops);
  EXPECT_EQ(best.flops, Flops(2.0 * 128 * 512 * 2048));
}

program::Sharding random_sharding(const program::Mesh& over, std::size_t rank) {
  program::Sharding sharding;
  for (int axis = 0; axis < static_cast<int>(over.axes.size()); ++axis) {
    const int place = *rc::gen::inRange<int>(0, static_cast<int>(rank) + 1);
    if (place < static_cast<int>(rank))
      sharding.dims[static_cast<std::size_t>(place)] = sharding.dims[static_cast<std::size_t>(place)].pushed(axis);
  }
  return sharding;
}

RC_GTEST_PROP(Planner, NeverCostsMoreThanGatheringEverything, ()) {
  ShardingExpression e = parse("A[I, J] * B[J, K] -> C[I, K]");
  e.left.sharding = random_sharding(mesh, 2), e.right->sharding = random_sharding(mesh, 2),
  e.result->sharding = random_sharding(mesh, 2);
  const Plan best = plan_product(mesh, e, byte_prices(mesh)).best;
  const Bytes all = (program::global_bytes(e.left) - program::local_bytes(mesh, e.left)) +
                    (program::global_bytes(*e.right) - program::local_bytes(mesh, *e.right));
  RC_ASSERT(best.bytes <= all);
  RC_ASSERT(best.steps.size() > 0u);
  const ThoroughPlan thorough = plan_product_thoroughly(mesh, e);
  RC_ASSERT(thorough.plan.cost <= best.cost);
}

// A planner that remembers answers as one that starts afresh, at prices with and without floors.
RC_GTEST_PROP(Planner, WhatItRemembersDoesNotChangePlans, ()) {
  const program::Mesh cube = *program::parse_mesh("X=2,Y=4,Z=2", "");
  Prices floors = byte_prices(cube);
  for (program::AxisSet axes = 1; axes < 8; ++axes)
    for (const program::CollectiveFacts& each : program::all_collectives)
      floors.set(each.kind, axes, {1.0 + axes, 5000.0});
  const Prices bytes = byte_prices(cube);
  Planner warm(cube);
  for (int i = 0; i < 8; ++i) {
    const auto size = [] { return *rc::gen::element<std::int64_t>(16, 48, 64, 7); };
    ShardingExpression e = *parse_sharding("A[I, J] * B[J, K] -> C[I, K]", cube,
                                           {{"I", size()}, {"J", size()}, {"K", size()}}, Dtype::bf16);
    e.left.sharding = random_sharding(cube, 2), e.right->sharding = random_sharding(cube, 2),
    e.result->sharding = random_sharding(cube, 2);
    const Prices& prices = i < 4 ? floors : bytes;
    const double fresh = plan_product(cube, e, prices).best.cost, known = warm.product(e, prices).best.cost;
    RC_ASSERT(std::abs(known - fresh) <= 1e-9 * fresh);
  }
}

/// Every sharding of two dimensions, with axes in every order.
void all_shardings(const program::Mesh& over, const program::Sharding& from, std::vector<program::Sharding>& out) {
  if (std::find(out.begin(), out.end(), from) != out.end()) return;
  out.push_back(from);
  for (int axis = 0; axis < static_cast<int>(over.axes.size()); ++axis)
    for (std::size_t d = 0; d < 2 && !(from.used_axes() & program::axis_bit(axis)); ++d) {
      program::Sharding more = from;
      more.dims[d] = more.dims[d].pushed(axis);
      all_shardings(over, more, out);
    }
}

// Every pair of shardings that the operands can be moved to, and from their product to the result.
RC_GTEST_PROP(Planner, FindsWhatTryingEveryPairFinds, ()) {
  const program::Mesh cube =
      *program::parse_mesh(*rc::gen::element<std::string>("X=2,Y=2,Z=2", "X=2,Y=3", "X=4,Y=2,Z=2"), "");
  std::vector<program::Sharding> all;
  all_shardings(cube, {}, all);
  ShardingExpression e =
      *parse_sharding("A[I, J] * B[J, K] -> C[I, K]", cube,
                      {{"I", *rc::gen::element<std::int64_t>(48, 480)}, {"J", 96}, {"K", 192}}, Dtype::bf16);
  e.left.sharding = random_sharding(cube, 2), e.right->sharding = random_sharding(cube, 2),
  e.result->sharding = random_sharding(cube, 2);
  const Prices prices = byte_prices(cube);
  Planner planner(cube);
  std::vector<double> left, right;
  for (const program::Sharding& to : all) {
    left.push_back(planner.reshard(e.left, to, prices).cost);
    right.push_back(planner.reshard(*e.right, to, prices).cost);
  }
  double best = infinity;
  for (std::size_t l = 0; l < all.size(); ++l)
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (left[l] + right[r] >= best) continue;
      const auto made = multiply(correspond(e), all[l], all[r]);
      if (!made) continue;
      program::Tensor product = *e.result;
      product.sharding = *made;
      best = std::min(best, left[l] + right[r] + planner.reshard(product, e.result->sharding, prices).cost);
    }
  RC_ASSERT(std::abs(plan_product(cube, e, prices, 4).best.cost - best) <= 1e-9 * best);
}

RC_GTEST_PROP(Planner, StepsLeadFromTheOperandsToTheResult, ()) {
  ShardingExpression e = parse("A[I, J] * B[J, K] -> C[I, K]");
  e.left.sharding = random_sharding(mesh, 2), e.right->sharding = random_sharding(mesh, 2),
  e.result->sharding = random_sharding(mesh, 2);
  const Plan best = plan_product(mesh, e, byte_prices(mesh)).best;
  RC_ASSERT(best.tensor(0).sharding == e.left.sharding);
  RC_ASSERT(best.tensor(1).sharding == e.right->sharding);
  std::vector<char> known(best.tensors.size(), 0);
  known[0] = known[1] = 1;
  int products = 0;
  for (const program::Step& step : best.steps) {
    for (const int id : step.in)
      if (id >= 0) RC_ASSERT(known[static_cast<std::size_t>(id)]);
    known[static_cast<std::size_t>(step.out[0])] = 1;
    products += step.op == program::Op::product;
  }
  RC_ASSERT(products == 1);
  RC_ASSERT(best.tensor(best.last()).sharding == e.result->sharding);
}

}  // namespace
}  // namespace assay::plan
