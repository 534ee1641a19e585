// The numbers of one deployment: its host, its way from the client to the engine, its clock. `assay calibrate` fits
// them to somebody's own measurements and writes steps/deployment.toml, which --catalogue lays over the assumed ones.
#pragma once
#include <string>
#include <string_view>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/predict/numbers/serving_effects.h"

namespace assay::numbers {

/// Every number of a server that its deployment decides: the key in the file, its value, and what it means.
template <class V>
void visit_deployment(ServingEffects& effects, RequestPath& path, const V& visit) {
  visit("step", effects.step, "host time per step");
  visit("sequence", effects.sequence, "host time per sequence");
  visit("beside", effects.beside, "host time per sequence beside the step");
  visit("front_end", path.front_end, "front end");
  visit("delivery", path.delivery, "delivery of a sequence");
  visit("products", effects.product, "matmuls over those at the usual clock");
}
/// The same of a training run.
template <class V>
void visit_deployment(StepEffects& effects, const V& visit) {
  visit("launch", effects.launch, "host time of each step of the program");
  visit("straggler", effects.straggler, "share of the step for each doubling of the chips beyond eight");
  visit("products", effects.product, "matmuls over those at the usual clock");
}

inline constexpr std::string_view deployment_file = "steps/deployment.toml";
/// Whether a number with this source was fitted to measurements of the user's own deployment.
bool is_of_deployment(std::string_view source);

/// Puts the measured numbers of the catalogue's deployment, if it has one, in place of the assumed ones.
Result<void> apply_deployment(const hardware::Catalogue& catalogue, ServingEffects& effects, RequestPath& path);
Result<void> apply_deployment(const hardware::Catalogue& catalogue, StepEffects& effects);

}  // namespace assay::numbers
