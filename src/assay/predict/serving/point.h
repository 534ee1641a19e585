// A strategy at one batch: the times of a prefill and of a decode step, and the memory they need.
#pragma once
#include <optional>
#include <vector>

#include "assay/predict/serving/profile.h"
#include "assay/predict/serving/request_lengths.h"
#include "assay/predict/serving/steady_state.h"

namespace assay::serving {

struct ServingQuestion {
  ServingSetup setup;
  std::int64_t prompt = 1, output = 1;    ///< tokens; means where lengths differ
  std::optional<RequestLengths> lengths;  ///< set if lengths differ, or memory is paged
  double overflow = 0.01;                 ///< share of the time that pages may run out
  double prompts = 0;                     ///< prompts of one prefill, over all replicas; 0: one each
  double step_tokens = HUGE_VAL;          ///< most prompt tokens that join one step of a replica
  double cached_prompt = 0;               ///< share of the prompt that is cached
  Bytes capacity;                         ///< memory of one chip that the server may use
  double cache_share = 1;                 ///< share of the memory left by everything else that caches may take
  Bytes chip_memory;                      ///< memory of one chip, for plans that keep no margin; 0: the capacity
  double weight_scale = 1;                ///< scales weight bytes if parameters are given instead of counted
  numbers::RequestPath path;              ///< between clients and steps
  double prefill_servers = 0;             ///< replicas that only run prefill; 0: prompts join decode steps
  Bytes prefix_memory;                    ///< of a replica's chips, which keeps prefixes of other prompts
};

/// What one chip of a server holds, by part.
template <class N>
struct ServingMemoryOf {
  using Size = NumberOf<N, Bytes>;
  Size weights{}, workspace{};
  Size mean_cache{}, cache{};      ///< mean size of the cache, and a size that it rarely exceeds
  Size driver{}, communication{};  ///< memory of the driver, and of the communication library
  Size graphs{};                   ///< captured decode steps
  Size reserve{};                  ///< held by the allocator but unusable, or kept free next to caches
  Size prefixes{};                 ///< caches of prefixes that are kept for other prompts
  /// What does not depend on the batch, without weights.
  Size runtime() const { return driver + communication + graphs; }
  Size total() const { return weights + cache + workspace + reserve + prefixes + runtime(); }
};

struct ServingMemory : ServingMemoryOf<Plain> {
  double max_batch = 0;  ///< sequences over all replicas
};

/// The throughput of a server that prefills and decodes by continuous batching: every place of the batch is taken, and
/// prompts join decode steps or go before them, whichever is faster.
struct ServedRate {
  SteadyLoad load;            ///< load of one replica
  double replicas = 1;        ///< replicas that have a sequence
  double output = 1;          ///< tokens of a request, mean
  ServingTime step;           ///< a step with prompts
  Seconds beside, prompts;    ///< the sequences of that step and its prompts, each by themselves
  Hertz prefilled{HUGE_VAL};  ///< requests whose prompts servers of their own work on
  Hertz requests_per_second;
  TokensPerSecond tokens_per_second;  ///< output tokens
  Seconds per_token;                  ///< between two tokens of a sequence, mean

  /// Fills in the rates; a step without prompts takes `alone`.
  void set_rates(Seconds alone);
};

struct ServingPoint {
  ServingStrategy strategy;
  lower::ServingScheme prefill_scheme;  ///< may differ from the decode scheme
  double prompts = 1;                   ///< per prefill, over all replicas
  double batch = 1;                     ///< sequences over all replicas
  ServingTime decode, prefill;
  ServedRate served;
  ServingMemory memory;

  double step_scale = 1, prefill_scale = 1;  ///< measured times over their estimates

