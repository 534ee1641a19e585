// Causal attention in bf16: cudnn/ implements it with cuDNN, no_cudnn/ replaces it elsewhere.
#pragma once
#include <cstdint>

#include "assay/lab/measure/cuda/device.h"
#include "assay/lab/measure/gpu.h"

namespace assay::measure::cuda {

/// Adds rows attn_fwd_causal, attn_bwd_causal and attn_decode with the note "cudnn", checked first against the host's
/// arithmetic, and notes anything missing.
void measure_attention(Measurement& out, Extent extent, Clock& clock);

}  // namespace assay::measure::cuda
