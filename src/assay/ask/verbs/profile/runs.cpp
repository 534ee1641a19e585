// Profiles of one program over time: what takes longer or shorter beyond the noise, and since which run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/profile.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;
using Times = std::vector<Seconds>;

Seconds middle_of(Times values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

/// The times of a class in all runs, and where they change most.
struct ClassRuns {
  std::string name;
  Times times;
  std::size_t since = 0;  ///< the first run after the change
  Seconds before, after, noise;

  Seconds change() const { return after - before; }
  Seconds size() const { return Seconds(std::abs(change().value())); }

  /// Noise is how much runs that follow each other differ, in the middle: one change among them does not move it. It is
  /// at least what the spread of steps leaves unknown.
  void find(double unknown) {
    Times steps;
    Seconds least;  // what the runs on both sides of the change differ from their middles
    for (std::size_t i = 1; i < times.size(); ++i) {
      steps.emplace_back(std::abs((times[i] - times[i - 1]).value()));
      const auto at = times.begin() + static_cast<std::ptrdiff_t>(i);
      const Seconds first = middle_of(Times(times.begin(), at)), second = middle_of(Times(at, times.end()));
      Seconds apart;
      for (std::size_t j = 0; j < times.size(); ++j)
        apart += Seconds(std::abs((times[j] - (j < i ? first : second)).value()));
      if (since > 0 && !(apart < least)) continue;
      before = first, after = second, since = i, least = apart;
    }
    std::sort(steps.begin(), steps.end());
    noise = std::max(steps[(steps.size() - 1) / 2], unknown * middle_of(times));
  }
};

/// Of a run's steps: how far their mean may be off, as a share of it.
double unknown_share(const Times& steps) {
  if (steps.size() < 2) return 0.0;
  double sum = 0.0, squares = 0.0;
  for (const Seconds step : steps) sum += step.value();
  const double count = static_cast<double>(steps.size()), mean = sum / count;
  for (const Seconds step : steps) squares += (step.value() - mean) * (step.value() - mean);
  return std::sqrt(squares / (count - 1.0) / count) / mean;
}

std::vector<ClassRuns> classes_of(const Query& query, bool by_step) {
  std::map<std::string, Times> times;
  const auto add = [&](const std::string& name, std::size_t run, Seconds time) {
    Times& of = times[name];
    of.resize(query.ranks.size());
    const double units = by_step ? static_cast<double>(query.ranks[run].steps.size()) : 1.0;
    of[run] += time / units;
  };
  double unknown = 0.0;
  for (std::size_t run = 0; run < query.ranks.size(); ++run) {
    const trace::RankSummary& of = query.ranks[run];
    add("all", run, of.times.total);
    add("idle", run, of.times.idle);
    add("exposed communication", run, of.times.exposed_communication);
    for (const trace::CategoryTime& one : of.categories)
      add(query.vocabulary->categories[one.category].name, run, one.time);
    unknown = std::max(unknown, unknown_share(of.steps));
  }
  std::vector<ClassRuns> out;
  for (auto& [name, values] : times) {
    out.push_back({name, std::move(values), 0, {}, {}, {}});
    out.back().find(unknown);
  }
  return out;
}

}  // namespace

report::Response runs_answer(const Query& query) {
  const bool by_step =
      std::none_of(query.ranks.begin(), query.ranks.end(), [](const auto& run) { return run.steps.empty(); });
  std::vector<ClassRuns> classes = classes_of(query, by_step);
  const auto all = std::find_if(classes.begin(), classes.end(), [](const ClassRuns& one) { return one.name == "all"; });
  const Seconds whole = middle_of(all->times);
  report::Response out;
  out.results.emplace_back("file", query.ranks.back().file);
  report::Items runs, changes;
  for (std::size_t run = 0; run < query.ranks.size(); ++run) {
    report::Members row{{"file", query.ranks[run].file},
                        {"steps", static_cast<std::int64_t>(query.ranks[run].steps.size())},
                        {"time", all->times[run]}};
    report::Items parts;
    for (const ClassRuns& one : classes)
      parts.emplace_back(report::Members{{"class", one.name}, {"time", one.times[run]}});
    row.emplace_back("classes", std::move(parts));
    runs.emplace_back(std::move(row));
  }
  constexpr double sure = 3.0, least = 0.005;  // times the noise; of the whole
  const Seconds noise = all->noise;
  std::erase_if(
      classes, [&](const ClassRuns& one) { return !(one.size() > sure * one.noise) || !(one.size() > least * whole); });
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const ClassRuns& one : classes)
    changes.emplace_back(report::Members{{"class", one.name},
                                         {"since", query.ranks[one.since].file},
                                         {"before", one.before},
                                         {"after", one.after},
                                         {"change", one.change()},
                                         {"noise", one.noise}});
  const auto named =
      std::find_if(classes.begin(), classes.end(), [](const ClassRuns& one) { return one.name != "all"; });
  const std::string_view per = by_step ? "step" : "profile";
  if (named == classes.end())
    out.headline = fmt::format("{} runs: nothing changed by more than {} times the noise of {} a {}",
                               query.ranks.size(), sure, report::short_quantity(noise), per);
  else
    out.headline = fmt::format("{} runs: {} takes {} {} a {} since {}", query.ranks.size(), named->name,
                               report::short_quantity(named->size()), named->change() > Seconds(0) ? "more" : "less",
                               per, query.ranks[named->since].file);
  out.results.emplace_back("per", per);
  out.results.emplace_back("noise", noise);
  out.results.emplace_back("runs", std::move(runs));
  out.results.emplace_back("regressions", std::move(changes));
  out.table_key = "regressions";
  out.notes = query.notes;
  return out;
}

}  // namespace assay::verbs::profile
