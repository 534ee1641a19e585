// assay validate: predictions against measurements, with the errors by group; and the fit of the calibrations.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/validate/validate.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/lab/fit/unseen.h"
#include "assay/lab/validate/validation.h"

namespace assay::verbs::validate_verb {
namespace {

/// The sets that a request asks for: the named one, or all that its data allow.
Result<std::vector<const validate::ValidationSet*>> wanted_sets(const Request& request) {
  std::vector<const validate::ValidationSet*> sets;
  if (!request.arguments().empty()) {
    ASSAY_TRY(set, validate::validation_set(request.arguments().front(), "validate"));
    sets.push_back(set);
    return sets;
  }
  for (const validate::ValidationSet& set : validate::validation_sets())
    if (!set.on_request && (!set.needs_data || request.has("data"))) sets.push_back(&set);
  return sets;
}

/// Predicted against measured on logarithmic axes, one mark per case; the largest groups by name.
draw::Scene scatter(const std::string& title, const std::vector<validate::ValidationCase>& cases) {
  constexpr std::size_t most_series = 6;
  std::map<std::string, std::size_t> sizes;
  for (const validate::ValidationCase& one : cases) ++sizes[one.group];
  std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  // Of very many points the picture shows where they lie, not which group each belongs to.
  const bool as_density = cases.size() > draw::most_markers;
  const std::size_t named = as_density ? 0 : order.size() <= most_series ? order.size() : most_series - 1;
  draw::Chart chart;
  chart.title = title;
  chart.x = {"measured", base_unit(cases.front().measured.dim), draw::ScaleKind::log, std::nullopt,
             draw::NumberStyle::si};
  chart.y = {"predicted", base_unit(cases.front().measured.dim), draw::ScaleKind::log, std::nullopt,
             draw::NumberStyle::si};
  double low = HUGE_VAL, high = 0.0;
  for (const validate::ValidationCase& one : cases) {
    low = std::min({low, one.measured.value, one.predicted.value});
    high = std::max({high, one.measured.value, one.predicted.value});
  }
  low /= 1.5;
  high *= 1.5;
  chart.x.range = chart.y.range = draw::AxisRange{low, high};
  chart.series.push_back({"equal", {{low, low}, {high, high}}, draw::SeriesStyle::line, 8});
  constexpr double gap = std::numeric_limits<double>::quiet_NaN();
  chart.series.push_back({"20 % off",
                          {{low, 1.2 * low}, {high / 1.2, high}, {gap, gap}, {1.2 * low, low}, {high, high / 1.2}},
                          draw::SeriesStyle::dashed,
                          8});
  for (std::size_t i = 0; i < named; ++i)
    chart.series.push_back({order[i].first, {}, draw::SeriesStyle::markers, static_cast<int>(i) + 1});
  if (as_density)
    chart.series.push_back({"measurements: the darker, the more", {}, draw::SeriesStyle::markers, 1});
  else if (named < order.size())
    chart.series.push_back({fmt::format("{} other groups", order.size() - named), {}, draw::SeriesStyle::markers, 7});
  for (const validate::ValidationCase& one : cases) {
    std::size_t place = 0;
    while (place < named && order[place].first != one.group) ++place;
    chart.series[2 + place].points.push_back({one.measured.value, one.predicted.value});
  }
  const validate::ValidationSummary all = validate::summarise("all", cases);
  chart.subtitle = fmt::format("{} held-out measurements: median error {:.1f} %, 90 % are within {:.1f} %", all.n,
                               100.0 * all.median, 100.0 * all.p90);
  chart.height = 700.0;
  chart.width = 960.0;
  return draw::draw(chart);
}

/// What --by groups errors by. Rows without a prediction have only a group and a source.
struct SortKey {
  std::string_view word;
  std::string (*of)(const validate::ValidationCase&);
  std::string (*of_unanswered)(const validate::UnansweredCase&) = nullptr;
};
constexpr SortKey sort_keys[] = {
    {"group", [](const validate::ValidationCase& one) { return one.group; },
     [](const validate::UnansweredCase& one) { return one.group; }},
    {"source", [](const validate::ValidationCase& one) { return std::string(one.source()); },
     [](const validate::UnansweredCase& one) { return one.id.substr(0, one.id.rfind('-')); }},
    {"hardware", [](const validate::ValidationCase& one) { return one.traits.hardware; }},
    {"family", [](const validate::ValidationCase& one) { return one.traits.family; }},
    {"regime", [](const validate::ValidationCase& one) { return one.traits.regime; }},
};

Result<const SortKey*> sort_key(const Request& request) {
  const std::string word = request.value("by").value_or("group");
  std::vector<std::string> words;
  for (const SortKey& one : sort_keys) {
    if (one.word == word) return &one;
    words.emplace_back(one.word);
  }
  return fail("--by", fmt::format("cannot group by {}", in_quotes(word)), suggestion(word, words), Error::Kind::usage);
}

bool contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
         }) != text.end();
}

