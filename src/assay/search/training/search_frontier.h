// What a search for training strategies lists before it prices anything: meshes, and on each of them the kinds of work
// that strategies may share.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/search/training/places.h"
#include "assay/search/training/profiles.h"
#include "assay/search/training/stage_orders.h"

namespace assay::search {

inline constexpr std::size_t offload_ways = std::size(training::offload_names);
inline constexpr std::size_t residual_ways = 3;

/// Where weights, gradients and states lie.
struct WeightsSharing {
  int zero = 0;
  std::uint8_t offloads = 0;  ///< a bit each: with which weights and optimizer states alone fit

  bool allows(training::Offload offload) const { return offloads >> static_cast<unsigned>(offload) & 1u; }
};

/// Weights shared out in one way, wherever axes lie.
struct WeightsWay {
  const training::TrainingProfile* traffic = nullptr;  ///< once it is asked for
  WeightsTimes least;
};

struct WorkMesh {
  lower::Parallelism parallelism;
  std::vector<WeightsSharing> sharings;
  std::vector<StageOrder> orders;
  std::size_t inner = 0;            ///< of TrainingPlaces::inner(): what no placement undercuts
  std::vector<AlikePlaces> places;  ///< for meshes that are looked at more closely
  std::vector<WeightsWay> ways;     ///< by sharing and residual scheme
  std::uint64_t quickest = 0;       ///< orders that no other undercuts whatever is computed, but for its hops
  const StageLayers* layers = nullptr;

  std::uint64_t every_order() const { return ~std::uint64_t{0} >> (64 - orders.size()); }
};

/// Orders of a mesh's stages, a bit each, by what lies on the host.
using OrdersByOffload = std::array<std::uint64_t, offload_ways>;
inline std::uint64_t& orders_with(OrdersByOffload& orders, training::Offload offload) {
  return orders[static_cast<std::size_t>(offload)];
}

/// All strategies of a mesh that compute the same: they differ in how weights are shared out, in the order of stages
/// and in placement.
struct TrainingWork {
  double floor = 0;  ///< seconds that no such strategy is faster than
  std::int64_t micro_batch = 1;
  std::uint32_t mesh = 0;
  lower::ResidualScheme residual = lower::ResidualScheme::replicated;
  lower::ContextScheme context_scheme = lower::ContextScheme::gather;
  std::uint8_t policy = 0;     ///< of the policies of the search
  std::uint64_t possible = 0;  ///< orders of stages that exist for as many microbatches
  std::uint32_t group = 0;     ///< its number
  TrainingProfiles::Microbatch* made = nullptr;
};
inline bool sooner(const TrainingWork& a, const TrainingWork& b) {
  return a.floor != b.floor ? a.floor < b.floor : a.group < b.group;
}

}  // namespace assay::search
