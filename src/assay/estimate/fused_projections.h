// Products that read the same activation, as one: software that lays the weights of queries, keys and values (or of the
// gate and the way up) side by side multiplies once, and so do the gradients of the input and of the weights.
#pragma once
#include <optional>
#include <vector>

#include "assay/estimate/kernels.h"

namespace assay::estimate {

class JoinedProducts {
 public:
  explicit JoinedProducts(const KernelRates& rates) : rates_(rates) {}

  /// A product of a program as others may join it.
  struct Part {
    enum class Kind : std::uint8_t { forward, of_input, of_weight } kind = Kind::forward;
    bool is_recomputed = false;
    bool of_adapter = false;  ///< those of weights and of their adapters are not joined
    Dtype dtype = Dtype::bf16;
    int reads = -1;  ///< what all of them read; of gradients of an input, the sum that it adds to
    int next = -1;   ///< what the next one has to read to be joined
    MatmulShape shape;
    Bytes shared;  ///< of its traffic, which a product that is joined does not have
  };
  /// Nothing where the step is none that is joined with others.
  static std::optional<Part> part_of(const KernelRates& rates, const program::Program& program,
                                     const program::Step& step);

  /// Takes a product of a block, in order; false: it must run alone.
  bool take(const Part& part);

  /// What was taken, a product each.
  struct Product {
    Seconds estimate;
    Seconds slowed;  ///< the part of it that the clock of sustained power adds; none where memory bounds it
    bool is_recomputed = false;
    bool of_weight = false;  ///< the gradient of one
  };
  std::vector<Product> products() const;

 private:
  const KernelRates& rates_;
  std::vector<Part> joints_;
};

}  // namespace assay::estimate
