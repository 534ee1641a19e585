#include "assay/predict/serving/point.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::serving {

ServingStrategy prefill_strategy(const ServingPoint& point) {
  ServingStrategy strategy = point.strategy;
  strategy.scheme = point.prefill_scheme;
  return strategy;
}

void ServingPoint::scale(double step, double prefill_by) {
  step_scale *= step;
  decode.estimate *= step;
  prefill_scale *= prefill_by;
  prefill.estimate *= prefill_by;
  served.prefilled = served.prefilled / prefill_by;
  served.beside *= step;
  served.prompts *= prefill_by;
  served.step.estimate = served.beside + served.prompts;
  served.set_rates(decode.estimate);
}

std::int64_t fresh_prompt(const ServingQuestion& question) {
  return static_cast<std::int64_t>(
      std::max(1.0, std::ceil(static_cast<double>(question.prompt) * (1.0 - question.cached_prompt) - 1e-9)));
}

double prompts_of(const ServingQuestion& question, const ServingProfile& prefill) {
  return std::max(prefill.unit, question.prompts);
}

std::int64_t decode_context(const ServingQuestion& question) {
  if (question.lengths) return std::llround(question.lengths->context);
  return question.prompt + std::max<std::int64_t>(1, question.output / 2);
}

namespace {

/// Tokens of a chunk that attention of some layers looks back in; 0: none.
std::int64_t chunk_of(const ServingQuestion& question) {
  for (const model::Layer& layer : question.setup.model->decoder.kinds)
    if (layer.attention && layer.attention->chunk > 0) return layer.attention->chunk;
  return 0;
}

/// The contexts of all steps of an output, `later` tokens on, cut where a chunk begins: in between, all work is linear
/// in the context, so the midpoint is exact.
void cut_at_chunks(const ServingQuestion& question, std::int64_t chunk, std::int64_t later, ServingKeys& keys) {
  const std::int64_t first = question.prompt + later + 1;
  const std::int64_t last = question.prompt + later + std::max<std::int64_t>(1, question.output - 1);
  keys.seen.clear();
  for (std::int64_t from = first; from <= last;) {
    const std::int64_t to = std::min(last, (from + chunk - 1) / chunk * chunk);
    keys.seen.push_back(std::midpoint(from, to));
    keys.shares.push_back(static_cast<double>(to - from + 1));
    from = to + 1;
  }
}

}  // namespace

std::int64_t further_context(const ServingQuestion& question) {
  const std::int64_t context = decode_context(question), half = std::max<std::int64_t>(1, context / 2);
  const std::int64_t chunk = chunk_of(question);
  if (chunk == 0) return half;
  const std::int64_t longest = question.lengths
                                   ? question.lengths->prompt.largest() + question.lengths->output.largest()
                                   : question.prompt + question.output;
  if (longest <= chunk) return std::clamp<std::int64_t>(chunk - context, 1, half);
  return (half + chunk - 1) / chunk * chunk;
}

ServingKeys decode_keys(const ServingQuestion& question, std::int64_t later) {
  const std::int64_t source = question.setup.model->encoder ? question.prompt : 0;
  // The decoder's first token belongs to the prompt's pass.
  const std::int64_t mean = std::max(decode_context(question), source > 0 ? source + 2 : 0) + later;
  if (!question.lengths) {
    ServingKeys keys{{mean}, {question.prompt + question.output}, source};
    if (const std::int64_t chunk = chunk_of(question); chunk > 0) cut_at_chunks(question, chunk, later, keys);
    return keys;
  }
  // Without windows or picked keys all work is linear in the context, so its mean is exact.
  bool bounded = false;
  for (const model::Layer& layer : question.setup.model->decoder.kinds)
    bounded |= layer.attention &&
               (layer.attention->window > 0 || layer.attention->chunk > 0 || layer.attention->index_heads > 0);
  ServingKeys keys{{mean}, question.lengths->reserved, source};
  if (!bounded) return keys;
  keys.seen = question.lengths->seen;
  for (std::int64_t& seen : keys.seen) seen += later;
  return keys;
}

std::vector<lower::ServingScheme> prefill_schemes(const ServingStrategy& strategy) {
  std::vector<lower::ServingScheme> out{{lower::CacheScheme::heads, strategy.scheme.weights}};
  if (strategy.scheme.weights == lower::WeightScheme::two_dimensions)
    out.push_back({lower::CacheScheme::heads, lower::WeightScheme::gathered});
  return out;
}

ServingTime prefill_time(const ServingQuestion& question, const ServingStrategy& strategy, const PrefillOption& option,
                         const training::StageLinks& links) {
  return prefill_time(question.setup, strategy, option, links, prompts_of(question, option.profile));
}

