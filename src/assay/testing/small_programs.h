// Programs of small models that tests execute.
#pragma once
#include <algorithm>

#include "assay/engine/program/training_session.h"
#include "assay/program/lower/lowering.h"
#include "assay/testing/small_varieties.h"

namespace assay::testing::small {

inline constexpr std::int64_t sequences = 8, length = 8;

inline lower::TrainingPlan small_plan(const model::Transformer& m, std::int64_t microbatches = 1) {
  lower::TrainingPlan p;
  p.work.sequences = sequences / microbatches;
  p.work.queries = p.work.keys = length;
  p.work.source = m.encoder ? length : 0;
  p.microbatches = microbatches;
  // Room for every token at every expert: nothing is dropped, so that sharding changes nothing.
  if (m.has_experts()) p.work.expert_load = 2.0;
  return p;
}

inline engine::Array random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  engine::Array out = engine::zeros({sequences, count});
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = static_cast<double>(engine::mixed(seed, i) % static_cast<std::uint64_t>(vocabulary));
  return out;
}

struct TrainingRun {
  double loss = 0;  ///< mean over all tokens
  engine::NamedArrays gradients, updated;
  engine::RunFacts facts;
};

/// One optimizer step of plain gradient descent.
inline TrainingRun train(const model::Transformer& m, const lower::Parallelism& p, const lower::TrainingPlan& how,
                         const engine::NamedArrays& weights) {
  const auto [mesh, rules] = lower::training_stage(p, m);
  const program::Program program = lower::lower_training(m, mesh, rules, how);
  const auto tokens = [&](std::uint64_t seed) {
    return engine::part(random_tokens(length, m.vocabulary, seed), 0, 0, how.work.sequences * how.microbatches);
  };
  engine::TrainingSession session(program, m, weights, {});
  session.keep_gradients();
  TrainingRun out;
  out.loss = session.step(tokens(1), tokens(2)).loss;
  out.gradients = session.gradients();
  out.updated = session.weights();
  for (auto weight = out.updated.begin(); weight != out.updated.end();)  // frozen weights have no gradient
    weight = out.gradients.contains(weight->first) ? std::next(weight) : out.updated.erase(weight);
  out.facts = session.facts();
  return out;
}

inline engine::NamedArrays weights_of(const model::Transformer& m) {
  return engine::random_weights(lower::lower_training(m, {}, {}, small_plan(m)), m, 7);
}

}  // namespace assay::testing::small
