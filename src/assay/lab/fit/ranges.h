// Start values and bounds of fitted numbers: files of catalogue/fits. Values that differ between chip families are in
// catalogue/families.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "assay/base/fit_range.h"
#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/catalogue.h"
#include "assay/lab/fit/minimise.h"
#include "assay/predict/numbers/families.h"
#include "assay/predict/numbers/rows.h"

namespace assay::validate {

/// The range of a number, whatever its unit.
struct AnyRange {
  FitRange<double> in_base_units;

  template <class Q>
  operator FitRange<Q>() const {
    return {Q(in_base_units.start), Q(in_base_units.low), Q(in_base_units.high), in_base_units.pull};
  }
  template <class Q = double>
  Q start() const {
    return Q(in_base_units.start);
  }
};
/// The ranges of one table of a file, by the keys of its numbers: those of a calibration have the keys that they have
/// there.
class RangeTable {
 public:
  RangeTable(const numbers::FitRanges& all, std::string path) : all_(&all), path_(std::move(path)) {}
  AnyRange operator[](std::string_view key) const;
  RangeTable inside(std::string_view key) const { return {*all_, path_ + std::string(key) + "."}; }

 private:
  const numbers::FitRanges* all_;
  std::string path_;
};
/// Where the fit of a kernel of attention starts.
hardware::AttentionKernelCalibration attention_start(const RangeTable& attention);

/// Start times of one table, and how it was measured.
struct HarnessStart {
  std::string name;
  Seconds launch, gap, ramp;  ///< a launch of 0 is not fitted
  bool whole_k = false;       ///< its kernels do not split k
  bool usual = false;         ///< families start and pause kernels as it does: its gap and ramp are fitted
  bool engine = false;  ///< times what an engine does around a kernel, too: casts, passes over operands of attention
};
/// One of our own tables that was not measured as the others, or that shows one thing only.
struct OwnStart {
  std::string name;
  bool usual = false;       ///< the chip of our tables starts kernels by themselves as it does
  std::string measured_as;  ///< the table with the same numbers but for launches; empty: none
  std::string rested_as;    ///< the table with the same gap; empty: none
  std::string shows;        ///< one of own_subjects; empty: kernels of all kinds
};
inline constexpr std::string_view grouped_products = "grouped", odd_rows = "odd rows";
inline constexpr std::string_view own_subjects[] = {grouped_products, odd_rows};
/// A table of collectives.
struct CollectiveSweep {
  std::string name;
  bool plain = false;  ///< of the library itself; others add the cost of their framework
};

/// Rows of a table that tell nothing about a chip: no fit takes them.
struct IgnoredRows {
  std::string table, chip;         ///< no chip: of all
  std::vector<std::string> kinds;  ///< names of kinds of kernels; those of experts are "grouped"
};

/// catalogue/fits/kernels.toml.
struct KernelRanges {
  numbers::FitRanges numbers;             ///< by table and key
  std::vector<std::string> casts_by_row;  ///< formats whose casts take longer by the length of a row
  HarnessStart own;                       ///< our own tables
  std::vector<HarnessStart> tables;
  std::vector<OwnStart> own_tables;  ///< those that differ
  std::vector<CollectiveSweep> sweeps;
  std::vector<IgnoredRows> ignored;

  /// The tables whose ways of starting kernels are the usual ones: of families, and of the chip of our own tables.
  const HarnessStart& usual() const;
  const OwnStart& own_usual() const;
  /// The ranges of a table: "matmul".
  RangeTable of(std::string_view table) const { return RangeTable(numbers, std::string()).inside(table); }
  /// The range of a table's launches, which start where the table's do.
  FitRange<Seconds> launch(std::string_view source, FitRange<Seconds> range) const;
  /// Our own table that shows one of `own_subjects` only.
  const OwnStart& showing(std::string_view subject) const;
};
Result<KernelRanges> kernel_ranges_of(const hardware::Catalogue& catalogue);

/// catalogue/fits/measured.toml, and the kernels of attention.
struct MeasuredRanges {
  numbers::FitRanges numbers;
  RangeTable of(std::string_view table) const { return RangeTable(numbers, std::string()).inside(table); }
};
Result<MeasuredRanges> measured_ranges_of(const hardware::Catalogue& catalogue);

/// Ranges of the numbers that all families have in common: catalogue/fits/training.toml, and serving.toml.
Result<numbers::FitRanges> training_ranges_of(const hardware::Catalogue& catalogue);
Result<numbers::FitRanges> serving_ranges_of(const hardware::Catalogue& catalogue);

/// A number within the bounds of its range, starting from its current value.
template <class Q>
FitParameter fit(Q& number, const std::type_identity_t<FitRange<Q>>& range) {
  FitParameter parameter = fit(number, range.low, range.high);
  if (!(Q{} < range.start)) return parameter;
  parameter.pull = range.pull;
  if constexpr (std::is_same_v<Q, double>)
    parameter.from = range.start;
  else
    parameter.from = range.start.value();
  return parameter;
}

/// Sets all numbers of whole steps that have a range to its start, and gives those that are fitted. `visit` is the list
/// of numbers; `stiffness` holds where a range has no pull.
template <class C, class Visit>
std::vector<TunedNumber> bind_numbers(C& steps, const numbers::FitRanges& ranges, double stiffness, Visit visit) {
  std::vector<TunedNumber> bound;
  for (std::size_t f = 0; f < steps.families.size(); ++f)
    steps.measured[f] = (steps.families[f].*steps.section).has_value();
  const auto bind = [&]<class T>(const std::string& path, Given<T>& number, std::string_view,
                                 const numbers::Family* family) {
    const numbers::FitRanges none;
    const numbers::FitRanges& from = !family ? ranges : family->*steps.section ? *(family->*steps.section) : none;
    const auto range = from.find(path);
    if (range == from.end()) return;
    const auto& [start, low, high, pull] = range->second;
    number = T(start);
    if (!range->second.is_fitted()) return;
    T& value = number.value;
    const FitParameter parameter{start, low, high, [&value](double x) { value = T(x); }};
    bound.push_back({parameter, [&value] { return value / T(1.0); }, pull > 0.0 ? pull : stiffness});
  };
  numbers::EachNumber each(steps, bind);
  visit(steps, each);
  return bound;
}

}  // namespace assay::validate