  /// Tokens per second of a server that only decodes.
  TokensPerSecond decoded_per_second() const { return Tokens(batch) / decode.estimate; }
  /// Multiplies the estimates of both times. Prompts then take as long within decode steps as by themselves.
  void scale(double step, double prefill_by);
};
/// The strategy with the scheme of its prompts.
ServingStrategy prefill_strategy(const ServingPoint& point);

/// Prompt tokens that are not cached.
std::int64_t fresh_prompt(const ServingQuestion& question);
/// Prompts of one prefill, over all replicas.
double prompts_of(const ServingQuestion& question, const ServingProfile& prefill);
/// Context of the average decode step, in tokens.
std::int64_t decode_context(const ServingQuestion& question);
/// Contexts of all sequences of a batch in the average decode step, `later` tokens further.
ServingKeys decode_keys(const ServingQuestion& question, std::int64_t later = 0);
/// A distance in tokens from which to measure the cost of more context; with chunked attention, a whole number of
/// chunks.
std::int64_t further_context(const ServingQuestion& question);

/// A scheme for prompts, and its profile.
struct PrefillOption {
  lower::ServingScheme scheme;
  ServingProfile profile;
};
/// Schemes in which a strategy may prefill: one prompt is split by heads, and weights sharded along two dimensions may
/// be gathered. If decoding splits the cache differently, it is moved once.
std::vector<lower::ServingScheme> prefill_schemes(const ServingStrategy& strategy);
/// A prefill of `prompts` over all replicas, including moving their caches.
ServingTime prefill_time(const ServingSetup& setup, const ServingStrategy& strategy, const PrefillOption& option,
                         const training::StageLinks& links, double prompts);
/// A prefill of one prompt per replica, or of as many prompts as the scheme needs.
ServingTime prefill_time(const ServingQuestion& question, const ServingStrategy& strategy, const PrefillOption& option,
                         const training::StageLinks& links);
/// The estimate of prefill_time(), with its derivation.
NumberOf<Traced, Seconds> derive_prefill_time(const Traced& num, const ServingSetup& setup,
                                              const ServingStrategy& strategy, const PrefillOption& option,
                                              const training::DerivedLinks& links, double prompts);

/// What does not depend on the batch: the profile of a decode step in the middle of the output, with the cache of a
/// complete output, and the prefill.
struct ServingProfiles {
  ServingProfile decode;
  PrefillOption prefill;
  ServingTime first_token;
  ServingProfile joined;  ///< attention of what joins a decode step: a prompt, or a piece of one
  Bytes moved;            ///< cache of a prompt that is moved to where decoding reads it
  std::shared_ptr<const ProfileOrigin> moved_origin = {};
  double margin = 0;  ///< standard deviations of free memory for caches beyond their mean
  Bytes prefixes;     ///< on one chip, kept for prefixes of other prompts
};
ServingProfiles serving_profiles(const ServingQuestion& question, const ServingStrategy& strategy,
                                 const training::StageLinks& links);
/// Takes the option with the earliest first token, and what joins decode steps; `decode` must be set, and the first
/// option has its scheme of weights.
void choose_prefill(const ServingQuestion& question, const ServingStrategy& strategy, const training::StageLinks& links,
                    const std::vector<const PrefillOption*>& options, ServingProfiles& profiles);

/// What the steps of a server hold; only sequences where prompts have servers of their own.
SteadyLoad load_of(const ServingQuestion& question, const SteadyServer& server);
/// Requests of one replica with its share of a batch.
SteadyServer steady_server(const ServingQuestion& question, const ServingStrategy& strategy, double batch);
/// Continuous batching of a batch whose decode step takes `alone`.
ServedRate served_rate(const ServingQuestion& question, const ServingStrategy& strategy,
                       const ServingProfiles& profiles, const training::StageLinks& links, double batch, Seconds alone);
/// A decode step of `sequences` of all replicas with `tokens` of prompts on each.
struct PromptStep {
  ServingTime time;
  Seconds beside, prompts;  ///< the sequences and the prompts, each by themselves
};
PromptStep step_with_prompts(const ServingQuestion& question, const ServingStrategy& strategy,
                             const ServingProfiles& profiles, const training::StageLinks& links, double sequences,
                             double tokens);

/// The step with prompts of a point, with its derivation.
NumberOf<Traced, Seconds> derive_step_with_prompts(const Traced& num, const ServingQuestion& question,
                                                   const ServingPoint& point, const ServingProfiles& profiles,
                                                   const training::DerivedLinks& links);

/// Whether prompts join decode steps whole, not in pieces.
bool joins_whole(const ServingQuestion& question);
/// What joins a decode step: the attention of whole prompts, or pieces.
ServingProfile joined_profile(const ServingQuestion& question, const ServingStrategy& strategy,
                              const ServingProfile& prompt);
/// Sets what joins a decode step where that is not known, and what it moves.
void join_prompts(const ServingQuestion& question, const ServingStrategy& strategy, const PrefillOption& option,
                  ServingProfiles& profiles);

/// A chunk of a prompt: the average one sees the cached part and half of the rest.
ServingProfile chunk_profile(const ServingQuestion& question, const ServingStrategy& strategy, double tokens);

/// What decides the memory of the runtime.
struct RuntimeLoad {
  Bytes capacity;         ///< memory of one chip
  bool together = false;  ///< a server of several chips
  double kernels = 0;     ///< kernels of a captured step
};
/// Fills in memory of driver, communication library and captured graphs.
template <class N>
void add_runtime(const N& num, const numbers::RuntimeMemory& runtime, const RuntimeLoad& load,
                 ServingMemoryOf<N>& memory) {
  const auto share = num.given("share of the driver", runtime.hidden);
  memory.driver =
      num.named("driver context", share * num.given("memory of the chip", load.capacity, "that the server may use") +
                                      num.given("of the process", runtime.context));
  if (load.together) memory.communication = num.given("communication library", runtime.communication);
  if (runtime.graphs > 0.0)
    memory.graphs = num.named("captured graphs", num.given("graphs", runtime.graphs) *
                                                     num.given("kernels of a graph", load.kernels, "of a decode step") *
                                                     num.given("bytes of a kernel", runtime.kernel));
}
/// Memory of a batch, and the largest batch that fits.
ServingMemory serving_memory(const ServingQuestion& question, const ServingProfiles& profiles, double batch);
/// The parts of serving_memory(), with their derivation.
ServingMemoryOf<Traced> derive_serving_memory(const Traced& num, const ServingQuestion& question,
                                              const ServingProfiles& profiles, double batch);
/// Probability that the caches of a chip need more memory than is left, at any one time.
double overflow_probability(const ServingQuestion& question, const ServingProfiles& profiles, double batch);

/// A strategy at a batch; allocates nothing.
ServingPoint serving_point(const ServingQuestion& question, const ServingStrategy& strategy,
                           const ServingProfiles& profiles, const training::StageLinks& links, double batch);

}  // namespace assay::serving
