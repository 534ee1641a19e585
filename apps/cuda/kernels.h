// Kernels of a transformer's steps other than products and attention. Activations are bf16 and computed in fp32; widths
// are multiples of 8, so that 16 bytes are moved at once. Arguments: inputs, results, sizes, stream.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

namespace assay::cuda {

using bf16 = __nv_bfloat16;
using Count = long long;

struct Adam {
  float rate, first_decay, second_decay, epsilon, kept;  ///< `kept`: what weight decay leaves of a weight
  float first_whole, second_whole;                       ///< 1 - decay^steps
};

/// The widest row of a norm.
inline constexpr Count widest_row = 16384;
/// Floats of scratch that norm_grad() and bias_grad() take for rows of a width.
Count row_scratch(Count width);

/// How a weight starts: as AssayCudaStart says.
struct Uniform {
  unsigned long long seed;
  double shift, factor;
  Count first;                 ///< number of the first element in the whole weight
  Count sizes[5], strides[5];  ///< shape of the part of the weight that is drawn
};
/// Draws a weight; either array may be null.
void start(float* master, bf16* weight, Count n, Uniform drawn, cudaStream_t);
void cast(const float* from, bf16* to, Count n, cudaStream_t);

/// Rows of a table, or of a part of it; tokens that it lacks have zeros.
struct TableShape {
  Count count, width, first, rows;
};
void embed(const int* tokens, const bf16* table, bf16* rows, TableShape shape, cudaStream_t);
/// Adds the gradients of rows to those of the table.
void embed_grad(const bf16* d_rows, const int* tokens, float* d_table, TableShape shape, cudaStream_t);

struct BiasGradient {
  float* d_bias;
  float* scratch;
  bool adds;  ///< adds to d_bias instead of overwriting it
};
void bias_grad(const bf16* dy, BiasGradient out, Count rows, Count width, cudaStream_t);

struct NormShape {
  Count rows, width;
  float epsilon;
};
void norm(const bf16* x, const bf16* scale, bf16* y, NormShape shape, cudaStream_t);
struct NormGradients {
  bf16* dx;
  float* d_scale;
  float* scratch;
  bool adds;  ///< adds to d_scale instead of overwriting it
};
void norm_grad(const bf16* dy, const bf16* x, const bf16* scale, NormGradients out, NormShape shape, cudaStream_t);

struct Rotation {
  Count rows, heads, tokens, width, rotated;
  Count first;  ///< position of the first token
  bool backwards;
};
/// Cosines and sines by position and pair of values.
void rotation_table(float2* table, Count tokens, Count rotated, double base, cudaStream_t);
void rotate(const bf16* x, const float2* table, bf16* y, Rotation shape, cudaStream_t);

/// up x silu(gate), or gelu(up) without a gate.
void activate(const bf16* up, const bf16* gate, bf16* y, Count n, cudaStream_t);
struct ActivationGradients {
  bf16 *d_up, *d_gate;
};
void activate_grad(const bf16* dy, const bf16* up, const bf16* gate, ActivationGradients out, Count n, cudaStream_t);

void add(const bf16* a, const bf16* b, bf16* sum, Count n, cudaStream_t);
void add(const float* a, const float* b, float* sum, Count n, cudaStream_t);

/// For a part of the vocabulary, sums are exponentials, which can be added up; else they are logarithms.
struct LossShape {
  Count rows, vocabulary, first;
  bool partial;
  float tokens;
};
/// The sum of exponentials and the target's logit of each row.
void loss_sums(const bf16* logits, const int* targets, float* sums, LossShape shape, cudaStream_t);
/// Losses of all rows; also adds all of them to `total`.
void loss(const float* sums, float* losses, double* total, LossShape shape, cudaStream_t);
void loss_grad(const bf16* logits, const int* targets, const float* sums, bf16* d_logits, LossShape shape,
               cudaStream_t);

/// Blocks of `inner` elements of `width` bytes, [outer, parts, inner] to [parts, outer, inner] or back.
struct PartShape {
  Count outer, parts, inner;
  std::size_t width;
  bool back;
};
void part_rows(const void* from, void* to, PartShape shape, cudaStream_t);
/// Copies one part of [outer, parts, inner].
void one_part(const void* from, void* to, PartShape shape, Count which, cudaStream_t);

/// Attention over some of the keys: o [batch, tokens, heads, width] in bf16 or fp32, and the logarithms of the sums of
/// exponentials [batch, heads, tokens].
struct JoinedPart {
  void* o;
  float* statistics;
  bool is_wide;
};
struct JoinShape {
  Count batch, heads, tokens, width;
};
/// Attention over the keys of both parts. The second one is in bf16.
void join(const JoinedPart& a, const JoinedPart& b, const JoinedPart& both, JoinShape shape, cudaStream_t);

struct OptimizerState {
  float *master, *first, *second;
  double* squares;  ///< squares of the gradient are added to it; null: another device counts them
};
/// A step of AdamW. No weight: only the master copy is stored.
void update(const float* gradient, bf16* weight, OptimizerState state, Count n, Adam adam, cudaStream_t);

/// Gradients of keys or values, made for every head of their group, summed up: [tokens, heads, width] to
/// [tokens, kv_heads, width].
struct Groups {
  Count tokens, heads, kv_heads, width;
};
void sum_heads(const bf16* from, bf16* to, Groups shape, cudaStream_t);

}  // namespace assay::cuda
