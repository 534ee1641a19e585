// The fit of the numbers of memory in catalogue/steps/training.toml.
#include "assay/validate/fit/steps.h"

namespace assay::validate {

void fit_step_memory(const std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  estimate::StepCalibration& s = predict.steps;
  constexpr std::size_t fused = 0, compiled = 1, eager = 2, tpu = 3;
  const estimate::StepCalibration neutral;
  s.activations = neutral.activations, s.logits = neutral.logits, s.reserved = neutral.reserved;
  // All GPUs have one allocator and one driver; XLA lays out memory ahead, and no table tells what its runtime takes.
  double reserved = 1.0;
  Bytes context = 1_GiB;
  const FitParameter allocator{reserved, 1.0, 1.3, [&](double x) {
                                 for (std::size_t w = 0; w < tpu; ++w) s.reserved[w] = x;
                               }};
  const FitParameter driver{context.value(), (0.25 * 1_GiB).value(), (8.0 * 1_GiB).value(), [&](double x) {
                              for (std::size_t w = 0; w < tpu; ++w) s.context[w] = Bytes(x);
                            }};
  s.context = {context, context, context, Bytes(0)};
  std::vector<FitParameter> all = {allocator, driver};
  for (const std::size_t way : {compiled, eager}) all.push_back(fit(s.activations[way], 0.5, 2.0));
  for (const std::size_t way : {fused, compiled, eager}) all.push_back(fit(s.logits[way], 0.5, 3.0));
  minimise(
      all, [&] { return memory_misfit(rows, predict); }, 600);
}

}  // namespace assay::validate
