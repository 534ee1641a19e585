#include "assay/ask/verbs/layer/query.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/base/text.h"
#include "assay/predict/search/layer/weight_splits.h"
#include "assay/predict/search/serving/fit.h"

namespace assay::verbs::layer {
namespace {

/// The request with one size of --sizes replaced or added.
Request with_size(const Request& request, const std::string& name, std::int64_t size) {
  std::string sizes = fmt::format("{}={}", name, size);
  for (const std::string& part : split(request.value("sizes").value_or(""), ','))
    if (const std::string_view one = trim(part); !one.empty() && trim(one.substr(0, one.find('='))) != name)
      sizes += fmt::format(",{}", one);
  return request.without("vary").with("sizes", sizes);
}

struct SizePoint {
  std::int64_t size = 1;
  Request request;
  search::LayerChoice choice;
  Seconds estimate;
};

/// The best choice at one size; nothing where no sharding fits.
Result<std::optional<SizePoint>> at_size(const Request& request, const Context& context, const std::string& name,
                                         std::int64_t size) {
  Request one = with_size(request, name, size);
  ASSAY_TRY(query, read_query(one, context));
  ASSAY_TRY(hardware, chooser_hardware(query));
  query.problem.runners_up = 0;
  search::LayerSearch found = search::choose_sharding(query.mesh, query.problem, hardware);
  if (found.choices.empty()) return std::optional<SizePoint>();
  search::LayerChoice& best = found.choices.front();
  const Seconds estimate = search::expected_time(query.cluster.chip, best);
  return std::optional(SizePoint{size, std::move(one), std::move(best), estimate});
}

draw::Chart size_chart(const std::string& name, const std::vector<SizePoint>& points) {
  draw::Chart chart;
  chart.x = {name, "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  chart.y = {"time", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  draw::ChartSeries estimate{"estimate", {}, draw::SeriesStyle::line, draw::series_colour_count};
  const auto part = [](const char* of, draw::ColourRole colour) {
    return draw::ChartSeries{of, {}, draw::SeriesStyle::dashed, draw::series_number(colour)};
  };
  draw::ChartSeries compute = part("arithmetic", draw::arithmetic_colour), memory = part("memory", draw::memory_colour),
                    network = part("network", draw::network_colour);
  for (const SizePoint& point : points) {
    const auto x = static_cast<double>(point.size);
    const search::ProductTimes& times = point.choice.times;
    estimate.points.push_back({x, point.estimate.value()});
    compute.points.push_back({x, times.compute.value()});
    memory.points.push_back({x, times.memory.value()});
    if (times.communication > Seconds()) network.points.push_back({x, times.communication.value()});
  }
  chart.series = {std::move(estimate), std::move(compute), std::move(memory)};
  if (!network.points.empty()) chart.series.push_back(std::move(network));
  return chart;
}

bool is_compute_bound(const SizePoint& point) { return search::limiter_of(point.choice) == "compute"; }

/// The smallest size between two points from which on arithmetic limits.
Result<std::int64_t> knee(const Request& request, const Context& context, const std::string& name, std::int64_t below,
                          std::int64_t from) {
  while (from - below > 1) {
    const std::int64_t middle = below + (from - below) / 2;
    ASSAY_TRY(point, at_size(request, context, name, middle));
    (point && is_compute_bound(*point) ? from : below) = middle;
  }
  return from;
}

Result<report::Response> over_sizes(const Request& request, const Context& context, const Variation& variation) {
  report::Response response;
  std::vector<SizePoint> points;
  std::optional<std::int64_t> critical;
  for (const double value : variation.values) {
    const auto size = static_cast<std::int64_t>(value);
    ASSAY_TRY(point, at_size(request, context, variation.name, size));
    if (!point) {
      response.notes.push_back(fmt::format("{} = {}: nothing fits", variation.name, size));
      continue;
    }
    if (!critical && is_compute_bound(*point))
      ASSAY_SET(critical, knee(request, context, variation.name, points.empty() ? size - 1 : points.back().size, size));
    points.push_back(*std::move(point));
  }
  if (points.empty()) return fail("--vary", "nothing fits at any of these sizes", "give smaller ones or more memory");
  report::Items rows;
  for (const SizePoint& point : points) {
    const search::ProductTimes& times = point.choice.times;
    ASSAY_TRY(query, read_query(point.request, context));
    report::Members row{{variation.name, point.size},
                        {"time", report::range(times.lower, point.estimate, times.upper)},
                        {"compute_time", times.compute},
                        {"memory_time", times.memory},
                        {"collective_time", times.communication},
                        {"limiter", search::limiter_of(point.choice)}};
    if (query.problem.layer())
      row.emplace_back("tokens_per_second", Tokens(static_cast<double>(query.sizes.at("B"))) / point.estimate);
    row.emplace_back("memory", report::Members{{"total", point.choice.memory()}, {"verdict", "fits"}});
    row.emplace_back("arguments", point.request.named_arguments());
    rows.emplace_back(std::move(row));
  }
  ASSAY_TRY(first, read_query(points.front().request, context));
  response.results = {{"cluster", first.cluster.text}, {"mesh", program::mesh_text(first.mesh)}, {"fits", true}};
  const bool always = critical && *critical <= points.front().size;
  response.headline = always ? fmt::format("arithmetic limits at every {}", variation.name)
                      : critical
                          ? fmt::format("arithmetic limits from {} = {} on", variation.name, *critical)
                          : fmt::format("arithmetic limits at no {} up to {}", variation.name, points.back().size);
  if (critical && !always)
    response.results.emplace_back("critical_size", report::Members{{"name", variation.name}, {"value", *critical}});
  response.results.emplace_back("sweep", std::move(rows));
  response.table_key = "sweep";
  if (request.picture()) {
    draw::Chart chart = size_chart(variation.name, points);
    chart.title = fmt::format("A layer on {}: time against {}", first.cluster.text, variation.name);
    chart.subtitle = response.headline;
    if (critical && !always)
      chart.lines.push_back(
          {draw::Orientation::vertical, static_cast<double>(*critical), fmt::format("{}", *critical)});
    response.picture = draw::draw(chart);
  }
  return response;
}

/// A slice, and the layer on it with weights split either way.
struct SlicePoint {
  std::int64_t chips = 1;
  std::string cluster;
  search::WeightSplits splits;
  report::Members arguments;

  bool two_is_faster() const { return is_faster(splits.two, splits.one); }
  bool one_is_faster() const { return is_faster(splits.one, splits.two); }

 private:
  using Choice = std::optional<search::LayerChoice>;
  static bool is_faster(const Choice& a, const Choice& b) {
    return a && (!b || a->times.lower < b->times.lower * (1.0 - 1e-9));
  }
};

draw::Chart split_chart(const std::vector<SlicePoint>& points) {
  draw::Chart chart;
  chart.x = {"chips", "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  chart.y = {"time of a layer", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  draw::ChartSeries one{"in one direction", {}, draw::SeriesStyle::line, 1},
      two{"in two directions", {}, draw::SeriesStyle::dashed, 2};
  for (const SlicePoint& point : points) {
    const auto x = static_cast<double>(point.chips);
    if (point.splits.one) one.points.push_back({x, point.splits.one->times.lower.value()});
    if (point.splits.two) two.points.push_back({x, point.splits.two->times.lower.value()});
  }
  chart.series = {std::move(one), std::move(two)};
  return chart;
}

report::Items split_rows(const std::vector<SlicePoint>& points) {
  const auto time = [](const std::optional<search::LayerChoice>& choice) {
    return choice ? report::Value(choice->times.lower) : report::Value();
  };
  const auto limiter = [](const std::optional<search::LayerChoice>& choice) {
    return choice ? report::Value(search::limiter_of(*choice)) : report::Value();
  };
  return report::rows_of(points, [&](const SlicePoint& point) {
    const auto& best = point.two_is_faster() ? point.splits.two : point.splits.one;
    return report::Members{{"chips", point.chips},
                           {"cluster", point.cluster},
                           {"one_direction", time(point.splits.one)},
                           {"one_direction_limiter", limiter(point.splits.one)},
                           {"two_directions", time(point.splits.two)},
                           {"two_directions_limiter", limiter(point.splits.two)},
                           {"faster", point.two_is_faster() ? "two directions" : "one direction"},
                           {"memory", report::Members{{"total", best->memory()}, {"verdict", "fits"}}},
                           {"arguments", point.arguments}};
  });
}

Result<report::Response> over_chips(const Request& request, const Context& context, const Variation& variation) {
  for (const char* option : {"one", "mesh", "fix", "result"})
    if (request.has(option))
      return fail(fmt::format("--{}", option), "--vary chips splits the weights of a layer over all axes of each slice",
                  "leave it out", Error::Kind::usage);
  const Request plain = request.without("vary");
  ASSAY_TRY(asked, read_query(plain, context));
  const std::string chip = asked.cluster.text.substr(0, asked.cluster.text.find(':'));
  std::vector<SlicePoint> points;
  for (const search::SliceSize& slice : search::slice_sizes(asked.cluster.chip)) {
    const bool wanted = std::find(variation.values.begin(), variation.values.end(), static_cast<double>(slice.chips)) !=
                        variation.values.end();
    if (!wanted) continue;
    const Request one = plain.with("on", fmt::format("{}:{}", chip, slice.text));
    ASSAY_TRY(query, read_query(one, context));
    ASSAY_TRY(hardware, chooser_hardware(query));
    SlicePoint point{slice.chips, query.cluster.text, search::weight_splits(query.mesh, query.problem, hardware),
                     one.named_arguments()};
    if (point.splits.one || point.splits.two) points.push_back(std::move(point));
  }
  if (points.empty())
    return fail("--vary", fmt::format("{} comes in no slice of so many chips on which the layer fits", chip),
                "e.g. --vary chips=4..256");
  report::Response response;
  auto crossover = points.end();  // from here on two directions are never slower
  for (auto it = points.end(); it != points.begin() && !(--it)->one_is_faster();)
    if (it->two_is_faster()) crossover = it;
  response.headline =
      crossover == points.end()
          ? fmt::format("up to {} chips, weights split in two directions are not faster than in one",
                        points.back().chips)
          : fmt::format("from {} on, weights split in two directions are faster than in one", crossover->cluster);
  response.results = {{"cluster", asked.cluster.text}, {"fits", true}};
  if (crossover != points.end())
    response.results.emplace_back("crossover",
                                  report::Members{{"chips", crossover->chips}, {"cluster", crossover->cluster}});
  response.results.emplace_back("splits", split_rows(points));
  response.table_key = "splits";
  response.notes.emplace_back("times are those of ideal hardware that overlaps all communication");
  if (request.picture()) {
    draw::Chart chart = split_chart(points);
    chart.title = fmt::format("A layer on slices of {}: weights split in one direction and in two", chip);
    chart.subtitle = response.headline;
    response.picture = draw::draw(chart);
  }
  return response;
}

}  // namespace

Result<report::Response> sweep_answer(const Request& request, const Context& context) {
  static constexpr VariedNumber of_a_layer[] = {{"B", &parse_varied_count, "1..1024"},
                                                {"D", &parse_varied_count, "1024..16384"},
                                                {"F", &parse_varied_count, "4096..65536"},
                                                {"chips", &parse_varied_count, "4..256"}};
  static constexpr VariedNumber of_a_product[] = {{"I", &parse_varied_count, "1..1024"},
                                                  {"J", &parse_varied_count, "1024..16384"},
                                                  {"K", &parse_varied_count, "1024..16384"}};
  ASSAY_TRY(variation,
            request.has("one") ? read_variation(request, of_a_product) : read_variation(request, of_a_layer));
  return variation->name == "chips" ? over_chips(request, context, *variation)
                                    : over_sizes(request, context, *variation);
}

}  // namespace assay::verbs::layer
