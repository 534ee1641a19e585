// Training of a model on one GPU, step by step: the same program as on virtual devices, at real sizes and in the
// formats that it states.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/execute/cuda/task_list.h"
#include "assay/execute/program/training_session.h"

namespace assay::execute {

class CudaSession {
 public:
  /// The weights are drawn on the GPU, as initial_weights() draws them.
  static Result<CudaSession> open(const AssayCuda& engine, TaskList list, const AdamW& adam);

  /// A step and the seconds between its first and its last kernel.
  struct Timed {
    TrainedStep step;
    double seconds = 0;
  };
  Result<Timed> step(const Array<double>& tokens, const Array<double>& targets);

  /// Replaces weights; those that are not given stay.
  Result<void> set_weights(const NamedArrays& weights);
  Result<NamedArrays> weights() const;

  /// "NVIDIA H200"
  std::string device() const { return engine_->device(session_.get()); }
  /// Of the GPU's memory that arrays take.
  Bytes memory() const { return Bytes(static_cast<double>(list_.bytes)); }
  /// Seconds of each step of the program since the clocks were last reset.
  std::vector<StepClock> clocks() const;
  void reset_clocks();

 private:
  using Owned = std::unique_ptr<void, void (*)(void*)>;
  CudaSession(const AssayCuda& engine, TaskList list, Owned session)
      : engine_(&engine), list_(std::move(list)), session_(std::move(session)) {
    reset_clocks();
  }

  const AssayCuda* engine_;
  TaskList list_;
  Owned session_;
  std::vector<double> seconds_;  ///< by step of the program
  std::int64_t timed_ = 0;       ///< optimizer steps in them
};

}  // namespace assay::execute
