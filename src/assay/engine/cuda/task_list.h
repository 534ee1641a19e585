// The program of one device as a list of kernels over planned memory: what libassay-cuda.so runs.
#pragma once
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/cuda/movement_task.h"
#include "assay/engine/program/adam.h"
#include "assay/engine/program/run_program.h"
#include "assay/predict/clock/simulation.h"

namespace assay::engine {

/// A weight of the model with its arrays, and which part of it each of them has.
struct TaskWeight {
  std::string name;
  Shape shape;                   ///< of the whole
  int weight = -1, master = -1;  ///< no master copy: another stage trains it
  std::vector<Extent> weight_at, master_at;

  bool is_shared_out() const;  ///< whether the master copy has less of it than the weight
};
/// The part of an array that a device has.
std::vector<float> part_of_array(const Array& whole, const std::vector<Extent>& at);
/// How the part of a weight starts that a device has.
AssayCudaStart cuda_start(int master, int weight, const WeightStart& start, const std::vector<Extent>& at);

struct TaskList {
  std::vector<AssayCudaArray> arrays;
  std::vector<AssayCudaTask> tasks;  ///< of one optimizer step, all microbatches
  std::vector<AssayCudaStart> starts;
  std::vector<TaskWeight> weights;
  std::vector<std::int64_t> runs;  ///< by step of the program: how often it runs in an optimizer step
  std::int64_t bytes = 0;
  int tokens = -1, targets = -1;
  std::vector<Extent> tokens_at;  ///< sequences of a microbatch that this device has, and tokens of each
  bool counts_loss = true;        ///< whether no other device has the same tokens before it
  TaskGroups groups;
  std::vector<AssayCudaChannel> channels;  ///< between stages, those of all ranks alike
  Bytes moved, stated;                     ///< that it receives in a step, by its tasks and by the steps of the program
  Bytes handed;                            ///< received from other stages
};

/// A device of a run: ranks of a pipeline are stages of as many devices as the program's mesh has.
struct TaskPlace {
  std::size_t rank = 0;
  clock::PipelineShape pipeline = {};  ///< one stage: none
};

/// The training step of a program on one device, in the order in which virtual devices run it. An error names the first
/// step that has no kernel.
Result<TaskList> task_list(const program::Program& program, const model::Transformer& model, std::uint64_t seed,
                           const TaskPlace& place = {});

}  // namespace assay::engine
