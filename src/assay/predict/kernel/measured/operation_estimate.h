// The calibrated time of one operation on one chip, as some way of measuring shows it.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/hardware/calibration.h"
#include "assay/predict/kernel/measured/measured_kernel.h"
#include "assay/predict/roofline/roofline.h"

namespace assay::kernel {

/// How an operation is run.
struct OperationSetting {
  Dtype compute = Dtype::bf16;  ///< format of products
  Sourced<FlopsPerSecond> peak;
  Sourced<BytesPerSecond> hbm;
  MeasuredWay way;
  hardware::AttentionKernel attention = hardware::AttentionKernel::automatic;
};

class OperationEstimate {
 public:
  /// Nothing where the calibration lacks what one of the operations needs: a fit of its kind or its format.
  static std::optional<OperationEstimate> make(const hardware::Chip& chip, hardware::ChipCalibration calibration,
                                               std::span<const roofline::Operation> operations,
                                               const OperationSetting& setting);

  /// The time by the fit alone; it may be below the bound of ideal rates.
  Seconds fitted(const roofline::Operation& operation) const;
  /// Never below the bound.
  Seconds time(const roofline::Operation& operation, const roofline::Bound<Plain>& bound) const;
  /// The parts of that time.
  MeasuredTime parts(const roofline::Operation& operation) const;
  /// Four of five measurements are within a factor of 1 + spread; 0 if unknown.
  double spread(const roofline::Operation& operation) const;
  /// A product whose odd rows are padded to whole cache lines.
  struct Padded {
    double n, k;
    Seconds time;
  };
  /// Nothing where rows are not so odd that the library falls back to slow kernels.
  std::optional<Padded> padded(const roofline::Operation& operation) const;
  /// fitted(), derived.
  NumberOf<Traced, Seconds> traced(const Traced& num, const roofline::Operation& operation) const;

  const hardware::ChipCalibration& calibration() const { return calibration_; }
  const MeasuredWay& way() const { return setting_.way; }

 private:
  Kernel kernel(const roofline::Operation& operation) const;
  KernelPlace place() const { return {calibration_.values, cores_, setting_.peak.value, architecture_, &sources_}; }

  hardware::ChipCalibration calibration_;
  OperationSetting setting_;
  CoreRates cores_;
  std::string architecture_;
  SourceTable sources_;
};

}  // namespace assay::kernel
