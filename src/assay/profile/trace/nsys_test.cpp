#include <gtest/gtest.h>

#include "assay/profile/trace/bytes.h"
#include "assay/profile/trace/readers.h"
#include "assay/profile/trace/summary.h"

namespace assay::trace {
namespace {

const Vocabulary& names_for_nsys() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **vocabulary_of(catalogue);
}

// Kernels 10 to 30 and 90 to 110 us, a collective 40 to 60, a copy 50 to 70; launches at 5, 35, 37 and 80.
TEST(Nsys, ReadsTablesOfAnExport) {
  const auto bytes = file_bytes("tests/data/profiles/two-kernels.sqlite", "test");
  const auto trace = read_profile(*bytes, "two-kernels.sqlite", names_for_nsys());
  ASSERT_TRUE(trace) << trace.error().what;
  const auto devices = summarize(*trace, names_for_nsys());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices[0].launched, 4);
  EXPECT_EQ(devices[0].graph_events, 1);
  EXPECT_DOUBLE_EQ(devices[0].times.total.in(1_us), 100.0);
  EXPECT_DOUBLE_EQ(devices[0].times.computation.in(1_us), 40.0);
  EXPECT_DOUBLE_EQ(devices[0].times.exposed_communication.in(1_us), 20.0);
  EXPECT_DOUBLE_EQ(devices[0].times.exposed_copies.in(1_us), 10.0);
  EXPECT_DOUBLE_EQ(devices[0].host_bound.in(1_us), 30.0);
}

TEST(Nsys, DamageIsAnErrorWithARemedy) {
  const auto bytes = file_bytes("tests/data/profiles/two-kernels.sqlite", "test");
  const auto cut = read_profile(std::string_view(*bytes).substr(0, bytes->size() / 2), "x.sqlite", names_for_nsys());
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().hint.find("nsys export"), std::string::npos);
  EXPECT_FALSE(read_profile(std::string_view(*bytes).substr(0, 40), "x.sqlite", names_for_nsys()));
}

}  // namespace
}  // namespace assay::trace
