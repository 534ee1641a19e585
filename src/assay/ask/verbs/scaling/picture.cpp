#include "assay/ask/verbs/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::verbs::scaling {
namespace {

constexpr int steps = 160;
/// Arithmetic over communication below which tensor parallelism over all chips is nobody's choice: its line would only
/// squeeze the others.
constexpr double in_reach = 0.25;

struct TokenRange {
  double from, to;  ///< tokens per chip
  double at(int step) const { return from * std::pow(to / from, step / static_cast<double>(steps)); }
};

/// What the sweep covers, or around the thresholds.
TokenRange token_range(const ScalingQuery& query, double least, double most) {
  if (query.sweep && query.sweep->name == "batch" && query.sweep->values.size() > 1) {
    const auto [low, high] = std::minmax_element(query.sweep->values.begin(), query.sweep->values.end());
    if (*low < *high) return {*low / query.chips(), *high / query.chips()};
  }
  TokenRange range{least / 4.0, most * 4.0};
  if (query.batch) {
    const double here = query.batch->value() / query.chips();
    range = {std::min(range.from, here / 2.0), std::max(range.to, here * 2.0)};
  }
  return range;
}

std::string split_name(const roofline::Split& split) {
  std::string text = fmt::format("FSDP {} x TP {}", human_number(split.fsdp), human_number(split.tensor));
  return split.pipeline > 1.0 ? text + fmt::format(" x PP {}", human_number(split.pipeline)) : text;
}

roofline::LayerTimes<Plain> forward(const roofline::LayerRates<Plain>& rates, const roofline::Split& split,
                                    Tokens batch) {
  return roofline::layer_times(Plain{}, rates, split, batch, roofline::WeightsAre::sharded, roofline::Pass::forward);
}

std::string where_text(const ScalingQuery& query) {
  return fmt::format("{}, {} on {}, one MLP layer forward", query.model, name(query.dtype), query.cluster.text);
}

void mark_batch(const ScalingQuery& query, draw::Chart& chart, double per_chip) {
  if (query.batch)
    chart.lines.push_back(
        {draw::Orientation::vertical, query.batch->value() / per_chip, "batch of " + human(*query.batch)});
}

}  // namespace

draw::Chart ratio_chart(const ScalingQuery& query, const SchemeLinks& links,
                        const std::optional<roofline::PlacedSplit>& given) {
  const double chips = query.slice_chips();
  const roofline::LayerRates<Plain> pure = rates_of(query, links.weights, links.activations);
  const roofline::LayerRates<Plain> whole = rates_of(query, links.weights, links.whole);
  const double fsdp_at = roofline::min_tokens_data_parallel(Plain{}, pure, roofline::WeightsAre::sharded).value();
  double least = fsdp_at;
  std::optional<roofline::LayerRates<Plain>> mixed;
  if (links.mixed) {
    mixed = rates_of(query, links.mixed->weights, links.mixed->activations, roofline::Counting::approximate);
    least = std::min(least, roofline::min_tokens_mixed(Plain{}, *mixed).value());
  }
  const TokenRange range = token_range(query, least, fsdp_at);
  draw::Chart chart;
  chart.title = "Arithmetic over communication";
  chart.subtitle = where_text(query);
  chart.x = {"tokens per chip", "", draw::ScaleKind::log, draw::AxisRange{range.from, range.to},
             draw::NumberStyle::compact};
  chart.y = {"arithmetic time over communication time", "", draw::ScaleKind::log, std::nullopt,
             draw::NumberStyle::compact};
  chart.lines.push_back({draw::Orientation::horizontal, 1.0, "equal"});
  const auto add = [&](std::string called, auto&& ratio, draw::SeriesStyle style = draw::SeriesStyle::line) {
    draw::ChartSeries series{std::move(called), {}, style, 0};
    for (int i = 0; i <= steps; ++i) series.points.push_back({range.at(i), ratio(Tokens(range.at(i) * chips))});
    chart.series.push_back(std::move(series));
  };
  const auto ratio_of = [](const roofline::LayerTimes<Plain>& times) { return times.compute / times.communication; };
  add("FSDP", [&](Tokens batch) { return ratio_of(forward(pure, {chips, 1, 1}, batch)); });
  if (const double ratio = ratio_of(forward(whole, {1, chips, 1}, Tokens(fsdp_at * chips))); ratio >= in_reach)
    add("tensor parallel", [&](Tokens batch) { return ratio_of(forward(whole, {1, chips, 1}, batch)); });
  const auto splits = roofline::placed_splits(query.slice, query.shape, query.peak, 1, Tokens(fsdp_at * chips));
  const auto best_split = [&](Tokens batch) {
    double best = 0.0;
    for (const roofline::PlacedSplit& split : splits)
      best = std::max(best, ratio_of(forward(split.rates, split.split, batch)));
    return best;
  };
  if (!splits.empty()) add("best split", best_split);
  // Splits of real axes are among the free ones; some use more links than the textbook's, or send a part less.
  const int mixed_colour = static_cast<int>(chart.series.size()) + 1;
  if (mixed)
    add(
        "best split, not tied to axes",
        [&](Tokens batch) { return std::max(roofline::mixed_ratio(*mixed, batch / chips), best_split(batch)); },
        draw::SeriesStyle::dashed);
  if (given)
    add(split_name(given->split), [&](Tokens batch) { return ratio_of(forward(given->rates, given->split, batch)); });
  chart.points.push_back({human_number(std::round(fsdp_at)), fsdp_at, 1.0, 1});
  if (mixed) chart.points.push_back({human_number(std::round(least)), least, 1.0, mixed_colour});
  mark_batch(query, chart, query.chips());
  chart.footnote = "above 1, communication can hide behind arithmetic; bandwidth only, no latency";
  return chart;
}

