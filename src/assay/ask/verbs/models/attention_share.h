// Attention's share of a model's work against the length of sequences.
#pragma once
#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/vary.h"
#include "assay/model/accounting.h"

namespace assay::verbs::models {

/// FLOP and cache of one token at each length of the sweep.
report::Items length_rows(const model::Transformer& model, model::MaskCount mask, Dtype cache,
                          const Variation& lengths);
draw::Scene length_picture(const model::Transformer& model, const report::Items& rows);

}  // namespace assay::verbs::models
