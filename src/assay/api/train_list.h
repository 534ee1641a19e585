// What `assay train` shows besides numbers: the program line by line, the pipeline as a timeline, why others lose.
#pragma once
#include <string>

#include "assay/api/train_query.h"
#include "assay/report/document.h"
#include "assay/report/scene.h"

namespace assay {

/// The program of a strategy, one row a step, with what it costs on the cluster.
/// Where the time of a step goes, by phase and kind of work: all microbatches, the mean of its stages.
struct KindTime {
  std::string_view phase;  ///< forward, forward again, backward, update
  std::string kind;        ///< products, attention, other kernels; or the axes of a network
  bool is_collective = false;
  Seconds time;  ///< of collectives all of it, waited for or not
  Flops flops;
};
Result<std::vector<KindTime>> kind_times(const TrainQuery& query, const Strategy& strategy);
Result<Items> kind_rows(const TrainQuery& query, const Strategy& strategy);

Result<Items> program_rows(const TrainQuery& query, const Strategy& strategy);
/// What all lines of the program amount to on one device, with all layers and microbatches.
Members program_totals(const TrainQuery& query, const Strategy& strategy);

/// "fsdp 32, tp 2, sequence-parallel, micro-batch 1"
std::string strategy_text(const Strategy& strategy);

/// The part of a step on which another strategy loses most.
std::string why_slower(const TrainingCost& best, const TrainingCost& other);

/// Memory of the fullest stage at a few moments of the step.
Result<Items> memory_rows(const TrainQuery& query, const Candidate& best);
/// The pipeline of one step, or the layers of one stage, as a Chrome trace.
Result<std::string> timeline_json(const TrainQuery& query, const Candidate& best);
Scene training_picture(const TrainQuery& query, const Candidate& best);

}  // namespace assay
