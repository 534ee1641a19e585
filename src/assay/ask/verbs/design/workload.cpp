// assay design --workload: every design of a listed space, priced by the same answers of train and serve that a person
// would ask for.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/design/design.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::verbs::design_verb {
namespace {

constexpr std::size_t most_designs = 20000;

/// A request of the mix, with {chip} for the designed one, and which number of its answer is how good it is.
struct Asked {
  std::string ask, measure;
  double weight = 1.0;
  bool is_less_better = false;
};

/// Values that change together, by the place in the design: "die.0.cores" to a list.
using Axis = std::vector<std::pair<std::string, std::vector<Toml>>>;

constexpr std::pair<std::string_view, std::string_view> objectives[] = {
    {"speed", "speed"}, {"speed per dollar", "speed per dollar"}, {"speed per watt", "speed per watt"}};

struct Workload {
  std::string design;
  std::string_view objective = "speed per dollar";
  std::vector<Asked> requests;
  std::vector<Axis> axes;
  std::optional<Watts> power;
  std::optional<Dollars> cost;
};

void read_asked(Asked& asked, RecordReader& in) {
  in.text("ask", asked.ask);
  if (in.has("measure")) in.text("measure", asked.measure);
  if (in.has("weight")) in.number("weight", asked.weight);
  in.flag("less_is_better", asked.is_less_better);
  if (asked.ask.find("{chip}") == std::string::npos)
    in.fault("ask", "the request does not name the designed chip", "e.g. --on {chip}:64");
  if (asked.measure.empty())
    asked.measure = asked.ask.starts_with("serve") ? "served.output_tokens_per_second" : "tokens_per_second";
}

void read_axis(Axis& axis, RecordReader& in, const Toml& table) {
  std::size_t length = 0;
  for (const auto& [key, values] : table.members) {
    const Toml* list = in.find(key);
    if (list->kind != Toml::Kind::array || list->items.empty()) {
      in.fault(key, "what varies is a list of values", "e.g. \"die.0.cores\" = [96, 120, 144]");
      continue;
    }
    if (length != 0 && list->items.size() != length)
      in.fault(key, fmt::format("values that change together are equally many, {} and {}", length, list->items.size()));
    length = list->items.size();
    axis.emplace_back(key, list->items);
  }
}

Result<Workload> read_workload(const std::string& text, const std::string& file) {
  Workload out;
  RecordFile record{
      .name = file, .keys_hint = "docs/design.md describes the keys", .sourced_tables = false, .own = true};
  ASSAY_TRY(root, parse_toml(text, file));
  RecordReader in(record, root);
  in.text("design", out.design);
  if (in.has("objective")) in.word("objective", objectives, out.objective);
  in.items("request", out.requests, read_asked);
  if (out.requests.empty()) in.fault("request", "there is nothing to be good at", "add a table [[request]]");
  if (const Toml* axes = in.find("vary"))
    for (const Toml& table : axes->items) {
      RecordReader one(record, table, "vary");
      read_axis(out.axes.emplace_back(), one, table);
      one.finish();
    }
  if (out.axes.empty()) in.fault("vary", "nothing varies", "add a table [[vary]]");
  in.optional_table("limits", [&](RecordReader& one) {
    if (one.has("power")) one.number("power", out.power.emplace());
    if (one.has("cost")) one.number("cost", out.cost.emplace());
  });
  in.finish();
  ASSAY_CHECK(joined(std::move(record.faults)));
  return out;
}

/// Sets a value of a design by its path; an error where a table on the way is missing.
Result<void> set_value(Toml& root, const std::string& path, const Toml& value, const std::string& file) {
  Toml* at = &root;
  const std::vector<std::string> parts = split(path, '.');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Toml* next = nullptr;
    if (at->kind == Toml::Kind::array) {
      const auto index = parse_number(parts[i]);
      if (index && *index >= 0.0 && *index < static_cast<double>(at->items.size()))
        next = &at->items[static_cast<std::size_t>(*index)];
    } else if (at->kind == Toml::Kind::table) {
      next = at->find(parts[i]);
      if (!next && i + 1 == parts.size()) next = &at->members.emplace_back(parts[i], Toml()).second;
    }
    if (!next)
      return fail(file + ": vary", fmt::format("the design has no {}", in_quotes(path)),
                  "e.g. \"die.0.cores\" or \"clock\"");
    at = next;
  }
  *at = value;
  return {};
}

