// Plans as screens show them: "dp 64, tp 4, micro-batch 1" in parts, what differs between two of them, and their
// memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/report/reader.h"
#include "assay/ask/report/response.h"

namespace assay::verbs {

/// "dp 64 · tp 4 · micro-batch 1"
std::vector<report::Phrase> plan_phrases(std::string_view plan);

/// What to change in the plan `from` to get `to`: the whole mesh if it differs, and every other part that does.
std::string plan_difference(std::string_view from, std::string_view to);

/// As many whole parts of a plan as fit into so many columns: "dp 64, tp 4 ..."
std::string shortened_plan(const std::string& plan, std::size_t room);
/// The same for a table whose last column has plans, so that a row is one line.
void shorten_plans(report::ScreenTable& table);

/// "fits", "tight in memory" or "does not fit".
report::Phrase verdict_phrase(const report::Reader& results);
/// What a chip holds of its memory, in these parts; those too small to be shown are left out.
report::FillBar memory_bar(const report::Reader& results, std::vector<report::BarPart> parts);

/// The first two notes on options, on one line if they fit: defaults taken, and options without effect.
std::vector<std::string> notes_on_options(const report::Response& response);

}  // namespace assay::verbs
