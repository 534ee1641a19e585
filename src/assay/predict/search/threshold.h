// Solving for one unknown: where a condition on a whole number changes.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace assay::search {

/// Whether the condition holds at a value; nothing where the value is not allowed.
using ThresholdTest = std::function<std::optional<bool>(std::int64_t)>;

struct ThresholdRange {
  std::int64_t from = 1, to = std::int64_t{1} << 40;
  int most_tests = 400;
};

struct Threshold {
  enum class Kind {
    smallest,  ///< holds from `value` up
    largest,   ///< holds up to `value`
    always,    ///< holds at every tested value
    never,     ///< holds at no tested value
    nothing    ///< no tested value is allowed
  };
  struct Tested {
    std::int64_t value = 0;
    bool holds = false;
  };
  Kind kind = Kind::nothing;
  std::int64_t value = 0;                       ///< the threshold, for smallest and largest
  std::optional<std::int64_t> nearest_failing;  ///< the nearest allowed value where it does not hold
  std::vector<Tested> tested;                   ///< allowed values, in order of value
  bool exact = true;                            ///< false: tests ran out, or no allowed value was found in between
  bool alternates = false;  ///< beyond `value` it fails again at some values, as where divisors decide
};

/// Whether something differs from what it is at a factor of one.
using FactorTest = std::function<bool(double)>;

/// The factor nearest to one, by ratio, at which `changed` begins to hold: powers of two are tried on both sides up to
/// `reach`, then the last step is halved until it is known within `precision`. The factor returned is one at which it
/// holds; nothing where it holds at no power of two.
std::optional<double> nearest_change(const FactorTest& changed, double reach, double precision);
/// The nearest change where `changed` is costly: `known` is cheap, holds only where `changed` does, and learns from
/// each call of `changed` that finds something. The steps are halved by `known`, and `changed` confirms where they end.
std::optional<double> nearest_change(const FactorTest& changed, const FactorTest& known, double reach,
                                     double precision);

/// Doubles from the lower end until the condition changes, then halves the gap and samples values across it: where the
/// condition changes more than once, the answer is the outermost value at which it was seen to hold. A value that is
/// not allowed is replaced by the nearest one that is.
Threshold find_threshold(const ThresholdTest& test, const ThresholdRange& range);

}  // namespace assay::search
