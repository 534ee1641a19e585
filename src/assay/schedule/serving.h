// The time and memory of serving: one prefill or one decode step of a strategy at any batch.
// A step's work grows with the batch in straight lines, so a program is lowered twice and every batch follows; nothing
// here allocates once a profile is made.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/cost/kernels.h"
#include "assay/lower/lowering.h"
#include "assay/schedule/training.h"

namespace assay {

struct ServingSetup {
  const Transformer* model = nullptr;
  KernelRates rates;
  Formats formats;  ///< weights, products, activations, cache
};

/// How one model server is split over chips; `data` replicas of it share the load.
struct ServingStrategy {
  std::int64_t tensor = 1;
  std::int64_t second = 1;  ///< ways that weights are split in their other direction (2D) or gathered over
  std::int64_t pipeline = 1, expert = 1, data = 1;
  ServingScheme scheme;
  std::uint8_t layout = 0;

  /// Devices that hold the experts see different sequences: the expert axis is a part of the data axis.
  std::int64_t chips() const { return tensor * second * pipeline * data; }
  Parallelism parallelism() const;
  friend bool operator==(const ServingStrategy& a, const ServingStrategy& b) {
    return a.tensor == b.tensor && a.second == b.second && a.pipeline == b.pipeline && a.expert == b.expert &&
           a.data == b.data && a.scheme.cache == b.scheme.cache && a.scheme.weights == b.scheme.weights &&
           a.layout == b.layout;
  }
};

/// One kernel of a block, over the sequences that a step works on.
struct ServedKernel {
  double flops = 0;               ///< per sequence
  double fixed = 0, moving = 0;   ///< bytes of a step, and per sequence
  double expert_bytes = 0;        ///< of expert weights, of which only touched ones are read
  double seconds_per_flop = 0;    ///< at the peak; zero for kernels that only move bytes
};
struct ServedCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  RoleSet over = 0;
  double fixed = 0, moving = 0;
};

struct ServingProfile {
  struct Block {
    double layers = 1;
    double experts = 0, per_token = 0;  ///< of a mixture: experts, and how many a token picks
    std::vector<ServedKernel> kernels;
    std::vector<ServedCollective> collectives;
  };
  std::vector<Block> blocks;
  double queries = 1;       ///< tokens of a sequence in one step
  double unit = 1;          ///< sequences that all devices together work on at least
  double weight_bytes = 0;  ///< on one chip
  double cache_bytes = 0;   ///< on one chip, per sequence of the server, at `keys` tokens
  double state_bytes = 0;   ///< the same, of states that do not grow
  double widest = 0;        ///< bytes of the widest step, per sequence
  double boundary = 0;      ///< bytes handed from stage to stage, per sequence
};

/// A profile for steps of `queries` new tokens that see `keys`.
ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys);

struct ServingTime {
  double lower = 0;     ///< the largest of arithmetic, memory traffic and network at ideal rates
  double rooflines = 0; ///< every kernel at its own roofline, one after the other, without the network
  double estimate = 0, upper = 0;
  double compute = 0, memory = 0, network = 0;  ///< ideal seconds
  double flops = 0;                             ///< on one chip
};
/// One step of `batch` sequences of all replicas together.
ServingTime serving_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                         const StageLinks& links, double batch);

}  // namespace assay
