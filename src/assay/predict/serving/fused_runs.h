// Element-wise steps that good software runs as one kernel.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "assay/predict/serving/batch_linear_kernel.h"
#include "assay/program/form/traffic.h"

namespace assay::serving {

/// A step lowered for `sequences`, and for twice as many.
struct LoweredTwice {
  const program::Program &one, &two;
  double sequences = 1;
  const Traced* num = nullptr;  ///< null: nothing is explained

  template <class N>
  auto bytes(const N& with, int id) const {
    return line_through(sequences, program::named_bytes(with, one, id), program::named_bytes(with, two, id));
  }
};

/// Takes off the bytes of a tensor that a kernel already holds.
inline void take_off(const LoweredTwice& lowered, int id, ServedKernel& kernel) {
  const auto held = lowered.bytes(Plain{}, id);
  if (!(kernel.bytes(lowered.sequences) > held(lowered.sequences))) return;
  kernel.bytes = {kernel.bytes.fixed - held.fixed, kernel.bytes.moving - held.moving};
  if (!lowered.num || !kernel.origin) return;
  KernelOrigin less = *kernel.origin;
  const auto traced = lowered.bytes(*lowered.num, id);
  if (held.fixed.value() != 0.0) less.bytes.fixed = less.bytes.fixed - traced.fixed;
  if (held.moving.value() != 0.0) less.bytes.moving = less.bytes.moving - traced.moving;
  kernel.origin = std::make_shared<const KernelOrigin>(std::move(less));
}

/// A step of an element-wise run does not read the output of the step before from memory. If the block is `repeated`,
/// its first steps follow the last ones of the layer before.
inline void fuse_runs(const LoweredTwice& lowered, const std::vector<const program::Step*>& steps, bool repeated,
                      std::vector<ServedKernel>& kernels) {
  std::vector<int> held;
  bool continues = repeated && !kernels.empty() && is_stream(kernels.back().kernel.kind);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!is_stream(kernels[i].kernel.kind)) {
      held.clear();
      continues = false;
    }
    const int read = steps[i]->in[0];
    if (!is_stream(kernels[i].kernel.kind) || kernels[i].is_view() || read < 0) continue;
    const bool is_made = std::find(held.begin(), held.end(), read) != held.end();
    const bool is_stream = lowered.one.tensor(read).tensor_class == program::TensorClass::residual;
    if (is_made || (continues && held.empty() && is_stream)) take_off(lowered, read, kernels[i]);
    for (const int id : steps[i]->out)
      if (id >= 0) held.push_back(id);
  }
}

}  // namespace assay::serving
