// --requests: real requests, the prefixes that they share, and a cache of them.
#pragma once
#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/serve/query.h"

namespace assay::verbs::serve {

/// Reads the requests of --requests, from a file, an attached one, or the text itself.
Result<void> read_requests(const Request& request, const Context& context, ServeQuery& query);
/// Plays them on the cache of prefixes: what it hits is the cached part of prompts. The formats must be known.
Result<void> replay_requests(const Request& request, ServeQuery& query);

report::Members prefix_section(const ServeQuery& query, const serving::ServingPoint& point);
/// The trie of the prefixes.
draw::Scene prefix_picture(const ServeQuery& query);

}  // namespace assay::verbs::serve
