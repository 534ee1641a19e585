#include "assay/program/plan/memory.h"

#include <algorithm>

namespace assay::plan {

Bytes peak_memory(const program::Mesh& mesh, const Plan& plan) {
  constexpr std::size_t never = static_cast<std::size_t>(-1);
  std::vector<std::size_t> made(plan.tensors.size(), never), read(plan.tensors.size(), 0);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const std::int16_t tensor : plan.steps[i].in)
      if (tensor >= 0) read[static_cast<std::size_t>(tensor)] = i;
    for (const std::int16_t tensor : plan.steps[i].out)
      if (tensor >= 0) made[static_cast<std::size_t>(tensor)] = i;
  }
  read[static_cast<std::size_t>(plan.last())] = plan.steps.size();
  Bytes most;
  for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
    Bytes held;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t)
      if (made[t] == never || (made[t] <= i && i <= read[t])) held += program::local_bytes(mesh, plan.tensors[t]);
    most = std::max(most, held);
  }
  return most;
}

}  // namespace assay::plan
