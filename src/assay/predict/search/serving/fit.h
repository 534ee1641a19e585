// What fits: slices that a chip comes in, the smallest that holds some bytes, the longest context of a batch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/hardware/cluster.h"
#include "assay/predict/search/serving/search.h"

namespace assay::search {

/// A number of chips that can be had together, and its text in the CLUSTER grammar behind the chip: "4x2", "8".
struct SliceSize {
  std::string text;
  std::int64_t chips = 1;
};
/// Powers of two from one chip, and whole domains: up to a pod of a torus, up to 4096 chips behind switches.
std::vector<SliceSize> slice_sizes(const hardware::Chip& chip);

/// Memory of one chip for weights, caches and activations; `together`: the chip is one of several of a server.
Bytes left_on_chip(const numbers::RuntimeMemory& runtime, Bytes capacity, bool together);
/// The first slice of chips with that capacity that has so many bytes of such memory in all.
std::optional<SliceSize> smallest_slice(const numbers::RuntimeMemory& runtime, const hardware::Chip& chip,
                                        Bytes capacity, Bytes bytes);

/// The most tokens, prompt and output together, with which the batch fits; nothing where even the output alone does
/// not. At most `limit`, for caches that stop growing.
std::optional<std::int64_t> longest_context(const serving::ServingQuestion& question, const hardware::Cluster& cluster,
                                            const serving::ServingStrategy& strategy, double batch, std::int64_t limit);

}  // namespace assay::search
