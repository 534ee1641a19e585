// A server under load: requests arrive at random at a rate; how long they wait, and how fast their tokens come.
// Closed forms here; batching_simulation.h plays the same server out request by request.
#pragma once
#include <cstdint>
#include <functional>

#include "assay/serving/request_lengths.h"

namespace assay::serving {

/// Who works on prompts, and when.
enum class BatchingPolicy : std::uint8_t {
  interleaved,   ///< a prompt that waits goes before the next decode step
  chunked,       ///< pieces of prompts join decode steps
  disaggregated  ///< servers of their own
};

/// One replica: the seconds of what it does, and how many sequences it decodes at most.
struct LoadedServer {
  BatchingPolicy policy = BatchingPolicy::interleaved;
  std::function<double(double sequences, double context)> step;                  ///< context: mean of the sequences
  std::function<double(double tokens)> prefill;                                  ///< of one prompt, alone
  std::function<double(double sequences, double context, double tokens)> mixed;  ///< with that much of a prompt
  RequestLengths lengths;
  double most = 1;             ///< sequences at once
  double chunk = 0;            ///< tokens of prompts that join a step at most
  double prefill_servers = 1;  ///< for each replica, where they are separate; shared by all replicas
  double replicas = 1;
  double transfer = 0;      ///< seconds to bring a cache from a prefill server
  double cache_tokens = 0;  ///< that fit, in whole pages; 0: as many as `most` sequences need
};

struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

struct LoadedTimes {
  double saturation = 0;     ///< requests per second that one replica can serve
  double utilisation = 0;    ///< rate over saturation
  bool stable = false;       ///< utilisation is below one; all below is empty otherwise
  double sequences = 0;      ///< decoded at once, mean
  double waiting = 0;        ///< requests that wait for a place in the batch, mean
  double prefill_share = 0;  ///< of the time that prompts take from decoding, or of the prefill servers' time
  Spread first_token, per_token;
  double last_token = 0;   ///< seconds from arrival to the end, mean
  double preemptions = 0;  ///< per request; of a simulation
};

/// `rate` requests per second of one replica, as a Poisson process.
/// Prompts are an M/G/1 queue (M/G/c where they have servers of their own) whose server is away for the rest of a
/// decode step. Where they go before decode steps, the requests at the server are a Markov chain (batching_chain.h);
/// otherwise sequences share decode steps, a birth-death process whose rates depend on their number: a
/// processor-sharing queue, insensitive to the distribution of lengths. Beyond `most` sequences they queue; that wait
/// is scaled by (1 + squared variation of what a request takes) / 2 as in heavy traffic.
LoadedTimes loaded_times(const LoadedServer& server, double rate);

/// The largest rate at which 99 in 100 first tokens come within `first_token` and tokens within `per_token` seconds;
/// 0 if even an idle server does not.
double largest_rate(const LoadedServer& server, double first_token, double per_token);

}  // namespace assay::serving
