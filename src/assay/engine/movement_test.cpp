#include "assay/engine/movement.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "assay/engine/plan/run_plan.h"
#include "assay/program/plan/backward.h"
#include "assay/testing/random_case.h"

namespace assay::engine {
namespace {

using testing::Choose;
using testing::Sizes;

double dot(const Array& a, const Array& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

double dot(const Shards& a, const Shards& b) {
  double sum = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += dot(a[d], b[d]);
  return sum;
}

/// Different numbers on every device, replicas too.
Shards arbitrary(const program::Mesh& mesh, const program::Tensor& tensor, std::uint64_t seed) {
  Shards shards;
  for (std::int64_t d = 0; d < mesh.devices(); ++d)
    shards.push_back(random_integers(program::local_shape(mesh, tensor), mixed(seed, static_cast<std::uint64_t>(d))));
  return shards;
}

/// A plan of one movement: "A[I_X, J] -> A[I, J]" over some axes.
plan::Plan movement(const program::Mesh& mesh, plan::MoveKind kind, std::string_view axes, std::string_view text) {
  const plan::DimensionSizes sizes{{"I", 24}, {"J", 24}, {"K", 24}};
  const plan::ShardingExpression e = *plan::parse_sharding(text, mesh, sizes, Dtype::bf16);
  program::AxisSet over = 0;
  for (char axis : axes) over |= program::axis_bit(*mesh.find(std::string(1, axis)));
  plan::Plan plan;
  plan.move(mesh, plan.add(e.left), kind, over, e.result->sharding);
  return plan;
}

std::vector<plan::Plan> every_kind(const program::Mesh& mesh) {
  using enum program::Collective;
  return {movement(mesh, std::nullopt, "Y", "A[I_X, J] -> A[I_XY, J]"),
          movement(mesh, all_gather, "Y", "A[I_XY, J] -> A[I_X, J]"),
          movement(mesh, all_gather, "XYZ", "A[I_XY, J_Z] -> A[I, J]"),
          movement(mesh, all_gather, "XZ", "A[I_YX, J_Z] -> A[I_Y, J]"),
          movement(mesh, all_to_all, "XY", "A[I_XY, J] -> A[I, J_XY]"),
          movement(mesh, all_to_all, "Y", "A[I_XY, J_Z] -> A[I_X, J_ZY]"),
          movement(mesh, permute, "XY", "A[I_XY, J] -> A[I_YX, J]"),
          movement(mesh, permute, "XZ", "A[I_X, J_Z] -> A[I_Z, J_X]"),
          movement(mesh, permute, "XZ", "A[I_X, J] -> A[I_Z, J]"),
          movement(mesh, permute, "XYZ", "A[I_X, J_Y] -> A[I_Z, J_Y]"),
          movement(mesh, reduce_scatter, "YX", "A[I_Z, J] {U_XY} -> A[I_ZYX, J]"),
          movement(mesh, reduce_scatter, "X", "A[I_Z, J] {U_XY} -> A[I_ZX, J] {U_Y}"),
          movement(mesh, all_reduce, "X", "A[I_Z, J] {U_XY} -> A[I_Z, J] {U_Y}"),
          movement(mesh, all_reduce, "XY", "A[I_Z, J] {U_XY} -> A[I_Z, J]")};
}

/// What the last tensor of a plan holds, from the shards of its first one.
Shards run_all(VirtualDevices& devices, const plan::Plan& plan, const Shards& shards) {
  std::vector<Shards> memory(plan.tensors.size());
  memory[0] = shards;
  EXPECT_TRUE(run_steps(devices, plan, memory).agree);
  return memory[static_cast<std::size_t>(plan.last())];
}

TEST(Movement, EveryKindKeepsTheArrayAndMovesWhatIsPredicted) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  for (const plan::Plan& plan : every_kind(mesh)) {
    const program::Step& step = plan.steps[0];
    SCOPED_TRACE(program::step_text(mesh, plan.tensors, step));
    const Array global = random_integers(global_shape(plan.tensor(0)), 5);
    VirtualDevices devices(mesh);
    const Moved moved =
        run_movement(devices, step, plan.tensor(0), plan.tensor(1), distribute(global, plan.tensor(0), mesh, 6));
    const Collected collected = collect(moved.shards, plan.tensor(1), mesh);
    EXPECT_EQ(collected.array, global);
    EXPECT_EQ(collected.disagreement, 0.0);
    EXPECT_TRUE(devices.idle());
    for (Bytes bytes : devices.received())
      if (step.is(program::Collective::permute))
        EXPECT_LE(bytes, step.bytes);
      else
        EXPECT_DOUBLE_EQ(bytes.value(), step.bytes.value());
  }
}

/// <T(x), y> = <x, T'(y)> over the global arrays: x and y in the shardings that the steps and their adjoints take.
void expect_adjoint(const program::Mesh& mesh, const plan::Plan& plan, std::uint64_t seed) {
  const plan::Plan back = plan::reshard_backward(mesh, plan, plan::byte_prices(mesh));
  const program::Tensor &before = plan.tensor(0), &after = plan.tensor(plan.last());
  SCOPED_TRACE(program::tensor_text(mesh, before) + " to " + program::tensor_text(mesh, after));
  const Array x = random_integers(global_shape(before), mixed(seed, 0));
  const Array y = random_integers(global_shape(before), mixed(seed, 1));
  VirtualDevices there(mesh), again(mesh);
  const Collected forward = collect(run_all(there, plan, distribute(x, before, mesh, seed)), after, mesh);
  const program::Tensor& end = back.tensor(back.last());
  const Collected backward = collect(run_all(again, back, distribute(y, back.tensor(0), mesh, seed)), end, mesh);
  EXPECT_EQ(dot(forward.array, y), dot(x, backward.array));
  EXPECT_EQ(forward.disagreement, 0.0);
  EXPECT_EQ(backward.disagreement, 0.0);
  // A gradient is never left as a partial sum, and its shards are those of what it is the gradient of.
  EXPECT_EQ(end.sharding.unreduced, 0u);
  EXPECT_EQ(end.sharding.dims, before.sharding.dims);
}

TEST(Movement, EveryKindHasItsAdjoint) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  std::uint64_t seed = 0;
  for (const plan::Plan& plan : every_kind(mesh)) expect_adjoint(mesh, plan, ++seed);
}

TEST(Movement, ExchangesAndScattersHaveAnAdjointOnEachDevice) {
  // As maps of what all devices hold, whatever that is; the others rely on copies that agree.
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  for (const plan::Plan& plan : every_kind(mesh)) {
    const program::Step& step = plan.steps[0];
    const bool exact =
        program::is_collective(step.op) &&
        (program::facts(step.collective).after == program::Holding::shard || program::is_one_to_one(step.collective));
    if (!exact || plan.tensor(1).sharding.unreduced) continue;
    SCOPED_TRACE(program::step_text(mesh, plan.tensors, step));
    VirtualDevices devices(mesh);
    const Shards x = arbitrary(mesh, plan.tensor(0), 1), y = arbitrary(mesh, plan.tensor(1), 2);
    EXPECT_EQ(dot(run_all(devices, plan, x), y),
              dot(x, run_all(devices, plan::reshard_backward(mesh, plan, plan::byte_prices(mesh)), y)));
  }
}

RC_GTEST_PROP(Movement, TheStepsOfRandomReshardingsHaveAdjoints, ()) {
  const Choose choose = [](std::int64_t n) { return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n)); };
  const program::Mesh mesh = testing::random_mesh(choose);
  const program::Tensor from = testing::random_tensor(choose, mesh, Sizes::divide);
  const program::Sharding to = testing::random_sharding(choose, mesh, from.dims.size(), ~from.sharding.unreduced);
  expect_adjoint(mesh, plan::plan_reshard(mesh, from, to, plan::byte_prices(mesh)), 7);
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(Movement, AllPermutationsAreWholeShards) {
  // A device that needs another shard receives exactly one, from one device each.
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  const plan::Plan plan = movement(mesh, program::Collective::permute, "XZ", "A[I_X, J] -> A[I_Z, J]");
  VirtualDevices devices(mesh);
  run_all(devices, plan, distribute(random_integers({24, 24}, 1), plan.tensor(0), mesh));
  for (std::size_t d = 0; d < devices.count(); ++d)
    EXPECT_EQ(devices.received()[d].value(), devices.at(d)[0] == devices.at(d)[2] ? 0.0 : plan.steps[0].bytes.value());
}

}  // namespace
}  // namespace assay::engine
