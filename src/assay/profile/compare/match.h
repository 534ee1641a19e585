// Which steps of a predicted program the calls of a measured step are.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/profile/compare/measured.h"
#include "assay/profile/compare/prediction.h"

namespace assay::compare {

struct CallMatch {
  std::vector<std::uint32_t> places;  ///< in Matching::order
  int group = -1;       ///< or a group of them, in Matching::groups; neither: the program has no such step
  bool around = false;  ///< runs beside a product, which the program counts as one kernel
};

struct Matching {
  std::vector<std::uint32_t> order;  ///< lines of the prediction as they run, for all steps of the profile
  std::vector<CallMatch> calls;      ///< for each call of the measured step
  std::vector<std::vector<std::uint32_t>> groups;
  bool by_class = false;   ///< no shapes: kernels are matched by what they do, not with single steps
  std::int64_t steps = 1;  ///< predicted steps that the measured one holds

  const std::vector<std::uint32_t>& places(const CallMatch& call) const {
    return call.group >= 0 ? groups[static_cast<std::size_t>(call.group)] : call.places;
  }
};

/// Products and attention are found by their FLOP, in order: several at once where software fuses or splits them.
/// Kernels between them belong to the steps between them, by the signs of the vocabulary, the sizes of their tensors
/// and their order. Without marks of steps, a profile holds as many as its products make.
Matching match(const MeasuredStep& measured, const Prediction& prediction, const trace::Vocabulary& vocabulary);

}  // namespace assay::compare
