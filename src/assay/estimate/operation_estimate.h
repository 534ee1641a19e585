// The calibrated time of one operation on one chip: a matrix product or a function that streams memory.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/estimate/kernels.h"
#include "assay/hardware/calibration.h"
#include "assay/roofline/roofline.h"

namespace assay::estimate {

/// How an operation is run.
struct OperationSetting {
  Dtype compute = Dtype::bf16;  ///< format of products
  Sourced<FlopsPerSecond> peak;
  Sourced<BytesPerSecond> hbm;
  std::string regime = "burst";  ///< or "sustained"
};

class OperationEstimate {
 public:
  /// Nothing where the calibration lacks what one of the operations needs: a fit of its kind, its format or the regime.
  static std::optional<OperationEstimate> make(const hardware::Chip& chip, hardware::ChipCalibration calibration,
                                               std::span<const roofline::Operation> operations,
                                               const OperationSetting& setting);

  /// The time by the fit alone; it may be below the bound of ideal rates.
  Seconds fitted(const roofline::Operation& operation) const;
  /// Never below the bound.
  Seconds time(const roofline::Operation& operation, const roofline::Bound<Plain>& bound) const;
  /// The parts of the time of a product.
  MatmulTime product(const roofline::Operation& operation) const;
  /// Four of five measurements are within a factor of 1 + spread; 0 if unknown.
  double spread(const roofline::Operation& operation) const;
  /// fitted(), derived.
  NumberOf<Traced, Seconds> traced(const Traced& num, const roofline::Operation& operation) const;

  const hardware::ChipCalibration& calibration() const { return calibration_; }
  const hardware::Regime& regime() const { return regime_; }
  const std::string& regime_name() const { return setting_.regime; }

 private:
  KernelWork work(const roofline::Operation& operation) const;

  hardware::ChipCalibration calibration_;
  OperationSetting setting_;
  KernelRates rates_;
  hardware::Regime regime_;
};

}  // namespace assay::estimate
