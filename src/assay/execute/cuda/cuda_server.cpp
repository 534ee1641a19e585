#include "assay/execute/cuda/cuda_server.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/execute/cuda/load.h"
#include "assay/execute/program/step.h"

namespace assay::execute {
Result<std::unique_ptr<CudaServer>> CudaServer::open(const AssayCuda& engine, const model::Transformer& model,
                                                     const Room& room, std::uint64_t seed) {
  std::unique_ptr<CudaServer> server(new CudaServer(engine, model, room));
  std::vector<const model::Transformer*> models{&server->model_};
  if (room.drafts > 0) models.push_back(&server->draft_model_);
  ASSAY_TRY(kept, kept_arrays(models, room.sequences, room.tokens, seed));
  server->kept_ = std::move(kept);
  // The longest prompts take most memory, and with drafts a verification that scores all of them may.
  for (const auto& [queries, keys, scored] : {std::tuple(room.prompt, room.prompt, std::int64_t{1}),
                                              std::tuple(room.drafts + 1, room.tokens, room.drafts + 1)}) {
    ASSAY_TRY(tasks, serving_tasks(served_program(model, room.sequences, queries, std::max(queries, keys)), model,
                                   server->kept_, 0, scored));
    server->bytes_ = std::max(server->bytes_, tasks.bytes);
  }
  const AssayCudaJob job{server->kept_.arrays.data(),
                         nullptr,
                         server->kept_.starts.data(),
                         static_cast<int>(server->kept_.arrays.size()),
                         0,
                         static_cast<int>(server->kept_.starts.size()),
                         0,
                         server->bytes_,
                         -1,
                         -1,
                         {},
                         nullptr,
                         0,
                         nullptr};
  void* session = nullptr;
  ASSAY_CHECK(told_by_engine(engine.open(&job, &session), "use --engine virtual, or a smaller run: --layers, --slots"));
  server->session_ = Owned(session, engine.close);
  return server;
}

Result<void> CudaServer::set_weights(const NamedArrays& weights) {
  for (const auto& [name, array] : kept_.weights) {
    const auto found = weights.find(name);
    if (found == weights.end()) continue;
    const std::vector<float> values(found->second.values.begin(), found->second.values.end());
    ASSAY_CHECK(told_by_engine(engine_.write(session_.get(), -1, array, values.data())));
  }
  return {};
}

Result<ServingEngine::Made> CudaServer::run(const Asked& asked) {
  const model::Transformer& model = asked.drafts ? draft_model_ : model_;
  const auto sequences = std::ssize(asked.places), queries = std::ssize(asked.tokens) / sequences;
  const program::Program program = served_program(model, sequences, queries, asked.known + queries);
  ASSAY_TRY(tasks, serving_tasks(program, model, kept_, asked.drafts ? 1 : 0, asked.scored));
  const auto rows = at(asked.scored * sequences), vocabulary = at(model.vocabulary);
  std::vector<float> logits(asked.greedy ? 0 : rows * vocabulary);
  std::vector<int> chosen(rows);
  std::vector<double> clocks(program.steps.size(), 0.0);
  Made made;
  // Clocks keep short kernels apart: of two steps after each other one has them, the other is timed as a whole.
  made.has_clocks = queries > 1 || ++steps_ % 2 == 0;
  const AssayCudaServing step{tasks.arrays.data(),
                              tasks.tasks.data(),
                              static_cast<int>(tasks.arrays.size()),
                              static_cast<int>(tasks.tasks.size()),
                              tasks.tokens,
                              tasks.places,
                              asked.greedy ? -1 : tasks.logits,
                              tasks.chosen,
                              asked.tokens.data(),
                              asked.places.data(),
                              logits.data(),
                              chosen.data(),
                              made.has_clocks ? 1 : 0};
  // The first step of a kind also chooses and loads kernels. It may be repeated: it writes the same to the caches.
  for (int times = warm_.insert({asked.drafts, sequences, queries}).second ? 2 : 1; times > 0; --times) {
    std::fill(clocks.begin(), clocks.end(), 0.0);
    double seconds = 0;
    ASSAY_CHECK(told_by_engine(engine_.serve(session_.get(), &step, &seconds, clocks.data())));
    made.time = Seconds(seconds);
  }
  for (std::size_t i = 0; i < clocks.size(); ++i)
    if (made.has_clocks) made.by_kind[work_kind(program.steps[i])] += Seconds(clocks[i]);
  for (std::int64_t s = 0; s < sequences; ++s) {
    Scores scores{zeros<double>({1, asked.greedy ? 0 : asked.scored, model.vocabulary}), {}};
    for (std::int64_t i = 0; i < asked.scored; ++i) {
      const auto row = at((asked.scored - 1 - i) * sequences + s);
      scores.best.push_back(chosen[row]);
      if (!asked.greedy)
        std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(row * vocabulary), vocabulary,
                    scores.logits.values.begin() + static_cast<std::ptrdiff_t>(at(i) * vocabulary));
    }
    made.scores.push_back(std::move(scores));
  }
  return made;
}

}  // namespace assay::execute
