// The fit of catalogue/steps/serving.toml to measured figures.
#include "assay/validate/fit/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "assay/validate/fit/minimise.h"
#include "assay/validate/rows/tables.h"

namespace assay::validate {
namespace {

/// Many rows of a group say the same: at most this many, evenly over the table.
constexpr std::size_t serving_rows_of_group = 12;
/// Rows that are far off are wrong in some other way and shall not bend the rest.
constexpr double most_serving_misfit = 0.5;

std::vector<InferenceRow> sample(std::vector<InferenceRow> rows, const FitInput& input) {
  std::map<std::string, std::vector<InferenceRow>> groups;
  for (InferenceRow& row : rows)
    if (input.sees(row.fold) && row.typical && row.figure != InferenceFigure::server_token)
      groups[fmt::format("{}, {}", row.group, static_cast<int>(row.figure))].push_back(std::move(row));
  std::vector<InferenceRow> out;
  for (auto& [group, members] : groups) {
    const std::size_t n = std::min(serving_rows_of_group, members.size());
    for (std::size_t i = 0; i < n; ++i) {
      out.push_back(std::move(members[i * members.size() / n]));
      out.back().group = group;
    }
  }
  return out;
}

Result<std::vector<InferenceRow>> all_rows(const FitInput& input) {
  std::vector<InferenceRow> rows;
  const auto take = [&](InferenceRows more) {
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(rows));
  };
  ASSAY_TRY(prompts_table, catalogue_table(input.catalogue, "validation/h200_infer.csv"));
  ASSAY_TRY(prompts, read_h200_infer(prompts_table, input.catalogue));
  take(std::move(prompts));
  ASSAY_TRY(steps_table, catalogue_table(input.catalogue, "validation/h200_decode.csv"));
  ASSAY_TRY(steps, read_h200_decode(steps_table, input.catalogue));
  take(std::move(steps));
  ASSAY_TRY(published, catalogue_table(input.catalogue, "validation/published_inference.csv"));
  take(read_inference(published, input.catalogue));
  if (input.data) {
    ASSAY_TRY(table, data_table(*input.data, "third_party/inference.csv"));
    take(read_inference(table, input.catalogue));
  }
  return rows;
}

/// Where the fit starts: what is counted in software or measured by itself stays there.
estimate::ServingCalibration start_values() {
  estimate::ServingCalibration s;
  // Of nine element-wise steps of a layer fused software runs four kernels: two norms with the sums before them, the
  // rotation that also writes the cache, the activation. Compilers leave the rotation and the cache apart. Eager
  // software takes about three kernels for each.
  s.kernels = {0.45, 0.55, 3.0, 0.2};
  s.pointwise = {1.0, 1.0, 3.0, 0.6};
  s.start = {0.5_us, 0.5_us, 0.5_us, Seconds(0)};
  s.launch = {10_us, 20_us};
  s.first = 2e-3 * 1_s;
  s.step = {Seconds(0), 0.3e-3 * 1_s, 0.5e-3 * 1_s, 0.3e-3 * 1_s};
  s.sequence = {Seconds(0), 3_us, 30_us, 3_us};
  s.meet = {5_us, 5_us, 5_us, Seconds(0), 5_us};
  s.one_shot = {4.4_us, 3_us, 5_us, Seconds(0), 4.4_us};  // all-reduces of inference software, timed in graphs
  s.experts = 1.3, s.vector = 0.2, s.copies = 2.0, s.quantise = 3_us, s.token = 0.01_us;
  return s;
}

/// A weak pull to where the fit starts, so that what the rows do not tell stays: a factor of 1.5 is worth 0.03 % of
/// error.
double strangeness(const estimate::ServingCalibration& now, const estimate::ServingCalibration& start) {
  double sum = 0.0;
  const auto add = [&](double a, double b) {
    const double off = std::log(a / b) / std::log(1.5);
    sum += 0.0003 * off * off;
  };
  for (std::size_t f = 0; f < estimate::step_families; ++f)
    add(now.product[f], start.product[f]), add(now.attention[f], start.attention[f]),
        add(now.decode[f], start.decode[f]);
  for (const std::size_t f : {0, 1, 2, 4}) add(now.meet[f].value(), start.meet[f].value());
  for (std::size_t w = 0; w + 1 < estimate::ServingCalibration::ways; ++w)
    add(now.start[w].value(), start.start[w].value()), add(now.pointwise[w], start.pointwise[w]);
  for (std::size_t w = 1; w < now.step.size(); ++w)
    add(now.step[w].value(), start.step[w].value()), add(now.sequence[w].value(), start.sequence[w].value());
  for (std::size_t w = 0; w < 2; ++w) add(now.launch[w].value(), start.launch[w].value());
  add(now.experts, start.experts), add(now.vector, start.vector), add(now.quantise.value(), start.quantise.value());
  add(now.token.value(), start.token.value());
  add(now.copies, start.copies), add(now.first.value(), start.first.value());
  return sum;
}

void fit_effects(const std::vector<InferenceRow>& rows, InferencePredictor& predict) {
  estimate::ServingCalibration& s = predict.steps;
  const estimate::ServingCalibration start = s;
  constexpr std::size_t ampere = 0, hopper = 1, blackwell = 2, tpu = 3, other = 4, fused = 0, compiled = 1, eager = 2;
  const auto family = [&](std::size_t f) {
    // Kernels among others are hardly faster than alone; tables of Ada are the least certain.
    return std::vector<FitParameter>{fit(s.product[f], f == other ? 0.85 : 0.95, 1.5), fit(s.attention[f], 0.85, 1.6),
                                     fit(s.decode[f], 0.9, 1.2), fit(s.meet[f], 0.1_us, 50_us)};
  };
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::vector<FitParameter>> blocks = {
        {fit(s.start[compiled], 0.02_us, 10_us), fit(s.quantise, 0.05_us, 20_us)},
        {fit(s.launch[1], 1_us, 100_us), fit(s.pointwise[eager], 1.0, 8.0), fit(s.start[eager], 0.02_us, 10_us)},
        {fit(s.copies, 0.5, 8.0)},
        {fit(s.start[fused], 0.02_us, 10_us), fit(s.launch[0], 0.2_us, 30_us)},
        {fit(s.first, 10_us, 20000_us)},
        {fit(s.step[1], 1_us, 10000_us), fit(s.sequence[1], 0.1_us, 200_us)},
        {fit(s.step[2], 1_us, 20000_us), fit(s.sequence[2], 0.1_us, 200_us)},
        {fit(s.step[3], 1_us, 20000_us), fit(s.sequence[3], 0.1_us, 200_us)},
        {fit(s.token, 0.001_us, 0.1_us)},
        {fit(s.experts, 1.0, 4.0)},
        family(ampere),
        {fit(s.vector, 0.02, 1.0), fit(s.decode[ampere], 0.9, 1.2), fit(s.decode[hopper], 0.9, 1.2)},
        family(hopper),
        family(blackwell),
        family(other),
        {fit(s.product[tpu], 0.8, 1.6), fit(s.attention[tpu], 0.5, 2.5), fit(s.decode[tpu], 0.25, 1.6)}};
    for (const std::vector<FitParameter>& block : blocks)
      minimise(
          block, [&] { return serving_misfit(rows, predict) + strangeness(s, start); },
          40 + 30 * static_cast<int>(block.size()));
  }
}

