// Executes whole programs on virtual devices with real numbers: training steps with their gradients, and serving steps
// with their caches and states. In training, the encoder of an encoder-decoder reads the same tokens as the decoder;
// in serving, its output is given.
// Invariant: a program's result does not depend on its sharding rules, except for rounding.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "assay/engine/array.h"
#include "assay/engine/devices.h"
#include "assay/engine/layout.h"
#include "assay/model/transformer.h"
#include "assay/program/form/program.h"

namespace assay::engine {

/// Arrays by weight name: "0.W_q" of layer 0, "0.norm.2" its second norm, "embedding". Shared weights
/// have the number of the first layer that uses them.
using NamedArrays = std::map<std::string, Array>;

/// How the values of a weight are drawn: element i is (spread u + shift) factor + constant, u uniform between -1 and 1.
struct WeightStart {
  std::string name;  ///< as in NamedArrays
  int tensor = -1;
  Shape shape;
  std::uint64_t seed = 0;  ///< of random_reals()
  double shift = 0, factor = 1, constant = 0;

  static constexpr double spread = 0.3;  ///< small enough for plain exponentials, large enough for every path to matter
};
/// Those of initial_weights(), for engines that draw them where they are used.
std::vector<WeightStart> initial_starts(const program::Program& program, const model::Transformer& model,
                                        std::uint64_t seed);

/// Random values for all weights that a program reads, uniform around zero (scales of norms around one).
NamedArrays random_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed);

/// Where training starts: matrices uniform with the variance 1 / d_model, scales of norms 1, biases 0.
NamedArrays initial_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed);

/// Self-checks of an executed program.
struct RunFacts {
  double disagreement = 0;  ///< between devices that should hold the same
  double byte_error = 0;    ///< of the worst collective: relative difference of bytes moved and bytes stated
  Bytes moved;              ///< in all collectives, mean over the devices of this process
  Bytes stated;             ///< the same by the program
};

/// What a step of a program took so far, on the devices of this process.
struct StepClock {
  Seconds time;
  std::int64_t runs = 0;
  Seconds waited = {};  ///< of `time`: a collective waits for other ranks, where that is known
};

/// Keys and values of one layer, or their latent form: [sequences, tokens so far, ...] each.
using LayerCache = std::vector<Array>;

/// What a server keeps for its sequences from step to step; empty before the first step.
struct ServedSequences {
  std::vector<LayerCache> caches;           ///< by layer
  std::vector<std::vector<Shards>> states;  ///< by layer and recurrent step, as the devices hold them
  std::vector<LayerCache> encoded_caches;   ///< by layer: keys and values of the encoder's output
  Array encoded;                            ///< the encoder's output: [sequences, tokens, d_model]
};

struct ServingRun {
  Array logits;  ///< [sequences, scored, vocabulary] of the last tokens
  Array chosen;  ///< [sequences, 1]
  RunFacts facts;
  std::vector<StepClock> clocks;  ///< by step of the program
};
/// Weights by name, as the devices hold them.
using PlacedWeights = std::map<std::string, Shards>;
struct ServingOptions {
  Placement placement = {};
  PlacedWeights* placed = nullptr;  ///< kept from step to step, so that weights are cut into parts once
  std::int64_t scored = 1;          ///< of how many of the last tokens logits are computed: of all that verify a draft
};
/// One serving step; appends the new tokens to the caches and states.
ServingRun run_serving(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
                       const Array& tokens, ServedSequences& kept, const ServingOptions& options = {});

}  // namespace assay::engine
