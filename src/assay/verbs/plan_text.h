// Strategies as screens show them: "dp 64, tp 4, micro-batch 1" in parts, and what differs between two of them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/report/response.h"

namespace assay::verbs {

/// "dp 64 · tp 4 · micro-batch 1"
std::vector<report::Phrase> plan_phrases(std::string_view plan);

/// What to change in the plan `from` to get `to`: the whole mesh if it differs, and every other part that does.
std::string plan_difference(std::string_view from, std::string_view to);

/// The first two notes on options: defaults taken, and options without effect.
std::vector<std::string> notes_on_options(const report::Response& response);

}  // namespace assay::verbs
