#include "assay/ask/verbs/collective/collective.h"

#include <algorithm>

#include "assay/ask/draw/chart/chart.h"

namespace assay::verbs::collective_verb {

report::Items sweep_rows(const std::string& name, const std::vector<SweepPoint>& points) {
  return report::rows_of(points, [&](const SweepPoint& at) {
    report::Members row;
    if (name == "imbalance")
      row.emplace_back(name, at.value);
    else if (name != "bytes")
      row.emplace_back(name == "chips" ? "chips" : "sharded_by", static_cast<std::int64_t>(at.value));
    if (at.share) {
      row.emplace_back("share", at.share->exact);
      row.emplace_back("approximate_share", at.share->approximate);
    }
    for (auto& member : report::Members{{"bytes", at.bytes},
                                        {"time", at.estimate},
                                        {"lower", at.lower},
                                        {"algorithm_bandwidth", at.bytes / at.estimate},
                                        {"bus_bandwidth", at.bus_over_algorithm * (at.bytes / at.estimate)}})
      row.push_back(std::move(member));
    return row;
  });
}

namespace {

/// Which share of the devices gets a token, against their number.
draw::Chart share_chart(const std::string& title, const std::vector<SweepPoint>& points) {
  draw::Chart chart;
  chart.title = title;
  chart.subtitle = "devices that get a token";
  chart.x = {"devices", "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  chart.y = {"share of the devices", "", draw::ScaleKind::linear, draw::AxisRange{0.0, 1.05},
             draw::NumberStyle::percent};
  draw::ChartSeries exact{"on average", {}, draw::SeriesStyle::line, 1};
  draw::ChartSeries approximate{"picks over devices", {}, draw::SeriesStyle::dashed, 2};
  for (const SweepPoint& at : points) {
    exact.points.push_back({at.value, at.share->exact});
    approximate.points.push_back({at.value, at.share->approximate});
  }
  chart.series = {std::move(exact), std::move(approximate)};
  return chart;
}

draw::ChartAxis swept_axis(const std::string& name) {
  if (name == "bytes")
    return {"bytes of the whole array", "B", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  if (name == "imbalance")
    return {"bytes of the busiest device over the mean", "", draw::ScaleKind::linear, std::nullopt,
            draw::NumberStyle::compact};
  return {name == "chips" ? "chips" : "devices that shard the array further", "", draw::ScaleKind::log, std::nullopt,
          draw::NumberStyle::compact};
}

}  // namespace

draw::Scene sweep_picture(const std::string& title, const std::string& name, const std::vector<SweepPoint>& points) {
  const bool over_size = name == "bytes";
  if (name == "chips" && !points.empty() && points.front().share) return draw::draw(share_chart(title, points));
  draw::Chart chart;
  chart.title = title;
  chart.x = swept_axis(name);
  chart.y = {over_size ? "bus bandwidth" : "time", over_size ? "B/s" : "s",
             over_size ? draw::ScaleKind::log : draw::ScaleKind::linear, std::nullopt, draw::NumberStyle::si};
  draw::ChartSeries estimate{"estimate", {}, draw::SeriesStyle::line, 1};
  draw::ChartSeries bound{"ideal hardware", {}, draw::SeriesStyle::dashed, 2};
  double most = 0.0;
  for (const SweepPoint& at : points) {
    const auto y = [&](Seconds time) {
      return over_size ? (at.bus_over_algorithm * (at.bytes / time)).value() : time.value();
    };
    estimate.points.push_back({at.value, y(at.estimate)});
    bound.points.push_back({at.value, y(at.lower)});
    most = std::max({most, y(at.estimate), y(at.lower)});
  }
  if (!over_size) chart.y.range = draw::AxisRange{0.0, 1.1 * most};
  chart.series = {std::move(estimate), std::move(bound)};
  if (over_size)
    chart.footnote = "bus bandwidth as in nccl-tests: bytes over time, times the share of them that each link carries";
  return draw::draw(chart);
}

}  // namespace assay::verbs::collective_verb
