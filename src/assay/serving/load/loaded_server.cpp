#include "assay/serving/load/loaded_server.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::serving {
namespace {

/// Linear between points, extrapolated from the last two.
class Polyline {
 public:
  void add(double x, double y) { points_.push_back({x, y}); }
  double operator()(double x) const {
    if (points_.size() == 1) return points_.front().y;
    auto right = std::upper_bound(points_.begin(), points_.end(), x, [](double v, const Point& p) { return v < p.x; });
    if (right == points_.begin()) ++right;
    if (right == points_.end()) --right;
    const Point &a = *(right - 1), &b = *right;
    return a.y + (x - a.x) * (b.y - a.y) / (b.x - a.x);
  }

 private:
  struct Point {
    double x, y;
  };
  std::vector<Point> points_;
};

/// Whole numbers from `low` to `high`, each next one a given factor larger.
std::vector<double> grid(double low, double high, double factor) {
  std::vector<double> out;
  for (double x = low; x < high; x = std::max(x + 1.0, std::floor(x * factor))) out.push_back(x);
  out.push_back(high);
  return out;
}

Polyline prefill_times(const ServingQuestion& question, const ServingStrategy& strategy,
                       const training::StageLinks& links, const RequestLengths& lengths, double scale) {
  Polyline line;
  const auto low = static_cast<double>(lengths.prompt.smallest()), high = static_cast<double>(lengths.prompt.largest());
  for (double tokens : grid(low, high, std::max(1.5, std::pow(high / low, 1.0 / 12.0)))) {
    ServingQuestion one = question;
    one.prompt = static_cast<std::int64_t>(tokens);
    const ServingProfile profile = make_prompt_profile(question.setup, strategy, fresh_prompt(one), one.prompt);
    line.add(tokens, scale * serving_time(question.setup, strategy, profile, links, profile.unit).estimate);
  }
  return line;
}

/// Seconds that the cache of an average prompt takes to another server, all of whose chips receive their part.
double transfer_time(const ServingQuestion& question, const hardware::Cluster& cluster, const ServingProfile& decode,
                     const RequestLengths& lengths, double data) {
  if (!cluster.chip.network.scale_out) return 0.0;
  double reserved = 0.0;
  for (std::int64_t n : lengths.reserved)
    reserved += static_cast<double>(n) / static_cast<double>(lengths.reserved.size());
  const double bytes = data * decode.cache_bytes * static_cast<double>(question.prompt) / reserved;
  return bytes / cluster.chip.network.scale_out->bandwidth.value.value();
}

}  // namespace

Result<LoadedServer> loaded_server(const ServingQuestion& question, const hardware::Cluster& cluster,
                                   const ServingPoint& point, const LoadChoices& choices) {
  const ServingStrategy& strategy = point.strategy;
  const ServingSetup& setup = question.setup;
  ASSAY_TRY(links, serving_links(setup, strategy, cluster));
  const ServingProfiles profiles = serving_profiles(question, strategy, links);
  const auto data = static_cast<double>(strategy.data);
  LoadedServer server;
  server.lengths = question.lengths
                       ? *question.lengths
                       : request_lengths(Lengths::fixed(question.prompt), Lengths::fixed(question.output), 0);
  server.most = std::max(1.0, std::floor(point.batch / data));
  server.replicas = data;
  const double context = server.lengths.context;
  Polyline steps;
  for (double n : grid(1.0, server.most, 1.1))
    steps.add(n, point.step_scale * serving_time(setup, strategy, profiles.decode, links, n * data).estimate);
  // Cost of one more token of context per sequence.
  const std::int64_t later = further_context(question);
  const ServingProfile further = make_serving_profile(setup, strategy, 1, decode_keys(question, later));
  const double slope = point.step_scale *
                       (serving_time(setup, strategy, further, links, server.most * data).estimate -
                        serving_time(setup, strategy, profiles.decode, links, server.most * data).estimate) /
                       (server.most * static_cast<double>(later));
  server.step = [steps, slope, context](double n, double seen) { return steps(n) + slope * n * (seen - context); };
  const Polyline prompts = prefill_times(question, prefill_strategy(point), links, server.lengths, point.prefill_scale);
  server.prefill = [prompts](double tokens) { return prompts(tokens); };
  if (choices.prefill_servers) {
    server.policy = BatchingPolicy::disaggregated;
    server.prefill_servers = static_cast<double>(*choices.prefill_servers) / data;
    server.transfer = transfer_time(question, cluster, profiles.decode, server.lengths, data);
  } else if (choices.chunk) {
    server.policy = BatchingPolicy::chunked;
    server.chunk = static_cast<double>(*choices.chunk);
    // What is added to a step by a piece of a prompt, over sequences for a few sizes of the piece.
    std::vector<std::pair<double, Polyline>> added{{0.0, {}}};
    for (double n : grid(1.0, server.most, server.most)) added.front().second.add(n, 0.0);
    for (double share : {0.25, 0.5, 1.0}) {
      const double tokens = std::max(1.0, std::floor(share * server.chunk));
      if (tokens <= added.back().first) continue;
      const ServingProfile piece = chunk_profile(question, strategy, tokens);
      const double chunks = std::max(1.0, std::ceil(static_cast<double>(fresh_prompt(question)) / tokens));
      Polyline line;
      for (double n : grid(1.0, server.most, 1.5))
        line.add(n, point.step_scale *
                        (mixed_time(setup, strategy, links, {profiles.decode, piece, n * data, chunks}).estimate -
                         serving_time(setup, strategy, profiles.decode, links, n * data).estimate));
      added.emplace_back(tokens, std::move(line));
    }
    const double fresh = 1.0 - question.cached_prompt;
    server.mixed = [added, steps, slope, context, fresh](double n, double seen, double tokens) {
      const double sequences = std::max(1.0, n), worked = fresh * tokens;
      std::size_t i = 1;
      while (i + 1 < added.size() && added[i].first < worked) ++i;
      const double low = added[i - 1].second(sequences), high = added[i].second(sequences);
      const double share = (worked - added[i - 1].first) / (added[i].first - added[i - 1].first);
      return steps(sequences) + slope * n * (seen - context) + low + share * (high - low);
    };
  }
  if (server.lengths.page > 0) {
    double reserved = 0.0;
    for (std::int64_t n : server.lengths.reserved)
      reserved += static_cast<double>(n) / static_cast<double>(server.lengths.reserved.size());
    const double left = question.capacity - (point.memory.total() - point.memory.cache);
    server.cache_tokens = left / (data * profiles.decode.cache_bytes) * reserved;
  }
  return server;
}

}  // namespace assay::serving
