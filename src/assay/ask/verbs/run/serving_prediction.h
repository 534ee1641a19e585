// What the steps of a server took beside what was predicted for the chip that they ran on.
#pragma once
#include "assay/ask/verbs/run/run.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/engine/serving/server.h"

namespace assay::verbs::run {

/// A run whose steps are predicted.
struct PredictedServer {
  const model::Transformer& model;
  const engine::ServerOptions& options;
  const engine::ServerReport& report;
  std::string device;                ///< of a GPU: "NVIDIA H200"; otherwise this machine
  engine::LocalRank local{0, 0, 0};  ///< of this machine's ranks; none: all devices are in this process
};

/// Adds the seconds of prefills and of decode steps, measured and predicted for --on, the GPU, or the chip `host` if
/// `assay measure` has made one; a note where nothing can be predicted.
void predict_serving(const Request& request, const Context& context, const PredictedServer& run,
                     report::Response& response);

/// The same as tables of the screen.
void add_serving_prediction(const report::Response& response, report::Screen& screen);

}  // namespace assay::verbs::run
