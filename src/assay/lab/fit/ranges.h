// Start values and bounds of fitted numbers: files of catalogue/fits. Values that differ between chip families are in
// catalogue/families.
#pragma once
#include <array>
#include <string>
#include <type_traits>
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

struct PassRanges {
  FitRange<double> share, wide, softmax, passes, tail, uneven, part_row;
  FitRange<Seconds> row_start;
  hardware::AttentionPass start() const {
    return {share.start, wide.start, softmax.start, passes.start, {}, tail.start};
  }
};
struct AttentionRanges {
  FitRange<double> table_share;  ///< for tables that time more than the kernel
  PassRanges forward, backward;
  FitRange<double> decode_share, crowded, decode_wide;
  FitRange<Seconds> item;
  /// Start values of a kernel's numbers.
  hardware::AttentionKernelCalibration start() const {
    return {{},
            false,
            forward.start(),
            backward.start(),
            {decode_share.start, crowded.start, decode_wide.start, item.start}};
  }
};
struct MatmulRanges {
  FitRange<double> share, droop, memory_share, small_tile, fill, grouped_fill, straddle;
  FitRange<Seconds> split_cost, scales, stage;
  FitRange<BytesPerSecond> port, narrow_port, scattered_port, scattered_result_port, grouped_port;
};
struct PointwiseRanges {
  FitRange<double> stream, norm, softmax, optimizer;
  FitRange<Seconds> ramp;
};
struct CollectiveRanges {
  FitRange<Seconds> latency, member, chunk;
  FitRange<double> share, pair, in_network;
  FitRange<Seconds> across_latency, across_chunk;
};
struct QuantiseRanges {
  FitRange<Seconds> fixed, fixed_fp4;
  std::vector<std::string> by_row;  ///< formats whose casts take longer by the length of a row
  FitRange<Seconds> element;        ///< of these
  FitRange<double> passes;
};
/// Numbers of the harness.
struct HarnessRanges {
  FitRange<Seconds> product_launch, kernel_launch, collective_launch, gap, burst_gap, ramp;
  FitRange<Bytes> dirty;
  FitRange<double> evicts, attention_passes;
};
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
  MatmulRanges matmul;
  PointwiseRanges pointwise;
  AttentionRanges attention;
  CollectiveRanges collective;
  QuantiseRanges quantise;
  HarnessRanges harness;
  HarnessStart own;  ///< our own tables
  std::vector<HarnessStart> tables;
  std::vector<OwnStart> own_tables;  ///< those that differ
  std::vector<CollectiveSweep> sweeps;
  std::vector<IgnoredRows> ignored;

  /// The tables whose ways of starting kernels are the usual ones: of families, and of the chip of our own tables.
  const HarnessStart& usual() const;
  const OwnStart& own_usual() const;
  /// The range of a table's launches, which start where the table's do.
  FitRange<Seconds> launch(std::string_view source, FitRange<Seconds> range) const;
  /// Our own table that shows one of `own_subjects` only.
  const OwnStart& showing(std::string_view subject) const;
};
Result<KernelRanges> kernel_ranges_of(const hardware::Catalogue& catalogue);

/// catalogue/fits/measured.toml, and the kernels of attention.
struct MeasuredRanges {
  AttentionRanges attention;
  struct {
    FitRange<double> share, memory_share, fill;
    FitRange<Seconds> fork, launch, ramp;
  } cpu;
  struct {
    FitRange<double> share, memory_share, droop, small_tile, fill;
    FitRange<Seconds> split_cost;
    FitRange<BytesPerSecond> port;
  } gpu;
  struct {
    FitRange<Seconds> launch, gap, ramp;
  } alone, in_a_stream;
  struct {
    FitRange<double> stream;
    FitRange<Seconds> ramp;
  } copies;
  struct {
    FitRange<Seconds> latency, chunk, member;
    FitRange<double> share, pair;
  } ranks;
};
Result<MeasuredRanges> measured_ranges_of(const hardware::Catalogue& catalogue);

/// Ranges of the numbers that all families have in common: catalogue/fits/training.toml, and serving.toml.
Result<numbers::FitRanges> training_ranges_of(const hardware::Catalogue& catalogue);
Result<numbers::FitRanges> serving_ranges_of(const hardware::Catalogue& catalogue);

/// A number within the bounds of its range, starting from its current value.
template <class Q>
FitParameter fit(Q& number, const FitRange<Q>& range) {
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
