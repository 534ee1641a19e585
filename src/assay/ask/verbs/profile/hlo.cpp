// assay profile FILE where FILE is a compiled program: what it computes, moves, sends and keeps, and how long it takes.
#include "assay/ask/verbs/profile/hlo.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::profile {
namespace {

namespace hlo = assay::hlo;

/// Where almost every parameter has a role, the program is a transformer.
constexpr double nearly_all = 0.9;

void note_program(ProgramQuery& query) {
  const hlo::Module& module = query.module;
  const hlo::ProgramKernels& kernels = query.kernels;
  std::vector<std::string>& notes = query.notes;
  if (module.entry == hlo::no_computation) {
    notes.emplace_back(
        "the text ends before the entry computation: sizes, mesh and weights are from the module's signature and its "
        "gathers; what runs cannot be counted");
    return;
  }
  if (!query.mesh.partitioned)
    notes.push_back(fmt::format("the program is not yet partitioned: counts are of all {} devices together{}",
                                module.devices(), query.price ? ", times of an even share of them" : ""));
  if (!kernels.fused)
    notes.emplace_back(
        "the program is not yet fused: element-wise work is grouped as a fusing compiler would, which says little "
        "about "
        "its memory");
  if (!module.scheduled)
    notes.emplace_back("the program is not scheduled: memory is in the order of the text, and collectives wait");
  if (kernels.unknown_loops > 0)
    notes.push_back(fmt::format("the trips of {} loops are not known: they count once", kernels.unknown_loops));
  if (kernels.conditionals > 0)
    notes.push_back(fmt::format("of each of {} conditionals the costliest branch counts", kernels.conditionals));
  const bool unmasked = std::any_of(
      kernels.kernels.begin(), kernels.kernels.end(),
      [](const hlo::ProgramKernel& kernel) { return kernel.work.attention && !kernel.work.attention->says_mask; });
  if (unmasked) notes.emplace_back("attention kernels do not say whether they are causal: all keys count");
  const auto scattered =
      std::count_if(kernels.kernels.begin(), kernels.kernels.end(),
                    [](const hlo::ProgramKernel& kernel) { return kernel.collective && kernel.collective->scattered; });
  if (scattered > 0)
    notes.push_back(
        fmt::format("{} all-reduces of which each device keeps a part are priced as reduce-scatters", scattered));
}

std::string program_headline(const ProgramQuery& query) {
  const hlo::Totals& totals = query.kernels.totals;
  const std::string& name = query.module.name;
  if (query.module.entry == hlo::no_computation)
    return fmt::format("{}: signature of a program for {} devices", name, query.module.devices());
  const std::string work = fmt::format("{}{}{}, {} through memory", name, name.empty() ? "" : ": ",
                                       report::short_quantity(totals.matrix), report::short_quantity(totals.bytes));
  if (!query.price) return work;
  return fmt::format("{}; {} on {}", work, report::short_quantity(query.price->estimate), query.cluster->text);
}

Result<ProgramQuery> read_program(const Request& request, const Context& context, std::string text,
                                  const std::string& name) {
  ASSAY_TRY(calls, hlo::calls_of(context.catalogue));
  ASSAY_TRY(query, recognised_program(std::move(text), name, *calls));
  query.memory = hlo::program_memory(query.module, query.kernels);
  if (!query.mesh.partitioned) query.share = 1.0 / static_cast<double>(query.module.devices());
  ASSAY_CHECK(price_program(request, context, query));
  note_program(query);
  return std::move(query);
}

}  // namespace

Result<ProgramQuery> recognised_program(std::string text, const std::string& name, const hlo::Calls& calls) {
  ProgramQuery query;
  ASSAY_SET(query.module, hlo::read_module(std::move(text), name, calls));
  query.computations = static_cast<std::int64_t>(query.module.computations.size());
  for (const hlo::Computation& computation : query.module.computations)
    query.instructions += static_cast<std::int64_t>(computation.instructions.size());
  if (!hlo::is_fused(query.module)) query.module = hlo::inlined(query.module);
  ASSAY_SET(query.kernels, hlo::program_kernels(query.module));
  ASSAY_SET(query.mesh, hlo::program_mesh(query.module));
  query.model = compare::recognise(query.module, query.mesh, query.kernels);
  return query;
}

