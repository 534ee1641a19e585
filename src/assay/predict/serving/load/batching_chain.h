// The number of requests at a server that runs prefill before decoding: a Markov chain, solved exactly.
// Decoding stops during prefill, so requests join it in clumps; once the batch is full, one prompt enters for each
// sequence that leaves. Observed while the server decodes, the chain falls by one at a time and rises by all arrivals
// during prefill (a chain of M/G/1 type, solved by level crossings).
#pragma once
#include <functional>
#include <span>

#include "assay/base/units.h"

namespace assay::serving {

struct ChainServer {
  Hertz rate;                                    ///< arrival rate of requests, a Poisson process
  std::span<const Seconds> prompts;              ///< times of a prefill, all equally likely
  std::function<Hertz(double sequences)> leave;  ///< rate at which sequences finish while they are decoded
  double most = 1;                               ///< sequences at once, a whole number
};

/// Means over time, including prefill.
struct ChainTimes {
  double sequences = 0, variance = 0;  ///< being decoded, or paused for a prefill
  double waiting = 0;                  ///< requests that found the batch full
  double full = 0;                     ///< share of the time in which the batch is full
  double idle = 0;                     ///< share of the time in which the server is empty
};

/// The server must be stable: rate x (mean prompt + 1 / leave(most)) < 1. Beyond 0.999 of that the longest queues, tens
/// of thousands of requests, are left out.
ChainTimes solve_chain(const ChainServer& server);

}  // namespace assay::serving
