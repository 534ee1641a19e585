// Properties derived from a layer's description that both its weights and its steps need.
#pragma once
#include <cstdint>

#include "assay/model/mixers.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// Whether a layer's mixer and feed-forward block each have a norm on either side.
bool has_sandwich_norms(const Layer& layer);

/// Whether attention and feed-forward read the embedding, and feed only the state space.
inline bool is_aside(const Layer& layer) { return layer.shared && layer.shared->aside; }
inline bool has_aside(const LayerStack& stack) {
  for (const Layer& layer : stack.kinds)
    if (is_aside(layer)) return true;
  return false;
}

/// Whether each channel of a mixer is independent, as its own head: no group of channels must stay together.
inline bool has_free_channels(const StateSpace& s) { return facts(s.kind).has(free_channels); }

/// Whether a mixer reads each token mixed with the one before it.
inline bool is_shifted(const StateSpace& s) { return facts(s.kind).has(shifted_input); }

/// The width of the layers' token inputs: the same for all layers, or 0 for none.
std::int64_t token_input_width(const LayerStack& stack);

}  // namespace assay::model
