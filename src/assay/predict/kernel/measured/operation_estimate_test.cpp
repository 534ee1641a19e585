#include "assay/predict/kernel/measured/operation_estimate.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"

namespace assay::kernel {
namespace {

struct OnChip {
  hardware::Chip chip;
  OperationSetting setting;

  explicit OnChip(const char* id, Dtype compute = Dtype::bf16)
      : chip(*hardware::Catalogue::builtin().chip(id, "test")) {
    setting.compute = compute;
    setting.peak = *hardware::peak_rate(chip, compute, "test");
    setting.hbm = *chip.hbm().bandwidth;
    const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
    const auto calibration = *hardware::calibration_of(chip, catalogue);
    setting.way = **measured_way("flushed", calibration->values, catalogue, "test");
  }
  std::optional<OperationEstimate> estimate(const roofline::Operation& operation) const {
    auto calibration = *hardware::calibration_of(chip, hardware::Catalogue::builtin());
    return OperationEstimate::make(chip, std::move(*calibration), {&operation, 1}, setting);
  }
};

roofline::Operation read(const char* text) { return *roofline::parse_operation(text, "test"); }

TEST(OperationEstimate, TheDerivationIsTheFittedTime) {
  const OnChip h200("h200-sxm");
  for (const char* text :
       {"bf16[4096,8192] @ bf16[8192,8192]", "bf16[16,8192] @ bf16[8192,8192]", "softmax(bf16[4096,4096])",
        "add(bf16[1Mi])", "adamw(bf16[1Mi])", "grouped(bf16[4096,2048] @ bf16[64,2048,1408])",
        "attention(bf16[2,32,4096,128], bf16[2,8,4096,128], causal)",
        "attention_backward(bf16[2,32,4096,128], bf16[2,8,4096,128], causal)",
        "attention(bf16[64,32,1,128], bf16[64,8,4096,128])"}) {
    const roofline::Operation operation = read(text);
    const auto estimate = h200.estimate(operation);
    ASSERT_TRUE(estimate) << text;
    Ledger ledger;
    const double derived = estimate->traced(Traced{&ledger}, operation).value();
    EXPECT_NEAR(derived / estimate->fitted(operation).value(), 1.0, 1e-9) << text;
  }
}

TEST(OperationEstimate, IsNeverBelowTheBound) {
  const OnChip h200("h200-sxm");
  const roofline::Operation operation = read("bf16[4096,8192] @ bf16[8192,8192]");
  roofline::Bound<Plain> bound{};
  bound.lower = Seconds(1);
  EXPECT_EQ(h200.estimate(operation)->time(operation, bound), Seconds(1));
  bound.lower = Seconds(0);
  EXPECT_EQ(h200.estimate(operation)->time(operation, bound), h200.estimate(operation)->fitted(operation));
}

TEST(OperationEstimate, IsAbsentForAFormatThatWasNotMeasured) {
  const OnChip h200("h200-sxm", Dtype::fp64);
  auto calibration = *hardware::calibration_of(h200.chip, hardware::Catalogue::builtin());
  calibration->values.matmul->share[static_cast<std::size_t>(Dtype::fp64)] = 0.0;
  const roofline::Operation operation = read("fp64[512,512] @ fp64[512,512]");
  EXPECT_FALSE(OperationEstimate::make(h200.chip, std::move(*calibration), {&operation, 1}, h200.setting));
}

}  // namespace
}  // namespace assay::kernel
