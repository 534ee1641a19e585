#include "assay/ask/verbs/measure/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include "assay/base/text.h"
#include "assay/engine/kernels/blas.h"
#include "assay/lab/measure/cpu.h"
#include "assay/lab/measure/host_chip.h"
#include "assay/lab/measure/network.h"
#include "assay/lab/measure/process.h"
#include "assay/lab/validate/rows/csv.h"

namespace assay::verbs::measure_verb {
namespace {

bool is_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

std::string program(const Context& context, std::string_view name) {
  return context.surroundings.programs.empty() ? "" : fmt::format("{}/{}", context.surroundings.programs, name);
}

Result<MeasuredTable> cuda_table(const Request& request, const Context& context) {
  const std::string path = program(context, "assay-measure-cuda");
  if (path.empty() || !is_program(path))
    return fail("--device cuda", "assay-measure-cuda is not in the directory of this program",
                "build it where the CUDA toolkit is (docs/measure.md), run it there, and give its table to --rows",
                Error::Kind::missing);
  std::vector<std::string> words{path};
  if (request.has("quick")) words.emplace_back("--quick");
  ASSAY_TRY(output, measure::run_process(words));
  if (output.status != 0)
    return fail("--device cuda", fmt::format("assay-measure-cuda ended with {} and measured nothing", output.status),
                "its output is above");
  return MeasuredTable{std::move(output.text), "assay-measure-cuda", {}};
}

/// The rows of collectives between ranks of this machine, appended to the table; why not, where there are none.
void add_ranks(const Request& request, const Context& context, const measure::Machine& machine, MeasuredTable& table) {
  const std::string path = program(context, "assay-measure-mpi");
  if (path.empty() || !is_program(path)) {
    table.notes.emplace_back("collectives were not measured: assay-measure-mpi was not built (it needs MPI)");
    return;
  }
  if (machine.cores < 2) {
    table.notes.emplace_back("collectives were not measured: there is one core");
    return;
  }
  for (int ranks = 2; ranks <= machine.cores; ranks *= 2) {
    std::vector<std::string> words{"mpirun", "--allow-run-as-root", "--oversubscribe",
                                   "-n",     std::to_string(ranks), path};
    if (request.has("quick")) words.emplace_back("--quick");
    const auto output = measure::run_process(words);
    if (!output || output->status != 0) {
      table.notes.push_back(
          fmt::format("collectives of {} ranks were not measured: {}", ranks,
                      output ? fmt::format("mpirun ended with {}", output->status) : output.error().what));
      return;
    }
    for (const std::string& line : split(output->text, '\n')) {  // its facts go before the head, its rows to the end
      if (line.starts_with("# fact") && ranks == 2) table.text.insert(table.text.find("op,dtype"), line + "\n");
      if (!line.empty() && line[0] != '#' && !line.starts_with("op,")) table.text += line + "\n";
    }
  }
}

/// Products and copies of one process; `with_ranks`: and collectives between ranks of this machine.
Result<MeasuredTable> cpu_table(const Request& request, const Context& context, bool with_ranks) {
  measure::CpuRequest wanted;
  if (const auto text = request.value("threads")) {
    ASSAY_TRY(threads, parse_count(*text, "--threads"));
    if (threads > 4096) return fail("--threads", "at most 4096", "", Error::Kind::usage);
    wanted.threads = static_cast<int>(threads);
  }
  wanted.extent = request.has("check")   ? measure::Extent::check
                  : request.has("quick") ? measure::Extent::quick
                                         : measure::Extent::full;
  ASSAY_CHECK(engine::check_blas());
  const measure::Machine machine = measure::read_machine();
  measure::Measurement measured = measure::measure_cpu(wanted, machine);
  if (measured.rows.empty())
    return fail("measure", "nothing was measured", measured.notes.empty() ? "" : measured.notes.front());
  if (!context.surroundings.date.empty())
    measured.facts.insert(measured.facts.begin(), {"date", context.surroundings.date});
  MeasuredTable table{measure::rows_text(measured), "measured", measured.notes};
  if (with_ranks && !request.has("check")) add_ranks(request, context, machine, table);
  return table;
}

}  // namespace

std::string measure_command(const Request& request) {
  std::string command = "assay measure";
  for (const OptionSpec& option : request.verb().options) {
    if (option.name == "out" || !request.has(option.name)) continue;
    command += fmt::format(" --{}", option.name);
    if (!option.value.empty()) command += " " + *request.value(option.name);
  }
  return command;
}

Result<MeasuredTable> measured_table(const Request& request, const Context& context) {
  if (const auto file = request.value("rows")) {
    for (const std::string_view other : {"device", "threads", "quick"})
      if (request.has(other))
        return fail(fmt::format("--{}", other), "with --rows nothing is measured", "drop this or --rows",
                    Error::Kind::usage);
    ASSAY_TRY(text, validate::read_data(*file, "--rows"));
    return MeasuredTable{std::move(text), *file, {}};
  }
  return request.value("device") == "cuda" ? cuda_table(request, context) : cpu_table(request, context, true);
}

Result<MeasuredTable> network_table(const Request& request, const Context& context, engine::Transport& ranks) {
  // One rank measures its core while the others wait; each of them has one.
  MeasuredTable table;
  Result<void> state;
  if (ranks.rank() == 0) {
    const Request alone = request.has("threads") ? request : request.with("threads", "1");
    if (auto measured = cpu_table(alone, context, false))
      table = std::move(*measured);
    else
      state = tl::unexpected(measured.error());
  }
  ASSAY_CHECK(engine::agree(ranks, state));
  const measure::NetworkMeasurement network =
      measure::measure_network(ranks, request.has("quick") ? measure::Extent::quick : measure::Extent::full);
  const engine::LocalRank local = engine::local_rank(ranks);
  if (ranks.rank() == 0 && local.count == ranks.count())
    table.text.insert(table.text.find("op,dtype"),
                      fmt::format("# fact {}: {}\n", measure::shared_cores_fact, local.cores));
  measure::Measurement rows;
  rows.rows = network.rows;
  for (const std::string& line : split(measure::rows_text(rows), '\n'))
    if (!line.empty() && line[0] != '#' && !line.starts_with("op,")) table.text += line + "\n";
  for (const measure::Contention& each : network.contention)
    table.contention.emplace_back(report::Members{{"op", each.op},
                                                  {"bytes", Bytes(static_cast<double>(each.bytes))},
                                                  {"ranks", each.ranks},
                                                  {"alone", each.alone},
                                                  {"two_at_once", each.together},
                                                  {"slower_by", each.together / each.alone}});
  std::vector<Seconds> sorted = network.own_times;
  const Seconds usual = measure::median_of(sorted);
  for (std::size_t rank = 0; rank < network.own_times.size(); ++rank)
    table.ranks.emplace_back(report::Members{{"rank", static_cast<std::int64_t>(rank)},
                                             {"time", network.own_times[rank]},
                                             {"slower_by", network.own_times[rank] / usual}});
  table.files.emplace_back("clusters/ranks.toml",
                           fmt::format("# {} ranks, measured by {}\nchip = \"host\"\nsize = \"{}\"\n", ranks.count(),
                                       measure_command(request), ranks.count()));
  return table;
}

}  // namespace assay::verbs::measure_verb
