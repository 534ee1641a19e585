#include "assay/lab/validate/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "assay/base/parallel.h"
#include "assay/base/text.h"
#include "assay/lab/validate/sets/sets.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::validate {
namespace {

double quantile(std::vector<double> sorted, double q) {
  if (sorted.empty()) return 0.0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

/// Ranks from 0; equal values share their mean rank.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) result[order[k]] = static_cast<double>(i + j - 1) / 2.0;
    i = j;
  }
  return result;
}

/// None below three values: two always agree or disagree fully, which says nothing.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 3) return std::nullopt;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2.0;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0.0 && yy > 0.0 ? xy / std::sqrt(xx * yy) : 1.0;
}

}  // namespace

std::span<const ValidationSet> validation_sets() {
  static const std::vector<ValidationSet> all = [] {
    std::vector<ValidationSet> sets;
    for (const auto& of_kind : {kernel_sets(), training_sets(), inference_sets(), load_sets(), public_sets()})
      sets.insert(sets.end(), of_kind.begin(), of_kind.end());
    return sets;
  }();
  return all;
}

Result<const ValidationSet*> validation_set(std::string_view name, std::string_view where) {
  std::vector<std::string> known;
  for (const ValidationSet& set : validation_sets()) {
    if (set.name == name) return &set;
    known.emplace_back(set.name);
  }
  return fail(std::string(where), "unknown set " + in_quotes(name),
              nearest(name, known).empty() ? "known: " + join(known, ", ") : suggestion(name, known),
              Error::Kind::usage);
}

ValidationSummary summarise(std::string group, std::span<const ValidationCase> cases) {
  ValidationSummary sum;
  sum.group = std::move(group);
  std::vector<double> absolute, relative, measured, predicted, by_default;
  double covered = 0, with_interval = 0;
  for (const ValidationCase& one : cases) {
    if (one.fitted) continue;
    relative.push_back(one.error());
    if (const auto error = one.error_by_default()) by_default.push_back(*error);
    absolute.push_back(std::abs(one.error()));
    if (one.spread > 0.0) with_interval += 1.0;
    if (one.spread > 0.0 && one.covered()) covered += 1.0;
    measured.push_back(one.measured.value);
    predicted.push_back(one.predicted.value);
  }
  sum.n = absolute.size();
  if (sum.n == 0) return sum;
  const auto n = static_cast<double>(sum.n);
  const auto within = [&](double limit) {
    return static_cast<double>(std::count_if(absolute.begin(), absolute.end(), [&](double e) { return e <= limit; })) /
           n;
  };
  sum.mape = std::accumulate(absolute.begin(), absolute.end(), 0.0) / n;
  sum.within_10 = within(0.10);
  sum.within_20 = within(0.20);
  if (with_interval > 0.0) sum.covered = covered / with_interval;
  sum.rank = rank_correlation(measured, predicted);
  std::sort(absolute.begin(), absolute.end());
  std::sort(relative.begin(), relative.end());
  sum.median = quantile(absolute, 0.5);
  sum.p90 = quantile(absolute, 0.9);
  sum.bias = quantile(relative, 0.5);
  if (by_default.size() == sum.n) {
    sum.default_mape = 0.0;
    for (const double error : by_default) *sum.default_mape += std::abs(error) / n;
    std::sort(by_default.begin(), by_default.end());
    sum.default_bias = quantile(by_default, 0.5);
  }
  return sum;
}

