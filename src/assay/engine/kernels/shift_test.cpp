#include "assay/engine/kernels/shift.h"

#include <gtest/gtest.h>

#include <span>

namespace assay::engine {
namespace {

TEST(Shift, PartsOfASequenceAreShiftedAsAWhole) {
  const Array x = random_reals({2, 6, 3}, 1);
  const Array whole = shifted(x, nullptr, 0);
  const std::vector<Array> ends{edge(part(x, 1, 0, 3)), edge(part(x, 1, 3, 3))};
  const Array edges = joined(ends, 1);
  EXPECT_EQ(shifted(part(x, 1, 0, 3), &edges, 0), part(whole, 1, 0, 3));
  EXPECT_EQ(shifted(part(x, 1, 3, 3), &edges, 1), part(whole, 1, 3, 3));
  // Token by token, as serving does.
  Array last;
  for (std::int64_t t = 0; t < 6; ++t)
    EXPECT_EQ(shifted(part(x, 1, t, 1), nullptr, 0, &last), part(whole, 1, t, 1)) << t;
}

}  // namespace
}  // namespace assay::engine
