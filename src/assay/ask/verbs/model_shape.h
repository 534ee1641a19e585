// The shape of a model as programs ask for it: layers, widths, heads, experts.
#pragma once
#include <string>
#include <vector>

#include "assay/ask/launch/target.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/transformer.h"

namespace assay::verbs {

/// Layers, widths, heads and experts as fields of a plan. `traits` names what sets the model apart from plain layers,
/// as far as sequences of this length show it; 0: of any length.
launch::Settings model_shape(const model::Transformer& model, std::int64_t sequence = 0);

/// Ids of catalogue models whose shape has all of the fields that a plan gives, shortest first; if there is none, the
/// only one with these layers, width and heads; none where a plan gives too few to tell.
Result<std::vector<std::string>> models_alike(const hardware::Catalogue& catalogue, const launch::Settings& plan);

/// The name by which other programs download a model of the catalogue; its own words for all others.
std::string hub_name(std::string_view model, const hardware::Catalogue& catalogue);

}  // namespace assay::verbs
