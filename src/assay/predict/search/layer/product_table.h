// One product between all shardings of its operands and its result: how fast it can be done, in how much memory.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "assay/predict/search/layer/chooser.h"

namespace assay::search {

/// Sums of the same terms in another order differ in the last bits; such differences do not separate choices.
template <class Q>
bool clearly_less(Q a, Q b) {
  return a < b * (1.0 - 1e-9);
}
template <class Q>
bool nearly_equal(Q a, Q b) {
  return !clearly_less(a, b) && !clearly_less(b, a);
}

/// A way from one sharding of a tensor to another.
struct ReshardWay {
  Seconds time{HUGE_VAL};
  Bytes peak;  ///< peak size of copies
  Bytes held;  ///< size of the copy at the end
};

/// Where a local product happens: both operands split their common dimension alike and nothing else by the same axis.
struct ProductMeeting {
  std::size_t left = 0, right = 0;  ///< shardings of the operands there
  program::Sharding result;
  Seconds compute{}, memory{};
  Bytes result_bytes{}, weight_bytes{};
  std::array<double, 3> ways{};  ///< ways that rows, the common dimension and columns are split
};

/// One way to do a product between given shardings.
struct ProductOption {
  Seconds lower{HUGE_VAL}, upper = lower;
  Bytes working;
  std::size_t meeting = 0;
};

/// All ways to do one product of matrices: by shardings of its operands and its result, those that are faster or need
/// less memory than any other, fastest first. Shardings are indices into the list it was made with.
class ProductTable {
 public:
  /// `left_stored` says that the left operand is one of the layer's tensors, not a value made on the way.
  ProductTable(const program::Mesh& mesh, const std::vector<program::Sharding>& shardings, const program::Tensor& left,
               bool left_stored, const program::Tensor& right, const program::Tensor& result,
               const ChooserHardware& hardware);

  const ProductMeeting& meeting(std::size_t i) const { return meetings_[i]; }
  /// Time on the network.
  Seconds communication(std::size_t left, std::size_t right, std::size_t result, const ProductOption& option) const;
  /// Computed on first use: a search that is cut by memory needs only some.
  const std::vector<ProductOption>& front(std::size_t left, std::size_t right, std::size_t result);

 private:
  std::size_t n_;
  std::vector<ProductMeeting> meetings_;
  std::vector<std::vector<ReshardWay>> left_, right_, finish_;
  std::vector<std::vector<ProductOption>> fronts_;
};

}  // namespace assay::search
