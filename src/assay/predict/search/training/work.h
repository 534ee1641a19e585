// What a search for training strategies lists before it prices anything: meshes, and on each of them the work that
// several strategies have in common.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/predict/search/training/places.h"
#include "assay/predict/search/training/profiles.h"
#include "assay/predict/search/training/stage_orders.h"

namespace assay::search {

inline constexpr std::size_t offload_ways = std::size(training::offload_names);
inline constexpr std::size_t residual_ways = 3;

/// How weights, gradients and optimizer states are sharded.
struct WeightsSharing {
  int zero = 0;
  std::uint8_t offloads = 0;  ///< a bit for each way to offload with which weights and optimizer states alone fit

  bool allows(training::Offload offload) const { return offloads >> static_cast<unsigned>(offload) & 1u; }
};

/// One sharding of weights under any placement.
struct WeightTraffic {
  const training::TrainingProfile* traffic = nullptr;  ///< set on first use
  WeightsTimes least;
};

struct WorkMesh {
  lower::Parallelism parallelism;
  std::vector<WeightsSharing> sharings;
  std::vector<StageOrder> orders;
  std::size_t inner = 0;                       ///< index of TrainingPlaces::inner(): a lower bound over all placements
  std::vector<AlikePlaces> places;             ///< for meshes that are looked at more closely
  std::vector<WeightTraffic> weight_traffics;  ///< by sharing and residual scheme
  std::uint64_t unbeaten_orders = 0;           ///< orders that no other beats, ignoring hops between stages
  const StageLayers* layers = nullptr;

  std::uint64_t every_order() const { return ~std::uint64_t{0} >> (64 - orders.size()); }
};

/// Orders of a mesh's stages, a bit each, by what is offloaded to the host.
using OrdersByOffload = std::array<std::uint64_t, offload_ways>;
inline std::uint64_t& orders_with(OrdersByOffload& orders, training::Offload offload) {
  return orders[static_cast<std::size_t>(offload)];
}

/// All strategies of a mesh with the same computation: they differ in the sharding of weights, the order of stages
/// and the placement.
struct TrainingWork {
  Seconds floor;  ///< lower bound on the step time
  std::int64_t micro_batch = 1;
  std::uint32_t mesh = 0;
  lower::ResidualScheme residual = lower::ResidualScheme::replicated;
  lower::ContextScheme context_scheme = lower::ContextScheme::gather;
  std::uint8_t policy = 0;     ///< number among the policies of the search
  std::uint64_t possible = 0;  ///< orders of stages that exist for this number of microbatches
  std::uint32_t number = 0;    ///< in the order in which work is listed
  TrainingProfiles::Microbatch* made = nullptr;

  /// Index into WorkMesh::weight_traffics for a sharing of weights.
  std::size_t traffic_index(std::size_t sharing) const {
    return sharing * residual_ways + static_cast<std::size_t>(residual);
  }
};
/// The answer of a search that was asked to stop (base/progress.h) before it found anything.
inline tl::unexpected<Error> interrupted() { return fail("", "interrupted before any strategy that fits was found"); }

}  // namespace assay::search
