// What a program computes apart from matrix products: norms, rotations, softmax, activations, routing, sums and the
// loss.
#pragma once
#include "assay/program/program.h"

namespace assay::program {

/// FLOP of a step on one device that are not those of its products: one for each sum, product, quotient or comparison
/// of two numbers and for each function of one (exponential, root, activation). What is recomputed for the backward
/// pass of attention is not among them; copies and conversions are free. State spaces have all of theirs in
/// `Step::flops`.
Flops elementwise_flops(const Program& program, const Step& step);
/// The sum of a phase over all layers, for one microbatch.
Flops elementwise_flops(const Program& program, Phase phase);

}  // namespace assay::program
