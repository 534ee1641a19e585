#include "assay/ask/draw/timeline/timeline_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/ask/draw/chart/axis.h"
#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/page.h"
#include "assay/ask/draw/timeline/lane_shares.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr double plot_width = 860.0;
constexpr double bar_text_size = 11.0;
constexpr double widest_name = 220.0;
constexpr double thin = 1.0;  // a bar below one pixel cannot be told from its neighbour

/// A unit in which the whole duration is between 1 and 1000.
std::pair<Seconds, std::string_view> time_unit(Seconds end) {
  if (end < 1_us) return {1_ns, "ns"};
  if (end < 1_ms) return {1_us, "\u00b5s"};
  if (end < 1_s) return {1_ms, "ms"};
  return {1_s, "s"};
}

using Classes = std::vector<TimelineClass>;

/// A class of bars as it is filled.
Paint fill_of(const Classes& classes, int colour_class, double opacity) {
  const bool is_known = colour_class >= 0 && static_cast<std::size_t>(colour_class) < classes.size();
  const TimelineClass* known = is_known ? &classes[static_cast<std::size_t>(colour_class)] : nullptr;
  return {.fill = known && known->colour != ColourRole::none ? known->colour : series_colour(colour_class + 1),
          .fill_opacity = std::min(1.0, opacity * (known ? known->strength : 1.0))};
}

Paint class_paint(const Classes& classes, int colour_class) {
  Paint paint = fill_of(classes, colour_class, 0.24);
  paint.stroke = paint.fill;
  paint.stroke_width = 1.3;
  paint.dash = static_cast<Dash>(((colour_class % 9) + 9) % 9);
  return paint;
}

Paint column_paint(const Classes& classes, int colour_class) { return fill_of(classes, colour_class, 0.6); }

/// Bars of one lane that are drawn as one shape.
struct Run {
  double from = 0.0, to = 0.0;
  double covered = 0.0;
  std::size_t count = 0;
  const TimelineBar* bar = nullptr;  ///< the longest of them
  bool is_mixed = false;             ///< of several classes
};

/// Bars by time; bars thinner than a pixel join what ends within a pixel before them.
std::vector<Run> runs_of(std::vector<const TimelineBar*> bars, double pixels_per_second) {
  std::stable_sort(bars.begin(), bars.end(),
                   [](const TimelineBar* a, const TimelineBar* b) { return a->start < b->start; });
  std::vector<Run> runs;
  for (const TimelineBar* bar : bars) {
    const double from = bar->start.value() * pixels_per_second, to = bar->end.value() * pixels_per_second;
    if (!std::isfinite(from) || !std::isfinite(to) || to < from) continue;
    Run* last = runs.empty() ? nullptr : &runs.back();
    const bool joins = last && from - last->to < thin && to - from < thin && last->to - last->from < 8.0 * thin &&
                       (last->count > 1 || last->to - last->from < thin);
    if (!joins) {
      runs.push_back({from, to, to - from, 1, bar});
      continue;
    }
    last->is_mixed = last->is_mixed || bar->colour_class != last->bar->colour_class;
    if (bar->end - bar->start > last->bar->end - last->bar->start) last->bar = bar;
    last->to = std::max(last->to, to);
    last->covered += to - from;
    ++last->count;
  }
  return runs;
}

std::string span_text(const TimelineBar& bar) {
  return fmt::format("{}, {} to {}", human(bar.end - bar.start), human(bar.start), human(bar.end));
}

void draw_run(Sketch& sketch, const Run& run, const Rectangle& row, const std::string& lane, const Classes& classes) {
  Paint paint = class_paint(classes, run.bar->colour_class);
  const double top = row.y, height = row.height;
  const double width = std::max(run.to - run.from, 0.6);
  if (width < 6.0) {  // an outline would hide what is inside
    paint.fill_opacity = run.count > 1 ? std::clamp(0.6 * run.covered / width, 0.12, 0.6) : 0.5;
    paint.stroke = ColourRole::none;
  }
  const std::string tooltip = run.count == 1
                                  ? fmt::format("{}: {}, {}", lane, run.bar->label, span_text(*run.bar))
                                  : fmt::format("{}: {} bars, the longest {}", lane, run.count, run.bar->label);
  sketch.add(Rectangle{run.from, top, width, height, width < 6.0 ? 0.0 : 2.0, paint}, tooltip);
  if (run.count > 1 || height < bar_text_size + 2.0 || run.bar->label.empty()) return;
  if (text_width(run.bar->label, bar_text_size) + 6.0 <= width)
    sketch.add(Label{{run.from + width / 2.0, top + height / 2.0 + 0.35 * bar_text_size},
                     run.bar->label,
                     bar_text_size,
                     Anchor::middle},
               tooltip);
}

/// Above so many shapes nobody tells bars apart, and the picture takes hundreds of kilobytes.
constexpr std::size_t most_runs = 900;
/// Above such a share of the time, shapes that stand for bars of several classes would hide some of them.
constexpr double most_mixed = 0.2;

using LaneBars = std::vector<std::vector<const TimelineBar*>>;

