// A fit is checked by rows that the model itself makes from known numbers.
#include "assay/lab/fit/measured.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "assay/hardware/catalogue.h"
#include "assay/lab/measure/grid.h"
#include "assay/lab/validate/rows/kernel_rows.h"
#include "assay/predict/collective/collective_models.h"
#include "assay/predict/kernel/kernel_models.h"
#include "assay/predict/kernel/measured/harness.h"

namespace assay::validate {
namespace {

MeasuredRanges measured_ranges() { return *measured_ranges_of(hardware::Catalogue::builtin()); }

const hardware::CalibrationSource made_up{"fit", "synthetic", "test", "", "2026-11-15", "", ""};

hardware::Chip small_machine() {
  measure::Machine machine;
  machine.processor = "test";
  machine.cores = machine.threads = 4;
  measure::Facts facts = measure::facts_of(machine);
  facts.emplace_back("clock Hz", "2000000000");
  const std::vector<measure::MeasuredRow> rows{{"gemm", "fp32", 1000, 1000, 1000, 0, 0, 20_ms, 20_ms},
                                               {"gemm", "fp64", 1000, 1000, 1000, 0, 0, 40_ms, 40_ms},
                                               {"copy", "int8", 64 << 20, 0, 0, 0, 0, 4_ms, 4_ms},
                                               {"all_gather", "fp32", 1 << 20, 4, 0, 0, 0, 100_us, 100_us}};
  return *hardware::read_chip(
      measure::host_chip_text(measure::host_rates(facts, rows), {"2026-11-15", "test"}, 1.0, 1.0), "chips/host.toml");
}

double element(const std::string& dtype) {
  return dtype == "fp64" ? 8.0 : dtype == "fp32" ? 4.0 : dtype == "bf16" ? 2.0 : 1.0;
}

/// One row as the models say it.
measure::MeasuredRow product_row(const hardware::Chip& chip, const hardware::Calibration& truth,
                                 const measure::ProductShape& s, const std::string& dtype, bool sustained) {
  const auto format = static_cast<std::size_t>(*parse_dtype(dtype, ""));
  const double bytes = element(dtype), out = std::max(2.0, bytes);
  const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const kernel::MatmulShape shape{1.0, m, n, k, Bytes(bytes * (m * k + n * k) + out * m * n)};
  measure::MeasuredRow row{"gemm", dtype, s.m, s.n, s.k};
  row.median = row.least =
      kernel::matmul_time(
          Plain{}, {*truth.matmul, kernel::core_rates(chip), chip.peak[format]->value, truth.matmul->share[format]},
          shape, sustained ? *truth.sustained : *truth.burst)
          .total;
  if (sustained) row.note = "sustained";
  return row;
}

CsvTable table_of(measure::Measurement m) { return *CsvTable::parse(measure::rows_text(m), "test"); }

// A quick measurement has five copies, of which some are fitted: they have an interval all the same.
TEST(FitMeasured, FewRowsHaveAnIntervalThatHoldsThem) {
  const hardware::Chip chip = small_machine();
  measure::Measurement measured;
  double noise = 1.1;
  for (const std::int64_t bytes : measure::sizes(1 << 16, 1 << 28, 8)) {
    measure::MeasuredRow row{"copy", "int8", bytes};
    row.median = noise * kernel::stream_time(Plain{}, kernel::core_rates(chip).hbm, 0.6, 2_us,
                                             Bytes(2.0 * static_cast<double>(bytes)));
    noise = 1.0 / noise;
    measured.rows.push_back(row);
  }
  ASSERT_LT(measured.rows.size(), 6U);
  const MeasuredFit fit = fit_measured(table_of(measured), chip, nullptr, measured_ranges(), made_up);
  EXPECT_GT(fit.calibration.spread->pointwise, 0.1);
  for (const ValidationCase& one : fit.cases) EXPECT_TRUE(one.covered()) << one.id << " " << one.error();
}

TEST(FitMeasured, ACpusNumbersComeBack) {
  const hardware::Chip chip = small_machine();
  hardware::Calibration truth;
  hardware::MatmulCalibration& m = truth.matmul.emplace();
  m.share[static_cast<std::size_t>(Dtype::fp32)] = 0.85, m.share[static_cast<std::size_t>(Dtype::fp64)] = 0.7;
  m.memory_share = 0.3, m.fill = 10, m.fork = 15_us;
  truth.burst = truth.sustained = hardware::Regime{3_us, Seconds(0), 0.05_us};
  measure::Measurement measured;
  for (const std::string dtype : {"fp32", "fp64"})
    for (const measure::ProductShape& s : measure::cpu_products(measure::Extent::full))
      measured.rows.push_back(product_row(chip, truth, s, dtype, false));
  for (const std::int64_t bytes : measure::sizes(1 << 16, 1 << 28, 2)) {
    measure::MeasuredRow row{"copy", "int8", bytes};
    row.median = 3_us + kernel::stream_time(Plain{}, kernel::core_rates(chip).hbm, 0.6, 2_us,
                                            Bytes(2.0 * static_cast<double>(bytes)));
    measured.rows.push_back(row);
  }
  const MeasuredFit fit = fit_measured(table_of(measured), chip, nullptr, measured_ranges(), made_up);
  const ValidationSummary all = summarise("all", fit.cases);
  EXPECT_GT(all.n, 50u);
  EXPECT_LT(all.median, 0.02);
  EXPECT_LT(all.p90, 0.06);
  const hardware::MatmulCalibration& found = *fit.calibration.matmul;
  EXPECT_NEAR(found.share[static_cast<std::size_t>(Dtype::fp32)], 0.85, 0.02);
  EXPECT_NEAR(found.share[static_cast<std::size_t>(Dtype::fp64)], 0.7, 0.02);
  EXPECT_NEAR(found.memory_share, 0.3, 0.03);
  EXPECT_NEAR(fit.calibration.pointwise->stream, 0.6, 0.03);
  const auto back = hardware::read_calibration(hardware::calibration_text(fit.calibration), "calibration/host.toml");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_TRUE(back->matmul->fork);
}

TEST(FitMeasured, AGpusNumbersComeBackFromBothRegimes) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Chip chip = *catalogue.chip("h200-sxm", "");
  hardware::Calibration truth;
  hardware::MatmulCalibration& m = truth.matmul.emplace();
  m.share[static_cast<std::size_t>(Dtype::bf16)] = 0.8;
  m.droop = 0.3, m.memory_share = 0.85, m.small_tile = 15, m.fill = 128, m.split_cost = 4_us;
  truth.burst = hardware::Regime{5_us, 300_us, 2_us}, truth.sustained = hardware::Regime{2_us, Seconds(0), 0.5_us};
  measure::Measurement measured;
  std::size_t i = 0;
  for (const measure::ProductShape& s : measure::gpu_products(measure::Extent::full, 16)) {
    if (s.batch > 1 || ++i % 2) continue;
    measured.rows.push_back(product_row(chip, truth, s, "bf16", false));
    if (i % 6 == 0) measured.rows.push_back(product_row(chip, truth, s, "bf16", true));
  }
  measured.rows.push_back({"upload", "int8", 1 << 20, 0, 0, 0, 0, 1_ms, 1_ms});
  const MeasuredFit fit = fit_measured(table_of(measured), chip, nullptr, measured_ranges(), made_up);
  EXPECT_LT(summarise("all", fit.cases).median, 0.03);
  // A faster burst that gives way more is hard to tell apart; what is left of it under sustained power is not.
  const hardware::MatmulCalibration& found = *fit.calibration.matmul;
  EXPECT_NEAR(found.share[static_cast<std::size_t>(Dtype::bf16)] / (1.0 + found.droop), 0.8 / 1.3, 0.03);
  EXPECT_FALSE(fit.calibration.pointwise);  // no chip's own: norms and softmax were not measured
  ASSERT_EQ(fit.unanswered.size(), 1u);
  EXPECT_EQ(fit.unanswered.front().group, "upload");
}

TEST(FitMeasured, AttentionComesBackWithTheProductsLaunch) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Chip chip = *catalogue.chip("h200-sxm", "");
  hardware::Calibration truth;
  const hardware::AttentionKernelCalibration known{
      {}, false, {0.5, 1.0, 60, 0.8}, {0.35, 1.0, 30, 1.5}, {0.6, 0.7, 0.9, 2_us}};
  truth.attention.emplace().cudnn = known;
  hardware::MatmulCalibration& m = truth.matmul.emplace();
  m.share[static_cast<std::size_t>(Dtype::bf16)] = 0.8;
  m.droop = 0.3, m.memory_share = 0.85, m.small_tile = 15, m.fill = 128, m.split_cost = 4_us, m.port = 140_GB_per_s;
  truth.burst = hardware::Regime{5_us, 300_us, 2_us};
  Harness harness;
  harness.launch.fill(5_us);
  measure::Measurement measured;
  for (const measure::ProductShape& s : measure::gpu_products(measure::Extent::quick, 16))
    measured.rows.push_back(product_row(chip, truth, s, "bf16", false));
  for (const char* op : {"attn_fwd_causal", "attn_bwd_causal", "attn_decode"})
    for (const std::int64_t batch : {1, 4, 64})
      for (const std::int64_t heads : {8, 16, 32, 64})
        for (const std::int64_t tokens : {256, 512, 1024, 2048, 4096, 8192})
          for (const std::int64_t size : {64, 128})  // one size does not tell the softmax from the products
            measured.rows.push_back({op, "bf16", batch, heads, 8, tokens, size, 1_us, 1_us, "cudnn"});
  const KernelRows rows = read_own_ops(table_of(measured), chip.id, chip.id);
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    if (rows.rows[i].kernel.kind != KernelKind::matmul)
      measured.rows[i].median = *predict(rows.rows[i], chip, truth, harness);
  const MeasuredFit fit = fit_measured(table_of(measured), chip, nullptr, measured_ranges(), made_up);
  const hardware::AttentionKernelCalibration& found = *fit.calibration.attention->cudnn;
  EXPECT_NEAR(found.forward.share, known.forward.share, 0.06);
  EXPECT_NEAR(found.backward.share, known.backward.share, 0.06);
  EXPECT_NEAR(found.decode.share, known.decode.share, 0.06);
  EXPECT_NEAR(found.decode.crowded, known.decode.crowded, 0.08);
  for (const ValidationSummary& group : summarise_groups(fit.cases))
    if (group.group != "matmul bf16") EXPECT_LT(group.median, 0.05) << group.group;
  EXPECT_LT(fit.calibration.spread->attention, 0.1);
}

