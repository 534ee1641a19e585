#include "assay/predict/serving/load/prefix_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace assay::serving {
namespace {

RequestTrace trace_of(const std::vector<std::vector<std::int64_t>>& prompts) {
  RequestTrace trace;
  trace.block = 16;
  for (const auto& blocks : prompts)
    trace.requests.push_back({16 * std::max<std::int64_t>(1, static_cast<std::int64_t>(blocks.size())), 1, blocks});
  return trace;
}

PrefixReplay replay(const RequestTrace& trace, std::optional<std::int64_t> blocks) {
  return PrefixReuse(PrefixTrie(trace)).with(blocks);
}

/// One cache as it is defined: all prefixes that it holds in a list by their last use, a prompt's first block foremost.
PrefixReplay replayed_by_hand(const RequestTrace& trace, std::size_t most) {
  std::vector<std::vector<std::int64_t>> held;
  PrefixReplay out;
  for (const TracedRequest& request : trace.requests) {
    std::vector<std::vector<std::int64_t>> prefixes;
    for (std::size_t i = 1; i <= request.blocks.size(); ++i)
      prefixes.emplace_back(request.blocks.begin(), request.blocks.begin() + static_cast<std::ptrdiff_t>(i));
    std::int64_t hits = 0;
    for (const auto& prefix : prefixes) hits += std::count(held.begin(), held.end(), prefix);
    std::erase_if(held, [&](const auto& one) { return std::count(prefixes.begin(), prefixes.end(), one) > 0; });
    held.insert(held.begin(), prefixes.begin(), prefixes.end());
    if (held.size() > most) out.evicted += static_cast<std::int64_t>(held.size() - most), held.resize(most);
    out.prompts += Tokens(static_cast<double>(request.prompt));
    out.hits += Tokens(static_cast<double>(std::min(hits * trace.block, request.prompt - 1)));
  }
  out.kept = std::ssize(held);
  return out;
}

/// A dozen short prompts of few different blocks.
RequestTrace random_trace() {
  std::vector<std::vector<std::int64_t>> prompts;
  for (int i = 0; i < 12; ++i)
    prompts.push_back(*rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 6),
                                                                     rc::gen::inRange<std::int64_t>(0, 3)));
  return trace_of(prompts);
}

TEST(PrefixTrie, PromptsShareWhatTheyBeginWith) {
  const PrefixTrie trie(trace_of({{1, 2, 3}, {1, 2, 4}, {2, 3}}));  // the last one has the same blocks, but not first
  EXPECT_EQ(trie.size(), 6);
  EXPECT_EQ(trie.path(0)[1], trie.path(1)[1]);
  EXPECT_NE(trie.path(0)[2], trie.path(1)[2]);
}

// {1, 2, 3}, {1, 4}, {1, 4, 5} on 4 blocks: 3 is the oldest end, and goes for 5. 1 is hit twice, 1 and 4 once.
TEST(PrefixReuse, EvictsTheEndsThatWereUsedLongestAgo) {
  const PrefixReplay four = replay(trace_of({{1, 2, 3}, {1, 4}, {1, 4, 5}}), 4);
  EXPECT_EQ(four.evicted, 1);
  EXPECT_EQ(four.hits, Tokens(16 + 32));
  EXPECT_EQ(replay(trace_of({{1, 2, 3}, {1, 4}, {1, 4, 5}, {1, 2, 3}}), 4).hits, Tokens(16 + 32 + 32));
}

TEST(PrefixReuse, APromptLongerThanTheCacheKeepsItsBeginning) {
  const PrefixReplay two = replay(trace_of({{1, 2, 3, 4}, {1, 2, 3, 4}}), 2);
  EXPECT_EQ(two.kept, 2);
  EXPECT_EQ(two.hits, Tokens(32));
}

