// A layer under every recomputation policy, from one program: a policy adds forward steps to the backward pass, and
// which ones follows from what the backward pass needs.
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "assay/predict/kernel/fused_projections.h"
#include "assay/predict/training/layer_cost.h"

namespace assay::training {

/// Prices of fused products, each computed once: thousands of profiles of one setup have few different ones. For one
/// thread.
class FusedPrices {
 public:
  const kernel::StepPrice<Plain>& of(const kernel::JoinedProducts::Part& fused, const kernel::TrainingKernels& kernels);

 private:
  using Key = std::array<double, 9>;  ///< all that a price depends on
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, kernel::StepPrice<Plain>, Hash> known_;
};

/// The forward pass of a layer; the backward pass may recompute parts of it.
struct RecomputableLayer {
  struct Tensor {
    bool is_needed = false;  ///< by the backward pass, whatever is recomputed
    bool is_held = false;    ///< can be kept
    Bytes bytes;
  };
  struct Step {
    std::int32_t number = 0;  ///< in the program
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
  Seconds launch;                             ///< of each kernel of the backward pass

  /// Adds recomputed steps to the backward pass of a layer, and the kept and recomputed results to its memory; `record`
  /// is null in searches.
  void add_recomputed(const TrainingSetup& setup, FusedPrices& prices, lower::Recompute recompute, LayerProfile& layer,
                      PassRecord* record) const;
};

/// Products of a pass that software fuses.
class FusedKernels {
 public:
  FusedKernels(const kernel::TrainingKernels& kernels, FusedPrices& prices) : kernels_(kernels), prices_(prices) {}
  /// Takes a product, the step `number`; false: it runs by itself.
  bool take(const kernel::JoinedProducts::Part& part, std::int32_t number, const PassRecord* record) {
    if (!joined_.take(part)) return false;
    if (!record) return true;
    steps_.resize(joined_.joints().size());
    steps_[joined_.last()].push_back(number);
    return true;
  }
  /// Adds the fused products to the sums of a pass.
  void add(bool is_recomputed, KernelSums<Plain>& sums, PassRecord* record) const;

 private:
  const kernel::TrainingKernels& kernels_;
  FusedPrices& prices_;
  kernel::JoinedProducts joined_;
  std::vector<std::vector<std::int32_t>> steps_;  ///< of each fused product, if they are recorded
};

/// Profiles of one key under every recomputation policy, from one program. `key.recompute` is ignored; `setup` and
/// `prices`, which are of that setup, must outlive this.
class PolicyProfiles {
 public:
  PolicyProfiles(const TrainingSetup& setup, FusedPrices& prices, const ProfileKey& key, ProfilePart part);
  /// From its program, keeping what the sums consist of in `record`, unless that is null.
  PolicyProfiles(const TrainingSetup& setup, FusedPrices& prices, const ProfileKey& key, ProfilePart part,
                 const program::Program& program, ProfileRecord* record);
  TrainingProfile with(lower::Recompute recompute, ProfileRecord* record = nullptr) const;

 private:
  const TrainingSetup* setup_;
  FusedPrices* prices_;
  TrainingProfile base_;                     ///< without recomputation in its layers
  std::vector<RecomputableLayer> forwards_;  ///< by kind
};

}  // namespace assay::training
