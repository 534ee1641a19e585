// The graph of a model's layer: every operation of its forward pass, with the shapes that it reads and makes.
#pragma once
#include "assay/ask/report/response.h"
#include "assay/base/result.h"
#include "assay/model/transformer.h"

namespace assay::verbs::models {

/// Draws the most frequent kind of layer; an error where the model has no program.
Result<void> draw_layer(const model::Transformer& model, report::Response& response);

}  // namespace assay::verbs::models
