// The limits of a training step as rows and members of an answer.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/train/query.h"
#include "assay/predict/training/limits.h"

namespace assay::verbs::train {

/// The limits as rows: time, and how many times longer each would have to take to limit the step.
report::Items limit_rows(const training::TrainingCost& cost);

/// The microbatch, batch and tensor parallelism at which the limiter would change.
report::Members threshold_members(const TrainQuery& query, const search::Candidate& best);

}  // namespace assay::verbs::train
