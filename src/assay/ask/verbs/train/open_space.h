// The open space of training strategies beside those that the software can express.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/train/sizes.h"

namespace assay::verbs::train {

/// Searches the cluster of a question with what its software can express. Where that is nothing at all, the usual
/// software gives way to the open space, and software that the request names is an error.
Result<search::TrainingSearch> search_plans(TrainQuery& query, search::TrainingCaches& caches,
                                            const search::SearchLimits& limits);

/// The best strategy of the open space, if it is faster than the one shown or fits where that does not.
Result<std::optional<search::Candidate>> better_in_open_space(const SizedTraining& size);

/// Adds what the open space would gain, and says it where that is worth a word.
Result<void> add_open_space(const SizedTraining& size, report::Response& response);

}  // namespace assay::verbs::train
