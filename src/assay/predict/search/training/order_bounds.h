// Lower bounds on a step for many orders of a mesh's stages at once.
#pragma once
#include <bit>

#include "assay/predict/search/training/work.h"

namespace assay::search {

/// Some orders of a mesh's stages, and what is known of a step under any of them.
struct OrdersToBound {
  const LeastTimes& least;
  const training::Strategy& strategy;
  const WorkMesh& mesh;
  training::HopTime hop;
  std::uint64_t orders;   ///< one bit for each order
  const Seconds& enough;  ///< steps this long need no closer look; may fall meanwhile
};

/// Refers to the question and its bounds.
class OrderBounds {
 public:
  OrderBounds(const training::TrainingQuestion& question, const TrainingBound& bound)
      : question_(question), bound_(bound) {}

  /// Calls `visit` with orders and a lower bound on any step under them, until it returns false. Orders
  /// whose slowest stage alone takes `enough` are passed together.
  template <class F>
  void each(const OrdersToBound& of, F&& visit) {
    const double m = training::microbatches(question_, of.strategy);
    const std::int64_t stages = of.strategy.parallelism.pipeline;
    // The slowest stage is no faster than the mean of all.
    if (const Seconds least = bound_.step(m * of.least.all.both / static_cast<double>(stages)); least >= of.enough) {
      visit(of.orders, least);
      return;
    }
    for (const AlikeOrders& alike : of.mesh.layers->alike) {
      std::uint64_t rest = alike.orders & of.orders;
      if (rest == 0) continue;
      bound_.add_stages(of.least, m, alike.split, of.hop.overlapped, sums_);
      if (const Seconds least = bound_.step(sums_.step); stages == 1 || least >= of.enough) {
        if (!visit(rest, least)) return;
        continue;
      }
      for (; rest != 0; rest &= rest - 1) {
        const auto o = static_cast<std::size_t>(std::countr_zero(rest));
        const StageOrder& order = of.mesh.orders[o];
        const clock::PipelineShape shape{order.schedule, stages, static_cast<std::int64_t>(m), order.interleave};
        const Seconds hop = of.hop.under(order.schedule);
        const TrainingBound::Stages bounded{of.least, sums_, shape, alike.split, of.mesh.layers->each[o], hop};
        if (!visit(rest & ~(rest - 1), bound_.least_step(bounded, of.enough))) return;
      }
    }
  }

 private:
  const training::TrainingQuestion& question_;
  const TrainingBound& bound_;
  StageSums sums_;
};

}  // namespace assay::search
