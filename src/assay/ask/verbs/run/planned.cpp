// A program that is planned and priced without being executed: StableHLO, partitioned over its mesh.
#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/hlo.h"
#include "assay/ask/verbs/run/planned_view.h"
#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/predict/collective/placement.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::run {
namespace {

/// The mesh of --mesh in the place of the program's own: shapes are of all devices together, so any sizes will do.
Result<void> set_mesh(const Request& request, hlo::Module& module) {
  const auto text = request.value("mesh");
  if (!text) return {};
  ASSAY_TRY(mesh, program::parse_mesh(*text, "--mesh"));
  std::vector<hlo::NamedAxis> axes;
  for (const program::MeshAxis& axis : mesh.axes) axes.emplace_back(axis.name, axis.size);
  if (axes == module.mesh) return {};
  for (const hlo::NamedAxis& axis : module.mesh)
    if (!mesh.find(axis.first))
      return fail("--mesh", fmt::format("the program has an axis {}, the mesh has none", in_quotes(axis.first)),
                  fmt::format("name all its axes, as in {}={}", axis.first, axis.second));
  for (const hlo::Computation& computation : module.computations)
    for (const hlo::Instruction& at : computation.instructions) {
      const bool manual = !at.attribute("manual_axes").empty() || at.calls(hlo::CallKind::to_shards);
      if (manual || (module.mesh.empty() && !at.attribute("sharding").empty()))
        return fail("--mesh", "the program's shapes or shardings are made for its own mesh",
                    fmt::format("{}: lower it for the other mesh", module.where(at)));
    }
  module.mesh = std::move(axes);
  module.partitions = mesh.devices();
  module.replicas = 1;
  return {};
}

/// What prices a plan: time on the cluster of --on, or bytes.
Result<plan::Prices> plan_prices(const Request& request, const Context& context, const program::Mesh& mesh) {
  if (!request.has("on")) return plan::byte_prices(mesh);
  ASSAY_TRY(cluster, cluster_of(request, context));
  ASSAY_TRY(placement, collective::Placement::make(mesh, cluster, "--on"));
  FlopsPerSecond peak;
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
    if (const auto rates = kernel::kernel_rates(cluster.chip, dtype, "--on", nullptr))
      for (const FlopsPerSecond rate : rates->peak) peak = std::max(peak, rate);
  return collective::time_prices(placement, mesh, peak);
}

Result<void> complete(const Request& request, const Context& context, profile::ProgramQuery& query) {
  ASSAY_SET(query.kernels, hlo::program_kernels(query.module));
  query.memory = hlo::program_memory(query.module, query.kernels);
  return profile::price_program(request, context, query);
}

/// "P('X', None, ('Y', 'Z'))": a sharding as people write it into their program.
std::string constraint_text(const program::Mesh& mesh, const hlo::PartitionPin& pin) {
  std::string out;
  for (std::size_t d = 0; d < std::min(pin.shape.dims.size(), program::max_tensor_rank); ++d) {
    std::vector<std::string> names;
    for (const int axis : pin.sharding.dims[d].axes())
      names.push_back(fmt::format("'{}'", mesh.axes[static_cast<std::size_t>(axis)].name));
    out += fmt::format("{}{}", d == 0 ? "" : ", ",
                       names.empty()       ? "None"
                       : names.size() == 1 ? names.front()
                                           : fmt::format("({})", fmt::join(names, ", ")));
  }
  return fmt::format("P({})", out);
}

/// The constraints that help most: each planned by itself, the best of them priced as the plan is.
Result<void> find_pins(const Request& request, const Context& context, const hlo::Partitioner& partitioner,
                       PlannedProgram& planned) {
  constexpr std::size_t most = 3, most_priced = 8, most_tried = 100, instructions_tried = 200'000;
  constexpr double worth = 0.999;
  std::size_t size = 1;
  for (const hlo::Computation& computation : planned.query.module.computations) size += computation.instructions.size();
  std::vector<hlo::PartitionPin> candidates = partitioner.candidates(planned.plan);
  candidates.resize(std::min({candidates.size(), most_tried, instructions_tried / size}));
  std::vector<std::pair<double, const hlo::PartitionPin*>> better;
  for (const hlo::PartitionPin& pin : candidates)
    if (const auto plan = partitioner.with(pin); plan && plan->cost < worth * planned.plan.cost)
      better.emplace_back(plan->cost, &pin);
  std::stable_sort(better.begin(), better.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  better.resize(std::min(better.size(), most_priced));
  for (const auto& [cost, candidate] : better) {
    const hlo::PartitionPin* pin = candidate;
    ASSAY_TRY(plan, partitioner.with(*pin));
    profile::ProgramQuery query;
    query.module = std::move(plan.module);
    ASSAY_CHECK(complete(request, context, query));
    PlannedPin one{*pin, constraint_text(plan.mesh.mesh, *pin), all_received(planned.query) - all_received(query), {}};
    if (query.price) one.gained_time = planned.query.price->estimate - query.price->estimate;
    const bool known = std::any_of(planned.pins.begin(), planned.pins.end(),
                                   [&](const PlannedPin& other) { return other.pin.at == pin->at; });
    if (!known && (query.price ? one.gained_time > Seconds(0) : one.gained_bytes > Bytes(0)))
      planned.pins.push_back(std::move(one));
  }
  std::stable_sort(planned.pins.begin(), planned.pins.end(), [](const PlannedPin& a, const PlannedPin& b) {
    return a.gained_time != b.gained_time ? a.gained_time > b.gained_time : a.gained_bytes > b.gained_bytes;
  });
  planned.pins.resize(std::min(planned.pins.size(), most));
  return {};
}

/// The program of --against, as a compiler partitioned it.
Result<std::optional<profile::ProgramQuery>> compiled_program(const Request& request, const Context& context,
                                                              const hlo::Calls& calls) {
  std::optional<profile::ProgramQuery> out;
  const auto path = request.value("against");
  if (!path) return out;
  ASSAY_TRY(bytes, trace::file_bytes(*path, "--against"));
  if (trace::is_gzip(bytes)) ASSAY_SET(bytes, trace::inflated(bytes, *path));
  out.emplace();
  ASSAY_SET(out->module, hlo::read_module(std::move(bytes), *path, calls));
  if (out->module.is_stablehlo)
    return fail("--against", "this is StableHLO, which no compiler has partitioned",
                "give the compiled program, as compiled.as_text() writes it");
  ASSAY_CHECK(complete(request, context, *out));
  return out;
}

void note_plan(const PlannedProgram& planned, report::Response& response) {
  const hlo::PartitionedProgram& plan = planned.plan;
  if (plan.mesh.mesh.devices() == 1)
    response.notes.emplace_back("the program names no mesh: it is planned for one device; --mesh X=4,Y=2 gives it one");
  if (!plan.unknown.empty())
    response.notes.push_back(fmt::format("every device computes all of these: {}", fmt::join(plan.unknown, ", ")));
  const hlo::ProgramKernels& kernels = planned.query.kernels;
  if (kernels.unknown_loops > 0)
    response.notes.push_back(
        fmt::format("the trips of {} loops are not known: they count once", kernels.unknown_loops));
  if (kernels.conditionals > 0)
    response.notes.push_back(
        fmt::format("of each of {} conditionals the costliest branch counts", kernels.conditionals));
  response.notes.emplace_back(
      "element-wise work is grouped as a fusing compiler would; memory is in the order of the text");
  response.notes.insert(response.notes.end(), planned.query.notes.begin(), planned.query.notes.end());
}

}  // namespace

Result<report::Response> planned_answer(const Request& request, const Context& context, std::string text,
                                        const std::string& name) {
  for (const std::string_view option : {"backward", "show", "animate", "overlap"})
    if (request.has(option))
      return fail(fmt::format("--{}", option), "a program that is planned without being executed has none of it",
                  "leave it out", Error::Kind::usage);
  ASSAY_TRY(calls, hlo::calls_of(context.catalogue));
  ASSAY_TRY(source, hlo::read_module(std::move(text), name, *calls));
  ASSAY_CHECK(set_mesh(request, source));
  ASSAY_TRY(mesh, hlo::partition_mesh(source));
  ASSAY_TRY(prices, plan_prices(request, context, mesh.mesh));
  PlannedProgram planned;
  ASSAY_TRY(partitioner, hlo::Partitioner::make(source, mesh, prices));
  ASSAY_SET(planned.plan, partitioner.best());
  planned.query.module = std::move(planned.plan.module);
  ASSAY_CHECK(complete(request, context, planned.query));
  ASSAY_CHECK(find_pins(request, context, partitioner, planned));
  ASSAY_SET(planned.compiled, compiled_program(request, context, *calls));
  report::Response response;
  add_planned(planned, response);
  response.table_key = "collectives";
  note_plan(planned, response);
  ASSAY_CHECK(check_plan(request, source, partitioner.pricing(), planned, response));
  return response;
}

}  // namespace assay::verbs::run
