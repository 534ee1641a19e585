// How many requests are at a server that works on prompts before it decodes: a Markov chain, solved exactly.
// Decoding stands still while prompts are worked on, so requests join it in clumps; once the batch is full, one prompt
// gets in for each sequence that leaves. The chain is looked at while the server decodes: it falls by one at a time,
// and rises by all that came while prompts were worked on (a chain of M/G/1 type, solved by what crosses each level).
#pragma once
#include <functional>
#include <span>

namespace assay::serving {

struct ChainServer {
  double rate = 0;                                ///< requests per second, a Poisson process
  std::span<const double> prompts;                ///< seconds of a prompt; each an equal share
  std::function<double(double sequences)> leave;  ///< sequences that end per second of decoding
  double most = 1;                                ///< sequences at once, a whole number
};

/// Means over time, work on prompts included.
struct ChainTimes {
  double sequences = 0, variance = 0;  ///< that are decoded, or wait for a prompt's work to be over
  double waiting = 0;                  ///< requests that found the batch full
  double full = 0;                     ///< share of the time in which the batch is full
  double idle = 0;                     ///< share of the time in which nobody is there
};

/// The server must be stable: rate x (mean prompt + 1 / leave(most)) < 1. Beyond 0.999 of that the longest queues, tens
/// of thousands of requests, are left out.
ChainTimes solve_chain(const ChainServer& server);

}  // namespace assay::serving
