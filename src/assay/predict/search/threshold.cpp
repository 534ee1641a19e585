#include "assay/predict/search/threshold.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace assay::search {
namespace {

/// Counts and remembers tests.
class Tester {
 public:
  Tester(const ThresholdTest& test, int most) : test_(test), left_(most) {}

  std::optional<bool> at(std::int64_t value) {
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    if (left_ == 0) return std::nullopt;
    --left_;
    return known_[value] = test_(value);
  }
  bool spent() const { return left_ == 0; }
  std::vector<Threshold::Tested> tested() const {
    std::vector<Threshold::Tested> all;
    for (const auto& [value, holds] : known_)
      if (holds) all.push_back({value, *holds});
    return all;
  }

 private:
  const ThresholdTest& test_;
  int left_;
  std::map<std::int64_t, std::optional<bool>> known_;
};

/// An allowed value strictly between two, as near to their middle as can be found; multiples of `step` come first,
/// since what is allowed often is.
std::optional<std::int64_t> allowed_between(Tester& tester, std::int64_t low, std::int64_t high, std::int64_t step) {
  constexpr std::int64_t tries = 48;
  for (const std::int64_t unit : {step, std::int64_t{1}}) {
    if (unit < 1) continue;
    const std::int64_t middle = (low + (high - low) / 2) / unit * unit;
    for (std::int64_t i = 0; i < tries; ++i) {
      const std::int64_t value = middle + (i % 2 == 0 ? i / 2 : -(i + 1) / 2) * unit;
      if (value > low && value < high && tester.at(value)) return value;
    }
    if (unit == 1) break;
  }
  return std::nullopt;
}

/// Looks at up to `most` multiples of `unit` between two values; false: there are more.
bool look_between(Tester& tester, std::int64_t low, std::int64_t high, std::int64_t unit) {
  constexpr std::int64_t most = 48;
  const std::int64_t stride = unit * ((high - low) / unit / most + 1);
  for (std::int64_t value = (low / unit + 1) * unit; value < high && !tester.spent(); value += stride) tester.at(value);
  return stride == unit && !tester.spent();
}

}  // namespace

Threshold find_threshold(const ThresholdTest& test, const ThresholdRange& range) {
  Tester tester(test, range.most_tests);
  Threshold found;
  std::optional<std::int64_t> first, before, after;
  bool holds_first = false;
  for (std::int64_t value = range.from;; value = std::min(value * 2, range.to)) {
    if (const auto holds = tester.at(value)) {
      if (!first) {
        first = value;
        holds_first = *holds;
      }
      if (*holds != holds_first) {
        after = value;
        break;
      }
      before = value;
    }
    if (value >= range.to || tester.spent()) break;
  }
  found.exact = !tester.spent();
  if (!first) return found;
  if (!after) {
    found.kind = holds_first ? Threshold::Kind::always : Threshold::Kind::never;
    found.value = holds_first ? *first : *before;
    found.tested = tester.tested();
    return found;
  }
  const std::int64_t low = *before, high = *after;
  while (*after - *before > 1) {
    const auto middle = allowed_between(tester, *before, *after, *first);
    if (!middle) {
      // Nothing is allowed in a narrow gap; in one of the first allowed value's size only its multiples were looked
      // for, as with batches, which are whole sequences. A wider one may hide some.
      found.exact = found.exact && *after - *before <= std::max<std::int64_t>(48, *first) && !tester.spent();
      break;
    }
    (*tester.at(*middle) == holds_first ? before : after) = *middle;
  }
  found.kind = holds_first ? Threshold::Kind::largest : Threshold::Kind::smallest;
  found.value = holds_first ? *before : *after;
  found.nearest_failing = holds_first ? after : before;
  const std::vector<Threshold::Tested> path = tester.tested();
  const bool all = look_between(tester, low, high, *first);
  found.tested = tester.tested();
  // The outermost that holds, and the nearest beyond it that does not.
  for (const Threshold::Tested& one : found.tested)
    if (one.holds && one.value >= low && one.value <= high)
      found.value = holds_first ? std::max(found.value, one.value) : std::min(found.value, one.value);
  found.nearest_failing = holds_first ? high : low;
  for (const Threshold::Tested& one : found.tested) {
    if (one.value < low || one.value > high || one.holds) continue;
    if (holds_first ? one.value < found.value : one.value > found.value)
      found.alternates = true;
    else
      found.nearest_failing =
          holds_first ? std::min(*found.nearest_failing, one.value) : std::max(*found.nearest_failing, one.value);
  }
  if (found.alternates)
    found.exact = all;
  else
    found.tested = path;  // further tests say nothing new
  return found;
}

namespace {

/// Logarithms of the last factor at which nothing changed, and of one at which something did.
struct Gap {
  double near = 0, far = 0;
};
Gap halved(Gap gap, const FactorTest& holds, double precision) {
  while (std::abs(gap.far - gap.near) > std::log1p(precision)) {
    const double middle = (gap.near + gap.far) / 2.0;
    (holds(std::exp(middle)) ? gap.far : gap.near) = middle;
  }
  return gap;
}

}  // namespace

std::optional<double> nearest_change(const FactorTest& changed, const FactorTest& known, double reach,
                                     double precision) {
  const auto holds = [&](double log) { return known(std::exp(log)) || changed(std::exp(log)); };
  for (double step = 2.0; step <= reach; step *= 2.0) {
    std::optional<double> found;  // a logarithm
    for (const double side : {1.0, -1.0}) {
      const Gap whole{std::log(step / 2.0) * side, std::log(step) * side};
      // On the other side, only factors nearer to one count.
      if (!holds(found ? side * *found : whole.far)) continue;
      Gap gap = halved(whole, known, precision);
      while (gap.near != whole.near && changed(std::exp(gap.near))) {
        const Gap nearer = halved(whole, known, precision);
        if (nearer.near != gap.near) {
          gap = nearer;
          continue;
        }
        gap = halved({whole.near, gap.near}, changed, precision);  // what changes there does not become known
        break;
      }
      if (!found || std::abs(gap.far) < std::abs(*found)) found = gap.far;
    }
    if (found) return std::exp(*found);
  }
  return std::nullopt;
}

std::optional<double> nearest_change(const FactorTest& changed, double reach, double precision) {
  return nearest_change(changed, changed, reach, precision);
}

}  // namespace assay::search
