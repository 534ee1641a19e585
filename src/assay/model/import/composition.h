// How the library that a configuration is written for composes its blocks of operations. No shape depends on it, but
// eager software runs a kernel for each.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/checkpoint/json_reader.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// What the code of a family does where its configuration does not say.
struct FamilyCode {
  JoinedProjection projections = JoinedProjection::none;
  bool joined_gate = false;  ///< gate and input are halves of one product's result
  Activation function = Activation::simple;
  double turning = 0;  ///< share of each head that turns and is joined with the rest; 0: heads turn as they are
  Rotation rotation = Rotation::halves;
  bool composed_norm = false;
  Logits logits = Logits::plain;
};

/// catalogue/steps/code.toml.
struct FamilyCodes {
  std::map<std::string, FamilyCode, std::less<>> families;     ///< by model_type
  std::map<std::string, Activation, std::less<>> other_names;  ///< of activation functions
};

/// Reads such a file, whose families the catalogue describes; reports every fault at once.
Result<FamilyCodes> read_family_codes(std::string_view document, std::string_view file,
                                      const hardware::Catalogue& catalogue);
/// Those of the catalogue, read once; none if it has none.
Result<const FamilyCodes*> family_codes(const hardware::Catalogue& catalogue);

/// Fills in what the code of a family does with its layers, by operation.
void read_composition(const Json& config, std::string_view model_type, const FamilyCodes& codes, Transformer& model);

}  // namespace assay::model
