#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/draw/stacked.h"
#include "assay/base/text.h"
#include "assay/predict/serving/load/loaded_server.h"

namespace assay::verbs::serve {
namespace {

draw::Chart titled(const ServeQuery& query, std::string_view what) {
  draw::Chart chart;
  chart.title = fmt::format("{} on {}", query.model().id, query.cluster.text);
  chart.subtitle =
      fmt::format("{}; {} tokens of prompt, {} of output", what, query.question.prompt, query.question.output);
  return chart;
}

/// Latency and throughput of a chip.
draw::PlotPoint front_point(const serving::ServingPoint& point, const ServeQuery& query) {
  return {point.served.per_token.value(), (point.served.tokens_per_second / query.all_chips(point.strategy)).value()};
}

/// Points of the front in classes of batch, a colour each: 1-7, 8-31, 32-127, ...
void add_batches(draw::Chart& chart, const ServeQuery& query, const search::ServingSearch& found) {
  constexpr double bounds[] = {1, 8, 32, 128, 512, 2048, HUGE_VAL};
  for (std::size_t c = 0; c + 1 < std::size(bounds); ++c) {
    const bool last = std::isinf(bounds[c + 1]);
    draw::ChartSeries series{last ? fmt::format("batch {} and more", bounds[c])
                                  : fmt::format("batch {} to {}", bounds[c], bounds[c + 1] - 1),
                             {},
                             draw::SeriesStyle::markers,
                             static_cast<int>(c) + 1};
    for (const serving::ServingPoint& point : found.front)
      if (point.batch >= bounds[c] && point.batch < bounds[c + 1]) series.points.push_back(front_point(point, query));
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
}

/// Of what the fronts differ in.
std::string compared_title(const ServeQuery& query) {
  return fmt::format("{} {}", query.model().id,
                     query.compared.empty() ? fmt::format("on {} in several formats", query.cluster.text)
                                            : std::string("on several clusters"));
}

draw::Chart front_chart(const ServeQuery& query, const search::ServingSearch& found,
                        const std::vector<Comparison::Front>& fronts) {
  draw::Chart chart = titled(query, "the best batch and sharding at every latency");
  chart.x = {"time per output token", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  chart.y = {"tokens per second per chip", "tokens/s", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::si};
  const auto line = [&](const ServeQuery& q, const search::ServingSearch& s, const std::string& name, int colour) {
    draw::ChartSeries series{name, {}, draw::SeriesStyle::line, colour};
    for (const serving::ServingPoint& point : s.front) series.points.push_back(front_point(point, q));
    chart.series.push_back(std::move(series));
  };
  if (fronts.empty()) {
    add_batches(chart, query, found);
  } else {
    chart.title = compared_title(query);
    for (std::size_t i = 0; i < fronts.size(); ++i)
      line(fronts[i].query, fronts[i].found, fronts[i].name, static_cast<int>(i % 8) + 1);
  }
  // Where the way of sharding changes, and both ends.
  std::string before;
  for (std::size_t i = 0; i < found.front.size(); ++i) {
    const serving::ServingPoint& point = found.front[i];
    const std::string text = strategy_text(point.strategy);
    if (fronts.empty() && text != before)
      chart.points.push_back({fmt::format("{}, batch {}", text, human_number(point.batch)), front_point(point, query).x,
                              front_point(point, query).y, 0});
    before = text;
  }
  if (query.choices.per_token)
    chart.lines.push_back({draw::Orientation::vertical, query.choices.per_token->value(), "--tpot"});
  return chart;
}

Result<draw::Chart> step_chart(const ServeQuery& query, const serving::ServingPoint& point) {
  draw::Chart chart = titled(query, "parts of a decode step with " + strategy_text(point.strategy));
  chart.x = {"batch", "sequences", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  chart.y = {"time of a step", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  ASSAY_TRY(links, serving::serving_links(query.question.setup, point.strategy, query.cluster));
  const serving::ServingProfiles profiles = serving::serving_profiles(query.question, point.strategy, links);
  const auto part = [](const char* name, draw::ColourRole colour) {
    return draw::ChartSeries{name, {}, draw::SeriesStyle::dashed, draw::series_number(colour)};
  };
  draw::ChartSeries estimate{"estimate", {}, draw::SeriesStyle::line, draw::series_colour_count},
      weights = part("weights", draw::memory_colour), cache = part("cache", draw::ColourRole::series_5),
      compute = part("arithmetic", draw::arithmetic_colour), network = part("network", draw::network_colour);
  const double unit = profiles.decode.unit * static_cast<double>(point.strategy.pipeline);
  const double most = std::max({point.batch, point.memory.max_batch, 64.0 * unit});
  for (double batch = unit; batch <= most; batch *= std::sqrt(2.0)) {
    const serving::ServingTime time =
        serving::serving_time(query.question.setup, point.strategy, profiles.decode, links, batch);
    estimate.points.push_back({batch, time.estimate.value()});
    const MemoryTime read = memory_time(query, time);
    weights.points.push_back({batch, read.weights.value()});
    if (read.cache > Seconds()) cache.points.push_back({batch, read.cache.value()});
    compute.points.push_back({batch, time.compute.value()});
    if (time.network > Seconds()) network.points.push_back({batch, time.network.value()});
  }
  chart.series = {estimate, weights, compute};
  if (!cache.points.empty()) chart.series.push_back(cache);
  if (!network.points.empty()) chart.series.push_back(network);
  if (point.memory.max_batch >= unit)
    chart.lines.push_back({draw::Orientation::vertical, point.memory.max_batch, "memory is full"});
  return chart;
}

Result<draw::Chart> cost_chart(const ServeQuery& query, const search::ServingSearch& found,
                               const std::vector<Comparison::Front>& fronts) {
  draw::Chart chart = titled(query, "cost of a million tokens at every latency");
  if (!fronts.empty()) chart.title = compared_title(query);
  chart.x = {"time per output token", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  chart.y = {"cost of a million tokens", "USD", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  const auto add = [&](const ServeQuery& q, const search::ServingSearch& s, const std::string& name) {
    draw::ChartSeries series{name, {}, draw::SeriesStyle::line, static_cast<int>(chart.series.size() % 8) + 1};
    for (const serving::ServingPoint& p : s.front)
      if (const auto cost = cost_of_million(q, p, p.served.tokens_per_second))
        series.points.push_back({p.served.per_token.value(), cost->value()});
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  };
  if (fronts.empty()) add(query, found, query.cluster.text);
  for (const Comparison::Front& front : fronts) add(front.query, front.found, front.name);
  if (chart.series.empty()) return fail("--picture", no_price_text(query.cluster.chip), "or draw the front instead");
  return chart;
}

}  // namespace

draw::Chart draft_chart(const ServeQuery& query, const serving::ServingPoint& point, const search::Speculation& found) {
  draw::Chart chart = titled(query, fmt::format("drafts that are accepted with {:.0f} %", 100.0 * query.acceptance));
  chart.x = {"drafted tokens", "", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::compact};
  chart.y = {"time", "s", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::si};
  draw::ChartSeries per_token{"per token", {}, draw::SeriesStyle::line, 1},
      loop{"of a loop", {}, draw::SeriesStyle::dashed, 2};
  Seconds most = point.decode.estimate;
  for (const search::SpeculativeLoop& each : found.loops) {
    const auto length = static_cast<double>(each.length);
    per_token.points.push_back({length, each.per_token().value()});
    loop.points.push_back({length, each.loop.value()});
    most = std::max(most, each.loop);
  }
  chart.y.range = draw::AxisRange{0.0, 1.1 * most.value()};
  chart.series = {std::move(per_token), std::move(loop)};
  chart.lines.push_back({draw::Orientation::horizontal, point.decode.estimate.value(), "a step without drafts"});
  const search::SpeculativeLoop& best = found.loops[found.best];
  chart.points.push_back({fmt::format("{} drafted, {} per loop", best.length, human(Tokens(best.tokens))),
                          static_cast<double>(best.length), best.per_token().value(), 0});
  return chart;
}

Result<draw::Scene> load_picture(const ServeQuery& query, const serving::ServingPoint& point) {
  ASSAY_TRY(server, server_under_load(query, point));
  const Hertz saturation = server.replicas * serving::loaded_times(server, *query.rate / server.replicas).saturation;
  const auto chart_of = [&](std::string_view what, serving::Spread serving::LoadedTimes::*spread,
                            const std::optional<Seconds>& limit, std::string_view option) {
    draw::Chart chart = titled(query, fmt::format("{} under load with {}", what, strategy_text(point.strategy)));
    chart.x = {"requests per second", "", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::compact};
    chart.y = {std::string(what), "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
    for (const auto& [name, share] :
         {std::pair{"median", &serving::Spread::p50}, std::pair{"90 %", &serving::Spread::p90},
          std::pair{"99 %", &serving::Spread::p99}}) {
      draw::ChartSeries series{name, {}, draw::SeriesStyle::line, 0};
      constexpr int points = 48;
      for (int i = 1; i < points; ++i) {
        const Hertz rate = static_cast<double>(i) / points * saturation;
        const serving::LoadedTimes times = serving::loaded_times(server, rate / server.replicas);
        if (times.stable) series.points.push_back({rate.value(), (times.*spread.*share).value()});
      }
      chart.series.push_back(std::move(series));
    }
    chart.lines.push_back({draw::Orientation::vertical, query.rate->value(), "--rate"});
    chart.lines.push_back({draw::Orientation::vertical, saturation.value(), "saturated"});
    if (limit) chart.lines.push_back({draw::Orientation::horizontal, limit->value(), std::string(option)});
    chart.height = 420.0;
    return draw::draw(chart);
  };
  return draw::stacked(
      chart_of("time to first token", &serving::LoadedTimes::first_token, query.choices.first_token, "--ttft"),
      chart_of("time per token", &serving::LoadedTimes::per_token, query.choices.per_token, "--tpot"));
}

Result<draw::Chart> serve_chart(const ServeQuery& query, const search::ServingSearch& found,
                                const serving::ServingPoint& point, std::string_view what,
                                const std::vector<Comparison::Front>& fronts) {
  if (what == "cache") return cache_chart(query);
  Result<draw::Chart> chart = what == "step"   ? step_chart(query, point)
                              : what == "cost" ? cost_chart(query, found, fronts)
                                               : Result<draw::Chart>(front_chart(query, found, fronts));
  if (chart && !found.fits) chart->subtitle = "does not fit; " + chart->subtitle;
  return chart;
}

}  // namespace assay::verbs::serve
