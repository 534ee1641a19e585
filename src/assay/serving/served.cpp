// Continuous batching: prompts that join decode steps, and what a server yields that runs both.
#include <algorithm>
#include <cmath>

#include "assay/serving/point.h"

namespace assay::serving {
namespace {

/// Moving caches to where decoding reads them.
struct MovedCache {
  double ideal = 0, estimate = 0;  ///< seconds
};
MovedCache moved_cache(const training::StageLinks& links, double bytes) {
  const training::RoleSet over = training::role_bit(training::Role::tensor) | training::role_bit(training::Role::fsdp);
  const std::size_t kind = training::StageLinks::line_of(program::Collective::all_to_all);
  const network::CollectiveLine& line = links.lines[over][kind];
  return {std::max(line.floor.value(), line.rate.value() * bytes * links.ways(over)),
          links.forms[over][kind].seconds(bytes * links.ways(over), 1.0)};
}

void add_move(const training::StageLinks& links, double bytes, ServingTime& time) {
  const MovedCache moved = moved_cache(links, bytes);
  time.network += moved.ideal;
  time.upper += moved.ideal;
  time.estimate += moved.estimate;
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

/// The same profile with its attention alone.
ServingProfile attention_of(const ServingProfile& profile) {
  ServingProfile out;
  out.queries = profile.queries;
  out.unit = profile.unit;
  for (const ServingProfile::Block& block : profile.blocks) {
    ServingProfile::Block& kept = out.blocks.emplace_back();
    kept.name = block.name;
    kept.kind = block.kind;
    kept.layers = block.layers;
    for (const ServedKernel& kernel : block.kernels)
      if (kernel.attends) kept.kernels.push_back(kernel);
  }
  return out;
}

}  // namespace

ServingTime prefill_time(const ServingSetup& setup, const ServingStrategy& strategy, const PrefillOption& option,
                         const training::StageLinks& links, double prompts) {
  ServingTime time = serving_time(setup, prefilled_by(strategy, option), option.profile, links, prompts);
  if (moves_cache(strategy, option)) add_move(links, option.profile.cache_bytes * prompts, time);
  return time;
}

NumberOf<Traced, Seconds> derive_prefill_time(const Traced& num, const ServingQuestion& question,
                                              const ServingStrategy& strategy, const PrefillOption& option,
                                              const training::StageLinks& links) {
  const double prompts = prompts_of(question, option.profile);
  const auto time =
      derive_serving_time(num, question.setup, prefilled_by(strategy, option), option.profile, links, prompts);
  if (!moves_cache(strategy, option)) return time;
  const MovedCache moved = moved_cache(links, option.profile.cache_bytes * prompts);
  return time + num.given("moving the cache", Seconds(moved.estimate), "all-to-all, to where decoding reads it");
}

SteadyServer steady_server(const ServingQuestion& question, const ServingStrategy& strategy, double batch) {
  return {batch / std::min(batch, static_cast<double>(strategy.data)), static_cast<double>(question.output),
          static_cast<double>(fresh_prompt(question)), question.step_tokens};
}

void join_prompts(const ServingQuestion& question, const ServingStrategy& strategy, const PrefillOption& option,
                  ServingProfiles& profiles) {
  const double fresh = static_cast<double>(fresh_prompt(question));
  if (question.step_tokens < fresh) {
    profiles.joined = chunk_profile(question, strategy, std::ceil(fresh / std::ceil(fresh / question.step_tokens)));
    return;
  }
  profiles.joined = attention_of(option.profile);
  if (moves_cache(strategy, option)) profiles.moved = option.profile.cache_bytes;
}

PromptStep step_with_prompts(const ServingQuestion& question, const ServingStrategy& strategy,
                             const ServingProfiles& profiles, const training::StageLinks& links, double sequences,
                             double tokens) {
  const auto data = static_cast<double>(strategy.data), fresh = static_cast<double>(fresh_prompt(question));
  const double prompts = tokens / profiles.joined.queries;
  const bool whole = profiles.joined.queries >= fresh;
  const bool can_join = !question.setup.model->encoder;  // it reads a prompt in a pass of its own
  PromptStep out;
  if (whole || !can_join) {
    const double all = std::max(profiles.prefill.profile.unit, data * tokens / fresh);
    out.time = prefill_time(question.setup, strategy, profiles.prefill, links, all);
    out.prompts = out.time.estimate;
    if (sequences < 1.0) return out;
    const ServingTime decode = serving_time(question.setup, strategy, profiles.decode, links, sequences);
    out.beside = decode.estimate;
    for (double ServingTime::*part :
         {&ServingTime::lower, &ServingTime::rooflines, &ServingTime::estimate, &ServingTime::upper,
          &ServingTime::compute, &ServingTime::memory, &ServingTime::network, &ServingTime::flops,
          &ServingTime::attention_flops, &ServingTime::attention_bytes, &ServingTime::kernels})
      out.time.*part += decode.*part;
    if (!can_join) return out;
  }
  if (!whole) out.prompts = profiles.first_token.estimate * tokens / fresh;
  if (sequences < 1.0) {
    out.time = serving_time(question.setup, strategy, profiles.joined, links, prompts * profiles.joined.unit);
    return out;
  }
  if (!whole) out.beside = serving_time(question.setup, strategy, profiles.decode, links, sequences).estimate;
  ServingTime joined = mixed_time(question.setup, strategy, links,
                                  {profiles.decode, profiles.joined, sequences, prompts, tokens / fresh});
  if (profiles.moved > 0.0) add_move(links, profiles.moved * prompts * profiles.joined.unit, joined);
  if (!whole || joined.estimate < out.time.estimate) out.time = joined;
  return out;
}

void ServedRate::set_rates(double alone) {
  const SteadyTimes times = steady_times(load, step.estimate, alone);
  requests_per_second = replicas * load.requests / times.step;
  tokens_per_second = requests_per_second * output;
  per_token = times.per_token;
}

ServedRate served_rate(const ServingQuestion& question, const ServingStrategy& strategy,
                       const ServingProfiles& profiles, const training::StageLinks& links, double batch, double alone) {
  const SteadyServer server = steady_server(question, strategy, batch);
  ServedRate out;
  out.load = steady_load(server);
  out.replicas = batch / server.places;
  out.output = server.output;
  const PromptStep step =
      step_with_prompts(question, strategy, profiles, links, out.replicas * out.load.sequences, out.load.tokens);
  out.step = step.time;
  out.beside = step.beside;
  out.prompts = step.prompts;
  out.set_rates(alone);
  return out;
}

}  // namespace assay::serving