ServingProfiles serving_profiles(const ServingQuestion& question, const ServingStrategy& strategy,
                                 const training::StageLinks& links) {
  std::vector<PrefillOption> options;
  for (const lower::ServingScheme& scheme : prefill_schemes(strategy)) {
    ServingStrategy way = strategy;
    way.scheme = scheme;
    options.push_back({scheme, make_prompt_profile(question.setup, way, fresh_prompt(question), question.prompt)});
  }
  std::vector<const PrefillOption*> all;
  for (const PrefillOption& option : options) all.push_back(&option);
  ServingProfiles profiles;
  profiles.decode = make_serving_profile(question.setup, strategy, 1, decode_keys(question));
  kernel::TileTables tables;  // for callers that price many batches
  find_tiles(question.setup, tables, profiles.decode);
  choose_prefill(question, strategy, links, all, profiles);
  return profiles;
}

void choose_prefill(const ServingQuestion& question, const ServingStrategy& strategy, const training::StageLinks& links,
                    const std::vector<const PrefillOption*>& options, ServingProfiles& profiles) {
  const PrefillOption* best = nullptr;
  for (const PrefillOption* option : options) {
    const ServingTime time = prefill_time(question, strategy, *option, links);
    if (best && time.estimate >= profiles.first_token.estimate) continue;
    best = option;
    profiles.first_token = time;
  }
  if (!profiles.prefill.profile.blocks || !(profiles.prefill.scheme == best->scheme)) profiles.prefill = *best;
  join_prompts(question, strategy, *options.front(), profiles);
  if (question.lengths && question.lengths->page > 0) profiles.margin = normal_quantile(1.0 - question.overflow);
  profiles.prefixes = question.prefix_memory / static_cast<double>(strategy.replica_chips());
}

ServingProfile chunk_profile(const ServingQuestion& question, const ServingStrategy& strategy, double tokens) {
  const auto n = static_cast<std::int64_t>(tokens);
  const auto fresh = static_cast<double>(fresh_prompt(question));
  const std::int64_t seen = question.prompt - static_cast<std::int64_t>(std::floor((fresh - tokens) / 2.0));
  ServingKeys keys{{std::max(n, seen)}, {std::max(n, seen)}};
  if (const std::int64_t chunk = chunk_of(question); chunk > 0 && question.prompt > chunk) {
    // Each piece begins somewhere else in a chunk: some of all of them.
    constexpr double most = 32;
    const double pieces = std::min(most, std::ceil(fresh / tokens));
    keys.seen.clear();
    for (double i = 1.0; i <= pieces; ++i)
      keys.seen.push_back(
          std::max(n, question.prompt - static_cast<std::int64_t>((fresh - tokens) * (1.0 - (i - 0.5) / pieces))));
  }
  return make_serving_profile(question.setup, strategy, n, keys);
}

namespace {

/// Standard deviation of the bytes that the caches on one chip take. Per-sequence bytes are averages over all groups,
/// and only one group is on this chip: each of its sequences is larger by the number of groups.
Bytes cache_deviation(const ServingProfile& decode, double batch) {
  return decode.cache_spread * std::sqrt(batch * decode.cache_groups);
}

/// Prompts that a batch works on at once: one place of as many as a request takes steps is a prompt's, unless chunks
/// limit them.
struct PromptsHeld {
  double fewest = 1, per_place = 0, chunked = 0;
  PromptsHeld(const ServingQuestion& question, const ServingProfile& prompt)
      : fewest(prompts_of(question, prompt)),
        per_place(1.0 / (static_cast<double>(question.output) + 1.0)),
        chunked(std::max(fewest, prompt.unit * question.step_tokens / static_cast<double>(fresh_prompt(question)))) {}
  double of(double held) const { return std::max(fewest, std::min(chunked, per_place * held)); }
};

/// Bytes kept free for every byte of caches.
double kept_free(const ServingQuestion& question) { return 1.0 / question.cache_share - 1.0; }

template <class N>
ServingMemoryOf<N> memory_parts(const N& num, const ServingQuestion& question, const ServingProfiles& profiles,
                                double batch) {
  const numbers::RuntimeMemory& runtime = question.setup.effects.memory;
  const ServingProfile &prompt = profiles.prefill.profile, &decode = profiles.decode;
  ServingMemoryOf<N> memory;
  add_runtime(num, runtime, {question.capacity, decode.together, decode.kernels}, memory);
  memory.weights = num.given("weights", decode.weights, "stored on one chip of the fullest stage");
  memory.weights = num.times("parameters given over counted", question.weight_scale, "--params", memory.weights);
  const double held = decode.held(batch);
  const auto sequences = num.given("sequences", held, "as many in every group as in the fullest");
  const auto tokens =
      num.given("cache of a sequence", decode.cache, "on one chip, of the tokens that memory is reserved for");
  const auto each =
      decode.states > Bytes() ? tokens + num.given("states of a sequence", decode.states, "of a fixed size") : tokens;
  const bool varies = profiles.margin > 0.0;
  memory.cache = memory.mean_cache = num.named(varies ? "mean cache" : "kv cache", each * sequences);
  if (varies)
    memory.cache =
        num.named("kv cache", memory.mean_cache +
                                  num.given("standard deviations", profiles.margin, "that pages rarely exceed") *
                                      num.given("deviation", cache_deviation(decode, held), "of all caches on a chip"));
  const auto over = num.given("held over the fewest", runtime.activations);
  const auto space = num.given("prompts", PromptsHeld(question, prompt).of(held), "worked on at once") *
                         (over * num.given("activations of a prompt", prompt.widest, "at their peak")) +
                     sequences * (over * num.given("activations of a sequence", decode.widest, "at their peak"));
  const Bytes gathered = std::max(prompt.gathered, decode.gathered);
  memory.workspace = num.named(
      "workspace", gathered > Bytes() ? space + num.given("gathered weights", gathered, "at their peak") : space);
  memory.reserve =
      num.named("allocator overhead",
                (num.given("held by the allocator over what is in use", runtime.reserved) - 1.0) * memory.workspace);
  if (question.cache_share < 1.0)
    memory.reserve = memory.reserve + num.named("kept free beside caches", kept_free(question) * memory.cache);
  if (profiles.prefixes > Bytes()) memory.prefixes = num.given("prefixes", profiles.prefixes, "--prefix-memory");
  return memory;
}

}  // namespace

