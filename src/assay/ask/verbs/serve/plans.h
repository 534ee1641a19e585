// A point as a row of an answer: where measurements put its time per token, whether it fits, and the request that asks
// for it.
#pragma once
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/serve/query.h"

namespace assay::verbs::serve {

std::string_view cache_name(lower::CacheScheme scheme);
/// As --cache takes it.
std::string cache_name(const serving::ServingStrategy& strategy);
/// As --ep-over takes it, or none.
std::string expert_axes(const serving::ServingStrategy& strategy);

/// Whether a server fits with the margin, only without it, or not at all: fits, tight, no.
std::string_view memory_verdict(const ServeQuery& query, Bytes total);

/// The request that asks for this point alone: every choice is written out, what else was asked for is left out.
Request plan_request(const Request& request, const ServeQuery& query, const serving::ServingPoint& point);

/// Adds interval, memory and arguments of a point; no arguments without a request that asks for it.
void add_plan(const std::optional<Request>& request, const ServeQuery& query, const serving::ServingPoint& point,
              report::Members& row);

}  // namespace assay::verbs::serve
