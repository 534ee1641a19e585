// A plan as a row of an answer: where measurements put its time, whether it fits, and the request that asks for it.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/train/query.h"
#include "assay/predict/search/training/search.h"

namespace assay::verbs::train {

/// The request that asks for this plan alone: every choice is written out, what else was asked for is left out.
Request plan_request(const Request& request, const TrainQuery& query, const training::Strategy& strategy);

/// Adds interval, memory and arguments of a plan.
void add_plan(const Request& request, const TrainQuery& query, const search::Candidate& plan, report::Members& row);

}  // namespace assay::verbs::train
