// The kernels of a pass and the tensors that it keeps, derived from the program.
#pragma once
#include <span>
#include <vector>

#include "assay/predict/training/pass_time.h"
#include "assay/predict/training/step.h"

namespace assay::training {

/// The kernels of blocks: one pass of a microbatch through one layer, the embedding or the head.
DerivedKernels derive_kernels(const Traced& num, const TrainingSetup& setup, const program::Program& program,
                              std::span<const program::Block> blocks);

/// The steps of a block that are recomputed, in the order of the forward pass, in which profiles add them.
std::vector<program::Step> recomputed_steps(const program::Program& program, const program::Block& block);

/// What a forward pass keeps, tensor by tensor, as profiles count it: without gathered weights, with dropout's masks.
NumberOf<Traced, Bytes> derive_kept(const Traced& num, const TrainingSetup& setup, const program::Program& program,
                                    std::span<const program::Block> blocks, lower::Recompute recompute);

}  // namespace assay::training
