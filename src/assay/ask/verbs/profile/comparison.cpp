#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/profile.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;

/// One thing in both profiles.
struct Pair {
  std::string label, shapes, category, kind;
  std::string kernel[2];  ///< the one that takes longest; empty: none runs
  double calls[2] = {0.0, 0.0};
  Seconds time[2];

  Seconds change() const { return time[1] - time[0]; }
};

/// The largest changes first, whichever their sign.
report::Items pair_rows(std::vector<Pair> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::abs(a.change().value()) > std::abs(b.change().value());
  });
  return report::rows_of(pairs, [&](const Pair& pair) {
    report::Members row;
    const auto add = [&](const char* key, const std::string& text) {
      if (!text.empty()) row.emplace_back(key, text);
    };
    add("label", pair.label);
    add("shapes", pair.shapes);
    add("category", pair.category);
    add("kind", pair.kind);
    row.emplace_back("calls_before", pair.calls[0]);
    row.emplace_back("calls_after", pair.calls[1]);
    row.emplace_back("before", pair.time[0]);
    row.emplace_back("after", pair.time[1]);
    row.emplace_back("change", pair.change());
    return row;
  });
}

template <class Key>
std::vector<Pair> values_of(std::map<Key, Pair> pairs) {
  std::vector<Pair> out;
  for (auto& [key, pair] : pairs) out.push_back(std::move(pair));
  return out;
}

/// The parts of a time, which add up to it, for each unit of work.
struct Side {
  double units = 1.0;
  std::vector<Seconds> parts;
  Seconds total, host;

  Side(const trace::DeviceSummary& summary, double of) : units(of) {
    const trace::DeviceTimes& times = summary.times;
    for (const Seconds part : {times.computation, times.exposed_communication, times.exposed_copies, times.idle})
      parts.push_back(part / units);
    total = times.total / units;
    host = summary.host_bound / units;
  }
};
constexpr std::string_view part_names[] = {"computation", "exposed communication", "exposed copies", "idle"};
enum Part : std::size_t { computation, communication, copies, idle };

/// What both profiles are divided by: steps; without them layers, where the profiles have different numbers of calls of
/// the same attention; else nothing.
struct Units {
  std::string_view per = "profile";
  double before = 1.0, after = 1.0;
};
Units units_of(const Query& query) {
  const trace::DeviceSummary &before = query.before->summary, &after = query.device().summary;
  if (!before.steps.empty() && !after.steps.empty())
    return {"step", static_cast<double>(before.steps.size()), static_cast<double>(after.steps.size())};
  for (const trace::OperationTime& one : before.operations) {
    if (one.name.empty() || query.vocabulary->categories[one.category].id != "attention") continue;
    const auto other = std::find_if(after.operations.begin(), after.operations.end(),
                                    [&](const trace::OperationTime& of) { return of.name == one.name; });
    if (other == after.operations.end() || other->calls == one.calls) break;
    return {"layer", static_cast<double>(one.calls), static_cast<double>(other->calls)};
  }
  return {};
}

/// What an operation does differently.
std::string changed_operation(const Pair& pair) {
  const std::string what = pair.shapes.empty() ? pair.label : fmt::format("{} {}", pair.label, pair.shapes);
  const std::string change = report::short_quantity(Seconds(std::abs(pair.change().value())));
  const std::string by = fmt::format("{} {}", change, pair.change() > Seconds(0) ? "more" : "less");
  if (pair.calls[0] == 0.0) return fmt::format("{} is new: {}", what, by);
  if (pair.calls[1] == 0.0) return fmt::format("{} does not run any more: {}", what, by);
  constexpr double alike = 0.01;
  if (std::abs(pair.calls[1] / pair.calls[0] - 1.0) > alike)
    return fmt::format("{} runs {:.4g} times instead of {:.4g}: {}", what, pair.calls[1], pair.calls[0], by);
  const std::string each =
      fmt::format("{} takes {} a call instead of {}", what, report::short_quantity(pair.time[1] / pair.calls[1]),
                  report::short_quantity(pair.time[0] / pair.calls[0]));
  if (pair.kernel[0] == pair.kernel[1]) return fmt::format("{}: {}", each, by);
  return fmt::format("{}, by {} instead of {}: {}", each, short_kernel(pair.kernel[1]), short_kernel(pair.kernel[0]),
                     by);
}

