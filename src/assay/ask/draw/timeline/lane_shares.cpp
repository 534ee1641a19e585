#include "assay/ask/draw/timeline/lane_shares.h"

#include <algorithm>
#include <cmath>

namespace assay::draw {

LaneShares lane_shares(const std::vector<const TimelineBar*>& bars, Seconds end, std::size_t stretches,
                       double members) {
  LaneShares shares;
  const double per_second = static_cast<double>(stretches) / end.value();
  for (const TimelineBar* bar : bars) {
    const double from = bar->start.value() * per_second, to = bar->end.value() * per_second;
    if (!std::isfinite(from) || !std::isfinite(to) || to <= from || bar->colour_class < 0) continue;
    const auto at = static_cast<std::size_t>(bar->colour_class);
    if (shares.by_class.size() <= at) shares.by_class.resize(at + 1);
    std::vector<double>& own = shares.by_class[at];
    own.resize(stretches);
    for (auto i = static_cast<std::size_t>(std::max(0.0, from)); i < stretches && static_cast<double>(i) < to; ++i)
      own[i] += (std::min(to, static_cast<double>(i) + 1.0) - std::max(from, static_cast<double>(i))) / members;
  }
  for (std::vector<double>& own : shares.by_class) {
    own.resize(stretches);
    double sum = 0.0;
    for (const double share : own) sum += share;
    shares.whole.push_back(sum / static_cast<double>(stretches));
  }
  return shares;
}

std::vector<ShareArea> share_areas(const LaneShares& shares) {
  constexpr double steps = 12.0;
  constexpr std::size_t longest_gap = 4;
  std::vector<ShareArea> areas;
  if (shares.by_class.empty()) return areas;
  const std::size_t stretches = shares.by_class.front().size();
  std::vector<double> below(stretches), above(stretches), exact(stretches);
  for (std::size_t at = 0; at < shares.by_class.size(); ++at) {
    for (std::size_t i = 0; i < stretches; ++i) {
      exact[i] += shares.by_class[at][i];  // rounded once stacked, so that a full stretch stays full
      above[i] = std::max(below[i], std::round(steps * std::min(1.0, exact[i])) / steps);
    }
    for (std::size_t from = 0; from < stretches; ++from) {
      if (above[from] <= below[from]) continue;
      std::size_t to = from + 1;  // one area goes on over short gaps, where it is as high as what is below it
      for (std::size_t i = to; i < stretches && i < to + longest_gap; ++i)
        if (above[i] > below[i]) to = i + 1;
      ShareArea area{at, {}};
      const auto edge = [&](const std::vector<double>& height, std::size_t i, bool backwards) {
        const double left = static_cast<double>(i), right = left + 1.0, y = height[i];
        const double first = backwards ? right : left, second = backwards ? left : right;
        auto& line = area.outline;
        if (line.size() > 1 && line.back().y == y && line[line.size() - 2].y == y)
          line.back().x = second;
        else
          line.insert(line.end(), {{first, y}, {second, y}});
      };
      for (std::size_t i = from; i < to; ++i) edge(above, i, false);
      for (std::size_t i = to; i-- > from;) edge(below, i, true);
      areas.push_back(std::move(area));
      from = to;
    }
    below = above;
  }
  return areas;
}

}  // namespace assay::draw
