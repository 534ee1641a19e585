// Training software, and how far whole steps are from their estimate.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/train/query.h"

namespace assay::verbs::train {

/// The options of software, for the verb table.
std::vector<OptionSpec> train_software_options();

/// Calibrated kernels, collectives and steps, for the requested software or good software.
Result<void> read_train_software(const Request& request, const Context& context, TrainQuery& query);

/// The time of a step or a run, with the interval of four in five measured steps of this class and in which ways the
/// step extrapolates, if known.
report::Members time_range(const TrainQuery& query, Seconds lower, Seconds estimate, Seconds upper);

}  // namespace assay::verbs::train
