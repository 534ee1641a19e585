// A program that is planned and priced without being executed.
#pragma once
#include <string>

#include "assay/ask/verbs/run/run.h"
#include "assay/ask/verbs/run/planned_view.h"

namespace assay::verbs::run {

/// The answer about a program in StableHLO.
Result<report::Response> planned_answer(const Request& request, const Context& context, std::string text,
                                        const std::string& name);

/// With --check, --inputs or --expect: executes the plan, and adds how far its results are from those without a plan.
Result<void> check_plan(const Request& request, const hlo::Module& source, const hlo::PartitionPricing& pricing,
                        const PlannedProgram& program, report::Response& response);

}  // namespace assay::verbs::run
