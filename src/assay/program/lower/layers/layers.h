// The forward pass of each kind of layer, written once for training, prefill and decode.
#pragma once
#include <cstdint>

#include "assay/model/transformer.h"
#include "assay/program/lower/builder.h"

namespace assay::lower {

/// The workload of one microbatch or one serving step.
struct Workload {
  std::int64_t sequences = 1;  ///< sequences over all devices
  std::int64_t queries = 1;    ///< new tokens of each sequence
  std::int64_t keys = 1;       ///< tokens that attention may look at, including the new ones
  bool cached = false;         ///< keys before the new tokens come from a cache
  bool flash = true;           ///< attention without score matrices in memory
  bool causal_flops = true;    ///< count only the scores under a causal mask; otherwise all
  std::int64_t source = 0;     ///< tokens of the encoder's sequence
  /// Slots per expert relative to an even share of the tokens: imbalance if dropless, or the capacity factor.
  double expert_load = 1.0;

  double tokens() const { return static_cast<double>(sequences) * static_cast<double>(queries); }
};

/// Share of the experts that get at least one of `tokens` tokens when each picks k of n at random.
double touched_share(double tokens, double k, double n);

/// Keys and values of a layer that later layers also use; below 0: none.
struct CrossLayerKeys {
  int keys = -1, values = -1;
};

/// The branches a layer adds to the residual stream, in order. A branch depends only on its description and the stream.
enum class Branch : std::uint8_t {
  parallel,  ///< attention and feed-forward in parallel: the whole layer
  mixer,     ///< attention, a state space, or both
  cross_attention,
  feed_forward,
  token_input
};
inline constexpr Branch all_branches[] = {Branch::parallel, Branch::mixer, Branch::cross_attention,
                                          Branch::feed_forward, Branch::token_input};
/// A set of branches, one bit each.
using BranchSet = std::uint8_t;
constexpr BranchSet branch_bit(Branch branch) { return static_cast<BranchSet>(1u << static_cast<unsigned>(branch)); }
BranchSet branches_of(const model::Layer& layer);

/// FLOP of an attention step, or of its gradient.
template <class N>
NumberOf<N, Flops> attention_flops(const N& num, const program::Program& program, const program::Step& step);
/// FLOP of a step on matrix units other than a product: attention, picks of keys, scans, convolutions and their
/// gradients; nothing for others.
template <class N>
NumberOf<N, Flops> arithmetic(const N& num, const program::Program& program, const program::Step& step);

}  // namespace assay::lower
