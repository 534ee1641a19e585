// What readers of both texts do when all computations are there: names become numbers.
#pragma once
#include <string_view>
#include <vector>

#include "assay/profile/hlo/module.h"

namespace assay::hlo {

/// Names that instructions use before they are known to exist.
struct OpenNames {
  struct Call {
    std::uint32_t computation, instruction;
    std::string_view key, name;
  };
  std::vector<Call> calls;
};

/// Finds the computations of all calls, marks bodies of fusions, takes the entry's parameters and refuses recursion.
Result<void> link(Module& module, const OpenNames& open);

}  // namespace assay::hlo
