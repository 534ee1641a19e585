// The fit of catalogue/steps/serving.toml to measured figures.
#include "assay/validate/fit/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "assay/validate/fit/minimise.h"
#include "assay/validate/fit/ranges.h"
#include "assay/validate/rows/tables.h"

namespace assay::validate {
namespace {

/// The rows of a group are similar: at most this many are used, spread evenly over the table.
constexpr std::size_t serving_rows_of_group = 12;
/// Errors are capped: rows that are far off are wrong for some other reason.
constexpr double most_serving_misfit = 0.5;

std::vector<InferenceRow> sample(std::vector<InferenceRow> rows, const FitInput& input) {
  std::map<std::string, std::vector<InferenceRow>> groups;
  for (InferenceRow& row : rows)
    if (input.sees(row.fold) && row.typical && row.figure != InferenceFigure::throughput)
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
  const auto take = [&](InferenceRows& more) {
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(rows));
  };
  ASSAY_TRY(prompts_table, catalogue_table(input.catalogue, "validation/h200_infer.csv"));
  ASSAY_TRY(prompts, read_h200_infer(prompts_table, input.catalogue));
  take(prompts);
  ASSAY_TRY(steps_table, catalogue_table(input.catalogue, "validation/h200_decode.csv"));
  ASSAY_TRY(steps, read_h200_decode(steps_table, input.catalogue));
  take(steps);
  ASSAY_TRY(published_table, catalogue_table(input.catalogue, "validation/published_inference.csv"));
  ASSAY_TRY(published, read_inference(published_table, input.catalogue));
  take(published);
  if (input.data) {
    ASSAY_TRY(table, data_table(*input.data, "third_party/inference.csv"));
    ASSAY_TRY(others, read_inference(table, input.catalogue));
    take(others);
  }
  return rows;
}

template <class Q, std::size_t n>
std::array<Q, n> starts_of(const std::array<FitRange<Q>, n>& ranges) {
  std::array<Q, n> out;
  for (std::size_t i = 0; i < n; ++i) out[i] = ranges[i].start;
  return out;
}

/// Start values; numbers counted in software or measured separately stay there.
estimate::ServingCalibration start_values(const ServingRanges& ranges, const estimate::Families& families) {
  estimate::ServingCalibration s(families);
  s.kernels = ranges.kernels;
  s.pointwise = starts_of(ranges.pointwise);
  s.start = starts_of(ranges.start);
  s.launch = starts_of(ranges.launch);
  s.step = starts_of(ranges.step);
  s.sequence = starts_of(ranges.sequence);
  s.first = ranges.first.start;
  s.experts = ranges.experts.start;
  s.vector = ranges.vector.start;
  s.copies = ranges.copies.start;
  s.quantise = ranges.quantise.start;
  s.token = ranges.token.start;
  for (std::size_t f = 0; f < families.size(); ++f) {
    const auto& serving = families[f].serving;
    if (!serving) continue;
    s.measured[f] = 1;
    s.product[f] = serving->product.start;
    s.attention[f] = serving->attention.start;
    s.decode[f] = serving->decode.start;
    s.meet[f] = serving->meet.start;
    s.one_shot[f] = serving->one_shot;
  }
  return s;
}

/// A weak pull to the start values, for numbers that the rows do not determine: a factor of 1.5 costs 0.03 % of error.
class WeakPull {
 public:
  void add(double now, double start) {
    const double off = std::log(now / start) / std::log(1.5);
    sum_ += 0.0003 * off * off;
  }
  void add(Seconds now, Seconds start) {
    if (start > Seconds(0)) add(now.value(), start.value());  // otherwise it is not fitted
  }
  template <class Numbers>
  void add_all(const Numbers& now, const Numbers& start) {
    for (std::size_t i = 0; i < now.size(); ++i) add(now[i], start[i]);
  }
  double sum() const { return sum_; }

