// Reverse engineering of a program: which model it trains, and how it is distributed, from its parameters with their
// shardings, and from its products.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/profile/compare/recovered.h"
#include "assay/profile/hlo/kernels.h"
#include "assay/profile/hlo/mesh.h"

namespace assay::compare {

/// Equal weights, with the same sharding: one row for all layers.
struct RecognisedWeight {
  std::string
      role;  ///< "embedding or head", "query", "keys and values", "feed-forward", "experts", "norm", "vector", "other"
  std::string name;  ///< of the first one, where the program has names
  const hlo::ElementType* element = nullptr;
  std::vector<std::int64_t> dims;  ///< of one layer, of all devices together
  std::vector<std::string> axes;   ///< of each dimension: "A0*A1", or empty
  std::int64_t count = 0;          ///< in the model: layers are counted
  bool in_layers = false;

  double elements() const;  ///< of all of them
};

/// What an axis of the mesh divides.
struct AxisUse {
  bool batch = false, sequence = false, weights = false, experts = false;
  /// "fsdp", "data", "tensor", "context", "expert", or what it divides where several apply: "fsdp + expert".
  std::string role() const;
};

/// A model with what a program says of it beyond its sizes. Sizes of 0 were not found.
struct RecognisedModel : RecoveredModel {
  bool stacked = false, qk_norm = false;
  double parameters = 0;    ///< of the model, one copy
  double explained = 0;     ///< share of them whose role was found; a transformer where nearly all was
  std::int64_t copies = 1;  ///< the weights, and states of the optimizer of the same shapes
  const hlo::ElementType* weight_type = nullptr;  ///< of most weights
  const hlo::ElementType* state_type = nullptr;   ///< of most states of the optimizer; nullptr without them
  std::optional<std::int64_t> batch, sequence;    ///< of all devices together
  std::optional<std::string> recompute;  ///< "none", "selective" or "full"; nothing where the program does not train
  double weight_products = 0;            ///< per feed-forward weight: 3 where nothing is computed again
  std::vector<RecognisedWeight> weights;
  std::vector<AxisUse> axes;  ///< in the order of the mesh
  bool trains = false;
};

RecognisedModel recognise(const hlo::Module& module, const hlo::ProgramMesh& mesh, const hlo::ProgramKernels& kernels);

}  // namespace assay::compare
