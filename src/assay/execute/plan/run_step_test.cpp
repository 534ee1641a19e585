#include "assay/execute/plan/run_step.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "assay/execute/plan/run_plan.h"
#include "assay/testing/random_case.h"

namespace assay::execute {
namespace {

using testing::Choose;
using testing::Sizes;

double dot(const Array<double>& a, const Array<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

double dot(const Shards<double>& a, const Shards<double>& b) {
  double sum = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += dot(a[d], b[d]);
  return sum;
}

/// Different numbers on every device, replicas too.
Shards<double> arbitrary(const program::Mesh& mesh, const program::Tensor& tensor, std::uint64_t seed) {
  Shards<double> shards;
  for (std::int64_t d = 0; d < mesh.devices(); ++d)
    shards.push_back(
        random_integers<double>(program::local_shape(mesh, tensor), mixed(seed, static_cast<std::uint64_t>(d))));
  return shards;
}

plan::PlanStep step_of(const program::Mesh& mesh, plan::StepKind kind, std::string_view axes, std::string_view text) {
  const plan::DimensionSizes sizes{{"I", 24}, {"J", 24}, {"K", 24}};
  const plan::ShardingExpression e = *plan::parse_sharding(text, mesh, sizes, Dtype::bf16);
  plan::PlanStep step{kind, 0, e.left, std::nullopt, *e.result, {}, 0.0};
  for (char axis : axes) step.axes |= program::axis_bit(*mesh.find(std::string(1, axis)));
  step.bytes = plan::received_bytes(mesh, kind, step.axes, program::local_bytes(mesh, step.before));
  return step;
}

std::vector<plan::PlanStep> every_kind(const program::Mesh& mesh) {
  return {step_of(mesh, plan::StepKind::slice, "Y", "A[I_X, J] -> A[I_XY, J]"),
          step_of(mesh, plan::StepKind::all_gather, "Y", "A[I_XY, J] -> A[I_X, J]"),
          step_of(mesh, plan::StepKind::all_gather, "XYZ", "A[I_XY, J_Z] -> A[I, J]"),
          step_of(mesh, plan::StepKind::all_gather, "XZ", "A[I_YX, J_Z] -> A[I_Y, J]"),
          step_of(mesh, plan::StepKind::all_to_all, "XY", "A[I_XY, J] -> A[I, J_XY]"),
          step_of(mesh, plan::StepKind::all_to_all, "Y", "A[I_XY, J_Z] -> A[I_X, J_ZY]"),
          step_of(mesh, plan::StepKind::permute, "XY", "A[I_XY, J] -> A[I_YX, J]"),
          step_of(mesh, plan::StepKind::permute, "XZ", "A[I_X, J_Z] -> A[I_Z, J_X]"),
          step_of(mesh, plan::StepKind::permute, "XZ", "A[I_X, J] -> A[I_Z, J]"),
          step_of(mesh, plan::StepKind::permute, "XYZ", "A[I_X, J_Y] -> A[I_Z, J_Y]"),
          step_of(mesh, plan::StepKind::reduce_scatter, "YX", "A[I_Z, J] {U_XY} -> A[I_ZYX, J]"),
          step_of(mesh, plan::StepKind::reduce_scatter, "X", "A[I_Z, J] {U_XY} -> A[I_ZX, J] {U_Y}"),
          step_of(mesh, plan::StepKind::all_reduce, "X", "A[I_Z, J] {U_XY} -> A[I_Z, J] {U_Y}"),
          step_of(mesh, plan::StepKind::all_reduce, "XY", "A[I_Z, J] {U_XY} -> A[I_Z, J]")};
}

TEST(RunStep, EveryKindKeepsTheArrayAndMovesWhatIsPredicted) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  for (const plan::PlanStep& step : every_kind(mesh)) {
    SCOPED_TRACE(plan::step_text(mesh, step));
    const Array<double> global = random_integers<double>(global_shape(step.before), 5);
    VirtualDevices<double> devices(mesh);
    const Shards<double> after = run_step(devices, step, distribute(global, step.before, mesh, 6));
    const Collected<double> collected = collect(after, step.after, mesh);
    EXPECT_EQ(collected.array, global);
    EXPECT_EQ(collected.disagreement, 0.0);
    EXPECT_TRUE(devices.idle());
    for (Bytes bytes : devices.received())
      if (step.kind == plan::StepKind::permute)
        EXPECT_LE(bytes, step.bytes);
      else
        EXPECT_DOUBLE_EQ(bytes.value(), step.bytes.value());
  }
}

/// <T(x), y> = <x, T'(y)> over the global arrays: x and y in the shardings that the step and its transpose take.
void expect_transposed(const program::Mesh& mesh, const plan::PlanStep& step, std::uint64_t seed) {
  const plan::PlanStep back = plan::transpose(step, mesh);
  SCOPED_TRACE(plan::step_text(mesh, step) + "; backwards " + plan::step_text(mesh, back));
  const Array<double> x = random_integers<double>(global_shape(step.before), mixed(seed, 0));
  const Array<double> y = random_integers<double>(global_shape(back.before), mixed(seed, 1));
  VirtualDevices<double> there(mesh), again(mesh);
  const Collected<double> forward =
      collect(run_step(there, step, distribute(x, step.before, mesh, seed)), step.after, mesh);
  const Collected<double> backward =
      collect(run_step(again, back, distribute(y, back.before, mesh, seed)), back.after, mesh);
  EXPECT_EQ(dot(forward.array, y), dot(x, backward.array));
  EXPECT_EQ(forward.disagreement, 0.0);
  EXPECT_EQ(backward.disagreement, 0.0);
  // A gradient is never left as a partial sum, and its shards are those of what it is the gradient of.
  EXPECT_EQ(back.after.sharding.unreduced, 0u);
  EXPECT_EQ(back.after.sharding.dims, step.before.sharding.dims);
  EXPECT_EQ(back.before.sharding.dims, step.after.sharding.dims);
  double moved = 0.0, busiest = 0.0;
  for (Bytes bytes : again.received()) {
    moved += bytes.value() / static_cast<double>(again.count());
    busiest = std::max(busiest, bytes.value());
  }
  EXPECT_NEAR(back.kind == plan::StepKind::permute ? busiest : moved, back.bytes.value(), 1e-9 * back.bytes.value());
}

TEST(RunStep, TheTransposeOfEveryKindIsItsTranspose) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  std::uint64_t seed = 0;
  for (const plan::PlanStep& step : every_kind(mesh)) expect_transposed(mesh, step, ++seed);
}

TEST(RunStep, MovingStepsAreTransposedDeviceByDevice) {
  // As maps of what all devices hold, whatever that is; slices and all-reduces rely on replicas instead.
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  for (const plan::PlanStep& step : every_kind(mesh)) {
    if (step.kind == plan::StepKind::slice || step.kind == plan::StepKind::all_reduce) continue;
    const plan::PlanStep back = plan::transpose(step, mesh);
    SCOPED_TRACE(plan::step_text(mesh, step));
    VirtualDevices<double> devices(mesh);
    const Shards<double> x = arbitrary(mesh, step.before, 1), y = arbitrary(mesh, step.after, 2);
    EXPECT_EQ(dot(run_step(devices, step, x), y), dot(x, run_step(devices, back, y)));
  }
}

RC_GTEST_PROP(RunStep, TheStepsOfRandomPlansAreTransposed, ()) {
  const Choose choose = [](std::int64_t n) { return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, n)); };
  const program::Mesh mesh = testing::random_mesh(choose);
  const plan::ShardingExpression e = testing::random_product(choose, mesh, Sizes::divide);
  for (const plan::PlanStep& step : plan::plan_product(mesh, e, plan::byte_prices(mesh)).best.steps)
    if (step.kind != plan::StepKind::multiply) expect_transposed(mesh, step, 7);
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(RunStep, AllPermutationsAreWholeShards) {
  // A device that needs another shard receives exactly one, from one device each.
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3,Z=2", "");
  const plan::PlanStep step = step_of(mesh, plan::StepKind::permute, "XZ", "A[I_X, J] -> A[I_Z, J]");
  VirtualDevices<double> devices(mesh);
  run_step(devices, step, distribute(random_integers<double>({24, 24}, 1), step.before, mesh));
  for (std::size_t d = 0; d < devices.count(); ++d)
    EXPECT_EQ(devices.received()[d].value(), devices.at(d)[0] == devices.at(d)[2] ? 0.0 : step.bytes.value());
}

}  // namespace
}  // namespace assay::execute
