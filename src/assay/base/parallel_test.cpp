#include "assay/base/parallel.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace assay {
namespace {

TEST(ParallelFor, DoesEverythingOnce) {
  for (const std::size_t count : {0, 1, 7, 1000}) {
    std::vector<int> times(count);
    parallel_for(count, 10, [&](std::size_t i) { ++times[i]; });
    EXPECT_EQ(times, std::vector<int>(count, 1));
  }
}

TEST(ParallelFor, HandsOnWhatIsThrown) {
  for (const std::size_t bad : {0, 1, 50, 99})
    EXPECT_THROW(parallel_for(100, 1,
                              [&](std::size_t i) {
                                if (i == bad) throw std::runtime_error("bad");
                              }),
                 std::runtime_error);
}

}  // namespace
}  // namespace assay
