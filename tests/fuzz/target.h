#pragma once
// All fuzz targets are one program, `assay_fuzz NAME ...`, so that the library is linked once and not once a reader.
// Before any `using namespace assay`: these sources are compiled as one, and fmt has a compare() where assay has a
// folder.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace assay::fuzz {

/// What is tried with every input; defined once in each file.
struct Target {
  Target(std::string_view name, void (*run)(std::string_view input));
};

inline void require(bool truth) {
  if (!truth) std::abort();
}

}  // namespace assay::fuzz
