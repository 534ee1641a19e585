// Speculative decoding: a small model drafts tokens one at a time, the large one checks all of them in a single step.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/predict/search/serving/search.h"

namespace assay::search {

/// Tokens that a loop yields on average when each of `length` drafted tokens is right with probability `acceptance`
/// given that those before it were: 1 + a + ... + a^length = (1 - a^(length+1)) / (1 - a). The last one is the large
/// model's own. Leviathan et al., Fast inference from transformers via speculative decoding, eq. 1.
double expected_tokens(double acceptance, std::int64_t length);

struct SpeculativeLoop {
  std::int64_t length = 0;  ///< drafted tokens
  Seconds draft_step, verify_step;
  Seconds loop;       ///< time of the whole loop
  double tokens = 1;  ///< expected tokens of a loop
  Seconds per_token() const { return loop / tokens; }
};

/// What drafts: a model of its own, or a module of the large one that shares its embedding and head.
struct Draft {
  model::Transformer model;
  bool shares_outer = false;
};

struct Speculation {
  serving::ServingStrategy draft_strategy;
  Bytes draft_memory;                  ///< on one chip: weights and cache of the draft
  double max_batch = 0;                ///< sequences that fit in the remaining memory
  std::vector<SpeculativeLoop> loops;  ///< in order of length
  std::size_t best = 0;                ///< index into `loops` of the least time per token
};

/// One more layer of the model itself behind a projection of its last state and the next token's embedding, 2 d to d,
/// with the model's own embedding and head: multi-token prediction. DeepSeek-V3 technical report, section 2.2.
Draft prediction_module(const model::Transformer& model);

/// The most sequences that fit together with the weights and caches of the draft; 0: none.
Result<double> batch_beside_draft(const serving::ServingQuestion& question, const Draft& draft,
                                  const hardware::Cluster& cluster, const serving::ServingStrategy& strategy);

/// Which loops to look at.
struct LoopChoices {
  double batch = 1;
  double acceptance = 0;              ///< probability that a drafted token is right
  std::vector<std::int64_t> lengths;  ///< drafted tokens
  double step_scale = 1.0;            ///< factor on the estimate of the model's steps
};

/// Speculative loops of a strategy. The draft runs on the same chips: as many ways of tensor parallelism as its heads
/// allow, the rest as replicas; a module runs as the model itself. The host schedules once per loop.
Result<Speculation> speculate(const serving::ServingQuestion& question, const Draft& draft,
                              const hardware::Cluster& cluster, const serving::ServingStrategy& strategy,
                              const LoopChoices& choices);

}  // namespace assay::search
