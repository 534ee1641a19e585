// The steps of a server on its GPU: what it keeps there, and the kernels of a step.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/cuda/cuda_table.h"
#include "assay/engine/cuda/movement_task.h"
#include "assay/model/transformer.h"
#include "assay/program/form/program.h"
#include "assay/program/lower/strategy.h"

namespace assay::engine {

/// The program of a step, in bf16: `queries` new tokens of each sequence, of `keys` in all.
program::Program served_program(const model::Transformer& model, const lower::Parallelism& parallelism,
                                std::int64_t sequences, std::int64_t queries, std::int64_t keys);

/// Weights, and the caches of the models that use them: one model, or also the first layers of it, which draft.
struct KeptArrays {
  std::vector<AssayCudaArray> arrays;
  std::vector<AssayCudaStart> starts;
  struct Weight {
    int array = -1;
    std::vector<Extent> at;  ///< the part that the device has
  };
  std::map<std::string, Weight> weights;
  struct LayerCaches {
    int keys = -1, values = -1;
  };
  std::vector<std::vector<LayerCaches>> caches;  ///< by model and layer
  std::int64_t room = 0;                         ///< tokens of a sequence
  std::int64_t bytes = 0;
};
/// Room for `places` sequences on a device of the program, which is one of the first model: that has all weights. An
/// error names a layer that has no cache on a GPU.
struct KeptRoom {
  std::int64_t places = 1, tokens = 1;
};
Result<KeptArrays> kept_arrays(const std::vector<const model::Transformer*>& models, const program::Program& program,
                               std::size_t device, const KeptRoom& room, std::uint64_t seed);

struct ServingTasks {
  std::vector<AssayCudaArray> arrays;
  std::vector<AssayCudaTask> tasks;
  int tokens = -1, places = -1;
  int logits = -1, chosen = -1;    ///< [scored, sequences], of the last token first
  std::vector<Extent> vocabulary;  ///< by device: the part of it whose logits are made there
  std::int64_t bytes = 0;          ///< where its arrays end
};
/// A step on one device: `number` is that of the program's model in the kept arrays, and logits are made of the last
/// `scored` tokens.
struct ServedStepPlace {
  std::size_t device = 0;
  std::size_t number = 0;
  std::int64_t scored = 1;
};
Result<ServingTasks> serving_tasks(const program::Program& program, const model::Transformer& model,
                                   const KeptArrays& kept, const ServedStepPlace& place, Movements& movements);

}  // namespace assay::engine
