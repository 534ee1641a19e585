// How long a kernel takes on a chip when it is measured in some way. `assay roofline` answers with these times, and
// calibrations are fitted to them.
#pragma once
#include <optional>
#include <string_view>

#include "assay/base/dtype.h"
#include "assay/hardware/calibration.h"
#include "assay/predict/kernel/kernel.h"
#include "assay/predict/kernel/measured/harness.h"

namespace assay::kernel {

/// What a kernel runs on. Holds references: for the duration of a call.
struct KernelPlace {
  const hardware::Calibration& fits;
  CoreRates cores;
  FlopsPerSecond peak;  ///< dense, of the kernel's format
  std::string_view architecture;
  const SourceTable* sources = nullptr;  ///< of the chip, the calibration and the way of measuring, for derivations

  /// Whether the calibration has what the kernel needs.
  bool has(const Kernel& kernel) const;
};
/// Empty if the chip lacks the format.
std::optional<KernelPlace> kernel_place(const Kernel& kernel, const hardware::Chip& chip,
                                        const hardware::Calibration& calibration);

/// The parts of a kernel's time. Of a product `product` has the total without the casting.
template <class N>
struct MeasuredTimeOf {
  NumberOf<N, Seconds> launch, casting;
  MatmulTimeOf<N> product;
  NumberOf<N, Seconds> arithmetic;  ///< attention: tiles of scores
  NumberOf<N, Seconds> memory;      ///< streams, decode, and passes of attention
  NumberOf<N, Seconds> total;
};
using MeasuredTime = MeasuredTimeOf<Plain>;
/// The place must have what the kernel needs.
template <class N>
MeasuredTimeOf<N> measured_time(const N& num, const Kernel& kernel, const KernelPlace& place, const Harness& harness);

/// The spread class of a kernel kind.
double spread_of(const hardware::SpreadCalibration& spread, KernelKind kind);

}  // namespace assay::kernel
