#include "assay/profile/trace/intervals.h"

#include <algorithm>

namespace assay::trace {

Intervals united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Intervals out;
  for (const Interval& next : intervals) {
    if (out.empty() || next.begin > out.back().end)
      out.push_back(next);
    else
      out.back().end = std::max(out.back().end, next.end);
  }
  return out;
}

Intervals difference(const Intervals& all, const Intervals& without) {
  Intervals out;
  std::size_t first = 0;
  for (Interval rest : all) {
    while (first < without.size() && without[first].end <= rest.begin) ++first;
    for (std::size_t i = first; i < without.size() && without[i].begin < rest.end; ++i) {
      if (without[i].begin > rest.begin) out.push_back({rest.begin, without[i].begin});
      rest.begin = std::max(rest.begin, without[i].end);
    }
    if (rest.begin < rest.end) out.push_back(rest);
  }
  return out;
}

Ticks covered(const Intervals& intervals) {
  Ticks total = 0;
  for (const Interval& one : intervals) total += one.end - one.begin;
  return total;
}

}  // namespace assay::trace
