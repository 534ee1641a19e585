#include "assay/ask/draw/topology/switched_sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/topology/torus_sketch.h"
#include "assay/base/text.h"

namespace assay::draw {
namespace {

constexpr double box_padding = 14.0;
constexpr double chip_side = 22.0;
constexpr double switch_width = 26.0;
constexpr double switch_height = 16.0;
constexpr double name_size = 11.0;
constexpr double fan = 46.0;  // between switches and what hangs below them

ColourRole level_colour(std::size_t level) { return series_colour(static_cast<int>(level) + 1); }

std::string plural(std::string_view name, std::int64_t count) {
  return count == 1 ? std::string(name) : fmt::format("{}s", name);
}

class TreePainter {
 public:
  explicit TreePainter(const hardware::Cluster& cluster) : cluster_(cluster) {}

  Sketch paint() {
    Sketch tree;
    const bool nodes = level(0).name == "node" || level(0).name == "host";  // otherwise a node is one chip
    if (!nodes) add_chip(0.0, 0.0, tree);
    for (std::size_t i = 0; i < cluster_.levels.size(); ++i)
      tree = i == 0 && nodes ? lowest_unit() : unit_above(i, tree);
    const double x = tree.bounds().right + 30.0;
    for (std::size_t i = 0; i < cluster_.levels.size(); ++i) {
      const auto lines = level_text(i);
      const double top = rows_[i] - text_block_height(lines.size()) / 2.0;
      tree.add(Rectangle{x, top - 1.0, 11.0, 11.0, 2.0, {.fill = level_colour(i)}});
      tree.text_block({x + 19.0, top}, lines, Anchor::start);
    }
    return tree;
  }

 private:
  const hardware::Level& level(std::size_t i) const { return cluster_.levels[i]; }

  /// What a unit of level `i` joins: chips, nodes, or units of the level below.
  std::string child_name(std::size_t i) const {
    if (i == 0) return "chip";
    const std::string& below = level(i - 1).name;
    return below == "node" || below == "host" ? below : below + " unit";
  }

  std::vector<std::string> level_text(std::size_t i) const {
    const hardware::Level& here = level(i);
    const std::string child = child_name(i);
    std::vector<std::string> lines = {
        fmt::format("{}: {} {}", here.name, human_count(here.degree), plural(child, here.degree))};
    std::string rate = fmt::format("{} one way per {}", human(here.child_bandwidth), child);
    if (child != "chip") rate += fmt::format(", {} per chip", human(here.chip_bandwidth));
    lines.push_back(rate);
    const std::int64_t each = here.switches / here.units;
    if (here.switches == 0)
      lines.emplace_back(is_direct(i) ? "no switches: a link between every two chips"
                         : is_host(i) ? "over PCIe and the host"
                                      : "switches: not in the catalogue");
    else if (here.units == 1)
      lines.push_back(fmt::format("{} {}", human_count(each), each == 1 ? "switch" : "switches"));
    else
      lines.push_back(fmt::format("{} {} each, {} in all", human_count(each), each == 1 ? "switch" : "switches",
                                  human_count(here.switches)));
    lines.emplace_back(here.in_network_reduction ? "in-network reduction" : "no in-network reduction");
    return lines;
  }

  bool is_host(std::size_t i) const { return i == 0 && level(0).name == "host"; }
  bool is_direct(std::size_t i) const {
    return i == 0 && level(0).name == "node" && cluster_.chip.network.scale_up &&
           cluster_.chip.network.scale_up->kind == "direct";
  }

  /// "node, 1 of 128"
  std::string unit_name(std::size_t i) const {
    return level(i).units == 1 ? level(i).name : fmt::format("{}, 1 of {}", level(i).name, human_count(level(i).units));
  }

