// assay shard: local shapes, reshardings and sharded products, planned.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/sharding/sharding_scene.h"
#include "assay/ask/verbs/shard/shard.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/engine/kernels/blas.h"
#include "assay/engine/plan/run_plan.h"
#include "assay/program/plan/backward.h"
#include "assay/program/plan/memory.h"

namespace assay::verbs::shard {
namespace {

plan::Prices prices_of(const Query& query) {
  return query.cluster ? collective::time_prices(query.placement, query.mesh, query.peak)
                       : plan::byte_prices(query.mesh);
}

bool is_name(const program::Dimension& dim) { return dim.name.find_first_not_of("0123456789") != std::string::npos; }

/// Dimensions of an expression by name, each once.
std::vector<std::string> names_of(const plan::ShardingExpression& e) {
  std::vector<std::string> names;
  for (const program::Tensor* tensor : {&e.left, e.right ? &*e.right : nullptr, e.result ? &*e.result : nullptr})
    for (std::size_t i = 0; tensor && i < tensor->dims.size(); ++i)
      if (const program::Dimension& dim = tensor->dims[i];
          is_name(dim) && std::find(names.begin(), names.end(), dim.name) == names.end())
        names.push_back(dim.name);
  return names;
}

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  const auto mesh_value = request.value("mesh");
  if (!mesh_value) return fail("shard", "--mesh is missing", "e.g. --mesh X=4,Y=4", Error::Kind::usage);
  ASSAY_TRY(mesh, program::parse_mesh(*mesh_value, "--mesh"));
  query.mesh = mesh;
  plan::DimensionSizes sizes;
  if (const auto text = request.value("sizes")) ASSAY_SET(sizes, plan::parse_dimension_sizes(*text, "--sizes"));
  Dtype dtype = Dtype::bf16;
  if (const auto text = request.value("dtype")) ASSAY_SET(dtype, parse_dtype(*text, "--dtype"));
  // Without sizes, stand-ins that all axes divide.
  std::optional<std::int64_t> stand_in;
  if (!request.has("sizes")) stand_in = query.mesh.devices();
  ASSAY_TRY(expression, plan::parse_sharding(request.arguments().front(), query.mesh, sizes, dtype, stand_in));
  query.expression = expression;
  if (stand_in) query.unknown = names_of(expression);
  for (const char* option : {"check", "on", "overlap"})
    if (!query.unknown.empty() && request.has(option))
      return fail("--sizes", fmt::format("missing: --{} needs them", option),
                  fmt::format("add --sizes {}=4096", join(query.unknown, "=4096,")), Error::Kind::usage);
  if (expression.right && expression.result) ASSAY_CHECK(plan::check_product(expression, request.arguments().front()));
  if (!expression.right && expression.result &&
      expression.result->sharding.unreduced & ~expression.left.sharding.unreduced)
    return fail(fmt::format("{}, character {}", in_quotes(request.arguments().front()),
                            request.arguments().front().rfind('{') + 1),
                "a resharding cannot create partial sums", "leave {U_...} out of the target");
  if (request.has("on")) {
    ASSAY_SET(query.cluster, cluster_of(request, context));
    ASSAY_SET(query.placement, collective::Placement::make(query.mesh, *query.cluster, "--mesh"));
    if (expression.right) {
      ASSAY_TRY(rate, hardware::peak_rate(query.cluster->chip,
                                          product_dtype(expression.left.dtype, expression.right->dtype), "--dtype"));
      query.peak = rate.value;
    }
  }
  if (expression.right && !expression.result) {
    ASSAY_TRY(result, plan::propagated_result(query.mesh, expression, prices_of(query)));
    query.expression.result = result.tensor;
    query.propagated = std::move(result);
  }
  return query;
}

report::Members tensor_members(const program::Mesh& mesh, const program::Tensor& tensor) {
  report::Items shape;
  for (std::int64_t n : program::local_shape(mesh, tensor)) shape.emplace_back(n);
  return {{"tensor", program::tensor_text(mesh, tensor)},
          {"local_shape", std::move(shape)},
          {"bytes_per_device", program::local_bytes(mesh, tensor)},
          {"array_bytes", program::global_bytes(tensor)},
          {"total_bytes", static_cast<double>(mesh.devices()) * program::local_bytes(mesh, tensor)},
          {"replication", program::replication(mesh, tensor)},
          {"share", 1.0 / program::shard_count(mesh, tensor.sharding.split_axes())},
          {"padded", program::is_padded(mesh, tensor)}};
}

/// Bytes that a device receives in a step; a product moves none.
Bytes received(const program::Step& step) { return program::is_movement(step.op) ? step.bytes : Bytes(0); }

report::Items step_rows(const Query& query, const program::Mesh& mesh, const plan::Plan& plan) {
  return report::rows_of(plan.steps, [&](const program::Step& step) {
    const bool moves = program::is_collective(step.op);
    report::Members row{{"text", program::step_text(mesh, plan.tensors, step)},
                        {"kind", program::name(step)},
                        {"collective", moves},
                        {"axes", program::axes_text(mesh, step.axes)},
                        {"bytes", received(step)}};
    if (query.cluster && moves)
      row.emplace_back("time", collective::movement_cost(query.placement, mesh, step.collective, step.axes,
                                                         program::local_bytes(mesh, plan.tensor(step.in[0])))
                                   .lower);
    row.emplace_back("critical", step.op != program::Op::slice);
    return row;
  });
}

/// One panel a step; the mesh is the plan's.
draw::Scene picture_of(const Query& query, const program::Mesh& mesh, const plan::Plan& plan,
                       const std::string& headline) {
  if (plan.steps.empty()) return draw::draw_sharding(query.mesh, query.expression.left);
  std::vector<std::string> costs;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const bool moves = program::is_collective(plan.steps[i].op);
    std::string& cost = costs.emplace_back(moves ? human(plan.steps[i].bytes) + " received" : "nothing moves");
    if (moves && query.cluster) cost += ", " + human(Seconds(plan.costs[i]));
  }
  return draw::draw_plan(mesh, plan::expression_text(query.mesh, query.expression), headline, plan, costs);
}

