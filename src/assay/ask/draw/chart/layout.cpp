#include "assay/ask/draw/chart/layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/ask/draw/chart/text.h"
#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

// Smaller drawings could not hold their own labels.
constexpr double least_width = 320.0;
constexpr double least_plot_height = 140.0;
constexpr double least_width_for_end_labels = 480.0;
constexpr std::size_t most_end_labels = 4;

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool marked_low = false;  // a marker sits at this end and must not be cut by the frame
  bool marked_high = false;

  void include(double value, bool marked) {
    if (value <= low) marked_low = marked || (value == low && marked_low);
    if (value >= high) marked_high = marked || (value == high && marked_high);
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

void add_unit(const ChartAxis& axis, std::vector<AxisTick>& marks) {
  if (!has_unit_at_numbers(axis)) return;
  for (AxisTick& tick : marks)
    if (!tick.text.empty()) tick.text = value_text(tick.value, axis);
}

Extent data_extent(const Chart& chart, Orientation across) {
  const bool along_x = across == Orientation::vertical;
  const ScaleKind kind = along_x ? chart.x.scale : chart.y.scale;
  Extent extent;
  const auto include = [&](double x, double y, bool marked) {
    if (placeable(chart.x.scale, x) && placeable(chart.y.scale, y)) extent.include(along_x ? x : y, marked);
  };
  for (const ChartSeries& series : chart.series) {
    for (const PlotPoint& point : series.points) include(point.x, point.y, series.style == SeriesStyle::markers);
  }
  for (const NamedPoint& point : chart.points) include(point.x, point.y, true);
  for (const ReferenceLine& line : chart.lines) {
    if (line.orientation == across && placeable(kind, line.at)) extent.include(line.at, true);
  }
  if (extent.low > extent.high && along_x) {
    for (const ChartRegion& region : chart.regions) {
      if (placeable(kind, region.from)) extent.include(region.from, false);
      if (placeable(kind, region.to)) extent.include(region.to, false);
    }
  }
  return extent;
}

double width_of_texts(const std::vector<AxisTick>& marks, double size) {
  double width = 0.0;
  for (const AxisTick& tick : marks) width = std::max(width, text_width(tick.text, size));
  return width;
}

void take_text(AxisTick& tick) {
  tick.text.clear();
  tick.minor = true;
}

// Removes the text of every second, third, ... labelled tick until the rest does not run together.
void thin_out(std::vector<AxisTick>& marks, const AxisScale& scale, double size) {
  constexpr double gap = 10.0;
  const auto crowded = [&] {
    double end = -std::numeric_limits<double>::infinity();
    for (const AxisTick& tick : marks) {
      if (tick.text.empty()) continue;
      const double half = text_width(tick.text, size) / 2.0;
      const double place = position(scale, tick.value);
      if (place - half < end + gap) return true;
      end = place + half;
    }
    return false;
  };
  // Without 2 and 5 the powers of ten still make an even scale.
  if (scale.kind == ScaleKind::log && crowded()) {
    for (AxisTick& tick : marks) {
      const double power = std::log10(tick.value);
      if (scale.range.to / scale.range.from >= 10.0 && std::abs(power - std::round(power)) > 1e-9) take_text(tick);
    }
  }
  while (crowded()) {
    bool keep = true;
    for (AxisTick& tick : marks) {
      if (tick.text.empty()) continue;
      if (!keep) take_text(tick);
      keep = !keep;
    }
  }
}

// Builds a layout from the top and the bottom of the drawing inwards.
class LayoutBuilder {
 public:
  LayoutBuilder(const Chart& chart, const ChartMetrics& metrics) : chart_(chart), metrics_(metrics) {}

  ChartLayout build() {
    layout_.width = std::isfinite(chart_.width) ? std::max(chart_.width, least_width) : least_width;
    layout_.height = std::isfinite(chart_.height) ? chart_.height : least_plot_height;
    layout_.x = {chart_.x.scale, shown_range(chart_, Orientation::vertical)};
    layout_.y = {chart_.y.scale, shown_range(chart_, Orientation::horizontal)};
    top_ = metrics_.margin;
    stack(layout_.title, chart_.title, metrics_.title_size, 2, true);
    if (!chart_.title.empty() && !chart_.subtitle.empty()) top_ += 2.0;
    stack(layout_.subtitle, chart_.subtitle, metrics_.subtitle_size, 3, false);
    if (top_ > metrics_.margin) top_ += 12.0;
    layout_.legend = chart_.series.size() > most_end_labels || layout_.width < least_width_for_end_labels;
    if (layout_.legend) place_legend();
    place_sides();
    place_top_names();
    place_bottom();
    if (!layout_.legend) place_end_labels();
    return layout_;
  }

 private:
  void stack(std::vector<PlacedText>& texts, const std::string& text, double size, std::size_t max_lines, bool bold) {
    const double room = layout_.width - 2.0 * metrics_.margin;
    for (std::string& line : wrapped(text, size, room, max_lines, bold)) {
      top_ += ChartMetrics::line_height(size);
      texts.push_back({{metrics_.margin, top_ - 0.35 * size}, std::move(line)});
    }
  }

  void place_legend() {
    constexpr double column_gap = 22.0;
    const double room = layout_.width - 2.0 * metrics_.margin;
    const double key = metrics_.key_width + metrics_.key_gap;
    double widest = 0.0;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      widest = std::max(widest, text_width(series_text(chart_, i), metrics_.text_size));
    }
    widest = std::min(widest, std::min(320.0, room - key));
    const double column = key + widest + column_gap;
    const std::size_t fitting = std::max<std::size_t>(1, static_cast<std::size_t>((room + column_gap) / column));
    // Rows of equal length look better than a full row and a remainder.
    const std::size_t rows = (chart_.series.size() + fitting - 1) / fitting;
    const std::size_t columns = rows == 0 ? 1 : (chart_.series.size() + rows - 1) / rows;
    const double row_height = ChartMetrics::line_height(metrics_.text_size) + 3.0;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const double x = metrics_.margin + static_cast<double>(i % columns) * column;
      const double y = top_ + (static_cast<double>(i / columns) + 0.5) * row_height;
      layout_.keys.push_back({i, {x, y}, {shortened(series_text(chart_, i), metrics_.text_size, widest)}});
    }
    top_ += static_cast<double>(rows) * row_height + (rows > 0 ? 12.0 : 0.0);
  }

  double bottom_height() {
    double height = ChartMetrics::line_height(metrics_.text_size) + 8.0;
    if (!axis_title(chart_.x).empty()) height += ChartMetrics::line_height(metrics_.text_size) + 6.0;
    const double room = layout_.width - 2.0 * metrics_.margin;
    footnote_ = wrapped(chart_.footnote, metrics_.footnote_size, room, 4);
    if (!footnote_.empty()) {
      height += 12.0 + static_cast<double>(footnote_.size()) * ChartMetrics::line_height(metrics_.footnote_size);
    }
    return height + 18.0;
  }

  void place_sides() {
    const double plot_height = std::max(layout_.height - top_ - y_title_height - bottom_height(), least_plot_height);
    layout_.y_ticks = ticks(layout_.y.kind, layout_.y.range, chart_.y.numbers, static_cast<int>(plot_height / 46.0));
    add_unit(chart_.y, layout_.y_ticks);
    const double widest = 0.25 * layout_.width;
    for (AxisTick& tick : layout_.y_ticks) tick.text = shortened(tick.text, metrics_.text_size, widest);
    layout_.frame.left = metrics_.margin + std::max(width_of_texts(layout_.y_ticks, metrics_.text_size), 12.0) + 9.0;

    double right = metrics_.margin;
    if (!layout_.legend) {
      const double most = 0.26 * layout_.width;
      for (std::size_t i = 0; i < chart_.series.size(); ++i) {
        if (chart_.series[i].name.empty()) continue;
        SeriesKey key = {i, {}, wrapped(series_text(chart_, i), metrics_.text_size, most, 3)};
        double name = 0.0;
        for (const std::string& line : key.lines) name = std::max(name, text_width(line, metrics_.text_size));
        right = std::max(right, end_gap + metrics_.key_width + metrics_.key_gap + name + 0.75 * metrics_.margin);
        layout_.keys.push_back(std::move(key));
      }
    }
    layout_.frame.right = layout_.width - right;
    layout_.x.start = layout_.frame.left;
    layout_.x.end = layout_.frame.right;
    const int count = static_cast<int>((layout_.frame.right - layout_.frame.left) / 84.0);
    layout_.x_ticks = ticks(layout_.x.kind, layout_.x.range, chart_.x.numbers, std::max(count, 2));
    add_unit(chart_.x, layout_.x_ticks);
    thin_out(layout_.x_ticks, layout_.x, metrics_.text_size);
  }

  void place_top_names() {
    const AxisRange room = {metrics_.margin / 2.0, layout_.width - metrics_.margin / 2.0};
    layout_.top = top_names(chart_, layout_.x, room, metrics_.text_size);
    const double rows = static_cast<double>(layout_.top.rows) * layout_.top_row_height;
    const double room_for_title = layout_.width - 2.0 * metrics_.margin;
    layout_.y_title.text = shortened(axis_title(chart_.y), metrics_.text_size, room_for_title);
    const double title_height = layout_.y_title.text.empty() ? 6.0 : y_title_height;
    if (y_title_is_clear()) {
      top_ += std::max(rows, title_height);
      layout_.y_title.at = {metrics_.margin, top_ - 9.0};
    } else {
      layout_.y_title.at = {metrics_.margin, top_ + title_height - 9.0};
      top_ += rows + title_height;
    }
    if (layout_.top.strip) top_ += layout_.top_row_height;
  }

  // Whether the title of the y axis can share a row with the names above the plot.
  bool y_title_is_clear() const {
    constexpr double gap = 16.0;
    const double end = metrics_.margin + text_width(layout_.y_title.text, metrics_.text_size) + gap;
    for (const TopName& name : layout_.top.names) {
      if (name.row > 0 && name.middle - text_width(name.text, metrics_.text_size) / 2.0 < end) return false;
    }
    return true;
  }

  void place_bottom() {
    layout_.frame.top = top_ + 1.0;
    layout_.frame.bottom = std::max(layout_.height - bottom_height(), layout_.frame.top + least_plot_height);
    layout_.height = layout_.frame.bottom + bottom_height();
    layout_.y.start = layout_.frame.bottom;
    layout_.y.end = layout_.frame.top;
    double y = layout_.frame.bottom + 8.0 + ChartMetrics::line_height(metrics_.text_size);
    if (const std::string text = axis_title(chart_.x); !text.empty()) {
      y += 6.0 + ChartMetrics::line_height(metrics_.text_size);
      const double middle = (layout_.frame.left + layout_.frame.right) / 2.0;
      const double room = 2.0 * (std::min(middle, layout_.width - middle) - metrics_.margin);
      layout_.x_title = {{middle, y - 5.0}, shortened(text, metrics_.text_size, room)};
    }
    y += 12.0;
    for (std::string& line : footnote_) {
      y += ChartMetrics::line_height(metrics_.footnote_size);
      layout_.footnote.push_back({{metrics_.margin, y - 4.0}, std::move(line)});
    }
  }

  double end_height(const SeriesKey& key) const {
    return static_cast<double>(std::max<std::size_t>(key.lines.size(), 1)) * line() + 4.0;
  }

  double line() const { return ChartMetrics::line_height(metrics_.text_size) - 2.0; }

  void place_end_labels() {
    for (SeriesKey& key : layout_.keys) {
      key.at = {layout_.frame.right + end_gap, layout_.frame.bottom};
      double furthest = layout_.frame.left - 1.0;
      for (const CurveRun& run : traced(chart_.series[key.series].points, layout_.x, layout_.y, false)) {
        for (const CurveRun& part : clipped(run, layout_.frame)) {
          if (part.back().x >= furthest) key.at.y = part.back().y;
          furthest = std::max(furthest, part.back().x);
        }
      }
    }
    std::stable_sort(layout_.keys.begin(), layout_.keys.end(),
                     [](const SeriesKey& a, const SeriesKey& b) { return a.at.y < b.at.y; });
    spread_keys();
  }

  // Moves neighbours that overlap apart by the same amount, then pushes all back between the ends of the frame.
  void spread_keys() {
    std::vector<SeriesKey>& keys = layout_.keys;
    const auto centre = [&](std::size_t i) { return keys[i].at.y + (end_height(keys[i]) - 4.0 - line()) / 2.0; };
    const auto overlap = [&](std::size_t i) {
      return centre(i) + (end_height(keys[i]) + end_height(keys[i + 1])) / 2.0 - centre(i + 1);
    };
    for (int pass = 0; pass < 50; ++pass) {
      for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
        const double excess = overlap(i);
        if (excess <= 0.0) continue;
        keys[i].at.y -= excess / 2.0;
        keys[i + 1].at.y += excess / 2.0;
      }
    }
    double floor = layout_.frame.bottom;
    for (std::size_t i = keys.size(); i-- > 0;) {
      keys[i].at.y = std::min(keys[i].at.y, floor - end_height(keys[i]) + 4.0 + line() / 2.0);
      floor = keys[i].at.y - line() / 2.0;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const double least = i == 0 ? layout_.frame.top + line() / 2.0 : keys[i - 1].at.y + end_height(keys[i - 1]);
      keys[i].at.y = std::max(keys[i].at.y, least);
    }
  }

  static constexpr double end_gap = 14.0;
  static constexpr double y_title_height = 24.0;

  const Chart& chart_;
  const ChartMetrics& metrics_;
  ChartLayout layout_;
  double top_ = 0.0;
  std::vector<std::string> footnote_;
};

}  // namespace