  /// Puts a tinted, named box around the existing shapes.
  void enclose(std::size_t i, Sketch& unit) {
    const SketchBounds box = unit.bounds();
    const double top = box.top - box_padding - name_size - 4.0;
    const double width = std::max(box.width(), text_width(unit_name(i), name_size));
    Sketch boxed;
    const Rectangle frame = {box.left - box_padding,         top, width + 2.0 * box_padding,
                             box.bottom + box_padding - top, 8.0, {.fill = ColourRole::surface}};
    boxed.add(frame);  // so that the tints of nested levels do not mix
    boxed.add(Rectangle{frame.x,
                        frame.y,
                        frame.width,
                        frame.height,
                        frame.radius,
                        {.fill = level_colour(i),
                         .fill_opacity = 0.07,
                         .stroke = level_colour(i),
                         .stroke_opacity = 0.7,
                         .stroke_width = 1.0}});
    boxed.add(Label{{box.left - box_padding + 10.0, top + name_size + 4.0},
                    unit_name(i),
                    name_size,
                    Anchor::start,
                    ColourRole::ink});
    boxed.append(unit, 0.0, 0.0);
    unit = std::move(boxed);
  }

  /// The switches of one unit of level `i` in a row around `x`, and lines from each to all `ends`.
  void add_switches(std::size_t i, double x, double y, const std::vector<PlotPoint>& ends, Sketch& unit) {
    rows_.push_back(y);
    const hardware::Level& here = level(i);
    const Paint line = {.stroke = level_colour(i), .stroke_opacity = 0.55, .stroke_width = 1.0};
    const std::int64_t each = here.switches / here.units;
    if (each == 0) {
      const std::string name = is_host(i) ? "PCIe" : here.name + " network";
      const double width = text_width(name, name_size) + 40.0;
      for (const PlotPoint& end : ends)
        unit.line({x + 0.3 * width * std::clamp((end.x - x) / 200.0, -1.0, 1.0), y}, end, line);
      const Paint paint = {.fill = ColourRole::surface,
                           .stroke = level_colour(i),
                           .stroke_width = 1.4,
                           .dash = is_host(i) ? Dash::solid : Dash::short_dashed};
      unit.add(Rectangle{x - width / 2.0, y - 10.0, width, 20.0, 4.0, paint});
      unit.add(Label{{x, y + 0.35 * name_size}, name, name_size, Anchor::middle});
      return;
    }
    const RowSlots slots = row_slots(each, 8, 5, 1);
    constexpr double pitch = switch_width + 8.0;
    const double first = x - pitch * slots.length() / 2.0;
    for (const double place : slots.place)
      for (const PlotPoint& end : ends) unit.line({first + pitch * place, y}, end, line);
    const Paint paint = {.fill = level_colour(i), .stroke = ColourRole::surface, .stroke_width = 1.0};
    for (const double place : slots.place)
      unit.add(Rectangle{first + pitch * place - switch_width / 2.0, y - switch_height / 2.0, switch_width,
                         switch_height, 4.0, paint},
               fmt::format("{} {} switches", human_count(each), here.name));
    if (slots.broken())
      add_dots(first + pitch * (slots.place[slots.head] + slots.place[slots.head - 1]) / 2.0, y, unit);
  }

  static void add_dots(double x, double y, Sketch& unit) {
    for (const double offset : {-6.0, 0.0, 6.0})
      unit.add(Marker{.centre = {x + offset, y}, .radius = 1.5, .paint = {.fill = ColourRole::muted}});
  }

  static void add_chip(double x, double y, Sketch& unit) {
    unit.add(Rectangle{x - chip_side / 2.0, y - chip_side / 2.0, chip_side, chip_side, 4.0, chip_paint()});
  }

