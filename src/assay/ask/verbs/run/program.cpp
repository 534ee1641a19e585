// Runs a program that is written as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "assay/ask/draw/animation.h"
#include "assay/ask/draw/sharding/sharding_scene.h"
#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/base/assign.h"
#include "assay/base/text.h"
#include "assay/engine/kernels/blas.h"
#include "assay/engine/language/run_text.h"
#include "assay/hardware/catalogue.h"
#include "assay/predict/clock/step_time.h"
#include "assay/predict/collective/placement.h"
#include "assay/profile/hlo/module.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::run {
namespace {

constexpr double tolerance = 1e-9;
constexpr std::size_t most_values = 64;  // of a result that is printed
constexpr std::int64_t most_executed_devices = 256, most_priced_devices = 1 << 20;

struct Query {
  language::Source source;
  language::Syntax syntax;
  program::Mesh mesh;
  bool backward = false;
  std::optional<hardware::Cluster> cluster;
  collective::Placement placement;
  std::optional<kernel::KernelRates> rates;
  std::optional<hardware::CollectiveCalibration> collectives;
};

Result<language::Source> read_source(const Request& request) {
  if (request.arguments().size() > 1 || request.arguments().empty() != request.has("eval"))
    return fail("run", "give one program (a file, or its text with -e), or train MODEL, or serve MODEL",
                "e.g. assay run examples/mlp.assay", Error::Kind::usage);
  if (const auto text = request.value("eval")) return language::Source{"program", *text};
  const std::string& path = request.arguments().front();
  const bool piped = path == "-";
  std::string text;
  if (piped) {
    std::ifstream in("/dev/stdin", std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  } else {
    ASSAY_SET(text, trace::file_bytes(path, "FILE"));
  }
  if (trace::is_gzip(text)) ASSAY_SET(text, trace::inflated(text, path));
  const std::size_t folder = path.rfind('/');
  return language::Source{piped                         ? "program"
                          : folder == std::string::npos ? path
                                                        : path.substr(folder + 1),
                          std::move(text)};
}

Result<Query> read_query(const Request& request, const Context& context, language::Source source) {
  for (const auto& [option, instead, remedy] :
       {std::tuple("mesh", "names its mesh itself", "mesh X=4, Y=2 at the start of the program"),
        std::tuple("against", "names its mesh itself", "mesh X=4, Y=2 at the start of the program"),
        std::tuple("inputs", "makes its numbers itself", "leave it out"),
        std::tuple("expect", "says what it expects", "expect NAME = ... behind it")})
    if (request.has(option))
      return fail(fmt::format("--{}", option),
                  fmt::format("this is for programs in StableHLO; a program of ours {}", instead), remedy,
                  Error::Kind::usage);
  Query query;
  query.source = std::move(source);
  ASSAY_SET(query.syntax, language::parse(query.source));
  query.mesh = language::mesh_of(query.syntax);
  constexpr std::size_t most_axes = 8;
  const std::int64_t most_devices = request.has("on") ? most_priced_devices : most_executed_devices;
  std::int64_t devices = 1;
  for (const program::MeshAxis& axis : query.mesh.axes)
    devices = std::min(devices * std::min(axis.size, most_devices + 1), most_devices + 1);
  if (query.mesh.axes.size() > most_axes || devices > most_devices)
    return fail(fmt::format("{}: mesh", query.source.name),
                fmt::format("a mesh has at most {} axes and {} devices", most_axes, most_devices),
                "use fewer or shorter axes");
  query.backward = request.has("backward");
  if (!request.has("on")) return query;
  ASSAY_SET(query.cluster, cluster_of(request, context));
  ASSAY_SET(query.placement, collective::Placement::make(query.mesh, *query.cluster, "mesh"));
  Dtype dtype = Dtype::bf16;
  if (const auto given = parse_dtype(query.syntax.dtype.text, "dtype")) dtype = *given;
  ASSAY_TRY(calibration, hardware::calibration_of(query.cluster->chip, context.catalogue));
  if (calibration) query.collectives = calibration->values.collective;
  ASSAY_SET(query.rates,
            kernel::kernel_rates(query.cluster->chip, dtype, "dtype", calibration ? &calibration->values : nullptr));
  return query;
}

plan::Prices prices_of(const Query& query) {
  if (!query.cluster) return plan::byte_prices(query.mesh);
  FlopsPerSecond peak;
  for (const FlopsPerSecond rate : query.rates->peak) peak = std::max(peak, rate);
  return collective::time_prices(query.placement, query.mesh, peak);
}

/// The time of a step on the cluster.
Seconds time_of(const Query& query, const program::Program& program, const program::Step& step) {
  return clock::step_time({*query.cluster, *query.rates, query.collectives}, query.placement, program, step);
}

/// The time of a step on ranks that share cores.
Seconds predicted_time(const Query& query, const program::Program& program, const program::Step& step,
                       const CoreSharing& sharing) {
  const double longer = program::is_collective(step.op)
                            ? sharing.collective(program::shard_count(program.mesh, step.axes))
                            : sharing.kernel();
  return longer * time_of(query, program, step);
}

/// Views change nothing but names.
bool is_listed(const program::Step& step) { return step.op != program::Op::view && step.op != program::Op::view_grad; }

/// On ranks, steps also have the time that they took.
void add_steps(const Query& query, const language::Compiled& compiled, const engine::TextRun& run,
               const CoreSharing& sharing, report::Members& out) {
  const program::Program& program = compiled.program;
  report::Items rows;
  Seconds compute, moving;
  Flops flops;
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      if (!is_listed(step)) continue;
      const language::Origin& origin = compiled.origins[static_cast<std::size_t>(i)];
      const bool moves = program::is_movement(step.op);
      flops += step.flops;
      report::Members row{{"pass", program::name(block.phase)}};
      row.emplace_back("line", origin.line > 0 ? report::Value(origin.line) : report::Value());
      row.emplace_back("text", language::listed_text(compiled, step));
      row.emplace_back("kind", program::name(step));
      row.emplace_back("axes", program::axes_text(program.mesh, step.axes));
      row.emplace_back("inserted", origin.inserted);
      row.emplace_back("flops", step.flops);
      row.emplace_back("received", moves ? step.bytes : Bytes(0));
      if (query.cluster) {
        const Seconds time = predicted_time(query, program, step, sharing);
        (moves ? moving : compute) += time;
        row.emplace_back("time", time);
      }
      if (!run.times.empty()) row.emplace_back("measured", run.times[static_cast<std::size_t>(i)]);
      rows.emplace_back(std::move(row));
    }
  out.emplace_back("steps", std::move(rows));
  out.emplace_back("flops_per_device", flops);
  if (!query.cluster) return;
  out.emplace_back("compute_time", compute);
  out.emplace_back("collective_time", moving);
}

report::Value values_of(const engine::Array& array) {
  if (array.values.size() > most_values) return {};
  return nested(array);
}

/// The results of the sharded run beside those of the unsharded one; returns the largest error.
double add_results(const language::Compiled& compiled, const engine::TextRun& run, const engine::TextRun& reference,
                   report::Response& response) {
  double worst = 0.0;
  const auto rows_of = [&](const std::vector<language::NamedTensor>& all) {
    return report::rows_of(all, [&](const language::NamedTensor& one) {
      const program::Tensor tensor = program::to_tensor(compiled.program, compiled.program.tensor(one.tensor));
      const auto expected = reference.results.find(one.name);
      report::Items shape;
      for (std::int64_t n : program::local_shape(compiled.program.mesh, tensor)) shape.emplace_back(n);
      report::Members row{{"name", one.name},
                          {"tensor", program::tensor_text(compiled.program.mesh, tensor)},
                          {"type", type_text(compiled.program.mesh, tensor)},
                          {"local_shape", std::move(shape)}};
      if (expected != reference.results.end()) {
        const double error = engine::relative_error(run.results.at(one.name), expected->second);
        worst = std::max(worst, error);
        row.emplace_back("max_error", std::isfinite(error) ? report::Value(error) : report::Value());
      } else {
        row.emplace_back("max_error", report::Value());
      }
      row.emplace_back("values", values_of(run.results.at(one.name)));
      return row;
    });
  };
  response.results.emplace_back("outputs", rows_of(compiled.results));
  if (!compiled.gradients.empty()) response.results.emplace_back("gradients", rows_of(compiled.gradients));
  return worst;
}

/// How a run compares with one device.
struct Compared {
  double error = 0;
  bool compared = false;  ///< there was something to compare with
  bool on_ranks = false;
};

void add_check(const language::Compiled& compiled, const engine::TextRun& run, const Compared& result_of_run,
               report::Response& response) {
  const auto& [error, compared, on_ranks] = result_of_run;
  const bool equal = error <= tolerance && run.facts.disagreement <= tolerance,
             moves = run.facts.byte_error <= tolerance;
  const bool ok = equal && moves;
  response.results.emplace_back(
      "check", report::Members{{"max_error", std::isfinite(error) ? report::Value(error) : report::Value()},
                               {"compared", compared},
                               {"disagreement", run.facts.disagreement},
                               {"bytes_moved", run.facts.moved},
                               {"bytes_predicted", run.predicted},
                               {"ok", ok}});
  const std::int64_t devices = compiled.program.mesh.devices();
  if (!ok) response.outcome = report::Outcome::check_failed;
  const std::string result = error > tolerance ? fmt::format(
                                                     "the results differ by up to {:.3g} from those of one "
                                                     "device, or from what their expect lines say",
                                                     error)
                             : !equal
                                 ? fmt::format("devices hold different values of {}, which should be the same on all",
                                               run.disagreeing.empty() ? "a tensor" : run.disagreeing)
                             : compared ? "the results equal those of one device"
                                        : "there is nothing to compare it with: add expect NAME = ...";
  response.headline = fmt::format(
      "{} {}{}: {} received per device, {}; {}", devices, on_ranks ? "rank" : "virtual device", devices == 1 ? "" : "s",
      report::short_binary(run.facts.moved), moves ? "as predicted" : "not as predicted", result);
}

/// The steps that a picture shows, as a plan.
struct Pictured {
  plan::Plan plan;
  std::vector<std::string> costs;
};
Pictured pictured(const Query& query, const language::Compiled& compiled) {
  constexpr std::size_t most_panels = 40;
  Pictured out;
  const program::Program& program = compiled.program;
  for (const program::ProgramTensor& tensor : program.tensors) out.plan.add(program::to_tensor(program, tensor));
  for (const program::Step& step : program.steps) {
    if (!program::is_movement(step.op) && step.op != program::Op::product) continue;
    if (out.plan.steps.size() == most_panels) break;
    out.plan.steps.push_back(step);
    std::string& cost = out.costs.emplace_back(
        program::is_collective(step.op) ? report::short_binary(step.bytes) + " received" : "nothing moves");
    if (query.cluster) cost += ", " + report::short_quantity(time_of(query, program, step));
  }
  return out;
}

draw::Scene picture_of(const Query& query, const language::Compiled& compiled, const std::string& headline) {
  const Pictured all = pictured(query, compiled);
  if (all.plan.steps.empty() && !compiled.results.empty())
    return draw::draw_sharding(compiled.program.mesh, all.plan.tensor(compiled.results.front().tensor));
  return draw::draw_plan(compiled.program.mesh, query.source.name, headline, all.plan, all.costs);
}

/// One step after the other.
std::vector<draw::Scene> frames_of(const Query& query, const language::Compiled& compiled,
                                   const std::string& headline) {
  Pictured all = pictured(query, compiled);
  std::vector<draw::Scene> frames;
  const std::vector<program::Step> steps = std::move(all.plan.steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all.plan.steps = {steps[i]};
    frames.push_back(draw::draw_plan(compiled.program.mesh,
                                     fmt::format("{}, step {} of {}", query.source.name, i + 1, steps.size()), headline,
                                     all.plan, {all.costs[i]}));
  }
  if (frames.empty()) frames.push_back(picture_of(query, compiled, headline));
  return frames;
}

/// Movements that block against the same ones beside other steps, as ranks took them and as they are predicted.
void add_measured_overlap(const Request& request, const Query& query, const language::Compiled& compiled,
                          const MeasuredOverlap& measured, const engine::LocalRank& local, const CoreSharing& sharing,
                          report::Response& response) {
  const program::Program& program = compiled.program;
  std::optional<clock::OverlapTimes> predicted;
  if (query.cluster) {
    std::vector<Seconds> times;
    for (const program::Step& step : program.steps) times.push_back(predicted_time(query, program, step, sharing));
    const bool is_here = query.cluster->chip.id == host_chip;
    constexpr double enough = 2;  // one for steps, one for what is beside them
    predicted = clock::overlap_times(
        program, times, is_here ? static_cast<double>(local.cores) / static_cast<double>(local.count) : enough);
  }
  response.notes.push_back(add_overlap(
      request, program,
      [&](int step) { return language::listed_text(compiled, program.steps[static_cast<std::size_t>(step)]); },
      measured, predicted, response));
}

Result<void> check_rows(const Query& query, const language::Compiled& compiled, const engine::TextRun& run) {
  if (!run.beyond) return {};
  const int line = compiled.origins[static_cast<std::size_t>(run.beyond->step)].line;
  return fail(
      fmt::format("{}:{}", query.source.name, line),
      fmt::format("gather asks for row {} of a table of {} rows", human_number(run.beyond->row), run.beyond->rows),
      "rows count from 0; input t[T] = random 1 below V draws rows of a table[V, D]");
}

struct PreparedProgram {
  Query query;
  language::Compiled compiled, whole;
  std::vector<std::string> shown;
  bool priced_only = false;  ///< too large to be executed
};

Result<std::shared_ptr<PreparedProgram>> prepare_program(const Request& request, const Context& context,
                                                         language::Source source) {
  ASSAY_CHECK(check_overlap(request));
  auto out = std::make_shared<PreparedProgram>();
  ASSAY_SET(out->query, read_query(request, context, std::move(source)));
  ASSAY_TRY(compiled, language::compile(out->query.source, out->query.syntax, language::Reading::sharded,
                                        prices_of(out->query), out->query.backward));
  if (compiled.too_large || out->query.mesh.devices() > most_executed_devices) {
    if (!out->query.cluster) return tl::unexpected(*compiled.too_large);
    out->compiled = std::move(compiled);
    out->priced_only = true;
    return out;
  }
  ASSAY_TRY(whole, language::compile(out->query.source, out->query.syntax, language::Reading::unsharded,
                                     plan::byte_prices({}), out->query.backward));
  ASSAY_TRY(names, shown_names(request, compiled));
  ASSAY_CHECK(engine::check_blas());
  out->compiled = std::move(compiled);
  out->whole = std::move(whole);
  out->shown = std::move(names);
  return out;
}

/// What a device holds while it runs the program: what was given to the end, what steps make to its last use.
report::Members memory_of(const language::Compiled& compiled) {
  const program::Program& program = compiled.program;
  const auto count = static_cast<std::int32_t>(program.steps.size());
  std::vector<std::int32_t> made(program.tensors.size(), -1), used(program.tensors.size(), -1);
  for (const language::GivenTensor& one : compiled.given) used[static_cast<std::size_t>(one.tensor)] = count;
  for (const auto* list : {&compiled.results, &compiled.gradients})
    for (const language::NamedTensor& one : *list) used[static_cast<std::size_t>(one.tensor)] = count;
  for (std::int32_t i = 0; i < count; ++i) {
    const program::Step& step = program.steps[static_cast<std::size_t>(i)];
    for (const std::int16_t id : step.in)
      if (id >= 0) used[static_cast<std::size_t>(id)] = std::max(used[static_cast<std::size_t>(id)], i);
    for (const std::int16_t id : step.out)
      if (id >= 0) made[static_cast<std::size_t>(id)] = i;
  }
  const auto bytes = [&](std::size_t id) {
    return program::local_bytes(program.mesh, program::to_tensor(program, program.tensors[id]));
  };
  Bytes given, peak;
  std::int32_t fullest = 0;
  const auto alive = [&](std::size_t id, std::int32_t at) { return used[id] >= at && made[id] <= at; };
  for (std::int32_t i = 0; i < count; ++i) {
    Bytes now;
    for (std::size_t id = 0; id < program.tensors.size(); ++id)
      if (alive(id, i)) now += bytes(id);
    if (now > peak) {
      peak = now;
      fullest = i;
    }
  }
  report::Items live;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    if (made[id] < 0 && used[id] >= 0) given += bytes(id);
    if (!alive(id, fullest)) continue;
    const program::Tensor tensor = program::to_tensor(program, program.tensors[id]);
    const int line = made[id] < 0 ? 0 : compiled.origins[static_cast<std::size_t>(made[id])].line;
    live.emplace_back(report::Members{
        {"name", tensor.name}, {"array", type_text(program.mesh, tensor)}, {"line", line}, {"bytes", bytes(id)}});
  }
  return {{"peak", peak},
          {"given", given},
          {"outputs", Bytes(0)},
          {"temporaries", peak - std::min(peak, given)},
          {"at", std::move(live)}};
}

