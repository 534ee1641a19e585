// One way to serve a model at one batch: the time of a prompt and of a decode step, and the memory they need.
#pragma once
#include <optional>
#include <vector>

#include "assay/serving/profile.h"
#include "assay/serving/request_lengths.h"

namespace assay::serving {

struct ServingQuestion {
  ServingSetup setup;
  std::int64_t prompt = 1, output = 1;    ///< tokens; means where lengths differ
  std::optional<RequestLengths> lengths;  ///< where they differ, or memory is paged
  double overflow = 0.01;                 ///< share of the time that paged caches may need more than there is
  double cached_prompt = 0;               ///< share of the prompt whose keys and values are there already
  double capacity = 0;                    ///< bytes of one chip
  double weight_scale = 1;                ///< of the bytes of weights, where parameters are given instead of counted
};

struct ServingMemory {
  double weights = 0, cache = 0, workspace = 0;  ///< bytes on one chip; the cache as it is rarely exceeded
  double driver = 0, communication = 0;          ///< of the driver with what it hides, of the library between chips
  double graphs = 0;                             ///< captured decode steps
  double reserve = 0;                            ///< what the allocator holds besides, in pieces that fit nothing
  double mean_cache = 0;                         ///< bytes on one chip
  double max_batch = 0;                          ///< sequences over all replicas
  /// All that does not depend on the batch, but for weights.
  double runtime() const { return driver + communication + graphs; }
  double total() const { return weights + cache + workspace + reserve + runtime(); }
};

struct ServingPoint {
  ServingStrategy strategy;
  lower::ServingScheme prefill_scheme;  ///< prompts may split caches and use weights in another way than decode steps
  double prompts = 1;                   ///< of one prefill, over all replicas
  double batch = 1;                     ///< sequences over all replicas
  ServingTime decode, prefill;
  ServingMemory memory;

  double step_scale = 1, prefill_scale = 1;  ///< times that were measured over their estimates

  double tokens_per_second() const { return batch / decode.estimate; }
  /// Multiplies the estimates of both times.
  void scale(double step, double prefill_by);
};
/// The strategy with the scheme of its prompts.
ServingStrategy prefill_strategy(const ServingPoint& point);

/// Tokens of a prompt that are not in the cache already.
std::int64_t fresh_prompt(const ServingQuestion& question);
/// Tokens that the average decode step looks back at.
std::int64_t decode_context(const ServingQuestion& question);
/// The same for all sequences of a batch, `later` tokens on.
ServingKeys decode_keys(const ServingQuestion& question, std::int64_t later = 0);
/// Tokens later at which a step tells what one more of context costs: where chunks begin anew within a request, as far
/// into one as before.
std::int64_t further_context(const ServingQuestion& question);

/// A prompt's way: its scheme and profile.
struct PrefillOption {
  lower::ServingScheme scheme;
  ServingProfile profile;
};
/// Schemes in which a strategy may work on prompts: one prompt splits by heads, and weights that lie in two directions
/// may be gathered. Where the cache is split otherwise in decoding, it is moved once.
std::vector<lower::ServingScheme> prefill_schemes(const ServingStrategy& strategy);
/// A prefill of one prompt on each replica, or of as many as the scheme needs, with what moving its cache takes.
ServingTime prefill_time(const ServingQuestion& question, const ServingStrategy& strategy, const PrefillOption& option,
                         const training::StageLinks& links);

/// All of one strategy that does not depend on the batch: the profile of a decode step in the middle of the output,
/// with the cache of a complete one, and the prefill that is done first.
struct ServingProfiles {
  ServingProfile decode;
  PrefillOption prefill;
  ServingTime first_token;
  double margin = 0;  ///< standard deviations that memory is kept free for caches beyond their mean
};
ServingProfiles serving_profiles(const ServingQuestion& question, const ServingStrategy& strategy,
                                 const training::StageLinks& links);
/// Takes the prefill with the earliest first token of those on the given links; `decode` must be there.
void choose_prefill(const ServingQuestion& question, const ServingStrategy& strategy, const training::StageLinks& links,
                    const std::vector<const PrefillOption*>& options, ServingProfiles& profiles);

/// A piece of a prompt of the question: the average one sees what is cached already and half of the rest.
ServingProfile chunk_profile(const ServingQuestion& question, const ServingStrategy& strategy, double tokens);

/// Fills in what driver, communication library and graphs take of one chip; `together`: one of several of a server.
void add_runtime(const estimate::RuntimeMemory& runtime, double capacity, bool together, double kernels,
                 ServingMemory& memory);
/// Memory of a batch, and the largest batch that fits.
ServingMemory serving_memory(const ServingQuestion& question, const ServingProfiles& profiles, double batch);
/// Probability that the caches of a chip need more than its memory has left, at any one time.
double overflow_probability(const ServingQuestion& question, const ServingProfiles& profiles, double batch);

/// A batch of a strategy; nothing is allocated.
ServingPoint serving_point(const ServingQuestion& question, const ServingStrategy& strategy,
                           const ServingProfiles& profiles, const training::StageLinks& links, double batch);

}  // namespace assay::serving
