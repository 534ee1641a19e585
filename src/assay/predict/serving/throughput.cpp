#include "assay/predict/serving/throughput.h"

#include <algorithm>

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
  out.last_token = point.prefill.estimate + output * point.served.per_token;
  out.prefill_servers = point.prefill.estimate / point.prompts * point.batch / (point.decode.estimate * output);
  out.finished_per_step = point.batch / output;
  out.freed_per_step = Tokens(point.batch * static_cast<double>(question.prompt + question.output) / output);
  out.balanced_chunk = Tokens(point.batch / data * fresh / output);
  return out;
}

Result<BatchRun> batch_run(const ServingQuestion& question, const ServingPoint& point,
                           const hardware::Cluster& cluster) {
  // Whether the batch fits does not depend on how many prompts are worked on at once: servers take them in pieces.
  ServingQuestion alone = question;
  alone.prompts = 0.0;
  ASSAY_TRY(links, serving_links(alone.setup, point.strategy, cluster));
  const ServingProfiles profiles = serving_profiles(alone, point.strategy, links);
  const double most = std::max(1.0, serving_memory(alone, profiles, point.batch).max_batch);
  const double together = std::min(point.batch, most);
  const Seconds step =
      together == point.batch
          ? point.decode.estimate
          : point.step_scale * serving_point(alone, point.strategy, profiles, links, together).decode.estimate;
  const double steps = point.batch / together * static_cast<double>(question.output - 1);
  return BatchRun{together, point.prefill.estimate + steps * step};
}

DisaggregatedRate disaggregated_rate(const ServingQuestion& question, const ServingPoint& point, double chips,
                                     Hertz prompts_per_second) {
  const auto output = static_cast<double>(question.output);
  const Hertz decoded = point.batch / (output * point.decode.estimate);  // requests
  DisaggregatedRate out;
  out.prefill_servers = decoded / prompts_per_second;
  out.requests_per_chip = decoded / (chips * (1.0 + out.prefill_servers));
  out.tokens_per_chip = out.requests_per_chip * Tokens(output);
  return out;
}

}  // namespace assay::serving
