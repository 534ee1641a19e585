#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/draw/stacked.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/base/text.h"

namespace assay::verbs::train {
namespace {

struct ChipCurve {
  std::string chip;
  std::vector<const SizedTraining*> sizes;  ///< that fit, by chips
};

std::vector<ChipCurve> curves(const TrainSizes& sizes) {
  std::vector<ChipCurve> out;
  for (const SizedTraining& size : sizes.all) {
    if (!size.run || !size.run->ends()) continue;
    const std::string& id = size.query.cluster.chip.id;
    auto known = std::find_if(out.begin(), out.end(), [&](const ChipCurve& c) { return c.chip == id; });
    if (known == out.end()) known = out.insert(out.end(), {id, {}});
    known->sizes.push_back(&size);
  }
  for (ChipCurve& curve : out)
    std::stable_sort(curve.sizes.begin(), curve.sizes.end(), [](const SizedTraining* a, const SizedTraining* b) {
      return a->query.cluster.chips() < b->query.cluster.chips();
    });
  return out;
}

/// In which the axis of time reads well.
struct TimeUnit {
  Seconds unit;
  std::string_view name;
};
TimeUnit unit_of(const std::vector<ChipCurve>& all) {
  Seconds longest;
  for (const ChipCurve& curve : all)
    for (const SizedTraining* size : curve.sizes) longest = std::max(longest, size->run->time);
  if (longest >= 2_day) return {1_day, "days"};
  if (longest >= 2_h) return {1_h, "h"};
  if (longest >= 1_s) return {1_s, "s"};
  return {1_ms, "ms"};
}

double chips_of(const SizedTraining& size) { return size.query.question.chips; }

draw::Scene front_picture(const TrainSizes& sizes) {
  const TrainQuery& query = sizes.all[sizes.chosen].query;
  const SizesFront found = sizes_front(sizes);
  const std::vector<ChipCurve> all = curves(sizes);
  const TimeUnit unit = unit_of(all);
  draw::Chart chart;
  chart.title = fmt::format("{}: {} against time", query.imported.model.id, found.priced ? "cost" : "chips");
  chart.subtitle = query.tokens ? fmt::format("a run of {}", human(Tokens(*query.tokens))) : std::string("one step");
  chart.x = {"time", std::string(unit.name), draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  chart.y = {found.priced ? "cost" : "chips", found.priced ? "USD" : "", draw::ScaleKind::log, std::nullopt,
             draw::NumberStyle::compact};
  int colour = 0;
  for (const ChipCurve& curve : all) {
    colour = colour % (draw::series_colour_count - 1) + 1;  // the last one is the front's
    draw::ChartSeries series{curve.chip, {}, draw::SeriesStyle::markers, colour};
    for (const SizedTraining* size : curve.sizes)
      if (std::find(found.compared.begin(), found.compared.end(), size) != found.compared.end())
        series.points.push_back({size->run->time / unit.unit, found.price_of(*size)});
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  draw::ChartSeries front{"front", {}, draw::SeriesStyle::line, draw::series_colour_count};
  for (const SizedTraining* size : found.front) {
    front.points.push_back({size->run->time / unit.unit, found.price_of(*size)});
    chart.points.push_back({size->query.cluster.text, front.points.back().x, front.points.back().y, 0});
  }
  std::sort(front.points.begin(), front.points.end(),
            [](const draw::PlotPoint& a, const draw::PlotPoint& b) { return a.x < b.x; });
  chart.series.push_back(std::move(front));
  chart.footnote = "on the front nothing is both faster and cheaper";
  return draw::draw(chart);
}

}  // namespace

draw::Scene sizes_picture(const TrainSizes& sizes) {
  if (sizes.wants_front) return front_picture(sizes);
  const TrainQuery& query = sizes.all[sizes.chosen].query;
  const bool of_run = query.tokens.has_value();
  const std::vector<ChipCurve> all = curves(sizes);
  const TimeUnit unit = unit_of(all);
  draw::Chart time, cost;
  const std::string what = of_run ? fmt::format("a run of {}", human(Tokens(*query.tokens))) : std::string("one step");
  time.title = fmt::format("{}: time against chips", query.imported.model.id);
  time.subtitle = fmt::format("{}, batch of {}, sequences of {}; the best strategy at each size", what,
                              human(Tokens(query.batch_tokens)), query.sequence);
  time.x = {"chips", "", draw::ScaleKind::log, std::nullopt, draw::NumberStyle::compact};
  time.y = {of_run ? "time of the run" : "time of a step", std::string(unit.name), draw::ScaleKind::log, std::nullopt,
            draw::NumberStyle::compact};
  time.footnote = "dashed: ideal scaling from the smallest size that fits";
  cost.title = fmt::format("{}: cost against chips", query.imported.model.id);
  cost.subtitle = fmt::format("{}, at the newest price in the catalogue", what);
  cost.x = time.x;
  cost.y = {of_run ? "cost of the run" : "cost of a step", "USD", draw::ScaleKind::log, std::nullopt,
            draw::NumberStyle::compact};
  int colour = 0;
  for (const ChipCurve& curve : all) {
    colour = colour % 8 + 1;
    draw::ChartSeries seconds{curve.chip, {}, draw::SeriesStyle::line, colour};
    draw::ChartSeries ideal{curve.chip + ", ideal", {}, draw::SeriesStyle::dashed, colour};
    draw::ChartSeries dollars{curve.chip, {}, draw::SeriesStyle::line, colour};
    const SizedTraining& first = *curve.sizes.front();
    for (const SizedTraining* size : curve.sizes) {
      seconds.points.push_back({chips_of(*size), size->run->time / unit.unit});
      ideal.points.push_back({chips_of(*size), first.run->time / unit.unit * chips_of(first) / chips_of(*size)});
      if (size->run->cost) dollars.points.push_back({chips_of(*size), size->run->cost->value()});
    }
    time.series.push_back(std::move(seconds));
    time.series.push_back(std::move(ideal));
    if (!dollars.points.empty()) cost.series.push_back(std::move(dollars));
  }
  if (sizes.deadline) time.lines.push_back({draw::Orientation::horizontal, *sizes.deadline / unit.unit, "--deadline"});
  const SizedTraining& chosen = sizes.all[sizes.chosen];
  if (chosen.run && chosen.run->ends()) {
    const std::string label = fmt::format("{} chips", human_count(chosen.query.cluster.chips()));
    time.points.push_back({label, chips_of(chosen), chosen.run->time / unit.unit, 0});
    if (chosen.run->cost) cost.points.push_back({label, chips_of(chosen), chosen.run->cost->value(), 0});
  }
  if (cost.series.empty()) return draw::draw(time);
  time.height = cost.height = 420.0;
  return draw::stacked(draw::draw(time), draw::draw(cost));
}

}  // namespace assay::verbs::train