/// The gradients' steps: the result's first, then each operand's from its local product on.
report::Items backward_rows(const program::Mesh& mesh, const plan::ShardingExpression& e, const plan::Plan& plan,
                            const plan::Prices& prices) {
  const plan::Plan back =
      e.right ? plan::plan_backward(mesh, e, plan, prices).plan : plan::reshard_backward(mesh, plan, prices);
  return report::rows_of(back.steps, [&](const program::Step& step) {
    return report::Members{{"text", program::step_text(mesh, back.tensors, step)},
                           {"kind", program::name(step)},
                           {"bytes", received(step)}};
  });
}

/// Executes the plan on virtual devices and adds what came out.
Result<void> add_check(const Query& query, const program::Mesh& mesh, const plan::Plan& plan,
                       report::Response& response) {
  constexpr double tolerance = 1e-9;  // the executed numbers are small integers, whose sums are exact
  const plan::ShardingExpression e = engine::over_plan_mesh(query.mesh, mesh, query.expression);
  ASSAY_CHECK(engine::check_runnable(mesh, plan, e));
  const engine::PlanRun run = engine::run_plan(mesh, plan, e);
  const bool ok = run.max_error <= tolerance && run.bytes.agree;
  response.results.emplace_back("check", report::Members{{"max_error", run.max_error},
                                                         {"bytes_moved", run.bytes.moved},
                                                         {"bytes_predicted", run.bytes.predicted},
                                                         {"ok", ok}});
  response.notes.push_back(
      fmt::format("executed on {} virtual devices: {}", mesh.devices(),
                  ok ? "the result equals the unsharded one and the bytes moved match the prediction"
                     : "the plan computes or moves something else than predicted; please report this"));
  if (!ok) response.outcome = report::Outcome::check_failed;
  return {};
}

/// What a device holds of a tensor, with sizes by name: "I/4", "J".
report::Items symbolic_shape(const program::Mesh& mesh, const program::Tensor& tensor) {
  report::Items shape;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    const program::Dimension& dim = tensor.dims[i];
    const double ways = program::shard_count(mesh, tensor.sharding.dims[i].set());
    if (!is_name(dim))
      shape.emplace_back(program::local_size(mesh, dim.size, tensor.sharding.dims[i]));
    else
      shape.emplace_back(ways > 1.0 ? fmt::format("{}/{:.0f}", dim.name, ways) : dim.name);
  }
  return shape;
}

