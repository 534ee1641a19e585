// Intervals of estimates: how far measurements of a class lie from what was predicted of them. Residuals come from rows
// that the prediction had not seen (cross-validation by group), so an interval promises what a new row will meet.
// Files of catalogue/steps hold the classes as tables [interval.N].
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/base/toml.h"

namespace assay::estimate {

/// Where a row lies: "chips", 512.
struct Coordinate {
  std::string name;
  double value = 0;
};

/// What predicted over measured was for one row.
struct Residual {
  std::string group;                 ///< rows of a group count as one together
  double log_ratio = 0;              ///< log(predicted / measured)
  std::vector<std::string> classes;  ///< that the row belongs to, the narrowest first
  std::vector<Coordinate> at;
  std::string architecture = {};  ///< of the chips
};

/// Measurements of a class lie within a factor of 1 + spread of the estimate.
struct IntervalClass {
  struct Range {
    std::string name;
    double low = 0, high = 0;
  };
  std::string name;
  double spread = 0;
  std::int64_t rows = 0, groups = 0;       ///< that the spread was taken from
  std::vector<Range> seen;                 ///< where these rows lie
  std::vector<std::string> hardware = {};  ///< architectures of their chips

  /// The coordinates that lie outside of what was seen, "hardware" among them: the estimate extrapolates there.
  std::vector<std::string> beyond(std::span<const Coordinate> at, std::string_view architecture) const;
};

/// The spread that holds a share `coverage` of what comes next: groups weigh alike, and a group more than there are is
/// taken to lie outside of all (the quantile of split conformal prediction). 0 without residuals.
double residual_spread(std::vector<Residual> residuals, double coverage);

/// One class for each name that has at least `fewest` groups, in order of first appearance.
std::vector<IntervalClass> interval_classes(const std::vector<Residual>& residuals, double coverage,
                                            std::size_t fewest = 5);

/// The first of `names`, the narrowest first, that there is a class of; none: nullptr.
const IntervalClass* interval_of(const std::vector<IntervalClass>& classes, std::span<const std::string> names);

/// The tables below `key` of a file, and the text that reads back as them.
Result<std::vector<IntervalClass>> read_intervals(const Toml& root, std::string_view key, std::string_view file);
std::string intervals_text(const std::vector<IntervalClass>& classes, std::string_view key, std::string_view source);

}  // namespace assay::estimate
