// What `assay train` answers to the requests of measured steps, for fits: they price the same rows thousands of times
// with other numbers, so that chips, calibrations and models are read once. A test compares it with the answers.
#pragma once
#include <utility>

#include "assay/lab/validate/rows/measured_clusters.h"
#include "assay/lab/validate/rows/training_rows.h"

namespace assay::validate {

Bytes peak_memory(const training::MemoryParts& memory, MemoryView view);

/// False: faster than the lower bound, so that the row contradicts itself. No fit uses it, but its error is reported.
bool is_possible(const TrainingRow& row, const training::TrainingCost& cost);

/// Predicts rows; chips and calibrations are read once.
class TrainingPredictor {
 public:
  static Result<TrainingPredictor> make(const hardware::Catalogue& catalogue);
  /// With the row's policy, or the fastest that fits if it states none.
  Result<training::TrainingCost> operator()(const TrainingRow& row);
  /// The row's policy, or the fastest that fits.
  Result<lower::Recompute> recompute(const TrainingRow& row);
  /// The family of the row's chips; nullptr if they have none.
  const numbers::Family* family(const TrainingRow& row);
  /// Its cluster; nullptr if the row's does not exist.
  const hardware::Cluster* cluster(const TrainingRow& row);

  numbers::StepCalibration steps;  ///< the catalogue's; a fit changes them

 private:
  explicit TrainingPredictor(const hardware::Catalogue& catalogue) : places_(catalogue) {}
  Result<const Place*> place(const TrainingRow& row);
  using Chosen = std::pair<lower::Recompute, training::TrainingCost>;
  Result<Chosen> chosen(const TrainingRow& row);
  Result<training::TrainingCost> priced(const TrainingRow& row, lower::Recompute policy);

  Places places_;
  numbers::PowerClock clock_;
};

}  // namespace assay::validate