/// The answer where sizes are not known: what follows from the mesh alone.
report::Response symbolic_answer(const Query& query) {
  const plan::ShardingExpression& e = query.expression;
  report::Response response;
  report::Members shapes;
  report::Items tensors;
  for (const program::Tensor* tensor : {&e.left, e.right ? &*e.right : nullptr, e.result ? &*e.result : nullptr}) {
    if (!tensor) continue;
    if (tensor == &e.left || e.right) shapes.emplace_back(tensor->name, symbolic_shape(query.mesh, *tensor));
    tensors.emplace_back(
        report::Members{{"tensor", program::tensor_text(query.mesh, *tensor)},
                        {"local_shape", symbolic_shape(query.mesh, *tensor)},
                        {"replication", program::replication(query.mesh, *tensor)},
                        {"share", 1.0 / program::shard_count(query.mesh, tensor->sharding.split_axes())}});
  }
  response.headline =
      fmt::format("{} on {}: 1/{:.0f} on each of {} devices, each part on {}", program::tensor_text(query.mesh, e.left),
                  program::mesh_text(query.mesh), program::shard_count(query.mesh, e.left.sharding.split_axes()),
                  query.mesh.devices(), program::replication(query.mesh, e.left));
  response.results = {{"expression", plan::expression_text(query.mesh, e)},
                      {"mesh", program::mesh_text(query.mesh)},
                      {"devices", query.mesh.devices()},
                      {"local_shapes", std::move(shapes)},
                      {"tensors", std::move(tensors)}};
  if (e.right) response.results.emplace_back("case", plan::product_case(e));
  if (query.propagated)
    response.notes.push_back(fmt::format("the result is left open: {} is the cheapest if all dimensions have one size",
                                         program::tensor_text(query.mesh, query.propagated->tensor)));
  response.notes.push_back(fmt::format("without --sizes, bytes{} are not known; add e.g. --sizes {}=4096",
                                       e.result ? ", steps" : "", join(query.unknown, "=4096,")));
  return response;
}

/// What each device holds of every tensor.
void add_tensors(const Query& query, report::Response& response) {
  const plan::ShardingExpression& e = query.expression;
  report::Members shapes;
  report::Items tensors;
  for (const program::Tensor* tensor : {&e.left, e.right ? &*e.right : nullptr, e.result ? &*e.result : nullptr}) {
    if (!tensor) continue;
    report::Items shape;
    for (std::int64_t n : program::local_shape(query.mesh, *tensor)) shape.emplace_back(n);
    const bool target_of_resharding = tensor != &e.left && !e.right;
    if (!target_of_resharding) shapes.emplace_back(tensor->name, std::move(shape));
    tensors.emplace_back(tensor_members(query.mesh, *tensor));
    if (program::is_padded(query.mesh, *tensor))
      response.notes.push_back(fmt::format("{} does not divide evenly: shards are padded up to {}",
                                           program::tensor_text(query.mesh, *tensor),
                                           human(program::local_bytes(query.mesh, *tensor))));
  }
  response.results.emplace_back("local_shapes", std::move(shapes));
  response.results.emplace_back("bytes_per_device", program::local_bytes(query.mesh, e.left));
  response.results.emplace_back("tensors", std::move(tensors));
}

/// The plan that is taken, on a mesh whose axes it may have split, and the next best ones.
struct ChosenPlan {
  program::Mesh mesh;
  plan::Prices prices;
  plan::Plan best;
  std::vector<plan::Plan> others;
};
ChosenPlan cheapest_plan(const Query& query) {
  constexpr std::size_t most_alternatives = 4;
  const plan::ShardingExpression& e = query.expression;
  const plan::Prices prices = prices_of(query);
  if (!e.right) return {query.mesh, prices, plan::plan_reshard(query.mesh, e.left, e.result->sharding, prices), {}};
  plan::PlanChoice choice = plan::plan_product(query.mesh, e, prices, most_alternatives);
  ChosenPlan chosen{query.mesh, prices, std::move(choice.best), std::move(choice.others)};
  if (query.cluster) return chosen;
  if (plan::ThoroughPlan thorough = plan::plan_product_thoroughly(query.mesh, e, chosen.best);
      thorough.plan.cost < chosen.best.cost) {
    chosen.others.insert(chosen.others.begin(), std::move(chosen.best));
    chosen.best = std::move(thorough.plan);
    chosen.mesh = thorough.mesh;
    chosen.prices = plan::byte_prices(thorough.mesh);
  }
  return chosen;
}

