// Executes whole programs on virtual devices with real numbers: training steps with their gradients, and serving steps
// with their caches and states. The encoder of an encoder-decoder reads the tokens that the decoder reads when it is
// trained; served, what it made is given.
// Invariant: what a program computes does not depend on its sharding rules, but for rounding.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "assay/execute/array.h"
#include "assay/execute/layout.h"
#include "assay/model/transformer.h"
#include "assay/program/program.h"

namespace assay::execute {

/// Arrays by the name of a weight: "0.W_q" of layer 0, "0.norm.2" the second norm there, "embedding". What layers share
/// has the number of the first of them.
using NamedArrays = std::map<std::string, Array<double>>;

/// Random weights for all that a program reads, uniform around zero (scales of norms around one).
NamedArrays random_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed);

/// What an executed program says about itself.
struct RunFacts {
  double disagreement = 0;  ///< between devices that should hold the same
  double byte_error = 0;    ///< of the worst collective: bytes moved against bytes said, as a share
  Bytes moved;              ///< by the mean device in all collectives
};

struct TrainingRun {
  double loss = 0;  ///< mean over all tokens
  NamedArrays gradients, updated;
  RunFacts facts;
};
/// One optimizer step of plain gradient descent. `tokens` and `targets` are [microbatches x sequences, queries].
TrainingRun run_training(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
                         const Array<double>& tokens, const Array<double>& targets);

/// Keys and values of one layer, or what latent attention holds instead: [sequences, tokens so far, ...] each.
using LayerCache = std::vector<Array<double>>;

/// What a server keeps of its sequences from step to step; empty before the first one.
struct ServedSequences {
  std::vector<LayerCache> caches;                   ///< by layer
  std::vector<std::vector<Shards<double>>> states;  ///< by layer and recurrent step, as the devices hold them
  std::vector<LayerCache> encoded_caches;           ///< by layer: keys and values of what the encoder made
  Array<double> encoded;                            ///< what an encoder made: [sequences, tokens, d_model]
};

struct ServingRun {
  Array<double> logits;  ///< [sequences, 1, vocabulary] of the last token
  Array<double> chosen;  ///< [sequences, 1]
  RunFacts facts;
};
/// One serving step; the new tokens are appended to what is kept.
ServingRun run_serving(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
                       const Array<double>& tokens, ServedSequences& kept);

}  // namespace assay::execute
