// Sensitivity of `assay train`, as its answer shows it.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/train/sizes.h"

namespace assay::verbs::train {

/// Adds how the step depends on each hardware rate, the batch, the sequence and chip memory.
Result<void> add_sensitivity(const Request& request, const Context& context, const SizedTraining& size,
                             report::Members& out);

}  // namespace assay::verbs::train