Result<void> price_program(const Request& request, const Context& context, ProgramQuery& query) {
  if (!request.has("on")) return {};
  ASSAY_TRY(cluster, cluster_of(request, context));
  const std::int64_t devices = query.module.devices();
  if (devices > 1 && cluster.chips() != devices)
    return fail("--on", fmt::format("the program is for {} devices, the cluster has {}", devices, cluster.chips()),
                fmt::format("--on {}:{}", cluster.chip.id, devices));
  ASSAY_TRY(calibration, hardware::calibration_of(cluster.chip, context.catalogue));
  if (sets_efficiency(request)) calibration.reset();
  const auto formats = hlo::product_formats(query.kernels);
  Dtype compute = Dtype::bf16;
  for (const Dtype format : formats)
    if (cluster.chip.peak[static_cast<std::size_t>(format)]) {
      compute = format;
      break;
    }
  if (!cluster.chip.peak[static_cast<std::size_t>(compute)])
    for (const Dtype other : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
      if (cluster.chip.peak[static_cast<std::size_t>(other)]) compute = other;
  ASSAY_TRY(rates, kernel::kernel_rates(cluster.chip, compute, "--on", calibration ? &calibration->values : nullptr));
  std::optional<hardware::CollectiveCalibration> collectives;
  if (calibration) collectives = calibration->values.collective;
  ASSAY_SET(query.price, hlo::program_price(query.module, query.kernels, {cluster, rates, collectives}, query.share));
  query.notes.push_back(
      calibration ? fmt::format("kernels and collectives as measured: {}", calibration->basis)
                  : fmt::format("kernels and collectives use the efficiencies in chips/{}.toml", cluster.chip.id));
  query.cluster = std::move(cluster);
  return {};
}

bool ProgramQuery::is_model() const { return model.hidden > 0 && model.layers > 0 && model.explained >= nearly_all; }

bool is_program_text(std::string_view argument) {
  return argument.find('\n') != std::string_view::npos || argument.find(" parameter(") != std::string_view::npos ||
         hlo::parse_shape(argument, "").has_value();
}

Result<std::optional<report::Response>> program_answer(const Request& request, const Context& context,
                                                       const Sources& sources) {
  std::optional<report::Response> none;
  if (sources.profiles.empty() || sources.profiles.size() > 2) return none;
  if (const Source& only = sources.profiles.front();
      sources.profiles.size() == 1 && only.name.empty() && hlo::parse_shape(only.content(), "")) {
    ASSAY_CHECK(check_inputs(request, "shape"));
    ASSAY_TRY(answer, layout_answer(request, only.content()));
    return std::optional(std::move(answer));
  }
  std::vector<ProgramQuery> queries;
  for (const Source& source : sources.profiles) {
    if (!hlo::is_hlo_text(source.content()) && !hlo::is_stablehlo_text(source.content())) return none;
    ASSAY_CHECK(check_inputs(request, "program"));
    ASSAY_TRY(read, read_program(request, context, std::string(source.content()),
                                 source.name.empty() ? "text" : source.name));
    queries.push_back(std::move(read));
  }
  if (request.has("graph") && !request.picture())
    return fail("--graph", "a graph is drawn into a picture, and none is asked for", "add --output graph.svg",
                Error::Kind::usage);
  const ProgramQuery& query = queries.back();
  report::Response response;
  response.results.emplace_back("file", query.module.file);
  add_program(query, response.results);
  add_recognised(query, context, response.results);
  if (queries.size() == 2) add_changes(queries.front(), query, response.results);
  response.table_key = "kernels";
  response.notes = query.notes;
  response.headline = program_headline(query);
  if (request.picture()) {
    if (request.has("graph")) {
      ASSAY_SET(response.picture, program_graph(query, request.value("graph").value_or("")));
    } else {
      response.picture = program_picture(query);
    }
  }
  return std::optional(std::move(response));
}

}  // namespace assay::verbs::profile
