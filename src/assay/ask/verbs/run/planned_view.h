// What an answer says of a planned program: shardings, collectives, time, memory, and what a compiler chose instead.
#pragma once
#include <optional>

#include "assay/ask/verbs/profile/hlo.h"
#include "assay/profile/hlo/partition/partition.h"

namespace assay::verbs::run {

/// A constraint that would help, and what it gains; time where the plan is priced.
struct PlannedPin {
  hlo::PartitionPin pin;
  std::string constraint;
  Bytes gained_bytes;
  Seconds gained_time;
};

struct PlannedProgram {
  hlo::PartitionedProgram plan;                   ///< its module is in the query
  profile::ProgramQuery query;                    ///< what each device runs
  std::optional<profile::ProgramQuery> compiled;  ///< of --against
  std::vector<PlannedPin> pins;
};

/// What a device receives in one run.
Bytes all_received(const profile::ProgramQuery& query);

void add_planned(const PlannedProgram& planned, report::Response& response);

/// With --check, --inputs or --expect: executes the plan, and adds how far its results are from those without a plan.
Result<void> check_plan(const Request& request, const hlo::Module& source, const hlo::PartitionPricing& pricing,
                        const PlannedProgram& program, report::Response& response);

}  // namespace assay::verbs::run