/// A plan besides the one that is shown, and its number by cost.
struct OtherPlan {
  std::int64_t number = 1;
  plan::Plan plan;
};

/// Takes the plan that --plan names: it becomes the best, and the cheapest ones become others.
Result<std::vector<OtherPlan>> take_plan(const Request& request, const Query& query, ChosenPlan& chosen) {
  std::int64_t wanted = 1;
  if (const auto text = request.value("plan")) ASSAY_SET(wanted, parse_count(*text, "--plan"));
  const auto plans = static_cast<std::int64_t>(chosen.others.size()) + 1;
  if (wanted > plans)
    return fail("--plan", plans == 1 ? "there is one plan" : fmt::format("there are {} plans", plans),
                "1 is the cheapest");
  std::vector<OtherPlan> others;
  const bool on_this_mesh = chosen.mesh.axes.size() == query.mesh.axes.size();  // a thorough plan may split axes
  if (wanted > 1 && on_this_mesh) others.push_back({1, chosen.best});
  for (std::int64_t number = 2; number <= plans; ++number) {
    plan::Plan& plan = chosen.others[static_cast<std::size_t>(number - 2)];
    if (number != wanted) {
      others.push_back({number, std::move(plan)});
      continue;
    }
    chosen.best = std::move(plan);
    chosen.mesh = query.mesh;
    chosen.prices = prices_of(query);
  }
  return others;
}

/// Compute and communication of the plan on the cluster.
void add_times(const Query& query, const plan::Plan& plan, report::Members& out) {
  const hardware::Chip& chip = query.cluster->chip;
  const Seconds compute = query.expression.right ? plan.flops / *query.peak : Seconds(0), move(plan.cost);
  out.emplace_back("compute_time", compute);
  out.emplace_back("collective_time", move);
  const Seconds slower_compute = compute / chip.efficiency.matrix.value;
  const Seconds slower_move = move / hardware::network_efficiency(chip);
  out.emplace_back("time",
                   report::range(std::max(compute, move), std::max(slower_compute, slower_move), compute + move));
  out.emplace_back("limiter", move > compute ? "network" : "compute");
}

/// The most that a device holds while it runs the plan.
report::Members memory_members(const Query& query, const program::Mesh& mesh, const plan::Plan& plan) {
  const Bytes total = plan::peak_memory(mesh, plan), capacity = query.cluster->chip.hbm().capacity.value;
  return {{"total", total}, {"verdict", total <= capacity ? "fits" : "no"}};
}

report::Items alternative_rows(const Request& request, const Query& query, const std::vector<OtherPlan>& others) {
  report::Items rows;
  for (const auto& [number, other] : others) {
    std::string text;
    for (const program::Step& step : other.steps)
      if (step.op != program::Op::slice)
        text += (text.empty() ? "" : "; ") + program::step_text(query.mesh, other.tensors, step);
    report::Members row{{"steps", text}, {"collective_bytes", other.bytes}};
    if (query.cluster) {
      row.emplace_back("time", Seconds(other.total));
      row.emplace_back("memory", memory_members(query, query.mesh, other));
    }
    row.emplace_back("arguments", request.with("plan", std::to_string(number)).named_arguments());
    rows.emplace_back(std::move(row));
  }
  return rows;
}

std::string plan_headline(const program::Mesh& mesh, const plan::Plan& plan) {
  std::string moves;
  for (const program::Step& step : plan.steps)
    if (program::is_collective(step.op))
      moves +=
          (moves.empty() ? "" : ", ") + fmt::format("{}_{}", program::name(step), program::axes_text(mesh, step.axes));
  return fmt::format("{}: {} received per device", moves.empty() ? "no communication" : moves, human(plan.bytes));
}

