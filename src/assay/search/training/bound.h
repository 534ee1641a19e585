// Bounds for the search of training strategies: lower bounds on step times, from a part of the work.
#pragma once
#include <vector>

#include "assay/search/training/stage_orders.h"
#include "assay/training/step.h"

namespace assay::search {

/// Exposed times of a layer of each kind, of the embedding and of the head.
struct LeastTimes {
  struct Share {
    training::StagePasses passes;  ///< of a microbatch
    double seconds = 0;            ///< of both passes, under any schedule
    double reduce = 0;             ///< seconds of gradients once a step
    double behind = 0,
           behind_deferred = 0;  ///< of the backward pass that overlaps them; with deferred weight gradients
    void add(const Share& other, double times);
  };
  std::vector<Share> kinds;
  Share embedding, head;
  Share all;  ///< of the whole model
};

/// Seconds of weight and gradient traffic that overlaps with compute. Small: a search keeps very many.
class WeightsTimes {
 public:
  struct Share {
    double forward = 0, backward = 0;  ///< of a microbatch
    double forward_copies = 0, backward_copies = 0;
    double reduce = 0;  ///< once a step
  };
  bool is_known() const { return !shares_.empty(); }
  const Share& kind(std::size_t k) const { return shares_[k + 2]; }
  const Share& embedding() const { return shares_[0]; }
  const Share& head() const { return shares_[1]; }

  /// Takes the lower of each number; all of them where nothing is known yet.
  void lower_to(const WeightsTimes& other);

 private:
  friend class TrainingBound;
  std::vector<Share> shares_;
};

/// Stages of a pipeline, by part of a split.
struct StageSums {
  struct Part {
    double a_microbatch = 0;  ///< seconds of both passes
    double at_end = 0;        ///< seconds once a step
  };
  std::vector<Part> parts;
  std::size_t slowest = 0;  ///< which of them
  double seconds = 0;       ///< of a step on it
};

/// Bounds of all strategies of a question, which it refers to.
class TrainingBound {
 public:
  explicit TrainingBound(const training::TrainingQuestion& question);

  /// From the passes of a MicrobatchCost, with or without traffic of weights.
  void fill(const training::MicrobatchCost& passes, LeastTimes& least) const;
  /// Adds traffic of weights to passes without it, as if it never met others on its links.
  void add_weights(const WeightsTimes& weights, LeastTimes& least) const;
  WeightsTimes weights_times(const training::TrainingProfile& traffic, const training::StageLinks& links) const;

  /// Lower bounds on the time of each kind of stage for `m` microbatches under any schedule; reuses the memory of
  /// `sums`.
  void add_stages(const LeastTimes& least, double m, const pipeline::StageSplit& split, double hop,
                  StageSums& sums) const;
  /// The stages of a pipeline under one schedule.
  struct Stages {
    const LeastTimes& least;
    const StageSums& sums;
    const pipeline::PipelineShape& shape;
    const pipeline::StageSplit& split;
    const OrderLayers& layers;
    double hop;  ///< seconds from stage to stage
  };
  /// Seconds of a step under a schedule in which stages wait for each other: the longest of its slowest stage and of
  /// the paths that stay on it or on the last stage. `enough` ends the search for longer ones.
  double least_step(const Stages& stages, double enough) const;

  /// Seconds of the slowest stage of one strategy, with all that a stage does once a step.
  double slowest_stage(const training::MicrobatchCost& steady) const;

  /// The step time that follows from these seconds, with stragglers and the fixed cost of a step. Rounded down: sums in
  /// another order differ in their last bits.
  double step(double seconds) const;

 private:
  double path_through(const Stages& stages, std::size_t through) const;
  /// A step in which all parts are as short as the shortest one: no longer than the actual step.
  double shortest_parts(const LeastTimes& least, const StageSums& sums, const pipeline::PipelineShape& shape,
                        const OrderLayers& layers) const;
  void add_up(LeastTimes& least) const;
  double waited_at_end(double reduce, double behind) const;

  const training::TrainingQuestion& question_;
  double stragglers_;
  pipeline::StageSplit whole_;  ///< the model on one stage
};

/// Lower bound on the bytes of the fullest stage: every schedule holds one microbatch.
double least_memory(const training::MicrobatchCost& steady);

}  // namespace assay::search
