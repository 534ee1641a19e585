// The best sharding of a whole layer, In[B, D] * W_in[D, F] * W_out[F, D] -> Out[B, D], or of one product
// A[I, J] * B[J, K] -> C[I, K], under a cap on the memory of a device.
//
// Every sharding of every tensor is tried, and every place where the local product may happen, so the answer is the
// optimum of the model, not of a heuristic. The model: collectives cost what the prices say; within one product
// arithmetic, memory traffic and communication overlap at best perfectly (lower) and at worst not at all (upper);
// products run one after the other. Between the products of a layer an activation is applied, so the intermediate is
// never left as partial sums.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "assay/hardware/chip.h"
#include "assay/program/plan/planner.h"

namespace assay::search {

/// Axes longer than one that a search may cover; one more and it takes minutes instead of a tenth of a second.
inline constexpr int max_chooser_axes = 3;

/// The hardware as the chooser sees it: network prices, arithmetic and memory.
struct ChooserHardware {
  plan::Prices prices;              ///< in seconds
  FlopsPerSecond peak;              ///< rate of one device
  BytesPerSecond memory_bandwidth;  ///< bandwidth of one device
  Bytes memory;                     ///< memory that one device has for the whole layer
};

/// A layer (three tensors, the result is sharded like In) or one product (two tensors, and the result's sharding).
struct ChooserProblem {
  std::vector<program::Tensor> tensors;  ///< In, W_in, W_out, or A, B; shardings of free tensors are ignored
  std::vector<bool> fixed;               ///< by tensor: its sharding is given
  program::Tensor intermediate;          ///< layers only: the tensor between the products
  program::Tensor result;                ///< one product only: its sharding is given unless `result_free`
  bool result_free = false;              ///< one product only: any sharding of the result will do
  std::size_t runners_up = 4;
  bool layer() const { return tensors.size() == 3; }
};

/// Times of one product, or of all products.
struct ProductTimes {
  Seconds compute, memory, communication;
  Seconds lower;  ///< the longest of these three, product by product
  Seconds upper;  ///< the sum of these three
};

/// One choice of shardings, with what it costs.
struct LayerChoice {
  std::vector<program::Tensor> tensors;         ///< with their shardings
  std::optional<program::Tensor> intermediate;  ///< as it is stored between the products
  program::Tensor result;
  std::vector<plan::Plan> plans;  ///< one for each product
  std::vector<ProductTimes> products;
  ProductTimes times;    ///< sums over all products
  Bytes stored;          ///< bytes of the tensors on one device
  Bytes working;         ///< peak of copies, intermediate and result in addition to `stored`
  Bytes weight_traffic;  ///< bytes of the weights that the products read (of B, if there is one product)

  Bytes memory() const { return stored + working; }
};

struct LayerSearch {
  std::vector<LayerChoice> choices;  ///< best first, each dividing the work in another way; empty where nothing fits
  LayerChoice smallest;              ///< where nothing fits: what needs least memory
  std::int64_t considered = 0;       ///< combinations of shardings
  std::int64_t over_memory = 0;      ///< combinations that do not fit in any way
  std::int64_t equal = 0;            ///< other combinations as fast and as small as the best: mostly permuted axes
};

/// Searches all shardings. The mesh has at most `max_chooser_axes` axes longer than one.
LayerSearch choose_sharding(const program::Mesh& mesh, const ChooserProblem& problem, const ChooserHardware& hardware);

/// "compute", "memory" or "network", whichever takes longest.
std::string_view limiter_of(const ProductTimes& times);
/// The limiter of the product that takes longest.
std::string_view limiter_of(const LayerChoice& choice);
/// Time of products one after the other, each at its slowest resource and the share of its rate reached in practice.
Seconds expected_time(const hardware::Chip& chip, const LayerChoice& choice);

/// Every sharding of a tensor of that rank without partial sums; axes of size one are left out.
std::vector<program::Sharding> all_shardings(const program::Mesh& mesh, std::size_t rank);

}  // namespace assay::search
