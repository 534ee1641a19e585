// The time and memory of serving: one prefill or one decode step of a strategy at any batch.
// The work of a step is linear in the batch, so two lowered programs give every batch; nothing here allocates once a
// profile is made.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/predict/clock/stage_split.h"
#include "assay/predict/numbers/serving_effects.h"
#include "assay/predict/serving/batch_linear_kernel.h"
#include "assay/predict/training/link_derivation.h"
#include "assay/predict/training/step.h"
#include "assay/program/lower/lowering.h"

namespace assay::serving {

struct ServingSetup {
  const model::Transformer* model = nullptr;
  kernel::KernelRates rates;
  lower::Formats formats;    ///< weights, products, activations, cache
  double expert_load = 1.0;  ///< tokens of the busiest experts over an even share: routing skew
  training::Dispatch dispatch = training::Dispatch::per_node;
  std::optional<hardware::CollectiveCalibration>
      collectives;                  ///< measured; otherwise ideal links at the chip's efficiency
  numbers::ServingEffects effects;  ///< affect the estimate only
  const Traced* explain = nullptr;  ///< profiles remember what their numbers consist of
};

/// How one model server is split over chips; `data` replicas of it share the load.
struct ServingStrategy {
  std::int64_t tensor = 1;
  /// Devices of a tensor-parallel group that would hold the same keys: they split the cache by the scheme, and the
  /// others by heads. 1: the whole group splits it by the scheme.
  std::int64_t cache_ways = 1;
  std::int64_t second = 1;  ///< shards of weights along their other dimension (2D), or devices they are gathered from
  std::int64_t pipeline = 1, expert = 1, data = 1;
  lower::ExpertAxes expert_over{};
  lower::ServingScheme scheme;
  collective::AxisLayout layout{};

  std::int64_t replica_chips() const { return tensor * second * pipeline; }
  std::int64_t chips() const { return replica_chips() * data; }
  lower::Parallelism parallelism() const;
  friend bool operator==(const ServingStrategy& a, const ServingStrategy& b) {
    return a.tensor == b.tensor && a.cache_ways == b.cache_ways && a.second == b.second && a.pipeline == b.pipeline &&
           a.expert == b.expert && a.expert_over == b.expert_over && a.data == b.data && a.scheme == b.scheme &&
           a.layout == b.layout;
  }
};

struct ServedCollective {
  program::Collective kind = program::Collective::all_reduce;
  training::RoleSet over = 0;
  double count = 1;  ///< equal collectives of a block
  StraightLine<Bytes> bytes;
  /// What the bytes consist of; only where they are to be explained. Shared by copies, which never change it.
  std::shared_ptr<const StraightLine<NumberOf<Traced, Bytes>>> origin = {};

