// The steps of a server kernel by kernel: what --list shows and --explain derives.
#pragma once
#include "assay/ask/verbs/serve/query.h"
#include "assay/base/explain.h"

namespace assay::verbs::serve {

/// The steps of a point, derived from their kernels and collectives, and its memory.
struct DerivedSteps {
  NumberOf<Traced, Seconds> decode, prefill;
  NumberOf<Traced, Seconds> mixed;  ///< a step with prompts
  NumberOf<Traced, Bytes> memory;
};
Result<DerivedSteps> derive_steps(const Traced& num, const ServeQuery& query, const serving::ServingPoint& point);

/// The kernels and collectives of a decode step and of a prefill.
struct ListedSteps {
  std::vector<serving::PricedStep> decode, prefill;
};
Result<ListedSteps> listed_steps(const ServeQuery& query, const serving::ServingPoint& point);

/// Adds the kernels and collectives of a decode step and of a prefill.
Result<void> list_steps(const ServeQuery& query, const serving::ServingPoint& point, report::Members& out);

}  // namespace assay::verbs::serve
