#include "assay/hardware/chip_figures.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"

namespace assay::hardware {
namespace {

Chip catalogue_chip(const char* id) { return *Catalogue::builtin().chip(id, "test"); }

TEST(ReferenceDtype, IsBf16WhereTheChipHasIt) {
  Chip chip = catalogue_chip("h100-sxm");
  EXPECT_EQ(reference_dtype(chip), Dtype::bf16);
  chip.peak[static_cast<std::size_t>(Dtype::bf16)].reset();
  chip.peak[static_cast<std::size_t>(Dtype::fp16)].reset();
  chip.peak[static_cast<std::size_t>(Dtype::fp32)].reset();
  chip.peak[static_cast<std::size_t>(Dtype::fp64)].reset();
  ASSERT_TRUE(chip.peak[static_cast<std::size_t>(reference_dtype(chip))]);
}

// Four 128 x 128 arrays per core at 1.5 GHz make up 197 TFLOP/s: 2 x 4 x 16384 x 1.5e9.
TEST(MatrixFigures, UnitsMakeUpThePeak) {
  const MatrixFigures figures = matrix_figures(catalogue_chip("tpu-v5e"));
  ASSERT_TRUE(figures.rate_from_units && figures.cells);
  EXPECT_EQ(*figures.cells, 128 * 128);
  EXPECT_NEAR(figures.rate_from_units->value(), 197e12, 1e12);
}

TEST(CriticalIntensities, ScaleWithTheBandwidth) {
  const Chip chip = catalogue_chip("tpu-v5e");
  const std::vector<CriticalIntensity> all = critical_intensities(chip);
  for (const CriticalIntensity& each : all) {
    EXPECT_NEAR(each.vector * each.over_hbm / all.front().vector, 1.0, 1e-12) << each.memory;
    EXPECT_EQ(each.ring.has_value(), each.memory == "ici");
  }
}

TEST(ScaleUpFigures, AreThoseOfTheLinks) {
  const Chip chip = catalogue_chip("tpu-v5e");
  const auto figures = scale_up_figures(chip);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->link_both_ways, 2.0 * chip.network.scale_up->link_bandwidth.value);
  EXPECT_EQ(figures->pod_chips, 256);
}

}  // namespace
}  // namespace assay::hardware
