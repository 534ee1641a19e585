// What a training step does around its attention, beyond the kernel: dropout, gradients of one projection, and the
// operations on scores where no fused kernel takes them.
#pragma once
#include "assay/predict/kernel/price.h"

namespace assay::kernel {

/// Extra bytes moved to draw the mask of dropout, over the probabilities (two bytes each): the forward pass reads and
/// writes probabilities and writes their mask of one byte; the backward pass reads the mask, and reads and writes their
/// gradients.
inline constexpr double dropped_traffic = 2.5;

/// Time to draw and store the mask of dropout inside of plain attention.
template <class N>
NumberOf<N, Seconds> dropout_time(const N& num, const KernelRates& rates, const program::Program& program,
                                  const program::Step& step) {
  const Bytes scores = program::local_bytes(program, attention_scores(program, step));
  const auto moved = num.given("passes of dropout", dropped_traffic, "mask and probabilities, over probabilities") *
                     num.given("probabilities", scores, "of plain attention");
  return num.named("dropout", moved / stream_rate(num, rates));
}

/// Time to put gradients of queries, keys and values together, where one product made them.
template <class N>
NumberOf<N, Seconds> projection_time(const N& num, const TrainingKernels& kernels, const program::Program& program,
                                     const program::Step& step) {
  NumberOf<N, Bytes> gradients{};
  for (std::size_t i = 0; i < 3; ++i)
    if (step.out[i] >= 0) gradients = gradients + program::named_bytes(num, program, step.out[i]);
  const auto& projections = kernels.effects.composed->projections;
  const auto moved =
      num.given("kernels it is composed of", projections.value[step.composed], projections.source) *
      (num.given("read and written", 2.0, "once each") * num.named("gradients of queries, keys and values", gradients));
  return num.named("joining gradients", moved / stream_rate(num, kernels.rates));
}

/// Time that the operations of plain attention take beyond one kernel: scores are scaled, masked, cast and normalised.
template <class N>
NumberOf<N, Seconds> scores_time(const N& num, const TrainingKernels& kernels, const program::Program& program,
                                 const program::Step& step, const NumberOf<N, Seconds>& compute) {
  const numbers::ComposedTraffic& composed = *kernels.effects.composed;
  const bool wide = kernels.effects.wide_attention;
  const Bytes scores = program::local_bytes(program, attention_scores(program, step));
  const Given<numbers::Passes>& of_scores = wide ? composed.wide_scores : composed.scores;
  const auto passes = num.given("kernels it is composed of", of_scores.value[step.op == program::Op::attention ? 0 : 1],
                                of_scores.source);
  const auto moved = num.named("operations on scores", passes * num.given("scores", scores, "of plain attention") /
                                                           stream_rate(num, kernels.rates));
  if (!wide) return moved;
  return moved + num.named("products in fp32", num.given("over those at the peak", composed.wide_products) * compute);
}

}  // namespace assay::kernel
