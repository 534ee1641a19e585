// Kernels of mixtures of experts: gates, the slots that tokens get at their experts, and tokens on their way there and
// back. Gates are [rows, experts]; slots are numbers of the same shape, below 0 where a token does not go.
#pragma once
#include "cuda/kernels.h"

namespace assay::cuda {

struct Experts {
  Count rows, experts, slots, width;  ///< `slots`: number of slots of each expert
  Count first, held;                  ///< experts of this device; tokens go nowhere else
};
inline constexpr int most_picks = 16;

/// A softmax over the largest scores of each row, zero elsewhere.
struct Routing {
  Count rows;
  int experts, picks;  ///< number of experts, and of those that a token picks
};
void route(const bf16* scores, bf16* gates, Routing shape, cudaStream_t);
void route_grad(const bf16* d_gates, const bf16* scores, bf16* d_scores, Routing shape, cudaStream_t);
/// Assigns slots in the order of tokens; tokens beyond an expert's last slot are dropped.
void expert_slots(const bf16* gates, int* slots, Experts shape, cudaStream_t);

void dispatch(const bf16* tokens, const int* slots, bf16* rows, Experts shape, cudaStream_t);
void dispatch_grad(const bf16* d_rows, const int* slots, bf16* d_tokens, Experts shape, cudaStream_t);
void combine(const bf16* rows, const bf16* gates, const int* slots, bf16* tokens, Experts shape, cudaStream_t);
struct CombineGradients {
  bf16 *d_rows, *d_gates;
};
struct CombineInputs {
  const bf16 *d_tokens, *rows, *gates;
  const int* slots;
};
void combine_grad(CombineInputs in, CombineGradients out, Experts shape, cudaStream_t);

}  // namespace assay::cuda
