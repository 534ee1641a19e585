// What `assay models` says of the tensors of a checkpoint.
#pragma once
#include "assay/model/accounting.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/report/response.h"

namespace assay {

/// Tensors by name and dtype, and how they compare with the model of a configuration where there is one.
void add_checkpoint(Response& response, const Checkpoint& checkpoint, const ParameterCounts* counts,
                    const Transformer* model);

}  // namespace assay