draw::Chart time_chart(const ScalingQuery& query, const SchemeLinks& links,
                       const std::optional<roofline::PlacedSplit>& given) {
  const double chips = query.slice_chips();
  const roofline::LayerRates<Plain> pure = rates_of(query, links.weights, links.activations);
  const double fsdp_at = roofline::min_tokens_data_parallel(Plain{}, pure, roofline::WeightsAre::sharded).value();
  const TokenRange range = token_range(query, fsdp_at / 16.0, fsdp_at);
  draw::Chart chart;
  chart.title = "Time of a layer against the batch";
  chart.subtitle = where_text(query);
  const auto slices = static_cast<double>(query.cluster.slices);
  chart.x = {"batch, tokens", "", draw::ScaleKind::log,
             draw::AxisRange{range.from * query.chips(), range.to * query.chips()}, draw::NumberStyle::si};
  chart.y = {"time", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  const auto add = [&](std::string called, auto&& time, draw::SeriesStyle style) {
    draw::ChartSeries series{std::move(called), {}, style, 0};
    for (int i = 0; i <= steps; ++i) {
      const Tokens batch(range.at(i) * chips);
      series.points.push_back({batch.value() * slices, time(batch).value()});
    }
    chart.series.push_back(std::move(series));
  };
  add(
      "arithmetic",
      [&](Tokens batch) {
        return forward(pure, {chips, 1, 1}, batch).compute;
      },
      draw::SeriesStyle::dashed);
  add(
      fmt::format("FSDP {}", human_number(chips)),
      [&](Tokens batch) {
        return forward(pure, {chips, 1, 1}, batch).communication;
      },
      draw::SeriesStyle::line);
  const roofline::LayerRates<Plain> whole = rates_of(query, links.weights, links.whole);
  if (const auto all = forward(whole, {1, chips, 1}, Tokens(fsdp_at * chips));
      in_reach * all.communication <= all.compute)
    add(
        fmt::format("TP {}", human_number(chips)),
        [&](Tokens batch) {
          return forward(whole, {1, chips, 1}, batch).communication;
        },
        draw::SeriesStyle::line);
  // The splits in between that are best somewhere along the range.
  const auto splits = roofline::placed_splits(query.slice, query.shape, query.peak, 1, Tokens(range.at(0) * chips));
  std::vector<const roofline::PlacedSplit*> shown;
  for (int i = 0; i <= steps; ++i) {
    const roofline::PlacedSplit* best = nullptr;
    Seconds least(HUGE_VAL);
    for (const roofline::PlacedSplit& split : splits)
      if (const Seconds time = forward(split.rates, split.split, Tokens(range.at(i) * chips)).communication;
          time < least) {
        least = time;
        best = &split;
      }
    if (best && best->split.tensor > 1.0 && best->split.fsdp > 1.0 &&
        std::find(shown.begin(), shown.end(), best) == shown.end())
      shown.push_back(best);
  }
  if (given) shown.push_back(&*given);
  std::sort(shown.begin(), shown.end(), [](const roofline::PlacedSplit* a, const roofline::PlacedSplit* b) {
    return a->split.tensor < b->split.tensor;
  });
  for (const roofline::PlacedSplit* split : shown)
    add(
        split_name(split->split),
        [&](Tokens batch) { return forward(split->rates, split->split, batch).communication; },
        draw::SeriesStyle::line);
  mark_batch(query, chart, 1.0);
  chart.footnote = "solid: communication of a split; where a line is below the dashed one, the split is compute-bound";
  return chart;
}

draw::Chart chips_chart(const ScalingQuery& query, const report::Items& rows) {
  draw::Chart chart;
  chart.title = "Time of a layer against chips";
  chart.subtitle = fmt::format(
      "{}, {} on {}, one MLP layer forward, the best split each; strong scaling: a batch of {}, "
      "weak: {} tokens per chip",
      query.model, name(query.dtype), query.cluster.chip.id, human(*query.batch),
      human_number(query.batch->value() / query.sweep->values.front()));
  chart.x = {"chips", "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  chart.y = {"time", "s", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::si};
  const auto at = [](const report::Value& row, std::string_view key) {
    const report::Value* value = row.find(key);
    return value ? report::numeric(*value).value_or(0.0) : 0.0;
  };
  const auto add = [&](const char* called, std::string_view key, draw::SeriesStyle style, int colour) {
    draw::ChartSeries series{called, {}, style, colour};
    for (const report::Value& row : rows) series.points.push_back({at(row, "chips"), at(row, key)});
    chart.series.push_back(std::move(series));
  };
  const auto ideal = [&](const char* called, std::string_view key, bool shrinks, int colour) {
    draw::ChartSeries series{called, {}, draw::SeriesStyle::dashed, colour};
    const double chips = at(rows.front(), "chips"), time = at(rows.front(), key);
    for (const report::Value& row : rows)
      series.points.push_back({at(row, "chips"), shrinks ? time * chips / at(row, "chips") : time});
    chart.series.push_back(std::move(series));
  };
  add("strong scaling", "time", draw::SeriesStyle::line, 1);
  ideal("strong, ideal", "time", true, 1);
  add("weak scaling", "weak_time", draw::SeriesStyle::line, 2);
  ideal("weak, ideal", "weak_time", false, 2);
  add("communication, strong", "communication_time", draw::SeriesStyle::line, 3);
  chart.footnote = "time: the larger of arithmetic and communication (full overlap); ideal: scaled from the first size";
  return chart;
}

}  // namespace assay::verbs::scaling
