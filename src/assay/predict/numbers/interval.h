// Intervals of estimates: how far measurements of a class are from their predictions. Residuals come from held-out rows
// (cross-validation by group), so an interval holds for new rows. Files of catalogue/steps hold the classes as tables
// [interval.N].
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"

namespace assay {
class RecordReader;
namespace hardware {
class Catalogue;
}
}  // namespace assay

namespace assay::numbers {

/// One property of a row: "chips", 512.
struct Coordinate {
  std::string name;
  double value = 0;
};

/// The error of one row.
struct Residual {
  std::string group;                 ///< the rows of a group weigh as one
  double log_ratio = 0;              ///< log(predicted / measured)
  std::vector<std::string> classes;  ///< of the row, narrowest first
  std::vector<Coordinate> at;
  std::string architecture = {};  ///< of the chips
  /// What a new group may be new in: a source on a chip. Its groups weigh as one; empty: every group is one.
  std::string unit = {};
};

/// Measurements of a class are within a factor of 1 + spread of the estimate.
struct IntervalClass {
  struct Range {
    std::string name;
    double low = 0, high = 0;
  };
  std::string name;
  double spread = 0;
  std::int64_t rows = 0, groups = 0;       ///< that the spread was computed from
  std::vector<Range> seen;                 ///< ranges of their coordinates
  std::vector<std::string> hardware = {};  ///< architectures of their chips

  /// Coordinates outside of the ranges seen, "hardware" included: the estimate extrapolates in these.
  std::vector<std::string> beyond(std::span<const Coordinate> at, std::string_view architecture) const;
};

/// The spread that covers a share `coverage` of new rows. Groups have equal weight, and one more group is assumed to be
/// outside of all (the quantile of split conformal prediction). Where residuals have units, these have equal weight, in
/// them groups, and in those rows: the quantile of their pooled distribution (Dunn, Wasserman and Ramdas 2022,
/// Distribution-free prediction sets for two-layer hierarchical models). 0 without residuals.
double residual_spread(std::vector<Residual> residuals, double coverage);

/// One class for each name with at least `fewest` groups, in order of first appearance.
std::vector<IntervalClass> interval_classes(const std::vector<Residual>& residuals, double coverage,
                                            std::size_t fewest = 5);

/// The class of the first of `names` that has one; nullptr if none has.
const IntervalClass* interval_of(const std::vector<IntervalClass>& classes, std::span<const std::string> names);

/// Intervals for what has no row of its own, from rows whose whole chip no fit saw: a file of catalogue/steps/unseen.
struct UnseenIntervals {
  std::string file;                ///< empty: there is none
  std::string what;                ///< "chip" or "stages"
  std::vector<std::string> known;  ///< that have rows
  bool on_top = false;             ///< their errors add to those of the class, and are independent of them
  std::vector<IntervalClass> classes;

  bool has_rows_of(std::string_view name) const;
};
/// Those of a set of measurements.
Result<UnseenIntervals> unseen_intervals(const hardware::Catalogue& catalogue, std::string_view set,
                                         std::string_view what);
/// The path of the file below the catalogue.
std::string unseen_file(std::string_view set, std::string_view what);
/// The file that reads back as them.
std::string unseen_text(const UnseenIntervals& unseen, std::string_view title, std::string_view command);

/// The interval of a question and where it comes from.
struct IntervalBasis {
  IntervalClass of;
  std::string file;
  std::vector<std::string> beyond = {};  ///< what few rows are of, where that adds to the errors of the class
};
/// Something that a question is about, and the intervals for the case that it has no row.
struct AskedAbout {
  const UnseenIntervals* unseen;
  std::string_view name;  ///< empty: not stated
};
/// The class of the first of `names` that has one in `file`; wider for a chip without a row of its own, and
/// for what few rows have: its errors are independent of those of the class, so squares of logarithms add.
std::optional<IntervalBasis> interval_basis(const std::vector<IntervalClass>& classes,
                                            std::span<const std::string> names, std::string_view file,
                                            std::span<const AskedAbout> about);

/// The tables [key.N] of a file, and the text that reads back as them.
void read_intervals(RecordReader& root, std::string_view key, std::vector<IntervalClass>& classes);
std::string intervals_text(const std::vector<IntervalClass>& classes, std::string_view key, std::string_view source);

}  // namespace assay::numbers
