// The decision walk: which parallelism a batch needs, one test after the other.
#pragma once
#include "assay/ask/report/document.h"

namespace assay::verbs::scaling {

/// Reads the tests from the results of one batch: what there is, what a scheme needs, whether that holds, and what
/// follows.
report::Items walk_rows(const report::Members& results);

}  // namespace assay::verbs::scaling