/// Whether bars cannot be told apart, or lanes stand for several resources.
bool needs_columns(const Timeline& timeline, const std::vector<std::int64_t>& lanes, const LaneBars& bars,
                   double pixels_per_second) {
  std::size_t shapes = 0;
  double covered = 0.0, mixed = 0.0;
  for (const std::int64_t number : lanes) {
    const auto lane = static_cast<std::size_t>(number);
    if (timeline.lanes[lane].members > 1.0) return true;
    for (const Run& run : runs_of(bars[lane], pixels_per_second)) {
      ++shapes;
      covered += run.covered;
      if (run.is_mixed) mixed += run.covered;
    }
  }
  return shapes > most_runs || mixed > most_mixed * covered;
}

/// A lane in columns.
struct LaneColumns {
  LaneShares shares;
  std::vector<ShareArea> areas;
};

/// As many columns for every lane as a picture of moderate size can show.
std::vector<LaneColumns> columns_of(const Timeline& timeline, const std::vector<std::int64_t>& lanes,
                                    const LaneBars& bars, std::size_t& columns) {
  constexpr std::size_t most_corners = 9000, fewest = 50;
  for (;; columns /= 2) {
    std::vector<LaneColumns> all;
    std::size_t corners = 0;
    for (const std::int64_t number : lanes) {
      const auto lane = static_cast<std::size_t>(number);
      LaneColumns one{lane_shares(bars[lane], timeline_end(timeline), columns, timeline.lanes[lane].members), {}};
      one.areas = share_areas(one.shares);
      for (const ShareArea& area : one.areas) corners += area.outline.size() + 4;
      all.push_back(std::move(one));
    }
    if (corners <= most_corners || columns / 2 < fewest) return all;
  }
}

/// Columns of a lane: in each the classes are stacked by their share of its time.
void draw_columns(Sketch& sketch, const LaneColumns& of, const TimelineLane& lane, const Classes& classes,
                  const Rectangle& box) {
  const LaneShares& shares = of.shares;
  std::string tooltip = lane.name + ":";
  double column = 1.0;
  for (std::size_t i = 0; i < shares.whole.size(); ++i) {
    if (!shares.by_class[i].empty()) column = box.width / static_cast<double>(shares.by_class[i].size());
    if (shares.whole[i] > 0.0)
      tooltip += fmt::format(" {} {:.0f} %,", i < classes.size() ? classes[i].name : std::string("other"),
                             100.0 * shares.whole[i]);
  }
  tooltip += " of the time";
  for (const ShareArea& area : of.areas) {
    Polygon shape{{}, column_paint(classes, static_cast<int>(area.colour_class))};
    for (const PlotPoint& corner : area.outline)
      shape.points.push_back({box.x + column * corner.x, box.y + box.height * (1.0 - corner.y)});
    sketch.add(std::move(shape), tooltip);
  }
}

void draw_time_axis(Sketch& sketch, Seconds end, double bottom) {
  const auto [unit, name] = time_unit(end);
  const Paint grid{.stroke = ColourRole::grid};
  for (const AxisTick& tick : ticks(ScaleKind::linear, {0.0, end.in(unit)}, NumberStyle::compact, 8)) {
    const double x = plot_width * tick.value / end.in(unit);
    sketch.line({x, 0.0}, {x, bottom + 5.0}, grid);
    sketch.add(Label{{x, bottom + 19.0}, tick.text, picture_text_size, Anchor::middle, ColourRole::muted});
  }
  sketch.add(
      Label{{plot_width / 2.0, bottom + 38.0}, fmt::format("time [{}]", name), picture_text_size, Anchor::middle});
}

/// Marks are dashed lines with their names above the lanes, in as many rows as it takes to keep them apart.
void draw_marks(Sketch& sketch, const Timeline& timeline, Seconds end, double bottom) {
  std::vector<TimelineMark> marks = timeline.marks;
  std::stable_sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.at > b.at; });
  std::vector<double> left_end;  // of each row, filled from the right
  for (const TimelineMark& mark : marks) {
    const double x = plot_width * (mark.at / end);
    const std::string text = fmt::format("{}, {}", mark.label, human(mark.at));
    const double width = text_width(text, picture_text_size);
    const bool fits_left = x - width > 0.0;
    const double left = fits_left ? x - width : x;
    std::size_t row = 0;
    while (row < left_end.size() && left + width + 6.0 > left_end[row]) ++row;
    if (row == left_end.size()) left_end.push_back(0.0);
    left_end[row] = left;
    const double y = -8.0 - 17.0 * static_cast<double>(row);
    sketch.line({x, y + 3.0}, {x, bottom}, {.stroke = ColourRole::ink, .stroke_width = 1.3, .dash = Dash::dashed});
    sketch.add(
        Label{{x + (fits_left ? 3.0 : 0.0), y}, text, picture_text_size, fits_left ? Anchor::end : Anchor::start});
  }
}

