#include "assay/ask/draw/chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "assay/ask/draw/chart/curve.h"
#include "assay/ask/draw/chart/label_placement.h"
#include "assay/ask/draw/chart/layout.h"
#include "assay/ask/draw/chart/text.h"
#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

constexpr double series_width = 2.0;
constexpr double marker_radius = 3.6;

Paint stroke(ColourRole role, double width, Dash dash = Dash::solid) {
  return {.stroke = role, .stroke_width = width, .dash = dash};
}

int colour_number(const Chart& chart, std::size_t series) {
  const int asked = chart.series[series].colour;
  return asked > 0 ? asked : static_cast<int>(series) + 1;
}

MarkerShape marker_shape(int number) { return static_cast<MarkerShape>((number - 1) % series_colour_count); }

Dash dash_of(const ChartSeries& series, int number) {
  if (series.style != SeriesStyle::dashed) return Dash::solid;
  return static_cast<Dash>(1 + (number - 1) % series_colour_count);
}

bool has_steps(SeriesStyle style) { return style == SeriesStyle::step || style == SeriesStyle::step_area; }

bool has_area(SeriesStyle style) { return style == SeriesStyle::area || style == SeriesStyle::step_area; }

ColourRole region_colour(RegionRole role) {
  switch (role) {
    case RegionRole::bad:
      return ColourRole::bad;
    case RegionRole::partial:
      return ColourRole::partial;
    case RegionRole::good:
      break;
  }
  return ColourRole::good;
}

// Adds the parts of a chart to a scene, from the back to the front.
class ChartPainter {
 public:
  explicit ChartPainter(const Chart& chart) : chart_(chart), layout_(chart_layout(chart, metrics_)) {}

