// The fit of catalogue/steps/serving.toml to measured figures.
#include "assay/validate/fit/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include "assay/base/parallel.h"
#include "assay/validate/fit/minimise.h"
#include "assay/validate/fit/ranges.h"
#include "assay/validate/rows/measured_clusters.h"
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

/// What is left out as a whole, if not groups.
using FoldKey = std::string (*)(const InferenceRow&);
std::string source_of(const InferenceRow& row) { return row.source; }
std::string chip_of(const InferenceRow& row) { return row.cluster.substr(0, row.cluster.find(':')); }

Result<std::vector<InferenceRow>> all_rows(const FitInput& input, FoldKey key) {
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
  for (InferenceRow& row : rows)
    if (key && row.fold != held_out) row.fold = fold_of(key(row));
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
    s.item[f] = serving->item.start;
    s.without_kernels[f] = serving->item.is_fitted();
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
  pull.add_all(now.item, start.item);
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
    if (const auto& serving = s.families[f].serving; serving && serving->vector_decode && serving->decode.is_fitted())
      block.push_back(fit(s.decode[f], serving->decode));
  return block;
}

/// The numbers of one family of chips.
FitParameters family_block(const estimate::FamilyServing& serving, std::size_t f, estimate::ServingCalibration& s) {
  FitParameters block;
  const auto add = [&](auto& number, const auto& range) {
    if (range.is_fitted()) block.push_back(fit(number, range));
  };
  add(s.product[f], serving.product);
  add(s.attention[f], serving.attention);
  add(s.decode[f], serving.decode);
  add(s.meet[f], serving.meet);
  add(s.item[f], serving.item);
  return block;
}

/// `only`: the families whose numbers are fitted, and nothing else is; empty: everything is.
std::vector<FitParameters> serving_blocks(const ServingRanges& ranges, const std::set<std::size_t>& only,
                                          estimate::ServingCalibration& s) {
  std::vector<FitParameters> blocks;
  if (only.empty()) blocks = software_blocks(ranges, s);
  bool vector_fitted = !only.empty();
  for (std::size_t f = 0; f < s.families.size(); ++f) {
    const auto& serving = s.families[f].serving;
    if (!serving || (!only.empty() && !only.contains(f))) continue;
    if (FitParameters block = family_block(*serving, f, s); !block.empty()) blocks.push_back(std::move(block));
    if (!serving->vector_decode || vector_fitted) continue;
    blocks.push_back(vector_block(ranges, s));
    vector_fitted = true;
  }
  return blocks;
}

/// Errors of rows. A block of numbers moves some of them; the others keep theirs while it is fitted.
class RowErrors {
 public:
  RowErrors(const std::vector<InferenceRow>& rows, InferencePredictor& predict) : rows_(rows), predict_(predict) {
    std::map<std::string, std::size_t> groups;
    for (const InferenceRow& row : rows) {
      const std::size_t group = groups.try_emplace(row.group, groups.size()).first->second;
      if (group == sizes_.size()) sizes_.push_back(0.0);
      sizes_[group] += 1.0;
      groups_.push_back(group);
      errors_.push_back(error(row));
    }
  }

  /// Rows whose error differs at one of the bounds of the numbers.
  std::vector<std::size_t> moved_by(const FitParameters& block) {
    std::vector<char> moved(rows_.size());
    for (const FitParameter& number : block) {
      for (const double bound : {number.low, number.high}) {
        number.set(bound);
        for (std::size_t i = 0; i < rows_.size(); ++i)
          if (!moved[i] && error(rows_[i]) != errors_[i]) moved[i] = 1;
      }
      number.set(number.start);
    }
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (moved[i]) out.push_back(i);
    return out;
  }
  void update(const std::vector<std::size_t>& moved) {
    for (const std::size_t i : moved) errors_[i] = error(rows_[i]);
  }
  /// Groups have equal weight.
  double mean() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < errors_.size(); ++i) sum += errors_[i] / sizes_[groups_[i]];
    return sizes_.empty() ? 0.0 : sum / static_cast<double>(sizes_.size());
  }

 private:
  double error(const InferenceRow& row) {
    const Result<Seconds> seconds = predict_(row);
    if (!seconds) throw InternalError("a row that was prepared has no prediction");
    return std::min(most_serving_misfit, std::abs(std::log(seconds->value() / row.measured.value)));
  }

  const std::vector<InferenceRow>& rows_;
  InferencePredictor& predict_;
  std::vector<std::size_t> groups_;
  std::vector<double> sizes_, errors_;
};

