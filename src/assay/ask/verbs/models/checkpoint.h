// What `assay models` says of the tensors of a checkpoint.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/model/accounting.h"
#include "assay/model/checkpoint/checkpoint.h"

namespace assay::verbs::models {

/// Tensors by name and dtype, and how they compare with the model of a configuration where there is one.
void add_checkpoint(report::Response& response, const model::Checkpoint& checkpoint,
                    const model::ParameterCounts* counts, const model::Transformer* model);

}  // namespace assay::verbs::models
