// Fused projections: software that concatenates the weights of query, key and value (or of gate and up) runs one
// product instead of several, in the forward pass and for the gradients of input and weights.
#pragma once
#include <optional>
#include <vector>

#include "assay/estimate/kernels.h"

namespace assay::estimate {

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

  /// The fused products.
  const std::vector<Part>& joints() const { return joints_; }

 private:
  std::vector<Part> joints_;
};

}  // namespace assay::estimate
