// The intervals of whole steps: every group is predicted by a fit that has not seen it, and what is then off, by class
// of step, says how far an estimate may be wrong.
#include <algorithm>
#include <cmath>

#include "assay/hardware/calibration.h"
#include "assay/validate/fit_steps.h"

namespace assay {
namespace {

constexpr std::size_t turns = 5;

/// Each group's turn: groups in the order of their names.
std::map<std::string, std::size_t> turns_of(const std::vector<TrainingRow>& rows) {
  std::map<std::string, std::size_t> out;
  for (const TrainingRow& row : rows) out.emplace(row.group, 0);
  std::size_t next = 0;
  for (auto& [group, turn] : out) turn = next++ % turns;
  return out;
}

/// Calls `refit` on the rows that are not at their turn and `add` for each that is.
template <class Refit, class Add>
void cross_validate(const std::vector<TrainingRow>& rows, TrainingPredictor& predict, Refit refit, Add add) {
  const StepCalibration whole = predict.steps;
  const std::map<std::string, std::size_t> turn_of = turns_of(rows);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    std::vector<TrainingRow> others;
    for (const TrainingRow& row : rows)
      if (turn_of.at(row.group) != turn) others.push_back(row);
    refit(others);
    for (const TrainingRow& row : rows)
      if (turn_of.at(row.group) == turn)
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
