// Sensitivity of `assay train`: how step time depends on each hardware rate, the batch and the sequence, and where the
// limiter or the best strategy changes.
#pragma once
#include "assay/report/document.h"
#include "assay/verbs/train/query.h"

namespace assay::verbs::train {

/// Rows of elasticities d ln(step time) / d ln(rate) and break-even values, each from the whole model with that one
/// rate changed. The strategy is fixed; the best strategy of a new search is given, too.
Result<report::Items> sensitivity_rows(const Request& request, const Context& context, const TrainQuery& query,
                                       const search::Candidate& best);

/// Chip memory: how little this strategy and any strategy needs, and what more of it would gain.
Result<report::Members> capacity_members(const TrainQuery& query, const search::Candidate& best);

}  // namespace assay::verbs::train
