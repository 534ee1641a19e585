// What a server yields that runs both phases: prefill and decode in turn, chunks of prompts within decode steps, or
// prefill on servers of its own; and what its tokens cost.
#pragma once
#include <string_view>

#include "assay/serving/point.h"

namespace assay::serving {

/// The largest of arithmetic, memory and network at ideal rates.
std::string_view limiter_of(const ServingTime& time);

/// Chips at a price, and the tokens per second of all of them.
Dollars cost_of_million_tokens(DollarsPerSecond price, double chips, double tokens_per_second);

/// Prefill and decode on the same chips in turn: a request costs its prefill and its share of every decode step.
struct InterleavedRate {
  double requests_per_second = 0, tokens_per_second = 0;
  Seconds last_token;          ///< of a request that does not wait
  double prefill_servers = 0;  ///< that supply one server which only decodes
  double finished_per_step = 0;
  Tokens freed_per_step;  ///< of cache
  Tokens balanced_chunk;  ///< of a prompt in each step, so that prompts arrive as fast as sequences end
};
InterleavedRate interleaved_rate(const ServingQuestion& question, const ServingPoint& point);

/// Chunks of prompts in decode steps.
struct ChunkedRate {
  Tokens chunk;
  ServingTime step;           ///< with a chunk
  double share_of_steps = 0;  ///< that have one
  Seconds per_token, first_token;
  double batch_kept_full = 0;  ///< sequences that chunks can keep going
  double requests_per_second = 0, tokens_per_second = 0;
};
Result<ChunkedRate> chunked_rate(const ServingQuestion& question, const hardware::Cluster& cluster,
                                 const ServingPoint& point, std::int64_t chunk);

/// Servers that only decode, and others of as many chips that only run prefill, as many as supply them.
struct DisaggregatedRate {
  double prefill_servers = 0;                         ///< per decode server
  double requests_per_chip = 0, tokens_per_chip = 0;  ///< and second, over the chips of both
};
DisaggregatedRate disaggregated_rate(const ServingQuestion& question, const ServingPoint& point, double chips,
                                     double prompts_per_second);

}  // namespace assay::serving
