// The shape of a model as programs ask for it: layers, widths, heads, experts.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/launch/target.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/transformer.h"

namespace assay::verbs {

/// Layers, widths, heads and experts as fields of a plan. `shape` is "plain" where all layers are alike and these
/// fields say all about them.
launch::Settings model_shape(const model::Transformer& model);

/// Ids of catalogue models whose shape has all of the fields that a plan gives, shortest first; none where it gives too
/// few to tell.
Result<std::vector<std::string>> models_alike(const hardware::Catalogue& catalogue, const launch::Settings& plan);

/// The name by which other programs download a model of the catalogue; its own words for all others.
std::string hub_name(std::string_view model, const hardware::Catalogue& catalogue);

}  // namespace assay::verbs
