#include <gtest/gtest.h>

#include "assay/profile/trace/bytes.h"
#include "assay/profile/trace/readers.h"
#include "assay/profile/trace/summary.h"

namespace assay::trace {
namespace {

const Vocabulary& names_of_xla() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **vocabulary_of(catalogue);
}

// Two runs of a module: a loop around a fusion of 60 us and an all-reduce of 40 us, and a copy of 20 us beside the
// first.
TEST(XPlane, ReadsLinesOfADevice) {
  const auto bytes = file_bytes("tests/data/profiles/two-steps.xplane.pb", "test");
  const auto trace = read_profile(*bytes, "two-steps.xplane.pb", names_of_xla());
  ASSERT_TRUE(trace) << trace.error().what;
  const auto devices = summarize(*trace, names_of_xla());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "TPU v6 Lite");
  EXPECT_EQ(names_of_xla().chip(devices[0].name), "tpu-v6e");
  const DeviceTimes& times = devices[0].times;
  EXPECT_DOUBLE_EQ(times.total.in(1_us), 220.0);
  EXPECT_DOUBLE_EQ(times.computation.in(1_us), 120.0);  // loops are not counted beside what they run
  EXPECT_DOUBLE_EQ(times.communication.in(1_us), 80.0);
  EXPECT_DOUBLE_EQ(times.copies.in(1_us), 20.0);
  EXPECT_DOUBLE_EQ(times.exposed_copies.in(1_us), 0.0);
  ASSERT_EQ(devices[0].steps.size(), 2u);
  EXPECT_EQ(devices[0].steps[0].name, "jit_step");
  EXPECT_DOUBLE_EQ(devices[0].steps[1].time.in(1_us), 120.0);
  EXPECT_DOUBLE_EQ(devices[0].operations[0].work->flops.value(), 2.0 * 1024 * 1024 * 1024);
}

TEST(XPlane, EveryTruncationIsAnErrorWithItsPlace) {
  const auto bytes = file_bytes("tests/data/profiles/two-steps.xplane.pb", "test");
  for (std::size_t size = 20; size + 4 < bytes->size(); ++size) {
    const auto trace = read_profile(std::string_view(*bytes).substr(0, size), "cut.pb", names_of_xla());
    ASSERT_FALSE(trace) << size;
    EXPECT_EQ(trace.error().where.substr(0, 6), "cut.pb") << size;
    EXPECT_FALSE(trace.error().hint.empty());
  }
}

}  // namespace
}  // namespace assay::trace