TEST(FitMeasured, CurvesOfCollectivesComeBack) {
  const hardware::Chip chip = small_machine();
  const hardware::CollectiveCurve curve{4_us, Seconds(0), 0.5, 0.0, 2_us};
  hardware::CollectiveCalibration truth;
  truth.all_gather = truth.reduce_scatter = truth.all_reduce = truth.all_to_all = curve;
  collective::CollectiveGroup group;
  group.devices = 4;
  group.levels.push_back({4, 1.0, hardware::scale_up_egress(chip)->value, false, 0});
  measure::Measurement measured;
  for (const auto& [op, kind] : {std::pair{"all_gather", program::Collective::all_gather},
                                 {"reduce_scatter", program::Collective::reduce_scatter},
                                 {"all_reduce", program::Collective::all_reduce},
                                 {"all_to_all", program::Collective::all_to_all}})
    for (const std::int64_t bytes : measure::sizes(4096, 1 << 26, 2)) {
      measure::MeasuredRow row{op, "fp32", bytes, 4};
      row.median = collective::collective_estimate(truth, kind, Bytes(static_cast<double>(bytes)), group);
      measured.rows.push_back(row);
    }
  const MeasuredFit fit = fit_measured(table_of(measured), chip, nullptr, measured_ranges(), made_up);
  ASSERT_TRUE(fit.calibration.collective);
  EXPECT_LT(summarise("all", fit.cases).median, 0.02);
  EXPECT_NEAR(fit.calibration.collective->all_reduce.share, 0.5, 0.03);
  EXPECT_FALSE(fit.calibration.collective->infiniband);
  EXPECT_TRUE(hardware::read_calibration(hardware::calibration_text(fit.calibration), "calibration/host.toml"));
}

