// Weights as a file in the format of safetensors, in fp64: what a training run saves and a serving run starts from.
#pragma once
#include <map>
#include <string>

#include "assay/base/result.h"
#include "assay/engine/program/run_program.h"

namespace assay::engine {

struct WeightsFile {
  NamedArrays weights;
  std::map<std::string, std::string> facts;  ///< "merges" of the tokenizer
};

std::string weights_bytes(const WeightsFile& file);
/// `where` names the option in errors.
Result<WeightsFile> read_weights(const std::string& path, std::string_view where);

/// An error unless the arrays are those that a model starts from: the same names and shapes.
Result<void> check_weights(const NamedArrays& weights, const NamedArrays& initial, std::string_view where);

}  // namespace assay::engine
