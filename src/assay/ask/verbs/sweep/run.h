// Asks the requests of a sweep, on all cores of all ranks, and keeps each answer as soon as it is there.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/sweep/plan.h"
#include "assay/ask/sweep/store.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs::sweep_verb {

/// The requests of a plan as JSON on one line each, every one once. Faults of all of them come before any is asked.
Result<std::vector<std::string>> requests_of(const sweep::Plan& plan, const std::string& file);

/// What the numbers of answers depend on besides the request.
std::string answered_by(const Context& context);

/// Asks what the store lacks; returns how many this process has answered. Stops early where it is asked to. The first
/// rank waits until the rows of all others are there.
Result<std::size_t> ask_missing(const std::vector<std::string>& requests, sweep::Store& store, std::size_t threads,
                                const Context& context);

}  // namespace assay::verbs::sweep_verb
