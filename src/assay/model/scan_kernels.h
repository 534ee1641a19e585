// A scan as kernels run it.
//
// In chunks (Dao and Gu 2024, section 6): the state at the end of each chunk, passed on to the next, then scores of the
// chunk's tokens with each other, times their values, and what the state adds. The delta rule also solves for the
// values that a chunk writes (Yang et al. 2024). Gradients are two products for each product; the backward pass
// computes states and scores again, and one more product for the gradients of decays. What is counted in bytes are the
// kernels that the authors of the first published (state-spaces/mamba, ssd_combined.py): states leave as fp32, are
// passed on in fp32, and are read as bf16.
#pragma once
#include "assay/base/dtype.h"
#include "assay/base/explain.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// What the work of a scan follows from.
struct ScanKernels {
  Flops per_cell;      ///< of a token, for each cell of a state
  double keys = 0;     ///< numbers of a key
  double chunk = 0;    ///< tokens that are worked on together; 0: token by token
  double scores = 0;   ///< of a token, for each channel of the values
  bool delta = false;  ///< solves for what a chunk writes
};
ScanKernels scan_kernels(const StateSpace& s);

/// For each token and channel of the values: arithmetic, and bytes beyond inputs and results.
template <class N>
struct ScanPass {
  NumberOf<N, Flops> flops;
  NumberOf<N, Bytes> bytes;
};

template <class N>
ScanPass<N> scan_pass(const N& num, const ScanKernels& of, bool backward) {
  const auto keys = num.given("numbers of a key", of.keys, "cells of a channel's state");
  if (of.chunk == 0.0) {
    const auto once = num.given("FLOP of a cell", of.per_cell, "the recurrence of a token") * keys;
    const auto times = num.given("passes", backward ? 3.0 : 1.0, backward ? "states again, and two gradients" : "one");
    return {num.named("FLOP of a channel", times * once), num.given("kept in registers", Bytes(0), "states")};
  }
  // Products of a chunk with states, values and scores; then states, scores and values that are moved.
  struct Counts {
    double states, values, scores;
    double wide_states, narrow_states, wide_scores, narrow_values;
  };
  const Counts count = of.delta ? (backward ? Counts{8, 5, 8, 6, 5, 4, 7} : Counts{3, 2, 3, 2, 2, 2, 1})
                                : (backward ? Counts{5, 3, 3, 6, 5, 4, 7} : Counts{2, 1, 1, 2, 2, 2, 1});
  const auto chunk = num.given("tokens of a chunk", of.chunk, "worked on together"),
             scores = num.given("scores of a channel", of.scores, "of a token, shared by heads"),
             states = num.named("states of a channel", keys / chunk);
  const auto multiplied = num.given("products of states", count.states, "of a pass") * keys +
                          num.given("products of values", count.values, "of a pass") * chunk +
                          num.given("products of scores", count.scores, "of a pass") * scores * keys;
  const auto wide = num.given("element in fp32", storage(Dtype::fp32, 1.0), name(Dtype::fp32)),
             narrow = num.given("element in bf16", storage(Dtype::bf16, 1.0), name(Dtype::bf16));
  const auto moved = states * (num.given("states in fp32", count.wide_states, "moved in a pass") * wide +
                               num.given("states in bf16", count.narrow_states, "moved in a pass") * narrow) +
                     scores * (num.given("scores in fp32", count.wide_scores, "moved in a pass") * wide) +
                     num.given("values in bf16", count.narrow_values, "read again") * narrow;
  return {num.named("FLOP of a channel", multiply_and_add(num) * multiplied), num.named("bytes of a channel", moved)};
}

}  // namespace assay::model
