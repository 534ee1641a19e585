// Bounds that no sharding over the chips can beat if kernels run one after the other: bytes and FLOP of a decode step
// over the rates of all chips together.
#pragma once
#include <algorithm>

#include "assay/predict/serving/point.h"

namespace assay::serving {

struct BoundsQuestion {
  const ServingQuestion& question;
  double chips = 1;
  Dtype compute = Dtype::bf16;
  double active_parameters = 0;   ///< parameters that one token passes
  bool parameters_given = false;  ///< not counted: nothing is known of tables, and all weights are read
};

struct ServingBounds {
  Bytes weights, cache;  ///< weights of one copy of the model, and the cache of all sequences
  Bytes weights_read;    ///< read by one step: without experts that no token picks, and without lookup tables
  Seconds weights_time, cache_time, compute_time;
  /// Attention waits for the cache; the rest for weights or for arithmetic.
  Seconds step() const { return cache_time + std::max(weights_time, compute_time); }
};
ServingBounds serving_bounds(const BoundsQuestion& of, double batch);

/// Values of the cache of one sequence that holds `tokens` tokens of prompt and output.
double cache_values(const ServingQuestion& question, std::int64_t tokens);

/// What no sharding of a question beats, estimated kernels and all: the start of every kernel that one chip would run,
/// or dense weights and the arithmetic of prompts at ideal rates.
class LatencyFloors {
 public:
  /// A step of the whole model on one chip, and the pass of a prompt there.
  LatencyFloors(const ServingSetup& setup, const ServingProfile& decode, const ServingProfile& prompt)
      : decode_(setup, decode), prompt_(setup, prompt) {}
  Seconds first_token(const ServingStrategy& strategy) const;
  Seconds next_token(const ServingStrategy& strategy) const;

 private:
  struct Pass {
    Seconds starts;   ///< of the kernels
    Seconds weights;  ///< that are read on one chip, without experts
    Seconds compute;  ///< of a sequence on one chip
    Pass(const ServingSetup& setup, const ServingProfile& profile);
  };
  Pass decode_, prompt_;
};

/// How far tensor parallelism goes over one axis of the network before sending activations takes longer than arithmetic
/// (prefill) or than reading weights (decode).
struct NetworkBounds {
  BytesPerSecond axis;  ///< one way into one axis of a torus in both directions, or into the switches
  double hbm_over_axis = 0;
  FlopsPerByte intensity;
  double prefill_ways = 0, decode_ways = 0;
};
/// Nothing for a chip without a network.
std::optional<NetworkBounds> network_bounds(const BoundsQuestion& of, const hardware::Chip& chip, double batch);

}  // namespace assay::serving