  Scene paint() {
    scene_.width = layout_.width;
    scene_.height = layout_.height;
    scene_.title = chart_.title;
    scene_.description = chart_description(chart_);
    omitted_ = layout_.top.omitted;
    add_regions();
    add_grid();
    add_axes();
    add_texts();
    add_reference_lines();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) trace(i);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) add_area(i);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) add_line(i);
    for (const SeriesKey& key : layout_.keys) add_key(key);
    add_points();
    add_labels();
    add_remarks();
    return std::move(scene_);
  }

 private:
  using Frame = PlotFrame;

  void add_text(const PlacedText& text, double size, ColourRole colour, Anchor anchor = Anchor::start,
                bool bold = false) {
    scene_.add(Label{text.at, text.text, size, anchor, colour, bold});
  }

  void add_segment(PlotPoint from, PlotPoint to, const Paint& paint, std::string tooltip = {}) {
    scene_.add(Polyline{{from, to}, paint}, std::move(tooltip));
  }

  double strip_top() const { return layout_.frame.top - 1.0 - (layout_.top.strip ? layout_.top_row_height : 0.0); }

  double row_middle(const TopName& name) const {
    return strip_top() - (static_cast<double>(name.row) - 0.5) * layout_.top_row_height;
  }

  void add_regions() {
    const Frame& frame = layout_.frame;
    for (const TopName& name : layout_.top.names) {
      if (name.owner != TopNameOwner::region) continue;
      const ChartRegion& region = chart_.regions[name.index];
      const ColourRole colour = region_colour(region.role);
      const double width = name.right - name.left;
      const Paint tint = {.fill = colour, .fill_opacity = 0.4};
      scene_.add(Rectangle{name.left, frame.top, width, frame.bottom - frame.top, 0.0, tint}, region.label);
      if (layout_.top.strip) {
        // The gap of a pixel shows where two regions of one role meet.
        scene_.add(Rectangle{name.left + 0.5, strip_top(), width - 1.0, layout_.top_row_height, 0.0, {.fill = colour}},
                   region.label);
      }
      if (name.row > 0) {
        add_segment({name.centre(), row_middle(name) + 8.0}, {name.centre(), strip_top() + 4.0},
                    stroke(ColourRole::muted, 1.0));
      }
    }
    for (const TopName& name : layout_.top.names) {
      add_text({{name.middle, row_middle(name) + 0.36 * metrics_.text_size}, name.text}, metrics_.text_size,
               ColourRole::ink, Anchor::middle);
    }
  }

  void add_grid() {
    const Frame& frame = layout_.frame;
    for (const bool minor : {true, false}) {
      Paint paint = stroke(ColourRole::grid, minor ? 0.75 : 1.0);
      if (minor) paint.stroke_opacity = 0.55;
      for (const AxisTick& tick : layout_.y_ticks) {
        const double y = position(layout_.y, tick.value);
        if (tick.minor == minor) add_segment({frame.left, y}, {frame.right, y}, paint);
      }
      // Vertical lines help only where decades have to be told apart.
      for (const AxisTick& tick : layout_.x_ticks) {
        const double x = position(layout_.x, tick.value);
        if (tick.minor == minor && layout_.x.kind == ScaleKind::log) {
          add_segment({x, frame.top}, {x, frame.bottom}, paint);
        }
      }
    }
  }

  void add_axes() {
    const Frame& frame = layout_.frame;
    add_segment({frame.left, frame.bottom}, {frame.right, frame.bottom}, stroke(ColourRole::muted, 1.0));
    const AxisRange& range = layout_.y.range;
    if (layout_.y.kind == ScaleKind::linear && range.from < 0.0 && range.to > 0.0) {
      const double zero = position(layout_.y, 0.0);
      add_segment({frame.left, zero}, {frame.right, zero}, stroke(ColourRole::muted, 0.75));
    }
    for (const AxisTick& tick : layout_.y_ticks) {
      const double y = position(layout_.y, tick.value);
      add_text({{frame.left - 9.0, y + 0.35 * metrics_.text_size}, tick.text}, metrics_.text_size, ColourRole::muted,
               Anchor::end);
    }
    for (const AxisTick& tick : layout_.x_ticks) {
      const double x = position(layout_.x, tick.value);
      const double length = tick.minor ? 3.0 : 5.0;
      add_segment({x, frame.bottom}, {x, frame.bottom + length}, stroke(ColourRole::muted, tick.minor ? 0.75 : 1.0));
      const double y = frame.bottom + 8.0 + metrics_.text_size;
      add_text({{x, y}, tick.text}, metrics_.text_size, ColourRole::muted, Anchor::middle);
    }
  }

  void add_texts() {
    for (const PlacedText& line : layout_.title) {
      add_text(line, metrics_.title_size, ColourRole::ink, Anchor::start, true);
    }
    for (const PlacedText& line : layout_.subtitle) add_text(line, metrics_.subtitle_size, ColourRole::muted);
    for (const PlacedText& line : layout_.footnote) add_text(line, metrics_.footnote_size, ColourRole::muted);
    add_text(layout_.x_title, metrics_.text_size, ColourRole::ink, Anchor::middle);
    add_text(layout_.y_title, metrics_.text_size, ColourRole::ink);
  }

  void add_reference_lines() {
    const Frame& frame = layout_.frame;
    const Paint paint = stroke(ColourRole::ink, 1.0, Dash::short_dashed);
    for (const TopName& name : layout_.top.names) {
      if (name.owner != TopNameOwner::line) continue;
      const double top = name.row > 0 ? row_middle(name) + 8.0 : frame.top;
      add_segment({name.left, top}, {name.left, frame.bottom}, paint, chart_.lines[name.index].label);
      obstacles_.lines.push_back({{name.left, frame.top}, {name.left, frame.bottom}});
    }
    for (const ReferenceLine& line : chart_.lines) {
      const bool vertical = line.orientation == Orientation::vertical;
      if (vertical || !placeable(layout_.y.kind, line.at)) continue;
      const double y = position(layout_.y, line.at);
      if (!contains(frame, {frame.left, y})) continue;
      add_segment({frame.left, y}, {frame.right, y}, paint, line.label);
      obstacles_.lines.push_back({{frame.left, y}, {frame.right, y}});
      request_label(line.label, 260.0, [&](double w, double h) { return along_horizontal(y, frame, w, h); });
    }
  }

  void trace(std::size_t i) {
    const ChartSeries& series = chart_.series[i];
    traces_.push_back(traced(series.points, layout_.x, layout_.y, has_steps(series.style)));
    visible_.emplace_back();
    for (const CurveRun& run : traces_.back()) {
      for (CurveRun& part : clipped(run, layout_.frame)) visible_.back().push_back(std::move(part));
    }
  }

  void add_area(std::size_t i) {
    if (!has_area(chart_.series[i].style)) return;
    const AxisRange& range = layout_.y.range;
    const bool from_zero = layout_.y.kind == ScaleKind::linear && range.from <= 0.0;
    const double base = from_zero ? position(layout_.y, std::min(0.0, range.to)) : layout_.frame.bottom;
    const Paint paint = {.fill = series_colour(colour_number(chart_, i)), .fill_opacity = 0.16};
    for (const CurveRun& run : traces_[i])
      scene_.add(Polygon{clipped_area(run, base, layout_.frame), paint}, chart_.series[i].name);
  }

  // Where markers go: on the points if a reader could count them, otherwise at intervals to identify the line.
  std::vector<PlotPoint> marker_places(std::size_t i) const {
    const ChartSeries& series = chart_.series[i];
    constexpr std::size_t countable = 24;
    constexpr std::size_t corners_only = 4;
    constexpr double spacing = 120.0;
    std::vector<PlotPoint> places;
    for (const CurveRun& run : traced(series.points, layout_.x, layout_.y, false)) {
      for (const PlotPoint& point : run) {
        if (contains(layout_.frame, point)) places.push_back(point);
      }
    }
    if (series.style == SeriesStyle::markers) return places;
    if (chart_.series.size() < 2) {
      places.clear();
    } else if (places.size() < corners_only || places.size() > countable || has_steps(series.style)) {
      const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(chart_.series.size());
      places = places_along(visible_[i], spacing, spacing * share);
    }
    // A point between two gaps has no line that would show it.
    for (const CurveRun& part : visible_[i]) {
      if (part.size() == 1) places.push_back(part.front());
    }
    return places;
  }

  Paint marker_paint(int number) const {
    return {.fill = series_colour(number), .stroke = ColourRole::surface, .stroke_width = 1.0};
  }

  void add_line(std::size_t i) {
    const ChartSeries& series = chart_.series[i];
    const int number = colour_number(chart_, i);
    if (series.style != SeriesStyle::markers) {
      const Paint paint = stroke(series_colour(number), series_width, dash_of(series, number));
      for (const CurveRun& part : visible_[i]) {
        if (part.size() < 2) continue;
        scene_.add(Polyline{part, paint}, chart_.series[i].name);
        add_line_obstacles(part);
      }
    }
    const std::vector<PlotPoint> places = marker_places(i);
    if (series.style == SeriesStyle::markers && places.size() > most_markers) return add_density(i, places);
    for (const PlotPoint& place : places) {
      scene_.add(Marker{place, marker_shape(number), marker_radius, marker_paint(number)}, chart_.series[i].name);
      if (series.style == SeriesStyle::markers) add_marker_obstacle(place, marker_radius);
    }
  }

  // Very many markers hide each other: cells show how many there are, the more the darker.
  void add_density(std::size_t i, const std::vector<PlotPoint>& places) {
    constexpr double cell = 6.0, faintest = 0.2;
    std::map<std::pair<int, int>, int> counts;
    int most = 1;
    for (const PlotPoint& place : places)
      most = std::max(most, ++counts[{static_cast<int>(place.y / cell), static_cast<int>(place.x / cell)}]);
    for (const auto& [at, count] : counts) {
      const double share = most > 1 ? std::log(count) / std::log(most) : 1.0;
      scene_.add(Rectangle{.x = cell * at.second,
                           .y = cell * at.first,
                           .width = cell,
                           .height = cell,
                           .paint = {.fill = series_colour(colour_number(chart_, i)),
                                     .fill_opacity = faintest + (1.0 - faintest) * share}},
                 chart_.series[i].name);
    }
  }

  void add_line_obstacles(const CurveRun& part) {
    // Shorter pieces cost time and tell the placement nothing new.
    constexpr double piece = 3.0;
    std::size_t from = 0;
    for (std::size_t i = 1; i < part.size(); ++i) {
      const bool last = i + 1 == part.size();
      if (!last && std::hypot(part[i].x - part[from].x, part[i].y - part[from].y) < piece) continue;
      obstacles_.lines.push_back({part[from], part[i]});
      from = i;
    }
  }

  void add_marker_obstacle(PlotPoint at, double radius) {
    obstacles_.markers.push_back({at.x - radius, at.y - radius, 2.0 * radius, 2.0 * radius});
  }

  void add_key(const SeriesKey& key) {
    const ChartSeries& series = chart_.series[key.series];
    const int number = colour_number(chart_, key.series);
    const ColourRole colour = series_colour(number);
    const auto [x, y] = key.at;
    const bool drawn = !visible_[key.series].empty();
    if (!layout_.legend && drawn) add_connector(key, colour);
    if (has_area(series.style)) {
      const Paint paint = {.fill = colour, .fill_opacity = 0.16};
      scene_.add(Rectangle{.x = x, .y = y, .width = metrics_.key_width, .height = 6.0, .paint = paint}, series.name);
    }
    if (series.style != SeriesStyle::markers) {
      add_segment({x, y}, {x + metrics_.key_width, y}, stroke(colour, series_width, dash_of(series, number)),
                  series.name);
    }
    if (series.style == SeriesStyle::markers || chart_.series.size() > 1) {
      const PlotPoint middle = {x + metrics_.key_width / 2.0, y};
      scene_.add(Marker{middle, marker_shape(number), marker_radius, marker_paint(number)}, series.name);
    }
    PlotPoint at = {x + metrics_.key_width + metrics_.key_gap, y + 0.35 * metrics_.text_size};
    for (const std::string& line : key.lines) {
      add_text({at, line}, metrics_.text_size, drawn ? ColourRole::ink : ColourRole::muted);
      at.y += ChartMetrics::line_height(metrics_.text_size) - 2.0;
    }
  }

  // Joins the end of a line to its name where the line reaches the frame and the name had to move.
  void add_connector(const SeriesKey& key, ColourRole colour) {
    PlotPoint end = visible_[key.series].front().back();
    for (const CurveRun& part : visible_[key.series]) {
      if (part.back().x > end.x) end = part.back();
    }
    if (end.x < layout_.frame.right - 1.0 || std::abs(end.y - key.at.y) < 2.5) return;
    Paint paint = stroke(colour, 1.0);
    paint.stroke_opacity = 0.7;
    add_segment({end.x + 1.0, end.y}, {key.at.x - 1.0, key.at.y}, paint, chart_.series[key.series].name);
  }

  void add_points() {
    constexpr double radius = 4.5;
    for (const NamedPoint& point : chart_.points) {
      if (!placeable(layout_.x.kind, point.x) || !placeable(layout_.y.kind, point.y)) continue;
      const PlotPoint place = {position(layout_.x, point.x), position(layout_.y, point.y)};
      if (!contains(layout_.frame, place)) continue;
      ++shown_points_;
      const ColourRole colour = point.colour > 0 ? series_colour(point.colour) : ColourRole::ink;
      const Paint paint = {.fill = colour, .stroke = ColourRole::surface, .stroke_width = 1.5};
      const std::string values = value_text(point.x, chart_.x) + ", " + value_text(point.y, chart_.y);
      scene_.add(Marker{place, MarkerShape::circle, radius, paint},
                 point.label.empty() ? values : point.label + ": " + values);
      add_marker_obstacle(place, radius);
      request_label(point.label, 180.0, [&](double w, double h) { return around_point(place, w, h); });
    }
  }

  template <class Places>
  void request_label(const std::string& text, double most, const Places& places) {
    std::vector<std::string> lines = wrapped(text, metrics_.text_size, most, 2);
    if (lines.empty()) return;
    double width = 0.0;
    for (const std::string& line : lines) width = std::max(width, text_width(line, metrics_.text_size));
    requests_.push_back(places(width, static_cast<double>(lines.size()) * label_line()));
    label_lines_.push_back(std::move(lines));
  }

  double label_line() const { return 1.25 * metrics_.text_size; }

  void add_labels() {
    const auto placed = place_labels(requests_, obstacles_, layout_.frame);
    for (const auto& label : placed) {
      if (label && label->leader) add_segment(label->leader->from, label->leader->to, stroke(ColourRole::muted, 0.75));
    }
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (!placed[i]) {
        ++omitted_;
        continue;
      }
      const LabelBox& box = placed[i]->box;
      const Anchor anchor = placed[i]->anchor;
      const double share = anchor == Anchor::start ? 0.0 : anchor == Anchor::middle ? 0.5 : 1.0;
      PlotPoint at = {box.x + share * box.width, box.y + 0.98 * metrics_.text_size};
      for (const std::string& line : label_lines_[i]) {
        scene_.add(Label{at, line, metrics_.text_size, anchor, ColourRole::ink, false, true});
        at.y += label_line();
      }
    }
  }

  // Says what is not visible, so that no reader assumes it is absent.
  void add_remarks() {
    bool any = shown_points_ > 0;
    for (const auto& parts : visible_) any = any || !parts.empty();
    if (!any) {
      const Frame& frame = layout_.frame;
      const PlotPoint middle = {(frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0};
      scene_.add(Label{middle, "no data", 12.0, Anchor::middle, ColourRole::muted, false, true});
    }
    if (omitted_ == 0) return;
    const std::string text = fmt::format("{} omitted for lack of space.",
                                         omitted_ == 1 ? "One label was" : fmt::format("{} labels were", omitted_));
    scene_.height += ChartMetrics::line_height(metrics_.footnote_size);
    add_text({{metrics_.margin, scene_.height - 18.0}, text}, metrics_.footnote_size, ColourRole::muted);
  }

  const Chart& chart_;
  ChartMetrics metrics_;
  ChartLayout layout_;
  Scene scene_;
  std::vector<std::vector<CurveRun>> traces_;
  std::vector<std::vector<CurveRun>> visible_;
  Obstacles obstacles_;
  std::vector<std::vector<LabelPlace>> requests_;
  std::vector<std::vector<std::string>> label_lines_;
  int shown_points_ = 0;
  int omitted_ = 0;
};

}  // namespace

Scene draw(const Chart& chart) { return ChartPainter(chart).paint(); }

}  // namespace assay::draw
