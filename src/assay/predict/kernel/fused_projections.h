// Fused projections: software that concatenates the weights of query, key and value (or of gate and up) runs one
// product instead of several, in the forward pass and for the gradients of input and weights.
#pragma once
#include <optional>
#include <vector>

#include "assay/predict/kernel/kernels.h"
#include "assay/program/form/traffic.h"

namespace assay::kernel {

class JoinedProducts {
 public:
  /// A product of a program that others may be fused with.
  struct Part {
    enum class Kind : std::uint8_t { forward, of_input, of_weight } kind = Kind::forward;
    bool is_recomputed = false;
    bool of_adapter = false;  ///< products of weights and of their adapters are not fused
    Dtype dtype = Dtype::bf16;
    int reads = -1;  ///< the common input; of input gradients, the sum that it is added to
    int next = -1;   ///< what the next product has to read to be fused
    MatmulShape shape;
    Bytes shared;  ///< traffic that a fused product saves
  };
  /// Nothing where the step cannot be fused.
  static std::optional<Part> part_of(const KernelRates& rates, const program::Program& program,
                                     const program::Step& step);

  /// Takes a product of a block, in order; false: it runs by itself.
  bool take(const Part& part);
  /// The fused product that took the last one.
  std::size_t last() const { return last_; }

  /// The fused products.
  const std::vector<Part>& joints() const { return joints_; }

 private:
  std::vector<Part> joints_;
  std::size_t last_ = 0;
};

/// What fusing adds up.
template <class N>
struct FusedSizes {
  NumberOf<N, double> n, k;
  NumberOf<N, Bytes> bytes, added;

  /// Weights lie side by side: their columns are those of the result, or what gradients of the input are summed over.
  void fuse(JoinedProducts::Part::Kind kind, const FusedSizes& more, const NumberOf<N, Bytes>& saved) {
    if (kind == JoinedProducts::Part::Kind::of_input)
      k = k + more.k;
    else
      n = n + more.n;
    bytes = bytes + (more.bytes - saved);
    added = added + more.added;
  }
};
/// Traffic that a fused product saves by each part after the first: of gradients of the input, the sum that stays
/// inside; else the operand that all read.
template <class N>
NumberOf<N, Bytes> saved_by_fusing(const N& num, const program::Program& program, const program::Step& step,
                                   JoinedProducts::Part::Kind kind) {
  if (kind == JoinedProducts::Part::Kind::of_input) return 2.0 * program::named_bytes(num, program, step.out[0]);
  return program::named_bytes(num, program, step.in[0]);
}

}  // namespace assay::kernel
