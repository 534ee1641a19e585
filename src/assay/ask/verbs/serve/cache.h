// What-if of the KV cache: fewer heads, windows, layers that share.
#pragma once
#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/serve/query.h"
#include "assay/model/cache_mix.h"

namespace assay::verbs::serve {

/// --kv-heads, --window, --local-layers and --share-cache.
Result<model::CacheMix> read_cache_mix(const Request& request, std::vector<std::string>& notes);

/// The cache of a sequence at several lengths, and of the model without what-ifs.
report::Items cache_rows(const ServeQuery& query);
draw::Chart cache_chart(const ServeQuery& query);

}  // namespace assay::verbs::serve
