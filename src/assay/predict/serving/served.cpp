// Continuous batching: prompts that join decode steps, and what a server yields that runs both.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "assay/predict/serving/point.h"

namespace assay::serving {
namespace {

constexpr training::RoleSet cache_devices =
    training::role_bit(training::Role::tensor) | training::role_bit(training::Role::fsdp);

/// Caches of the prompts of a step on each device.
template <class N>
NumberOf<N, Bytes> cache_of(const N& num, Bytes each, const std::shared_ptr<const ProfileOrigin>& origin,
                            double prompts) {
  std::optional<Origins> origins;
  if constexpr (N::traced)
    if (origin) origins.emplace(num).add("cache of a sequence", origin->cache);
  return num.given("cache of a sequence", each, "on one chip") * num.given("prompts", prompts, "of a step");
}

/// Moving caches of `bytes` on each device to where decoding reads them.
template <class N>
NumberOf<N, Seconds> moved_cache(const N& num, const training::LinksOf<N>& links, const NumberOf<N, Bytes>& bytes) {
  const auto all = bytes * num.given("devices", links.ways(cache_devices), "that hold parts of the caches");
  return num.named("moving the cache",
                   collective::collective_time(num, links.form(cache_devices, program::Collective::all_to_all), all));
}

void add_move(const training::StageLinks& links, Bytes bytes, ServingTime& time) {
  const collective::CollectiveLine& line =
      links.lines[cache_devices][training::StageLinks::line_of(program::Collective::all_to_all)];
  const Seconds ideal = std::max(line.floor, line.rate * bytes * links.ways(cache_devices));
  time.network += ideal;
  time.upper += ideal;
  time.estimate += moved_cache<Plain>(Plain{}, links, bytes);
  time.lower = std::max(time.lower, time.network);
}

/// The strategy as it prefills.
ServingStrategy prefilled_by(const ServingStrategy& strategy, const PrefillOption& option) {
  ServingStrategy way = strategy;
  way.scheme = option.scheme;
  return way;
}

/// Devices that hold the same keys after a prefill just keep their part.
bool moves_cache(const ServingStrategy& strategy, const PrefillOption& option) {
  return strategy.cache_ways == 1 && option.scheme.cache != strategy.scheme.cache &&
         strategy.tensor * strategy.second > 1;
}

/// A profile that holds only the attention of this one.
ServingProfile attention_of(const ServingProfile& profile) {
  ServingProfile out;
  out.queries = profile.queries;
  out.unit = profile.unit;
  out.groups = profile.groups;
  ServingProfile::Blocks blocks;
  for (const ServingProfile::Block& block : *profile.blocks) {
    ServingProfile::Block& kept = blocks.emplace_back();
    kept.name = block.name;
    kept.kind = block.kind;
    kept.layers = block.layers;
    for (const ServedKernel& kernel : block.kernels)
      if (kernel.attends) kept.kernels.push_back(kernel);
  }
  out.blocks = std::make_shared<const ServingProfile::Blocks>(std::move(blocks));
  return out;
}

}  // namespace

ServingTime prefill_time(const ServingSetup& setup, const ServingStrategy& strategy, const PrefillOption& option,
                         const training::StageLinks& links, double prompts) {
  ServingTime time = serving_time(setup, prefilled_by(strategy, option), option.profile, links, prompts);
  if (moves_cache(strategy, option)) add_move(links, option.profile.cache * prompts, time);
  return time;
}

NumberOf<Traced, Seconds> derive_prefill_time(const Traced& num, const ServingSetup& setup,
                                              const ServingStrategy& strategy, const PrefillOption& option,
                                              const training::DerivedLinks& links, double prompts) {
  const auto time = derive_serving_time(num, setup, prefilled_by(strategy, option), option.profile, links, prompts);
  if (!moves_cache(strategy, option)) return time;
  return time + moved_cache<Traced>(num, links, cache_of(num, option.profile.cache, option.profile.origin, prompts));
}

SteadyServer steady_server(const ServingQuestion& question, const ServingStrategy& strategy, double batch) {
  return {batch / std::min(batch, static_cast<double>(strategy.data)), static_cast<double>(question.output),
          static_cast<double>(fresh_prompt(question)), question.step_tokens};
}

SteadyLoad load_of(const ServingQuestion& question, const SteadyServer& server) {
  if (question.prefill_servers == 0.0) return steady_load(server);
  return {server.places / server.output, 0.0, 0.0, server.places, server.places};
}

bool joins_whole(const ServingQuestion& question) {
  return question.step_tokens >= static_cast<double>(fresh_prompt(question));
}

ServingProfile joined_profile(const ServingQuestion& question, const ServingStrategy& strategy,
                              const ServingProfile& prompt) {
  if (joins_whole(question)) return attention_of(prompt);
  const double fresh = static_cast<double>(fresh_prompt(question));
  return chunk_profile(question, strategy, std::ceil(fresh / std::ceil(fresh / question.step_tokens)));
}

void join_prompts(const ServingQuestion& question, const ServingStrategy& strategy, const PrefillOption& option,
                  ServingProfiles& profiles) {
  if (!profiles.joined.blocks) profiles.joined = joined_profile(question, strategy, option.profile);
  profiles.moved = {};
  profiles.moved_origin = {};
  if (!joins_whole(question) || !moves_cache(strategy, option)) return;
  profiles.moved = option.profile.cache;
  profiles.moved_origin = option.profile.origin;
}

namespace {

/// How prompts and decoded sequences share a step.
struct PromptWays {
  double prompts = 1;    ///< whole prompts or pieces that join on each replica
  double all = 1;        ///< prompts of a pass of their own, over all replicas
  double ended = 1;      ///< prompts that end
  bool whole = false;    ///< whole prompts join
  bool before = false;   ///< prompts may go first, in a pass of their own
  bool among = false;    ///< prompts may join the sequences
  bool decodes = false;  ///< there are sequences