Sketch key_of(const Timeline& timeline, double width, bool in_columns) {
  Sketch key;
  std::vector<bool> used(timeline.classes.size());
  for (const TimelineBar& bar : timeline.bars)
    if (bar.colour_class >= 0 && static_cast<std::size_t>(bar.colour_class) < used.size())
      used[static_cast<std::size_t>(bar.colour_class)] = true;
  double x = 0.0, y = 0.0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const double needed = 32.0 + text_width(timeline.classes[i].name, picture_text_size);
    if (x > 0.0 && x + needed > width) {
      x = 0.0;
      y += 20.0;
    }
    key.add(Rectangle{x, y - 6.5, 22.0, 13.0, 2.0,
                      in_columns ? column_paint(timeline.classes, static_cast<int>(i))
                                 : class_paint(timeline.classes, static_cast<int>(i))});
    key.add(Label{{x + 29.0, y + 0.35 * picture_text_size},
                  timeline.classes[i].name,
                  picture_text_size,
                  Anchor::start,
                  ColourRole::muted});
    x += needed + 18.0;
  }
  return key;
}

std::string description_of(const Timeline& timeline) {
  std::string text =
      fmt::format("{} bars on {} lanes over {}.", human_count(static_cast<std::int64_t>(timeline.bars.size())),
                  human_count(static_cast<std::int64_t>(timeline.lanes.size())), human(timeline_end(timeline)));
  for (const TimelineMark& mark : timeline.marks) text += fmt::format(" {}: {}.", mark.label, human(mark.at));
  return text;
}

}  // namespace

Seconds timeline_end(const Timeline& timeline) {
  Seconds end;
  for (const TimelineBar& bar : timeline.bars)
    if (std::isfinite(bar.end.value())) end = std::max(end, bar.end);
  for (const TimelineMark& mark : timeline.marks)
    if (std::isfinite(mark.at.value())) end = std::max(end, mark.at);
  return end;
}

Scene draw_timeline(const Timeline& timeline) {
  const Seconds last = timeline_end(timeline);
  const Seconds end = last > Seconds(0) ? last : 1_s;
  const RowSlots rows = row_slots(static_cast<std::int64_t>(timeline.lanes.size()), 64, 44, 8);
  const double pitch = rows.size() <= 16 ? 26.0 : rows.size() <= 32 ? 20.0 : 16.0;
  const double bar_height = pitch - 5.0;
  const double bottom = (rows.length() + 1.0) * pitch;

  LaneBars bars(timeline.lanes.size());
  for (const TimelineBar& bar : timeline.bars)
    if (bar.lane < bars.size()) bars[bar.lane].push_back(&bar);

  const bool in_columns = needs_columns(timeline, rows.index, bars, plot_width / end.value());
  std::size_t columns = rows.size() <= 16 ? 215 : 107;
  std::vector<LaneColumns> in_lanes;
  if (in_columns) in_lanes = columns_of(timeline, rows.index, bars, columns);

  Sketch plot;
  draw_time_axis(plot, end, bottom);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto lane = static_cast<std::size_t>(rows.index[i]);
    const double top = rows.place[i] * pitch + 2.5;
    const std::string& name = timeline.lanes[lane].name;
    plot.line({0.0, top + bar_height + 2.5}, {plot_width, top + bar_height + 2.5}, {.stroke = ColourRole::grid});
    if (in_columns)
      draw_columns(plot, in_lanes[i], timeline.lanes[lane], timeline.classes,
                   {.x = 0.0, .y = top, .width = plot_width, .height = bar_height});
    else
      for (const Run& run : runs_of(bars[lane], plot_width / end.value()))
        draw_run(plot, run, {.x = 0.0, .y = top, .width = plot_width, .height = bar_height}, name, timeline.classes);
    plot.add(Label{{-10.0, top + bar_height / 2.0 + 0.35 * picture_text_size},
                   shortened(name, picture_text_size, widest_name),
                   picture_text_size,
                   Anchor::end});
    if (rows.broken() && i + 1 == rows.head)
      plot.add(Label{{-10.0, (rows.place[i] + rows.place[i + 1] + 1.0) / 2.0 * pitch + 0.35 * picture_text_size},
                     fmt::format("\u2026 {} more", timeline.lanes.size() - rows.size()),
                     picture_text_size,
                     Anchor::end,
                     ColourRole::muted});
  }
  draw_marks(plot, timeline, end, bottom);

  const double width = plot.bounds().width();
  Page page(width);
  page.text(timeline.title, picture_title_size, ColourRole::ink, true);
  if (!timeline.subtitle.empty()) page.text(timeline.subtitle, 13.0);
  page.space(16.0);
  page.add(plot);
  page.space(24.0);
  if (const Sketch key = key_of(timeline, width, in_columns); !key.empty()) {
    page.add(key, key.bounds().left);
    page.space(12.0);
  }
  if (in_columns)
    page.text(fmt::format("a column is {}: heights show which share of it each kind takes, white is idle",
                          human(end / static_cast<double>(columns))),
              picture_text_size);
  for (const std::string& note : timeline.notes) page.text(note, picture_text_size);
  return page.scene(timeline.title, description_of(timeline), page.drawn());
}

}  // namespace assay::draw
