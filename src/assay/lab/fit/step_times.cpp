// The fit of the times in catalogue/steps/training.toml: all numbers at once, each by the rows it affects.
#include <cmath>
#include <map>

#include "assay/lab/fit/steps.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::validate {
namespace {

constexpr int fit_rounds = 10;
constexpr double step_stiffness = 0.00002;

/// Rows as a fit sees them, with equal weight per group.
FittedRows training_rows(std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  FittedRows out;
  std::map<std::string, double> members;
  for (const TrainingRow& row : rows) members[row.group] += 1.0;
  for (const TrainingRow& row : rows)
    out.weights.push_back(1.0 / members[row.group] / static_cast<double>(members.size()));
  out.most_misfit = most_misfit;
  out.residual = [&](std::size_t i) {
    const Result<training::TrainingCost> cost = predict(rows[i]);
    if (!cost || !is_possible(rows[i], *cost)) return std::nan("");
    return std::log(cost->estimate / *rows[i].measured);
  };
  // What is recomputed follows from memory and hardly from the numbers: where rows do not say it, it is decided before
  // each round.
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].states_recompute) open.push_back(i);
  out.settle = [&, open] {
    for (const std::size_t i : open) {
      TrainingRow& row = rows[i];
      row.states_recompute = false;
      if (const Result<lower::Recompute> policy = predict.recompute(row)) row.strategy.recompute = *policy;
      row.states_recompute = true;
    }
  };
  return out;
}

}  // namespace

void fit_step_times(const std::vector<TrainingRow>& given, const numbers::FitRanges& ranges,
                    TrainingPredictor& predict) {
  std::vector<TunedNumber> numbers =
      bind_numbers(predict.steps, ranges, step_stiffness,
                   [](auto& steps, auto& visitor) { numbers::visit_training_times(steps, visitor); });
  std::vector<TrainingRow> rows = given;
  const FittedRows fitted = training_rows(rows, predict);
  fitted.settle();
  find_rows(fitted, numbers);
  fit_at_once(numbers, fitted, fit_rounds);
}

}  // namespace assay::validate
