// Processes that share the cores of a machine take turns on them.
#pragma once
#include <cmath>

namespace assay::collective {

/// How often members take turns on the cores: n / cores where turns are even. Where they are not, a core is left over
/// in the last turn; members move to it between two messages but not during one, so half of it is lost. Measured on two
/// cores, 3 ranks are between 0.4 and 0.8 of the way from even to whole turns. 1: there are cores enough.
inline double core_turns(double members, double cores) {
  if (members <= cores) return 1.0;
  constexpr double lost = 0.5;
  const double even = members / cores;
  return even + lost * (std::ceil(even) - even);
}

}  // namespace assay::collective
