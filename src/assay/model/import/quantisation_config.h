// The `quantization_config` of a configuration: which weights are published in which format.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/model/checkpoint/json_reader.h"
#include "assay/model/quantisation.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// What `entry` says of the model's weights; nothing, and a note why, where it is not understood.
std::optional<Quantisation> read_quantisation(const Json& entry, const Transformer& model,
                                              std::vector<std::string>& notes);

}  // namespace assay::model
