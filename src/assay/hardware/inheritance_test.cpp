#include "assay/hardware/inheritance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/hardware/catalogue.h"
#include "assay/testing/catalogue.h"

namespace assay::hardware {
namespace {

using testing::catalogue;

std::size_t of(Dtype dtype) { return static_cast<std::size_t>(dtype); }

Catalogue with(const char* path, const char* text) {
  Catalogue own = catalogue();
  own.put(path, text);
  return own;
}

TEST(Inheritance, AFileSaysWhatDiffers) {
  const Catalogue own = with("chips/mine.toml", "base = \"h100-sxm\"\n[memory.hbm]\nbandwidth = \"5 TB/s\"\n");
  const auto mine = own.chip("mine", "test");
  ASSERT_TRUE(mine) << mine.error().what;
  const Chip h100 = *catalogue().chip("h100-sxm", "test");
  EXPECT_EQ(mine->id, "mine");
  EXPECT_EQ(mine->hbm().bandwidth->value, 5_TB_per_s);
  EXPECT_EQ(mine->hbm().bandwidth->source, "chips/mine.toml:3 (your own)");
  EXPECT_EQ(mine->hbm().capacity.value, h100.hbm().capacity.value);
  EXPECT_EQ(mine->hbm().capacity.source, h100.hbm().capacity.source);
  EXPECT_EQ(mine->peak[of(Dtype::bf16)]->value, h100.peak[of(Dtype::bf16)]->value);
}

TEST(Inheritance, ABaseMayHaveABase) {
  Catalogue own = with("chips/a.toml", "base = \"tpu-v5p\"\n[matrix_unit]\ncount = 8\n");
  own.put("chips/b.toml", "base = \"a\"\n[matrix_unit]\nclock = \"3.5 GHz\"\n");
  const Chip v5p = *own.chip("tpu-v5p", "test");
  const auto b = own.chip("b", "test");
  ASSERT_TRUE(b) << b.error().what;
  EXPECT_EQ(b->peak[of(Dtype::bf16)]->value, 4.0 * v5p.peak[of(Dtype::bf16)]->value);
  EXPECT_EQ(b->base, "tpu-v5p");
}

TEST(Inheritance, TheCalibrationIsThatOfTheBase) {
  const Catalogue own = with("chips/mine.toml", "base = \"h200-sxm\"\n");
  const auto mine = calibration_of(*own.chip("mine", "test"), own);
  const auto base = calibration_of(*own.chip("h200-sxm", "test"), own);
  ASSERT_TRUE(mine && *mine && base && *base);
  EXPECT_EQ((*mine)->basis, (*base)->basis);
}

TEST(Inheritance, AnUnknownBaseHasNearNames) {
  const auto found = with("chips/mine.toml", "base = \"h100-smx\"\n").chip("mine", "test");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().where, "chips/mine.toml:1:1: base");
  EXPECT_NE(found.error().hint.find("h100-sxm"), std::string::npos);
}

TEST(Inheritance, CyclesAreNamed) {
  Catalogue own = with("chips/a.toml", "base = \"b\"\n");
  own.put("chips/b.toml", "base = \"a\"\n");
  const auto found = own.chip("a", "test");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what, "the bases form a cycle: a -> b -> a");
  EXPECT_FALSE(with("chips/a.toml", "base = \"a\"\n").chip("a", "test"));
  EXPECT_FALSE(with("chips/a.toml", "base = 3\n").chip("a", "test"));
}

TEST(Inheritance, BasesAreFew) {
  Catalogue own = with("chips/c0.toml", "base = \"h100-sxm\"\n");
  for (int i = 1; i < 40; ++i) own.put(fmt::format("chips/c{}.toml", i), fmt::format("base = \"c{}\"\n", i - 1));
  EXPECT_TRUE(own.chip("c30", "test"));
  const auto found = own.chip("c39", "test");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what, "more than 32 bases stand one above the other");
}

TEST(Inheritance, AFaultOfTheOwnFileIsReportedThere) {
  const auto found =
      with("chips/mine.toml", "base = \"h100-sxm\"\n[memory.hbm]\nbandwith = \"5 TB/s\"\n").chip("mine", "test");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().where, "chips/mine.toml:3:1: memory.hbm.bandwith");
}

TEST(DerivedPeaks, FollowTheUnits) {
  const Chip v5p = *catalogue().chip("tpu-v5p", "test");
  for (const auto& [path, value] : {std::pair{"matrix_unit.rows", "256"}, std::pair{"matrix_unit.columns", "256"},
                                    std::pair{"matrix_unit.count", "8"}, std::pair{"matrix_unit.clock", "3.5 GHz"},
                                    std::pair{"cores.count", "4"}}) {
    const auto set = catalogue().chip("tpu-v5p", "test", {{path, value}});
    ASSERT_TRUE(set) << path;
    EXPECT_EQ(set->peak[of(Dtype::bf16)]->value, 2.0 * v5p.peak[of(Dtype::bf16)]->value) << path;
    EXPECT_EQ(set->peak[of(Dtype::int8)]->value, 2.0 * v5p.peak[of(Dtype::int8)]->value) << path;
  }
  const auto array = catalogue().chip("tpu-v5p", "test", {{"matrix_unit.rows", "256"}});
  EXPECT_EQ(array->matrix_unit.tile_k->value, 256);
  EXPECT_EQ(array->matrix_unit.tile_n->value, 128);
}

TEST(DerivedPeaks, ThatAreStatedStay) {
  const auto set = catalogue().chip("tpu-v5p", "test", {{"matrix_unit.rows", "256"}, {"peak.bf16", "459 TFLOP/s"}});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->peak[of(Dtype::bf16)]->value, 459_TFLOP_per_s);
  EXPECT_EQ(set->peak[of(Dtype::int8)]->value, 2.0 * 918_TFLOP_per_s);
}

}  // namespace
}  // namespace assay::hardware
