#include "assay/predict/serving/load/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::serving {
namespace {

using Path = std::vector<std::int64_t>;

// 8 pages, 2 a block. The first prompt has blocks 1 2 3, the second 1 2 4: three and then four blocks.
TEST(BlockPool, PromptsThatBeginAlikeShareBlocks) {
  BlockPool pool(8, 2);
  pool.hold(Path{1, 2, 3}, 0);
  EXPECT_EQ(pool.cached(Path{1, 2, 4}), 2U);
  pool.hold(Path{1, 2, 4}, 0);
  EXPECT_EQ(pool.held(), 8);
  EXPECT_FALSE(pool.has_room(Path{1}, 1));
  EXPECT_TRUE(pool.has_room(Path{1}, 0));
}

TEST(BlockPool, TheEndOfThePromptUsedLongestAgoGoesFirst) {
  BlockPool pool(8, 2);
  for (const Path& path : {Path{1, 2}, Path{3, 4}}) pool.hold(path, 0), pool.release(path, 0);
  EXPECT_EQ(pool.held(), 0);
  EXPECT_EQ(pool.taken(), 8);
  pool.hold(Path{}, 1);
  EXPECT_EQ(pool.cached(Path{1, 2}), 1U);
  EXPECT_EQ(pool.cached(Path{3, 4}), 2U);
  EXPECT_EQ(pool.evicted(), 1);
}

TEST(BlockPool, WhatASequenceLeavesIsKeptUntilItsRoomIsNeeded) {
  BlockPool pool(8, 2);
  pool.hold(Path{}, 8);
  pool.release(Path{}, 8);
  pool.keep(-100, 4);
  EXPECT_EQ(pool.kept(-100, 4), 4);
  pool.hold(Path{}, 3);  // takes the last two blocks
  EXPECT_EQ(pool.take_back(-100, 4), 2);
  EXPECT_EQ(pool.taken(), 3);
}

RC_GTEST_PROP(BlockPool, WhatIsReleasedIsNoLongerHeld, ()) {
  const auto pages = *rc::gen::inRange<std::int64_t>(20, 60);
  BlockPool pool(pages, 2);
  std::vector<std::pair<Path, std::int64_t>> held;
  for (int i = 0; i < 100; ++i) {
    if (!held.empty() && *rc::gen::arbitrary<bool>()) {
      pool.release(held.back().first, held.back().second);
      held.pop_back();
      continue;
    }
    // Paths of a trie: a block's number says what comes before it.
    Path path;
    std::int64_t node = 0;
    for (auto n = *rc::gen::inRange(0, 5); n > 0; --n) path.push_back(node = 3 * node + *rc::gen::inRange(1, 3));
    const auto own = *rc::gen::inRange<std::int64_t>(0, 5);
    if (!pool.has_room(path, own)) continue;
    pool.hold(path, own);
    held.emplace_back(path, own);
    RC_ASSERT(pool.held() <= pool.taken() && pool.taken() <= pages);
    RC_ASSERT(pool.cached(path) == path.size());
  }
  for (const auto& [path, own] : held) pool.release(path, own);
  RC_ASSERT(pool.held() == 0);
}

}  // namespace
}  // namespace assay::serving
