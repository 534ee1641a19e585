#include "assay/ask/draw/chart/top_names.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "assay/ask/draw/lettering.h"

namespace assay::draw {
namespace {

constexpr std::size_t most_rows = 3;
constexpr double padding = 5.0;

// Costs of a place: an extra row is worse than a name next to its line, and both are better than no name at all.
constexpr double cost_of_row = 3.0;
constexpr double cost_of_shift = 2.0;
constexpr double cost_of_omission = 100.0;

// Enough to be exact for the four or five names a readable chart has, and to stay quick with more.
constexpr int most_trials = 20000;

// Finds rows and shifts for names that do not fit into the strip, by depth-first search with bounds.
class RowSearch {
 public:
  RowSearch(std::vector<TopName>& names, AxisRange room, double text_size) : names_(names), room_(room) {
    for (const TopName& name : names) halves_.push_back(text_width(name.text, text_size) / 2.0 + padding);
  }

  void run() {
    best_ = names_;
    best_cost_ = std::numeric_limits<double>::infinity();
    descend(0, 0.0);
    names_ = best_;
  }

 private:
  void descend(std::size_t i, double cost) {
    if (cost >= best_cost_) return;
    if (i == names_.size()) {
      best_ = names_;
      best_cost_ = cost;
      return;
    }
    TopName& name = names_[i];
    // Keeps the line down from a name under its outermost letter when the name stands to one side.
    constexpr double overhang = 6.0;
    const double low = room_.from + halves_[i];
    const double high = room_.to - halves_[i];
    for (std::size_t row = 1; row <= most_rows && low <= high; ++row) {
      for (const double shift : {0.0, halves_[i] - overhang, overhang - halves_[i]}) {
        if (++trials_ > most_trials) break;
        name.row = row;
        name.middle = std::clamp(name.centre() + shift, low, high);
        const double moved = std::abs(name.middle - name.centre()) > 1.0 ? cost_of_shift : 0.0;
        if (fits(i)) descend(i + 1, cost + cost_of_row * static_cast<double>(row) + moved);
      }
    }
    name.row = 0;
    descend(i + 1, cost + cost_of_omission);
  }

  bool fits(std::size_t i) const {
    const TopName& name = names_[i];
    for (std::size_t j = 0; j < i; ++j) {
      const TopName& other = names_[j];
      if (other.row == 0) continue;
      if (other.row == name.row && std::abs(other.middle - name.middle) < halves_[i] + halves_[j]) return false;
      if (other.row < name.row && std::abs(other.middle - name.centre()) < halves_[j]) return false;
      if (other.row > name.row && std::abs(name.middle - other.centre()) < halves_[i]) return false;
    }
    return true;
  }

  std::vector<TopName>& names_;
  AxisRange room_;
  std::vector<double> halves_;
  std::vector<TopName> best_;
  double best_cost_ = 0.0;
  int trials_ = 0;
};

std::vector<TopName> visible_names(const Chart& chart, const AxisScale& x) {
  const auto edge = [&](double value) {
    // On a logarithmic axis, 0 and negative values are left of the frame.
    if (!placeable(x.kind, value)) return value > 0.0 ? x.end : x.start;
    return std::clamp(position(x, value), x.start, x.end);
  };
  std::vector<TopName> names;
  for (std::size_t i = 0; i < chart.regions.size(); ++i) {
    const ChartRegion& region = chart.regions[i];
    if (std::isnan(region.from) || std::isnan(region.to)) continue;
    TopName name = {TopNameOwner::region, i, edge(region.from), edge(region.to), region.label, 0.0, 0};
    constexpr double least_to_see = 0.5;
    if (name.right - name.left >= least_to_see) names.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const ReferenceLine& line = chart.lines[i];
    if (line.orientation != Orientation::vertical || !placeable(x.kind, line.at)) continue;
    if (line.at < x.range.from || line.at > x.range.to) continue;
    const double place = position(x, line.at);
    names.push_back({TopNameOwner::line, i, place, place, line.label, 0.0, 0});
  }
  return names;
}

// Whether the strip has room for a text of that width at the middle of its region, which another region may overlap.
bool strip_has_room(const std::vector<TopName>& names, const TopName& name, double width, double text_size) {
  if (width + 2.0 * padding > name.right - name.left) return false;
  for (const TopName& other : names) {
    if (other.row > 0 || other.text.empty()) continue;
    if (std::abs(other.middle - name.centre()) < (width + text_width(other.text, text_size)) / 2.0 + padding)
      return false;
  }
  return true;
}

}  // namespace

TopNames top_names(const Chart& chart, const AxisScale& x, AxisRange room, double text_size) {
  TopNames result;
  std::vector<TopName> above;
  for (TopName& name : visible_names(chart, x)) {
    name.middle = name.centre();
    if (name.owner == TopNameOwner::region && !name.text.empty()) result.strip = true;
    name.text = shortened(name.text, text_size, 0.5 * (room.to - room.from));
    const bool fits = strip_has_room(result.names, name, text_width(name.text, text_size), text_size);
    (name.text.empty() || fits ? result.names : above).push_back(std::move(name));
  }
  RowSearch(above, room, text_size).run();
  for (TopName& name : above) {
    if (name.row == 0) {
      constexpr double least_to_shorten = 30.0;
      const double width = name.right - name.left - 2.0 * padding;
      const bool room_for_some = width > least_to_shorten && strip_has_room(result.names, name, width, text_size);
      name.middle = name.centre();
      name.text = room_for_some ? shortened(name.text, text_size, width) : "";
      if (name.text.empty()) ++result.omitted;
    }
    result.rows = std::max(result.rows, name.row);
    result.names.push_back(std::move(name));
  }
  return result;
}

}  // namespace assay::draw
