// What `assay train` shows besides numbers: the program line by line, the pipeline as a timeline, why others lose.
#pragma once
#include <string>

#include "assay/draw/scene.h"
#include "assay/report/document.h"
#include "assay/training/memory_curve.h"
#include "assay/verbs/train/query.h"

namespace assay {

/// Where the time of a step goes, by phase and kind of work.
Result<Items> kind_rows(const TrainQuery& query, const Strategy& strategy);

/// The program of a strategy, one row a step, with what it costs on the cluster.
Result<Items> program_rows(const TrainQuery& query, const Strategy& strategy);
/// What all lines of the program amount to on one device, with all layers and microbatches.
Members program_totals(const TrainQuery& query, const Strategy& strategy);

/// "fsdp 32, tp 2, sequence-parallel, micro-batch 1"
std::string strategy_text(const Strategy& strategy);

/// The part of a step on which another strategy loses most.
std::string why_slower(const TrainingCost& best, const TrainingCost& other);

/// A step event by event, with the memory of its fullest stage.
struct SimulatedStep {
  PipelineShape shape;
  PipelineResult run;
  std::vector<MemoryMoment> memory;
};
Result<SimulatedStep> simulated_step(const TrainQuery& query, const Candidate& best);

/// Memory of the fullest stage at a few moments of the step.
Items memory_rows(const SimulatedStep& step);
/// The pipeline of one step, or one stage and what some of its layers keep busy, as a Chrome trace.
Result<std::string> timeline_json(const TrainQuery& query, const Candidate& best, const SimulatedStep& step);
Scene training_picture(const TrainQuery& query, const Candidate& best, const Result<SimulatedStep>& step);

}  // namespace assay
