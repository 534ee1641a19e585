// Products that read the same activation, as one: software that lays the weights of queries, keys and values (or of the
// gate and the way up) side by side multiplies once, and so do the gradients of the input and of the weights.
#pragma once
#include <vector>

#include "assay/cost/kernels.h"

namespace assay {

class JoinedProducts {
 public:
  JoinedProducts(const KernelRates& rates, const Program& program) : rates_(rates), program_(program) {}

  /// Takes a step of a block, in order; false: it is not one that is joined with others.
  bool take(const Step& step);

  /// What was taken, a product each.
  struct Product {
    Seconds estimate;
    bool is_repeated = false;
    bool of_weight = false;  ///< the gradient of one
  };
  std::vector<Product> products() const;

 private:
  enum class Kind { forward, of_input, of_weight };
  struct Joint {
    Kind kind = Kind::forward;
    bool is_repeated = false;
    int reads = -1;  ///< what all of them read; of gradients of an input, what the last one wrote
    Dtype dtype = Dtype::bf16;
    MatmulShape shape;
  };

  const KernelRates& rates_;
  const Program& program_;
  std::vector<Joint> joints_;
};

}  // namespace assay
