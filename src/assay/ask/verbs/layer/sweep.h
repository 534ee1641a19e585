// assay layer --vary: a layer over its batch, or over the chips that it is split over.
#pragma once
#include "assay/ask/verbs/request.h"

namespace assay::verbs::layer {

Result<report::Response> sweep_answer(const Request& request, const Context& context);

}  // namespace assay::verbs::layer
