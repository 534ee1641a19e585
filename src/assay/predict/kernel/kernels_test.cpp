#include "assay/predict/kernel/kernels.h"

#include <gtest/gtest.h>

#include "assay/program/lower/lowering.h"
#include "assay/testing/sampling.h"

namespace assay::kernel {
namespace {

model::Transformer model() {
  model::Transformer m;
  m.id = "small";
  m.d_model = 1024, m.vocabulary = 32000;
  model::Layer layer;
  model::Attention a;
  a.heads = 8, a.kv_heads = 2, a.head_dim = a.value_dim = 128;
  model::FeedForward f;
  f.width = 4096;
  layer.attention = a, layer.feed_forward = f;
  m.decoder.add(layer);
  return m;
}

/// 2 sequences of 2048 tokens, with tensor parallelism of 2.
program::Program program() {
  lower::Parallelism p;
  p.tensor = 2;
  lower::TrainingPlan plan;
  plan.work.sequences = 2, plan.work.queries = plan.work.keys = 2048;
  return lower::lower_training(model(), lower::stage_mesh(p), lower::training_rules(p), plan);
}

const program::Step& step_with(const program::Program& program, program::Op op, std::string_view result) {
  for (const program::Step& step : program.steps)
    if (step.op == op && step.out[0] >= 0 && program.tensor(step.out[0]).name == result) return step;
  throw std::runtime_error("no such step");
}

hardware::Calibration calibration(const hardware::Chip& chip) {
  return (*hardware::calibration_of(chip, hardware::Catalogue::builtin()))->values;
}

hardware::Chip h200() { return *hardware::Catalogue::builtin().chip("h200-sxm", "test"); }

TEST(ProductShape, ComesFromTheLettersOfTheTensors) {
  const program::Program p = program();
  const MatmulShape q = product_shape({}, p, step_with(p, program::Op::product, "Q"));
  EXPECT_EQ(q.batch, 1.0);
  EXPECT_EQ(q.m, 2 * 2048.0);
  EXPECT_EQ(q.n, 4 * 128.0);  // half of the heads
  EXPECT_EQ(q.k, 1024.0);
  for (const program::Step& step : p.steps)
    if (step.op == program::Op::product) {
      const MatmulShape s = product_shape({}, p, step);
      EXPECT_NEAR(2 * s.batch * s.m * s.n * s.k / step.flops.value(), 1.0, 1e-12) << program::step_text(p, step);
    }
}

TEST(ProductShape, RowsOfLogitsAreAsOddAsTheVocabulary) {
  model::Transformer odd = model();
  odd.vocabulary = 32001;
  lower::TrainingPlan plan;
  plan.work.sequences = 2, plan.work.queries = plan.work.keys = 2048;
  const program::Program p = lower::lower_training(odd, lower::stage_mesh({}), lower::training_rules({}), plan);
  KernelRates rates;
  int products = 0;
  for (const program::Step& step : p.steps) {
    if (step.op != program::Op::product) continue;
    bool logits = false;
    for (const int id : {step.in[0], step.in[1], step.out[0]})
      logits |= program::local_extent(p, p.tensor(id), p.tensor(id).rank - 1) == 32001.0 ||
                p.tensor(id).find(model::LogicalDim::vocabulary) >= 0;
    const MatmulShape s = product_shape(rates, p, step);
    EXPECT_EQ(std::min(s.operand_rows, s.result_rows), logits ? 2.0 : cache_line) << program::step_text(p, step);
    products += logits;
  }
  EXPECT_EQ(products, 3);  // forward, and the gradients of both operands
  rates.pads_vocabulary = true;
  for (const program::Step& step : p.steps)
    if (step.op == program::Op::product) {
      const MatmulShape s = product_shape(rates, p, step);
      EXPECT_EQ(std::min(s.operand_rows, s.result_rows), cache_line) << program::step_text(p, step);
    }
}

TEST(KernelTime, AChipWithMoreBandwidthAndTheSameDieIsNeverSlower) {
  const program::Program p = program();
  const hardware::Chip wide = h200(), narrow = *hardware::Catalogue::builtin().chip("h100-sxm", "test");
  const hardware::Calibration a = calibration(wide), b = calibration(narrow);
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp8}) {
    const KernelRates fast = *kernel_rates(wide, dtype, "test", &a), slow = *kernel_rates(narrow, dtype, "test", &b);
    for (const double rows : {1.0, 16.0, 300.0, 4096.0, 65536.0})
      for (const double columns : {128.0, 1000.0, 8192.0}) {
        const double element = dtype == Dtype::fp8 ? 1.0 : 2.0, k = 4096;
        const MatmulShape s{1, rows, columns, k, Bytes(element * (rows + columns) * k + 2.0 * rows * columns)};
        const auto time = [&](const KernelRates& rates) {
          return matmul_time(Plain{},
                             {*rates.matmul, rates.cores, rates.rate(dtype), matmul_share(*rates.matmul, dtype)}, s,
                             rates.regime)
              .total;
        };
        // A library cuts k by arithmetic alone: sums that are added up sooner may make it cut where that does not pay.
        EXPECT_LE(time(fast), 1.01 * time(slow)) << rows << " x " << columns;
      }
    for (const program::Step& step : p.steps)
      if (!program::is_collective(step.op))
        EXPECT_LE(kernel_time(fast, p, step).estimate, kernel_time(slow, p, step).estimate)
            << program::step_text(p, step);
  }
}

