// assay layer: the best sharding of a layer's three tensors, or of one product, under a cap on memory.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/layer/query.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/predict/collective/placement.h"

namespace assay::verbs::layer {
namespace {

/// Why a runner-up comes after the best one.
std::string reason(const search::LayerChoice& best, const search::LayerChoice& other) {
  const auto more = [](double a, double b) { return a > b * (1.0 + 1e-9); };
  const auto moved = [&](const char* what) {
    return fmt::format("{}: {} on the network instead of {}", what, human(other.times.communication),
                       human(best.times.communication));
  };
  if (more(other.times.lower.value(), best.times.lower.value())) {
    const double share = other.times.lower / best.times.lower - 1.0;
    const std::string slower = fmt::format("{} slower, bound by {}", report::percent(share), search::limiter_of(other));
    return more(other.times.communication.value(), best.times.communication.value())
               ? moved((slower + "; moves more").c_str())
               : slower;
  }
  if (more(other.times.communication.value(), best.times.communication.value()))
    return moved("as fast with full overlap, but moves more");
  if (more(other.times.upper.value(), best.times.upper.value()))
    return "as fast with full overlap, but with more arithmetic or memory traffic";
  if (!more(other.memory().value(), best.memory().value())) return "equal in time and memory";
  return fmt::format("as fast, but needs {} more memory", human(other.memory() - best.memory()));
}

std::string shardings_text(const program::Mesh& mesh, const search::LayerChoice& choice) {
  std::vector<std::string> parts;
  for (const program::Tensor& tensor : choice.tensors) parts.push_back(program::tensor_text(mesh, tensor));
  return join(parts, ", ");
}

report::Members memory_members(const Query& query, const search::LayerChoice& choice) {
  report::Members memory;
  for (const program::Tensor& tensor : choice.tensors)
    memory.emplace_back(tensor.name, program::local_bytes(query.mesh, tensor));
  if (query.problem.layer())
    memory.emplace_back("weights", program::local_bytes(query.mesh, choice.tensors[1]) +
                                       program::local_bytes(query.mesh, choice.tensors[2]));
  memory.emplace_back("stored", choice.stored);
  memory.emplace_back("working", choice.working);
  memory.emplace_back("total", choice.memory());
  memory.emplace_back("capacity", query.memory);
  memory.emplace_back("fits", choice.memory() <= query.memory);
  memory.emplace_back("verdict", choice.memory() <= query.memory ? "fits" : "no");
  return memory;
}

report::Items step_rows(const Query& query, const search::LayerChoice& choice) {
  report::Items rows;
  for (std::size_t p = 0; p < choice.plans.size(); ++p)
    for (std::size_t i = 0; i < choice.plans[p].steps.size(); ++i) {
      const plan::Plan& plan = choice.plans[p];
      const program::Step& step = plan.steps[i];
      const bool multiplies = step.op == program::Op::product;
      const search::ProductTimes& times = choice.products[p];
      const Seconds time = multiplies ? std::max(times.compute, times.memory) : Seconds(plan.costs[i]);
      rows.emplace_back(report::Members{{"text", program::step_text(query.mesh, plan.tensors, step)},
                                        {"kind", program::name(step)},
                                        {"axes", program::axes_text(query.mesh, step.axes)},
                                        {"bytes", multiplies ? Bytes(0) : step.bytes},
                                        {"time", time}});
    }
  return rows;
}

void add_choice(const Query& query, const search::LayerChoice& choice, report::Members& out) {
  report::Members shardings;
  for (const program::Tensor& tensor : choice.tensors)
    shardings.emplace_back(tensor.name, program::tensor_text(query.mesh, tensor));
  if (choice.intermediate) shardings.emplace_back("Tmp", program::tensor_text(query.mesh, *choice.intermediate));
  shardings.emplace_back(choice.result.name, program::tensor_text(query.mesh, choice.result));
  out.emplace_back("shardings", std::move(shardings));
  out.emplace_back("steps", step_rows(query, choice));
  out.emplace_back("memory", memory_members(query, choice));
  out.emplace_back("compute_time", choice.times.compute);
  out.emplace_back("memory_time", choice.times.memory);
  out.emplace_back("weight_read_time", choice.weight_traffic / query.cluster.chip.hbm().bandwidth->value);
  out.emplace_back("collective_time", choice.times.communication);
  out.emplace_back(
      "time", report::range(choice.times.lower, search::expected_time(query.cluster.chip, choice), choice.times.upper));
  out.emplace_back("limiter", search::limiter_of(choice));
}

/// Arguments of a request for exactly this choice.
report::Members choice_arguments(const Request& request, const Query& query, const search::LayerChoice& choice) {
  Request fixed = request.without("fix");
  if (query.problem.result_free) fixed = fixed.with("result", program::tensor_text(query.mesh, choice.result));
  report::Members arguments = fixed.named_arguments();
  arguments.emplace_back("fix", report::rows_of(choice.tensors, [&](const program::Tensor& tensor) {
                           return program::tensor_text(query.mesh, tensor);
                         }));
  return arguments;
}

report::Items alternative_rows(const Request& request, const Query& query,
                               const std::vector<search::LayerChoice>& choices) {
  report::Items rows;
  for (std::size_t i = 1; i < choices.size(); ++i) {
    const search::LayerChoice& other = choices[i];
    rows.emplace_back(report::Members{{"shardings", shardings_text(query.mesh, other)},
                                      {"time", other.times.lower},
                                      {"collective_time", other.times.communication},
                                      {"memory", report::Members{{"total", other.memory()}, {"verdict", "fits"}}},
                                      {"why", reason(choices.front(), other)},
                                      {"arguments", choice_arguments(request, query, other)}});
  }
  return rows;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  if (request.has("vary")) return sweep_answer(request, context);
  if (request.picture())
    return fail("--format svg", "a picture shows a sweep", "add --vary B=1..1024 or --vary chips=4..256",
                Error::Kind::usage);
  ASSAY_TRY(query, read_query(request, context));
  ASSAY_TRY(hardware, chooser_hardware(query));
  const search::LayerSearch search = search::choose_sharding(query.mesh, query.problem, hardware);
  const bool fits = !search.choices.empty();
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("mesh", program::mesh_text(query.mesh));
  out.emplace_back("fits", fits);
  if (!fits) {
    const search::LayerChoice& least = search.smallest;
    const Bytes shortfall = least.memory() - query.memory;
    out.emplace_back("shortfall", shortfall);
    out.emplace_back("memory_that_fits", least.memory());
    add_choice(query, least, out);
    response.headline = fmt::format("nothing fits {} per device: {} needs {}, {} more", human(query.memory),
                                    shardings_text(query.mesh, least), human(least.memory()), human(shortfall));
    response.notes.push_back(fmt::format("--memory {}B would fit; so would more devices or a narrower dtype",
                                         exact_number(least.memory().value())));
    response.outcome = report::Outcome::infeasible;
  } else {
    const search::LayerChoice& best = search.choices.front();
    add_choice(query, best, out);
    if (search.choices.size() > 1) out.emplace_back("alternatives", alternative_rows(request, query, search.choices));
    response.headline = fmt::format("{}: at least {}, {} per device", shardings_text(query.mesh, best),
                                    human(best.times.lower), human(best.memory()));
    for (const program::Tensor& tensor : best.tensors)
      if (program::is_padded(query.mesh, tensor))
        response.notes.push_back(
            fmt::format("{} does not divide evenly: its shards are padded", program::tensor_text(query.mesh, tensor)));
  }
  out.emplace_back("search", report::Members{{"considered", search.considered},
                                             {"over_memory", search.over_memory},
                                             {"equal_to_best", search.equal}});
  ASSAY_TRY(placement, collective::Placement::make(query.mesh, query.cluster, "--mesh"));
  if (!placement.plain())
    response.notes.push_back("placed " + collective::placement_text(placement, query.mesh, query.cluster));
  if (!request.has("memory"))
    response.notes.push_back(fmt::format("assumes that all of the chip's {} are free", human(query.memory)));
  response.table_key = "steps";
  return response;
}

}  // namespace assay::verbs::layer
