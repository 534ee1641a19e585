#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "assay/engine/serving/bounded_queue.h"
#include "assay/engine/serving/server.h"
#include "assay/testing/small_programs.h"

namespace assay::engine {
namespace {

using namespace testing::small;

struct ServedCase {
  model::Transformer model;
  NamedArrays weights;
  std::vector<Prompt> prompts;
};

ServedCase served_case() {
  ServedCase out{embedding_varieties().front().model, {}, {}};
  const model::Layer layer = out.model.decoder.kinds.front();
  out.model.decoder = {};
  for (int i = 0; i < 2; ++i) out.model.decoder.add(layer);
  out.weights = random_weights(lower::lower_training(out.model, {}, {}, small_plan(out.model)), out.model, 7);
  for (int i = 0; i < 6; ++i) out.prompts.push_back({{1 + i % 3, 2}, 1 + i % 4});
  return out;
}

TEST(BoundedQueue, HoldsAtMostItsRoomAndKeepsTheOrder) {
  BoundedQueue<int> queue(2);
  std::vector<int> taken;
  std::thread giver([&] {
    const ClosesQueue at_end(queue);
    for (int i = 0; i < 100; ++i) queue.put(i);
  });
  while (const auto one = queue.take(true)) taken.push_back(*one);
  giver.join();
  ASSERT_EQ(taken.size(), 100u);
  EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
  EXPECT_TRUE(queue.is_spent());
  EXPECT_FALSE(queue.put(1));
}

TEST(BoundedQueue, ClosingFreesWhoWaitsForRoom) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.put(1));
  std::thread giver([&] { EXPECT_FALSE(queue.put(2)); });
  queue.close();
  giver.join();
  EXPECT_EQ(queue.take(true), 1);
  EXPECT_EQ(queue.take(true), std::nullopt);
}

TEST(Server, ThreadsMakeTheTokensOfOneThread) {
  const ServedCase c = served_case();
  for (const ServerOptions& options :
       {ServerOptions{.slots = 1}, ServerOptions{.slots = 3}, ServerOptions{.slots = 8, .sampling = {0.9, 0.8}},
        ServerOptions{.slots = 2, .drafts = 2, .draft_layers = 1}}) {
    ServerOptions threads = options;
    for (const std::int64_t room : {1, 4}) {
      threads.queue = room;
      const ServerReport one = Server(c.model, c.weights, options).serve(c.prompts).value();
      const ServerReport two = Server(c.model, c.weights, threads).serve(c.prompts).value();
      for (std::size_t i = 0; i < c.prompts.size(); ++i) EXPECT_EQ(one.requests[i].tokens, two.requests[i].tokens) << i;
      EXPECT_FALSE(two.is_interrupted);
    }
  }
}

TEST(Server, APromptWaitsForRoomAndASlotForAPrompt) {
  const ServedCase c = served_case();
  constexpr std::int64_t slots = 2, room = 1;
  const ServerReport report = Server(c.model, c.weights, {.slots = slots, .queue = room}).serve(c.prompts).value();
  std::vector<Seconds> processed(c.prompts.size(), Seconds(-1)), inserted = processed;
  Seconds ends[2] = {};  // of the last activity of each thread
  for (const ServerActivity& one : report.activities) {
    Seconds& last = ends[one.kind == EngineCall::Kind::prefill ? 0 : 1];
    EXPECT_LE(last, one.start);
    EXPECT_LE(one.start, one.end);
    last = one.end;
    if (one.kind == EngineCall::Kind::prefill) processed[one.request] = one.end;
    if (one.kind == EngineCall::Kind::insert) inserted[one.request] = one.start;
    if (one.kind == EngineCall::Kind::insert) EXPECT_LT(one.slot, slots);
    EXPECT_LE(one.sequences, slots);
  }
  for (std::size_t i = 0; i < c.prompts.size(); ++i) {
    ASSERT_GE(processed[i], Seconds()) << i;
    EXPECT_LE(processed[i], inserted[i]) << i;
    // One is in the thread's hands, `room` wait, and one may just have been taken from the queue.
    const auto ready =
        std::count_if(processed.begin(), processed.end(), [&](Seconds end) { return end <= processed[i]; });
    const auto gone = std::count_if(inserted.begin(), inserted.end(), [&](Seconds at) { return at <= processed[i]; });
    EXPECT_LE(ready - gone, room + 2) << i;
  }
  EXPECT_LE(std::max(ends[0], ends[1]), report.time);
}

}  // namespace
}  // namespace assay::engine
