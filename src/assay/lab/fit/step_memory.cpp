// The fit of the memory numbers in catalogue/steps/training.toml.
#include "assay/lab/fit/steps.h"

namespace assay::validate {

void fit_step_memory(const std::vector<TrainingRow>& rows, const TrainingRanges& ranges, TrainingPredictor& predict) {
  kernel::StepCalibration& s = predict.steps;
  constexpr std::size_t fused = 0, compiled = 1, eager = 2, xla = 3;
  s.activations.fill(ranges.activations.start);
  s.logits.fill(ranges.logits.start);
  s.logits[fused] = ranges.logits_fused.start;
  s.reserved.fill(ranges.reserved.start);
  s.context.fill(ranges.context.start);
  s.context[xla] = Bytes(0);
  // All GPUs share one allocator and one driver; XLA plans memory ahead, and no table shows what its runtime uses.
  const FitParameter allocator{ranges.reserved.start, ranges.reserved.low, ranges.reserved.high, [&](double x) {
                                 for (std::size_t w = 0; w < xla; ++w) s.reserved[w] = x;
                               }};
  const FitParameter driver{ranges.context.start.value(), ranges.context.low.value(), ranges.context.high.value(),
                            [&](double x) {
                              for (std::size_t w = 0; w < xla; ++w) s.context[w] = Bytes(x);
                            }};
  std::vector<FitParameter> all = {allocator, driver};
  for (const std::size_t way : {compiled, eager}) {
    all.push_back(fit(s.activations[way], ranges.activations));
    all.push_back(fit(s.logits[way], ranges.logits));
  }
  minimise(
      all, [&] { return memory_misfit(rows, predict); }, 600);
}

}  // namespace assay::validate
