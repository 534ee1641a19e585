// FLOP and bytes of operations, from the shapes that a profiler recorded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/units.h"
#include "assay/profile/trace/vocabulary.h"

namespace assay::trace {

struct InputTensor {
  std::vector<std::int64_t> dims;
  double listed = 0;  ///< of a list of tensors: numbers in all of them
  std::string type;
  std::string value;  ///< of a number, a truth or a list of numbers; empty for tensors
};

/// The inputs of an operation, in order; `text` is what Event::inputs names.
std::vector<InputTensor> parse_inputs(std::string_view text);

/// Shapes for people: "[4096, 8192] [8192, 1024]"; without inputs that have none.
std::string shapes_text(const std::vector<InputTensor>& inputs);

struct Work {
  Flops flops;
  std::optional<Bytes> bytes;   ///< each input read once and the result written once; nothing where a type is not known
  std::optional<Dtype> format;  ///< of the products
  bool matrix = false;          ///< products of matrices, which have a peak of their own
  bool causal = false;          ///< attention of which half of the square is counted
};

/// The work of one call; nothing where the shapes do not suit the form. An addition of a bias counts one FLOP per
/// element; causal attention half of the square; the gradient of attention five products instead of two, since it
/// computes the scores again.
std::optional<Work> work_of(const OperationForm& form, const std::vector<InputTensor>& inputs,
                            const Vocabulary& vocabulary);

}  // namespace assay::trace
