// What a serving run did and what it took, beside what was predicted.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/engine/ranks/mpi.h"
#include "assay/engine/serving/server.h"

namespace assay::verbs::run {

// What a serving run did, step by step: calls of the engine, slots of the batch, threads, pages of the cache.

struct ServedRun {
  const std::vector<engine::Prompt>& prompts;
  const engine::ServerReport& report;                        ///< with its calls
  std::function<std::string(const std::vector<int>&)> text;  ///< of tokens
};

/// prefill, insert and generate, in the order of the calls; one generate is for all sequences of the batch.
report::Items call_rows(const engine::ServerReport& report);
/// Which request is in which slot, iteration by iteration.
draw::Scene slots_picture(const engine::ServerReport& report);

/// The work of each new token of the first request, with a cache and without.
struct WorkView {
  report::Items rows;
  std::string sentence;
  draw::Scene picture;
};
WorkView work_view(const model::Transformer& model, const engine::Prompt& prompt);

/// What the thread of the prompts and the one that decodes did, and when.
struct ThreadsView {
  report::Members members;
  std::vector<std::string> sentences;
  draw::Scene picture;
};
ThreadsView threads_view(const engine::ServerReport& report, std::int64_t queue);

/// The same sequences in a cache of pages: tables at every iteration, copies, and what is not used.
struct PagesView {
  report::Members members;
  std::vector<draw::Scene> frames;  ///< where wanted
};
PagesView pages_view(const ServedRun& run, std::int64_t page, bool draws);

// What the steps of a server took beside what was predicted for the chip that they ran on.

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

}  // namespace assay::verbs::run
