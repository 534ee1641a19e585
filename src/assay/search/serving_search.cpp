#include "assay/search/serving_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/search/divisors.h"

namespace assay {
namespace {

/// Sizes that heads, widths and experts allow.
struct Limits {
  std::int64_t heads = 0, width = 0, experts = 0;
};

Limits limits_of(const Transformer& model) {
  Limits limits;
  for (const Layer& layer : model.decoder.kinds) {
    if (layer.attention) limits.heads = std::gcd(limits.heads, layer.attention->heads);
    if (!layer.feed_forward) continue;
    limits.width = std::gcd(limits.width, layer.feed_forward->width);
    if (layer.feed_forward->experts > 0) limits.experts = std::gcd(limits.experts, layer.feed_forward->experts);
  }
  return limits;
}

class Searcher {
 public:
  Searcher(const ServingQuestion& question, const Cluster& cluster, const ServingChoices& choices)
      : question_(question), cluster_(cluster), choices_(choices), limits_(limits_of(*question.setup.model)) {}

  Result<ServingSearch> run() {
    const std::int64_t chips = cluster_.chips();
    bool any = false;
    for (std::int64_t tensor : divisors(chips)) {
      if (choices_.tensor ? *choices_.tensor != tensor
                          : (limits_.heads > 0 && limits_.heads % tensor != 0) ||
                                (limits_.width > 0 && limits_.width % tensor != 0))
        continue;
      for (std::int64_t pipeline : divisors(chips / tensor)) {
        if (choices_.pipeline ? *choices_.pipeline != pipeline : pipeline > question_.setup.model->decoder.layers())
          continue;
        for (std::int64_t second : divisors(chips / tensor / pipeline)) {
          if (choices_.second ? *choices_.second != second
                              : second > 1 && choices_.weights.value_or(WeightScheme::two_dimensions) ==
                                                  WeightScheme::one_dimension)
            continue;
          const std::int64_t data = chips / tensor / pipeline / second;
          if (choices_.data && *choices_.data != data) continue;
          for (std::int64_t expert : divisors(data)) {
            if (choices_.expert ? *choices_.expert != expert
                                : expert > 1 && (limits_.experts == 0 || limits_.experts % expert != 0))
              continue;
            any = true;
            ServingStrategy strategy;
            strategy.tensor = tensor, strategy.pipeline = pipeline, strategy.second = second;
            strategy.data = data, strategy.expert = expert;
            vary(strategy);
          }
        }
      }
    }
    if (!any)
      return fail("strategy", fmt::format("no product of the given parallelism makes {} chips", chips),
                  "tensor x pipeline x replicas must equal the chips; leave one of them out to have it found");
    finish_front();
    return std::move(found_);
  }

 private:
  void vary(ServingStrategy strategy) {
    std::vector<CacheScheme> caches{CacheScheme::heads};
    if (strategy.tensor > 1) caches = {CacheScheme::heads, CacheScheme::batch, CacheScheme::sequence};
    if (choices_.cache) caches = {*choices_.cache};
    std::vector<WeightScheme> schemes{WeightScheme::one_dimension};
    if (strategy.second > 1) schemes = {WeightScheme::two_dimensions};
    if (choices_.weights) schemes = {*choices_.weights};
    for (CacheScheme cache : caches)
      for (WeightScheme weights : schemes) {
        strategy.scheme = {cache, weights};
        price(strategy);
      }
  }

  void price(const ServingStrategy& strategy) {
    const Result<StageLinks> links = serving_links(question_.setup, strategy, cluster_);
    if (!links) return;
    const ServingProfiles profiles = serving_profiles(question_, strategy, *links);
    const double unit = profiles.decode.unit * static_cast<double>(strategy.pipeline);
    if (choices_.batch) {
      take(serving_point(question_, strategy, profiles, *links, static_cast<double>(*choices_.batch)));
      return;
    }
    const ServingPoint first = serving_point(question_, strategy, profiles, *links, unit);
    if (take(first); first.memory.total() > question_.capacity) return;
    // From one unit up to what fits: powers of two, the points between them, and the last one.
    const double most = std::floor(first.memory.max_batch / unit) * unit;
    const auto try_batch = [&](double batch) {
      if (batch <= most) take(serving_point(question_, strategy, profiles, *links, batch));
    };
    for (double batch = 2.0 * unit; batch <= 2.0 * most; batch *= 2.0) {
      if (batch > 2.0 * unit) try_batch(0.75 * batch);
      try_batch(batch);
    }
    try_batch(most);
  }

