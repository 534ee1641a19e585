// The weights of a published checkpoint, in the layout that programs read.
#pragma once
#include "assay/base/result.h"
#include "assay/engine/program/run_program.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/model/import/published.h"

namespace assay::engine {

/// All weights of a model from its files, under the names of NamedArrays. Numbers of the model that multiply or permute
/// weights are part of them: what remains for the engine is model.definition. An error where a tensor is missing, has
/// another shape or a packed format, or where the files have one that the model does not.
Result<NamedArrays> published_weights(const model::Checkpoint& files, const model::Published& stored,
                                      const model::Transformer& model);

}  // namespace assay::engine
