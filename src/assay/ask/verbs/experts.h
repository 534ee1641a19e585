// Options about experts that training and serving share.
#pragma once
#include <optional>

#include "assay/ask/verbs/request.h"
#include "assay/model/transformer.h"
#include "assay/predict/training/stage_links.h"

namespace assay::verbs {

/// --dispatch; an error where the model has no experts.
Result<void> read_dispatch(const Request& request, const model::Transformer& model, training::Dispatch& out);

/// --ep-over: nothing where it is not given. Data-parallel devices make up the rest, whether they are named or not.
Result<void> read_expert_axes(const Request& request, std::optional<lower::ExpertAxes>& out);

/// Whether experts can be split so many ways over the given axes; other axes may make up the rest.
Result<void> check_experts(std::int64_t ways, const std::optional<lower::ExpertAxes>& over, std::int64_t tensor,
                           std::int64_t context, const model::Transformer& model);

}  // namespace assay::verbs
