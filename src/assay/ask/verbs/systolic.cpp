// assay systolic: a matrix product on a weight-stationary systolic array, cycle by cycle.
#include "assay/predict/roofline/systolic.h"

#include <fmt/format.h>

#include <cmath>

#include "assay/ask/draw/animation.h"
#include "assay/ask/draw/array_scene.h"
#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"

namespace assay::verbs::systolic {
namespace {

constexpr double largest_simulation = 5e8;  ///< processing-element steps: about half a second
constexpr double largest_product = 1e18;    ///< multiply-adds that the closed form can count

struct Query {
  roofline::SystolicArray array;
  std::int64_t m = 1, k = 1, n = 1;
  std::optional<Hertz> clock;
  std::string array_source;
};

Result<Query> read_query(const Request& request, const Context& context) {
  Query query;
  ASSAY_TRY(m, parse_count(request.arguments()[0], "M"));
  ASSAY_TRY(k, parse_count(request.arguments()[1], "K"));
  ASSAY_TRY(n, parse_count(request.arguments()[2], "N"));
  query.m = m;
  query.k = k;
  query.n = n;
  query.array = {128, 128, !request.has("single-buffered")};
  query.array_source = "default 128x128";
  if (request.has("on")) {
    ASSAY_TRY(cluster, cluster_of(request, context));
    const hardware::MatrixUnit& unit = cluster.chip.matrix_unit;
    if (!unit.rows)
      return fail("--on",
                  fmt::format("the matrix unit of {} is not a systolic array in the catalogue", cluster.chip.id),
                  "name a TPU, or give --array 128x128");
    query.array.rows = unit.rows->value;
    query.array.columns = unit.columns->value;
    if (unit.clock) query.clock = unit.clock->value;
    query.array_source = unit.rows->source;
  }
  if (const auto text = request.value("array")) {
    const auto sides = split(*text, 'x');
    if (sides.size() != 2)
      return fail("--array", fmt::format("{} is not ROWSxCOLUMNS", in_quotes(*text)), "e.g. --array 128x128",
                  Error::Kind::usage);
    ASSAY_TRY(rows, parse_count(sides[0], "--array"));
    ASSAY_TRY(columns, parse_count(sides[1], "--array"));
    if (rows > 4096 || columns > 4096) return fail("--array", "an array has at most 4096 rows and columns", "");
    query.array.rows = rows;
    query.array.columns = columns;
    query.array_source = "--array";
  }
  const auto up = [](std::int64_t size, std::int64_t side) {
    return std::ceil(static_cast<double>(size) / static_cast<double>(side)) * static_cast<double>(side);
  };
  const double padded =
      (static_cast<double>(query.m) + 3.0 * 4096) * up(query.k, query.array.rows) * up(query.n, query.array.columns);
  if (padded > largest_product)
    return fail("systolic", "the product is too large to count",
                fmt::format("M x K x N is limited to {:.0e}", largest_product));
  return query;
}

draw::Scene picture_of(const Query& query, const roofline::SystolicRun& run) {
  const auto cells = static_cast<double>(query.array.rows * query.array.columns);
  draw::Chart chart;
  chart.title = fmt::format("[{},{}] x [{},{}] on a {}x{} systolic array", query.m, query.k, query.k, query.n,
                            query.array.rows, query.array.columns);
  chart.subtitle = fmt::format("{} cycles, {:.1f} % of the multipliers' time is useful", human_count(run.cycles.total),
                               100.0 * run.cycles.utilisation);
  chart.x = {"cycle", "", draw::ScaleKind::linear, draw::AxisRange{0.0, static_cast<double>(run.cycles.total)},
             draw::NumberStyle::compact};
  chart.y = {"multipliers busy", "", draw::ScaleKind::linear, draw::AxisRange{0.0, 1.0}, draw::NumberStyle::percent};
  const auto bucket = static_cast<double>(run.activity.cycles_per_bucket);
  draw::ChartSeries useful{"useful", {}, draw::SeriesStyle::step_area, 0},
      with_padding{"with padding", {}, draw::SeriesStyle::step, draw::series_number(draw::waiting_colour)};
  bool padding = false;
  for (std::size_t i = 0; i < run.activity.useful.size(); ++i) {
    const double at = static_cast<double>(i) * bucket;
    const double width = std::min(bucket, static_cast<double>(run.cycles.total) - at);
    const double busy = static_cast<double>(run.activity.useful[i]), idle = static_cast<double>(run.activity.padded[i]);
    padding = padding || idle > 0;
    useful.points.push_back({at, busy / (width * cells)});
    with_padding.points.push_back({at, (busy + idle) / (width * cells)});
  }
  for (draw::ChartSeries* series : {&useful, &with_padding})
    if (!series->points.empty())
      series->points.push_back({static_cast<double>(run.cycles.total), series->points.back().y});
  chart.series.push_back(std::move(useful));
  if (padding) chart.series.push_back(std::move(with_padding));
  const auto total = static_cast<double>(run.cycles.total), load = static_cast<double>(run.cycles.load),
             drain = static_cast<double>(run.cycles.drain);
  chart.regions.push_back({0.0, load, "load", draw::RegionRole::bad});
  chart.regions.push_back({load, std::max(load, total - drain), "multiply", draw::RegionRole::good});
  if (drain > 0) chart.regions.push_back({total - drain, total, "drain", draw::RegionRole::bad});
  return draw::draw(chart);
}

/// What every cell holds, cycle by cycle; only for arrays and products that can be read.
Result<std::vector<draw::Scene>> frames_of(const Query& query, std::int64_t cycles) {
  constexpr std::int64_t most_side = 8, most_cycles = 96;
  const roofline::SystolicArray& array = query.array;
  if (array.rows > most_side || array.columns > most_side || cycles > most_cycles)
    return fail(
        "--animate",
        fmt::format("cells are shown for arrays up to {0}x{0} and products up to {1} cycles, not {2}x{3} and {4}",
                    most_side, most_cycles, array.rows, array.columns, human_count(cycles)),
        "e.g. assay systolic 6 4 4 --array 4x4");
  const auto x = roofline::checked_operand(query.m * query.k, roofline::checked_x_seed),
             w = roofline::checked_operand(query.k * query.n, roofline::checked_w_seed);
  std::vector<draw::Scene> frames;
  for (const roofline::SystolicFrame& at : roofline::systolic_frames(array, query.m, query.k, query.n, x, w))
    frames.push_back(draw::draw_array(fmt::format("[{},{}] x [{},{}] on a {}x{} array", query.m, query.k, query.k,
                                                  query.n, array.rows, array.columns),
                                      fmt::format("after cycle {} of {}", frames.size() + 1, cycles), at));
  return frames;
}

report::Members cycle_members(const roofline::SystolicCycles& cycles) {
  return {{"total", cycles.total},   {"load", cycles.load},   {"fill", cycles.fill},
          {"steady", cycles.steady}, {"stall", cycles.stall}, {"drain", cycles.drain}};
}

}  // namespace

Result<report::Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(query, read_query(request, context));
  const roofline::SystolicCycles closed = roofline::systolic_cycles(query.array, query.m, query.k, query.n);
  const bool simulate = roofline::estimated_work(query.array, query.m, query.k, query.n) <= largest_simulation;
  if (request.picture() && !simulate)
    return fail("--format svg", "the picture needs the simulation, and the product is too large to simulate",
                "use smaller sizes");
  report::Response response;
  report::Members& out = response.results;
  out.emplace_back("array", fmt::format("{}x{}", query.array.rows, query.array.columns));
  out.emplace_back("double_buffered", query.array.double_buffered);
  out.emplace_back("tiles", closed.tiles);
  out.emplace_back("cycles", cycle_members(closed));
  out.emplace_back("steady_cycles_per_tile", closed.steady_cycles_per_tile);
  out.emplace_back("flops_per_cycle_peak", Flops(2.0 * static_cast<double>(query.array.rows * query.array.columns)));
  out.emplace_back("flops", Flops(2.0 * static_cast<double>(closed.useful_macs)));
  out.emplace_back("utilisation", closed.utilisation);
  out.emplace_back("padding_waste", closed.padding_waste);
  out.emplace_back("idle_share", 1.0 - closed.utilisation - closed.padding_waste);
  out.emplace_back("utilisation_limit", closed.utilisation_limit);
  if (query.clock) {
    out.emplace_back("clock", *query.clock);
    out.emplace_back("time", static_cast<double>(closed.total) / *query.clock);
    out.emplace_back("achieved", Flops(2.0 * static_cast<double>(closed.useful_macs)) /
                                     (static_cast<double>(closed.total) / *query.clock));
  }
  if (simulate) {
    const auto [run, max_error] = roofline::simulate_and_check(query.array, query.m, query.k, query.n);
    report::Members simulated = cycle_members(run.cycles);
    simulated.emplace_back("max_error", max_error);
    simulated.emplace_back("equals_closed_form", run.cycles == closed);
    out.emplace_back("simulated", std::move(simulated));
    if (request.picture()) response.picture = picture_of(query, run);
  } else {
    response.notes.emplace_back(
        "too large to simulate cycle by cycle; the closed form is exact and equals the simulation at every size "
        "tested");
  }
  if (request.frames() || request.has("animate")) {
    ASSAY_TRY(frames, frames_of(query, closed.total));
    if (const auto file = request.value("animate"))
      response.files.emplace_back(*file, draw::to_animated_svg("systolic array", frames, 0.9));
    if (request.frames()) response.frames = std::move(frames);
  }
  response.notes.push_back(fmt::format("array from {}", query.array_source));
  response.headline = fmt::format("{} cycles, {:.1f} % useful", human_count(closed.total), 100.0 * closed.utilisation);
  return response;
}

}  // namespace assay::verbs::systolic
