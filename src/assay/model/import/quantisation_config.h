// The `quantization_config` of a configuration: which weights are published in which format.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/model/checkpoint/json_reader.h"
#include "assay/model/quantisation.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// The quantisation that `entry` describes; nothing, with a note, if it is not understood.
std::optional<Quantisation> read_quantisation(const Json& entry, const Transformer& model,
                                              std::vector<std::string>& notes);

}  // namespace assay::model
