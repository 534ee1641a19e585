// A layer under every recomputation policy, from one program: a policy adds forward steps to the backward pass, and
// which ones follows from what the backward pass needs.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "assay/predict/kernel/fused_projections.h"
#include "assay/predict/training/layer_cost.h"

namespace assay::training {

/// The forward pass of a layer; the backward pass may recompute parts of it.
struct RecomputableLayer {
  struct Tensor {
    bool is_needed = false;  ///< by the backward pass, whatever is recomputed
    bool is_held = false;    ///< can be kept
    Bytes bytes;
  };
  struct Step {
    lower::Recompute first,
        others;  ///< a policy that covers one of these parts recomputes the first result, or another one
    bool is_gathered = false;
    bool reads_own = false;  ///< its gradient reads its first result, whether kept or recomputed
    bool is_kernel = false;
    bool is_product = false, is_attention = false;
    std::array<std::int16_t, 8> in{};   ///< tensors of the layer; below 0: none
    std::array<std::int16_t, 7> out{};  ///< the same
    std::int16_t joined = -1;           ///< in `joined`
    std::int16_t traffic = -1;          ///< in `traffic`
    Bytes made;
    kernel::StepPrice<Plain> price;  ///< no duration where it is joined with others
    Flops flops;
  };
  std::vector<Tensor> tensors;
  std::vector<Step> steps;
  std::vector<kernel::JoinedProducts::Part> joined;
  std::vector<Traffic> traffic;
  Bytes dropped_residual, dropped_attention;  ///< what dropout writes
  double launches = 0;                        ///< kernels of the backward pass itself
  Seconds launch;                             ///< of each

  /// Adds recomputed steps to the backward pass of a layer, and the kept and recomputed results to its memory.
  void add_recomputed(const TrainingSetup& setup, lower::Recompute recompute, LayerProfile& layer) const;
};

/// Profiles of one key under every recomputation policy, from one program. `key.recompute` is ignored; `setup` must
/// outlive this.
class PolicyProfiles {
 public:
  PolicyProfiles(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part = ProfilePart::all);
  TrainingProfile with(lower::Recompute recompute) const;

 private:
  const TrainingSetup* setup_;
  TrainingProfile base_;                     ///< without recomputation in its layers
  std::vector<RecomputableLayer> forwards_;  ///< by kind
};

}  // namespace assay::training
