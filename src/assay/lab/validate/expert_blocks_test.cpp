// Products of experts in blocks, against measurements that no number was fitted to.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "assay/hardware/calibration.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/predict/kernel/grouped_tiles.h"
#include "assay/predict/kernel/price.h"

namespace assay::validate {
namespace {

using namespace kernel;

const hardware::Catalogue& catalogue() {
  static const hardware::Catalogue builtin = hardware::Catalogue::builtin();
  return builtin;
}

TEST(ExpertBlocks, PredictRowsThatNoNumberWasFittedTo) {
  const auto table = catalogue_table(catalogue(), "validation/h200_expert_blocks.csv");
  ASSERT_TRUE(table);
  const auto kernels = numbers::expert_kernels_of(catalogue());
  ASSERT_TRUE(kernels) << kernels.error().what;
  const hardware::Chip chip = *catalogue().chip("h200-sxm", "test");
  const auto calibration = *hardware::calibration_of(chip, catalogue());
  const KernelRates rates = *kernel_rates(chip, Dtype::bf16, "test", &calibration->values);
  std::vector<double> errors;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const auto number = [&](std::string_view key) { return table->number(row, key, 0.0); };
    const std::string format(table->text(row, "dtype"));
    Kernel kernel;
    kernel.kind = KernelKind::matmul;
    kernel.format = format == "bf16" ? Dtype::bf16 : Dtype::fp8;
    MatmulShape& shape = kernel.product;
    const double mean = number("tokens") * number("choices") / number("experts");
    const double used =
        number("held") * (1.0 - std::pow(1.0 - number("choices") / number("experts"), number("tokens")));
    shape.grouped = true, shape.batch = used, shape.n = number("n"), shape.k = number("k");
    shape.m = std::max(1.0, mean * number("held") / used);
    const double element = kernel.format == Dtype::bf16 ? 2.0 : 1.0, slots = mean * number("held");
    shape.bytes = Bytes(element * (used * shape.n * shape.k + std::min(slots, number("tokens")) * shape.k) +
                        2.0 * slots * shape.n);
    const auto of = std::find_if(kernels->get()->blocks.begin(), kernels->get()->blocks.end(),
                                 [&](const auto& known) { return known.format == format; });
    ASSERT_NE(of, kernels->get()->blocks.end());
    const auto blocks = std::find_if(of->all.begin(), of->all.end(), [&](const numbers::ExpertBlocks& one) {
      return one.rows == number("rows") && one.columns == number("columns");
    });
    ASSERT_NE(blocks, of->all.end());
    const Seconds time = blocks_time(Plain{}, product_rates(rates, kernel), rates.hbm, shape, *blocks);
    errors.push_back(std::abs(time / Seconds(1e-6 * number("us")) - 1.0));
  }
  ASSERT_EQ(errors.size(), 304u);
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.075);
  EXPECT_LT(errors[errors.size() * 9 / 10], 0.25);
}

TEST(ExpertBlocks, AreChosenByTokensUnlessATableHasTheProduct) {
  const auto kernels = *numbers::expert_kernels_of(catalogue());
  const auto unknown = kernels->choose("h100-sxm", "bf16", 16, 1537, false);
  ASSERT_TRUE(unknown.few && unknown.many);
  ASSERT_EQ(unknown.of(16)->size(), 1u);
  ASSERT_EQ(unknown.of(17)->size(), 1u);
  EXPECT_EQ(unknown.of(16)->front().rows, 16);
  EXPECT_EQ(unknown.of(17)->front().rows, 64);
  const auto known = kernels->choose("h100-sxm", "bf16", 8, 3584, false);
  EXPECT_GT(known.of(1)->size(), 4u);
  EXPECT_EQ(kernels->choose("h100-sxm", "bf16", 16, 1537, true).of(1), known.of(1));
  EXPECT_FALSE(kernels->choose("h100-sxm", "int4", 16, 1536, true).few);  // nobody measured such blocks
}

}  // namespace
}  // namespace assay::validate
