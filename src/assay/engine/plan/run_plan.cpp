#include "assay/engine/plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/engine/movement.h"

namespace assay::engine {
namespace {

constexpr auto most_elements = static_cast<double>(1 << 26);  // 512 MiB of doubles on all devices together
constexpr auto most_multiplies = static_cast<double>(std::int64_t{1} << 32);  // a few seconds of plain loops
constexpr std::int64_t most_devices = 4096;

/// The bytes of an executed movement against those of its step.
void compare(const program::Mesh& mesh, const plan::Plan& plan, const program::Step& step, const Moved& run,
             MovedBytes& out) {
  const program::Tensor &before = plan.tensor(step.in[0]), &after = plan.tensor(step.out[0]);
  const bool permutes = step.is(program::Collective::permute);
  bool padded = program::is_padded(mesh, before) || program::is_padded(mesh, after);
  if (step.is(program::Collective::all_reduce))  // its chunks are of elements, regardless of dimensions
    padded = element_count(program::local_shape(mesh, before)) %
                 static_cast<std::int64_t>(program::shard_count(mesh, step.axes)) !=
             0;
  const Bytes moved = permutes ? run.busiest : run.received;
  const double tolerance = 1e-9 * step.bytes.value();
  const double difference = (moved - step.bytes).value();
  const bool may_be_less = permutes && padded;
  out.agree = out.agree && difference <= tolerance && (may_be_less || difference >= -tolerance);
  if (!padded) out.agree = out.agree && (run.busiest - step.bytes).value() <= tolerance;
  out.moved += moved;
  out.predicted += step.bytes;
}

}  // namespace

DimensionNames names_of(const program::Tensor& tensor) {
  DimensionNames names;
  for (const program::Dimension& dim : tensor.dims) names.push_back(dim.name);
  return names;
}

MovedBytes run_steps(VirtualDevices& devices, const plan::Plan& plan, std::vector<Shards>& memory) {
  MovedBytes bytes;
  const auto shards = [&](int id) -> Shards& { return memory[static_cast<std::size_t>(id)]; };
  for (const program::Step& step : plan.steps) {
    const program::Tensor &left = plan.tensor(step.in[0]), &result = plan.tensor(step.out[0]);
    if (program::is_movement(step.op)) {
      Moved run = run_movement(devices, step, left, result, shards(step.in[0]));
      compare(devices.mesh(), plan, step, run, bytes);
      shards(step.out[0]) = std::move(run.shards);
      continue;
    }
    if (step.op != program::Op::product) throw InternalError("plans only move and multiply");
    const DimensionNames a = names_of(left), b = names_of(plan.tensor(step.in[1])), c = names_of(result);
    for (std::size_t d = 0; d < devices.count(); ++d)
      shards(step.out[0]).push_back(product(shards(step.in[0])[d], a, shards(step.in[1])[d], b, c));
  }
  return bytes;
}

PlanRun run_plan(const program::Mesh& mesh, const plan::Plan& plan, const plan::ShardingExpression& e,
                 std::uint64_t seed) {
  const auto filled = [&](const program::Tensor& tensor, std::uint64_t which) {
    return random_integers(global_shape(tensor), mixed(seed, which));
  };
  const auto check_start = [&](int tensor, const program::Tensor& operand) {
    if (!(plan.tensor(tensor).sharding == plan::without_unit_axes(mesh, operand.sharding)))
      throw InternalError("a plan does not start from its operands");
  };
  if (!(plan.tensor(plan.last()).sharding == plan::without_unit_axes(mesh, e.result->sharding)))
    throw InternalError("a plan does not end in its result");
  std::vector<Shards> memory(plan.tensors.size());
  Array expected = filled(e.left, 0);
  check_start(0, e.left);
  memory[0] = distribute(expected, e.left, mesh, mixed(seed, 2));
  if (e.right) {
    const Array right = filled(*e.right, 1);
    check_start(1, *e.right);
    memory[1] = distribute(right, *e.right, mesh, mixed(seed, 3));
    expected = product_by_loops(expected, names_of(e.left), right, names_of(*e.right), names_of(*e.result));
  }
  PlanRun run;
  VirtualDevices devices(mesh);
  run.bytes = run_steps(devices, plan, memory);
  run.received = devices.received();
  Collected collected = collect(memory[static_cast<std::size_t>(plan.last())], *e.result, mesh);
  const double scale = std::max(1.0, largest_magnitude(expected));
  run.max_error = std::max(largest_difference(collected.array, expected), collected.disagreement) / scale;
  run.result = std::move(collected.array);
  return run;
}

plan::ShardingExpression over_plan_mesh(const program::Mesh& mesh, const program::Mesh& plan_mesh,
                                        const plan::ShardingExpression& expression) {
  if (mesh.axes.size() == plan_mesh.axes.size()) return expression;
  const plan::RefinedMesh fine = plan::refine(mesh);
  plan::ShardingExpression parts = expression;
  parts.left.sharding = fine.refine(expression.left.sharding);
  if (parts.right) parts.right->sharding = fine.refine(expression.right->sharding);
  if (parts.result) parts.result->sharding = fine.refine(expression.result->sharding);
  return parts;
}

Result<void> check_runnable(const program::Mesh& mesh, const plan::Plan& plan, const plan::ShardingExpression& e) {
  const auto devices = static_cast<double>(mesh.devices());
  if (mesh.devices() > most_devices)
    return fail("--check", fmt::format("supports up to {} devices, but the mesh has {}", most_devices, mesh.devices()),
                "give a smaller --mesh");
  const auto held = [&](const program::Tensor& tensor) {
    double elements = devices;
    for (std::int64_t n : program::local_shape(mesh, tensor)) elements *= static_cast<double>(n);
    return elements;
  };
  double most = held(e.left) + (e.right ? held(*e.right) : 0.0);
  for (const program::Step& step : plan.steps) {
    double together = held(plan.tensor(step.out[0]));
    for (const int id : step.in)
      if (id >= 0) together += held(plan.tensor(id));
    most = std::max(most, together);
  }
  if (most > most_elements)
    return fail("--check",
                fmt::format("supports up to {:.0f} elements on all devices together, but this needs {:.0f}",
                            most_elements, most),
                "give smaller --sizes; the plan is the same for sizes in the same proportions");
  if (!e.right) return {};
  double multiplies = 1.0;
  for (const program::Dimension& dim : e.left.dims) multiplies *= static_cast<double>(dim.size);
  for (const program::Dimension& dim : e.right->dims)
    if (std::none_of(e.left.dims.begin(), e.left.dims.end(),
                     [&](const program::Dimension& d) { return d.name == dim.name; }))
      multiplies *= static_cast<double>(dim.size);
  const double work = std::max(multiplies, devices * plan.flops.value() / 2.0 / 8.0);  // BLAS is 8x faster
  if (work > most_multiplies)
    return fail("--check",
                fmt::format("supports up to {:.0f} multiplications, but this needs {:.0f}", most_multiplies, work),
                "give smaller --sizes; the plan is the same for sizes in the same proportions");
  return {};
}

}  // namespace assay::engine
