// The one screen that `assay train` answers with.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs::train {

/// From the results; `plan` is the strategy that they show.
report::Screen train_screen(const Request& request, const report::Response& response, const std::string& plan);

}  // namespace assay::verbs::train