std::vector<ValidationSummary> summarise_groups(std::span<const ValidationCase> cases) {
  std::vector<std::string> order;
  for (const ValidationCase& one : cases)
    if (!one.fitted && std::find(order.begin(), order.end(), one.group) == order.end()) order.push_back(one.group);
  std::vector<ValidationSummary> sums;
  std::vector<double> correlations, coverages;
  ValidationSummary macro;
  macro.group = "mean of groups";
  for (const std::string& group : order) {
    std::vector<ValidationCase> members;
    for (const ValidationCase& one : cases)
      if (one.group == group) members.push_back(one);
    sums.push_back(summarise(group, members));
    const ValidationSummary& last = sums.back();
    if (last.rank) correlations.push_back(*last.rank);
    if (last.covered) coverages.push_back(*last.covered);
    const double weight = 1.0 / static_cast<double>(order.size());
    macro.n += last.n;
    macro.mape += weight * last.mape;
    macro.median += weight * last.median;
    macro.p90 += weight * last.p90;
    macro.bias += weight * last.bias;
    macro.within_10 += weight * last.within_10;
    macro.within_20 += weight * last.within_20;
    if (last.default_mape) {
      macro.default_mape = macro.default_mape.value_or(0.0) + weight * *last.default_mape;
      macro.default_bias = macro.default_bias.value_or(0.0) + weight * *last.default_bias;
    }
  }
  if (!std::all_of(sums.begin(), sums.end(), [](const ValidationSummary& s) { return s.default_mape.has_value(); }))
    macro.default_mape = macro.default_bias = std::nullopt;
  const auto mean = [](const std::vector<double>& values) -> std::optional<double> {
    if (values.empty()) return std::nullopt;
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  macro.rank = mean(correlations);
  macro.covered = mean(coverages);
  if (order.size() > 1) {
    sums.push_back(summarise("all", cases));
    sums.back().groups = macro.groups = order.size();
    sums.push_back(macro);
  }
  return sums;
}

CaseTraits step_traits(std::string_view group, const model::Transformer& model, const hardware::Cluster& cluster) {
  const std::vector<std::string> parts = split(group, ',');
  std::string family;
  for (const char c : trim(parts[parts.size() > 2 ? 1 : 0])) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 && family.ends_with('v')) family.pop_back();  // DeepSeekV3
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    family += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const std::string_view work =
      model.has_experts()                                                                          ? "experts"
      : model.decoder.any([](const model::Layer& layer) { return layer.state_space.has_value(); }) ? "state spaces"
                                                                                                   : "dense";
  const std::string_view spread = cluster.chips() == 1                        ? "one chip"
                                  : cluster.chips() <= cluster.chips_per_node ? "one node"
                                                                              : "many nodes";
  return {cluster.chip.id, family, fmt::format("{}, {}", work, spread)};
}

std::uint64_t shape_hash(std::string_view shape) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const char c : shape) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  // The last steps of MurmurHash3.
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdull;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return hash ^ (hash >> 33);
}

std::string fitted_without(std::size_t fold) { return fold == held_out ? "" : fmt::format("folds/{}/", fold); }

std::string FitInput::what() const {
  return left_out == held_out ? "all measured rows"
                              : fmt::format("{} of {} folds of the measured rows", folds - 1, folds);
}

ValidationInput::ValidationInput(const hardware::Catalogue& all, std::optional<std::string> directory, bool with_fitted,
                                 Ask asks)
    : catalogue(all), data(std::move(directory)), ask(std::move(asks)) {
  for (std::size_t fold = 0; !with_fitted && fold < folds; ++fold)
    without_.push_back(all.replaced_from(fitted_without(fold)));
}

Result<ValidationCase> asked_case(RowQuestion row, const ValidationInput& input) {
  const Question& question = row.question;
  std::vector<std::string> words = question.words;
  if (row.fold != held_out && !input.fitted_to(row.fold)) {
    words.emplace_back("--without-fold");
    words.push_back(std::to_string(row.fold));
  }
  ASSAY_TRY(by_default, input.ask(words, question));
  Prediction own = by_default;
  if (!question.own_way.empty()) {
    words.insert(words.begin() + std::ssize(question.words), question.own_way.begin(), question.own_way.end());
    ASSAY_TRY(measured_so, input.ask(words, question));
    own = measured_so;
  }
  ValidationCase known = std::move(row.known);
  known.predicted = own.value;
  known.spread = own.spread;
  known.verdict = own.verdict;
  known.predicted_by_default = by_default.value;
  known.request = std::move(words);
  known.result = question.result;
  known.fitted = input.fitted_to(row.fold);
  return known;
}

void add_answers(std::vector<RowQuestion> rows, const ValidationInput& input, ValidationResult& result) {
  std::vector<std::optional<Result<ValidationCase>>> answers(rows.size());
  parallel_for(answers.size(), 8, [&](std::size_t i) { answers[i] = asked_case(rows[i], input); });
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (*answers[i])
      result.cases.push_back(std::move(**answers[i]));
    else
      result.unanswered.push_back({rows[i].known.id, rows[i].known.group, answers[i]->error().what});
}

}  // namespace assay::validate
