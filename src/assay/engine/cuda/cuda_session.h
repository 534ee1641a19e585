// Training of a model on GPUs, one for each process, step by step: the same program as on virtual devices, at real
// sizes and in the formats that it states.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/engine/cuda/connection.h"
#include "assay/engine/cuda/task_list.h"
#include "assay/engine/program/training_session.h"

namespace assay::engine {

class CudaSession {
 public:
  /// The weights are drawn on the GPU, as initial_weights() draws them. With a transport the other devices are in its
  /// other processes.
  static Result<CudaSession> open(const AssayCuda& engine, TaskList list, const AdamW& adam,
                                  Transport* transport = nullptr);

  /// A step and the time between its first and its last kernel.
  struct Timed {
    TrainedStep step;
    Seconds time;
  };
  Result<Timed> step(const Array& tokens, const Array& targets);

  /// Replaces weights; those that are not given stay.
  Result<void> set_weights(const NamedArrays& weights);
  /// Of one device, which has all of them.
  Result<NamedArrays> weights() const;

  /// "NVIDIA H200"
  std::string device() const { return engine_->device(session_.get()); }
  /// What carries collectives: "NCCL 2.28.3"; empty: there are none.
  std::string network() const { return engine_->network(session_.get()); }
  /// Of the GPU's memory that arrays take.
  Bytes memory() const { return Bytes(static_cast<double>(list_.bytes)); }
  /// Seconds of each step of the program since the clocks were last reset.
  std::vector<StepClock> clocks() const;
  void reset_clocks();

 private:
  using Owned = std::unique_ptr<void, void (*)(void*)>;
  CudaSession(const AssayCuda& engine, TaskList list, Transport* transport)
      : engine_(&engine), list_(std::move(list)), transport_(transport), session_(nullptr, engine.close) {
    reset_clocks();
  }
  /// This device's part of the tokens of a step.
  std::vector<int> own_part(const Array& tokens) const;

  const AssayCuda* engine_;
  TaskList list_;
  Transport* transport_;
  std::unique_ptr<Connection> connection_;  ///< nothing: one process
  Owned session_;
  std::vector<double> seconds_;  ///< by step of the program
  std::int64_t timed_ = 0;       ///< optimizer steps in them
};

}  // namespace assay::engine
