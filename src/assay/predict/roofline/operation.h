// Operations as people write them: "bf16[B,8192] @ int8[8192,32768] -> bf16[B,32768]", "dot(bf16[N])",
// "add(fp32[1Mi])", "grouped(bf16[T,D] @ bf16[E,D,F])", "attention(bf16[B,H,Q,D], bf16[B,G,K,D], causal)".
// docs/roofline.md has the grammar.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/result.h"
#include "assay/program/form/program.h"

namespace assay::roofline {

/// One size of a tensor: a letter, a number, or a letter with its number (D=8192).
struct OperationSize {
  std::string name;  ///< empty for a bare number
  std::optional<double> value;
};

/// A format whose elements share scales by blocks, stored next to the elements.
struct BlockFormat {
  std::string_view name;
  double scale_bits;  ///< bits of scales per element
};

struct OperationTensor {
  Dtype dtype = Dtype::bf16;
  std::vector<OperationSize> sizes;
  const BlockFormat* block = nullptr;  ///< nullptr: no scales

  double scale_bits() const { return block ? block->scale_bits : 0.0; }
};
/// The product of all sizes; letters without a number count as 1.
double size_product(const OperationTensor& tensor);
/// A size and a tensor in the grammar.
std::string size_text(const OperationSize& size);
std::string tensor_text(const OperationTensor& tensor);

/// What one element-wise or reducing function does per element, fused: each operand is read once, each result written
/// once.
struct PointwiseFunction {
  std::string_view name;
  int operands;          ///< tensors read
  double flops;          ///< FLOP per element read by each operand
  bool reduces;          ///< the last dimension is reduced to one value, which takes one FLOP less per result
  bool uses_fma;         ///< multiply-add pairs, so an FMA unit does two FLOP at once
  std::string_view sum;  ///< how it is counted, in words
  int results = 1;       ///< tensors written
};
std::span<const PointwiseFunction> pointwise_functions();

/// A matrix product as the cost model sees it: batch x [m,k] x [k,n].
struct Matmul {
  double batch = 1, m = 1, k = 1, n = 1;
  Dtype a = Dtype::bf16, b = Dtype::bf16, out = Dtype::bf16;
  double a_scale = 0, b_scale = 0;  ///< bits of block scales per element
  bool grouped = false;             ///< each matrix of the batch has its own rows: experts
  bool summed_rows = false;         ///< experts only: k are their rows, as in gradients of weights
  bool accumulates = false;         ///< the result is read, added to and written
  bool even_rows = false;           ///< experts only: each has as many rows; else they are random
};

enum class AttentionPasses : std::uint8_t { forward, backward, both };
/// Fused attention: softmax(Q K^T) V and its gradients, whose scores stay on the chip.
struct Attention {
  AttentionPasses passes = AttentionPasses::forward;
  double batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_dim = 1, value_dim = 1;
  Dtype query = Dtype::bf16, cache = Dtype::bf16;  ///< formats of queries and results, and of keys and values
  bool causal = false;
  double window = 0;  ///< keys that a query sees at most; 0: all

  program::AttentionShape shape() const;
  /// Bytes of queries, results, and the keys and values that some query sees, once each.
  Bytes bytes() const;
  /// Arithmetic relative to the forward pass: the backward pass recomputes the scores and has four more products.
  double work() const {
    return (passes == AttentionPasses::backward ? 0.0 : 1.0) +
           (passes == AttentionPasses::forward ? 0.0 : program::backward_passes);
  }
};

/// An element-wise function or a reduction over `elements` values per operand, giving `results` values.
struct Pointwise {
  const PointwiseFunction* function = nullptr;
  double elements = 1, results = 1;
  Dtype in = Dtype::bf16, out = Dtype::bf16;
};

/// A parsed operation; sizes may still be letters.
class Operation {
 public:
  bool is_matmul() const { return !function_ && !attention_; }
  bool is_attention() const { return attention_.has_value(); }
  const std::vector<OperationTensor>& operands() const { return operands_; }
  const OperationTensor& result() const { return result_; }
  const PointwiseFunction* function() const { return function_; }

  /// Letters without a number, each once, in order of appearance.
  std::vector<std::string> free_sizes() const;
  /// All letters.
  std::vector<std::string> names() const;
  /// A copy of the operation with a letter set to a number (at least tiny and positive, not necessarily whole).
  Operation with(std::string_view name, double value) const;

  /// The next four need all sizes. group_name() is "B", "D", or "m" for plain numbers: the m, k, n in derivations.
  Matmul matmul() const;
  Pointwise pointwise() const;
  Attention attention() const;
  std::string group_name(char group) const;

  /// The operation in the grammar, normalised.
  std::string text() const;

 private:
  friend Result<Operation> parse_operation(std::string_view, std::string_view, Dtype);
  friend struct OperationParser;

  const PointwiseFunction* function_ = nullptr;
  std::vector<OperationTensor> operands_;
  OperationTensor result_;
  /// Matmuls only: the role of every dimension of each operand: b(atch), m, n, k.
  std::vector<std::string> roles_;
  bool grouped_ = false, accumulates_ = false;
  /// Attention only; sizes and formats are in the operands: queries, keys, values.
  struct AttentionOptions {
    AttentionPasses passes = AttentionPasses::forward;
    bool causal = false;
    double window = 0;
  };
  std::optional<AttentionOptions> attention_;
};

/// One tensor with all sizes known, "bf16[8,128,8192]".
Result<OperationTensor> parse_tensor(std::string_view text, std::string_view where);
Bytes tensor_bytes(const OperationTensor& tensor);
/// A number of bytes: "80GiB", "16GB", or a tensor's size.
Result<Bytes> parse_bytes(std::string_view text, std::string_view where);

/// Parses the grammar; `default_dtype` applies to functions over a bare count, dot(1Mi). Errors point at the character.
Result<Operation> parse_operation(std::string_view text, std::string_view where, Dtype default_dtype = Dtype::bf16);

}  // namespace assay::roofline
