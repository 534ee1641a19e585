// What a serving run did, step by step: calls of the engine, slots of the batch, threads, pages of the cache.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "assay/ask/draw/scene.h"
#include "assay/ask/report/document.h"
#include "assay/engine/serving/server.h"

namespace assay::verbs::run {

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

}  // namespace assay::verbs::run