/// Adds the plan of a product or resharding.
Result<void> add_plan(const Request& request, const Query& query, report::Response& response) {
  const plan::ShardingExpression& e = query.expression;
  report::Members& out = response.results;
  if (e.right) out.emplace_back("case", plan::product_case(e));
  ChosenPlan chosen = cheapest_plan(query);
  ASSAY_TRY(others, take_plan(request, query, chosen));
  out.emplace_back("steps", step_rows(query, chosen.mesh, chosen.best));
  out.emplace_back("collective_bytes", chosen.best.bytes);
  if (e.right) out.emplace_back("flops_per_device", chosen.best.flops);
  if (query.cluster) {
    add_times(query, chosen.best, out);
    out.emplace_back("memory", memory_members(query, chosen.mesh, chosen.best));
  }
  out.emplace_back("backward", backward_rows(chosen.mesh, engine::over_plan_mesh(query.mesh, chosen.mesh, e),
                                             chosen.best, chosen.prices));
  if (!others.empty()) out.emplace_back("alternatives", alternative_rows(request, query, others));
  response.table_key = "steps";
  response.headline = plan_headline(chosen.mesh, chosen.best);
  if (request.picture()) response.picture = picture_of(query, chosen.mesh, chosen.best, response.headline);
  if (request.has("overlap")) ASSAY_CHECK(add_overlap(request, query, chosen.mesh, chosen.best, response));
  if (!request.has("check")) return {};
  ASSAY_CHECK(engine::check_blas());
  return add_check(query, chosen.mesh, chosen.best, response);
}

/// Which result was chosen where the expression names none, and why.
void add_propagated(const Query& query, report::Response& response) {
  if (!query.propagated) return;
  const plan::PropagatedResult& found = *query.propagated;
  const auto cost = [&](double value) {
    if (value == 0.0) return std::string("no communication");
    return query.cluster ? human(Seconds(value)) : human(Bytes(value)) + " received";
  };
  const std::string chosen = program::tensor_text(query.mesh, found.tensor);
  std::string why = found.considered == 1
                        ? "the only one without further axes: " + cost(found.cost)
                        : fmt::format("the cheapest of {} shardings: {}", found.considered, cost(found.cost));
  if (found.next)
    why += fmt::format("; next {}: {}", program::tensor_text(query.mesh, *found.next), cost(found.next_cost));
  response.results.emplace_back(
      "propagated",
      report::Members{{"result", chosen}, {"considered", static_cast<std::int64_t>(found.considered)}, {"why", why}});
  response.notes.push_back(fmt::format("the result is left open: {} is {}", chosen, why));
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  if (!query.unknown.empty() && !request.picture()) return symbolic_answer(query);
  if (!query.unknown.empty())
    return fail("--sizes", "missing: a picture needs them",
                fmt::format("add --sizes {}=4096", join(query.unknown, "=4096,")), Error::Kind::usage);
  const plan::ShardingExpression& e = query.expression;
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("expression", plan::expression_text(query.mesh, e));
  out.emplace_back("mesh", program::mesh_text(query.mesh));
  out.emplace_back("devices", query.mesh.devices());
  add_propagated(query, response);
  add_tensors(query, response);
  if (query.cluster) {
    if (!query.placement.plain())
      response.notes.push_back("placed " + collective::placement_text(query.placement, query.mesh, *query.cluster));
    out.emplace_back("memory_time",
                     program::local_bytes(query.mesh, e.left) / query.cluster->chip.hbm().bandwidth->value);
  }
  if (e.result) {
    ASSAY_CHECK(add_plan(request, query, response));
    return response;
  }
  if (request.has("overlap"))
    return fail("--overlap", "there is no product to overlap with", "give a product A[I, J_X] * B[J, K] -> C[I, K]",
                Error::Kind::usage);
  if (request.has("check"))
    return fail("--check", "a single tensor has nothing to execute",
                "give a resharding A[I_X, J] -> A[I, J_X] or a product", Error::Kind::usage);
  response.headline = fmt::format("{} on {}: {} of {} on each of {} devices", program::tensor_text(query.mesh, e.left),
                                  program::mesh_text(query.mesh), human(program::local_bytes(query.mesh, e.left)),
                                  human(program::global_bytes(e.left)), query.mesh.devices());
  if (request.picture()) response.picture = draw::draw_sharding(query.mesh, e.left);
  return response;
}

}  // namespace assay::verbs::shard
