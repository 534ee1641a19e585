// How the phases of a server balance, prefill on servers of its own, and what tokens cost.
#pragma once
#include <string_view>

#include "assay/predict/serving/point.h"

namespace assay::serving {

/// The largest of arithmetic, memory and network at ideal rates.
std::string_view limiter_of(const ServingTime& time);
/// The limiter of a server's steps with prompts or of those without, whichever take most of its time.
std::string_view limiter_of(const ServingPoint& point);

/// Chips at a price, and the tokens per second of all of them.
template <class N>
NumberOf<N, Dollars> cost_of_million_tokens(const N& num, const NumberOf<N, DollarsPerSecond>& price,
                                            const NumberOf<N, double>& chips,
                                            const NumberOf<N, TokensPerSecond>& rate) {
  return num.named("cost per million output tokens", price * chips * (num.constant(Tokens(1e6)) / rate));
}

/// How prefill and decode of a point balance.
struct PhaseBalance {
  Seconds last_token;  ///< latency of a request that finds a place at once, on a server whose other places are taken
  double prefill_servers = 0;  ///< prefill servers that supply one server which only decodes
  double finished_per_step = 0;
  Tokens freed_per_step;  ///< tokens of cache
  Tokens balanced_chunk;  ///< prompt tokens in each step so that prompts arrive as fast as sequences end
};
PhaseBalance phase_balance(const ServingQuestion& question, const ServingPoint& point);

/// A batch whose prompts start together and that is decoded to the end; sequences that do not fit wait for others.
struct BatchRun {
  double together = 0;  ///< sequences decoded at once
  Seconds time;
};
Result<BatchRun> batch_run(const ServingQuestion& question, const ServingPoint& point,
                           const hardware::Cluster& cluster);

/// Servers that only decode, and others of as many chips that only run prefill, as many as supply them.
struct DisaggregatedRate {
  double prefill_servers = 0;       ///< per decode server
  Hertz requests_per_chip;          ///< over the chips of both
  TokensPerSecond tokens_per_chip;  ///< over the chips of both
};
DisaggregatedRate disaggregated_rate(const ServingQuestion& question, const ServingPoint& point, double chips,
                                     Hertz prompts_per_second);

}  // namespace assay::serving
