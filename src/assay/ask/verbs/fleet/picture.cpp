#include <fmt/format.h>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/draw/stacked.h"
#include "assay/ask/verbs/fleet/fleet.h"

namespace assay::verbs::fleet {
namespace {

using serving::FleetReplay;

/// Pages of all replicas.
double all_pages(const Candidate& chosen) {
  const serving::LoadedServer& server = chosen.server->server;
  const double pages = server.lengths.page > 0 ? server.cache_tokens / static_cast<double>(server.lengths.page) : 0.0;
  return pages * static_cast<double>(chosen.replicas * chosen.server->engines());
}

}  // namespace

report::Items series_rows(const FleetQuery& query, const Candidate& chosen) {
  const serving::TimeSeries& series = chosen.replay->series;
  const double pages = all_pages(chosen);
  const bool is_fixed = query.changes.is_fixed();
  report::Items rows;
  for (std::size_t i = 0; i < series.spans(); ++i)
    rows.emplace_back(report::Members{
        {"time", Seconds((static_cast<double>(i) + 0.5) * series.width())},
        {"requests_per_second", series.mean(FleetReplay::arriving, i)},
        {"waiting", series.mean(FleetReplay::waiting, i)},
        {"running", series.mean(FleetReplay::running, i)},
        {"cache", pages > 0.0 ? series.mean(FleetReplay::cached_pages, i) / pages : 0.0},
        {"replicas", is_fixed ? static_cast<double>(chosen.replicas) : series.mean(FleetReplay::ready, i)}});
  return rows;
}

draw::Scene fleet_picture(const FleetQuery& query, const Candidate& chosen) {
  const serving::TimeSeries& series = chosen.replay->series;
  const double pages = all_pages(chosen);
  const auto points = [&](std::size_t value, double scale) {
    std::vector<draw::PlotPoint> out;
    for (std::size_t i = 0; i < series.spans(); ++i)
      out.push_back({(static_cast<double>(i) + 0.5) * series.width(), scale * series.mean(value, i)});
    return out;
  };
  const auto chart_of = [&](std::string title, std::string label, std::vector<draw::ChartSeries> shown) {
    draw::Chart chart;
    chart.title = std::move(title);
    chart.subtitle = fmt::format("{} x {}, {}", chosen.replicas, chosen.server->cluster(), query.routing_text);
    chart.x = {"time", "s", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::compact};
    chart.y = {std::move(label), "", draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::compact};
    chart.series = std::move(shown);
    if (chosen.replay->first_miss)
      chart.lines.push_back({draw::Orientation::vertical, chosen.replay->missed_at, "first late request"});
    chart.height = 380.0;
    return draw::draw(chart);
  };
  const draw::Scene load = chart_of("Requests that run and wait", "requests",
                                    {{"running", points(FleetReplay::running, 1.0), draw::SeriesStyle::line, 1},
                                     {"waiting", points(FleetReplay::waiting, 1.0), draw::SeriesStyle::line, 2}});
  if (!query.changes.is_fixed())
    return draw::stacked(
        load, chart_of("Replicas", "ready", {{"ready", points(FleetReplay::ready, 1.0), draw::SeriesStyle::area, 3}}));
  if (pages == 0.0) return load;
  return draw::stacked(
      load, chart_of("Cache", "share of all pages",
                     {{"taken", points(FleetReplay::cached_pages, 1.0 / pages), draw::SeriesStyle::area, 3}}));
}

}  // namespace assay::verbs::fleet
