#pragma once

#include <cstddef>
#include <string>

#include "assay/ask/draw/chart/chart.h"

namespace assay::draw {

/// A one-letter unit is written with each number, since a prefix alone could be mistaken for it: 10 ms.
bool has_unit_at_numbers(const ChartAxis& axis);
/// The label of an axis with its unit.
std::string axis_title(const ChartAxis& axis);

/// A value of an axis with its unit, as one would write it in a sentence.
std::string value_text(double value, const ChartAxis& axis);

/// The name of a series as shown in the chart, marked if the series has no point to draw.
std::string series_text(const Chart& chart, std::size_t series);

/// A description of the chart for people who cannot see it: the chart's own, otherwise one generated from its parts.
std::string chart_description(const Chart& chart);

}  // namespace assay::draw
