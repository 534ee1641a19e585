// The fit of catalogue/steps/training.toml to measured steps of the groups that are not reported.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "assay/validate/fit_steps.h"
#include "assay/validate/minimise.h"

namespace assay {
namespace {

/// Many rows of a group say the same: at most this many, evenly over the table.
constexpr std::size_t rows_of_group = 12;
/// Rows that are far off are wrong in some other way and shall not bend the rest.
constexpr double most_misfit = 0.5;

std::vector<TrainingRow> sample(std::vector<TrainingRow> rows) {
  std::map<std::string, std::vector<TrainingRow>> groups;
  for (TrainingRow& row : rows)
    if (row.fitted && row.typical && row.measured) groups[row.group].push_back(std::move(row));
  std::vector<TrainingRow> out;
  for (auto& [group, members] : groups) {
    const std::size_t n = std::min(rows_of_group, members.size());
    for (std::size_t i = 0; i < n; ++i) out.push_back(std::move(members[i * members.size() / n]));
  }
  return out;
}

Result<std::vector<TrainingRow>> all_rows(const ValidationInput& input) {
  TrainingRows rows;
  for (const auto& [path, text] : input.catalogue.files("validation/h200_train.csv")) {
    ASSAY_TRY(table, CsvTable::parse(text, path));
    ASSAY_TRY(own, read_h200_train(table, input.catalogue));
    rows = std::move(own);
  }
  const auto take = [&](const CsvTable& table) {
    TrainingRows more = read_training(table);
    std::move(more.rows.begin(), more.rows.end(), std::back_inserter(rows.rows));
  };
  for (const auto& [path, text] : input.catalogue.files("validation/published_training.csv")) {
    ASSAY_TRY(table, CsvTable::parse(text, path));
    take(table);
  }
  if (input.data) {
    ASSAY_TRY(text, read_data(*input.data + "/third_party/training.csv", "--data"));
    ASSAY_TRY(table, CsvTable::parse(text, "third_party/training.csv"));
    take(table);
  }
  return std::move(rows.rows);
}

/// A weak pull to where the fit starts, so that what the rows do not tell stays: a factor of 1.5 is worth 0.2 % of
/// error.
double strangeness(const StepCalibration& now, const StepCalibration& start) {
  double sum = 0.0;
  const auto add = [&](double a, double b) {
    const double off = std::log(a / b) / std::log(1.5);
    sum += 0.002 * off * off;
  };
  for (std::size_t f = 0; f + 1 < step_families; ++f)
    add(now.attention[f], start.attention[f]), add(now.product[f], start.product[f]),
        add(now.tensor_overlapped[f], start.tensor_overlapped[f]);
  for (std::size_t w = 0; w < StepCalibration::ways; ++w)
    add(now.pointwise[w], start.pointwise[w]), add(now.loss[w], start.loss[w]);
  for (std::size_t w = 0; w + 1 < StepCalibration::ways; ++w) add(now.launch[w].value(), start.launch[w].value());
  add(now.expert_product, start.expert_product), add(now.expert_traffic, start.expert_traffic);
  add(now.expert_waited, start.expert_waited), add(now.contention, start.contention);
  return sum;
}

}  // namespace

double step_misfit(const std::vector<TrainingRow>& rows, TrainingPredictor& predict) {
  std::map<std::string, std::pair<double, double>> groups;
  for (const TrainingRow& row : rows) {
    const Result<TrainingCost> cost = predict(row);
    if (!cost) continue;
    auto& [sum, count] = groups[row.group];
    sum += std::min(most_misfit, std::abs(std::log(cost->estimate / row.measured->value()))), count += 1.0;
  }
  double mean = 0.0;
  for (const auto& [group, sums] : groups) mean += sums.first / sums.second / static_cast<double>(groups.size());
  return mean;
}

Result<std::pair<std::string, std::string>> fit_steps(const ValidationInput& input) {
  ASSAY_TRY(all, all_rows(input));
  const std::vector<TrainingRow> rows = sample(std::move(all));
  ASSAY_TRY(predict, TrainingPredictor::make(input.catalogue));
  StepCalibration& s = predict.steps;
  // What kernel counts and physics tell is not fitted: hand-written kernels move a little more than the fewest bytes,
  // a tenth of the gradients' reduction comes when nothing is left to hide it, nodes differ by a few permille.
  s = StepCalibration{};
  s.pointwise = {1.3, 2.0, 3.0, 0.6}, s.loss = {2.0, 2.5, 5.0, 1.0};
  s.launch = {40_us, 40_us, 80_us, Seconds(0)};
  s.expert_product = 1.5, s.expert_traffic = 4.0, s.expert_waited = 0.3;
  s.contention = 0.8, s.gradients_waited = 0.1, s.straggler = 0.004, s.fixed = 5e-3 * 1_s;
  s.tensor_overlapped = {1.0, 0.35, 0.6, 0.2, 0.6};
  // Counted in the software: eager norms and activations keep copies in fp32, compiled ones make some of them again;
  // the loss casts logits to fp32 and keeps both.
  s.activations = {1.0, 0.79, 1.44, 1.0}, s.logits = {1.0, 1.67, 2.0, 1.0};
  s.product[1] = 1.1;
  constexpr std::size_t ampere = 0, hopper = 1, blackwell = 2, tpu = 3, fused = 0, compiled = 1, eager = 2;
  const auto family = [&](std::size_t f) {
    return std::vector<FitParameter>{fit(s.product[f], 0.8, 1.5), fit(s.attention[f], 0.5, 2.5)};
  };
  const StepCalibration start = s;
  for (int round = 0; round < 2; ++round) {
    const std::vector<std::vector<FitParameter>> blocks = {
        family(ampere),
        family(hopper),
        family(blackwell),
        {fit(s.product[tpu], 0.8, 1.5), fit(s.attention[tpu], 0.3, 2.5), fit(s.pointwise[tpu], 0.2, 1.5)},
        {fit(s.launch[fused], 1_us, 100_us), fit(s.fixed, 10_us, 60000_us)},
        {fit(s.pointwise[eager], 1.0, 6.0), fit(s.loss[eager], 1.0, 10.0), fit(s.launch[eager], 10_us, 200_us)},
        {fit(s.pointwise[compiled], 1.0, 4.0), fit(s.loss[compiled], 1.0, 8.0), fit(s.launch[compiled], 1_us, 100_us)},
        {fit(s.contention, 0.01, 1.0)},
        {fit(s.tensor_overlapped[hopper], 0.05, 1.0), fit(s.tensor_overlapped[blackwell], 0.05, 1.0),
         fit(s.tensor_overlapped[tpu], 0.05, 1.0)},
        {fit(s.expert_product, 1.0, 3.0), fit(s.expert_traffic, 1.0, 20.0), fit(s.expert_waited, 0.05, 1.0)}};
    for (const std::vector<FitParameter>& block : blocks)
      minimise(
          block, [&] { return step_misfit(rows, predict) + strangeness(s, start); },
          30 + 15 * static_cast<int>(block.size()));
  }
  // Families without steps of their own do as the mean of those that have.
  s.product[4] = (s.product[ampere] + s.product[hopper] + s.product[blackwell]) / 3.0;
  s.tensor_overlapped[4] = (s.tensor_overlapped[hopper] + s.tensor_overlapped[blackwell]) / 2.0;
  std::string text = fmt::format(
      "# What whole training steps cost beyond their kernels: docs/validation.md has the formulas and the error.\n"
      "[source.fit]\n"
      "title = \"fit to the measured steps of the groups that are not reported; pointwise.fused, loss.fused, "
      "gradients, straggler and memory from counts in the software and a study of 2,237 steps\"\n"
      "command = \"assay validate --fit catalogue --data DIR\"\n"
      "date = 2026-11-15\n"
      "rows = \"{} steps\"\n"
      "error = \"mean absolute, groups alike: {:.1f} %\"\n",
      rows.size(), 100.0 * step_misfit(rows, predict));
  return std::pair<std::string, std::string>("steps/training.toml", text + steps_text(s, "fit"));
}

}  // namespace assay
