// A training run as it is asked for: model, text, strategy and the program that all devices run.
#pragma once
#include "assay/ask/verbs/run/model.h"
#include "assay/engine/cuda/cuda_session.h"
#include "assay/engine/program/training_session.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/collective/core_turns.h"
#include "assay/predict/training/step.h"

namespace assay::verbs::run {

/// What all strategies of a request have in common.
struct TrainingTask {
  RunText text;
  model::ImportedModel imported;
  std::int64_t sequences = 0, length = 0, steps = 0;
  std::uint64_t seed = 0;
  engine::AdamW adam;
  std::vector<std::string> notes;
};
Result<TrainingTask> read_task(const Request& request, const Context& context);

/// A strategy with its program.
struct TrainingJob {
  training::Strategy strategy;
  training::TrainingQuestion question;  ///< its setup points at the task's model
  clock::PipelineShape pipeline;
  program::Program program;
  engine::TaskList tasks;  ///< of a GPU

  std::int64_t devices() const { return strategy.parallelism.devices(); }
};
/// Virtual devices compute in fp64; a GPU in the formats that `assay train` predicts.
enum class Numerics { exact, mixed };
/// The strategy of a request's options; an error where it cannot run.
Result<TrainingJob> make_job(const Request& request, const TrainingTask& task, Numerics numerics = Numerics::exact);
/// The same request on one device.
Request on_one_device(const Request& request);
/// The strategies of --compare: "tp=2; fsdp=2 zero=1" are the options --tp 2, and --fsdp 2 --zero 1.
Result<std::vector<Request>> compared_requests(const Request& request);

/// Where the time of a rank went, over all steps.
struct RankTime {
  Seconds computing, moving;
  Seconds waiting;  ///< for the other members of collectives
  Seconds behind;   ///< for collectives that travel beside steps, and were not done yet
  Seconds stages;   ///< for other stages, with what they send
};

/// An executed strategy.
struct TrainedJob {
  std::vector<engine::TrainedStep> steps;
  std::vector<Seconds> times;  ///< by step
  engine::RunFacts facts;
  std::vector<engine::StepClock> clocks;
  engine::TrainingSession::Hidden hidden;
  std::int64_t timed_steps = 0;      ///< in `clocks`
  std::vector<RankTime> ranks;       ///< where all ranks are on one machine, and have one clock
  engine::RankActivities last_step;  ///< the same: what they did in it
  engine::LocalRank local{0, 0, 0};  ///< of this machine's ranks; none: all devices are in this process
  std::string device;                ///< of a GPU: "NVIDIA H200"
  std::string network;               ///< between GPUs: "NCCL 2.28.3"
  Bytes memory;                      ///< of a GPU, in use

  /// Of ranks on the cores of this machine.
  double turns() const {
    return collective::core_turns(static_cast<double>(local.count), static_cast<double>(local.cores));
  }
};
/// Runs all steps, starting from `weights`; the last weights are written to `trained` where it is given.
TrainedJob run_job(const TrainingTask& task, const TrainingJob& job, const engine::NamedArrays& weights,
                   engine::Transport* transport, engine::NamedArrays* trained = nullptr,
                   engine::Overlap overlap = engine::Overlap::hidden);

/// The GPU of this process and, with a transport, those of others.
struct GpuRun {
  const AssayCuda& engine;
  engine::Transport* transport = nullptr;
};
/// The same on GPUs. No weights: they are drawn there, as initial_weights() draws them.
Result<TrainedJob> run_job_on_gpu(const TrainingTask& task, const TrainingJob& job, const GpuRun& on,
                                  const engine::NamedArrays& weights, engine::NamedArrays* trained = nullptr);

}  // namespace assay::verbs::run
