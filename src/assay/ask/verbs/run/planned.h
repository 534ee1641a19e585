// A program that is planned and priced without being executed.
#pragma once
#include <string>

#include "assay/ask/verbs/run/run.h"

namespace assay::verbs::run {

/// The answer about a program in StableHLO.
Result<report::Response> planned_answer(const Request& request, const Context& context, std::string text,
                                        const std::string& name);

}  // namespace assay::verbs::run