/// A program that is too large to be executed: its steps, their times and what devices hold.
report::Response priced_program(const PreparedProgram& prepared) {
  const Query& query = prepared.query;
  const program::Program& program = prepared.compiled.program;
  report::Response response;
  response.results = {{"program", query.source.name},
                      {"mode", language::name(query.syntax.mode)},
                      {"mesh", program::mesh_text(query.mesh)},
                      {"devices", query.mesh.devices()}};
  add_steps(query, prepared.compiled, {}, {}, response.results);
  std::vector<Seconds> times;
  Bytes received;
  for (const program::Step& step : program.steps) {
    times.push_back(time_of(query, program, step));
    if (program::is_collective(step.op)) received += step.bytes;
  }
  constexpr double enough = 2;  // cores: one for steps, one for what is beside them
  const clock::OverlapTimes time = clock::overlap_times(program, times, enough);
  report::Members memory = memory_of(prepared.compiled);
  response.headline =
      fmt::format("{} devices: {} received per device; {} on {}; too large to be executed here", query.mesh.devices(),
                  report::short_binary(received), report::short_quantity(time.overlapped), query.cluster->text);
  response.results.emplace_back("received", received);
  response.results.emplace_back("on", query.cluster->text);
  response.results.emplace_back("time", time.overlapped);
  response.results.emplace_back("exposed_time", time.moving - time.hidden);
  response.results.emplace_back("memory", std::move(memory));
  response.table_key = "steps";
  return response;
}

