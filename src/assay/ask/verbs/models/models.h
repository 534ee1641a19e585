// The parts of `assay models` besides the counts: sweeps over lengths, tensors of checkpoints, the picture of a layer.
#pragma once
#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/report/response.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/base/result.h"
#include "assay/model/accounting.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/model/transformer.h"

namespace assay::verbs::models {

// Attention's share of a model's work against the length of sequences.

/// FLOP and cache of one token at each length of the sweep.
report::Items length_rows(const model::Transformer& model, model::MaskCount mask, Dtype cache,
                          const Variation& lengths);
draw::Scene length_picture(const model::Transformer& model, const report::Items& rows);

// What `assay models` says of the tensors of a checkpoint.

/// Tensors by name and dtype, and how they compare with the model of a configuration where there is one.
void add_checkpoint(report::Response& response, const model::Checkpoint& checkpoint,
                    const model::ParameterCounts* counts, const model::Transformer* model);

// The graph of a model's layer: every operation of its forward pass, with the shapes that it reads and makes.

/// Draws the most frequent kind of layer; an error where the model has no program.
Result<void> draw_layer(const model::Transformer& model, report::Response& response);

}  // namespace assay::verbs::models
