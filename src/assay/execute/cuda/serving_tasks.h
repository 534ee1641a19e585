// The steps of a server on one GPU: what it keeps there, and the kernels of a step.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/execute/cuda/cuda_table.h"
#include "assay/model/transformer.h"
#include "assay/program/program.h"

namespace assay::execute {

/// Weights, and the caches of the models that use them: one model, or also the first layers of it, which draft.
struct KeptArrays {
  std::vector<AssayCudaArray> arrays;
  std::vector<AssayCudaStart> starts;
  std::map<std::string, int> weights;
  struct LayerCaches {
    int keys = -1, values = -1;
  };
  std::vector<std::vector<LayerCaches>> caches;  ///< by model and layer
  std::int64_t room = 0;                         ///< tokens of a sequence
  std::int64_t bytes = 0;
};
/// Room for `places` sequences. The first model has all weights; an error names a layer that has no cache on a GPU.
Result<KeptArrays> kept_arrays(const std::vector<const model::Transformer*>& models, std::int64_t places,
                               std::int64_t room, std::uint64_t seed);

/// The program of a step on one device, in bf16: `queries` new tokens of each sequence, of `keys` in all.
program::Program served_program(const model::Transformer& model, std::int64_t sequences, std::int64_t queries,
                                std::int64_t keys);

struct ServingTasks {
  std::vector<AssayCudaArray> arrays;
  std::vector<AssayCudaTask> tasks;
  int tokens = -1, places = -1;
  int logits = -1, chosen = -1;  ///< [scored, sequences], of the last token first
  std::int64_t bytes = 0;        ///< where its arrays end
};
/// `model` is the number of the program's model in the kept arrays; logits are made of the last `scored` tokens.
Result<ServingTasks> serving_tasks(const program::Program& program, const model::Transformer& model,
                                   const KeptArrays& kept, std::size_t number, std::int64_t scored);

}  // namespace assay::execute
