// What distinguishes the kinds of state spaces and linear attention: one row each. Their weights are in
// state_space_weights.cpp, their steps in program/lower/layers/, their recurrences in engine/kernels/recurrence_head.h.
#pragma once
#include <cstdint>
#include <iterator>
#include <string_view>

#include "assay/model/transformer.h"

namespace assay::model {

/// Several traits are or-ed.
enum MixerTrait : std::uint8_t {
  plain_mixer = 0,
  free_channels = 1,  ///< each channel is its own head: no group of channels must stay together
  shifted_input = 2,  ///< reads each token mixed with the one before it
  grouped_keys = 4,   ///< heads of values share keys and queries, which pass the convolution, too
  by_token = 8,       ///< kernels scan token by token, not chunks of tokens by products
  delta_rule = 16,    ///< subtracts what the state predicts before it writes
  normalised = 32     ///< each head also sums its keys, and keeps the largest exponent
};
struct Mixer {
  StateSpace::Kind kind;
  std::string_view word, name;  ///< in files of architectures, and for people
  double per_cell;              ///< FLOP of a token for each cell of the state
  std::string_view formula;     ///< what they are
  std::uint8_t traits;

  constexpr bool has(MixerTrait trait) const { return (traits & trait) != 0; }
};
inline constexpr Mixer mixers[] = {
    {StateSpace::Kind::mamba1, "mamba1", "mamba", 6,
     "h = exp(dt A) h + dt B x, then C h: each cell has a decay of its own", free_channels | by_token},
    {StateSpace::Kind::mamba2, "mamba2", "mamba 2", 5, "h = a h + k v, then q h: one decay per head", grouped_keys},
    {StateSpace::Kind::gated_delta, "gated_delta", "gated delta rule", 7,
     "h = a h + b k (v - k h), then q h: reads the state to subtract what it predicts", grouped_keys | delta_rule},
    {StateSpace::Kind::lightning, "lightning", "lightning attention", 5, "h = a h + k v, then q h: one decay per head",
     plain_mixer},
    {StateSpace::Kind::gated_convolution, "gated_convolution", "gated convolution", 0, "no state", free_channels},
    {StateSpace::Kind::gated_linear, "gated_linear", "gated linear recurrence", 7,
     "a = exp(c r); h = a h + sqrt(1 - a a) i x", by_token},
    {StateSpace::Kind::rwkv4, "rwkv4", "rwkv 4", 23,
     "two averages, scaled by two maxima: 12 for the result, 11 for the state",
     free_channels | shifted_input | by_token},
    {StateSpace::Kind::rwkv5, "rwkv5", "rwkv 5", 7, "x = k v; r (u x + s), added up; s = w s + x", shifted_input},
    {StateSpace::Kind::rwkv7, "rwkv7", "rwkv 7", 9, "what is removed, s = w s + k v - that, and r s",
     shifted_input | delta_rule},
    {StateSpace::Kind::mlstm, "mlstm", "mlstm", 5, "s = f s + i k v, and q s; the normaliser counts as one more value",
     normalised}};

constexpr const Mixer& facts(StateSpace::Kind kind) { return mixers[static_cast<std::size_t>(kind)]; }
static_assert([] {
  for (std::size_t i = 0; i < std::size(mixers); ++i)
    if (static_cast<std::size_t>(mixers[i].kind) != i) return false;
  return true;
}());

}  // namespace assay::model