 private:
  double sum_ = 0;
};

double strangeness(const estimate::ServingCalibration& now, const estimate::ServingCalibration& start) {
  WeakPull pull;
  pull.add_all(now.product, start.product);
  pull.add_all(now.attention, start.attention);
  pull.add_all(now.decode, start.decode);
  pull.add_all(now.meet, start.meet);
  pull.add_all(now.start, start.start);
  pull.add_all(now.pointwise, start.pointwise);
  pull.add_all(now.step, start.step);
  pull.add_all(now.sequence, start.sequence);
  pull.add_all(now.launch, start.launch);
  pull.add(now.experts, start.experts);
  pull.add(now.vector, start.vector);
  pull.add(now.quantise, start.quantise);
  pull.add(now.token, start.token);
  pull.add(now.copies, start.copies);
  pull.add(now.first, start.first);
  return pull.sum();
}

using FitParameters = std::vector<FitParameter>;

/// Numbers of software, host and scheduler.
std::vector<FitParameters> software_blocks(const ServingRanges& r, estimate::ServingCalibration& s) {
  constexpr std::size_t fused = 0, compiled = 1, eager = 2, native = 0, python = 1;
  std::vector<FitParameters> blocks = {
      {fit(s.start[compiled], r.start[compiled]), fit(s.quantise, r.quantise)},
      {fit(s.launch[python], r.launch[python]), fit(s.pointwise[eager], r.pointwise[eager]),
       fit(s.start[eager], r.start[eager])},
      {fit(s.copies, r.copies)},
      {fit(s.start[fused], r.start[fused]), fit(s.launch[native], r.launch[native])},
      {fit(s.first, r.first)}};
  for (std::size_t scheduler = 1; scheduler < s.step.size(); ++scheduler)  // a loop has none
    blocks.push_back({fit(s.step[scheduler], r.step[scheduler]), fit(s.sequence[scheduler], r.sequence[scheduler])});
  blocks.push_back({fit(s.token, r.token)});
  blocks.push_back({fit(s.experts, r.experts)});
  return blocks;
}

/// Attention on vector units, together with the decode kernels of the families whose rows show it.
FitParameters vector_block(const ServingRanges& ranges, estimate::ServingCalibration& s) {
  FitParameters block{fit(s.vector, ranges.vector)};
  for (std::size_t f = 0; f < s.families.size(); ++f)
    if (const auto& serving = s.families[f].serving; serving && serving->vector_decode)
      block.push_back(fit(s.decode[f], serving->decode));
  return block;
}

std::vector<FitParameters> serving_blocks(const ServingRanges& ranges, estimate::ServingCalibration& s) {
  std::vector<FitParameters> blocks = software_blocks(ranges, s);
  bool vector_fitted = false;
  for (std::size_t f = 0; f < s.families.size(); ++f) {
    const auto& serving = s.families[f].serving;
    if (!serving) continue;
    blocks.push_back({fit(s.product[f], serving->product), fit(s.attention[f], serving->attention),
                      fit(s.decode[f], serving->decode)});
    if (serving->meet.is_fitted()) blocks.back().push_back(fit(s.meet[f], serving->meet));
    if (!serving->vector_decode || vector_fitted) continue;
    blocks.push_back(vector_block(ranges, s));
    vector_fitted = true;
  }
  return blocks;
}

void fit_effects(const std::vector<InferenceRow>& rows, const ServingRanges& ranges, InferencePredictor& predict) {
  estimate::ServingCalibration& s = predict.steps;
  const estimate::ServingCalibration start = s;
  for (int round = 0; round < 3; ++round)
    for (const FitParameters& block : serving_blocks(ranges, s))
      minimise(
          block, [&] { return serving_misfit(rows, predict) + strangeness(s, start); },
          40 + 30 * static_cast<int>(block.size()));
}

/// The rows used by a fit: those whose sequences fit in memory, since engines handle the others differently.
Result<std::vector<InferenceRow>> fitted_rows(const FitInput& input, const ServingRanges& ranges,
                                              InferencePredictor& predict) {
  ASSAY_TRY(all, all_rows(input));
  std::vector<InferenceRow> rows = sample(std::move(all), input);
  predict.steps = start_values(ranges, predict.steps.families);
  std::erase_if(rows, [&](const InferenceRow& row) { return !predict.fits(row); });
  return rows;
}

Result<estimate::ServingCalibration> fitted_serving_steps(const FitInput& input) {
  ASSAY_TRY(ranges, serving_ranges_of(input.catalogue));
  ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
  ASSAY_TRY(rows, fitted_rows(input, ranges, predict));
  fit_effects(rows, ranges, predict);
  return predict.steps;
}

/// Intervals from the errors of held-out rows: each is predicted by a fit made without its fold and `left_out`.
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
      if (!seconds || !predict.is_possible(row)) continue;
      const hardware::Cluster& cluster = **predict.cluster(row);
      (row.figure == InferenceFigure::first_token ? prefill : decode)
          .push_back({row.group, std::log(seconds->value() / row.measured.value),
                      estimate::serving_classes(predict.steps.family(cluster.chip), row.model),
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
    if (!seconds || !predict.is_possible(row)) continue;
    auto& [sum, count] = groups[row.group];
    sum += std::min(most_serving_misfit, std::abs(std::log(seconds->value() / row.measured.value)));
    count += 1.0;
  }
  double mean = 0.0;
  for (const auto& [group, sums] : groups) mean += sums.first / sums.second / static_cast<double>(groups.size());
  return mean;
}

Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data) {
  ASSAY_TRY(fits, FoldFits<estimate::ServingCalibration>::make(catalogues, data, fitted_serving_steps));
  std::vector<std::string> texts;
  for (std::size_t left_out = 0; left_out <= held_out; ++left_out) {
    const FitInput input{catalogues[left_out], data, left_out};
    ASSAY_TRY(ranges, serving_ranges_of(input.catalogue));
    ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
    ASSAY_TRY(rows, fitted_rows(input, ranges, predict));
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
