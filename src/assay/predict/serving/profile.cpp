#include "assay/predict/serving/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::serving {

lower::Parallelism ServingStrategy::parallelism() const {
  lower::Parallelism p;
  p.tensor = tensor / cache_ways;
  p.context = cache_ways;
  p.fsdp = second;
  p.pipeline = pipeline;
  p.expert = expert;
  p.data = data;
  p.expert_over = expert_over;
  p.expert_over.context = expert_over.tensor && cache_ways > 1;
  return p;
}

std::int64_t serving_unit(const ServingStrategy& strategy) {
  const bool by_batch = strategy.scheme.cache == lower::CacheScheme::batch;
  std::int64_t unit = strategy.data;
  if (by_batch) unit *= strategy.cache_ways > 1 ? strategy.cache_ways : strategy.tensor;
  if (by_batch || strategy.scheme.weights == lower::WeightScheme::gathered) unit *= strategy.second;
  return unit;
}

std::string ServingProfile::Block::text() const {
  return kind > 0 ? fmt::format("{} of kind {}", name, kind + 1) : std::string(name);
}

std::int64_t key_copies(const model::Transformer& model, std::int64_t tensor) {
  std::int64_t shared = tensor;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.attention && layer.attention->kv_rank == 0) shared = std::gcd(shared, layer.attention->kv_heads);
  return shared > 1 ? tensor / shared : 1;
}

double expected_largest(double draws) {
  if (draws <= 1.0) return 0.0;
  // The mean of a variable, from its distribution: 1 - P above zero less P below, in steps far finer than P changes.
  constexpr std::size_t steps = 800;
  constexpr double step = 0.01;
  static const auto above = [] {  // P of one draw above the middle of each step
    std::array<double, steps> out{};
    for (std::size_t i = 0; i < steps; ++i)
      out[i] = 0.5 * std::erfc((static_cast<double>(i) + 0.5) * step / std::sqrt(2.0));
    return out;
  }();
  const auto power = [&](double share) {  // of whole numbers, by squares
    double out = 1.0;
    for (auto left = static_cast<std::int64_t>(draws); left > 0; left /= 2, share *= share)
      if (left % 2 == 1) out *= share;
    return out;
  };
  double sum = 0.0;
  for (const double share : above) sum += 1.0 - power(1.0 - share) - power(share);
  return sum * step;
}

double ServingProfile::Block::touched(double sequences) const {
  return experts > 0.0 ? lower::touched_share(sequences * tokens / copies, per_token, experts) : 1.0;
}

double ServingProfile::Block::fullest_of(double touched) const {
  if (ranks <= 1.0) return touched;
  return std::min(1.0, touched + largest * std::sqrt(touched * (1.0 - touched) / (experts / ranks)));
}

std::int64_t whole_slots(const model::Transformer& model) {
  std::int64_t all = 1;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward && layer.feed_forward->experts > 0) {
      const std::int64_t n = layer.feed_forward->experts, k = layer.feed_forward->experts_per_token;
      all = std::lcm(all, n / std::gcd(n, k));
    }
  return all;
}

Result<training::StageLinks> serving_links(const ServingSetup& setup, const ServingStrategy& strategy,
                                           const hardware::Cluster& cluster) {
  return training::stage_links(strategy.parallelism(), strategy.layout, cluster,
                               setup.collectives ? &*setup.collectives : nullptr,
                               training::routing_of(*setup.model, setup.dispatch));
}

training::DerivedLinks derived_links(const Traced& num, const ServingSetup& setup, const ServingStrategy& strategy,
                                     const hardware::Cluster& cluster) {
  return {num,
          {cluster, setup.collectives ? &*setup.collectives : nullptr,
           training::routing_of(*setup.model, setup.dispatch), setup.rates.sources},
          strategy.parallelism(),
          strategy.layout};
}

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys, std::int64_t cache_keys) {
  return make_serving_profile(setup, strategy, queries, ServingKeys{{keys}, {cache_keys == 0 ? keys : cache_keys}});
}

ServingProfile make_prompt_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t fresh,
                                   std::int64_t prompt) {
  if (!setup.model->encoder) return make_serving_profile(setup, strategy, fresh, prompt);
  return make_serving_profile(setup, strategy, 1, ServingKeys{{prompt + 1}, {prompt + 1}, prompt});
}

FullestStages set_stages(const clock::StageSplit& split, std::int64_t stages, ServingProfile& profile) {
  const StageParts& parts = *profile.parts;
  const auto count = static_cast<double>(stages);
  FullestStages fullest;
  std::vector<Bytes> caches;
  Bytes most;
  double all = 0.0, longest = 0.0;
  profile.weights = Bytes();
  for (std::size_t s = 0; s < split.parts.size(); ++s) {
    const clock::StageSplit::Part& part = split.parts[s];
    const Bytes outer = parts.outer[part.first][part.last];
    Bytes weights = outer, held;
    std::vector<Bytes> by_length(parts.kinds.front().caches.size());
    double layers = 0.0;
    for (std::size_t k = 0; k < parts.kinds.size(); ++k) {
      const StageParts::Kind& kind = parts.kinds[k];
      const double n = part.layers[k];
      if (n == 0.0) continue;
      layers += n;
      weights += n * kind.own + kind.shared;
      for (std::size_t i = 0; i < kind.caches.size(); ++i) by_length[i] += n * kind.caches[i];
    }
    for (const Bytes cache : by_length) held += cache;
    if (weights > profile.weights) {
      profile.weights = weights;
      profile.outer = outer;
      fullest.weights = s;
    }
    if (s == 0 || held > most) {
      most = held;
      caches = std::move(by_length);
      fullest.caches = s;
    }
    longest = std::max(longest, layers);
    all += layers * static_cast<double>(part.stages);
  }
  profile.uneven = std::max(1.0, count * longest / all);
  const auto lengths = static_cast<double>(caches.size());
  profile.cache = Bytes();
  for (const Bytes cache : caches) profile.cache += cache / lengths;
  auto squares = Bytes() * Bytes();
  for (const Bytes cache : caches) squares += (cache - profile.cache) * (cache - profile.cache);
  profile.cache_spread = sqrt(squares / lengths);
  profile.states = parts.states / count;
  profile.kernels = parts.kernels / count;
  profile.together = parts.together || stages > 1;
  return fullest;
}

ServingStrategy one_group(ServingStrategy strategy) {
  strategy.data = strategy.parallelism().expert_data();
  strategy.pipeline = 1;
  strategy.layout = {};
  return strategy;
}

ServingProfile profile_of_groups(const ServingSetup& setup, const ServingProfile& group,
                                 const ServingStrategy& strategy) {
  ServingProfile profile = group;
  if (profile.parts) set_stages(clock::split_stages(*setup.model, strategy.pipeline), strategy.pipeline, profile);
  profile.groups = static_cast<double>(strategy.data) / static_cast<double>(one_group(strategy).data);
  profile.unit *= profile.groups;
  profile.cache_groups *= profile.groups;
  for (const auto each : {&ServingProfile::cache, &ServingProfile::cache_spread, &ServingProfile::states,
                          &ServingProfile::widest, &ServingProfile::boundary})
    profile.*each = profile.*each / profile.groups;
  return profile;
}

void find_tiles(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile) {
  ServingProfile::Blocks blocks = *profile.blocks;
  for (ServingProfile::Block& block : blocks)
    for (ServedKernel& kernel : block.kernels) find_tiles(setup.rates, tables, kernel);
  profile.blocks = std::make_shared<const ServingProfile::Blocks>(std::move(blocks));
}

}  // namespace assay::serving
