#include "assay/engine/array.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay::engine {
namespace {

TEST(Array, PartsJoinAgain) {
  const Array a = random_reals({4, 5, 3}, 1);
  for (std::size_t dim = 0; dim < 3; ++dim) {
    const std::vector<Array> parts{part(a, dim, 0, 2), part(a, dim, 2, a.shape[dim] - 2)};
    EXPECT_EQ(joined(parts, dim), a);
  }
}

TEST(Array, TransposingTwiceIsTheSame) {
  const Array a = random_reals({2, 3, 4}, 1);
  const std::vector<std::size_t> order{2, 0, 1}, inverse{1, 2, 0};
  const Array turned = transposed(a, order);
  EXPECT_EQ(turned.shape, (Shape{4, 2, 3}));
  EXPECT_EQ(turned.values[1 * 6 + 1 * 3 + 2], a.values[1 * 12 + 2 * 4 + 1]);
  EXPECT_EQ(transposed(turned, inverse), a);
}

TEST(Array, RandomNumbersAreTheSameEverywhere) {
  EXPECT_EQ(random_integers({8}, 1), random_integers({8}, 1));
  EXPECT_NE(random_integers({8}, 1), random_integers({8}, 2));
  for (double value : random_integers({1000}, 3).values) EXPECT_TRUE(value >= -4 && value <= 4);
  for (double value : random_reals({1000}, 3).values) EXPECT_TRUE(value >= -1 && value <= 1);
}

TEST(Array, WhatIsNotANumberDiffers) {
  const Array a{{1}, {0.0}}, b{{1}, {std::numeric_limits<double>::quiet_NaN()}}, c{{2}, {0.0, 0.0}};
  EXPECT_EQ(largest_difference(a, a), 0.0);
  EXPECT_EQ(largest_difference(a, b), std::numeric_limits<double>::infinity());
  EXPECT_EQ(largest_difference(a, c), std::numeric_limits<double>::infinity());
}

TEST(Array, ChunksCoverEverythingOnce) {
  for (std::int64_t size = 0; size < 12; ++size) {
    for (std::int64_t ways = 1; ways < 6; ++ways) {
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < ways; ++i) {
        const Chunk at = chunk(size, block_size(size, ways), i);
        EXPECT_EQ(at.start, next);
        next += at.count;
      }
      EXPECT_EQ(next, size);
    }
  }
}

}  // namespace
}  // namespace assay::engine