AxisRange shown_range(const Chart& chart, Orientation across) {
  const bool along_x = across == Orientation::vertical;
  const ChartAxis& axis = along_x ? chart.x : chart.y;
  if (axis.range && placeable(axis.scale, axis.range->from) && placeable(axis.scale, axis.range->to)) {
    return drawable(axis.scale, *axis.range);
  }
  const Extent extent = data_extent(chart, across);
  AxisRange range = drawable(axis.scale, {extent.low, extent.high});
  if (extent.low > extent.high) return range;
  constexpr double margin = 0.06;
  const AxisRange roomy = widened(axis.scale, range, margin);
  if (along_x) {
    const bool starts_near_zero = axis.scale == ScaleKind::linear && range.from > 0.0 && range.from < 0.05 * range.to;
    if (starts_near_zero) range.from = 0.0;
    return {extent.marked_low && !starts_near_zero ? roomy.from : range.from, extent.marked_high ? roomy.to : range.to};
  }
  // Amounts are compared by their height above 0, unless their differences would be too small to see.
  const bool from_zero = axis.scale == ScaleKind::linear && range.from >= 0.0 && range.from < 0.6 * range.to;
  return {from_zero ? 0.0 : roomy.from, roomy.to};
}

ChartLayout chart_layout(const Chart& chart, const ChartMetrics& metrics) {
  return LayoutBuilder(chart, metrics).build();
}

}  // namespace assay::draw
