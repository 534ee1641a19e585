// The rules of a training strategy: each error names the rule that is broken and the nearest legal values.
#pragma once
#include "assay/verbs/train/query.h"

namespace assay::verbs::train {

/// What can be said of the given choices before any search.
Result<void> check_choices(const TrainQuery& query);

/// Why no strategy of the space can be run at all: batch, microbatch, interleaving or schedule.
Error why_nothing_runs(const TrainQuery& query);

/// Which options do nothing for a strategy, and what they would need.
void add_idle_notes(const Request& request, const TrainQuery& query, const training::Strategy& strategy,
                    std::vector<std::string>& notes);

}  // namespace assay::verbs::train
