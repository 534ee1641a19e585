#include "assay/predict/kernel/measured/harness.h"

#include <gtest/gtest.h>

namespace assay::kernel {
namespace {

TEST(Harness, ReadsBackAndRefusesWhatItDoesNotKnow) {
  Harnesses harnesses;
  Harness& h = harnesses["mine"];
  h.launch[0] = 6.2_us, h.gap = 200_us, h.split_k = false, h.dirty = 20_MB, h.evicts = 0.25;
  h.quantise[{Dtype::fp8, "Ada Lovelace"}] = {9_us, 0.0005_us, 2};
  const std::string source = "[source.fit]\ntitle = \"t\"\n";
  const auto read = read_harnesses(source + harness_text(harnesses, "fit"), "h.toml");
  ASSERT_TRUE(read) << read.error().where << read.error().what;
  EXPECT_NEAR(read->at("mine").launch[0].in(1_us), 6.2, 1e-9);
  EXPECT_FALSE(read->at("mine").split_k);
  // A quarter of what is read pushes out what was written, until 20 MB have gone.
  EXPECT_NEAR(read->at("mine").moved(40_MB).in(1_MB), 50.0, 1e-9);
  EXPECT_NEAR(read->at("mine").moved(1_GB).in(1_MB), 1020.0, 1e-9);
  EXPECT_NEAR(read->at("mine").quantise.at({Dtype::fp8, "Ada Lovelace"}).element.in(1_us), 0.0005, 1e-9);
  const auto wrong = read_harnesses("[harness.a]\ngap = 3\nspeed = 1\n", "h.toml");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().also.size(), 3u);
}

TEST(MeasuredWay, FlushingAddsDirtyLinesAndAStreamHasNoPauses) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Chip chip = *catalogue.chip("h200-sxm", "test");
  const hardware::Calibration fits = (*hardware::calibration_of(chip, catalogue))->values;
  const auto way = [&](std::string_view name) { return **measured_way(name, fits, catalogue, "--measured"); };
  EXPECT_GT(way("flushed").harness.dirty, 1_MB);
  EXPECT_EQ(way("cold").harness.dirty, Bytes(0));
  EXPECT_EQ(way("alone").harness.launch, way("cold").harness.launch);
  EXPECT_EQ(way("in-a-stream").harness.gap, Seconds(0));
  EXPECT_TRUE(way("in-a-stream").sustained);
  // A general way is the chip's; a table has its own.
  EXPECT_EQ(way("cold").harness.gap, fits.burst->gap);
  EXPECT_NE(way("aiconfigurator").harness.gap, fits.burst->gap);
}

TEST(MeasuredWay, UnknownNamesAnswerWithTheNearest) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto way = measured_way("flushd", {}, catalogue, "--measured");
  ASSERT_FALSE(way);
  EXPECT_NE(way.error().hint.find("flushed"), std::string::npos);
  EXPECT_FALSE(*measured_way("cold", {}, catalogue, "--measured"));  // no regime, no way
}

}  // namespace
}  // namespace assay::kernel
