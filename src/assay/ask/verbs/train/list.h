// What `assay train` shows in detail: the program line by line, the pipeline as a timeline, why others are slower.
#pragma once
#include <string>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/predict/training/memory_curve.h"

namespace assay::verbs::train {

/// Where the time of a step goes, by phase and kind of work.
Result<report::Items> kind_rows(const TrainQuery& query, const training::Strategy& strategy);

/// The program of a strategy, one row a step, with what it costs on the cluster.
Result<report::Items> program_rows(const TrainQuery& query, const training::Strategy& strategy);
/// Totals of the program on one device, over all layers and microbatches.
report::Members program_totals(const TrainQuery& query, const training::Strategy& strategy);

/// "fsdp 32, tp 2, sequence-parallel, micro-batch 1"
std::string strategy_text(const training::Strategy& strategy);

/// The part of a step on which another strategy loses most time.
std::string why_slower(const training::TrainingCost& best, const training::TrainingCost& other);

/// A step event by event, of every stage or of the fullest one, with the memory of that one.
struct SimulatedStep {
  clock::PipelineShape shape;
  clock::PipelineResult run;
  std::vector<training::MemoryMoment> memory;
};
Result<SimulatedStep> simulated_step(const TrainQuery& query, const search::Candidate& best, bool of_every_stage);

/// Memory of the fullest stage at a few moments of the step.
report::Items memory_rows(const SimulatedStep& step);
/// The pipeline of one step, or the resources of some layers.
Result<draw::Timeline> step_timeline(const TrainQuery& query, const search::Candidate& best, const SimulatedStep& step);
draw::Scene training_picture(const TrainQuery& query, const search::Candidate& best, const Result<SimulatedStep>& step);

}  // namespace assay::verbs::train
