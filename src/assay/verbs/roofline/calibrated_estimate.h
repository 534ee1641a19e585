// The estimate of one operation on one chip from the chip's calibration, where there is one.
#pragma once
#include <optional>
#include <string>

#include "assay/estimate/kernel_models.h"
#include "assay/hardware/calibration.h"
#include "assay/report/document.h"
#include "assay/verbs/roofline/query.h"

namespace assay::verbs::roofline {

class CalibratedEstimate {
 public:
  /// Without effect (`used` is false) where the chip has no calibration, products are of a format that was not
  /// measured, the work does not come from main memory on one chip, or the user has set an efficiency.
  static Result<CalibratedEstimate> make(const Request& request, const Context& context, const RooflineQuery& query);

  bool used() const { return calibration_.has_value(); }
  /// Never below the bound.
  Seconds of(const assay::roofline::Operation& operation, const assay::roofline::Bound<Plain>& bound) const;
  /// The range of a time with this estimate, and the interval in which four of five measurements lie.
  report::Members range(const assay::roofline::Bound<Plain>& bound, const assay::roofline::Operation& operation) const;
  /// What the answer says of the calibration.
  report::Members details(const assay::roofline::Operation& operation) const;
  std::string note() const;
  /// The same estimate, derived.
  Traced::Number<Dim{.sec = 1}> traced(const Traced& num, const assay::roofline::Operation& operation) const;

 private:
  estimate::MatmulTime product(const assay::roofline::Matmul& matmul) const;
  Seconds unbounded(const assay::roofline::Operation& operation) const;
  Traced::Number<Dim{.sec = 1}> traced_product(const Traced& num, const assay::roofline::Matmul& matmul) const;

  std::optional<hardware::ChipCalibration> calibration_;
  estimate::CoreRates cores_;
  Sourced<FlopsPerSecond> peak_;
  Sourced<BytesPerSecond> hbm_;
  double share_ = 0;
  hardware::Regime regime_;
  std::string regime_name_, chip_;
};

}  // namespace assay::verbs::roofline
