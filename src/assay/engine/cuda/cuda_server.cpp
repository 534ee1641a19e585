#include "assay/engine/cuda/cuda_server.h"

#include <algorithm>

#include "assay/base/assign.h"
#include "assay/base/index.h"
#include "assay/engine/cuda/load.h"
#include "assay/engine/cuda/task_list.h"
#include "assay/engine/program/step.h"

namespace assay::engine {

ReplicaPlace replica_place(const ServerShare& share) {
  const std::size_t rank = share.transport ? share.transport->rank() : 0;
  const std::size_t devices = at(replica_of(share.parallelism).devices());
  return {rank - rank % devices, rank % devices};
}

Result<std::unique_ptr<CudaServer>> CudaServer::open(const AssayCuda& engine, const model::Transformer& model,
                                                     const Room& room, std::uint64_t seed, const ServerShare& share) {
  std::unique_ptr<CudaServer> server(new CudaServer(engine, model, room, share));
  const auto program_of = [&](std::int64_t queries, std::int64_t keys) {
    return served_program(model, server->parallelism_, room.sequences, queries, keys);
  };
  std::vector<const model::Transformer*> models{&server->model_};
  if (room.drafts > 0) models.push_back(&server->draft_model_);
  ASSAY_SET(server->kept_, kept_arrays(models, program_of(1, room.tokens), server->place_.device,
                                       {room.sequences, room.tokens}, seed));
  // The longest prompts take most memory, together with their first drafts, or a verification of drafts does.
  const std::int64_t prompt = room.prompt + room.drafts, scored = room.drafts + 1;
  for (const auto& [queries, keys] : {std::pair(prompt, prompt), std::pair(scored, std::max(scored, room.tokens))}) {
    ASSAY_TRY(tasks, serving_tasks(program_of(queries, keys), model, server->kept_, {server->place_.device, 0, scored},
                                   server->movements_));
    server->bytes_ = std::max(server->bytes_, tasks.bytes);
  }
  AssayCudaJob job{server->kept_.arrays.data(),
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
                   nullptr,
                   0,
                   nullptr};
  if (share.transport) {
    ASSAY_SET(server->connection_, Connection::open(engine, *share.transport));
    server->connection_->join(job, server->movements_.groups());
  }
  void* session = nullptr;
  ASSAY_CHECK(told_by_engine(engine.open(&job, &session), "use --engine virtual, or a smaller run: --layers, --slots"));
  server->session_ = Owned(session, engine.close);
  return server;
}

Result<void> CudaServer::set_weights(const NamedArrays& weights) {
  for (const auto& [name, weight] : kept_.weights) {
    const auto found = weights.find(name);
    if (found == weights.end()) continue;
    const std::vector<float> values = part_of_array(found->second, weight.at);
    ASSAY_CHECK(told_by_engine(engine_.write(session_.get(), -1, weight.array, values.data())));
  }
  return {};
}

std::vector<float> CudaServer::gathered(const std::vector<float>& mine, const std::vector<Extent>& vocabulary) {
  const std::int64_t whole = model_.vocabulary;
  if (!replica_ || vocabulary[place_.device].size == whole) return mine;
  const auto all = gather_values(*replica_, {mine.begin(), mine.end()});
  // Long messages move only while their sender waits for messages, too. All have theirs before one waits for its GPU,
  // which waits for the others.
  gather_values(*replica_, {});
  const std::int64_t rows = std::ssize(mine) / vocabulary[place_.device].size;
  std::vector<float> out(at(rows * whole));
  for (std::size_t device = 0; device < all.size(); ++device)
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto first = all[device].begin() + row * vocabulary[device].size;
      std::transform(first, first + vocabulary[device].size, out.begin() + row * whole + vocabulary[device].start,
                     [](double logit) { return static_cast<float>(logit); });
    }
  return out;
}

Result<ServingEngine::Made> CudaServer::run(const Asked& asked) {
  const model::Transformer& model = asked.drafts ? draft_model_ : model_;
  const auto sequences = std::ssize(asked.places), queries = std::ssize(asked.tokens) / sequences;
  const program::Program program = served_program(model, parallelism_, sequences, queries, asked.known + queries);
  movements_.moved = movements_.stated = {};
  ASSAY_TRY(tasks,
            serving_tasks(program, model, kept_, {place_.device, asked.drafts ? 1u : 0u, asked.scored}, movements_));
  const auto rows = at(asked.scored * sequences), vocabulary = at(model.vocabulary);
  std::vector<float> logits(asked.greedy ? 0 : rows * at(tasks.vocabulary[place_.device].size));
  std::vector<int> chosen(rows);
  std::vector<double> clocks(program.steps.size(), 0.0);
  Made made;
  made.moved = movements_.moved;
  made.stated = movements_.stated;
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
  if (!asked.greedy) logits = gathered(logits, tasks.vocabulary);
  for (std::int64_t s = 0; s < sequences; ++s) {
    Scores scores{zeros({1, asked.greedy ? 0 : asked.scored, model.vocabulary}), {}};
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

}  // namespace assay::engine