std::string value_text(const Toml& value) {
  switch (value.kind) {
    case Toml::Kind::integer:
      return fmt::format("{}", value.integer);
    case Toml::Kind::number:
      return human_number(value.number);
    default:
      return value.text;
  }
}

/// A design of the space: which value of each axis, and what became of it.
struct Candidate {
  std::vector<std::size_t> at;
  std::string why_not;  ///< it cannot be built, or a request has no answer; else empty
  double speed = 0;     ///< weighted mean of all requests, over the design as it is
  Area area;
  Watts power;
  Hertz clock;
  Dollars cost;
  std::string chip;  ///< its file: equal chips answer alike
};

class Space {
 public:
  Space(const Workload& workload, Toml root, const Context& context)
      : workload_(workload), root_(std::move(root)), context_(context), catalogue_(context.catalogue) {}

  std::size_t size() const {
    double all = 1.0;
    for (const Axis& axis : workload_.axes) all *= static_cast<double>(axis.front().second.size());
    return all > 1e9 ? std::size_t{1000000000} : static_cast<std::size_t>(all);
  }
  std::vector<std::size_t> place(std::size_t number) const {
    std::vector<std::size_t> at;
    for (const Axis& axis : workload_.axes) {
      at.push_back(number % axis.front().second.size());
      number /= axis.front().second.size();
    }
    return at;
  }
  std::string values(const std::vector<std::size_t>& at) const {
    std::string out;
    for (std::size_t i = 0; i < at.size(); ++i) out += (i == 0 ? "" : ", ") + axis_text(i, at[i]);
    return out;
  }
  std::string axis_text(std::size_t axis, std::size_t value) const {
    const auto& [path, list] = workload_.axes[axis].front();
    return path.substr(path.rfind('.') + 1) + " " + value_text(list[value]);
  }

  /// Area, power and cost; nothing is asked yet.
  Result<Candidate> build(const std::vector<std::size_t>& at) const {
    Toml root = root_;
    for (std::size_t i = 0; i < at.size(); ++i)
      for (const auto& [path, list] : workload_.axes[i])
        ASSAY_CHECK(set_value(root, path, list[at[i]], workload_.design));
    ASSAY_TRY(query, query_of(root, workload_.design, context_));
    if (query.chip.base.empty())
      return fail(workload_.design + ": base", "a chip that is asked for needs a base",
                  "base = \"h100-sxm\": the chip whose network and hosts it has");
    Candidate out;
    out.at = at;
    const design::ChipFigures<Plain> figures = design::chip_figures(Plain{}, query.designed());
    const Clocked clock = clocked(query, figures, workload_.power ? workload_.power : query.chip.limit);
    out.why_not = !clock.impossible.empty() ? clock.impossible : impossible(query, figures);
    out.area = figures.area;
    out.power = clock.power;
    out.clock = clock.clock;
    out.cost = figures.cost.all;
    if (out.why_not.empty() && workload_.cost && out.cost > *workload_.cost)
      out.why_not = fmt::format("it costs {}", human(out.cost));
    out.chip = design::chip_file(query.chip, clock.clock, clock.power);
    id_ = query.chip.id;
    return out;
  }

