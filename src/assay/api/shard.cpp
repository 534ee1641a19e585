// assay shard: local shapes, reshardings and sharded products, planned.
#include <fmt/format.h>

#include <algorithm>

#include "assay/api/verbs.h"
#include "assay/base/text.h"
#include "assay/cost/collectives.h"
#include "assay/execute/run_plan.h"
#include "assay/sharding/planner.h"

namespace assay {
namespace {

struct Query {
  Mesh mesh;
  ShardingExpression expression;
  std::optional<Cluster> cluster;
};

/// Mesh axes lie on torus axes of the same name or place and size; on a switched cluster the last axis is innermost.
Result<void> check_placement(const Mesh& mesh, const Cluster& cluster) {
  if (mesh.devices() != cluster.chips())
    return fail("--mesh",
                fmt::format("the mesh covers {} devices, {} has {}", mesh.devices(), cluster.text, cluster.chips()),
                "make both equal", Error::Kind::usage);
  if (!cluster.torus) return {};
  if (cluster.slices > 1)
    return fail("--on", "a mesh over several slices is not placed yet", "plan within one slice", Error::Kind::usage);
  std::vector<std::int64_t> sizes, physical;
  for (const MeshAxis& axis : mesh.axes)
    if (axis.size > 1) sizes.push_back(axis.size);
  for (const Axis& axis : cluster.torus->axes)
    if (axis.size > 1) physical.push_back(axis.size);
  if (sizes != physical)
    return fail("--mesh", fmt::format("axes {} do not lie on those of {}", mesh_text(mesh), cluster.text),
                "give the mesh the axes of the slice, in order: tpu-v5p:4x8x8 takes X=4,Y=8,Z=8", Error::Kind::usage);
  return {};
}

/// The group of a set of mesh axes on the cluster, and how many inner devices hold other shards.
std::pair<CollectiveGroup, double> group_of(const Query& query, AxisSet axes) {
  const Cluster& cluster = *query.cluster;
  if (cluster.torus) {
    std::vector<std::string> names;
    std::size_t physical = 0;
    for (std::size_t i = 0; i < query.mesh.axes.size(); ++i) {
      if (query.mesh.axes[i].size == 1) continue;
      while (cluster.torus->axes[physical].size == 1) ++physical;
      if (axes & axis_bit(static_cast<int>(i))) names.push_back(cluster.torus->axes[physical].name);
      ++physical;
    }
    return {*make_group(cluster, names, 1.0, "--mesh"), 1.0};
  }
  // Devices inside of the innermost axis of the set are other shards; those outside form other groups.
  double inner = 1.0;
  for (std::size_t i = query.mesh.axes.size(); i-- > 0 && !(axes & axis_bit(static_cast<int>(i)));)
    inner *= static_cast<double>(query.mesh.axes[i].size);
  CollectiveGroup group = *make_group(cluster, {}, inner, "--mesh");
  const double members = shard_count(query.mesh, axes);
  double seen = 1.0;
  for (auto& level : group.levels) {  // the set may reach only the lower levels
    const double reach = std::min(level.groups, members / seen);
    level.groups = std::max(1.0, reach);
    seen *= level.groups;
  }
  group.devices = members;
  return {group, inner};
}

CollectiveKind kind_of(StepKind kind) {
  switch (kind) {
    case StepKind::all_gather:
      return CollectiveKind::all_gather;
    case StepKind::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case StepKind::all_reduce:
      return CollectiveKind::all_reduce;
    case StepKind::all_to_all:
      return CollectiveKind::all_to_all;
    default:
      return CollectiveKind::permute;
  }
}

CollectiveCost<Plain> step_cost(const Query& query, StepKind kind, AxisSet axes, Bytes local) {
  const auto [group, inner] = group_of(query, axes);
  const bool grows = kind == StepKind::all_gather || kind == StepKind::all_to_all;
  const Bytes array = local * (grows ? shard_count(query.mesh, axes) : 1.0);
  return collective_cost(Plain{}, kind_of(kind), array * inner, group);
}

/// Costs grow in a straight line with the bytes above the latency, so two points fix them.
Prices time_prices(const Query& query, const std::optional<Sourced<FlopsPerSecond>>& peak) {
  Prices prices(query.mesh);
  for (AxisSet axes = 1; axes < axis_bit(static_cast<int>(query.mesh.axes.size())); ++axes)
    for (StepKind kind : {StepKind::all_gather, StepKind::all_to_all, StepKind::permute, StepKind::reduce_scatter,
                          StepKind::all_reduce}) {
      const CollectiveCost<Plain> one = step_cost(query, kind, axes, 1_B);
      prices.set(kind, axes, {one.bandwidth.value(), one.latency.value()});
    }
  if (peak) prices.per_flop = (1_FLOP / peak->value).value();
  return prices;
}

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  const auto mesh_value = request.value("mesh");
  if (!mesh_value) return fail("shard", "--mesh is missing", "e.g. --mesh X=4,Y=4", Error::Kind::usage);
  ASSAY_TRY(mesh, parse_mesh(*mesh_value, "--mesh"));
  query.mesh = mesh;
  DimensionSizes sizes;
  if (const auto text = request.value("sizes")) {
    ASSAY_TRY(parsed, parse_dimension_sizes(*text, "--sizes"));
    sizes = parsed;
  }
  Dtype dtype = Dtype::bf16;
  if (const auto text = request.value("dtype")) {
    ASSAY_TRY(parsed, parse_dtype(*text, "--dtype"));
    dtype = parsed;
  }
  ASSAY_TRY(expression, parse_sharding(request.arguments().front(), query.mesh, sizes, dtype));
  query.expression = expression;
  if (expression.right) ASSAY_CHECK(check_product(expression));
  if (!expression.right && expression.result &&
      expression.result->sharding.unreduced & ~expression.left.sharding.unreduced)
    return fail("expression", "a resharding cannot create partial sums", "leave {U_...} out of the target");
  if (request.has("on")) {
    ASSAY_TRY(cluster, cluster_of(request, context));
    query.cluster = cluster;
    ASSAY_CHECK(check_placement(query.mesh, *query.cluster));
  }
  return query;
}

Members tensor_members(const Mesh& mesh, const Tensor& tensor) {
  Items shape;
  for (std::int64_t n : local_shape(mesh, tensor)) shape.emplace_back(n);
  return {{"tensor", tensor_text(mesh, tensor)},
          {"local_shape", std::move(shape)},
          {"bytes_per_device", local_bytes(mesh, tensor)},
          {"array_bytes", global_bytes(tensor)},
          {"total_bytes", static_cast<double>(mesh.devices()) * local_bytes(mesh, tensor)},
          {"replication", replication(mesh, tensor)},
          {"share", 1.0 / shard_count(mesh, tensor.sharding.split_axes())},
          {"padded", is_padded(mesh, tensor)}};
}

Items step_rows(const Query& query, const Mesh& mesh, const Plan& plan) {
  Items rows;
  for (const PlanStep& step : plan.steps) {
    const bool moves = step.kind != StepKind::slice && step.kind != StepKind::multiply;
    Members row{{"text", step_text(mesh, step)},
                {"kind", name(step.kind)},
                {"collective", moves},
                {"axes", axes_text(mesh, step.axes)},
                {"bytes", step.bytes}};
    if (query.cluster && moves)
      row.emplace_back("time", step_cost(query, step.kind, step.axes, local_bytes(mesh, step.before)).lower);
    row.emplace_back("critical", step.kind != StepKind::slice);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Items backward_rows(const Mesh& mesh, const Plan& plan) {
  Items rows;
  for (std::size_t i = plan.steps.size(); i-- > 0;) {
    if (plan.steps[i].kind == StepKind::multiply) continue;
    PlanStep back = transpose(plan.steps[i], mesh);
    back.before.name = "d" + back.before.name, back.after.name = "d" + back.after.name;
    if (back.kind == StepKind::slice && back.axes == 0) continue;  // the gradient passes through
    rows.emplace_back(Members{{"text", step_text(mesh, back)}, {"kind", name(back.kind)}, {"bytes", back.bytes}});
  }
  return rows;
}

/// Executes the plan on virtual devices and adds what came out.
Result<void> add_check(const Query& query, const Mesh& mesh, const Plan& plan, Response& response) {
  constexpr double tolerance = 1e-9;  // the executed numbers are small integers, whose sums are exact
  const ShardingExpression e = over_plan_mesh(query.mesh, mesh, query.expression);
  ASSAY_CHECK(check_runnable(mesh, plan, e));
  const PlanRun<double> run = run_plan<double>(mesh, plan, e);
  const bool ok = run.max_error <= tolerance && run.bytes_agree;
  response.results.emplace_back(
      "check",
      Members{
          {"max_error", run.max_error}, {"bytes_moved", run.moved}, {"bytes_predicted", run.predicted}, {"ok", ok}});
  response.notes.push_back(
      fmt::format("executed on {} virtual devices: {}", mesh.devices(),
                  ok ? "the result equals the unsharded one and the bytes moved are those predicted"
                     : "the plan does not do what it says; please report this"));
  if (!ok) response.outcome = Outcome::check_failed;
  return {};
}

Result<Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  const ShardingExpression& e = query.expression;
  Response response;
  Members& out = response.results;
  out.emplace_back("expression", expression_text(query.mesh, e));
  out.emplace_back("mesh", mesh_text(query.mesh));
  out.emplace_back("devices", query.mesh.devices());
  Members shapes;
  Items tensors;
  for (const Tensor* tensor : {&e.left, e.right ? &*e.right : nullptr, e.result ? &*e.result : nullptr}) {
    if (!tensor) continue;
    Items shape;
    for (std::int64_t n : local_shape(query.mesh, *tensor)) shape.emplace_back(n);
    if (!(tensor == &*e.result && !e.right && e.result)) shapes.emplace_back(tensor->name, std::move(shape));
    tensors.emplace_back(tensor_members(query.mesh, *tensor));
    if (is_padded(query.mesh, *tensor))
      response.notes.push_back(fmt::format("{} does not divide evenly: shards are padded up to {}",
                                           tensor_text(query.mesh, *tensor), human(local_bytes(query.mesh, *tensor))));
  }
  out.emplace_back("local_shapes", std::move(shapes));
  out.emplace_back("bytes_per_device", local_bytes(query.mesh, e.left));
  out.emplace_back("tensors", std::move(tensors));
  std::optional<Sourced<FlopsPerSecond>> peak;
  if (query.cluster) {
    if (e.right) {
      ASSAY_TRY(rate, peak_rate(query.cluster->chip, product_dtype(e.left.dtype, e.right->dtype), "--dtype"));
      peak = rate;
    }
    out.emplace_back("memory_time", local_bytes(query.mesh, e.left) / query.cluster->chip.hbm().bandwidth->value);
  }
  if (!e.result) {
    if (request.has("check"))
      return fail("--check", "a single tensor has nothing to execute",
                  "give a resharding A[I_X, J] -> A[I, J_X] or a product", Error::Kind::usage);
    response.headline =
        fmt::format("{} on {}: {} of {} on each of {} devices", tensor_text(query.mesh, e.left), mesh_text(query.mesh),
                    human(local_bytes(query.mesh, e.left)), human(global_bytes(e.left)), query.mesh.devices());
    return response;
  }
  Mesh mesh = query.mesh;
  Plan plan;
  std::vector<Plan> others;
  if (!e.right) {
    plan = plan_reshard(mesh, e.left, e.result->sharding, query.cluster ? time_prices(query, peak) : byte_prices(mesh));
  } else {
    out.emplace_back("case", product_case(e));
    PlanChoice choice = plan_product(mesh, e, query.cluster ? time_prices(query, peak) : byte_prices(mesh), 4);
    plan = std::move(choice.best);
    others = std::move(choice.others);
    if (!query.cluster) {
      ThoroughPlan thorough = plan_product_thoroughly(mesh, e);
      if (thorough.plan.cost < plan.cost)
        others.insert(others.begin(), std::move(plan)), plan = std::move(thorough.plan), mesh = thorough.mesh;
    }
  }
  out.emplace_back("steps", step_rows(query, mesh, plan));
  out.emplace_back("collective_bytes", plan.bytes);
  if (e.right) out.emplace_back("flops_per_device", plan.flops);
  if (query.cluster) {
    const Seconds compute = e.right ? plan.flops / peak->value : Seconds(0), move(plan.cost);
    out.emplace_back("compute_time", compute);
    out.emplace_back("collective_time", move);
    const Seconds slower_compute = compute / query.cluster->chip.efficiency.matrix.value;
    const Seconds slower_move = move / network_efficiency(query.cluster->chip);
    out.emplace_back("time", range(std::max(compute, move), std::max(slower_compute, slower_move), compute + move));
    out.emplace_back("limiter", move > compute ? "network" : "compute");
  }
  out.emplace_back("backward", backward_rows(mesh, plan));
  Items alternatives;
  for (const Plan& other : others) {
    std::string text;
    for (const PlanStep& step : other.steps)
      if (step.kind != StepKind::slice) text += (text.empty() ? "" : "; ") + step_text(query.mesh, step);
    Members row{{"steps", text}, {"collective_bytes", other.bytes}};
    if (query.cluster) row.emplace_back("time", Seconds(other.total));
    alternatives.emplace_back(std::move(row));
  }
  if (!alternatives.empty()) out.emplace_back("alternatives", std::move(alternatives));
  response.table_key = "steps";
  std::string moves;
  for (const PlanStep& step : plan.steps)
    if (step.kind != StepKind::slice && step.kind != StepKind::multiply)
      moves += (moves.empty() ? "" : ", ") + fmt::format("{}_{}", name(step.kind), axes_text(mesh, step.axes));
  response.headline =
      fmt::format("{}: {} received per device", moves.empty() ? "no communication" : moves, human(plan.bytes));
  if (request.has("check")) ASSAY_CHECK(add_check(query, mesh, plan, response));
  return response;
}

}  // namespace

VerbSpec shard_verb() {
  return {"shard",
          "plan a sharded product or resharding",
          "EXPR is one tensor \"A[I_XY, J]\", a resharding \"A[I_X, J] -> A[I, J_X]\" or a product \"A[I_X, J_Y] * "
          "B[J_Y, K] -> C[I_X, K]\". Subscripts are mesh axes, major first; {U_X} marks partial sums. "
          "The plan is the cheapest by bytes received per device, or by time when --on names a cluster.",
          {{"expr", "an expression in quotes", true}},
          {{"mesh", "X=4,Y=4", "axes of the mesh and their sizes"},
           {"sizes", "I=4096,...", "sizes of the dimensions"},
           {"dtype", "DTYPE", "of all tensors (default bf16)"},
           {"check", "", "execute the plan on virtual devices and compare numbers and bytes"},
           on_option,
           set_option},
          {{"assay shard \"A[I_XY, J]\" --mesh X=8,Y=2 --sizes I=1024,J=4096 --dtype fp32", "what each device holds"},
           {"assay shard \"A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]\" --mesh X=4,Y=4 --sizes I=8192,J=8192,K=8192 --on "
            "tpu-v5e:4x4",
            "a product, planned by time"}},
          &answer,
          false};
}

}  // namespace assay