  void take(const ServingPoint& point) {
    ++found_.points;
    if (point.batch < 1.0) return;
    if (point.memory.total() > question_.capacity) {
      if (!found_.fits && (!found_.closest || point.memory.total() < found_.closest->memory.total()))
        found_.closest = point;
      return;
    }
    if (!found_.fits) found_.closest.reset();
    found_.fits = true;
    if (!found_.fastest_token || point.decode.estimate < found_.fastest_token->decode.estimate)
      found_.fastest_token = point;
    if (!found_.fastest_prompt || point.prefill.estimate < found_.fastest_prompt->prefill.estimate)
      found_.fastest_prompt = point;
    const bool meets = (!choices_.first_token || point.prefill.estimate <= *choices_.first_token) &&
                       (!choices_.per_token || point.decode.estimate <= *choices_.per_token);
    found_.front.push_back(point);
    if (found_.front.size() > 4096) thin_front();
    if (!meets) {
      if (!found_.closest || miss(point) < miss(*found_.closest)) found_.closest = point;
      return;
    }
    // A given batch is served as fast as possible; otherwise as many tokens as possible.
    const bool better = !found_.best || (choices_.batch ? point.decode.estimate < found_.best->decode.estimate
                                                        : point.tokens_per_second() > found_.best->tokens_per_second());
    if (better) found_.best = point;
  }

  /// How far a point misses the wishes: the worse of both, as a ratio.
  double miss(const ServingPoint& point) const {
    double worst = 0.0;
    if (choices_.first_token) worst = std::max(worst, point.prefill.estimate / *choices_.first_token);
    if (choices_.per_token) worst = std::max(worst, point.decode.estimate / *choices_.per_token);
    return worst;
  }

  void thin_front() {
    std::sort(found_.front.begin(), found_.front.end(), [](const ServingPoint& a, const ServingPoint& b) {
      return a.decode.estimate != b.decode.estimate ? a.decode.estimate < b.decode.estimate
                                                    : a.tokens_per_second() > b.tokens_per_second();
    });
    std::vector<ServingPoint> kept;
    for (const ServingPoint& point : found_.front)
      if (kept.empty() || point.tokens_per_second() > kept.back().tokens_per_second()) kept.push_back(point);
    found_.front = std::move(kept);
  }
  void finish_front() { thin_front(); }

  const ServingQuestion& question_;
  const Cluster& cluster_;
  const ServingChoices& choices_;
  Limits limits_;
  ServingSearch found_;
};

}  // namespace

Result<ServingSearch> search_serving(const ServingQuestion& question, const Cluster& cluster,
                                     const ServingChoices& choices) {
  return Searcher(question, cluster, choices).run();
}

std::int64_t fresh_prompt(const ServingQuestion& question) {
  return static_cast<std::int64_t>(
      std::max(1.0, std::ceil(static_cast<double>(question.prompt) * (1.0 - question.cached_prompt) - 1e-9)));
}

std::int64_t decode_context(const ServingQuestion& question) {
  return question.prompt + std::max<std::int64_t>(1, question.output / 2);
}

ServingProfiles serving_profiles(const ServingQuestion& question, const ServingStrategy& strategy,
                                 const StageLinks& links) {
  ServingProfiles profiles;
  profiles.decode =
      make_serving_profile(question.setup, strategy, 1, decode_context(question), question.prompt + question.output);
  profiles.prefill = make_serving_profile(question.setup, strategy, fresh_prompt(question), question.prompt);
  // A prompt on each replica; its stages follow each other.
  profiles.first_token = serving_time(question.setup, strategy, profiles.prefill, links, profiles.prefill.unit);
  return profiles;
}

ServingMemory serving_memory(const ServingQuestion& question, const ServingProfiles& profiles, double batch) {
  const double per_sequence = profiles.decode.cache_bytes + profiles.decode.state_bytes;
  const double prompt_space = profiles.prefill.widest * profiles.prefill.unit;
  ServingMemory memory;
  memory.weights = question.weight_scale * profiles.decode.weight_bytes;
  memory.cache = per_sequence * batch;
  memory.workspace = std::max(prompt_space, profiles.decode.widest * batch);
  const double left = question.capacity - memory.weights - prompt_space;
  memory.max_batch = std::max(0.0, std::floor(left / (per_sequence + profiles.decode.widest)));
  return memory;
}

ServingPoint serving_point(const ServingQuestion& question, const ServingStrategy& strategy,
                           const ServingProfiles& profiles, const StageLinks& links, double batch) {
  ServingPoint point;
  point.strategy = strategy;
  point.batch = batch;
  point.decode = serving_time(question.setup, strategy, profiles.decode, links, batch);
  point.prefill = profiles.first_token;
  point.memory = serving_memory(question, profiles, batch);
  return point;
}

}  // namespace assay
