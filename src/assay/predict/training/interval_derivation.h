// The time from step to step of a pipeline, derived from the passes of its stages.
#pragma once
#include <functional>

#include "assay/predict/training/offload.h"
#include "assay/predict/training/stage_formulas.h"

namespace assay::training {

/// A stage, what of it the host link adds, and the stage at ideal rates.
struct DerivedStage : StageParts<Traced> {
  HostTimeOf<Traced> host;
  IdealStage<Traced> ideal;
};

/// What an interval is derived from.
struct IntervalQuestion {
  const StepInputs& inputs;
  const clock::StageSplit& split;
  const MicrobatchCost& microbatch;
  NumberOf<Traced, Seconds> send;
};

/// The passes and sends that follow each other without a pause until the stage is done that is occupied longest; a
/// closed form for gpipe. `stage` derives the times of a part of the model.
NumberOf<Traced, Seconds> derive_interval(const Traced& num, const IntervalQuestion& question,
                                          const std::function<DerivedStage(const clock::StageSplit::Part&)>& stage);

}  // namespace assay::training