RC_GTEST_PROP(PrefixReuse, OnePassGivesWhatCachesOfAllSizesHit, ()) {
  const RequestTrace trace = random_trace();
  const PrefixTrie trie(trace);
  const PrefixReuse reuse(trie);
  for (std::int64_t blocks = 0; blocks <= trie.size() + 1; ++blocks) {
    const PrefixReplay expected = replayed_by_hand(trace, static_cast<std::size_t>(blocks));
    for (const PrefixReplay& got : {reuse.with(blocks), replay_prefixes(trie, blocks, 1, PrefixRouting::in_turn),
                                    replay_prefixes(trie, blocks, 1, PrefixRouting::by_prefix)}) {
      RC_ASSERT(got.prompts == expected.prompts);
      RC_ASSERT(got.hits == expected.hits);
      RC_ASSERT(got.kept == expected.kept);
      RC_ASSERT(got.evicted == expected.evicted);
    }
  }
}

// Requests that come in turn to two caches are two traces.
RC_GTEST_PROP(PrefixReplay, ReplicasInTurnAreCachesOfTheirOwn, ()) {
  const RequestTrace trace = random_trace();
  const std::int64_t blocks = *rc::gen::inRange<std::int64_t>(1, 30);
  const PrefixReplay both = replay_prefixes(PrefixTrie(trace), blocks, 2, PrefixRouting::in_turn);
  RequestTrace halves[2];
  for (std::size_t i = 0; i < trace.requests.size(); ++i) halves[i % 2].requests.push_back(trace.requests[i]);
  Tokens hits(0);
  std::int64_t evicted = 0;
  for (RequestTrace& half : halves) {
    half.block = trace.block;
    const PrefixReplay one = replay(half, blocks);
    hits += one.hits, evicted += one.evicted;
  }
  RC_ASSERT(both.hits == hits);
  RC_ASSERT(both.evicted == evicted);
}

// Two conversations of 3 and 4 blocks, each asked again with one block more: 48 + 64 + 64 + 80 tokens, of which 3 and 4
// blocks are cached the second time, 112 of 256.
TEST(PrefixReplay, CountsTheTokensThatAreCached) {
  const RequestTrace trace = trace_of({{1, 2, 3}, {4, 5, 6, 7}, {1, 2, 3, 8}, {4, 5, 6, 7, 9}});
  const PrefixReplay all = replay(trace, std::nullopt);
  EXPECT_EQ(all.prompts, Tokens(256));
  EXPECT_EQ(all.hits, Tokens(112));
  EXPECT_EQ(all.kept, 9);
}

TEST(PrefixReplay, TheLastTokenIsComputed) { EXPECT_EQ(replay(trace_of({{1}, {1}}), std::nullopt).hits, Tokens(15)); }

// In turn, a conversation goes to another replica each time; by prefix it stays.
TEST(PrefixReplay, RoutingByPrefixKeepsConversationsTogether) {
  const PrefixTrie trie(trace_of({{1, 2}, {5, 6}, {7, 8}, {1, 2, 3}, {5, 6, 9}, {7, 8, 9}}));
  EXPECT_EQ(replay_prefixes(trie, std::nullopt, 2, PrefixRouting::in_turn).hits, Tokens(0));
  EXPECT_EQ(replay_prefixes(trie, std::nullopt, 2, PrefixRouting::by_prefix).hits, Tokens(6 * 16));
}

TEST(PrefixTrie, RunsWithoutForksAreOneNode) {
  const auto tree = PrefixTrie(trace_of({{1, 2, 3}, {1, 2, 4, 5}, {1, 2}})).runs(10);
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
      "t:2:21");
  EXPECT_FALSE(parse_request_trace("", "t"));
  EXPECT_FALSE(parse_request_trace("[1]", "t"));
  EXPECT_FALSE(parse_request_trace("{\"requests\": 3}", "t"));
  EXPECT_FALSE(parse_request_trace("{\"input_length\": 1, \"output_length\": 1, \"hash_ids\": [\"a\"]}", "t"));
}

}  // namespace
}  // namespace assay::serving
