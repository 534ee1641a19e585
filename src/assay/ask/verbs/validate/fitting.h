// The fit of the calibrations: what `assay validate --fit` writes.
#pragma once
#include "assay/ask/verbs/request.h"

namespace assay::verbs::validate_verb {

/// The fitted files, below the directory that the request names.
Result<report::Response> answer_fit(const Request& request, const hardware::Catalogue& catalogue);

}  // namespace assay::verbs::validate_verb
