// Timelines: what happens when on which resource, as a picture (a Gantt chart) and as a Chrome trace.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/base/units.h"

namespace assay::draw {

/// A resource that does one thing at a time: a link, a device, a stage of a pipeline.
struct TimelineLane {
  std::string name = {};
  double members = 1;  ///< alike resources that it stands for, whose bars it has
};

/// One activity of a lane. Bars of a class look alike.
struct TimelineBar {
  std::size_t lane = 0;
  Seconds start = {};
  Seconds end = {};
  std::string label = {};
  int colour_class = 0;                         ///< index into `classes`
  std::optional<Seconds> alone = std::nullopt;  ///< of the whole activity, if nothing else ran at the same time
};

/// Bars that look alike. Classes of one colour differ in strength: the phases of one kind of work.
struct TimelineClass {
  std::string name;
  ColourRole colour;  ///< none: the next of the series
  double strength;    ///< of the colour, 1 for most
  TimelineClass(std::string of, ColourRole in = ColourRole::none, double how = 1.0)
      : name(std::move(of)), colour(in), strength(how) {}
  TimelineClass(const char* of) : TimelineClass(std::string(of)) {}
};

/// A notable moment across all lanes.
struct TimelineMark {
  Seconds at = {};
  std::string label = {};
};

/// A number that changes over time; trace viewers draw it.
struct TimelineCounter {
  struct Point {
    Seconds at = {};
    double value = 0;
  };
  std::string name = {};
  std::vector<Point> points = {};
};

/// Bars may come in any order and number: bars too thin to see are drawn together.
struct Timeline {
  std::string title = {};
  std::string subtitle = {};
  std::vector<TimelineLane> lanes = {};
  std::vector<TimelineBar> bars = {};
  std::vector<TimelineClass> classes = {};
  std::vector<TimelineMark> marks = {};
  std::vector<TimelineCounter> counters = {};  ///< in traces only
  std::vector<std::string> notes = {};         ///< below the picture
};

/// The last end of a bar or place of a mark.
Seconds timeline_end(const Timeline& timeline);

/// The picture: one row per lane from the top, time from left to right in a fitting unit. Neighbouring bars thinner
/// than a pixel share one shape. Where bars are still too many, where those that would share shapes are of several
/// classes, or where lanes stand for several resources, columns show which share of the time each class takes. With
/// very many lanes the middle ones are omitted, and the picture says how many. Bars with a lane that does not exist are
/// ignored.
Scene draw_timeline(const Timeline& timeline);

/// The same bars in the Chrome trace event format for trace viewers: one thread per lane, times in microseconds.
std::string chrome_trace_json(const Timeline& timeline);

}  // namespace assay::draw
