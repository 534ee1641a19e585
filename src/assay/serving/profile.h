// The time and memory of serving: one prefill or one decode step of a strategy at any batch.
// A step's work grows with the batch in straight lines, so a program is lowered twice and every batch follows; nothing
// here allocates once a profile is made.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/estimate/serving_effects.h"
#include "assay/lower/lowering.h"
#include "assay/serving/batch_linear_kernel.h"
#include "assay/training/step.h"

namespace assay::serving {

struct ServingSetup {
  const model::Transformer* model = nullptr;
  estimate::KernelRates rates;
  lower::Formats formats;    ///< weights, products, activations, cache
  double expert_load = 1.0;  ///< tokens of the busiest experts over an even share: routing skew
  training::Dispatch dispatch = training::Dispatch::per_node;
  std::optional<hardware::CollectiveCalibration>
      collectives;                   ///< measured; otherwise ideal links at the chip's efficiency
  estimate::ServingEffects effects;  ///< of the estimate only
};

/// How one model server is split over chips; `data` replicas of it share the load.
struct ServingStrategy {
  std::int64_t tensor = 1;
  std::int64_t second = 1;  ///< ways that weights are split in their other direction (2D) or gathered over
  std::int64_t pipeline = 1, expert = 1, data = 1;
  lower::ExpertAxes expert_over{};
  lower::ServingScheme scheme;
  network::AxisLayout layout{};

  /// Devices that hold the experts are a part of the data axis, or tensor-parallel, or both.
  std::int64_t chips() const { return tensor * second * pipeline * data; }
  lower::Parallelism parallelism() const;
  friend bool operator==(const ServingStrategy& a, const ServingStrategy& b) {
    return a.tensor == b.tensor && a.second == b.second && a.pipeline == b.pipeline && a.expert == b.expert &&
           a.expert_over == b.expert_over && a.data == b.data && a.scheme == b.scheme && a.layout == b.layout;
  }
};

struct ServedCollective {
  network::CollectiveKind kind = network::CollectiveKind::all_reduce;
  training::RoleSet over = 0;
  double count = 1;  ///< collectives of a block that are like this one
  StraightLine bytes;
};

struct ServingProfile {
  struct Block {
    double layers = 1;
    bool last_tokens = false;           ///< the head: works on the last token of each sequence alone
    double tokens = 1;                  ///< of a sequence that pass it in one step
    double experts = 0, per_token = 0;  ///< of a mixture: experts, and how many a token picks
    double copies = 1;                  ///< of all experts, each with tokens of its own
    /// Share of the experts that a step of so many sequences reaches.
    double touched(double sequences) const;
    std::vector<ServedKernel> kernels;
    std::vector<ServedCollective> collectives;
  };
  std::vector<Block> blocks;
  double queries = 1;       ///< tokens of a sequence in one step
  bool prompts = false;     ///< a pass over prompts: no two are alike, and none is replayed from a graph
  double unit = 1;          ///< sequences that all devices together work on at least
  double uneven = 1;        ///< layers of the longest stage over the mean
  double weight_bytes = 0;  ///< on one chip, of the fullest stage
  double outer_bytes = 0;   ///< of them: embedding, head, and what else is outside of the layers
  double cache_bytes = 0;   ///< on one chip, per sequence of all replicas, at the tokens that are reserved
  double cache_spread = 0;  ///< its standard deviation from sequence to sequence
  double cache_groups = 1;  ///< parts of the batch whose caches lie on different chips
  double state_bytes = 0;   ///< the same, of states that do not grow
  double widest = 0;        ///< bytes of activations at the fullest moment, per sequence
  double gathered = 0;      ///< bytes of weights of other chips that are here at the same time
  double kernels = 0;       ///< that one chip starts in a step
  bool together = false;    ///< several chips make one server
  double boundary = 0;      ///< bytes handed from stage to stage, per sequence

  /// Sequences whose caches would fill every chip as the fullest one is: a cache lies in one group.
  double held(double batch) const { return cache_groups * std::ceil(batch / cache_groups); }
};

/// The links of a strategy's axes; an error where they do not fit on the cluster.
Result<training::StageLinks> serving_links(const ServingSetup& setup, const ServingStrategy& strategy,
                                           const hardware::Cluster& cluster);

/// Sequences that all devices together work on at least: a whole number on each, however batches are split.
std::int64_t serving_unit(const ServingStrategy& strategy);
/// Sequences of one step of a batch, as if every replica had as many as the fullest: none is split between replicas.
double step_sequences(const ServingStrategy& strategy, double batch);
/// Sequences of each device at which slots of experts come out whole.
std::int64_t whole_slots(const model::Transformer& model);

/// What sequences of one batch look back at, and what memory is held for: each entry is an equal share of them, or of
/// those seen the share that is given.
struct ServingKeys {
  std::vector<std::int64_t> seen, reserved;
  /// Of an encoder-decoder: of those tokens, as many are the encoder's and the others the decoder's. 0: each has all.
  std::int64_t source = 0;
  std::vector<double> shares = {};  ///< of each of `seen`, in any unit; none: equal ones
};

/// A profile for steps of `queries` new tokens of each sequence.
ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    const ServingKeys& keys);
/// The same for sequences that are alike; memory is counted at `cache_keys` (0: at `keys`).
ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys, std::int64_t cache_keys = 0);
/// The pass over a prompt of which `fresh` tokens are not in the cache. Where there is an encoder it reads the prompt,
/// and the decoder makes its first step: keys and values of the prompt are projected once.
ServingProfile make_prompt_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t fresh,
                                   std::int64_t prompt);

/// Finds the tiles of all products for steps of up to `sequences` ahead: worth it where one profile is asked for the
/// time of many batches. No time changes.
void find_tiles(const ServingSetup& setup, ServingProfile& profile, double sequences);

struct ServingTime {
  double lower = 0;      ///< the largest of arithmetic, memory traffic and network at ideal rates
  double rooflines = 0;  ///< every kernel at its own roofline, one after the other, without the network
  double estimate = 0, upper = 0;
  double compute = 0, memory = 0, network = 0;      ///< ideal seconds
  double flops = 0;                                 ///< on one chip
  double attention_flops = 0, attention_bytes = 0;  ///< on one chip: its ratio is the intensity of attention
  double kernels = 0;                               ///< started on one chip, collectives among them
};
/// One step of `batch` sequences of all replicas together.
ServingTime serving_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                         const training::StageLinks& links, double batch);

/// The same with a next token after every query, not only after the last one: checking drafted tokens.
ServingTime verify_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                        const training::StageLinks& links, double batch);

/// A decode step of `batch` sequences that also prefills a chunk of a prompt on every replica.
struct MixedStep {
  const ServingProfile& decode;
  const ServingProfile& chunk;  ///< of one sequence with as many queries as the chunk has tokens
  double batch = 1;
  double chunks = 1;  ///< per prompt: the last one needs the head
};
/// Matrix products, norms and collectives see the tokens of both together, so weights are read once.
ServingTime mixed_time(const ServingSetup& setup, const ServingStrategy& strategy, const training::StageLinks& links,
                       const MixedStep& step);

}  // namespace assay::serving
