#include "assay/hardware/chip.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace assay::hardware {
namespace {

template <class T>
Sourced<T> sourced(T value) {
  return {value, "chips/small.toml:1 (datasheet)", "", {}};
}

/// A chip of small numbers: 2 cores of 4 matrix units and 8 x 16 x 2 vector ALUs.
Chip small_chip() {
  Chip chip;
  chip.id = "small";
  chip.cores.count = sourced<std::int64_t>(2);
  chip.matrix_unit.count = sourced<std::int64_t>(4);
  chip.vector_unit = {sourced<std::int64_t>(8),
                      sourced<std::int64_t>(16),
                      sourced<std::int64_t>(2),
                      sourced(false),
                      sourced(2_GHz),
                      {},
                      {},
                      {},
                      {},
                      {}};
  chip.peak[static_cast<std::size_t>(Dtype::bf16)] = sourced(100_TFLOP_per_s);
  chip.peak[static_cast<std::size_t>(Dtype::int8)] = sourced(200_TFLOP_per_s);
  chip.memory = {{"hbm", sourced(16_GB), sourced(1_TB_per_s), {}},
                 {"smem", sourced(64_KiB), sourced(3_TB_per_s), "core"},
                 {"l2", sourced(8_MiB), {}, "chip"}};
  chip.host.pcie = sourced(32_GB_per_s);
  return chip;
}

ScaleUp network(std::string kind) {
  ScaleUp up;
  up.kind = std::move(kind);
  up.links = sourced<std::int64_t>(6);
  up.link_bandwidth = sourced(45_GB_per_s);
  return up;
}

std::vector<std::string> roof_names(const Chip& chip) {
  std::vector<std::string> names;
  for (const MemoryRoof& roof : memory_roofs(chip)) names.push_back(roof.name);
  return names;
}

TEST(VectorUnit, OneOperationPerAluAndCycle) {
  // 2 cores x 8 partitions x 16 lanes x 2 ALUs = 512; x 2 GHz = 1.024 TFLOP/s.
  const Chip chip = small_chip();
  EXPECT_EQ(vector_alus(chip), 512);
  EXPECT_EQ(vector_rate(chip).value, 1.024_TFLOP_per_s);
  EXPECT_NE(vector_rate(chip).source.find("chips/small.toml:1"), std::string::npos);
}

TEST(VectorUnit, AFusedMultiplyAddCountsTwice) {
  Chip chip = small_chip();
  EXPECT_EQ(vector_fma_rate(chip).value, vector_rate(chip).value);
  chip.vector_unit.fma.value = true;
  EXPECT_EQ(vector_fma_rate(chip).value, 2.048_TFLOP_per_s);
  EXPECT_EQ(vector_rate(chip).value, 1.024_TFLOP_per_s);
}

TEST(MatrixUnit, ASystolicArrayDoesTwoOperationsPerCell) {
  Chip chip = small_chip();
  EXPECT_FALSE(matrix_flops_per_cycle(chip));
  chip.matrix_unit.rows = sourced<std::int64_t>(128);
  chip.matrix_unit.columns = sourced<std::int64_t>(64);
  EXPECT_EQ(matrix_flops_per_cycle(chip)->value, 16384_FLOP);  // 2 x 128 x 64
}

TEST(MatrixUnit, AStatedRateWinsOverTheShape) {
  Chip chip = small_chip();
  chip.matrix_unit.rows = chip.matrix_unit.columns = sourced<std::int64_t>(128);
  chip.matrix_unit.flops_per_cycle = sourced(1024_FLOP);
  EXPECT_EQ(matrix_flops_per_cycle(chip)->value, 1024_FLOP);
}

TEST(PeakRate, IsThatOfTheDtype) {
  EXPECT_EQ(peak_rate(small_chip(), Dtype::int8, "--compute")->value, 200_TFLOP_per_s);
  EXPECT_EQ(peak_rate(small_chip(), Dtype::bf16, "--compute")->source, "chips/small.toml:1 (datasheet)");
}

TEST(PeakRate, AMissingFormatNamesThoseThereAre) {
  const auto peak = peak_rate(small_chip(), Dtype::fp4, "--compute");
  ASSERT_FALSE(peak);
  EXPECT_EQ(peak.error().where, "--compute");
  EXPECT_EQ(peak.error().what, "the matrix unit of small has no fp4 rate");
  EXPECT_EQ(peak.error().hint, "it computes in bf16, int8");
}

TEST(Egress, IsAllLinksOneWay) {
  Chip chip = small_chip();
  EXPECT_FALSE(scale_up_egress(chip));
  chip.network.scale_up = network("torus");
  EXPECT_EQ(scale_up_egress(chip)->value, 270_GB_per_s);  // 6 x 45
  EXPECT_EQ(scale_up_egress(chip)->source, "6 links x 45 GB/s, chips/small.toml:1 (datasheet)");
}

TEST(MemoryRoofs, AreThoseWithABandwidth) {
  EXPECT_EQ(roof_names(small_chip()), (std::vector<std::string>{"hbm", "smem", "pcie"}));
}

TEST(MemoryRoofs, FiguresPerCoreAreOfTheWholeChip) {
  EXPECT_EQ(memory_roof(small_chip(), "smem", "--memory")->bandwidth.value, 6_TB_per_s);  // 2 cores x 3
  EXPECT_EQ(memory_roof(small_chip(), "hbm", "--memory")->bandwidth.value, 1_TB_per_s);
}

TEST(MemoryRoofs, ATorusIsReadOverOneLinkAndASwitchOverAll) {
  Chip chip = small_chip();
  chip.network.scale_up = network("torus");
  EXPECT_EQ(memory_roof(chip, "ici", "")->bandwidth.value, 45_GB_per_s);
  EXPECT_EQ(memory_roof(chip, "link", "")->name, "ici");
  EXPECT_FALSE(memory_roof(chip, "nvlink", ""));
  chip.network.scale_up = network("switched");
  EXPECT_EQ(memory_roof(chip, "nvlink", "")->bandwidth.value, 270_GB_per_s);
  EXPECT_EQ(memory_roof(chip, "scale-up", "")->name, "nvlink");
}

TEST(MemoryRoofs, TheDataCentreHasSeveralNames) {
  Chip chip = small_chip();
  chip.network.scale_out.emplace().bandwidth = sourced(12.5_GB_per_s);
  for (const char* name : {"dcn", "scale-out", "network", "ib"})
    EXPECT_EQ(memory_roof(chip, name, "")->bandwidth.value, 12.5_GB_per_s) << name;
  EXPECT_EQ(memory_roof(chip, "host", "")->name, "pcie");
}

TEST(MemoryRoofs, AnUnknownLevelNamesThoseThereAre) {
  for (const char* name : {"vmem", "l2", "", "nvlink"}) {
    const auto roof = memory_roof(small_chip(), name, "--memory");
    ASSERT_FALSE(roof) << name;
    EXPECT_EQ(roof.error().hint, "it has hbm, smem, pcie");
  }
}

RC_GTEST_PROP(VectorUnit, RatesScaleWithTheCores, ()) {
  Chip chip = small_chip();
  const FlopsPerSecond two = vector_fma_rate(chip).value;
  const auto factor = *rc::gen::inRange<std::int64_t>(1, 1000);
  chip.cores.count.value *= factor;
  RC_ASSERT(vector_alus(chip) == 512 * factor);
  RC_ASSERT(std::abs(vector_fma_rate(chip).value / two - static_cast<double>(factor)) <
            1e-12 * static_cast<double>(factor));
}

}  // namespace
}  // namespace assay::hardware
