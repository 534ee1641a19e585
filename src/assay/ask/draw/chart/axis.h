#pragma once

#include <string>
#include <vector>

namespace assay::draw {

/// How values are spread along an axis.
enum class ScaleKind { linear, log };

/// How values are written: 10k, or 10 k with an SI prefix set off for the unit that follows, or 0.5 as 50%.
enum class NumberStyle { compact, si, percent };

/// A stretch of an axis, in data values.
struct AxisRange {
  double from = 0.0;
  double to = 1.0;
};

/// Maps the values of `range` to positions from `start` to `end`.
struct AxisScale {
  ScaleKind kind = ScaleKind::linear;
  AxisRange range = {};
  double start = 0.0;
  double end = 1.0;
};

/// A mark on an axis; a minor one has no text.
struct AxisTick {
  double value = 0.0;
  std::string text = {};
  bool minor = false;
};

/// Whether a value has a place on an axis of that kind: it is finite, and above 0 if the axis is logarithmic.
bool placeable(ScaleKind kind, double value);

/// The position of a placeable value; it may be outside `start` to `end`, but is always finite.
double position(const AxisScale& scale, double value);

/// A range that can be drawn: ordered, not empty, and within the limits of the kind of axis.
/// A single value becomes a range around it; a range whose ends cannot be placed becomes 0 to 1, or 1 to 10.
AxisRange drawable(ScaleKind kind, AxisRange range);

/// `range` with both ends moved outwards by the fraction `margin` of its length, as measured on the axis.
AxisRange widened(ScaleKind kind, AxisRange range, double margin);

/// The marks within `range`: about `count` with text at round values, and on a logarithmic axis minor ones between.
std::vector<AxisTick> ticks(ScaleKind kind, AxisRange range, NumberStyle style, int count);

/// One value on its own, to three significant digits.
std::string number_text(double value, NumberStyle style);

}  // namespace assay::draw
