// What a collective costs a pass that computes beside it. Two lanes share a chip: the collective takes a share of the
// chip while it lasts, and the pass waits for what is left of it when the compute that does not need it is done.
#pragma once
#include <algorithm>

#include "assay/estimate/effects/training_effects.h"

namespace assay::training {

/// Seconds that a collective adds to a pass with `beside` seconds of compute that does not wait for it, if it takes
/// `share` of the chip while it lasts. Exact for two lanes: either the collective is hidden and slows compute by
/// share * collective, or compute is done first and the rest is waited for, which makes the slowdown free.
constexpr double waited(double collective, double beside, double share) {
  return std::min(collective, std::max(share * collective, collective - std::max(0.0, beside)));
}

/// The same of a collective over `devices` that is cut into as many pieces as there are devices, next to the product
/// of `product` seconds that reads what is gathered or makes what is scattered: one piece of the product has nothing
/// to run beside. Every further piece costs `piece` seconds. Never longer than in one piece before or after the
/// product.
constexpr double waited_in_pieces(double collective, double product, double devices,
                                  const estimate::CollectiveOverlap& overlap) {
  const double beside = (devices - 1.0) / devices * product;
  return std::min(collective, waited(collective, beside, overlap.chip_share) + (devices - 1.0) * overlap.piece.value());
}

/// The same of collectives once a step, which run in buckets beside one pass of `chain` seconds: the bucket of the
/// first or the last layer has nothing to run beside.
constexpr double waited_once(double collective, double chain, const estimate::CollectiveOverlap& overlap) {
  const double tail = overlap.tail * collective;
  return tail + waited(collective - tail, chain, overlap.chip_share);
}

/// Seconds of token exchange that another microbatch with `beside` seconds of compute hides.
constexpr double hidden_exchange(double exchange, double beside, const estimate::CollectiveOverlap& overlap) {
  return overlap.experts ? exchange - waited(exchange, beside, overlap.chip_share) : 0.0;
}

}  // namespace assay::training
