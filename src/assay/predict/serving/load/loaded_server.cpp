#include "assay/predict/serving/load/loaded_server.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::serving {
namespace {

/// A time, linear between points, extrapolated from the last two.
class Polyline {
 public:
  void add(double x, Seconds y) { points_.push_back({x, y}); }
  Seconds operator()(double x) const {
    if (points_.size() == 1) return points_.front().y;
    auto right = std::upper_bound(points_.begin(), points_.end(), x, [](double v, const Point& p) { return v < p.x; });
    if (right == points_.begin()) ++right;
    if (right == points_.end()) --right;
    const Point &a = *(right - 1), &b = *right;
    return a.y + (x - a.x) * (b.y - a.y) / (b.x - a.x);
  }

 private:
  struct Point {
    double x;
    Seconds y;
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

/// The cache of an average prompt goes to another server, all of whose chips receive their part.
Seconds transfer_time(const ServingQuestion& question, const hardware::Cluster& cluster, const ServingProfile& decode,
                      const RequestLengths& lengths, double data) {
  if (!cluster.chip.network.scale_out) return {};
  double reserved = 0.0;
  for (std::int64_t n : lengths.reserved)
    reserved += static_cast<double>(n) / static_cast<double>(lengths.reserved.size());
  const Bytes bytes = data * decode.cache * static_cast<double>(question.prompt) / reserved;
  return bytes / cluster.chip.network.scale_out->bandwidth.value;
}

/// Steps with prompts: times over sequences, for some numbers of prompt tokens.
class MixedTable {
 public:
  MixedTable(const ServingQuestion& question, const ServingPoint& point, const ServingProfiles& profiles,
             const training::StageLinks& links, double most, double most_tokens) {
    const auto data = static_cast<double>(point.strategy.data);
    const auto fresh = static_cast<double>(fresh_prompt(question));
    const bool measured = point.step_scale != 1.0 || point.prefill_scale != 1.0;
    for (double part : {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1.0}) {
      const double tokens = std::max(1.0, std::floor(part * most_tokens));
      if (!lines_.empty() && tokens <= lines_.back().tokens) continue;
      ServingProfiles with = profiles;
      if (tokens < fresh) {
        with.joined = chunk_profile(question, point.strategy, tokens);
        with.moved = Bytes();
      } else if (with.joined.queries < fresh) {
        with.joined = chunk_profile(question, point.strategy, fresh);
      }
      Line& line = lines_.emplace_back(Line{tokens, {}});
      std::vector<double> sequences = grid(1.0, most, 1.3);
      sequences.insert(sequences.begin(), 0.0);
      for (double n : sequences) {
        const PromptStep step = step_with_prompts(question, point.strategy, with, links, n * data, tokens);
        line.time.add(
            n, measured ? point.step_scale * step.beside + point.prefill_scale * step.prompts : step.time.estimate);
      }
    }
  }

  /// Between a step without prompts, which takes `alone`, and the table.
  Seconds operator()(double sequences, double tokens, Seconds alone) const {
    std::size_t i = 0;
    while (i + 1 < lines_.size() && lines_[i].tokens < tokens) ++i;
    const Seconds low = i > 0 ? lines_[i - 1].time(sequences) : alone;
    const double from = i > 0 ? lines_[i - 1].tokens : 0.0;
    return low + (tokens - from) / (lines_[i].tokens - from) * (lines_[i].time(sequences) - low);
  }

 private:
  struct Line {
    double tokens = 0;
    Polyline time;
  };
  std::vector<Line> lines_;
};

/// What a prompt's token takes longer for each token before it: pieces of a prompt, here and further behind.
Seconds further_time(const ServingQuestion& question, const ServingStrategy& strategy, const ServingProfiles& profiles,
                     const training::StageLinks& links) {
  const std::int64_t tokens = fresh_prompt(question) / 2, later = further_context(question);
  if (tokens == 0) return {};
  const auto n = static_cast<double>(tokens);
  ServingProfiles with = profiles;
  with.moved = Bytes();
  const auto time = [&](std::int64_t seen) {
    with.joined = make_serving_profile(question.setup, strategy, tokens, {{seen}, {seen}});
    return step_with_prompts(question, strategy, with, links, static_cast<double>(strategy.data), n).time.estimate;
  };
  return std::max(Seconds(), time(question.prompt + later) - time(question.prompt)) / (n * static_cast<double>(later));
}

}  // namespace

Result<LoadedServer> loaded_server(const ServingQuestion& question, const hardware::Cluster& cluster,
                                   const ServingPoint& point, double least_chunk) {
  const ServingStrategy& strategy = point.strategy;
  const ServingSetup& setup = question.setup;
  ASSAY_TRY(links, serving_links(setup, strategy, cluster));
  const ServingProfiles profiles = serving_profiles(question, strategy, links);
  const auto data = static_cast<double>(strategy.data);
  LoadedServer server;
  server.path = question.path;
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
  const Seconds slope = point.step_scale *
                        (serving_time(setup, strategy, further, links, server.most * data).estimate -
                         serving_time(setup, strategy, profiles.decode, links, server.most * data).estimate) /
                        (server.most * static_cast<double>(later));
  server.step = [steps, slope, context](double n, double seen) { return steps(n) + slope * n * (seen - context); };
  const Polyline prompts = prefill_times(question, prefill_strategy(point), links, server.lengths, point.prefill_scale);
  server.prefill = [prompts](double tokens) { return prompts(tokens); };
  if (question.prefill_servers > 0.0) {
    server.policy = BatchingPolicy::disaggregated;
    server.prefill_servers = question.prefill_servers / data;
    server.transfer = transfer_time(question, cluster, profiles.decode, server.lengths, data);
  } else if (!setup.model->encoder) {
    server.policy = BatchingPolicy::chunked;
    const SteadyServer full = steady_server(question, strategy, point.batch);
    const double fresh = full.prompt / static_cast<double>(question.prompt);
    const double tokens = std::min(full.chunk, std::max({full.prompt, steady_load(full).tokens, least_chunk}));
    server.chunk = tokens / fresh;
    if (question.cached_prompt == 0.0) {
      server.further = point.prefill_scale * further_time(question, strategy, profiles, links);
      server.before = 0.5 * static_cast<double>(question.prompt);
    }
    const MixedTable table(question, point, profiles, links, server.most, tokens);
    server.mixed = [table, steps, slope, context, fresh](double n, double seen, double prompt) {
      return table(n, fresh * prompt, n > 0.0 ? steps(n) : Seconds()) + slope * n * (seen - context);
    };
  }
  if (server.lengths.page > 0) {
    double reserved = 0.0;
    for (std::int64_t n : server.lengths.reserved)
      reserved += static_cast<double>(n) / static_cast<double>(server.lengths.reserved.size());
    const Bytes left = question.capacity - (point.memory.total() - point.memory.cache);
    server.cache_tokens = left / (data * profiles.decode.cache) * reserved;
  }
  return server;
}

Result<Bytes> cache_of_token(const ServingQuestion& question, const hardware::Cluster& cluster,
                             const ServingPoint& point) {
  ASSAY_TRY(links, serving_links(question.setup, point.strategy, cluster));
  double reserved = 0.0;
  for (const std::int64_t n : question.lengths->reserved)
    reserved += static_cast<double>(n) / static_cast<double>(question.lengths->reserved.size());
  const auto chips = static_cast<double>(cluster.chips());
  return chips / reserved * serving_profiles(question, point.strategy, links).decode.cache;
}

}  // namespace assay::serving
