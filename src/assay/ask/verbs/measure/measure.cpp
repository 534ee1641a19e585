// assay measure: calibrates this machine, or a chip from rows that were measured on it.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/measure/measure.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/lab/fit/measured.h"
#include "assay/lab/validate/rows/kernel_rows.h"
#include "assay/predict/collective/collective_models.h"

namespace assay::verbs::measure_verb {
namespace {

constexpr std::string_view host = "host";

/// Which chip the rows are of: --chip, or this machine where the table is of a processor.
Result<std::string> chip_id(const Request& request, const measure::Facts& facts) {
  if (const auto id = request.value("chip")) return *id;
  if (!measure::fact(facts, "processor").empty()) return std::string(host);
  const std::string device = measure::fact(facts, "device");
  return fail("--chip",
              device.empty() ? "the table does not say what it was measured on"
                             : fmt::format("the table was measured on {}", in_quotes(device)),
              "name the chip as the catalogue does, e.g. --chip h200-sxm", Error::Kind::usage);
}

Result<std::string> out_directory(const Request& request, const Context& context) {
  if (const auto out = request.value("out")) return *out;
  if (!context.surroundings.user_catalogue.empty()) return context.surroundings.user_catalogue;
  return fail("--out", "there is no home directory to write to", "name a directory: --out DIR", Error::Kind::usage);
}

/// 2026-11-15, as the table says it, else today.
std::string date_of(const measure::Facts& facts, const Context& context) {
  const std::string date = measure::fact(facts, "date");
  const auto form = [&](std::size_t i) { return i == 4 || i == 7 ? date[i] == '-' : date[i] >= '0' && date[i] <= '9'; };
  bool is_date = date.size() == 10;
  for (std::size_t i = 0; is_date && i < date.size(); ++i) is_date = form(i);
  if (is_date) return date;
  return context.surroundings.date.empty() ? "1970-01-01" : context.surroundings.date;
}

/// What BLAS, MPI or CUDA libraries took part, for the source of a calibration.
std::string versions(const measure::Facts& facts) {
  std::string text;
  for (const std::string_view key : {"processor", "device", "BLAS", "MPI", "CUDA", "cuBLASLt", "driver"})
    if (const std::string value = measure::fact(facts, key); !value.empty())
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", key, trim(value));
  return measure::plain_text(text);
}

report::Members fitted_numbers(const hardware::Calibration& c) {
  report::Members out;
  if (const auto& m = c.matmul) {
    report::Members numbers;
    for (const DtypeFacts& dtype : all_dtypes())
      if (const double share = m->share[static_cast<std::size_t>(dtype.dtype)]; share > 0.0)
        numbers.emplace_back(fmt::format("share_{}", dtype.name), share);
    numbers.emplace_back("memory_share", m->memory_share);
    numbers.emplace_back("fill", m->fill);
    if (m->fork) {
      numbers.emplace_back("fork", *m->fork);
    } else {
      numbers.emplace_back("droop", m->droop);
      numbers.emplace_back("small_tile", m->small_tile);
      numbers.emplace_back("split_cost", m->split_cost);
      if (m->port) numbers.emplace_back("port", *m->port);
    }
    out.emplace_back("products", std::move(numbers));
  }
  const auto regime = [&](std::string_view key, const std::optional<hardware::Regime>& r) {
    if (r) out.emplace_back(key, report::Members{{"launch", r->launch}, {"gap", r->gap}, {"ramp", r->ramp}});
  };
  regime("burst", c.burst);
  regime("sustained", c.sustained);
  if (c.attention && c.attention->cudnn) {
    const hardware::AttentionKernelCalibration& kernel = *c.attention->cudnn;
    const hardware::DecodeCalibration& decode = kernel.decode;
    const auto pass = [](const hardware::AttentionPass& one) {
      return report::Members{{"share", one.share}, {"softmax", one.softmax}, {"passes", one.passes}};
    };
    out.emplace_back("attention_forward", pass(kernel.forward));
    out.emplace_back("attention_backward", pass(kernel.backward));
    out.emplace_back("decode",
                     report::Members{{"share", decode.share}, {"crowded", decode.crowded}, {"item", decode.item}});
  }
  if (c.pointwise)
    out.emplace_back("streams", report::Members{{"share", c.pointwise->stream}, {"ramp", c.pointwise->ramp}});
  if (c.collective) {
    report::Items curves;
    for (const program::CollectiveFacts& each : program::all_collectives) {
      if (each.measured_as != each.kind) continue;
      const hardware::CollectiveCurve& curve = collective::curve_of(*c.collective, each.kind);
      curves.emplace_back(report::Members{{"kind", each.name},
                                          {"latency", curve.latency},
                                          {"member", curve.member},
                                          {"share", curve.share},
                                          {"pair", curve.pair},
                                          {"chunk", curve.chunk}});
    }
    out.emplace_back("collectives", std::move(curves));
    if (c.collective->cores) out.emplace_back("shared_cores", *c.collective->cores);
  }
  return out;
}

report::Items summary_rows(const std::vector<validate::ValidationCase>& cases) {
  return report::rows_of(validate::summarise_groups(cases), [&](const validate::ValidationSummary& s) {
    return report::Members{{"group", s.group},       {"n", static_cast<std::int64_t>(s.n)},
                           {"median_ape", s.median}, {"p90_ape", s.p90},
                           {"bias", s.bias},         {"covered", s.covered}};
  });
}

report::Items case_rows(const std::vector<validate::ValidationCase>& cases) {
  report::Items rows;
  for (const validate::ValidationCase& one : cases)
    if (!one.fitted)
      rows.emplace_back(report::Members{{"group", one.group},
                                        {"what", one.what},
                                        {"measured", one.measured},
                                        {"predicted", one.predicted},
                                        {"error", one.error()}});
  return rows;
}

report::Members machine_members(const hardware::Chip& chip) {
  report::Members out{{"cores", chip.cores.count.value}};
  for (const DtypeFacts& dtype : all_dtypes())
    if (const auto& peak = chip.peak[static_cast<std::size_t>(dtype.dtype)])
      out.emplace_back(fmt::format("peak_{}", dtype.name), report::Value(*peak));
  out.emplace_back("memory", report::rows_of(chip.memory, [&](const hardware::MemoryLevel& level) {
                     return report::Members{
                         {"name", level.name == "hbm" ? "memory" : level.name},
                         {"capacity", level.capacity.value},
                         {"read", level.bandwidth ? report::Value(level.bandwidth->value) : report::Value()},
                         {"per", level.per.value_or("chip")}};
                   }));
  return out;
}

/// A row of the table that cannot be read.
struct Unread {
  std::string place, why;
};

std::vector<Unread> unread_rows(const validate::CsvTable& table, std::string_view file) {
  std::vector<Unread> rows;
  for (std::size_t i = 0; i < table.rows(); ++i)
    if (auto why = validate::unread_measurement(table, i))
      rows.push_back({fmt::format("{}:{}", file, table.line(i)), std::move(*why)});
  return rows;
}

/// How many there are and what is wrong with the first; all of them are a list of the answer.
void add_unread(const std::vector<Unread>& unread, report::Response& response) {
  if (unread.empty()) return;
  response.notes.push_back(fmt::format("{} row{} cannot be read and {} ignored; the first is {}: {}", unread.size(),
                                       unread.size() == 1 ? "" : "s", unread.size() == 1 ? "is" : "are",
                                       unread.front().place, unread.front().why));
  response.results.emplace_back("unread", report::rows_of(unread, [&](const Unread& one) {
                                  return report::Members{{"place", one.place}, {"because", one.why}};
                                }));
}

/// --check: rows against the existing calibration; `unseen`: shapes that no fit has used.
Result<report::Response> answer_check(const validate::CsvTable& table, const std::vector<Unread>& unread,
                                      const hardware::Chip& chip, bool unseen, const Context& context) {
  ASSAY_TRY(calibration, hardware::calibration_of(chip, context.catalogue));
  if (!calibration)
    return fail("--check", fmt::format("{} has no calibration to check", chip.id), "`assay measure` makes one",
                Error::Kind::missing);
  const std::vector<validate::ValidationCase> cases = validate::check_measured(table, chip, calibration->values);
  if (cases.empty())
    return fail("--check", "no row can be predicted",
                unread.empty() ? "the table has no products or copies"
                               : fmt::format("{}: {}", unread.front().place, unread.front().why));
  const validate::ValidationSummary all = validate::summarise("all", cases);
  report::Response response;
  response.headline = fmt::format("{}: {} {}measurements, median error {:.1f} %, 90 % are within {:.1f} %", chip.id,
                                  all.n, unseen ? "held-out " : "", 100.0 * all.median, 100.0 * all.p90);
  response.results.emplace_back("basis", calibration->basis);
  response.results.emplace_back("summary", summary_rows(cases));
  response.results.emplace_back("cases", case_rows(cases));
  add_unread(unread, response);
  response.table_key = "cases";
  return response;
}

struct Fitted {
  hardware::Chip chip;
  validate::MeasuredFit fit;
  std::vector<std::pair<std::string, std::string>> files;  ///< below the directory
};

Result<Fitted> fit_host(const validate::CsvTable& table, const measure::Facts& facts, const Context& context,
                        const hardware::CalibrationSource& source) {
  ASSAY_TRY(ranges, validate::measured_ranges_of(context.catalogue));
  const measure::HostRates rates = measure::host_rates(facts, validate::measured_rows(table));
  if (!(rates.memory > BytesPerSecond(0)) || !(std::max(rates.fp32, rates.fp64) > FlopsPerSecond(0)))
    return fail("--rows", "a machine is fitted to rows of gemm (fp32 or fp64) and of copy or read",
                "`assay measure` writes such a table");
  const measure::MeasureOrigin origin{source.date, source.command};
  ASSAY_TRY(ideal, hardware::read_chip(measure::host_chip_text(rates, origin, 1.0, 1.0), "chips/host.toml"));
  Fitted out{{}, validate::fit_measured(table, ideal, nullptr, ranges, source, measure::shared_cores(facts)), {}};
  const hardware::Calibration& c = out.fit.calibration;
  const double share = c.matmul ? *std::max_element(c.matmul->share.begin(), c.matmul->share.end()) : 1.0;
  const std::string text =
      measure::host_chip_text(rates, origin, share > 0.0 ? share : 1.0, c.pointwise ? c.pointwise->stream : 1.0);
  ASSAY_SET(out.chip, hardware::read_chip(text, "chips/host.toml"));
  out.files.emplace_back("chips/host.toml", text);
  return out;
}

Result<Fitted> fit_known(const std::string& id, const validate::CsvTable& table, const Context& context,
                         const hardware::CalibrationSource& source) {
  ASSAY_TRY(chip, context.catalogue.chip(id, "--chip"));
  ASSAY_TRY(start, hardware::calibration_of(chip, context.catalogue));
  ASSAY_TRY(ranges, validate::measured_ranges_of(context.catalogue));
  validate::MeasuredFit fit = validate::fit_measured(table, chip, start ? &start->values : nullptr, ranges, source);
  return Fitted{std::move(chip), std::move(fit), {}};
}

/// What a table says, and the files that follow from it.
Result<report::Response> answer_table(const Request& request, const Context& context, const MeasuredTable& measured) {
  ASSAY_TRY(directory, out_directory(request, context));
  ASSAY_TRY(table, validate::CsvTable::parse(measured.text, measured.file));
  const std::vector<Unread> unread = unread_rows(table, measured.file);
  const measure::Facts facts = measure::facts_of(measured.text);
  ASSAY_TRY(id, chip_id(request, facts));
  if (request.has("check")) {
    ASSAY_TRY(chip, context.catalogue.chip(id, "--check"));
    return answer_check(table, unread, chip, !request.has("rows"), context);
  }
  const hardware::CalibrationSource source{"fit",
                                           "measured by assay measure: " + versions(facts),
                                           measure::plain_text(measure_command(request)),
                                           "",
                                           date_of(facts, context),
                                           "",
                                           ""};
  ASSAY_TRY(fitted, id == host ? fit_host(table, facts, context, source) : fit_known(id, table, context, source));
  const hardware::Calibration& c = fitted.fit.calibration;
  if (!c.matmul && !c.pointwise && !c.collective)
    return fail(measured.file, "no row can be fitted",
                unread.empty() ? "rows are gemm, copy, all_gather, ...; docs/measure.md"
                               : fmt::format("{}: {}", unread.front().place, unread.front().why));
  fitted.files.emplace_back(fmt::format("calibration/{}.toml", id), hardware::calibration_text(c));
  if (!request.has("rows")) fitted.files.emplace_back(fmt::format("measured/{}.csv", id), measured.text);

  for (const auto& file : measured.files) fitted.files.push_back(file);

  report::Response response;
  const validate::ValidationSummary all = validate::summarise("all", fitted.fit.cases);
  response.headline = fmt::format(
      "{}: {} rows measured; on the {} held-out rows the median error is {:.1f} %, 90 % are within "
      "{:.1f} %",
      id, table.rows() - unread.size(), all.n, 100.0 * all.median, 100.0 * all.p90);
  response.results.emplace_back("chip", id);
  response.results.emplace_back("name", fitted.chip.name);
  response.results.emplace_back("rows", static_cast<std::int64_t>(table.rows() - unread.size()));
  if (id == host) response.results.emplace_back("machine", machine_members(fitted.chip));
  response.results.emplace_back("fitted", fitted_numbers(c));
  response.results.emplace_back("summary", summary_rows(fitted.fit.cases));
  if (!measured.contention.empty()) response.results.emplace_back("contention", measured.contention);
  if (!measured.ranks.empty()) response.results.emplace_back("stragglers", measured.ranks);
  report::Items files;
  for (auto& [path, text] : fitted.files) {
    const std::string full = directory + "/" + path;
    files.emplace_back(report::Members{{"file", full}});
    response.files.emplace_back(full, std::move(text));
  }
  response.results.emplace_back("files", std::move(files));
  response.table_key = "summary";
  response.notes = measured.notes;
  constexpr double scattered = 0.5;
  if (all.p90 > scattered)
    response.notes.emplace_back("no model fits these rows: was the machine busy? measure again when it is idle");
  add_unread(unread, response);
  for (const std::string& line : split(measured.text, '\n'))
    if (request.has("rows") && line.starts_with("# note ")) response.notes.push_back(line.substr(7));
  response.notes.push_back(written_note(request, directory, id));
  return response;
}

}  // namespace

std::string written_note(const Request& request, const std::string& directory, const std::string& chip) {
  if (request.has("out")) return fmt::format("--catalogue {} makes other commands use these files", directory);
  return fmt::format(
      "every later prediction for {0} on this account uses {1}/calibration/{0}.toml; delete that file to undo it, or "
      "write elsewhere with --out DIR",
      chip, directory);
}

Result<report::Response> answer(const Request& request, const Context& context) {
  if (request.value("device") == "cuda" && !request.has("chip"))
    return fail("--device cuda", "--chip is missing", "name the GPU as the catalogue does, e.g. --chip h200-sxm",
                Error::Kind::usage);
  if (request.has("held-out") && !request.has("profile"))
    return fail("--held-out", "--profile is missing", "assay measure --profile FILE --held-out FILE",
                Error::Kind::usage);
  ASSAY_TRY(directory, out_directory(request, context));
  if (request.has("network")) {
    for (const std::string_view other : {"device", "rows", "profile", "chip", "check"})
      if (request.has(other))
        return fail(fmt::format("--{}", other), "--network measures this machine and its ranks", "drop one of the two",
                    Error::Kind::usage);
    return run::run_on_ranks(request, context, [&]() -> Result<run::PreparedRun> {
      return run::PreparedRun{{}, [&](engine::Transport* ranks) -> Result<report::Response> {
                                if (ranks->count() < 2)
                                  return fail("--network", "there is one rank, and collectives need at least two",
                                              "mpirun -n 8 assay measure --network", Error::Kind::usage);
                                ASSAY_TRY(table, network_table(request, context, *ranks));
                                if (ranks->rank() > 0) return report::Response{};
                                return answer_table(request, context, table);
                              }};
    });
  }
  if (request.has("profile")) return answer_profiles(request, context, directory);
  if (request.has("check") && !request.has("rows")) ASSAY_CHECK(context.catalogue.chip(host, "--check"));
  ASSAY_TRY(measured, measured_table(request, context));
  return answer_table(request, context, measured);
}

}  // namespace assay::verbs::measure_verb