  /// Answers all requests; equal chips are asked once.
  Result<void> ask(Candidate& candidate) {
    const auto known = known_.find(candidate.chip);
    if (known != known_.end()) {
      candidate.speed = known->second.first;
      candidate.why_not = known->second.second;
      return {};
    }
    catalogue_.put("chips/" + id_ + ".toml", candidate.chip);
    const Context context{catalogue_, context_.surroundings, true};
    double logs = 0.0, weights = 0.0;
    for (const Asked& asked : workload_.requests) {
      std::string line = asked.ask;
      for (std::size_t from; (from = line.find("{chip}")) != std::string::npos;) line.replace(from, 6, id_);
      ASSAY_TRY(request, parse_request_text(line));
      ASSAY_TRY(response, ask_within(request, context));
      const auto found = report::find_path(report::Value(response.results), asked.measure);
      const auto number = found ? report::numeric(*found) : std::nullopt;
      if (response.outcome != report::Outcome::ok) {
        candidate.why_not = response.headline;
        break;
      }
      if (!number || !(*number > 0.0))
        return fail("request",
                    fmt::format("{} is no number of the answer to {}", in_quotes(asked.measure), in_quotes(line)),
                    "measure names a key of the results, e.g. tokens_per_second or decode.step_time.estimate");
      logs += asked.weight * (asked.is_less_better ? -std::log(*number) : std::log(*number));
      weights += asked.weight;
    }
    candidate.speed = candidate.why_not.empty() ? std::exp(logs / weights) : 0.0;
    known_.emplace(candidate.chip, std::pair{candidate.speed, candidate.why_not});
    return {};
  }
  std::size_t asked() const { return known_.size(); }

 private:
  const Workload& workload_;
  Toml root_;
  const Context& context_;
  hardware::Catalogue catalogue_;  ///< with the chip in question
  mutable std::string id_;
  std::map<std::string, std::pair<double, std::string>> known_;
};

double merit(const Workload& workload, const Candidate& one) {
  if (workload.objective == "speed per dollar") return one.speed / one.cost.value();
  return workload.objective == "speed per watt" ? one.speed / one.power.value() : one.speed;
}

report::Members row_of(const Space& space, const Candidate& one, const Candidate& first) {
  return {{"values", space.values(one.at)},
          {"speed", one.speed / first.speed},
          {"speed_per_dollar", one.speed / first.speed * (first.cost / one.cost)},
          {"speed_per_watt", one.speed / first.speed * (first.power / one.power)},
          {"area", one.area},
          {"power", one.power},
          {"clock", one.clock},
          {"cost", one.cost}};
}

/// The designs that no cheaper one is as fast as, from the cheapest on.
std::vector<const Candidate*> front_of(const std::vector<Candidate>& all) {
  std::vector<const Candidate*> sorted, out;
  for (const Candidate& one : all)
    if (one.why_not.empty()) sorted.push_back(&one);
  std::sort(sorted.begin(), sorted.end(), [](const Candidate* a, const Candidate* b) {
    return a->cost != b->cost ? a->cost < b->cost : a->speed > b->speed;
  });
  for (const Candidate* one : sorted)
    if (out.empty() || one->speed > out.back()->speed) out.push_back(one);
  return out;
}

/// What the next value of each axis would bring, or why it cannot be.
report::Items bounds_of(const Workload& workload, const std::vector<Candidate>& all, const Candidate& best) {
  report::Items rows;
  for (std::size_t i = 0; i < best.at.size(); ++i)
    for (const int step : {-1, 1}) {
      std::vector<std::size_t> at = best.at;
      if ((step < 0 && at[i] == 0) || (step > 0 && at[i] + 1 == workload.axes[i].front().second.size())) continue;
      at[i] = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at[i]) + step);
      const auto other = std::find_if(all.begin(), all.end(), [&](const Candidate& one) { return one.at == at; });
      report::Members row{{"parameter", workload.axes[i].front().first},
                          {"now", value_text(workload.axes[i].front().second[best.at[i]])},
                          {"next", value_text(workload.axes[i].front().second[at[i]])}};
      if (other->why_not.empty())
        row.emplace_back("speed", other->speed / best.speed - 1.0);
      else
        row.emplace_back("why", other->why_not);
      rows.emplace_back(std::move(row));
    }
  return rows;
}

