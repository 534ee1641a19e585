// The fit of the memory numbers in catalogue/steps/training.toml.
#include "assay/lab/fit/steps.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::validate {

void fit_step_memory(const std::vector<TrainingRow>& rows, const numbers::FitRanges& ranges,
                     TrainingPredictor& predict) {
  std::vector<FitParameter> all;
  for (const TunedNumber& one : bind_numbers(predict.steps, ranges, 0.0, [](auto&steps, auto&visitor) {
         numbers::visit_training_memory(steps, visitor);
       }))
    all.push_back(one.parameter);
  minimise(
      all, [&] { return memory_misfit(rows, predict); }, 600);
}

}  // namespace assay::validate
