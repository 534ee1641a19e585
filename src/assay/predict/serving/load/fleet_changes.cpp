#include "assay/predict/serving/load/fleet_changes.h"

#include <algorithm>
#include <cmath>

namespace assay::serving {

std::int64_t Scaler::wanted(double now, std::int64_t there, double load) {
  const double exact = load / rule_.target, ratio = exact / static_cast<double>(std::max<std::int64_t>(1, there));
  std::int64_t wanted = std::abs(ratio - 1.0) <= rule_.tolerance ? there : static_cast<std::int64_t>(std::ceil(exact));
  wanted = std::clamp(wanted, rule_.least, rule_.most);
  while (!lately_.empty() && lately_.front().first <= now - rule_.down_after.value()) lately_.pop_front();
  lately_.emplace_back(now, wanted);
  if (wanted >= there) return wanted;
  for (const auto& [at, number] : lately_) wanted = std::max(wanted, number);
  return std::min(wanted, std::max(there, rule_.least));
}

}  // namespace assay::serving
