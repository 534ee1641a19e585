// All operations of a pipeline step in one order, made once for a shape: times are put in afterwards, since none of
// them changes an order.
#pragma once
#include <cstdint>
#include <vector>

#include "assay/pipeline/simulation.h"

namespace assay::pipeline {

struct PipelineOperation;

/// Every operation comes behind the one before it on its stage and behind the one whose result it needs. Both halves of
/// a dualpipe pair are three: one that waits for the input of the first, the pair, and the send of the second result.
struct EventOrder {
  struct Operation {
    std::uint32_t after = 0;     ///< the operation whose result it needs; 0: none
    std::uint32_t stage = 0;     ///< that it runs on
    std::uint32_t duration = 0;  ///< a number of EventTimes
    bool is_far = false;         ///< what it needs comes from another stage
    bool is_back = false;        ///< its result is the gradient of an input
  };
  PipelineShape shape;
  std::vector<Operation> operations;  ///< from 1 on
};

EventOrder event_order(const PipelineShape& shape);

/// Seconds that operations take: first the work, then a send for which the stage does not compute.
class EventTimes {
 public:
  struct Duration {
    double work = 0, send = 0;
  };
  const Duration& operator[](std::size_t number) const { return durations_[number]; }
  /// What an operation takes if it runs alone.
  double work_of(const PipelineShape& shape, std::size_t stage, const PipelineOperation& operation) const;
  /// Times of a right input, in the memory of those before.
  void fill(const PipelineInput& input);

 private:
  std::vector<Duration> durations_;
};

}  // namespace assay::pipeline
