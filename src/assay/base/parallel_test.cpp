#include "assay/base/parallel.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>

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

TEST(ParallelFor, RunsInPlaceWhereAThreadIsOneOfMany) {
  std::set<std::thread::id> threads;
  const OneOfMany guard;
  parallel_for(1000, 1, [&](std::size_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

}  // namespace
}  // namespace assay
