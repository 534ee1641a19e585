#include "assay/predict/serving/load/prefix_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::serving {
namespace {

std::int64_t take(PrefixCache& cache, std::vector<std::int64_t> blocks) { return cache.take(blocks); }

TEST(PrefixCache, PromptsShareWhatTheyBeginWith) {
  PrefixCache cache(std::nullopt);
  EXPECT_EQ(take(cache, {1, 2, 3}), 0);
  EXPECT_EQ(take(cache, {1, 2, 4}), 2);
  EXPECT_EQ(take(cache, {2, 3}), 0);  // the same blocks, but not from the start
  EXPECT_EQ(cache.size(), 6);
}

TEST(PrefixCache, EvictsTheEndsThatWereUsedLongestAgo) {
  PrefixCache cache(4);
  take(cache, {1, 2, 3});
  take(cache, {1, 4});     // 3 is the oldest end, then 2
  take(cache, {1, 4, 5});  // 3 goes
  EXPECT_EQ(cache.evicted(), 1);
  EXPECT_EQ(cache.cached(std::vector<std::int64_t>{1, 2, 3}), 2);
  take(cache, {1, 4, 5, 6});  // 2 goes
  EXPECT_EQ(cache.cached(std::vector<std::int64_t>{1, 2}), 1);
}

TEST(PrefixCache, APromptLongerThanTheCacheKeepsItsBeginning) {
  PrefixCache cache(2);
  take(cache, {1, 2, 3, 4});
  EXPECT_EQ(cache.size(), 2);
  EXPECT_EQ(cache.cached(std::vector<std::int64_t>{1, 2, 3, 4}), 2);
}

RequestTrace trace_of(const std::vector<std::vector<std::int64_t>>& prompts) {
  RequestTrace trace;
  trace.block = 16;
  for (const auto& blocks : prompts)
    trace.requests.push_back({16 * std::max<std::int64_t>(1, static_cast<std::int64_t>(blocks.size())), 1, blocks});
  return trace;
}

RC_GTEST_PROP(PrefixCacheLaw, LargerCachesHitNoLess, ()) {
  std::vector<std::vector<std::int64_t>> prompts;
  for (int i = 0; i < 20; ++i)
    prompts.push_back(*rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 3)));
  const RequestTrace trace = trace_of(prompts);
  double before = 0.0;
  for (const std::int64_t blocks : {1, 2, 4, 8, 16, 32, 64}) {
    const double share = replay_prefixes(trace, blocks).share();
    RC_ASSERT(share >= before);
    before = share;
  }
  RC_ASSERT(replay_prefixes(trace, std::nullopt).share() >= before);
}

// Two conversations of 3 and 4 blocks, each asked again with one block more: 48 + 64 + 64 + 80 tokens, of which 3 and 4
// blocks are cached the second time, 112 of 256.
TEST(PrefixReplay, CountsTheTokensThatAreCached) {
  const RequestTrace trace = trace_of({{1, 2, 3}, {4, 5, 6, 7}, {1, 2, 3, 8}, {4, 5, 6, 7, 9}});
  const PrefixReplay replay = replay_prefixes(trace, std::nullopt);
  EXPECT_EQ(replay.prompts, Tokens(256));
  EXPECT_EQ(replay.hits, Tokens(112));
  EXPECT_EQ(replay.kept, 9);
}

TEST(PrefixReplay, TheLastTokenIsComputed) {
  EXPECT_EQ(replay_prefixes(trace_of({{1}, {1}}), std::nullopt).hits, Tokens(15));
}

// In turn, a conversation goes to another replica each time; by prefix it stays.
TEST(PrefixReplay, RoutingByPrefixKeepsConversationsTogether) {
  const RequestTrace trace = trace_of({{1, 2}, {5, 6}, {7, 8}, {1, 2, 3}, {5, 6, 9}, {7, 8, 9}});
  EXPECT_EQ(replay_prefixes(trace, std::nullopt, 2).hits, Tokens(0));
  EXPECT_EQ(replay_prefixes(trace, std::nullopt, 2, PrefixRouting::by_prefix).hits, Tokens(6 * 16));
}

TEST(PrefixTree, RunsWithoutForksAreOneNode) {
  const auto tree = prefix_tree(trace_of({{1, 2, 3}, {1, 2, 4, 5}, {1, 2}}), 10);
  ASSERT_EQ(tree.size(), 3u);
  EXPECT_EQ(tree[0].blocks, 2);
  EXPECT_EQ(tree[0].requests, 3);
  EXPECT_EQ(tree[1].parent, 0u);
  EXPECT_EQ(tree[2].blocks, 2);
}

TEST(RequestTrace, ReadsLinesAndDocuments) {
  const auto lines = parse_request_trace(
      "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 1]}\n"
      "{\"timestamp\": 2000, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [0, 2]}\n",
      "trace");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->block, 512);
  EXPECT_EQ(lines->span, Seconds(2));
  EXPECT_EQ(lines->requests[1].blocks, (std::vector<std::int64_t>{0, 2}));
  const auto document = parse_request_trace(
      R"({"block_size": 64, "requests": [{"t": 0.5, "in": 100, "out": 7, "hash_ids": [1, 2]}]})", "trace");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->block, 64);
  EXPECT_EQ(document->requests[0].output, 7);
}

TEST(RequestTrace, FaultsHaveTheirLine) {
  EXPECT_EQ(
      parse_request_trace("{\"input_length\": 1, \"output_length\": 1}\n{\"input_length\": -1}\n", "t").error().where,
      "t:2");
  EXPECT_FALSE(parse_request_trace("", "t"));
  EXPECT_FALSE(parse_request_trace("[1]", "t"));
  EXPECT_FALSE(parse_request_trace("{\"requests\": 3}", "t"));
  EXPECT_FALSE(parse_request_trace("{\"input_length\": 1, \"output_length\": 1, \"hash_ids\": [\"a\"]}", "t"));
}

}  // namespace
}  // namespace assay::serving
