#include "assay/ask/draw/chart/label_placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace assay::draw {
namespace {

// Costs are in pixels of distance: a label moves up to 90 px to avoid covering a marker. All were set by eye on the
// sample charts; a cost of 0 ignores the fault, and a cost above `clash` would let labels overlap instead.
constexpr double clash = 1e5;
constexpr double covers_marker = 90.0;
constexpr double beside_foreign_marker = 20.0;
constexpr double covers_line = 45.0;
constexpr double covers_line_per_pixel = 0.6;
constexpr double leader_through_label = 400.0;
constexpr double leader_through_leader = 120.0;
constexpr double leader_through_line = 6.0;
constexpr double leader_through_marker = 60.0;

constexpr double gap_to_line = 2.0;
constexpr double gap_between_labels = 3.0;
constexpr double near_marker = 9.0;  // a marker this close seems to own the name
constexpr double gap_to_frame = 3.0;
constexpr int passes = 4;
constexpr std::size_t most_that_give_way = 50;

LabelBox grown(const LabelBox& box, double by) {
  return {box.x - by, box.y - by, box.width + 2.0 * by, box.height + 2.0 * by};
}

bool touch(const LabelBox& a, const LabelBox& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

double length_inside(const Leader& line, const LabelBox& box) {
  return length_within(line.from, line.to, {box.x, box.y, box.x + box.width, box.y + box.height});
}

double side(PlotPoint a, PlotPoint b, PlotPoint p) { return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x); }

bool cross(const Leader& a, const Leader& b) {
  return side(a.from, a.to, b.from) * side(a.from, a.to, b.to) < 0.0 &&
         side(b.from, b.to, a.from) * side(b.from, b.to, a.to) < 0.0;
}

bool inside(const LabelBox& box, const PlotFrame& frame) {
  return box.x >= frame.left + gap_to_frame && box.x + box.width <= frame.right - gap_to_frame &&
         box.y >= frame.top + gap_to_frame && box.y + box.height <= frame.bottom - gap_to_frame;
}

double fixed_cost(const LabelPlace& place, const Obstacles& obstacles) {
  double cost = place.cost;
  for (const LabelBox& marker : obstacles.markers) {
    if (touch(place.box, marker)) cost += covers_marker;
    const bool own = place.named && touch({place.named->x, place.named->y, 0.0, 0.0}, marker);
    if (!own && touch(grown(place.box, near_marker), marker)) cost += beside_foreign_marker;
    if (place.leader && length_inside(*place.leader, marker) > 0.0) cost += leader_through_marker;
  }
  double covered = 0.0;
  for (const Leader& line : obstacles.lines) {
    covered += length_inside(line, grown(place.box, gap_to_line));
    if (place.leader && cross(*place.leader, line)) cost += leader_through_line;
  }
  if (covered > 0.0) cost += covers_line + covers_line_per_pixel * covered;
  return cost;
}

double mutual_cost(const LabelPlace& a, const LabelPlace& b) {
  double cost = 0.0;
  if (touch(grown(a.box, gap_between_labels), b.box)) cost += clash;
  if (a.leader && length_inside(*a.leader, b.box) > 0.0) cost += leader_through_label;
  if (b.leader && length_inside(*b.leader, a.box) > 0.0) cost += leader_through_label;
  if (a.leader && b.leader && cross(*a.leader, *b.leader)) cost += leader_through_leader;
  return cost;
}

struct Arrangement {
  std::vector<std::optional<LabelPlace>> places;
  double cost = 0.0;
};

// Each label in turn takes its best place among the others, in several passes.
Arrangement arranged(const std::vector<std::vector<LabelPlace>>& usable, const std::vector<std::size_t>& order) {
  std::vector<std::optional<LabelPlace>> chosen(usable.size());
  const auto cost_among_others = [&](std::size_t i, const LabelPlace& place, double limit) {
    double cost = place.cost;
    for (std::size_t j = 0; j < chosen.size() && cost < limit; ++j) {
      if (j != i && chosen[j]) cost += mutual_cost(place, *chosen[j]);
    }
    return cost;
  };
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  // A label that clashes makes the others move in the next pass; among too many that is slow and helps little.
  const bool crowd = usable.size() > most_that_give_way;
  for (int pass = 0; pass < (crowd ? 1 : passes); ++pass) {
    for (const std::size_t i : order) {
      double best = unlimited;
      std::optional<LabelPlace> best_place;
      for (const LabelPlace& place : usable[i]) {
        const double cost = cost_among_others(i, place, best);
        if (cost < best) {
          best = cost;
          best_place = place;
        }
      }
      chosen[i] = crowd && best >= clash ? std::nullopt : best_place;
    }
  }
  double total = 0.0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    total += chosen[i] ? cost_among_others(i, *chosen[i], unlimited) : clash;
  }
  return {std::move(chosen), total};
}

}  // namespace