Result<report::Response> run_program(const Request& request, const PreparedProgram& prepared,
                                     engine::Transport* transport) {
  const Query& query = prepared.query;
  const language::Compiled& compiled = prepared.compiled;
  engine::TextRun run = engine::run_text(compiled, transport);
  engine::LocalRank local{0, 0, 0};
  if (transport) {  // a step's fastest of some runs: the first one has to find its memory
    constexpr int more_runs = 4;
    for (int i = 0; i < more_runs; ++i) {
      const engine::TextRun again = engine::run_text(compiled, transport);
      for (std::size_t s = 0; s < run.times.size(); ++s) run.times[s] = std::min(run.times[s], again.times[s]);
    }
    local = engine::local_rank(*transport);
  }
  const auto timed = [&](engine::Overlap how) {
    constexpr int runs = 7;  // the first one has to find its memory
    return engine::run_timed(compiled, *transport, how, runs).ranks;
  };
  std::optional<MeasuredOverlap> overlap;
  if (transport && request.has("overlap"))
    overlap = {timed(engine::Overlap::none), timed(engine::Overlap::all),
               collective::core_turns(static_cast<double>(local.count), static_cast<double>(local.cores))};
  if (transport && !prepared.shown.empty())
    for (std::size_t i = 0; i < run.memory.size(); ++i)
      run.memory[i] = engine::gathered(compiled, run, static_cast<int>(i), transport);
  report::Response response;
  if (transport && transport->rank() > 0) return response;
  const engine::TextRun reference = engine::run_text(prepared.whole);
  report::Members& out = response.results;
  out = {{"program", query.source.name},
         {"mode", language::name(query.syntax.mode)},
         {"engine", transport ? "mpi" : "virtual"},
         {"mesh", program::mesh_text(query.mesh)},
         {"devices", query.mesh.devices()}};
  ASSAY_CHECK(check_rows(query, compiled, run));
  const double error = add_results(compiled, run, reference, response);
  const CoreSharing sharing = query.cluster ? core_sharing(local, *query.cluster, response) : CoreSharing{};
  add_steps(query, compiled, run, sharing, out);
  add_check(compiled, run, {error, !reference.results.empty(), transport != nullptr}, response);
  if (!prepared.shown.empty()) ASSAY_CHECK(report::put(out, "shown", shown_rows(compiled, run, prepared.shown)));
  response.table_key = "steps";
  if (transport)
    response.notes.emplace_back("numbers travel between ranks in fp64; bytes are counted in the program's format");
  if (overlap)
    add_measured_overlap(request, query, compiled, *overlap, local, sharing, response);
  else if (request.picture())
    response.picture = picture_of(query, compiled, response.headline);
  if (request.frames()) response.frames = frames_of(query, compiled, response.headline);
  if (const auto file = request.value("animate"))
    response.files.emplace_back(
        *file, draw::to_animated_svg(query.source.name, frames_of(query, compiled, response.headline), 2.5));
  return response;
}

}  // namespace

Result<report::Response> program_answer(const Request& request, const Context& context) {
  ASSAY_TRY(source, read_source(request));
  if (hlo::is_hlo_text(source.text))
    return fail(source.name, "this is HLO, which a compiler has already planned",
                "assay profile FILE --on CLUSTER prices it; run takes StableHLO, as lowered programs are written");
  if (hlo::is_stablehlo_text(source.text)) return planned_answer(request, context, std::move(source.text), source.name);
  return run_on_engine(request, context, [&]() -> Result<PreparedRun> {
    ASSAY_TRY(prepared, prepare_program(request, context, source));
    if (prepared->priced_only)
      return PreparedRun{std::nullopt, [prepared](engine::Transport*) { return priced_program(*prepared); }};
    return PreparedRun{prepared->query.mesh.devices(), [&request, prepared](engine::Transport* transport) {
                         return run_program(request, *prepared, transport);
                       }};
  });
}

}  // namespace assay::verbs::run
