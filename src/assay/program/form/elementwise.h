// Work of a program outside matrix products: norms, rotations, softmax, activations, routing, sums and the loss.
#pragma once
#include "assay/program/form/program.h"

namespace assay::program {

/// FLOP of a step on one device outside its matrix products: one for each sum, product, quotient or comparison
/// of two numbers and for each function of one (exponential, root, activation). Work recomputed for the backward
/// pass of attention is not included; copies and conversions are free. State spaces count all their FLOP in
/// `Step::flops`.
Flops elementwise_flops(const Program& program, const Step& step);
/// FLOP outside matrix products of a phase, over all layers, for one microbatch.
Flops elementwise_flops(const Program& program, Phase phase);

}  // namespace assay::program
