#pragma once

#include <cstddef>
#include <string>

#include "assay/draw/chart/chart.h"

namespace assay::draw {

/// A unit of one letter stands with each number, since a prefix alone could be one: 10 ms.
bool has_unit_at_numbers(const ChartAxis& axis);
/// The label of an axis with its unit.
std::string axis_title(const ChartAxis& axis);

/// A value of an axis with its unit, as one would write it in a sentence.
std::string value_text(double value, const ChartAxis& axis);

/// The name of a series as the chart shows it, which says so if the series has no point to draw.
std::string series_text(const Chart& chart, std::size_t series);

/// What there is to see in a chart, for those who cannot: the chart's own description, else one made from its parts.
std::string chart_description(const Chart& chart);

}  // namespace assay::draw
