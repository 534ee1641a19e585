// Whether a request, or a model read from shapes, accounts for what ran.
#pragma once
#include "assay/profile/compare/match.h"
#include "assay/profile/compare/recovered.h"

namespace assay::compare {

/// How that error begins.
inline constexpr std::string_view contradiction = "the profile contradicts the request";
/// An error where the FLOP of products or the number of layers of a profile contradict a prediction. Kernels without
/// shapes contradict nothing.
Result<void> check_prediction(const MeasuredStep& measured, const Prediction& prediction, const Matching& matching,
                              const trace::Vocabulary& vocabulary);

/// An error where products of the recovered layers and head are not most of the FLOP, or not most of the time of
/// products, attention and convolutions.
Result<void> check_recovered(const MeasuredStep& measured, const RecoveredModel& model,
                             const trace::Vocabulary& vocabulary, const std::string& file);

}  // namespace assay::compare
