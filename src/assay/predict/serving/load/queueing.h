// A server under load: requests arrive at random at a rate; how long they wait, and how fast their tokens come.
// Closed forms; batching_simulation.h simulates the same server request by request.
#pragma once
#include <cstdint>
#include <functional>

#include "assay/base/units.h"
#include "assay/predict/serving/first_token.h"
#include "assay/predict/serving/request_lengths.h"

namespace assay::serving {

/// Where and when prefill runs.
enum class BatchingPolicy : std::uint8_t {
  interleaved,   ///< a waiting prompt runs before the next decode step
  chunked,       ///< prompts, or chunks of them, are added to decode steps
  disaggregated  ///< on separate servers
};

/// One replica: times of its steps, and the most sequences it decodes.
struct LoadedServer {
  BatchingPolicy policy = BatchingPolicy::interleaved;
  std::function<Seconds(double sequences, double context)> step;  ///< context: mean of the sequences
  std::function<Seconds(double tokens)> prefill;                  ///< time of one prompt by itself
  std::function<Seconds(double sequences, double context, double tokens)>
      mixed;  ///< a step with a chunk of so many prompt tokens
  RequestLengths lengths;
  double most = 1;             ///< sequences at once
  double chunk = 0;            ///< most prompt tokens added to a step
  double prefill_servers = 1;  ///< per replica, if separate; shared by all replicas
  double replicas = 1;
  Seconds transfer;           ///< time to move a cache from a prefill server
  numbers::RequestPath path;  ///< of the requests
  double cache_tokens = 0;    ///< capacity in whole pages; 0: enough for `most` sequences
  /// What a prompt's token takes longer in `mixed` for each token before it, and how many `mixed` takes to be before
  /// it.
  Seconds further;
  double before = 0;
};

struct Spread {
  Seconds mean, p50, p90, p99;
};

struct LoadedTimes {
  Hertz saturation;          ///< requests that one replica can serve
  double utilisation = 0;    ///< rate over saturation
  bool stable = false;       ///< utilisation is below one; otherwise all that follows is empty
  double sequences = 0;      ///< decoded at once, mean
  double waiting = 0;        ///< requests waiting for a place in the batch, mean
  double prefill_share = 0;  ///< share of the time that prompts take from decoding, or that prefill servers are used
  Spread first_token, per_token;
  FirstToken first_parts;  ///< means; closed forms only
  Seconds last_token;      ///< from arrival to the end, mean
  double preemptions = 0;  ///< per request; simulation only
  Hertz served;            ///< requests that end; simulation only
};

/// Requests of one replica, as a Poisson process.
/// Prompts are an M/G/1 queue (M/G/c where they have servers of their own) whose server is away for the rest of a
/// decode step. Where they go before decode steps, the requests at the server are a Markov chain (batching_chain.h);
/// otherwise sequences share decode steps, a birth-death process whose rates depend on their number: a
/// processor-sharing queue, insensitive to the distribution of lengths. Beyond `most` sequences they queue; that wait
/// is scaled by (1 + squared variation of what a request takes) / 2 as in heavy traffic.
LoadedTimes loaded_times(const LoadedServer& server, Hertz rate);

/// The largest rate at which the 99th percentiles are within `first_token` and `per_token`; 0 if an idle server
/// misses them.
Hertz largest_rate(const LoadedServer& server, Seconds first_token, Seconds per_token);

}  // namespace assay::serving
