#include "assay/predict/serving/load/paged_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/base/index.h"

namespace assay::serving {
namespace {

TEST(PagedCache, TokensAreInThePagesOfTheTable) {
  PagedCache cache(4);
  cache.add(1, {1, 2, 3, 4, 5});
  cache.append(1, 6);
  ASSERT_EQ(cache.tables().at(1), (std::vector<int>{0, 1}));
  EXPECT_EQ(cache.pages()[1].tokens, (std::vector<int>{5, 6}));
  EXPECT_DOUBLE_EQ(cache.unused_share(), 2.0 / 8.0);
}

TEST(PagedCache, EqualBeginningsAreSharedUntilOneWrites) {
  PagedCache cache(4);
  cache.add(1, {1, 2, 3, 4, 5});
  cache.add(2, {1, 2, 3, 4, 5});
  EXPECT_EQ(cache.in_use(), 2);
  EXPECT_EQ(cache.shared(), 2);
  cache.append(2, 9);  // the page with 5 is copied, the full one stays shared
  EXPECT_EQ(cache.copies(), 1);
  EXPECT_EQ(cache.tables().at(1), (std::vector<int>{0, 1}));
  EXPECT_EQ(cache.tables().at(2), (std::vector<int>{0, 2}));
  cache.append(1, 8);  // alone on its page now
  EXPECT_EQ(cache.copies(), 1);
}

TEST(PagedCache, TheSameTokensAfterOthersAreNotShared) {
  PagedCache cache(2);
  cache.add(1, {1, 2, 3, 4});
  cache.add(2, {7, 8, 3, 4});
  EXPECT_EQ(cache.shared(), 0);
}

TEST(PagedCache, PagesOfWhoLeavesAreUsedAgain) {
  PagedCache cache(2);
  cache.add(1, {1, 2});
  cache.add(2, {3, 4});
  cache.remove(1);
  EXPECT_EQ(cache.in_use(), 1);
  cache.add(3, {5});
  EXPECT_EQ(cache.tables().at(3), std::vector<int>{0});
}

RC_GTEST_PROP(PagedCacheLaw, EverySequenceReadsItsOwnTokens, ()) {
  const auto page = *rc::gen::inRange<std::int64_t>(1, 6);
  PagedCache cache(page);
  std::map<std::int64_t, std::vector<int>> sequences;
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto which = *rc::gen::inRange<std::int64_t>(0, 5);
    if (!sequences.contains(which)) {
      sequences[which] = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 2)));
      cache.add(which, sequences[which]);
    } else if (*rc::gen::inRange(0, 6) == 0) {
      sequences.erase(which);
      cache.remove(which);
    } else {
      sequences[which].push_back(*rc::gen::inRange(0, 2));
      cache.append(which, sequences[which].back());
    }
    for (const auto& [sequence, tokens] : sequences) {
      std::vector<int> read;
      for (const int one : cache.tables().at(sequence)) {
        const auto& some = cache.pages()[at(one)].tokens;
        read.insert(read.end(), some.begin(), some.end());
      }
      RC_ASSERT(read == tokens);
    }
  }
}

}  // namespace
}  // namespace assay::serving
