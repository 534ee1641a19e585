// The fit of the cost of whole steps beyond their kernels: `assay validate training --fit`. Kernels and collectives use
// the catalogue's calibrations.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/lab/fit/minimise.h"
#include "assay/lab/fit/ranges.h"
#include "assay/lab/fit/training_predictor.h"

namespace assay::validate {

/// Rows that are further off are wrong for some other reason.
inline constexpr double most_misfit = 0.5;
/// |log(predicted / measured)| of a row's time. It is capped: rows that are far off are wrong for some other reason.
double misfit(const training::TrainingCost& cost, const TrainingRow& row);

/// The mean over groups of each group's mean.
class GroupMean {
 public:
  void add(const std::string& group, double value) {
    auto& [sum, count] = groups_[group];
    sum += value;
    count += 1.0;
  }
  double sum() const;
  double mean() const { return groups_.empty() ? 0.0 : sum() / static_cast<double>(groups_.size()); }
  std::size_t groups() const { return groups_.size(); }

 private:
  std::map<std::string, std::pair<double, double>> groups_;
};

/// All step rows used by the fit: our own, published and third-party ones.
Result<std::vector<TrainingRow>> step_rows(const FitInput& input);
/// The rows that times are fitted to: a sample of each group, because its rows are similar.
std::vector<TrainingRow> rows_for_times(const std::vector<TrainingRow>& all);
/// The rows that memory is fitted to.
std::vector<TrainingRow> rows_for_memory(const std::vector<TrainingRow>& all);

/// Mean of |log(predicted / measured)| of times and of peaks; groups have equal weight.
double step_misfit(const std::vector<TrainingRow>& rows, TrainingPredictor& predict);
double memory_misfit(const std::vector<TrainingRow>& rows, TrainingPredictor& predict);

/// Fit the numbers of predict.steps, from the starts of their ranges.
void fit_step_times(const std::vector<TrainingRow>& rows, const numbers::FitRanges& ranges, TrainingPredictor& predict);
void fit_step_memory(const std::vector<TrainingRow>& rows, const numbers::FitRanges& ranges,
                     TrainingPredictor& predict);

/// The text of steps/training.toml by the fold left out of the fit, the last with all of them.
Result<std::vector<std::string>> fit_steps(std::span<const hardware::Catalogue> catalogues,
                                           const std::optional<std::string>& data);

/// Published steps as numbers predict them that were fitted without the row's chip; kernels are those of the catalogue.
/// Chips are left out in as many parts as there are folds.
Result<ValidationResult> steps_without_chips(const hardware::Catalogue& catalogue,
                                             const std::optional<std::string>& data);

}  // namespace assay::validate
