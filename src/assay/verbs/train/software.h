// How the software that trains works, and how far whole steps lie from their estimate.
#pragma once
#include "assay/report/document.h"
#include "assay/verbs/train/query.h"

namespace assay::verbs::train {

/// The options of software, for the verb table.
std::vector<OptionSpec> train_software_options();

/// Kernels, collectives and steps as they were measured, under the software that the request names or good software.
Result<void> read_train_software(const Request& request, const Context& context, TrainQuery& query);

/// The time of a step or a run, with the interval that four of five measured steps of this class lie in, and in which
/// ways the step lies outside of what was measured; without it where none is known.
report::Members time_range(const TrainQuery& query, Seconds lower, Seconds estimate, Seconds upper);
/// The same of the memory in use at the peak.
report::Members memory_interval(const TrainQuery& query, const training::MemoryParts& memory);

}  // namespace assay::verbs::train
