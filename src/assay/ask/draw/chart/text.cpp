#include "assay/ask/draw/chart/text.h"

#include <fmt/format.h>

namespace assay::draw {

bool has_unit_at_numbers(const ChartAxis& axis) { return axis.numbers == NumberStyle::si && axis.unit.size() == 1; }

std::string axis_title(const ChartAxis& axis) {
  if (axis.unit.empty() || has_unit_at_numbers(axis)) return axis.label;
  return axis.label.empty() ? axis.unit : axis.label + ", " + axis.unit;
}

std::string value_text(double value, const ChartAxis& axis) {
  const std::string text = number_text(value, axis.numbers);
  if (axis.unit.empty() || axis.numbers == NumberStyle::percent) return text;
  const bool prefixed = axis.numbers == NumberStyle::si && !text.empty() && text.find(' ') != std::string::npos;
  return prefixed ? text + axis.unit : text + " " + axis.unit;
}

std::string series_text(const Chart& chart, std::size_t series) {
  const ChartSeries& shown = chart.series[series];
  for (const PlotPoint& point : shown.points) {
    if (placeable(chart.x.scale, point.x) && placeable(chart.y.scale, point.y)) return shown.name;
  }
  return shown.name.empty() ? "" : shown.name + " (no data)";
}

std::string chart_description(const Chart& chart) {
  if (!chart.description.empty()) return chart.description;
  const auto axis = [](const ChartAxis& a) {
    const std::string name = a.label.empty() ? "values" : a.label;
    return a.unit.empty() ? name : name + " in " + a.unit;
  };
  std::string text = fmt::format("{} against {}", axis(chart.y), axis(chart.x));
  const auto list = [&](const char* kind, const auto& things, const auto& name) {
    std::string names;
    for (const auto& thing : things) {
      if (name(thing).empty()) continue;
      if (!names.empty()) names += ", ";
      names += name(thing);
    }
    if (!names.empty()) text += fmt::format("; {}: {}", kind, names);
  };
  list("series", chart.series, [](const ChartSeries& s) { return s.name; });
  list("regions", chart.regions, [](const ChartRegion& r) { return r.label; });
  list("lines", chart.lines, [](const ReferenceLine& l) { return l.label; });
  list("points", chart.points, [&](const NamedPoint& p) {
    return fmt::format("{} at {}, {}", p.label, value_text(p.x, chart.x), value_text(p.y, chart.y));
  });
  return text;
}

}  // namespace assay::draw