std::vector<LabelPlace> around_point(PlotPoint point, double width, double height) {
  struct Direction {
    double degrees;  // clockwise from the right
    double slide;    // how far the label is shifted to the right, in its own widths
    double cost;
  };
  // Readers expect a name to the right of its point, then above or below it.
  constexpr std::array<Direction, 18> directions = {{{0, 0, 0},
                                                     {-45, 0, 1},
                                                     {45, 0, 1.5},
                                                     {-90, 0, 3},
                                                     {90, 0, 3.5},
                                                     {-90, 0.25, 3.5},
                                                     {90, 0.25, 4},
                                                     {180, 0, 5},
                                                     {-135, 0, 5.5},
                                                     {135, 0, 6},
                                                     {-22, 0, 2},
                                                     {22, 0, 2.5},
                                                     {-68, 0, 3},
                                                     {68, 0, 3.5},
                                                     {-158, 0, 6.5},
                                                     {158, 0, 7},
                                                     {-90, -0.25, 5},
                                                     {90, -0.25, 5.5}}};
  constexpr std::array<double, 8> distances = {9.0, 15.0, 26.0, 40.0, 58.0, 80.0, 108.0, 140.0};
  constexpr double needs_leader = 12.5;
  constexpr double label_clearance = 6.0;
  std::vector<LabelPlace> places;
  for (const double distance : distances) {
    for (const Direction& direction : directions) {
      const double angle = direction.degrees * std::numbers::pi / 180.0;
      const double c = std::cos(angle);
      const double s = std::sin(angle);
      const PlotPoint near = {point.x + c * distance, point.y + s * distance};
      // The side or corner of the label that faces the point is the one that stands at `near`.
      const double across = c > 0.3 ? 0.0 : c < -0.3 ? 1.0 : 0.5 - direction.slide;
      const double down = s > 0.6 ? 0.0 : s < -0.6 ? 1.0 : 0.5;
      LabelPlace place;
      place.box = {near.x - across * width, near.y - down * height, width, height};
      place.cost = distance - distances[0] + direction.cost;
      place.named = point;
      place.anchor = across < 0.4 ? Anchor::start : across > 0.6 ? Anchor::end : Anchor::middle;
      const PlotPoint end = {std::clamp(point.x, place.box.x, place.box.x + width),
                             std::clamp(point.y, place.box.y, place.box.y + height)};
      const double away = std::hypot(end.x - point.x, end.y - point.y);
      if (away > needs_leader) {
        const auto towards_end = [&](double length) {
          return PlotPoint{point.x + length / away * (end.x - point.x), point.y + length / away * (end.y - point.y)};
        };
        place.leader = Leader{towards_end(label_clearance), towards_end(away - 1.5)};
        place.cost += 6.0;
      }
      places.push_back(place);
    }
  }
  return places;
}

std::vector<LabelPlace> along_horizontal(double y, const PlotFrame& frame, double width, double height) {
  std::vector<LabelPlace> places;
  for (double x = frame.right - 5.0 - width; x > frame.left; x -= std::max(0.25 * width, 12.0)) {
    const double cost = 0.1 * (frame.right - width - x);
    places.push_back({{x, y - 2.0 - height, width, height}, cost, Anchor::end, std::nullopt, std::nullopt});
    places.push_back({{x, y + 3.0, width, height}, cost + 4.0, Anchor::end, std::nullopt, std::nullopt});
  }
  return places;
}

std::vector<std::optional<LabelPlace>> place_labels(const std::vector<std::vector<LabelPlace>>& labels,
                                                    const Obstacles& obstacles, const PlotFrame& frame) {
  std::vector<std::vector<LabelPlace>> usable(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (LabelPlace place : labels[i]) {
      if (!inside(place.box, frame)) continue;
      place.cost = fixed_cost(place, obstacles);
      usable[i].push_back(place);
    }
  }

  // Which labels choose first matters where room is short, so the better of two opposite orders is kept.
  std::vector<std::size_t> order(labels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  Arrangement best = arranged(usable, order);
  std::vector<std::size_t> reversed(order.rbegin(), order.rend());
  if (Arrangement other = arranged(usable, reversed); other.cost < best.cost) best = std::move(other);

  std::vector<std::optional<LabelPlace>>& chosen = best.places;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (std::size_t j = 0; j < i && chosen[i]; ++j) {
      if (chosen[j] && mutual_cost(*chosen[i], *chosen[j]) >= clash) chosen[i].reset();
    }
  }
  return chosen;
}

}  // namespace assay::draw