TEST(KernelTime, OfAProductIsThatOfTheMatmulModel) {
  const program::Program p = program();
  const hardware::Chip chip = h200();
  const hardware::Calibration c = calibration(chip);
  const KernelRates rates = *kernel_rates(chip, Dtype::bf16, "test", &c);
  const program::Step& q = step_with(p, program::Op::product, "Q");
  const MatmulTime expected =
      matmul_time(Plain{},
                  {*c.matmul, core_rates(chip), chip.peak[static_cast<std::size_t>(Dtype::bf16)]->value,
                   matmul_share(*c.matmul, Dtype::bf16)},
                  product_shape(rates, p, q), *c.sustained);
  EXPECT_EQ(kernel_time(rates, p, q).estimate, expected.total);
}

TEST(KernelTime, EstimatesAreNeverBelowIdealOnAnyChip) {
  const program::Program p = program();
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  for (const std::string& id : testing::sampled(catalogue.chip_ids())) {
    const hardware::Chip chip = *catalogue.chip(id, "test");
    const auto found = *hardware::calibration_of(chip, catalogue);
    const auto rates = kernel_rates(chip, Dtype::bf16, "test", found ? &found->values : nullptr);
    if (!rates) continue;  // no bf16
    for (const program::Step& step : p.steps) {
      if (program::is_collective(step.op) || step.op == program::Op::slice) continue;
      const KernelTime time = kernel_time(*rates, p, step);
      // Attention may beat its count of bytes: what the backward pass reads twice is in the cache the second time.
      const bool attends = step.op == program::Op::attention_grad || step.op == program::Op::attention;
      EXPECT_GE(time.estimate, 0.999 * (attends ? time.compute : std::max(time.compute, time.memory)))
          << id << ": " << program::step_text(p, step);
    }
  }
}

TEST(KernelTime, TheFasterAttentionIsTheDefault) {
  const program::Program p = program();
  const hardware::Chip chip = h200();
  const hardware::Calibration c = calibration(chip);
  const KernelRates best = *kernel_rates(chip, Dtype::bf16, "test", &c);
  const KernelRates flash2 = *kernel_rates(chip, Dtype::bf16, "test", &c, {hardware::AttentionKernel::flash2});
  const program::Step& attention = step_with(p, program::Op::attention, "O");
  EXPECT_LT(kernel_time(best, p, attention).estimate, kernel_time(flash2, p, attention).estimate);
}

TEST(KernelTime, WithoutCalibrationTheSharesOfTheChipCount) {
  const program::Program p = program();
  const hardware::Chip chip = h200();
  const KernelRates rates = *kernel_rates(chip, Dtype::bf16, "test");
  const program::Step& q = step_with(p, program::Op::product, "Q");
  const KernelTime time = kernel_time(rates, p, q);
  EXPECT_EQ(time.estimate,
            std::max(time.compute / chip.efficiency.matrix.value, time.memory / chip.efficiency.memory.value));
}

TEST(MatmulShare, AnUnmeasuredFormatTakesTheNearest) {
  hardware::MatmulCalibration fit;
  fit.share[static_cast<std::size_t>(Dtype::bf16)] = 0.9;
  EXPECT_EQ(matmul_share(fit, Dtype::int8), 0.9);
  fit.share[static_cast<std::size_t>(Dtype::fp8)] = 0.8;
  EXPECT_EQ(matmul_share(fit, Dtype::int8), 0.8);
  EXPECT_EQ(matmul_share(fit, Dtype::fp16), 0.9);
}

}  // namespace
}  // namespace assay::kernel
