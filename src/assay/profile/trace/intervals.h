// Stretches of time: unions and differences, in ticks, so that sums are exact.
#pragma once
#include <vector>

#include "assay/profile/trace/trace.h"

namespace assay::trace {

struct Interval {
  Ticks begin = 0, end = 0;
};
/// In order, apart from each other.
using Intervals = std::vector<Interval>;

/// The time that at least one of them covers.
Intervals united(std::vector<Interval> intervals);
/// What is in `all` and not in `without`; both in order and apart.
Intervals difference(const Intervals& all, const Intervals& without);
Ticks covered(const Intervals& intervals);

}  // namespace assay::trace
