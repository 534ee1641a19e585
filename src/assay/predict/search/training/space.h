// The space of training strategies: which values each choice may take for a model on a cluster, given what the user
// fixed.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/predict/search/training/plan_rules.h"
#include "assay/predict/training/step.h"

namespace assay::search {

/// Choices that the user fixed; the others are searched.
struct TrainingChoices {
  std::optional<std::int64_t> data, fsdp, tensor, pipeline, context, expert, micro_batch, interleave;
  std::optional<lower::ExpertAxes> expert_over;
  std::optional<int> zero;
  std::optional<clock::PipelineSchedule> schedule;
  std::optional<lower::Recompute> recompute;
  std::optional<lower::ResidualScheme> residual;
  std::optional<lower::ContextScheme> context_scheme;
  std::optional<collective::AxisLayout> layout;
  std::vector<training::Offload> offloads{training::Offload::none};  ///< the ways to try
  PlanRules rules;  ///< rules of the software, which all choices that are not fixed obey
};

/// Orders of the stages of a mesh that a search distinguishes, a bit each; enough for stages of 800 layers.
inline constexpr std::size_t most_orders = 64;

/// The order in which stages take their work.
struct StageOrder {
  clock::PipelineSchedule schedule = clock::PipelineSchedule::one_f_one_b;
  std::int64_t interleave = 1;
};

/// Sequences of the largest microbatch that a search tries: kernels of so many tokens are as good as they get.
std::int64_t largest_microbatch(std::int64_t sequence);

class TrainingSpace {
 public:
  TrainingSpace(const training::TrainingQuestion& question, std::int64_t sequence, const hardware::Cluster& cluster,
                const TrainingChoices& choices);

  /// Degrees that multiply to the chips and divide what they split, whether or not the batch divides.
  std::vector<lower::Parallelism> meshes() const;
  /// The error where there are none.
  tl::unexpected<Error> no_meshes() const;
  /// Sequences of one data-parallel group; 0 where the batch does not divide.
  std::int64_t per_group(const lower::Parallelism& p) const;

  std::vector<int> zeros(const lower::Parallelism& p) const;
  std::vector<lower::ResidualScheme> residuals(const lower::Parallelism& p) const;
  std::vector<lower::ContextScheme> context_schemes(const lower::Parallelism& p) const;
  std::vector<std::int64_t> micro_batches(std::int64_t per_group) const;
  /// Policies in an order in which none comes before one that recomputes a subset of what it recomputes.
  std::vector<lower::Recompute> policies() const;
  std::vector<StageOrder> orders(const lower::Parallelism& p) const;
  /// Distinct placements of the mesh on the cluster.
  std::vector<collective::AxisLayout> layouts(const lower::Parallelism& p) const;

 private:
  void split_data(std::int64_t tp, std::int64_t pp, std::int64_t cp, std::vector<lower::Parallelism>& out) const;
  void split_experts(lower::ExpertAxes over, const std::vector<std::int64_t>& parts, lower::Parallelism p,
                     std::vector<lower::Parallelism>& out) const;

  const training::TrainingQuestion& question_;
  const model::Transformer& model_;
  std::int64_t sequence_;
  const hardware::Cluster& cluster_;
  const TrainingChoices& choices_;
  std::int64_t heads_ = 0, width_ = 0, experts_ = 0;  ///< what must divide, over all kinds of layers; 0: nothing does
};

}  // namespace assay::search
