// How many runs of layers, chunks, interleaved stages may hold.
#pragma once
#include <cstdint>

namespace assay::clock {

/// The most chunks of each stage. Embedding and head may be chunks by themselves, the first and the last one, so that
/// there are up to two more chunks than layers: 126 layers make 8 on each of 16 stages.
constexpr std::int64_t most_chunks(std::int64_t layers, std::int64_t stages) { return (layers + 2) / stages; }

}  // namespace assay::clock
