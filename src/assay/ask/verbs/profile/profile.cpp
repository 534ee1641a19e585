// assay profile: what a profiler recorded, and where the time went.
#include <fmt/format.h>

#include <cmath>

#include "assay/ask/report/figures.h"
#include "assay/ask/report/reader.h"
#include "assay/ask/verbs/profile/hlo.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/profile/compare/explains.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;

std::string comparing_headline(const report::Members& results) {
  const report::Reader reader(results);
  const double change = reader.number("comparison.relative_change");
  return fmt::format("{} takes {} {} than {}: {} instead of {} a {}", reader.text("comparison.after.file"),
                     report::percent(std::abs(change)), change > 0.0 ? "more" : "less",
                     reader.text("comparison.before.file"), reader.text("comparison.after.time"),
                     reader.text("comparison.before.time"), reader.text("comparison.per"));
}

std::string headline(const Query& query) {
  const trace::DeviceSummary& summary = query.device().summary;
  const std::string of_rank = summary.rank && query.ranks.size() > 1 ? fmt::format(" (rank {})", *summary.rank) : "";
  const std::string on = summary.name.empty() ? "" : fmt::format(" on {}", summary.name);
  const trace::CategoryTime& most = summary.categories.front();
  const trace::Category& category = query.vocabulary->categories[most.category];
  return fmt::format("{}{}{}, {} busy; {} of kernel time is {}", report::short_quantity(summary.times.total), on,
                     of_rank, report::percent(summary.times.busy / summary.times.total),
                     report::percent(most.time / summary.kernel_time),
                     most.kind.empty() ? category.name : fmt::format("{} ({})", category.name, most.kind));
}

void add_recomputation(const std::optional<trace::RecomputationTimes>& times, report::Members& out) {
  if (!times) return;
  report::Members alone, without;
  add_times(times->alone, alone);
  add_times(times->without, without);
  out.emplace_back("recomputation", report::Members{{"alone", std::move(alone)}, {"without", std::move(without)}});
}

/// What the profile itself says.
void add_profiled(const Query& query, report::Members& out) {
  const trace::DeviceSummary& summary = query.device().summary;
  out.emplace_back("file", query.traces[query.device().trace].file);
  if (summary.rank) out.emplace_back("rank", *summary.rank);
  out.emplace_back("device", summary.device);
  if (!summary.name.empty()) out.emplace_back("device_name", summary.name);
  if (query.chip) out.emplace_back("chip", query.chip->id);
  out.emplace_back("events", summary.events);
  add_times(summary.times, out);
  if (summary.launched > 0) out.emplace_back("host_bound_time", summary.host_bound);
  out.emplace_back("kernel_time", summary.kernel_time);
  add_rates(query, out);
  add_recomputation(summary.recomputation, out);
  if (summary.linked) {
    report::Members linked;
    add_times(*summary.linked, linked);
    add_recomputation(summary.linked_recomputation, linked);
    out.emplace_back("linked", std::move(linked));
  }
  add_steps(summary, out);
  out.emplace_back("categories", category_rows(query, summary));
  out.emplace_back("operations", operation_rows(query));
  out.emplace_back("gaps", gap_rows(summary));
  out.emplace_back("streams", stream_rows(summary));
  add_mesh(query, out);
  add_collectives(query, out);
  out.emplace_back("ranks", rank_rows(query));
  add_straggler(query, out);
  add_comparison(query, out);
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(profiles, sources_of(request.arguments(), "FILE", context));
  ASSAY_TRY(captures, sources_of(request.values("capture"), "--capture", context));
  return answer_of(request, context, {std::move(profiles), std::move(captures)});
}

Result<report::Response> answer_of(const Request& request, const Context& context, Sources sources) {
  constexpr std::size_t at_once = 2;  // may be programs, or BEFORE and AFTER; ranks are read one by one
  if (sources.profiles.size() <= at_once)
    for (Source& source : sources.profiles) ASSAY_SET(source, opened(std::move(source)));
  ASSAY_TRY(program, program_answer(request, context, sources));
  if (program) return std::move(*program);
  ASSAY_CHECK(check_inputs(request, "profile"));
  ASSAY_TRY(query, read_query(request, context, std::move(sources)));
  if (query.over_time && (request.picture() || request.has("against")))
    return fail(request.picture() ? "--format" : "--against", "runs over time are compared as a table alone",
                "name one or two of them", Error::Kind::usage);
  if (query.over_time) return runs_answer(query);
  report::Response response;
  report::Members& out = response.results;
  add_profiled(query, out);
  response.table_key = "operations";
  response.notes = query.notes;
  response.headline = query.before ? comparing_headline(out) : headline(query);
  std::optional<Comparison> against;
  const auto text = request.value("against");
  const compare::MeasuredStep measured = measured_of(query);
  const Result<Recovered> recovered = recover_request(query, measured, context);
  if (text && text->empty() && !recovered) return tl::unexpected(recovered.error());
  std::optional<Request> asked;
  if (text && !text->empty()) {
    ASSAY_SET(asked, read_against(*text, "--against"));
  } else if (recovered) {
    Result<Request> read = read_against(recovered->command, "--against");
    if (read) asked = std::move(*read);
    if (!read && text) return tl::unexpected(read.error());
  }
  constexpr std::size_t quick = 50'000;  // calls that are matched without being asked for
  if (asked && !text && measured.calls.size() > quick) {
    asked.reset();
    response.notes.emplace_back("a long profile without steps is compared with its request by --against alone");
  }
  bool contradicted = false;  // the request that was recovered, by what it was read from
  if (asked) {
    Result<Comparison> compared = compare_with(query, measured, *asked, context);
    if (compared) against = std::move(*compared);
    if (!compared && text) return tl::unexpected(compared.error());
    contradicted = !compared && compared.error().what.starts_with(compare::contradiction);
    if (!compared && query.chip)
      response.notes.push_back(contradicted
                                   ? fmt::format("no request is recovered: its shapes suggest `{}`, but {}",
                                                 recovered->command, compared.error().what)
                                   : fmt::format("the request of its shapes is not priced: {}", compared.error().what));
  }
  if (recovered && !contradicted) add_recovered(*recovered, out);
  const std::vector<Remedy> remedies =
      remedies_of(query, measured, against ? &*against : nullptr, asked ? &*asked : nullptr, context);
  if (remedies.empty())
    response.notes.emplace_back(
        "no known change saves 0.5 % of the time; products without shapes are not held against a peak");
  add_advice(remedies, against ? against->waterfall.measured : trace::seconds(measured.total), out);
  if (text) {
    add_against(*against, remedies, out);
    response.table_key = "gap";
    response.headline = against_headline(*against);
    response.notes.insert(response.notes.end(), against->notes.begin(), against->notes.end());
    if (text->empty())
      for (const std::string& lack : recovered->run.lacks)
        response.notes.push_back(fmt::format("the profile does not tell {}", lack));
  }
  if (const auto file = request.value("perfetto"))
    response.files.emplace_back(*file, draw::chrome_trace_json(timeline_of(query)));
  if (request.picture()) {
    response.picture = text           ? waterfall_picture(*against)
                       : query.before ? comparison_picture(query)
                                      : picture_of(query);
    if (text || query.before)
      response.more_pictures.push_back(picture_of(query));
    else if (against)
      response.more_pictures.push_back(waterfall_picture(*against));
  }
  return response;
}

}  // namespace assay::verbs::profile