draw::Scene picture_of(const std::vector<Candidate>& all, const std::vector<const Candidate*>& front,
                       const Candidate& first) {
  draw::Chart chart;
  chart.title = "Designs for the workload";
  chart.subtitle = "speed over that of the design as it is, against cost";
  chart.x = {"cost of a chip", "USD", draw::ScaleKind::linear, {}, draw::NumberStyle::compact};
  chart.y = {"speed", "", draw::ScaleKind::linear, {}, draw::NumberStyle::compact};
  draw::ChartSeries points{"designs", {}, draw::SeriesStyle::markers},
      best{"no cheaper one is as fast", {}, draw::SeriesStyle::line};
  for (const Candidate& one : all)
    if (one.why_not.empty()) points.points.push_back({one.cost.value(), one.speed / first.speed});
  for (const Candidate* one : front) best.points.push_back({one->cost.value(), one->speed / first.speed});
  chart.series = {std::move(points), std::move(best)};
  return draw::draw(chart);
}

}  // namespace

Result<report::Response> search(const Request& request, const Context& context) {
  const std::string file = *request.value("workload");
  ASSAY_TRY(text, attached_text(file, "--workload", context));
  ASSAY_TRY(workload, read_workload(text, file));
  ASSAY_TRY(design, design_text(workload.design, context));
  ASSAY_TRY(root, parse_toml(design, workload.design));
  Space space(workload, std::move(root), context);
  if (space.size() > most_designs)
    return fail(file + ": vary", fmt::format("more than {} designs", human_count(most_designs)), "list fewer values");
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < space.size(); ++i) {
    ASSAY_TRY(candidate, space.build(space.place(i)));
    all.push_back(std::move(candidate));
  }
  const auto built = std::count_if(all.begin(), all.end(), [](const Candidate& one) { return one.why_not.empty(); });
  for (Candidate& one : all)
    if (one.why_not.empty()) ASSAY_CHECK(space.ask(one));
  report::Response response;
  report::Members count{{"designs", static_cast<std::int64_t>(all.size())},
                        {"built", static_cast<std::int64_t>(built)},
                        {"evaluated", static_cast<std::int64_t>(space.asked())}};
  const std::vector<const Candidate*> front = front_of(all);
  if (front.empty()) {
    response.outcome = report::Outcome::infeasible;
    response.results = {{"search", std::move(count)}};
    response.headline = fmt::format("none of {} designs can be built and answers all requests; the first: {}",
                                    all.size(), all.front().why_not);
    return response;
  }
  const Candidate& first = *front.front();
  const Candidate* best = front.front();
  for (const Candidate& one : all)
    if (one.why_not.empty() && merit(workload, one) > merit(workload, *best)) best = &one;
  report::Items rows;
  for (const Candidate* one : front) rows.emplace_back(row_of(space, *one, first));
  response.results = {{"best", row_of(space, *best, first)},
                      {"front", std::move(rows)},
                      {"bound_by", bounds_of(workload, all, *best)},
                      {"search", std::move(count)},
                      {"chip", best->chip}};
  response.table_key = "front";
  response.headline =
      fmt::format("best {}: {}; {:.2f} times as fast as the cheapest, {:.2f} times its cost", workload.objective,
                  space.values(best->at), best->speed / first.speed, best->cost / first.cost);
  response.notes.emplace_back(
      "speeds are weighted geometric means of all requests, over the cheapest design of the front");
  if (const auto directory = request.value("out"))
    response.files.emplace_back(fmt::format("{}/chips/best.toml", *directory), best->chip);
  if (request.picture()) response.picture = picture_of(all, front, first);
  return response;
}

}  // namespace assay::verbs::design_verb
