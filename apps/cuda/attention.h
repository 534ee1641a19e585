// Attention and its gradients by cuDNN, planned once for each shape.
#pragma once
#include <compare>
#include <map>
#include <memory>

#include "assay/lab/measure/cudnn/graph.h"

namespace assay::cuda {

using measure::cuda::Buffer;
using measure::cuda::check;
using measure::cuda::Failure;

/// Queries are [batch, tokens, heads, width], keys and values [batch, tokens, kv_heads, width].
struct AttentionShape {
  long long batch = 1, heads = 1, kv_heads = 1, tokens = 1, width = 1;
  bool causal = true;  ///< else every query sees every key
  float scale = 1;
  friend auto operator<=>(const AttentionShape&, const AttentionShape&) = default;
};

class Attention {
 public:
  Attention();
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  struct Operands {
    void *q, *k, *v, *o;
    void* statistics;  ///< kept for the gradients: one number for each query and head
  };
  void forward(const AttentionShape& shape, const Operands& on, cudaStream_t stream);

  struct Inputs {
    void *d_o, *q, *k, *v, *o, *statistics;
  };
  struct Gradients {
    void *dq, *dk, *dv;
  };
  void backward(const AttentionShape& shape, const Inputs& in, const Gradients& out, cudaStream_t stream);

 private:
  struct Forward;
  struct Backward;
  measure::cuda::Cudnn library_;
  std::map<AttentionShape, std::unique_ptr<Forward>> forward_;
  std::map<AttentionShape, std::unique_ptr<Backward>> backward_;
};

}  // namespace assay::cuda
