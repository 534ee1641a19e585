// Programs reshard along routes that hold for all sizes of axes; this holds them against plans for the actual sizes.
#include <gtest/gtest.h>

#include <set>

#include "assay/program/plan/planner.h"
#include "assay/testing/sampling.h"
#include "assay/testing/small_schemes.h"

namespace assay::lower {
namespace {

/// Movements in a row: from where a step made the tensor to where a step reads it. Gathered weights are read as such.
struct Resharding {
  program::Tensor from;
  program::Sharding to;
  Bytes received;  ///< bytes received by one device
  std::string text;
};

std::vector<Resharding> reshardings(const program::Program& program) {
  std::set<int> passed_on;
  for (const program::Step& step : program.steps)
    if (program::is_movement(step.op)) passed_on.insert(step.in[0]);
  std::vector<Resharding> all;
  for (const program::Step& last : program.steps) {
    if (!program::is_movement(last.op) || passed_on.contains(last.out[0])) continue;
    Resharding one{{}, program.tensor(last.out[0]).sharding, Bytes(0), {}};
    for (const program::Step* step = &last; step;) {
      one.from = program::to_tensor(program, program.tensor(step->in[0]));
      one.received +=
          program::received_bytes(*step, program.ways(step->axes), program::local_bytes(program.mesh, one.from));
      one.text = program::step_text(program, *step) + "; " + one.text;
      const std::int16_t maker = program.tensor(step->in[0]).producer;
      step = maker < 0 ? nullptr : &program.steps[static_cast<std::size_t>(maker)];
      const bool goes_on = step && program::is_movement(step->op) && step->once == last.once &&
                           program.tensor(step->out[0]).tensor_class != program::TensorClass::used_weight;
      if (!goes_on) step = nullptr;
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// The axes that a resharding moves.
program::AxisSet moved_axes(const Resharding& one) {
  program::AxisSet moved = one.from.sharding.unreduced ^ one.to.unreduced;
  for (std::size_t d = 0; d < one.from.dims.size(); ++d) {
    const program::AxisList a = one.from.sharding.dims[d], b = one.to.dims[d];
    moved |= (a.set() | b.set()) & ~common_prefix(a, b).set();
  }
  return moved;
}

/// Whether some axis stays in its dimension while an axis outside it changes.
bool moves_outer_axes(const Resharding& one) {
  for (std::size_t d = 0; d < one.from.dims.size(); ++d) {
    const program::AxisList a = one.from.sharding.dims[d], b = one.to.dims[d];
    if ((a.set() & b.set()) != common_prefix(a, b).set()) return true;
  }
  return false;
}

/// Bytes received in the cheapest way that uses no other axes: software does not spread a sum of one group over other
/// groups that hold copies, though that would move fewer bytes.
Bytes best_bytes(const program::Mesh& mesh, Resharding one) {
  const program::AxisSet moved = moved_axes(one);
  program::Mesh small = mesh;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
    if (!(moved >> axis & 1u)) small.axes[axis].size = 1;
  for (std::size_t d = 0; d < one.from.dims.size(); ++d)
    one.from.dims[d].size =
        program::local_size(mesh, one.from.dims[d].size, remaining(one.from.sharding.dims[d], moved));
  return plan::plan_reshard(small, one.from, one.to, plan::byte_prices(small)).bytes;
}

TEST(Resharding, ProgramsReceiveNoMoreThanThePlannerWould) {
  std::set<std::string> seen, gathered;
  for (const testing::small::Variety& variety : testing::small::all_varieties())
    for (const testing::small::Scheme& scheme : testing::sampled(testing::small::schemes(variety.model))) {
      const auto [mesh, rules] = training_stage(scheme.parallelism, variety.model);
      const program::Program program =
          lower_training(variety.model, mesh, rules, testing::small::small_plan(variety.model));
      for (const Resharding& one : reshardings(program)) {
        if (!seen.insert(program::mesh_text(mesh) + one.text).second) continue;
        // Where an outer axis changes, the dimension is gathered; permuting devices would be cheaper.
        const bool may_gather = moves_outer_axes(one);
        if (may_gather) gathered.insert(one.text);
        const Bytes best = best_bytes(mesh, one);
        EXPECT_LE(best.value(), one.received.value() * (1 + 1e-12)) << one.text;
        if (!may_gather)
          EXPECT_LE(one.received.value(), best.value() * (1 + 1e-12))
              << variety.name << ", " << scheme.name << ": " << one.text;
      }
    }
  EXPECT_GT(seen.size() * testing::sampled_every(), 1000u);
  EXPECT_LT(gathered.size(), seen.size() / 20);
}

}  // namespace
}  // namespace assay::lower