/// Ranks of one machine, as many as there are in `group`.
collective::CollectiveGroup ranks_of(const hardware::Chip& chip, double ranks) {
  collective::CollectiveGroup group;
  group.devices = ranks;
  group.levels.push_back({ranks, 1.0, hardware::scale_up_egress(chip)->value, false, 0});
  return group;
}

TEST(FitMeasured, RanksThatShareCoresFollowOneLawForAllGroups) {
  const hardware::Chip chip = small_machine();
  hardware::CollectiveCalibration truth;
  truth.cores = 2;
  truth.all_gather = truth.reduce_scatter = truth.all_reduce = truth.all_to_all = {20_us, 10_us, 0.5, 0.4, Seconds(0)};
  // By hand: without turns 20 + 3 x 10 us, of 4 ranks on 2 cores twice that.
  const auto empty = [&](double ranks) {
    return collective::collective_estimate(truth, program::Collective::all_gather, Bytes(0), ranks_of(chip, ranks));
  };
  EXPECT_NEAR(empty(2) / 30_us, 1.0, 1e-12);
  EXPECT_NEAR(empty(4) / 100_us, 1.0, 1e-12);
  // A rank also copies its own array: of 3 MB, 2 ranks receive half, and each byte takes 1 + 0.4 / 1 times as long.
  const BytesPerSecond link = hardware::scale_up_egress(chip)->value;
  const Seconds moved =
      collective::collective_estimate(truth, program::Collective::all_gather, 3_MB, ranks_of(chip, 2));
  EXPECT_NEAR((moved - empty(2)) / (1.4 * 1.5_MB / (0.5 * link)), 1.0, 1e-12);
  const auto row = [&](std::int64_t bytes, std::int64_t ranks) {
    measure::MeasuredRow one{"all_gather", "fp64", bytes, ranks};
    one.median =
        collective::collective_estimate(truth, program::Collective::all_gather, Bytes(static_cast<double>(bytes)),
                                        ranks_of(chip, static_cast<double>(ranks)));
    return one;
  };
  measure::Measurement measured, others;
  for (const std::int64_t bytes : measure::sizes(4096, 1 << 26, 2)) {
    for (const std::int64_t ranks : {2, 4, 8}) measured.rows.push_back(row(bytes, ranks));
    for (const std::int64_t ranks : {3, 6}) others.rows.push_back(row(bytes, ranks));
  }
  const MeasuredFit fit = fit_measured(table_of(measured), chip, nullptr, measured_ranges(), made_up, 2.0);
  EXPECT_LT(summarise("all", fit.cases).p90, 0.03);
  EXPECT_LT(summarise("all", check_measured(table_of(others), chip, fit.calibration)).p90, 0.05);
  const auto back = hardware::read_calibration(hardware::calibration_text(fit.calibration), "calibration/host.toml");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->collective->cores, 2.0);
}

