// A server whose steps run on a GPU, or on loops that do what it is told: its tokens are those of virtual devices.
#include "assay/engine/cuda/cuda_server.h"

#include <gtest/gtest.h>

#include "assay/program/lower/lowering.h"
#include "assay/testing/host_engine.h"
#include "assay/testing/thread_ranks.h"

namespace assay::engine {
namespace {

model::Transformer served_llama(bool experts) {
  model::Transformer m;
  m.id = "llama";
  m.d_model = 16;
  m.vocabulary = 24;
  model::Layer layer;
  layer.attention.emplace();
  layer.attention->heads = 4;
  layer.attention->kv_heads = 2;
  layer.attention->head_dim = layer.attention->value_dim = 8;
  layer.feed_forward.emplace();
  layer.feed_forward->width = 24;
  if (experts) {
    layer.feed_forward->experts = 4;
    layer.feed_forward->experts_per_token = 2;
  }
  for (int i = 0; i < 3; ++i) m.decoder.add(layer);
  return m;
}

/// Of different lengths, so that sequences join and leave at different times.
std::vector<Prompt> uneven_prompts(std::int64_t length = 5) {
  std::vector<Prompt> out;
  for (std::int64_t i = 0; i < 7; ++i) {
    Prompt prompt{{}, 4 + i % 3};
    for (std::int64_t t = 0; t < length + i % 2; ++t) prompt.tokens.push_back(static_cast<int>((5 * i + 3 * t) % 24));
    out.push_back(std::move(prompt));
  }
  return out;
}

ServerReport served_elsewhere(const model::Transformer& m, const NamedArrays& weights, ServerOptions options,
                              const ServerShare& share = {}, std::int64_t length = 5) {
  const CudaServer::Room room{.sequences = options.slots,
                              .prompt = length + 1,
                              .tokens = length + 7 + options.drafts,
                              .drafts = options.drafts,
                              .draft_layers = options.draft_layers};
  auto server = CudaServer::open(testing::host_engine(), m, room, 3, share);
  EXPECT_TRUE(server) << server.error().what;
  EXPECT_TRUE((*server)->set_weights(weights));
  options.engine = server->get();
  return Server(m, weights, options).serve(uneven_prompts(length)).value();
}

NamedArrays first_weights(const model::Transformer& m) {
  return initial_weights(lower::lower_training(m, {}, {}, {}), m, 3);
}

TEST(CudaServer, ChoosesTokensThatAreBestUpToTheRoundingOfBf16) {
  const std::vector<Prompt> prompts = uneven_prompts();
  for (const bool experts : {false, true}) {
    const model::Transformer m = served_llama(experts);
    const NamedArrays weights = first_weights(m);
    const ServerReport report = served_elsewhere(m, weights, {.slots = 3});
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      ASSERT_EQ(std::ssize(report.requests[i].tokens), prompts[i].wanted);
      EXPECT_LT(largest_shortfall(m, weights, prompts[i].tokens, report.requests[i].tokens), 0.05) << i;
    }
  }
}

TEST(CudaServer, DraftsChangeNoGreedyToken) {
  const model::Transformer m = served_llama(false);
  const NamedArrays weights = first_weights(m);
  constexpr std::int64_t length = 63;  // long prompts take most memory, together with their first drafts
  const std::vector<Prompt> prompts = uneven_prompts(length);
  const ServerReport drafted = served_elsewhere(m, weights, {.slots = 1, .drafts = 2, .draft_layers = 1}, {}, length);
  EXPECT_GT(drafted.drafted, 0);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_LT(largest_shortfall(m, weights, prompts[i].tokens, drafted.requests[i].tokens), 0.05) << i;
}

TEST(CudaServer, SharesTheModelWithOtherDevices) {
  const std::vector<Prompt> prompts = uneven_prompts();
  for (const bool experts : {false, true})
    for (const std::int64_t devices : {2, 4})
      for (const bool drafts : {false, true}) {
        const model::Transformer m = served_llama(experts);
        const NamedArrays weights = first_weights(m);
        testing::on_thread_ranks(static_cast<std::size_t>(devices), [&](Transport& transport) {
          ServerOptions options{.parallelism = {.tensor = devices}, .slots = 3, .drafts = drafts ? 2 : 0};
          options.transport = &transport;
          const ServerReport report = served_elsewhere(m, weights, options, {options.parallelism, &transport});
          EXPECT_GT(report.moved, Bytes());
          EXPECT_NEAR(report.moved.value(), report.stated.value(), 1e-9 * report.stated.value());
          for (std::size_t i = 0; i < prompts.size(); ++i) {
            ASSERT_EQ(std::ssize(report.requests[i].tokens), prompts[i].wanted);
            EXPECT_LT(largest_shortfall(m, weights, prompts[i].tokens, report.requests[i].tokens), 0.05) << i;
          }
        });
      }
}

TEST(CudaServer, HasReplicasThatServeTheirShareEach) {
  const std::vector<Prompt> prompts = uneven_prompts();
  const model::Transformer m = served_llama(false);
  const NamedArrays weights = first_weights(m);
  for (const std::int64_t tensor : {1, 2})
    testing::on_thread_ranks(static_cast<std::size_t>(2 * tensor), [&](Transport& transport) {
      const ServerShare share{{.data = 2, .tensor = tensor}, &transport};
      const std::vector<Prompt> own = own_prompts(prompts, {transport.rank() / at(tensor), 2});
      auto server = CudaServer::open(testing::host_engine(), m, {.sequences = 2, .prompt = 6, .tokens = 12}, 3, share);
      ASSERT_TRUE(server) << server.error().what;
      const ServerOptions options{.parallelism = replica_of(share.parallelism),
                                  .slots = 2,
                                  .transport = (*server)->replica(),
                                  .engine = server->get()};
      const ServerReport mine = Server(m, weights, options).serve(own).value();
      const ServerReport all = joined_reports(transport, at(tensor), mine, prompts.size());
      EXPECT_GT(all.prefills, mine.prefills);
      EXPECT_EQ(all.moved > Bytes(), tensor > 1);
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        ASSERT_EQ(std::ssize(all.requests[i].tokens), prompts[i].wanted);
        EXPECT_LT(largest_shortfall(m, weights, prompts[i].tokens, all.requests[i].tokens), 0.05) << i;
      }
    });
}

TEST(CudaServer, TimesEveryStep) {
  const model::Transformer m = served_llama(false);
  const ServerReport report = served_elsewhere(m, first_weights(m), {.slots = 7});
  std::int64_t prompts = 0;
  for (const ServedStep& step : report.steps) {
    EXPECT_GT(step.time, Seconds());
    EXPECT_EQ(step.is_prompt() ? 0 : 1, step.queries == 1 ? 1 : 0);
    prompts += step.is_prompt() ? 1 : 0;
  }
  EXPECT_EQ(prompts, report.prefills);
  EXPECT_EQ(std::ssize(report.steps) - prompts, report.decodes);
}

TEST(CudaServer, NamesWhatItCannotKeep) {
  model::Transformer m = served_llama(false);
  m.decoder.kinds.front().attention->kv_rank = 8;
  const auto kept = kept_arrays({&m}, served_program(m, {}, 1, 1, 8), 0, {1, 8}, 1);
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().what.find("layer 0 has no keys and values of its own"), std::string::npos);
}

}  // namespace
}  // namespace assay::engine
