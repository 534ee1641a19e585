#include "assay/serving/throughput.h"

#include <algorithm>
#include <cmath>

namespace assay::serving {

std::string_view limiter_of(const ServingTime& time) {
  if (time.network > time.compute && time.network > time.memory) return "network";
  return time.memory > time.compute ? "memory" : "compute";
}

Dollars cost_of_million_tokens(DollarsPerSecond price, double chips, double tokens_per_second) {
  return 1e6 * (price * Seconds(1.0 / tokens_per_second) * chips);
}

InterleavedRate interleaved_rate(const ServingQuestion& question, const ServingPoint& point) {
  const auto output = static_cast<double>(question.output);
  const auto fresh = static_cast<double>(fresh_prompt(question));
  const auto data = static_cast<double>(point.strategy.data);
  const double prefill = point.prefill.estimate, step = point.decode.estimate;
  const double per_prompt = prefill / point.prompts;
  const double per_request = per_prompt + output * step / point.batch;
  InterleavedRate out;
  out.requests_per_second = 1.0 / per_request;
  out.tokens_per_second = output / per_request;
  out.last_token = Seconds(prefill + output * step);
  out.prefill_servers = per_prompt * point.batch / (step * output);
  out.finished_per_step = point.batch / output;
  out.freed_per_step = Tokens(point.batch * static_cast<double>(question.prompt + question.output) / output);
  out.balanced_chunk = Tokens(point.batch / data * fresh / output);
  return out;
}

Result<ChunkedRate> chunked_rate(const ServingQuestion& question, const hardware::Cluster& cluster,
                                 const ServingPoint& point, std::int64_t chunk) {
  const auto output = static_cast<double>(question.output);
  const auto fresh = static_cast<double>(fresh_prompt(question));
  const auto data = static_cast<double>(point.strategy.data);
  const auto tokens = std::min(static_cast<double>(chunk), fresh);
  ASSAY_TRY(links, serving_links(question.setup, point.strategy, cluster));
  const ServingProfile decode = make_serving_profile(question.setup, point.strategy, 1, decode_keys(question));
  const ServingProfile piece = chunk_profile(question, point.strategy, tokens);
  const double chunks = std::ceil(fresh / tokens);
  ChunkedRate out;
  out.chunk = Tokens(tokens);
  out.step = mixed_time(question.setup, point.strategy, links, {decode, piece, point.batch, chunks});
  out.step.estimate *= point.step_scale;
  // Every sequence that ends makes room for a prompt; with small chunks prompts arrive slower than sequences end.
  const double needed = point.batch / data * fresh / output / tokens;
  out.share_of_steps = std::min(1.0, needed);
  const double per_token = out.share_of_steps * out.step.estimate + (1.0 - out.share_of_steps) * point.decode.estimate;
  out.per_token = Seconds(per_token);
  out.first_token = Seconds(chunks * out.step.estimate);
  out.batch_kept_full = point.batch / std::max(1.0, needed);
  out.requests_per_second = out.batch_kept_full / (output * per_token);
  out.tokens_per_second = out.batch_kept_full / per_token;
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