void fit_effects(const std::vector<InferenceRow>& rows, const ServingRanges& ranges, const std::set<std::size_t>& only,
                 InferencePredictor& predict) {
  estimate::ServingCalibration& s = predict.steps;
  const estimate::ServingCalibration start = start_values(ranges, s.families);
  RowErrors errors(rows, predict);
  for (int round = 0; round < 3; ++round)
    for (const FitParameters& block : serving_blocks(ranges, only, s)) {
      const std::vector<std::size_t> moved = errors.moved_by(block);
      minimise(
          block,
          [&] {
            errors.update(moved);
            return errors.mean() + strangeness(s, start);
          },
          40 + 30 * static_cast<int>(block.size()));
      errors.update(moved);
    }
}

/// The rows used by a fit: those whose sequences fit in memory, since engines handle the others differently, and that
/// are not faster than possible.
Result<std::vector<InferenceRow>> fitted_rows(const FitInput& input, InferencePredictor& predict,
                                              FoldKey key = nullptr) {
  ASSAY_TRY(all, all_rows(input, key));
  std::vector<InferenceRow> rows = sample(std::move(all), input);
  std::erase_if(
      rows, [&](const InferenceRow& row) { return !predict.fits(row) || !predict.is_possible(row) || !predict(row); });
  return rows;
}

/// The families of chips that rows ran on.
std::set<std::size_t> families_of_rows(const std::vector<InferenceRow>& rows, InferencePredictor& predict) {
  std::set<std::size_t> out;
  for (const InferenceRow& row : rows)
    if (const auto cluster = predict.cluster(row))
      if (const auto family = estimate::family_index(predict.steps.families, (*cluster)->chip)) out.insert(*family);
  return out;
}

/// With a `group`, only families of chips of such groups are fitted, to these groups, and all other numbers stay.
Result<estimate::ServingCalibration> fitted_serving_steps(const FitInput& input, const std::string& group,
                                                          FoldKey key = nullptr) {
  ASSAY_TRY(ranges, serving_ranges_of(input.catalogue));
  ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
  const estimate::ServingCalibration start = start_values(ranges, predict.steps.families);
  if (group.empty()) predict.steps = start;
  ASSAY_TRY(rows, fitted_rows(input, predict, key));
  std::erase_if(rows, [&](const InferenceRow& row) { return row.group.find(group) == std::string::npos; });
  std::set<std::size_t> only;
  if (!group.empty()) only = families_of_rows(rows, predict);
  for (const std::size_t f : only) {
    estimate::ServingCalibration& s = predict.steps;
    s.measured[f] = start.measured[f];
    s.product[f] = start.product[f], s.attention[f] = start.attention[f], s.decode[f] = start.decode[f];
    s.meet[f] = start.meet[f], s.item[f] = start.item[f], s.one_shot[f] = start.one_shot[f];
  }
  predict.steps.without_kernels = start.without_kernels;
  fit_effects(rows, ranges, only, predict);
  return predict.steps;
}

/// Numbers fitted without each fold, the last to all of them.
using ServingFits = std::array<estimate::ServingCalibration, folds + 1>;

/// Intervals from the errors of held-out rows: each is predicted by a fit made without its fold (cross-conformal
/// prediction). None of `left_out` counts.
Result<void> add_intervals(std::span<const hardware::Catalogue> catalogues, const ServingFits& fits,
                           std::size_t left_out, const std::vector<InferenceRow>& rows,
                           estimate::ServingCalibration& steps) {
  std::vector<estimate::Residual> prefill, decode;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    if (fold == left_out) continue;
    ASSAY_TRY(predict, InferencePredictor::make(catalogues[fold]));
    predict.steps = fits[fold];
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
                      cluster.chip.architecture, fmt::format("{} on {}", row.source, cluster.chip.id)});
    }
  }
  steps.prefill_intervals = estimate::interval_classes(prefill, hardware::spread_coverage);
  steps.decode_intervals = estimate::interval_classes(decode, hardware::spread_coverage);
  return {};
}

}  // namespace

