#include "assay/ask/draw/chart/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::draw {
namespace {

double decade_below(double value) { return std::pow(10.0, std::floor(std::log10(value))); }
double decade_above(double value) { return std::pow(10.0, std::ceil(std::log10(value))); }

}  // namespace

Chart roofline_chart(std::string title, std::string subtitle, const std::vector<RoofLine>& roofs,
                     const std::vector<RoofPoint>& points) {
  Chart chart;
  chart.title = std::move(title);
  chart.subtitle = std::move(subtitle);
  chart.x = {"arithmetic intensity", "FLOP/B", ScaleKind::log, std::nullopt, NumberStyle::compact};
  chart.y = {"attainable rate", "FLOP/s", ScaleKind::log, std::nullopt, NumberStyle::si};
  double left = HUGE_VAL, right = 0.0;
  for (const RoofLine& roof : roofs) {
    const double knee = (roof.peak / roof.bandwidth).value();
    left = std::min(left, knee / 30.0);
    right = std::max(right, knee * 10.0);
  }
  for (const RoofPoint& point : points) {
    if (!(point.intensity.value() > 0.0) || !std::isfinite(point.intensity.value())) continue;
    left = std::min(left, point.intensity.value() / 3.0);
    right = std::max(right, point.intensity.value() * 3.0);
  }
  left = decade_below(left);
  right = decade_above(right);
  chart.x.range = AxisRange{left, right};
  for (const RoofLine& roof : roofs) {
    const double knee = (roof.peak / roof.bandwidth).value();
    ChartSeries line{roof.name, {}, SeriesStyle::line, 0};
    line.points = {{left, left * roof.bandwidth.value()}, {knee, roof.peak.value()}, {right, roof.peak.value()}};
    chart.series.push_back(std::move(line));
  }
  // Regions are for one peak: the roofs that share the first roof's.
  double fast = HUGE_VAL, slow = 0.0;
  for (const RoofLine& roof : roofs) {
    if (roof.peak != roofs.front().peak) continue;
    const double knee = (roof.peak / roof.bandwidth).value();
    fast = std::min(fast, knee);
    slow = std::max(slow, knee);
  }
  chart.regions.push_back({left, fast, "bandwidth-bound", RegionRole::bad});
  if (slow > fast) chart.regions.push_back({fast, slow, "partly bound", RegionRole::partial});
  chart.regions.push_back({slow, right, "compute-bound", RegionRole::good});
  for (const RoofPoint& point : points)
    if (point.intensity.value() > 0.0 && std::isfinite(point.intensity.value()))
      chart.points.push_back({point.name, point.intensity.value(), point.achieved.value(), 0});
  return chart;
}

Chart chip_chart(const hardware::Chip& chip) {
  std::vector<RoofLine> roofs;
  Dtype reference = Dtype::bf16;
  for (const DtypeFacts& entry : all_dtypes())
    if (chip.peak[static_cast<std::size_t>(entry.dtype)] && !chip.peak[static_cast<std::size_t>(reference)])
      reference = entry.dtype;
  const FlopsPerSecond base = chip.peak[static_cast<std::size_t>(reference)]->value;
  for (const hardware::MemoryRoof& roof : hardware::memory_roofs(chip))
    roofs.push_back({fmt::format("{} {}", roof.name, name(reference)), base, roof.bandwidth.value});
  std::vector<FlopsPerSecond> drawn{base};
  for (Dtype dtype : {Dtype::fp8, Dtype::int8, Dtype::fp4, Dtype::int4}) {
    const auto& peak = chip.peak[static_cast<std::size_t>(dtype)];
    if (!peak || std::find(drawn.begin(), drawn.end(), peak->value) != drawn.end()) continue;
    drawn.push_back(peak->value);
    roofs.push_back({fmt::format("hbm {}", name(dtype)), peak->value, chip.hbm().bandwidth->value});
  }
  roofs.push_back({"hbm vector unit", hardware::vector_rate(chip).value, chip.hbm().bandwidth->value});
  return roofline_chart(chip.name, "rooflines of every memory level and peak; dense rates, one chip", roofs, {});
}

Chart size_chart(std::string title, std::string subtitle, const std::string& letter,
                 const std::vector<SizeCurve>& curves, FlopsPerSecond peak) {
  Chart chart;
  chart.title = std::move(title);
  chart.subtitle = std::move(subtitle);
  double smallest = HUGE_VAL, largest = 0.0;
  for (const SizeCurve& curve : curves) {
    chart.series.push_back({curve.name, curve.points, SeriesStyle::line, 0});
    for (const PlotPoint& point : curve.points) {
      smallest = std::min(smallest, point.x);
      largest = std::max(largest, point.x);
    }
  }
  // A range of a few decades is easier to read on a log axis.
  const ScaleKind scale = largest > 1100.0 * smallest ? ScaleKind::log : ScaleKind::linear;
  chart.x = {letter, "", scale, std::nullopt, NumberStyle::compact};
  chart.y = {"achieved rate", "FLOP/s", ScaleKind::linear, AxisRange{0.0, peak.value() * 1.12}, NumberStyle::si};
  chart.lines.push_back({Orientation::horizontal, peak.value(), "peak " + human(peak)});
  for (const SizeCurve& curve : curves)
    if (curve.knee && *curve.knee >= smallest && *curve.knee <= largest)
      chart.points.push_back({fmt::format("{} = {}", letter, human_number(std::round(*curve.knee * 10.0) / 10.0)),
                              *curve.knee, peak.value(), static_cast<int>(&curve - curves.data()) + 1});
  return chart;
}

}  // namespace assay::draw
