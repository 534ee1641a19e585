// The kernels and collectives of a pass, and the tensors that it keeps, derived from the program of a strategy.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "assay/predict/training/pass_time.h"
#include "assay/predict/training/step.h"

namespace assay::training {

/// Where the steps of a recorded profile are in the program of a strategy: that has the same steps in the same order,
/// with other sizes of data axes, and copies of those that it recomputes.
class RecordedSteps {
 public:
  RecordedSteps(const program::Program& recorded, const program::Program& program, ProfilePart part);
  /// The step that a recorded one is, or the one that recomputes it; below 0 for collectives over axes that the
  /// strategy does not have.
  std::int32_t find(std::int32_t step, bool is_recomputed) const;
  /// Finds a kernel, which every strategy has.
  std::int32_t kernel(std::int32_t step, bool is_recomputed) const;

 private:
  std::vector<std::int32_t> own_, recomputed_;  ///< by recorded step; below 0: none
};

/// A pass of a half of a recorded step. Refers to its parts.
struct RecordedPass {
  const program::Program& recorded;  ///< of the profile
  const RecordedSteps& steps;
  const PassProfile& profile;
  const PassRecord& record;
};

/// What a strategy is priced from, as StepProfiles has it, with the kernels and collectives that it consists of.
class RecordedStep {
 public:
  RecordedStep(const TrainingSetup& setup, std::int64_t sequence, const Strategy& strategy,
               const program::Program& program);

  /// A layer, shared weights or an end of the model.
  struct Place {
    LayerProfile TrainingProfile::*end = nullptr;
    LayerRecord ProfileRecord::*end_record = nullptr;
    std::size_t kind = 0;
    bool is_shared = false;
  };
  static Place embedding() { return {&TrainingProfile::embedding, &ProfileRecord::embedding}; }
  static Place head() { return {&TrainingProfile::head, &ProfileRecord::head}; }
  /// Both halves of a pass: work, and the traffic of weights and gradients.
  std::array<RecordedPass, 2> pass(const Place& place, program::Phase phase) const;
  std::vector<Place> places() const;

 private:
  struct Half {
    RecordedProfile recorded;
    RecordedSteps steps;
  };
  static Half half(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part,
                   const program::Program& program);
  std::array<Half, 2> halves_;
};

/// What the passes of a strategy are derived with. Refers to its parts.
struct PassSource {
  const TrainingSetup& setup;
  const program::Program& program;  ///< of the strategy
};
DerivedKernels derive_kernels(const Traced& num, const PassSource& source, const RecordedPass& pass);
/// Entries of the traffic of a pass with what they consist of: collectives of the strategy's program or, where devices
/// do not split its arrays evenly, of the program that the profile counted.
std::vector<DerivedTraffic> derive_traffic(const Traced& num, const PassSource& source, const RecordedPass& pass);

/// The steps of a block that are recomputed, in the order of the forward pass, in which profiles add them.
std::vector<program::Step> recomputed_steps(const program::Program& program, const program::Block& block);

/// What a forward pass keeps, tensor by tensor, as profiles count it: without gathered weights, with dropout's masks.
NumberOf<Traced, Bytes> derive_kept(const Traced& num, const TrainingSetup& setup, const program::Program& program,
                                    std::span<const program::Block> blocks, lower::Recompute recompute);

}  // namespace assay::training