Result<std::vector<std::string>> fit_serving(std::span<const hardware::Catalogue> catalogues,
                                             const std::optional<std::string>& data, const std::string& group) {
  std::array<std::optional<Result<estimate::ServingCalibration>>, folds + 1> fitted;
  parallel_for(fitted.size(), 1, [&](std::size_t left_out) {
    fitted[left_out] = fitted_serving_steps({catalogues[left_out], data, left_out}, group);
  });
  ServingFits fits;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    ASSAY_TRY(numbers, std::move(*fitted[i]));
    fits[i] = std::move(numbers);
  }
  std::vector<std::string> texts;
  for (std::size_t left_out = 0; left_out <= held_out; ++left_out) {
    const FitInput input{catalogues[left_out], data, left_out};
    ASSAY_TRY(predict, InferencePredictor::make(input.catalogue));
    predict.steps = fits[left_out];
    ASSAY_TRY(rows, fitted_rows(input, predict));
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
        input.what(), rows.size(), 100.0 * RowErrors(rows, predict).mean()));
    texts.back() += estimate::serving_steps_text(predict.steps, "fit");
  }
  return texts;
}

namespace {

/// What is known of a row whose whole source or chip no fit saw.
void add_left_out(const InferenceRow& row, const hardware::Cluster& cluster,
                  const estimate::ServingCalibration& shipped, FoldKey key, ValidationCase& one) {
  one.traits = step_traits(row.group, row.model, cluster);
  one.without = {estimate::serving_classes(shipped.family(cluster.chip), row.model), key(row), cluster.chip.id,
                 row.engine.substr(0, row.engine.find('@'))};
}

/// Throughputs follow from a search for the best batch, so that requests predict them with these numbers.
void add_throughputs(std::vector<RowQuestion> questions, const estimate::ServingCalibration& numbers,
                     const hardware::Catalogue& catalogue, const AskWith& ask_with, ValidationResult& result) {
  hardware::Catalogue with = catalogue;
  with.put("steps/serving.toml", "[source.fit]\ntitle = \"fit without whole sources or chips\"\n" +
                                     estimate::serving_steps_text(numbers, "fit"));
  add_answers(std::move(questions), ValidationInput(with, std::nullopt, true, ask_with(with)), result);
}

}  // namespace

Result<WithoutWhole> without_whole(LeftOut what, const hardware::Catalogue& catalogue,
                                   const std::optional<std::string>& data, const AskWith& ask_with) {
  const FoldKey key = what == LeftOut::source ? &source_of : &chip_of;
  std::array<std::optional<Result<estimate::ServingCalibration>>, folds> fitted;
  parallel_for(fitted.size(), 1, [&](std::size_t fold) {
    fitted[fold] = fitted_serving_steps({catalogue, data, fold}, "", key);
  });
  ASSAY_TRY(rows, all_rows({catalogue, data}, key));
  ASSAY_TRY(shipped, estimate::serving_steps_of(catalogue));
  WithoutWhole results;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    ASSAY_TRY(numbers, std::move(*fitted[fold]));
    ASSAY_TRY(predict, InferencePredictor::make(catalogue));
    predict.steps = std::move(numbers);
    std::vector<RowQuestion> questions;
    for (const InferenceRow& row : rows) {
      const bool first = row.figure == InferenceFigure::first_token;
      if (row.fold != fold || row.source == "own") continue;
      if (row.figure == InferenceFigure::throughput) {
        if (!ask_with) continue;
        ASSAY_TRY(cluster, predict.cluster(row));
        questions.push_back({question_of(row), held_out, {row.id, row.group, row.measured, {}, row.what}});
        add_left_out(row, *cluster, shipped, key, questions.back().known);
        continue;
      }
      ValidationResult& result = first ? results.first_tokens : results.tokens;
      const Result<Seconds> seconds = predict(row);
      if (!seconds) {
        result.unanswered.push_back({row.id, row.group, seconds.error().what});
        continue;
      }
      ValidationCase one{row.id, row.group, row.measured, *seconds, row.what};
      const hardware::Cluster& cluster = **predict.cluster(row);
      add_left_out(row, cluster, shipped, key, one);
      if (const auto* found =
              estimate::interval_of(first ? shipped.prefill_intervals : shipped.decode_intervals, one.without.classes))
        one.spread = found->spread;
      result.cases.push_back(std::move(one));
    }
    if (!questions.empty())
      add_throughputs(std::move(questions), predict.steps, catalogue, ask_with, results.throughputs);
  }
  // Answers with these numbers have no intervals: those of decoding hold, as in requests.
  for (ValidationCase& one : results.throughputs.cases)
    if (const auto* found = estimate::interval_of(shipped.decode_intervals, one.without.classes))
      one.spread = found->spread;
  return results;
}

}  // namespace assay::validate
