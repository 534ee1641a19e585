// `assay train --emit` and `--improve`: the answered plan as something to run, and better plans next to it.
#pragma once
#include "assay/ask/launch/target.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/train/sizes.h"

namespace assay::verbs::train {

std::vector<OptionSpec> train_launch_options();

/// A strategy and its question as fields of a plan: options of the request, and what else programs ask for.
launch::Settings plan_of(const TrainQuery& query, const training::Strategy& strategy);

/// The search for a plan that the target of --emit can run. Where the best plan is of a kind that it cannot run, the
/// search is repeated with the nearest that it can; the request gets these options, and notes say so.
Result<TrainSizes> sizes_to_run(Request& request, const Context& context, std::vector<std::string>& notes);

/// The script of --emit, as the answer; `notes` are those of sizes_to_run(). An error where what it says would not be
/// read as the same plan.
Result<void> add_launch(const Request& request, const Context& context, const SizedTraining& size,
                        const std::vector<std::string>& notes, report::Response& response);

/// Rows of plans that differ in one choice and are faster, or fit where this one does not.
Result<report::Items> change_rows(const Request& request, const TrainQuery& query, const search::Candidate& plan,
                                  bool fits);

}  // namespace assay::verbs::train
