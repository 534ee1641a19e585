// All operations of a pipeline step in one order, computed once per shape: times are filled in later and never change
// the order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "assay/predict/clock/simulation.h"

namespace assay::clock {

struct PipelineOperation;

/// Every operation follows the previous one on its stage and the one whose result it needs. A dualpipe pair is three
/// operations: one that waits for the input of the first half, the pair, and the send of the second result.
struct EventOrder {
  struct Operation {
    std::uint32_t after = 0;     ///< the operation whose result it needs; 0: none
    std::uint32_t stage = 0;     ///< it runs on this stage
    std::uint32_t duration = 0;  ///< an index of EventTimes
    bool is_back = false;        ///< its result is the gradient of an input
  };
  PipelineShape shape;
  std::vector<Operation> operations;  ///< from 1 on
};

EventOrder event_order(const PipelineShape& shape);

/// Times of operations: first the work, then a send that blocks the stage.
class EventTimes {
 public:
  struct Duration {
    Seconds work, send;
  };
  const Duration& operator[](std::size_t number) const { return durations_[number]; }
  /// Work of an operation that is not paired.
  Seconds work_of(const PipelineShape& shape, std::size_t stage, const PipelineOperation& operation) const;
  /// Fills in the times of a valid input, reusing memory.
  void fill(const PipelineInput& input);

 private:
  std::vector<Duration> durations_;
};

/// When operations end, by number, and how long each stage is occupied. The memory is used again by the next run.
struct EventEnds {
  std::vector<Seconds> done;         ///< by operation
  std::vector<Seconds> first, free;  ///< by stage: when its first operation starts, and its last one ends
};

/// The clock of a pipeline: each operation starts once its stage is free and its input is there. Calls
/// sink(number, start) for each, in order, before its end is known.
template <class Sink>
void run(const EventOrder& order, const EventTimes& times, EventEnds& ends, Sink&& sink) {
  constexpr Seconds not_begun(-1.0);
  const auto stages = static_cast<std::size_t>(order.shape.stages);
  ends.done.resize(std::max(ends.done.size(), order.operations.size()));
  ends.free.assign(stages, Seconds());
  ends.first.assign(stages, not_begun);
  ends.done[0] = Seconds();
  for (std::size_t i = 1; i < order.operations.size(); ++i) {
    const EventOrder::Operation& operation = order.operations[i];
    const EventTimes::Duration& taken = times[operation.duration];
    Seconds& free = ends.free[operation.stage];
    const Seconds start = std::max(free, ends.done[operation.after]);
    if (ends.first[operation.stage] == not_begun) ends.first[operation.stage] = start;
    sink(i, start);
    ends.done[i] = free = start + taken.work + taken.send;
  }
}

/// What an operation does: the work of a part of the model, and whether its result leaves the stage.
struct OperationWork {
  static constexpr std::size_t none = ~std::size_t{0};
  std::size_t part = none;  ///< in the order of the model; none: it only waits or sends
  PipelineWork work = PipelineWork::forward;
  bool is_sent = false;
  std::size_t mate = none;  ///< pairs only: the part whose backward pass runs at the same time
};
OperationWork work_of(const PipelineShape& shape, std::uint32_t duration);

}  // namespace assay::clock