  bool same(const ServedCollective& other) const {
    return kind == other.kind && over == other.over && bytes == other.bytes;
  }
};

/// What the memory of a profile consists of.
struct ProfileOrigin {
  NumberOf<Traced, Bytes> weights, cache, states, widest, gathered, boundary;
  NumberOf<Traced, double> kernels;
};

/// What stages are made of: of one copy of the experts, on one chip.
struct StageParts {
  /// Kinds of layers: those of the decoder, then those of the encoder.
  struct Kind {
    Bytes own, shared;          ///< weights of a layer, and those that layers share
    std::vector<Bytes> caches;  ///< of a sequence in a layer, for each number of tokens that memory is reserved for
  };
  std::vector<Kind> kinds;
  std::array<std::array<Bytes, 2>, 2> outer;  ///< weights outside the layers: of stages that are the first, the last
  Bytes states;                               ///< of a sequence, of all layers
  double kernels = 0;                         ///< launched in a step, of all layers
  bool together = false;                      ///< several chips share a layer
};

/// The largest of so many draws of a standard normal variable, on average.
double expected_largest(double draws);

class StepPrices;

struct ServingProfile {
  struct Block {
    std::string_view name;
    int kind = -1;  ///< kind of its layers
    double layers = 1;
    bool last_tokens = false;           ///< the head: only the last token of each sequence
    double tokens = 1;                  ///< per sequence in one step
    double experts = 0, per_token = 0;  ///< mixtures of experts only: experts, and how many a token picks
    double copies = 1;                  ///< copies of all experts, each with its own tokens
    double ranks = 1;                   ///< devices that the experts are distributed over
    double largest = 0;                 ///< expected_largest(ranks)
    /// Share of the experts that get a token in a step of so many sequences.
    double touched(double sequences) const;
    /// Share of the experts that get a token on the device where most do, on average: each expert gets a token or not.
    double fullest(double sequences) const { return fullest_of(touched(sequences)); }
    /// That share of the fullest device, from the share of all experts that get a token.
    double fullest_of(double touched) const;
    /// "head", "layer", "layer of kind 2".
    std::string text() const;
    std::vector<ServedKernel> kernels;
    std::vector<ServedCollective> collectives;
  };
  using Blocks = std::vector<Block>;
  /// What a group of replicas that share experts runs, for sequences of that group. Shared by copies of the profile.
  std::shared_ptr<const Blocks> blocks = {};
  double groups = 1;        ///< such groups: each takes an equal part of the sequences
  double queries = 1;       ///< new tokens per sequence in one step
  bool prompts = false;     ///< a prefill: lengths differ, so it is never replayed from a captured graph
  double unit = 1;          ///< smallest batch that gives every device a whole sequence
  double uneven = 1;        ///< layers of the longest stage, over the mean
  Bytes weights;            ///< on one chip, of the fullest stage
  Bytes outer;              ///< the part of `weights` outside the layers: embedding, head and others
  Bytes cache;              ///< on one chip, per sequence over all replicas, for the reserved tokens
  Bytes cache_spread;       ///< standard deviation of `cache` from sequence to sequence
  double cache_groups = 1;  ///< parts of the batch whose caches are on different chips
  Bytes states;             ///< states of a fixed size, counted like `cache`
  Bytes widest;             ///< peak of activations, per sequence
  Bytes gathered;           ///< peak of weights gathered from other chips
  double kernels = 0;       ///< launched on one chip in a step
  bool together = false;    ///< several chips form one server
  Bytes boundary;           ///< sent between stages, per sequence
  /// What the numbers above are summed from that depend on the stages.
  std::shared_ptr<const StageParts> parts = {};
  /// Only set where the profile is explained. Shared by copies of the profile, which never change it.
  std::shared_ptr<const ProfileOrigin> origin = {};
  /// Only where many batches are priced with one setup: see remember_prices(). Shared by copies of the profile.
  std::shared_ptr<StepPrices> prices = {};

  /// The batch at which every group holds as many caches as the fullest one.
  double held(double batch) const { return cache_groups * std::ceil(batch / cache_groups); }
};

/// The links of a strategy's axes; an error where they do not fit on the cluster.
Result<training::StageLinks> serving_links(const ServingSetup& setup, const ServingStrategy& strategy,
                                           const hardware::Cluster& cluster);

/// The links of serving_links(), with their derivation.
training::DerivedLinks derived_links(const Traced& num, const ServingSetup& setup, const ServingStrategy& strategy,
                                     const hardware::Cluster& cluster);

/// How many of `tensor` devices of a tensor-parallel group hold the same keys if each holds whole heads; 1 where none
/// or all of them do.
std::int64_t key_copies(const model::Transformer& model, std::int64_t tensor);

/// The stages with most weights and with most caches.
struct FullestStages {
  std::size_t weights = 0, caches = 0;
};
/// Splits the layers over so many stages: sets what depends on them, for one group of replicas.
FullestStages set_stages(const clock::StageSplit& split, std::int64_t stages, ServingProfile& profile);
/// The strategy whose profile serves all that differ from it in stages and replicas alone.
ServingStrategy one_group(ServingStrategy strategy);
/// The profile of a strategy from that of one_group().
ServingProfile profile_of_groups(const ServingSetup& setup, const ServingProfile& group,
                                 const ServingStrategy& strategy);

/// Smallest batch that gives every device a whole sequence, however batches are split.
std::int64_t serving_unit(const ServingStrategy& strategy);
/// Sequences of one step of a batch, counting every replica as the fullest: none is split between replicas.
double step_sequences(const ServingStrategy& strategy, double batch);
/// Sequences per device at which expert slots are whole numbers.
std::int64_t whole_slots(const model::Transformer& model);

/// Contexts of the sequences of a batch, and the tokens that memory is reserved for. Each entry stands for an equal
/// share of the sequences; entries of `seen` for `shares`, if given.
struct ServingKeys {
  std::vector<std::int64_t> seen, reserved;
  /// Encoder-decoders only: how many of those tokens are the encoder's. 0: both have all of them.
  std::int64_t source = 0;
  std::vector<double> shares = {};  ///< weights of the entries of `seen`, in any unit; empty: equal
};

/// A profile for steps of `queries` new tokens of each sequence.
ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    const ServingKeys& keys);
/// The profile for equal sequences; memory is reserved for `cache_keys` tokens (0: for `keys`).
ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys, std::int64_t cache_keys = 0);
/// The prefill of a prompt with `fresh` tokens that are not cached. An encoder reads the prompt, and the decoder makes
/// its first step: keys and values of the prompt are projected once.
ServingProfile make_prompt_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t fresh,
                                   std::int64_t prompt);