/// The part that changed most in the direction of the whole, and what changed in it.
std::string verdict(const Side& before, const Side& after, const std::vector<Pair>& operations) {
  const double sign = after.total > before.total ? 1.0 : -1.0;
  std::size_t most = 0;
  const auto change = [&](std::size_t part) { return sign * (after.parts[part] - before.parts[part]); };
  for (std::size_t part = 1; part < before.parts.size(); ++part)
    if (change(part) > change(most)) most = part;
  constexpr double least = 0.005;  // of the time: less is noise
  if (!(change(most) > least * before.total)) return "no part of the time changed by more than 0.5 %";
  const std::string time = report::short_quantity(change(most)), way = sign > 0.0 ? "longer" : "shorter";
  if (most == communication) return fmt::format("collectives run {} {} without computation beside them", time, way);
  if (most == copies) return fmt::format("copies run {} {} without computation beside them", time, way);
  if (most == idle) {
    const Seconds host = sign * (after.host - before.host);
    return host > 0.5 * change(idle) ? fmt::format("the device waits {} {} for its host", time, way)
                                     : fmt::format("the device idles {} {}", time, way);
  }
  const auto worst = std::max_element(operations.begin(), operations.end(), [&](const Pair& a, const Pair& b) {
    return sign * a.change() < sign * b.change();
  });
  if (worst == operations.end() || !(sign * worst->change() > Seconds(0)))
    return fmt::format("computation takes {} {}", time, way);
  return changed_operation(*worst);
}

}  // namespace

draw::Scene comparison_picture(const Query& query) {
  const Units units = units_of(query);
  const Side before(query.before->summary, units.before), after(query.device().summary, units.after);
  ChangeStory story{fmt::format("From a {0} before to a {0} after", units.per),
                    query.device().summary.name,
                    query.traces[query.before->trace].file,
                    query.traces[query.device().trace].file,
                    before.total,
                    after.total,
                    {}};
  for (std::size_t part = 0; part < before.parts.size(); ++part)
    story.changes.emplace_back(part_names[part], after.parts[part] - before.parts[part]);
  return change_picture(story);
}

void add_comparison(const Query& query, report::Members& out) {
  if (!query.before) return;
  const trace::DeviceSummary* summaries[2] = {&query.before->summary, &query.device().summary};
  const Units by = units_of(query);
  std::map<std::pair<std::string, std::string>, Pair> categories, operations;
  report::Members sides[2];
  const Side units[2] = {{*summaries[0], by.before}, {*summaries[1], by.after}};
  for (std::size_t side = 0; side < 2; ++side) {
    const trace::DeviceSummary& summary = *summaries[side];
    const double steps = units[side].units;
    for (const trace::CategoryTime& one : summary.categories) {
      const std::string& id = query.vocabulary->categories[one.category].id;
      Pair& pair = categories[{id, one.kind}];
      pair.category = id;
      pair.kind = one.kind;
      pair.calls[side] += static_cast<double>(one.count) / steps;
      pair.time[side] += one.time / steps;
    }
    for (const trace::OperationTime& one : summary.operations) {
      // Kernels of one operation change with versions of libraries: where the operation is known, it is what is
      // compared.
      const std::string label = one.name.empty() ? short_kernel(one.kernel) : one.name;
      Pair& pair = operations[{label, one.shapes}];
      pair.label = label;
      pair.shapes = one.shapes;
      pair.category = query.vocabulary->categories[one.category].id;
      pair.kernel[side] = one.kernel;
      pair.calls[side] += static_cast<double>(one.calls) / steps;
      pair.time[side] += one.time / steps;
    }
    const Device& device = side == 0 ? *query.before : query.device();
    sides[side].emplace_back("file", query.traces[device.trace].file);
    sides[side].emplace_back("steps", static_cast<std::int64_t>(summary.steps.size()));
    sides[side].emplace_back("time", units[side].total);
    sides[side].emplace_back("computation_time", units[side].parts[computation]);
    sides[side].emplace_back("exposed_communication_time", units[side].parts[communication]);
    sides[side].emplace_back("exposed_copy_time", units[side].parts[copies]);
    sides[side].emplace_back("idle_time", units[side].parts[idle]);
  }
  const std::vector<Pair> changed = values_of(std::move(operations));
  report::Members comparison{{"per", by.per},
                             {"before", std::move(sides[0])},
                             {"after", std::move(sides[1])},
                             {"change", units[1].total - units[0].total}};
  if (units[0].total > Seconds(0)) comparison.emplace_back("relative_change", units[1].total / units[0].total - 1.0);
  comparison.emplace_back("cause", verdict(units[0], units[1], changed));
  comparison.emplace_back("categories", pair_rows(values_of(std::move(categories))));
  comparison.emplace_back("operations", pair_rows(changed));
  out.emplace_back("comparison", std::move(comparison));
}

}  // namespace assay::verbs::profile
