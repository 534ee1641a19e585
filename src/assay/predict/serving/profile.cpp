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

double ServingProfile::Block::fullest(double sequences) const {
  const double share = touched(sequences);
  if (ranks <= 1.0) return share;
  return std::min(1.0, share + largest * std::sqrt(share * (1.0 - share) / (experts / ranks)));
}

void ServingTime::add(const ServingTime& other, double times) {
  for (Seconds ServingTime::*part :
       {&ServingTime::lower, &ServingTime::rooflines, &ServingTime::estimate, &ServingTime::upper,
        &ServingTime::compute, &ServingTime::memory, &ServingTime::network})
    this->*part += times * other.*part;
  flops += times * other.flops;
  attention_flops += times * other.attention_flops;
  attention_bytes += times * other.attention_bytes;
  kernels += times * other.kernels;
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

void find_tiles(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile) {
  for (ServingProfile::Block& block : profile.blocks)
    for (ServedKernel& kernel : block.kernels) find_tiles(setup.rates, tables, kernel);
}

}  // namespace assay::serving
