// JSON Schema (2020-12) of requests and answers. Requests come from the verb table, answers from what each verb
// declares.
#pragma once
#include <string_view>

#include "assay/ask/report/document.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs {

/// The schema of one verb, or of all. `$defs` has `request`, `answer` and `error`, whose forms for a verb are
/// `VERB.request` and `VERB.answer`.
Result<report::Value> json_schema(std::string_view verb);

}  // namespace assay::verbs
