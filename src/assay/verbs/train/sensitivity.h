// What changes the answer of `assay train`: how the step time follows each rate of the hardware, the batch and the
// sequence, and at which value the limiter or the best strategy becomes another.
#pragma once
#include "assay/report/document.h"
#include "assay/verbs/train/query.h"

namespace assay::verbs::train {

/// Rows of elasticities d ln(step time) / d ln(rate) and break-even values, each from the whole model with that one
/// rate changed. The strategy is fixed; what a new search would pick is said beside it.
Result<report::Items> sensitivity_rows(const Request& request, const Context& context, const TrainQuery& query,
                                       const search::Candidate& best);

/// The memory of a chip: down to where this strategy fits, down to where any does, and what more of it would bring.
Result<report::Members> capacity_members(const TrainQuery& query, const search::Candidate& best);

}  // namespace assay::verbs::train
