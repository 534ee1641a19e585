// Hugging Face configurations (config.json) as models. Missing fields take the defaults of the transformers library.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/result.h"
#include "assay/hardware/catalogue.h"
#include "assay/model/checkpoint/json_reader.h"
#include "assay/model/quantisation.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// A model and the assumptions made to read it.
struct ImportedModel {
  Transformer model;
  std::string family;                        ///< "llama", "deepseek_v3": the configuration's model_type
  std::optional<Quantisation> quantisation;  ///< if weights are published in a format other than model.dtype
  std::vector<std::string> defaults;         ///< "head_dim not given: hidden_size / num_attention_heads = 128"
  std::vector<std::string> notes;            ///< what was left out: a vision tower, prediction layers
};

/// From the parsed configuration; `file` names the place in errors. All faults are reported at once. `as` is a model
/// type to read it as, whatever it says itself; fields that this type does not have are then left out, with a note. The
/// catalogue says what the code of its family composes.
Result<ImportedModel> import_config(const Json& config, std::string_view file, const hardware::Catalogue& catalogue,
                                    std::string_view as = {});
/// From the text of a config.json.
Result<ImportedModel> import_config(std::string_view document, std::string_view file,
                                    const hardware::Catalogue& catalogue, std::string_view as = {});

/// The model types that the catalogue describes, sorted.
Result<std::vector<std::string>> known_model_types(const hardware::Catalogue& catalogue);

}  // namespace assay::model
