// What a collective costs a pass that computes beside it. Two lanes share a chip: the collective takes a share of the
// chip while it lasts, and the pass waits for what is left of it when the compute that does not need it is done.
// Times are numbers of any policy.
#pragma once
#include "assay/base/explain.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::training {

/// Numbers of an overlap under a policy.
template <class N>
struct OverlapNumbers {
  NumberOf<N, double> chip_share, tail;
  NumberOf<N, Seconds> piece;
  bool experts = false;
};
template <class N>
OverlapNumbers<N> overlap_numbers(const N& num, const numbers::CollectiveOverlap& overlap) {
  return {num.given("share of the chip", overlap.chip_share), num.given("last bucket", overlap.tail),
          num.given("each piece", overlap.piece), overlap.experts};
}

/// Seconds that a collective adds to a pass with `beside` seconds of compute that does not wait for it, if it takes
/// `share` of the chip while it lasts. Exact for two lanes: either the collective is hidden and slows compute by
/// share * collective, or compute is done first and the rest is waited for, which makes the slowdown free.
template <class Time, class Number>
constexpr Time waited(Time collective, Time beside, const Number& share) {
  return min(collective, max(share * collective, collective - max(Time(), beside)));
}

/// The same of a collective over `devices` that is cut into as many pieces as there are devices, next to the product
/// of `product` seconds that reads what is gathered or makes what is scattered: one piece of the product has nothing
/// to run beside. Every further piece costs `piece` seconds. Never longer than in one piece before or after the
/// product.
template <class Time, class Number, class Overlap>
constexpr Time waited_in_pieces(Time collective, Time product, Number devices, const Overlap& overlap) {
  const Time beside = (devices - 1.0) / devices * product;
  return min(collective, waited(collective, beside, overlap.chip_share) + (devices - 1.0) * overlap.piece);
}

/// The same of collectives once a step, which run in buckets beside one pass of `chain` seconds: the bucket of the
/// first or the last layer has nothing to run beside.
template <class N, class Time, class Overlap>
constexpr Time waited_once(const N& num, Time collective, Time chain, const Overlap& overlap) {
  const Time tail = num.named("tail", overlap.tail * collective),
             rest = num.named("before the tail", collective - tail);
  return tail + waited(rest, chain, overlap.chip_share);
}

/// Seconds of token exchange that another microbatch with `beside` seconds of compute hides.
template <class Time, class Overlap>
constexpr Time hidden_exchange(Time exchange, Time beside, const Overlap& overlap) {
  return overlap.experts ? exchange - waited(exchange, beside, overlap.chip_share) : Time();
}

}  // namespace assay::training