/// Why some rows have no prediction.
struct Unanswered {
  struct Reason {
    std::int64_t rows = 0;
    std::string first;  ///< id of the first such row
  };
  std::map<std::string, Reason> reasons;
  std::map<std::string, std::size_t> sorted;  ///< rows by what --by groups errors by
  std::size_t rows = 0;
  std::size_t of(const std::string& group) const {
    const auto found = sorted.find(group);
    return found == sorted.end() ? 0 : found->second;
  }
  report::Items list;  ///< of all rows, if it is asked for
};

/// `unanswered`: rows of the group without a prediction; nothing where that is not known.
report::Members summary_row(const validate::ValidationSummary& s, std::optional<std::size_t> unanswered) {
  report::Members row{{"group", s.group},         {"n", static_cast<std::int64_t>(s.n)},
                      {"mape", s.mape},           {"median_ape", s.median},
                      {"p90_ape", s.p90},         {"bias", s.bias},
                      {"within_10", s.within_10}, {"within_20", s.within_20}};
  row.emplace_back("rank_correlation", s.rank);
  row.emplace_back("covered", s.covered);
  const std::size_t rows = s.n + unanswered.value_or(0);
  row.emplace_back("rows", unanswered ? report::Value(static_cast<std::int64_t>(rows)) : report::Value());
  row.emplace_back("answered",
                   unanswered ? report::Value(static_cast<double>(s.n) / static_cast<double>(rows)) : report::Value());
  row.emplace_back("default_mape", s.default_mape);
  row.emplace_back("default_bias", s.default_bias);
  return row;
}

