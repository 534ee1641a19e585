// Whether training strategies fit into the memory of a chip and its host.
#pragma once
#include "assay/predict/search/training/profiles.h"
#include "assay/predict/search/training/stage_orders.h"

namespace assay::search {

/// Refers to the question, the profiles and the layers.
class TrainingFit {
 public:
  TrainingFit(const training::TrainingQuestion& question, TrainingProfiles& profiles, LayersOfOrders& layers,
              Bytes capacity)
      : question_(question), profiles_(profiles), layers_(layers), capacity_(capacity) {}

  /// Memory of a chip.
  Bytes capacity() const { return capacity_; }
  /// Lower bounds on what the fullest stage holds, whatever is computed and however stages are ordered.
  struct Least {
    Bytes states;  ///< weights and optimizer states
    Bytes all;     ///< gradients, buffers and what the allocator and the driver keep besides
  };
  Least least_bytes(const training::Strategy& strategy);
  /// Memory of all stages with layers split like `split`; valid until the next call.
  const training::MicrobatchCost& memory(const training::Strategy& strategy, const training::TrainingProfile& profile,
                                         const training::TrainingProfile* traffic, const clock::StageSplit& split);
  bool fits(const training::MicrobatchCost& steady, const training::Strategy& strategy) const;
  /// Bytes that exceed the memory of the chip and of its host.
  Bytes excess(const training::TrainingCost& cost) const;

 private:
  const training::TrainingQuestion& question_;
  TrainingProfiles& profiles_;
  LayersOfOrders& layers_;
  Bytes capacity_;
  training::StageLinks sizes_only_;
  training::MicrobatchCost scratch_;
};

}  // namespace assay::search