  Sketch lowest_unit() {
    Sketch unit;
    if (is_direct(0) && level(0).degree <= 8) {
      add_mesh(unit);
    } else {
      const RowSlots slots = row_slots(level(0).degree, 10, 6, 2);
      const double pitch = slots.size() <= 8 ? 34.0 : 28.0;
      std::vector<PlotPoint> tops;
      for (const double place : slots.place) tops.push_back({pitch * place, 0.0});
      const double middle = pitch * slots.length() / 2.0;
      add_switches(0, middle, -fan - chip_side / 2.0, tops, unit);
      for (const PlotPoint& top : tops) add_chip(top.x, top.y, unit);
      if (slots.broken()) add_dots(pitch * (slots.place[slots.head] + slots.place[slots.head - 1]) / 2.0, 0.0, unit);
    }
    enclose(0, unit);
    return unit;
  }

  /// Chips on a circle, each joined to all others.
  void add_mesh(Sketch& unit) {
    const std::int64_t count = level(0).degree;
    const double radius = count <= 2 ? 30.0 : 62.0;
    std::vector<PlotPoint> places;
    for (std::int64_t i = 0; i < count; ++i) {
      const double angle = std::numbers::pi * (2.0 * static_cast<double>(i) / static_cast<double>(count) +
                                               (count == 2 ? 1.0 : 0.5 + 1.0 / static_cast<double>(count)));
      places.push_back({radius * std::cos(angle), radius * std::sin(angle)});
    }
    const Paint line = {.stroke = level_colour(0), .stroke_opacity = 0.7, .stroke_width = 1.2};
    for (std::size_t i = 0; i < places.size(); ++i)
      for (std::size_t j = i + 1; j < places.size(); ++j) unit.line(places[i], places[j], line);
    for (const PlotPoint& place : places) add_chip(place.x, place.y, unit);
    rows_.push_back(0.0);
  }

  /// The unit of level `i` around the one of its children that is drawn in full.
  Sketch unit_above(std::size_t i, const Sketch& child) {
    Sketch unit;
    const SketchBounds box = child.bounds();
    unit.append(child, 0.0, 0.0);
    std::vector<PlotPoint> ends = {{box.middle_x(), box.top}};
    const std::int64_t siblings = level(i).degree - 1;
    if (siblings > 0) {
      const std::int64_t cards = std::min<std::int64_t>(siblings, 3);
      const std::string count = fmt::format("{} more", human_count(siblings)), kind = plural(child_name(i), siblings);
      const double width =
          std::max({88.0, text_width(count, name_size, true) + 16.0, text_width(kind, name_size) + 16.0});
      const double left = box.right + 26.0, height = 46.0;
      for (std::int64_t card = cards - 1; card >= 0; --card) {
        const double shift = 6.0 * static_cast<double>(card);
        const ColourRole colour = i == 0 ? ColourRole::ink : level_colour(i - 1);
        const double x = left + shift, y = box.top + 6.0 * static_cast<double>(cards - 1 - card);
        unit.add(Rectangle{x, y, width, height, 6.0, {.fill = ColourRole::surface}});
        unit.add(Rectangle{
            x,
            y,
            width,
            height,
            6.0,
            {.fill = colour, .fill_opacity = 0.08, .stroke = colour, .stroke_opacity = 0.7, .stroke_width = 1.0}});
      }
      const double top = box.top + 6.0 * static_cast<double>(cards - 1);
      unit.add(Label{{left + width / 2.0, top + 20.0}, count, name_size, Anchor::middle, ColourRole::ink, true});
      unit.add(Label{{left + width / 2.0, top + 35.0}, kind, name_size, Anchor::middle, ColourRole::muted});
      ends.push_back({left + width / 2.0 + 3.0 * static_cast<double>(cards - 1), box.top});
    }
    add_switches(i, (ends.front().x + ends.back().x) / 2.0, box.top - fan, ends, unit);
    enclose(i, unit);
    return unit;
  }

  const hardware::Cluster& cluster_;
  std::vector<double> rows_;  // the height of each level's switches
};

}  // namespace

Sketch sketch_switched(const hardware::Cluster& cluster) { return TreePainter(cluster).paint(); }

}  // namespace assay::draw
