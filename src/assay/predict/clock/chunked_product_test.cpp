#include "assay/predict/clock/chunked_product.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace assay::clock {
namespace {

Seconds in_chunks(bool gathers, std::int64_t chunks, Seconds product, Seconds collective) {
  NamedItems out;
  add_chunks(gathers, chunks, product, collective, out.add({}, "nothing before"), out);
  return totals(out.items).whole;
}

// Four chunks of 1 s, three hops of 1 s: each arrives just when the one before is done, so the product takes its 4 s.
TEST(ChunkedProduct, HopsHideBehindProductsOfTheirLength) {
  EXPECT_EQ(in_chunks(true, 4, Seconds(4), Seconds(3)), Seconds(4));
  EXPECT_EQ(in_chunks(false, 4, Seconds(4), Seconds(3)), Seconds(4));
}

// Three hops of 4 s: the last chunk arrives after 12 s and is then multiplied in 1 s.
TEST(ChunkedProduct, ASlowCollectiveLeavesOneChunkExposed) {
  EXPECT_EQ(in_chunks(true, 4, Seconds(4), Seconds(12)), Seconds(13));
  EXPECT_EQ(in_chunks(false, 4, Seconds(4), Seconds(12)), Seconds(13));
}

TEST(ChunkedProduct, OneDeviceHasNothingToMove) { EXPECT_EQ(in_chunks(true, 1, Seconds(2), Seconds(5)), Seconds(2)); }

RC_GTEST_PROP(ChunkedProductLaw, LiesBetweenTheLargerAndTheSum, ()) {
  const auto chunks = *rc::gen::inRange<std::int64_t>(2, 64);
  const Seconds product(*rc::gen::inRange(0, 1000)), collective(*rc::gen::inRange(0, 1000));
  for (const bool gathers : {true, false}) {
    const Seconds end = in_chunks(gathers, chunks, product, collective);
    RC_ASSERT(end.value() >= std::max(product, collective).value() * (1.0 - 1e-12));
    RC_ASSERT(end.value() <= (product + collective).value() * (1.0 + 1e-12));
  }
}

}  // namespace
}  // namespace assay::clock
