#include "assay/serving/throughput.h"

#include <algorithm>
#include <cmath>

namespace assay::serving {

std::string_view limiter_of(const ServingTime& time) {
  if (time.network > time.compute && time.network > time.memory) return "network";
  return time.memory > time.compute ? "memory" : "compute";
}

std::string_view limiter_of(const ServingPoint& point) {
  const double share = point.served.load.share;
  const bool mixed = share * point.served.step.estimate > (1.0 - share) * point.decode.estimate;
  return limiter_of(mixed ? point.served.step : point.decode);
}

PhaseBalance phase_balance(const ServingQuestion& question, const ServingPoint& point) {
  const auto output = static_cast<double>(question.output);
  const auto fresh = static_cast<double>(fresh_prompt(question));
  const auto data = static_cast<double>(point.strategy.data);
  PhaseBalance out;
  out.last_token = Seconds(point.prefill.estimate + output * point.served.per_token);
  out.prefill_servers = point.prefill.estimate / point.prompts * point.batch / (point.decode.estimate * output);
  out.finished_per_step = point.batch / output;
  out.freed_per_step = Tokens(point.batch * static_cast<double>(question.prompt + question.output) / output);
  out.balanced_chunk = Tokens(point.batch / data * fresh / output);
  return out;
}

DisaggregatedRate disaggregated_rate(const ServingQuestion& question, const ServingPoint& point, double chips,
                                     double prompts_per_second) {
  const auto output = static_cast<double>(question.output);
  const double decoded = point.batch / (output * point.decode.estimate);  // requests per second
  DisaggregatedRate out;
  out.prefill_servers = decoded / prompts_per_second;
  out.requests_per_chip = decoded / (chips * (1.0 + out.prefill_servers));
  out.tokens_per_chip = out.requests_per_chip * output;
  return out;
}

}  // namespace assay::serving
