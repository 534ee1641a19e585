// What benchmarks share: the built-in catalogue, and results that must be there.
#pragma once
#include <stdexcept>
#include <utility>

#include "assay/hardware/catalogue.h"

namespace assay::bench {

template <class T>
T required(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().where + ": " + result.error().what);
  return *std::move(result);
}

inline const hardware::Catalogue& catalogue() {
  static const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  return builtin;
}

}  // namespace assay::bench