TEST(FitMeasured, AnEmptyTableFitsNothing) {
  const MeasuredFit fit = fit_measured(table_of({}), small_machine(), nullptr, measured_ranges(), made_up);
  EXPECT_FALSE(fit.calibration.matmul || fit.calibration.pointwise || fit.calibration.collective);
  EXPECT_TRUE(fit.cases.empty());
}

TEST(LearnMeasured, KernelsOfAStepChangeTheClockAndSharesOfAttentionAlone) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Chip chip = *catalogue.chip("h200-sxm", "test");
  const hardware::Calibration start = (*hardware::calibration_of(chip, catalogue))->values;
  // Rows that take 0.93 of what the calibration predicts.
  constexpr std::string_view head = "op,dtype,a,b,c,d,e,us_median,us_min,note\n";
  const std::string shapes[] = {"gemm,bf16,8192,4096,4096,,,", "gemm,bf16,4096,14336,4096,,,",
                                "gemm,bf16,4096,4096,14336,,,"};
  const std::string attention = "attn_fwd_causal,bf16,2,32,8,4096,128,";
  const auto table = [&](double factor, const std::vector<ValidationCase>& predicted) {
    std::string text(head);
    for (std::size_t i = 0; i < 4; ++i) {
      const double time = predicted.empty() ? 100.0 : factor * Seconds(predicted[i].predicted.value).in(1_us);
      text += fmt::format("{}{:.6f},,{}\n", i < 3 ? shapes[i] : attention, time, i < 3 ? "sustained" : "cudnn");
    }
    return *CsvTable::parse(text, "test.csv");
  };
  const CsvTable rows = table(0.93, check_learned(table(1.0, {}), chip, start));
  const hardware::CalibrationSource source{"profile", "synthetic", "test", "", "2026-11-15", "", ""};
  const LearnedFit fit = learn_measured(rows, chip, start, measured_ranges(), source);
  EXPECT_NEAR(summarise("all", fit.before).median, 0.075, 0.002);
  EXPECT_LT(summarise("all", fit.after).median, 0.01);
  EXPECT_LT(fit.calibration.matmul->droop, start.matmul->droop);
  EXPECT_EQ(fit.calibration.matmul->fill, start.matmul->fill);
  EXPECT_EQ(fit.calibration.burst->launch, start.burst->launch);
  EXPECT_GT(fit.calibration.attention->cudnn->forward.share, 0.0);
  EXPECT_EQ(fit.calibration.attention->cudnn->backward.share, start.attention->cudnn->backward.share);
  const std::string text = hardware::calibration_text(fit.calibration);
  const auto read = hardware::read_calibration(text, "calibration/h200-sxm.toml");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_NE(text.find("[matmul]\nsource = \"profile\""), std::string::npos) << text;
}

TEST(Forked, ACpuUsesMoreCoresForLargerProductsAndNeverBeatsItsBounds) {
  const hardware::Chip chip = small_machine();
  const kernel::CoreRates rates = kernel::core_rates(chip);
  hardware::MatmulCalibration fit;
  fit.memory_share = 0.4, fit.fork = 20_us;
  const FlopsPerSecond peak = chip.peak[static_cast<std::size_t>(Dtype::fp32)]->value;
  double before = 0;
  for (const double n : {8.0, 32.0, 64.0, 128.0, 512.0, 2048.0}) {
    const kernel::MatmulShape shape{1, n, n, n, Bytes(12.0 * n * n)};
    const kernel::MatmulTime time =
        kernel::matmul_time(Plain{}, {fit, rates, peak, 0.9}, shape, {1_us, Seconds(0), Seconds(0)});
    EXPECT_GE(time.total, Flops(2.0 * n * n * n) / peak);
    EXPECT_GE(time.total, shape.bytes / rates.hbm);
    EXPECT_GE(time.tile.cores, before);
    before = time.tile.cores;
  }
  EXPECT_EQ(before, 4.0);
}

}  // namespace
}  // namespace assay::validate
