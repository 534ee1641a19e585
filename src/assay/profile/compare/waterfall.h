// From a predicted step to a measured one: every microsecond of the difference in exactly one item.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/profile/compare/host_queue.h"
#include "assay/profile/compare/match.h"

namespace assay::compare {

/// What an item of the difference is.
enum class GapKind : std::uint8_t {
  kernels,        ///< steps of the program that ran: slower or faster than predicted
  around,         ///< kernels beside products: sums of gradients, copies into another layout
  missing,        ///< predicted steps that no kernel was found for
  extra,          ///< kernels that the program has no step for
  communication,  ///< exposed, without waiting
  waiting,        ///< for other ranks, exposed
  copies,         ///< exposed, of no step
  host,           ///< idle: the device had run dry when the next kernel was launched; predicted: fixed cost of a step
  pauses,         ///< the same, while the host did not launch for long: it prepared something, such as a new kernel
  gaps            ///< idle for another reason
};
std::string_view name(GapKind kind);

/// One line of the program, all its runs.
struct StepGap {
  std::uint32_t line = 0;  ///< in Prediction::lines
  Seconds predicted;       ///< of runs that were found
  Seconds measured, around;
  double ran = 0;          ///< runs that were found, for each step
  double kernels = 0;      ///< for each step
  std::uint32_t call = 0;  ///< the longest of its calls
  Seconds difference() const { return measured - predicted; }
};

struct GapItem {
  GapKind kind = GapKind::kernels;
  std::string group;  ///< the class of steps, or the category of kernels; may be empty
  Seconds predicted, measured;
  double kernels = 0;      ///< for each step
  std::int64_t step = -1;  ///< in Waterfall::steps: the one with the largest difference
  std::int64_t call = -1;  ///< in MeasuredStep::calls: the longest one
  bool masked = false;     ///< attention with masks in memory
  Seconds difference() const { return measured - predicted; }
};

struct Waterfall {
  Seconds predicted, measured;   ///< of one step
  std::optional<HostPace> host;  ///< where the profile tells: then host gaps are predicted from it
  Seconds residual;              ///< what the items leave: rounding
  double matched_share = 0;      ///< of kernel time
  std::vector<GapItem> items;    ///< the largest difference first
  std::vector<StepGap> steps;    ///< in the order of the program
};

Waterfall waterfall(const MeasuredStep& measured, const Prediction& prediction, const Matching& matching,
                    const trace::Vocabulary& vocabulary);

/// The class of a line: without shapes, all that is not a product, attention or an update is one class.
std::string_view class_of(const PredictedLine& line, const Matching& matching);

}  // namespace assay::compare