ServingMemoryOf<Traced> derive_serving_memory(const Traced& num, const ServingQuestion& question,
                                              const ServingProfiles& profiles, double batch) {
  Origins origins(num);
  if (const auto& of = profiles.decode.origin) {
    origins.add("weights", of->weights);
    origins.add("cache of a sequence", of->cache);
    origins.add("states of a sequence", of->states);
    origins.add("activations of a sequence", of->widest);
    origins.add("gathered weights", of->gathered);
    origins.add("kernels of a graph", of->kernels);
  }
  if (const auto& of = profiles.prefill.profile.origin) {
    origins.add("activations of a prompt", of->widest);
    origins.add("gathered weights", of->gathered);
  }
  return memory_parts(num, question, profiles, batch);
}

ServingMemory serving_memory(const ServingQuestion& question, const ServingProfiles& profiles, double batch) {
  const numbers::RuntimeMemory& runtime = question.setup.effects.memory;
  ServingMemory memory{memory_parts(Plain{}, question, profiles, batch)};
  const ServingProfile &prompt = profiles.prefill.profile, &decode = profiles.decode;
  const double with_free = 1.0 + kept_free(question);
  const Bytes per_sequence = with_free * (decode.cache + decode.states);
  const Bytes prompt_space = runtime.activations * prompt.widest, step_space = runtime.activations * decode.widest;
  const Bytes gathered = std::max(prompt.gathered, decode.gathered);
  const PromptsHeld held(question, prompt);
  // left = batch x line + margin x deviation: a quadratic equation in the root of the batch.
  const Bytes half = 0.5 * with_free * profiles.margin * cache_deviation(profiles.decode, 1.0);
  const auto most = [&](Bytes left, Bytes line) {
    left = std::max(Bytes(), left);
    if (half == Bytes()) return left / line;
    const double root = (sqrt(half * half + line * left) - half) / line;
    return root * root;
  };
  const Bytes left =
      question.capacity - memory.weights - memory.runtime() - memory.prefixes - runtime.reserved * gathered;
  const auto most_beside = [&](double held_prompts) {
    return most(left - runtime.reserved * prompt_space * held_prompts, per_sequence + runtime.reserved * step_space);
  };
  double fits = most(left, per_sequence + runtime.reserved * (step_space + held.per_place * prompt_space));
  if (std::isfinite(held.chunked)) fits = std::max(fits, most_beside(held.chunked));
  fits = std::min(fits, most_beside(held.fewest));
  memory.max_batch = decode.cache_groups * std::floor(fits / decode.cache_groups);
  return memory;
}

double overflow_probability(const ServingQuestion& question, const ServingProfiles& profiles, double batch) {
  const ServingMemory memory = serving_memory(question, profiles, batch);
  const Bytes caches = (1.0 + kept_free(question)) * memory.cache;
  const Bytes left = question.cache_share * (question.capacity - (memory.total() - caches));
  const Bytes deviation = cache_deviation(profiles.decode, profiles.decode.held(batch));
  if (deviation == Bytes()) return left < memory.mean_cache ? 1.0 : 0.0;
  return 1.0 - normal_share((left - memory.mean_cache) / deviation);
}

ServingPoint serving_point(const ServingQuestion& question, const ServingStrategy& strategy,
                           const ServingProfiles& profiles, const training::StageLinks& links, double batch) {
  ServingPoint point;
  point.strategy = strategy;
  point.batch = batch;
  point.decode = serving_time(question.setup, strategy, profiles.decode, links, batch);
  point.served = served_rate(question, strategy, profiles, links, batch, point.decode.estimate);
  point.prefill = profiles.first_token;
  point.prefill_scheme = profiles.prefill.scheme;
  point.prompts = prompts_of(question, profiles.prefill.profile);
  point.memory = serving_memory(question, profiles, batch);
  return point;
}

}  // namespace assay::serving
