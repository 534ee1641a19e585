// Bytes that a forward pass keeps for the backward pass, read from the program.
#include <vector>

#include "assay/base/index.h"
#include "assay/program/lower/lowering.h"

namespace assay::lower {
Bytes kept_bytes(const program::Program& program, const program::Block& forward) {
  Bytes sum;
  std::vector<char> counted(program.tensors.size(), 0);
  const auto add = [&](int id) {
    if (id < 0 || counted[at(id)]) return;
    counted[at(id)] = 1;
    const program::ProgramTensor& tensor = program.tensor(id);
    if (tensor.is_kept && !(tensor.is_given && tensor.is_cross_layer))
      sum += program::local_bytes(tensor, tensor.elements);
  };
  for (const program::Step& step : program.steps_of(forward)) {
    for (int id : step.in) add(id);
    for (int id : step.out) add(id);
  }
  return sum;
}

int kept_encoded(const program::Program& program, const program::Block& forward) {
  for (const program::Step& step : program.steps_of(forward))
    for (int id : step.in)
      if (id >= 0 && program.tensor(id).is_given && program.tensor(id).is_cross_layer && program.tensor(id).is_kept &&
          program.tensor(id).tensor_class == program::TensorClass::residual)
        return id;
  return -1;
}

Bytes kept_encoded_bytes(const program::Program& program, const program::Block& forward) {
  const int id = kept_encoded(program, forward);
  return id < 0 ? Bytes() : program::local_bytes(program.tensor(id), program.tensor(id).elements);
}

}  // namespace assay::lower
