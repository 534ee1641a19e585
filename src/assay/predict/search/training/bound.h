// Bounds for the search of training strategies: lower bounds on step times, from a part of the work.
#pragma once
#include <vector>

#include "assay/predict/search/training/stage_orders.h"
#include "assay/predict/training/step.h"

namespace assay::search {

/// Exposed times of a layer of each kind, of the embedding and of the head.
struct LeastTimes {
  struct Share {
    training::StagePasses passes;     ///< passes of a microbatch
    Seconds both;                     ///< sum of both passes, under any schedule
    Seconds reduce;                   ///< reduction of gradients, once a step
    Seconds behind, behind_deferred;  ///< backward time that overlaps the reduction; with deferred weight gradients
    void add(const Share& other, double times);
  };
  std::vector<Share> kinds;
  Share embedding, head;
  Share all;  ///< times of the whole model
};

/// Times of weight and gradient traffic that overlaps with compute. Small: a search keeps very many.
class WeightsTimes {
 public:
  struct Share {
    Seconds forward, backward;  ///< weight traffic of a microbatch
    Seconds forward_copies, backward_copies;
    Seconds reduce;  ///< gradients, once a step
  };
  bool is_known() const { return !shares_.empty(); }
  const Share& kind(std::size_t k) const { return shares_[k + 2]; }
  const Share& embedding() const { return shares_[0]; }
  const Share& head() const { return shares_[1]; }

  /// Takes the lower of each number; takes `other` as it is where nothing is known yet.
  void lower_to(const WeightsTimes& other);

 private:
  friend class TrainingBound;
  std::vector<Share> shares_;
};

/// Times of a pipeline's stages, by part of a split.
struct StageSums {
  struct Part {
    Seconds a_microbatch;  ///< both passes
    Seconds at_end;        ///< once a step
  };
  std::vector<Part> parts;
  std::size_t slowest = 0;  ///< index of the slowest part
  Seconds step;             ///< step time on the slowest part
};

/// Bounds of all strategies of a question, which it refers to.
class TrainingBound {
 public:
  explicit TrainingBound(const training::TrainingQuestion& question);

  /// Least times from the passes of a MicrobatchCost, with or without traffic of weights.
  void fill(const training::MicrobatchCost& passes, LeastTimes& least) const;
  /// Least times of a microbatch with `share` of the sequences of another, a whole part of them, under any policy that
  /// computes no less: kernels that multiply reach the peak at best, others take no longer for each byte of more, and
  /// traffic is in proportion, hidden by as much as hides that of the other. Reuses the memory of `passes`.
  void fill_share(const training::StepInputs& whole, double share, training::MicrobatchCost& passes,
                  LeastTimes& least) const;
  /// Adds traffic of weights to passes without it, as if no other traffic used its links.
  void add_weights(const WeightsTimes& weights, LeastTimes& least) const;
  WeightsTimes weights_times(const training::TrainingProfile& traffic, const training::StageLinks& links) const;

  /// Lower bounds on the time of each kind of stage for `m` microbatches under any schedule; reuses the memory of
  /// `sums`.
  void add_stages(const LeastTimes& least, double m, const clock::StageSplit& split, Seconds hop,
                  StageSums& sums) const;
  /// The stages of a pipeline under one schedule.
  struct Stages {
    const LeastTimes& least;
    const StageSums& sums;
    const clock::PipelineShape& shape;
    const clock::StageSplit& split;
    const OrderLayers& layers;
    Seconds hop;  ///< from stage to stage
  };
  /// A step under a schedule in which stages wait for each other: the longest of its slowest stage and of
  /// the paths that stay on it or on the last stage. `enough` ends the search for longer ones.
  Seconds least_step(const Stages& stages, Seconds enough) const;

  /// The slowest stage of one strategy, with all that a stage does once a step.
  Seconds slowest_stage(const training::MicrobatchCost& steady) const;

  /// The step time that follows from this work, with stragglers and the fixed cost of a step. Rounded down: sums in
  /// another order differ in their last bits.
  Seconds step(Seconds work) const;

 private:
  Seconds path_through(const Stages& stages, std::size_t through) const;
  /// A step in which all parts are as short as the shortest one: no longer than the actual step.
  Seconds shortest_parts(const LeastTimes& least, const StageSums& sums, const clock::PipelineShape& shape,
                         const OrderLayers& layers) const;
  void add_up(LeastTimes& least) const;
  Seconds waited_at_end(Seconds reduce, Seconds behind) const;

  const training::TrainingQuestion& question_;
  double stragglers_;
  clock::StageSplit whole_;  ///< the model on one stage
};

/// Lower bound on the memory of the fullest stage: every schedule holds one microbatch.
Bytes least_memory(const training::MicrobatchCost& steady);

}  // namespace assay::search
