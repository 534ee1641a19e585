// One step of a program on one device: picks the operation's kernel and locates its operands in the whole tensors.
#pragma once
#include <vector>

#include "assay/engine/program/tensor_layout.h"
#include "assay/model/transformer.h"

namespace assay::engine {

/// The values of a program's tensors in one pass, by tensor and device; empty if not computed yet.
using ProgramMemory = std::vector<Shards>;

/// The context that a step runs in.
struct LocalContext {
  const TensorLayout& layout;
  const model::Layer* layer = nullptr;  ///< nullptr: embedding and head
  const ProgramMemory& memory;
  std::size_t device = 0;
  Array* state = nullptr;  ///< of a recurrent step, from earlier tokens
  double tokens = 1;       ///< the loss is averaged over these
  const model::Definition& definition;
};

/// The results of a step on one device, without absent ones.
std::vector<Array> run_local(const program::Step& step, const LocalContext& context);

}  // namespace assay::engine