  PromptWays(const ServingQuestion& question, const ServingStrategy& strategy, const ServingProfiles& profiles,
             double sequences, double tokens) {
    const auto data = static_cast<double>(strategy.data), fresh = static_cast<double>(fresh_prompt(question));
    prompts = tokens / profiles.joined.queries;
    all = std::max(profiles.prefill.profile.unit, data * tokens / fresh);
    ended = tokens / fresh;
    whole = profiles.joined.queries >= fresh;
    const bool can_join = !question.setup.model->encoder;  // it reads a prompt in a pass of its own
    before = whole || !can_join;
    decodes = sequences >= 1.0;
    among = can_join && (decodes || !whole);
  }
};

}  // namespace

PromptStep step_with_prompts(const ServingQuestion& question, const ServingStrategy& strategy,
                             const ServingProfiles& profiles, const training::StageLinks& links, double sequences,
                             double tokens) {
  const PromptWays way(question, strategy, profiles, sequences, tokens);
  const auto decode = [&] { return serving_time(question.setup, strategy, profiles.decode, links, sequences); };
  PromptStep out;
  if (way.before) {
    out.time = way.all == prompts_of(question, profiles.prefill.profile)
                   ? profiles.first_token
                   : prefill_time(question.setup, strategy, profiles.prefill, links, way.all);
    out.prompts = out.time.estimate;
    if (way.decodes) {
      const ServingTime decoded = decode();
      out.beside = decoded.estimate;
      out.time += decoded;
    }
  }
  if (!way.among) return out;
  if (!way.whole) out.prompts = profiles.first_token.estimate * way.ended;
  if (!way.decodes) {
    out.time = serving_time(question.setup, strategy, profiles.joined, links, way.prompts * profiles.joined.unit);
    return out;
  }
  if (!way.whole) out.beside = decode().estimate;
  ServingTime joined = mixed_time(question.setup, strategy, links,
                                  {profiles.decode, profiles.joined, sequences, way.prompts, way.ended});
  if (profiles.moved > Bytes()) add_move(links, profiles.moved * way.prompts * profiles.joined.unit, joined);
  if (!way.before || joined.estimate < out.time.estimate) out.time = joined;
  return out;
}

NumberOf<Traced, Seconds> derive_step_with_prompts(const Traced& num, const ServingQuestion& question,
                                                   const ServingPoint& point, const ServingProfiles& profiles,
                                                   const training::DerivedLinks& links) {
  const ServingStrategy& strategy = point.strategy;
  const double sequences = point.served.replicas * point.served.load.sequences;
  const PromptWays way(question, strategy, profiles, sequences, point.served.load.tokens);
  const ServingSetup& setup = question.setup;
  NumberOf<Traced, Seconds> separate, joined;
  if (way.before) {
    separate = num.named("prompts alone", derive_prefill_time(num, setup, strategy, profiles.prefill, links, way.all));
    if (way.decodes)
      separate = separate + num.named("sequences alone",
                                      derive_serving_time(num, setup, strategy, profiles.decode, links, sequences));
    separate = num.named("one after the other", separate);
  }
  if (!way.among) return separate;
  if (way.decodes)
    joined = derive_mixed_time(num, setup, strategy, links,
                               {profiles.decode, profiles.joined, sequences, way.prompts, way.ended});
  else
    joined = derive_serving_time(num, setup, strategy, profiles.joined, links, way.prompts * profiles.joined.unit);
  if (way.decodes && profiles.moved > Bytes())
    joined = joined + moved_cache<Traced>(num, links,
                                          num.times("sequences", profiles.joined.unit, "one for every replica",
                                                    cache_of(num, profiles.moved, profiles.moved_origin, way.prompts)));
  joined = num.named("together", joined);
  return way.before ? min(joined, separate) : joined;
}

void ServedRate::set_rates(Seconds alone) {
  const SteadyTimes times = steady_times(load, step.estimate, alone);
  const SteadyRates<Plain> rates = steady_rates(Plain{}, replicas * load.requests, output, times.step);
  requests_per_second = std::min(rates.requests, prefilled);
  tokens_per_second = requests_per_second * Tokens(output);
  per_token = times.per_token;
}

ServedRate served_rate(const ServingQuestion& question, const ServingStrategy& strategy,
                       const ServingProfiles& profiles, const training::StageLinks& links, double batch,
                       Seconds alone) {
  const SteadyServer server = steady_server(question, strategy, batch);
  ServedRate out;
  out.load = load_of(question, server);
  out.replicas = batch / server.places;
  out.output = server.output;
  if (question.prefill_servers > 0.0) {
    const double each = prompts_of(question, profiles.prefill.profile) / static_cast<double>(strategy.data);
    out.prefilled = question.prefill_servers * each / profiles.first_token.estimate;
    out.beside = out.step.lower = out.step.estimate = out.step.upper = alone;
    out.set_rates(alone);
    return out;
  }
  const PromptStep step =
      step_with_prompts(question, strategy, profiles, links, out.replicas * out.load.sequences, out.load.tokens);
  out.step = step.time;
  out.beside = step.beside;
  out.prompts = step.prompts;
  out.set_rates(alone);
  return out;
}

}  // namespace assay::serving