/// The rows that a fit sees. What an engine does with sequences that do not fit is its own affair.
Result<std::vector<InferenceRow>> fitted_rows(const FitInput& input, InferencePredictor& predict) {
  ASSAY_TRY(all, all_rows(input));
  std::vector<InferenceRow> rows = sample(std::move(all), input);
  predict.steps = start_values();
  std::erase_if(rows, [&](const InferenceRow& row) { return !predict.fits(row); });
  return rows;
}

Result<estimate::ServingCalibration> fitted_serving_steps(const FitInput& input) {
  ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
  ASSAY_TRY(rows, fitted_rows(input, predict));
  fit_effects(rows, predict);
  return predict.steps;
}

/// What each row is off by a fit that has seen neither its fold nor `left_out`, and the intervals that follow.
Result<void> add_intervals(std::span<const hardware::Catalogue> catalogues,
                           const FoldFits<estimate::ServingCalibration>& fits, std::size_t left_out,
                           const std::vector<InferenceRow>& rows, estimate::ServingCalibration& steps) {
  std::vector<estimate::Residual> prefill, decode;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    if (fold == left_out) continue;
    ASSAY_TRY(predict, InferencePredictor::make(catalogues[fits.kernels(left_out, fold)]));
    predict.steps = fits.without(left_out, fold);
    for (const InferenceRow& row : rows) {
      if (row.fold != fold) continue;
      const Result<Seconds> seconds = predict(row);
      if (!seconds) continue;
      const hardware::Cluster& cluster = **predict.cluster(row);
      (row.figure == InferenceFigure::first_token ? prefill : decode)
          .push_back({row.group, std::log(*seconds / row.measured), estimate::serving_classes(cluster.chip, row.model),
                      estimate::serving_coordinates(static_cast<double>(cluster.chips()), row.model, row.batch,
                                                    static_cast<double>(row.prompt + row.output)),
                      cluster.chip.architecture});
    }
  }
  steps.prefill_intervals = estimate::interval_classes(prefill, hardware::spread_coverage);
  steps.decode_intervals = estimate::interval_classes(decode, hardware::spread_coverage);
  return {};
}

}  // namespace

double serving_misfit(const std::vector<InferenceRow>& rows, InferencePredictor& predict) {
  std::map<std::string, std::pair<double, double>> groups;
  for (const InferenceRow& row : rows) {
    const Result<Seconds> seconds = predict(row);
    if (!seconds) continue;
    auto& [sum, count] = groups[row.group];
    sum += std::min(most_serving_misfit, std::abs(std::log(*seconds / row.measured))), count += 1.0;
  }
  double mean = 0.0;
  for (const auto& [group, sums] : groups) mean += sums.first / sums.second / static_cast<double>(groups.size());
  return mean;
}

Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data) {
  ASSAY_TRY(fits, FoldFits<estimate::ServingCalibration>::make(catalogues, data, fitted_serving_steps));
  std::vector<std::string> texts;
  for (std::size_t left_out = 0; left_out <= kept_apart; ++left_out) {
    const FitInput input{catalogues[left_out], data, left_out};
    ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
    ASSAY_TRY(rows, fitted_rows(input, predict));
    predict.steps = fits.without(left_out);
    ASSAY_CHECK(add_intervals(catalogues, fits, left_out, rows, predict.steps));
    texts.push_back(fmt::format(
        "# What whole prefill and decode steps cost beyond their kernels: docs/validation.md has the formulas and the "
        "error.\n"
        "[source.fit]\n"
        "title = \"fit to {}; pointwise.kernels from counts in the "
        "software, collectives.one_shot from sweeps of such all-reduces\"\n"
        "command = \"assay validate --fit catalogue --data DIR\"\n"
        "date = 2026-11-16\n"
        "rows = \"{} figures\"\n"
        "error = \"mean absolute, groups alike: {:.1f} %\"\n",
        input.what(), rows.size(), 100.0 * serving_misfit(rows, predict)));
    texts.back() += estimate::serving_steps_text(predict.steps, "fit");
  }
  return texts;
}

}  // namespace assay::validate