/// One row per value of the key: over its rows, and over its groups with equal weight.
std::vector<report::Value> sorted_summaries(const std::vector<validate::ValidationCase>& cases,
                                            const Unanswered& unanswered, const SortKey& key) {
  std::vector<std::string> order;
  for (const validate::ValidationCase& one : cases)
    if (std::find(order.begin(), order.end(), key.of(one)) == order.end()) order.push_back(key.of(one));
  std::vector<report::Value> rows;
  for (const std::string& wanted : order) {
    std::vector<validate::ValidationCase> members;
    for (const validate::ValidationCase& one : cases)
      if (key.of(one) == wanted) members.push_back(one);
    const std::vector<validate::ValidationSummary> groups = validate::summarise_groups(members);
    report::Members row = summary_row(validate::summarise(wanted.empty() ? "-" : wanted, members),
                                      key.of_unanswered ? std::optional(unanswered.of(wanted)) : std::nullopt);
    const bool several = groups.size() > 1;  // then all of them and their mean follow
    row.emplace_back("groups", static_cast<std::int64_t>(several ? groups.size() - 2 : 1));
    row.emplace_back("mean_of_groups", groups.back().mape);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

/// The sets that were read, the predictions they hold and the rows without one.
struct Collected {
  std::string names;
  std::vector<validate::ValidationCase> cases;
  Unanswered unanswered;
  std::vector<std::pair<std::string_view, Error>> unread;  ///< sets that were not named and whose tables are absent
};

/// Which rows are wanted.
struct Choice {
  bool fitted = false;  ///< rows that fits use instead of held-out ones
  std::string group;    ///< part of the group's name
  bool list_unanswered = false;
  const SortKey* key = sort_keys;
};

void collect(validate::ValidationResult& result, const Choice& choice, Collected& out) {
  for (validate::ValidationCase& one : result.cases) {
    if (!contains(one.group, choice.group)) continue;
    if (one.fitted != choice.fitted) continue;
    one.fitted = false;  // what is shown is summarised
    out.cases.push_back(std::move(one));
  }
  for (validate::UnansweredCase& one : result.unanswered) {
    if (!contains(one.group, choice.group)) continue;
    ++out.unanswered.rows;
    if (choice.key->of_unanswered) ++out.unanswered.sorted[choice.key->of_unanswered(one)];
    Unanswered::Reason& reason = out.unanswered.reasons[one.why];
    if (reason.rows++ == 0) reason.first = one.id;
    if (choice.list_unanswered)
      out.unanswered.list.emplace_back(report::Members{{"id", one.id}, {"group", one.group}, {"why", one.why}});
  }
}

using Sets = std::vector<const validate::ValidationSet*>;

/// `named`: the request names its set, so that a missing table is an error.
Result<Collected> collect_sets(const Sets& sets, bool named, const validate::ValidationInput& input,
                               const Choice& choice) {
  Collected all;
  for (const validate::ValidationSet* set : sets) {
    auto read = set->run(input);
    if (!read && !named && read.error().kind == Error::Kind::missing) {
      all.unread.emplace_back(set->name, std::move(read.error()));
      continue;
    }
    ASSAY_TRY(result, std::move(read));
    all.names += (all.names.empty() ? "" : ", ") + std::string(set->name);
    collect(result, choice, all);
  }
  const auto needed =
      std::count_if(sets.begin(), sets.end(), [](const validate::ValidationSet* set) { return set->needs_data; });
  if (needed > 0 && std::ssize(all.unread) == needed) {
    Error none = std::move(all.unread.front().second);
    for (std::size_t i = 1; i < all.unread.size(); ++i) none.also.push_back(std::move(all.unread[i].second));
    return tl::unexpected<Error>(std::move(none));
  }
  return all;
}

Result<validate::LeftOutResults> left_out_results(const Request& request, const Context& context) {
  const std::string set = request.arguments().empty() ? "" : request.arguments().front();
  return validate::left_out_results(set, context.catalogue, request.value("data"),
                                    request.has("fit") ? validate::AskWith() : asking_with(context));
}

Result<Collected> collect_left_out(const Request& request, const Context& context, const Choice& choice) {
  ASSAY_TRY(results, left_out_results(request, context));
  auto& [set, result] = results.front();
  validate::widen_to_unseen(result.cases);
  Collected all;
  all.names = fmt::format("{} without the row's chip", set);
  collect(result, choice, all);
  return all;
}

/// The files of intervals for what has no row, written below DIR, and how many rows such intervals contain.
Result<report::Response> answer_unseen(const Request& request, const Context& context) {
  ASSAY_TRY(results, left_out_results(request, context));
  report::Response response;
  report::Items rows;
  for (auto& [set, result] : results) {
    auto [path, text] = validate::unseen_file_of(result.cases, set);
    validate::widen_to_unseen(result.cases);
    const auto of_groups = validate::summarise_groups(result.cases);
    const double covered = of_groups.empty() ? 0.0 : of_groups.back().covered.value_or(0.0);
    response.headline += fmt::format("{}{}: {:.0f} % of {} rows, groups alike, are in the intervals of the others",
                                     response.headline.empty() ? "" : "; ", path, 100.0 * covered, result.cases.size());
    rows.emplace_back(report::Members{{"file", path}, {"bytes", Bytes(static_cast<double>(text.size()))}});
    response.files.emplace_back(*request.value("fit") + "/" + path, std::move(text));
  }
  response.results.emplace_back("files", std::move(rows));
  response.table_key = "files";
  return response;
}

/// No row is left to report: because of --group, of --fitted, or of what the sets hold.
Error no_cases(const Collected& all, const Choice& choice) {
  if (!choice.group.empty())
    return {Error::Kind::input,
            "--group",
            fmt::format("no {} measurement has {} in its group", choice.fitted ? "fitted" : "reported",
                        in_quotes(choice.group)),
            "`assay validate` lists the groups",
            {}};
  const auto& reasons = all.unanswered.reasons;
  return {Error::Kind::input,
          choice.fitted ? "--fitted" : "validate",
          fmt::format("no row of {} {}", all.names, choice.fitted ? "is used in a fit" : "can be predicted"),
          choice.fitted     ? "drop --fitted"
          : reasons.empty() ? ""
                            : reasons.begin()->first,
          {}};
}

/// Adds where measurements put a prediction, whether what it is about fits, and the request that makes it.
void add_request(const validate::ValidationCase& one, report::Members& row) {
  const AnyQuantity at = one.predicted;
  if (one.spread > 0.0)
    row.emplace_back("interval", report::Members{{"low", AnyQuantity(at.value / (1.0 + one.spread), at.dim)},
                                                 {"high", AnyQuantity(at.value * (1.0 + one.spread), at.dim)},
                                                 {"coverage", hardware::spread_coverage}});
  if (!one.verdict.empty()) row.emplace_back("memory", report::Members{{"verdict", one.verdict}});
  if (const auto request = parse_request(one.request); !one.request.empty() && request) {
    row.emplace_back("verb", request->verb().name);
    row.emplace_back("arguments", request->named_arguments());
    row.emplace_back("result", one.result);
  }
}

report::Items case_rows(const std::vector<validate::ValidationCase>& cases) {
  return report::rows_of(cases, [&](const validate::ValidationCase& one) {
    report::Members row{{"id", one.id},
                        {"group", one.group},
                        {"what", one.what},
                        {"measured", one.measured},
                        {"predicted", one.predicted},
                        {"error", one.error()},
                        {"covered", one.spread > 0.0 ? report::Value(one.covered()) : report::Value()},
                        {"predicted_by_default", one.predicted_by_default},
                        {"error_by_default", one.error_by_default()}};
    add_request(one, row);
    return row;
  });
}

/// The most frequent reason first.
report::Items reason_rows(const Unanswered& unanswered) {
  std::vector<std::pair<std::string, Unanswered::Reason>> order(unanswered.reasons.begin(), unanswered.reasons.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.rows > b.second.rows; });
  report::Items rows;
  for (const auto& [why, reason] : order)
    rows.emplace_back(report::Members{{"rows", reason.rows}, {"why", why}, {"first", reason.first}});
  return rows;
}

/// One command line per row, in the order of the table.
report::Response answer_requests(const Collected& all) {
  report::Response response;
  report::Items rows;
  for (const validate::ValidationCase& one : all.cases) {
    response.lines.push_back(command_line(one.request));
    rows.emplace_back(report::Members{
        {"id", one.id}, {"predicted", one.predicted}, {"request", response.lines.back()}, {"result", one.result}});
  }
  response.headline = fmt::format("{}: {} requests", all.names, rows.size());
  response.results.emplace_back("requests", std::move(rows));
  response.table_key = "requests";
  return response;
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  if (request.has("fit"))
    return request.has("leave-out") ? answer_unseen(request, context) : answer_fit(request, context.catalogue);
  if (request.has("without-each")) return answer_without_each(request, context);
  ASSAY_TRY(key, sort_key(request));
  const Choice choice{request.has("fitted"), request.value("group").value_or(""), request.has("unanswered"), key};
  const validate::ValidationInput input(context.catalogue, request.value("data"), choice.fitted, asking(context));
  ASSAY_TRY(sets, wanted_sets(request));
  ASSAY_TRY(all, request.has("leave-out") ? collect_left_out(request, context, choice)
                                          : collect_sets(sets, !request.arguments().empty(), input, choice));
  if (all.cases.empty()) return tl::unexpected<Error>(no_cases(all, choice));
  if (request.has("requests")) return answer_requests(all);
  const validate::ValidationSummary total = validate::summarise("all", all.cases);
  report::Response response;
  response.headline = fmt::format("{}: {} of {} {}: median error {:.1f} %, 90 % are within {:.1f} %", all.names,
                                  total.n, total.n + all.unanswered.rows,
                                  choice.fitted ? "measurements open to fitting" : "held-out measurements",
                                  100.0 * total.median, 100.0 * total.p90);
  report::Items summary;
  if (request.has("by")) {
    summary = sorted_summaries(all.cases, all.unanswered, *key);
    summary.emplace_back(summary_row(total, all.unanswered.rows));
  } else {
    for (const validate::ValidationSummary& group : validate::summarise_groups(all.cases))
      summary.emplace_back(summary_row(group, group.groups > 1 ? all.unanswered.rows : all.unanswered.of(group.group)));
  }
  report::Members& out = response.results;
  out.emplace_back(choice.fitted ? "fitted" : "reported", static_cast<std::int64_t>(all.cases.size()));
  out.emplace_back("unanswered", static_cast<std::int64_t>(all.unanswered.rows));
  out.emplace_back("summary", std::move(summary));
  if (!all.unanswered.reasons.empty()) out.emplace_back("unanswered_because", reason_rows(all.unanswered));
  if (choice.list_unanswered) out.emplace_back("unanswered_rows", std::move(all.unanswered.list));
  out.emplace_back("cases", case_rows(all.cases));
  response.table_key = request.has("by") ? "summary" : "cases";
  if (request.picture()) response.picture = scatter("Predicted against measured: " + all.names, all.cases);
  response.notes.emplace_back(
      choice.fitted ? "the estimate may have been fitted to these rows, so their errors do not show its accuracy"
                    : "every row is predicted by a fit made without it; the calibration that estimates use is fitted "
                      "to all rows but the held-out ones (docs/validation.md)");
  for (const auto& [set, error] : all.unread)
    response.notes.push_back(fmt::format("{} is skipped: {}", set, error.what));
  if (!request.has("data") && request.arguments().empty())
    response.notes.emplace_back("sets that do not ship with the project need --data DIR");
  return response;
}

}  // namespace assay::verbs::validate_verb