/// Gives all products tables of tiles: worth it if one profile prices many batches. No time changes.
void find_tiles(const ServingSetup& setup, kernel::TileTables& tables, ServingProfile& profile);

struct ServingTime {
  Seconds lower;      ///< the maximum of arithmetic, memory traffic and network at ideal rates
  Seconds rooflines;  ///< every kernel at its own roofline, one after the other, without the network
  Seconds estimate, upper;
  Seconds compute, memory, network;  ///< at ideal rates
  Seconds padding;                   ///< arithmetic at the peak on rows that only fill blocks of experts
  Flops flops;                       ///< on one chip
  Flops attention_flops;             ///< on one chip; over the bytes, the intensity of attention
  Bytes attention_bytes;
  double kernels = 0;  ///< launched on one chip, including collectives

  /// Adds `times` another one.
  void add(const ServingTime& other, double times) {
    lower += times * other.lower;
    rooflines += times * other.rooflines;
    estimate += times * other.estimate;
    upper += times * other.upper;
    compute += times * other.compute;
    memory += times * other.memory;
    network += times * other.network;
    padding += times * other.padding;
    flops += times * other.flops;
    attention_flops += times * other.attention_flops;
    attention_bytes += times * other.attention_bytes;
    kernels += times * other.kernels;
  }
  ServingTime& operator+=(const ServingTime& other) { return add(other, 1.0), *this; }
};
/// One step of `batch` sequences of all replicas together.
ServingTime serving_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                         const training::StageLinks& links, double batch);

/// The estimate of serving_time(), with its derivation.
NumberOf<Traced, Seconds> derive_serving_time(const Traced& num, const ServingSetup& setup,
                                              const ServingStrategy& strategy, const ServingProfile& profile,
                                              const training::DerivedLinks& links, double batch);

/// A kernel or collective of a step, as serving_time() prices it.
struct PricedStep {
  std::string block;
  double layers = 1, count = 1;  ///< layers of the block, and how often each of them does it
  std::string what;
  training::RoleSet over = 0;        ///< collectives only: the axes it runs over
  Flops flops;                       ///< on one chip
  Bytes bytes;                       ///< on one chip; the whole array of a collective
  Seconds compute, memory, network;  ///< at ideal rates
  Seconds time;                      ///< estimated
  program::Op op = program::Op::collective;
};
/// All kernels and collectives of a step in the order of the program. Each adds layers x count x time to the estimate.
std::vector<PricedStep> list_serving_step(const ServingSetup& setup, const ServingStrategy& strategy,
                                          const ServingProfile& profile, const training::StageLinks& links,
                                          double batch);

/// A step with a next token after every query, not only the last: verifying drafted tokens.
ServingTime verify_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                        const training::StageLinks& links, double batch);

/// A decode step of `batch` sequences that also prefills on every replica: prompts, or a piece of one.
struct MixedStep {
  const ServingProfile& decode;
  const ServingProfile& prompt;  ///< attention of the prompt or piece, with a query for each of its tokens
  double batch = 1;
  double prompts = 1;  ///< prompts or pieces on each replica
  double ended = 1;    ///< how many of the prompts end in the step, and need the head
};
/// Matrix products, norms and collectives see the tokens of both together, so weights are read once.
ServingTime mixed_time(const ServingSetup& setup, const ServingStrategy& strategy, const training::StageLinks& links,
                       const MixedStep& step);
/// The estimate of the step, with its derivation.
NumberOf<Traced, Seconds> derive_mixed_time(const Traced& num, const ServingSetup& setup,
                                            const ServingStrategy& strategy, const training::DerivedLinks& links,
                                            const MixedStep& step);

}  // namespace assay::serving
