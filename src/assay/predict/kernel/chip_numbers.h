// The figures of a chip as numbers of a policy: what the models of kernels have in common.
#pragma once
#include <string>

#include "assay/predict/kernel/kernel_models.h"

namespace assay::kernel {

template <class N>
auto main_memory(const N& num, const CoreRates& chip, const SourceTable* sources) {
  return num.given("hbm", chip.hbm, sources, "hbm");
}
template <class N>
auto core_count(const N& num, const CoreRates& chip, const SourceTable* sources) {
  return num.given("cores", chip.cores, sources, "cores");
}
/// The dense peak of the format, of which `sources` has many.
template <class N, class R>
auto peak_of(const N& num, const R& rates) {
  if constexpr (N::traced)
    return num.given("peak", rates.peak, rates.sources, "peak." + std::string(name(rates.format)));
  else
    return rates.peak;
}
}  // namespace assay::kernel
