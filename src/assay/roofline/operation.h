// Operations as people write them: "bf16[B,8192] @ int8[8192,32768] -> bf16[B,32768]", "dot(bf16[N])",
// "add(fp32[1Mi])". docs/roofline.md has the grammar.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/result.h"

namespace assay::roofline {

/// One size of a tensor: a letter, a number, or a letter with its number (D=8192).
struct OperationSize {
  std::string name;  ///< empty for a bare number
  std::optional<double> value;
};

struct OperationTensor {
  Dtype dtype = Dtype::bf16;
  std::vector<OperationSize> sizes;
};

/// What one element-wise or reducing function does per element, fused: each operand read once, the result written once.
struct PointwiseFunction {
  std::string_view name;
  int operands;          ///< tensors read
  double flops;          ///< per element read by each operand
  bool reduces;          ///< the last dimension is reduced to one value, which takes one FLOP less per result
  bool uses_fma;         ///< multiply-add pairs, so an FMA unit does two FLOP at once
  std::string_view sum;  ///< how it is counted, in words
};
std::span<const PointwiseFunction> pointwise_functions();

/// A matrix product as the cost model sees it: batch x [m,k] x [k,n].
struct Matmul {
  double batch = 1, m = 1, k = 1, n = 1;
  Dtype a = Dtype::bf16, b = Dtype::bf16, out = Dtype::bf16;
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
  bool is_matmul() const { return function_ == nullptr; }
  const std::vector<OperationTensor>& operands() const { return operands_; }
  const OperationTensor& result() const { return result_; }
  const PointwiseFunction* function() const { return function_; }

  /// Letters without a number, each once, in order of appearance.
  std::vector<std::string> free_sizes() const;
  /// All letters.
  std::vector<std::string> names() const;
  /// The same operation with a letter set to a number (at least tiny and positive, not necessarily whole).
  Operation with(std::string_view name, double value) const;

  /// Needs all sizes. Names of the m, k and n groups for derivations: "B", "D", or "m" where they are plain numbers.
  Matmul matmul() const;
  Pointwise pointwise() const;
  std::string group_name(char group) const;

  /// The operation in the grammar, normalised.
  std::string text() const;

 private:
  friend Result<Operation> parse_operation(std::string_view, std::string_view, Dtype);
  friend struct OperationParser;

  const PointwiseFunction* function_ = nullptr;
  std::vector<OperationTensor> operands_;
  OperationTensor result_;
  /// Of a matmul: the role of every dimension of each operand: b(atch), m, n, k.
  std::vector<std::string> roles_;
};

/// One tensor with all sizes known, "bf16[8,128,8192]".
Result<OperationTensor> parse_tensor(std::string_view text, std::string_view where);
Bytes tensor_bytes(const OperationTensor& tensor);
/// A number of bytes: "80GiB", "16GB", or a tensor's size.
Result<Bytes> parse_bytes(std::string_view text, std::string_view where);

/// Parses the grammar; `default_dtype` applies to functions over a bare count, dot(1Mi). Errors point at the character.
Result<Operation> parse_operation(std::string_view text, std::string_view where, Dtype default_dtype = Dtype::bf16);

}  // namespace assay::roofline
