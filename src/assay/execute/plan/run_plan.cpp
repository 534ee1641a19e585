#include "assay/execute/plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/execute/kernels/product.h"
#include "assay/execute/plan/run_step.h"

namespace assay::execute {
namespace {

constexpr auto most_elements = static_cast<double>(1 << 26);  // 512 MiB of doubles on all devices together
constexpr auto most_multiplies = static_cast<double>(std::int64_t{1} << 32);  // a few seconds of plain loops
constexpr std::int64_t most_devices = 4096;

bool follows(const program::Tensor& tensor, const program::Sharding& sharding, const plan::PlanStep& step) {
  return step.before.sharding == sharding &&
         std::equal(tensor.dims.begin(), tensor.dims.end(), step.before.dims.begin(), step.before.dims.end(),
                    [](const program::Dimension& a, const program::Dimension& b) {
                      return a.name == b.name && a.size == b.size;
                    });
}

/// True if steps [first, last) lead the tensor from its sharding to `to`.
bool leads(const program::Mesh& mesh, const plan::Plan& plan, std::size_t first, std::size_t last,
           const program::Tensor& tensor, const program::Sharding& to) {
  program::Sharding at = plan::without_unit_axes(mesh, tensor.sharding);
  for (std::size_t i = first; i < last; ++i) {
    if (!follows(tensor, at, plan.steps[i])) return false;
    at = plan.steps[i].after.sharding;
  }
  return at == plan::without_unit_axes(mesh, to);
}

template <class T>
class Runner {
 public:
  Runner(const program::Mesh& mesh, const plan::Plan& plan, PlanRun<T>& run) : devices_(mesh), plan_(plan), run_(run) {}

  void steps(std::size_t first, std::size_t last, Shards<T>& shards) {
    for (std::size_t i = first; i < last; ++i) {
      const plan::PlanStep& step = plan_.steps[i];
      const std::vector<Bytes> before = devices_.received();
      shards = run_step(devices_, step, shards);
      count(step, before);
    }
    if (!devices_.idle()) throw InternalError("a message was not received");
  }

  void finish() { run_.received = devices_.received(); }

 private:
  void count(const plan::PlanStep& step, const std::vector<Bytes>& before) {
    StepRun counted{Bytes(0), Bytes(0), step.bytes};
    for (std::size_t d = 0; d < before.size(); ++d) {
      const Bytes got = devices_.received()[d] - before[d];
      counted.moved += got / static_cast<double>(before.size());
      counted.busiest = std::max(counted.busiest, got);
    }
    const program::Mesh& mesh = devices_.mesh();
    const bool permutes = step.kind == plan::StepKind::permute;
    bool padded = program::is_padded(mesh, step.before) || program::is_padded(mesh, step.after);
    if (step.kind == plan::StepKind::all_reduce)  // its chunks are of elements, regardless of dimensions
      padded = element_count(program::local_shape(mesh, step.before)) %
                   static_cast<std::int64_t>(program::shard_count(mesh, step.axes)) !=
               0;
    if (permutes) counted.moved = counted.busiest;
    const double tolerance = 1e-9 * step.bytes.value();
    const double difference = counted.moved.value() - step.bytes.value();
    const bool may_be_less = permutes && padded;
    run_.bytes_agree = run_.bytes_agree && difference <= tolerance && (may_be_less || difference >= -tolerance);
    if (!padded) run_.bytes_agree = run_.bytes_agree && counted.busiest.value() - step.bytes.value() <= tolerance;
    run_.moved += counted.moved;
    run_.predicted += counted.predicted;
    run_.steps.push_back(counted);
  }

  VirtualDevices<T> devices_;
  const plan::Plan& plan_;
  PlanRun<T>& run_;
};

}  // namespace

template <class T>
PlanRun<T> run_plan(const program::Mesh& mesh, const plan::Plan& plan, const plan::ShardingExpression& e,
                    std::uint64_t seed, Fill fill) {
  const auto filled = [&](const program::Tensor& tensor, std::uint64_t which) {
    const Shape shape = global_shape(tensor);
    return fill == Fill::integers ? random_integers<T>(shape, mixed(seed, which))
                                  : random_reals<T>(shape, mixed(seed, which));
  };
  PlanRun<T> run;
  Runner<T> runner(mesh, plan, run);
  const Array<T> left = filled(e.left, 0);
  Shards<T> shards = distribute(left, e.left, mesh, mixed(seed, 2));
  Array<T> expected;
  const std::size_t count = plan.steps.size();
  if (!e.right) {
    if (!leads(mesh, plan, 0, count, e.left, e.result->sharding))
      throw InternalError("a plan does not reshard its tensor");
    expected = left;
    runner.steps(0, count, shards);
  } else {
    std::size_t multiply = 0, middle = 0;
    while (multiply < count && plan.steps[multiply].kind != plan::StepKind::multiply) ++multiply;
    if (multiply == count) throw InternalError("a plan does not multiply");
    const plan::PlanStep& step = plan.steps[multiply];
    // The left operand's steps come first; if both operands look alike, any division that fits is right.
    while (middle <= multiply && !(leads(mesh, plan, 0, middle, e.left, step.before.sharding) &&
                                   leads(mesh, plan, middle, multiply, *e.right, step.second->sharding)))
      ++middle;
    if (middle > multiply || !leads(mesh, plan, multiply + 1, count, step.after, e.result->sharding))
      throw InternalError("a plan's steps do not follow each other");
    const Array<T> right = filled(*e.right, 1);
    expected = product_by_loops(left, names_of(e.left), right, names_of(*e.right), names_of(*e.result));
    Shards<T> second = distribute(right, *e.right, mesh, mixed(seed, 3));
    runner.steps(0, middle, shards);
    runner.steps(middle, multiply, second);
    shards = run_multiply(step, shards, second);
    runner.steps(multiply + 1, count, shards);
  }
  runner.finish();
  Collected<T> collected = collect(shards, *e.result, mesh);
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
  for (const plan::PlanStep& step : plan.steps)
    most = std::max(most, held(step.before) + held(step.after) + (step.second ? held(*step.second) : 0.0));
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

#define ASSAY_INSTANTIATE(T)                                                                             \
  template PlanRun<T> run_plan(const program::Mesh&, const plan::Plan&, const plan::ShardingExpression&, \
                               std::uint64_t, Fill);
ASSAY_INSTANTIATE(double)
ASSAY_INSTANTIATE(float)
#undef ASSAY_INSTANTIATE

}  // namespace assay::execute
