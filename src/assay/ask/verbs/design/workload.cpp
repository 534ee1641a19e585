// assay design --workload: the designs of a listed space, priced by the same answers of train and serve that a person
// would ask for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/design/space.h"
#include "assay/base/text.h"

namespace assay::verbs::design_verb {
namespace {

constexpr std::size_t most_designs = 200000;

report::Members row_of(const Space& space, const Candidate& one, const Candidate& first) {
  const double speed = one.speed() / first.speed();
  std::vector<std::string> bound;
  if (one.of_reticle > 0.97) bound.emplace_back("area");
  if (one.is_slowed) bound.emplace_back("power");
  for (const Answered::One& each : one.answered->each)
    if (!each.limiter.empty() && std::find(bound.begin(), bound.end(), each.limiter) == bound.end())
      bound.push_back(each.limiter);
  return {{"values", space.values(one.at)},
          {"speed", speed},
          {"speed_per_dollar", speed * (first.owning / one.owning)},
          {"speed_per_watt", speed * (first.power / one.power)},
          {"area", one.area},
          {"power", one.power},
          {"clock", one.clock},
          {"cost", one.cost},
          {"per_hour", one.owning * 1_h},
          {"limits", join(bound, ", ")}};
}

/// What each request answers on the best chip, and on the cheapest of the front.
report::Items request_rows(const Workload& workload, const Candidate& best, const Candidate& first) {
  report::Items rows;
  for (std::size_t i = 0; i < workload.requests.size(); ++i) {
    const Asked& asked = workload.requests[i];
    const Answered::One& one = best.answered->each[i];
    report::Members row{{"ask", asked.ask},
                        {"measure", asked.measure},
                        {"value", one.value},
                        {"over_first", one.value / first.answered->each[i].value}};
    if (!one.limiter.empty()) row.emplace_back("limiter", one.limiter);
    if (asked.measure.ends_with("tokens_per_second") && one.chips > 0.0) {
      constexpr double million = 1e6;
      row.emplace_back("owned_per_million_tokens", million * one.chips / one.value * (best.owning * Seconds(1.0)));
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

/// What the next value of each axis would bring, or why it cannot be.
Result<report::Items> bounds_of(Space& space, std::vector<Candidate>& all, const Candidate& best) {
  struct Step {
    std::size_t axis = 0, to = 0;
    Candidate* other = nullptr;
  };
  std::vector<Step> steps;
  std::vector<Space::Question> questions;
  const auto& axes = space.workload().axes;
  std::size_t stride = 1;
  const auto number = static_cast<std::size_t>(&best - all.data());
  for (std::size_t i = 0; i < best.at.size(); ++i) {
    for (const int step : {-1, 1}) {
      if ((step < 0 && best.at[i] == 0) || (step > 0 && best.at[i] + 1 == axes[i].front().second.size())) continue;
      Step& one = steps.emplace_back();
      one.axis = i;
      one.to = step < 0 ? best.at[i] - 1 : best.at[i] + 1;
      one.other = &all[step < 0 ? number - stride : number + stride];
      if (one.other->why_not.empty()) questions.push_back({one.other, one.other->rates});
    }
    stride *= axes[i].front().second.size();
  }
  ASSAY_TRY(answers, space.ask(questions));
  std::size_t next = 0;
  report::Items rows;
  for (const Step& step : steps) {
    report::Members row{{"parameter", axes[step.axis].front().first},
                        {"now", space.axis_text(step.axis, best.at[step.axis])},
                        {"next", space.axis_text(step.axis, step.to)}};
    const Answered* answered = step.other->why_not.empty() ? answers[next++] : nullptr;
    if (answered && answered->why_not.empty()) {
      row.emplace_back("speed", answered->speed / best.speed() - 1.0);
      row.emplace_back("per_hour", step.other->owning / best.owning - 1.0);
    } else {
      row.emplace_back("why", answered ? answered->why_not : step.other->why_not);
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

draw::Scene picture_of(const Workload& workload, const std::vector<Candidate>& all, const Found& found) {
  const bool by_power = workload.objective == Objective::speed_per_watt;
  const double first = found.front.front()->speed();
  const auto point = [&](const Candidate& one) {
    return draw::PlotPoint{by_power ? one.power.value() : (one.owning * 1_h).value(), one.speed() / first};
  };
  draw::Chart chart;
  chart.title = "Designs for the workload";
  chart.subtitle = by_power ? "speed over that of the design that draws least, against power"
                            : "speed over that of the cheapest design, against the cost of owning";
  chart.x = {by_power ? "power of a chip" : "a chip for an hour",
             by_power ? "W" : "USD",
             draw::ScaleKind::linear,
             {},
             draw::NumberStyle::compact};
  chart.y = {"speed", "", draw::ScaleKind::linear, {}, draw::NumberStyle::compact};
  draw::ChartSeries points{"designs", {}, draw::SeriesStyle::markers},
      best{by_power ? "none that draws less is as fast" : "no cheaper one is as fast", {}, draw::SeriesStyle::line};
  for (const Candidate& one : all)
    if (one.speed() > 0.0) points.points.push_back(point(one));
  for (const Candidate* one : found.front) best.points.push_back(point(*one));
  chart.series = {std::move(points), std::move(best)};
  return draw::draw(chart);
}

}  // namespace

Result<report::Response> search(const Request& request, const Context& context) {
  const std::string file = *request.value("workload");
  ASSAY_TRY(text, attached_text(file, "--workload", context));
  ASSAY_TRY(workload, read_workload(text, file));
  ASSAY_TRY(space, Space::make(std::move(workload), request, context));
  if (space.size() > most_designs)
    return fail(file + ": vary", fmt::format("more than {} designs", human_count(most_designs)), "list fewer values");
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < space.size(); ++i) {
    ASSAY_TRY(candidate, space.build(space.place(i)));
    all.push_back(std::move(candidate));
  }
  const auto built = std::count_if(all.begin(), all.end(), [](const Candidate& one) { return one.why_not.empty(); });
  ASSAY_TRY(found, explore(space, all));
  report::Response response;
  report::Members count{{"designs", static_cast<std::int64_t>(all.size())},
                        {"built", static_cast<std::int64_t>(built)},
                        {"evaluated", static_cast<std::int64_t>(space.asked())}};
  if (!found.best) {
    response.outcome = report::Outcome::infeasible;
    response.results = {{"search", std::move(count)}};
    response.headline = fmt::format("none of {} designs can be built and answers all requests; the first: {}",
                                    all.size(), all.front().why_not);
    return response;
  }
  const Candidate &first = *found.front.front(), &best = *found.best;
  report::Items rows;
  for (const Candidate* one : found.front) rows.emplace_back(row_of(space, *one, first));
  ASSAY_TRY(chip, space.chip_file(best));
  report::Members best_row = row_of(space, best, first);
  report::Items requests = request_rows(space.workload(), best, first);
  response.headline =
      fmt::format("best {}: {}; {:.2f} times as fast as the {}, at {:.2f} times its {}",
                  space.workload().objective == Objective::speed              ? "speed"
                  : space.workload().objective == Objective::speed_per_dollar ? "speed per dollar"
                                                                              : "speed per watt",
                  space.values(best.at), best.speed() / first.speed(),
                  space.workload().objective == Objective::speed_per_watt ? "one that draws least" : "cheapest",
                  price_of(space.workload(), best) / price_of(space.workload(), first),
                  space.workload().objective == Objective::speed_per_watt ? "power" : "cost of owning");
  if (request.picture()) response.picture = picture_of(space.workload(), all, found);
  ASSAY_TRY(bounds, bounds_of(space, all, best));
  response.results = {{"best", std::move(best_row)},   {"front", std::move(rows)},   {"requests", std::move(requests)},
                      {"bound_by", std::move(bounds)}, {"search", std::move(count)}, {"chip", chip}};
  response.table_key = "front";
  response.notes.emplace_back(
      "speeds are weighted geometric means of all requests, over the first design of the front; dollars are those of "
      "owning a chip for an hour");
  if (const auto directory = request.value("out"))
    response.files.emplace_back(fmt::format("{}/chips/{}.toml", *directory, space.chip_id()), chip);
  return response;
}

}  // namespace assay::verbs::design_verb
