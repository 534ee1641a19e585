// What a run took beside what was predicted for the chip that it ran on.
#pragma once
#include "assay/verbs/run/training_job.h"

namespace assay::verbs::run {

/// Adds the seconds of a step by kind of work, measured and predicted for --on, or else for the chip `host` if
/// `assay measure` has made one; a note where nothing can be predicted.
void predict(const Request& request, const Context& context, const TrainingTask& task, const TrainingJob& job,
             const TrainedJob& run, report::Response& response);

/// The same as a table of the screen.
void add_prediction(const report::Response& response, report::Screen& screen);

}  // namespace assay::verbs::run
