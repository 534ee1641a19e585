// The rules of a training strategy: each error names the broken rule and the nearest legal values.
#pragma once
#include "assay/ask/verbs/train/query.h"

namespace assay::verbs::train {

/// Checks the given choices before any search.
Result<void> check_choices(const TrainQuery& query);

/// Limits the search to what the software can express. Choices that it cannot are an error if the request names the
/// software; the usual software gives way to them, with a note.
Result<void> keep_to_software(TrainQuery& query);
/// Searches the open space instead, and says why.
void widen(TrainQuery& query, std::string_view why);

/// Why no strategy of the space can be run at all: batch, microbatch, interleaving or schedule.
Error why_nothing_runs(const TrainQuery& query);

/// Notes options that have no effect on a strategy, and what they need.
void add_idle_notes(const Request& request, const TrainQuery& query, const training::Strategy& strategy,
                    std::vector<std::string>& notes);

}  // namespace assay::verbs::train
