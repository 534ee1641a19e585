// The intervals of whole steps: every group is predicted by a fit that has not seen it, and what is then off, by class
// of step, says how far an estimate may be wrong.
#include <algorithm>
#include <cmath>

#include "assay/hardware/calibration.h"
#include "assay/validate/fit_steps.h"

namespace assay {
namespace {

constexpr std::size_t turns = 5;

/// Each group's fold: groups in the order of their names, in turn.
std::map<std::string, std::size_t> folds_of(const std::vector<TrainingRow>& rows) {
  std::map<std::string, std::size_t> out;
  for (const TrainingRow& row : rows) out.emplace(row.group, 0);
  std::size_t next = 0;
  for (auto& [group, fold] : out) fold = next++ % turns;
  return out;
}

/// Calls `refit` on the rows outside of each fold and `add` for each row in it.
template <class Refit, class Add>
void cross_validate(const std::vector<TrainingRow>& rows, TrainingPredictor& predict, Refit refit, Add add) {
  const StepCalibration whole = predict.steps;
  const std::map<std::string, std::size_t> fold_of = folds_of(rows);
  for (std::size_t fold = 0; fold < turns; ++fold) {
    std::vector<TrainingRow> others;
    for (const TrainingRow& row : rows)
      if (fold_of.at(row.group) != fold) others.push_back(row);
    refit(others);
    for (const TrainingRow& row : rows)
      if (fold_of.at(row.group) == fold)
        if (const Result<TrainingCost> cost = predict(row)) add(row, *cost);
    predict.steps = whole;
  }
}

}  // namespace

void fit_step_intervals(const std::vector<TrainingRow>& timed, const std::vector<TrainingRow>& held,
                        TrainingPredictor& predict) {
  std::vector<Residual> times, peaks;
  const auto residual = [&](const TrainingRow& row, double predicted, double measured, bool of_memory) {
    const Cluster& cluster = *predict.cluster(row);
    return Residual{row.group, std::log(predicted / measured),
                    of_memory ? memory_classes(cluster) : step_classes(cluster, row.model),
                    step_coordinates(cluster, row.model, row.sequence), cluster.chip.architecture};
  };
  cross_validate(
      timed, predict, [&](const std::vector<TrainingRow>& rows) { fit_step_times(rows, predict, false); },
      [&](const TrainingRow& row, const TrainingCost& cost) {
        times.push_back(residual(row, cost.estimate, row.measured->value(), false));
      });
  cross_validate(
      held, predict, [&](const std::vector<TrainingRow>& rows) { fit_step_memory(rows, predict); },
      [&](const TrainingRow& row, const TrainingCost& cost) {
        peaks.push_back(residual(row, peak_bytes(cost.memory, row.view), row.peak->value(), true));
      });
  predict.steps.time_intervals = interval_classes(times, spread_coverage);
  predict.steps.memory_intervals = interval_classes(peaks, spread_coverage);
}

}  // namespace assay
