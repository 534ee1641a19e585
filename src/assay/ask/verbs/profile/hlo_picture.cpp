#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/draw/chart/roofline_chart.h"
#include "assay/ask/draw/lettering.h"
#include "assay/ask/draw/stacked.h"
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/profile/hlo.h"
#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

namespace hlo = assay::hlo;

constexpr std::size_t class_count = 7;

/// Memory after each instruction of the entry: arguments below, temporaries above.
draw::Scene memory_chart(const ProgramQuery& query) {
  draw::Chart chart;
  chart.title = "Memory over the program";
  chart.subtitle = fmt::format("{}, peak {}", query.module.name, report::short_quantity(query.memory.peak()));
  chart.x.label = "instruction of the entry computation";
  chart.y.label = "memory";
  const bool large = query.memory.peak() >= 1_GiB;
  const Bytes unit = large ? 1_GiB : 1_MiB;
  chart.y.unit = large ? "GiB" : "MiB";
  draw::ChartSeries all{"arguments and temporaries", {}, draw::SeriesStyle::step_area},
      held{"arguments", {}, draw::SeriesStyle::step_area};
  for (std::size_t i = 0; i < query.memory.over_time.size(); ++i) {
    const double x = static_cast<double>(i);
    all.points.push_back({x, (query.memory.arguments + query.memory.over_time[i]).in(unit)});
    held.points.push_back({x, query.memory.arguments.in(unit)});
  }
  chart.series = {std::move(all), std::move(held)};
  constexpr double notable = 0.1;  // of the capacity: less would be a line at the bottom
  if (query.cluster && query.memory.peak() > notable * query.cluster->chip.hbm().capacity.value)
    chart.lines.push_back({draw::Orientation::horizontal, query.cluster->chip.hbm().capacity.value.in(unit),
                           fmt::format("{} has", query.cluster->chip.id)});
  return draw::draw(chart);
}

draw::Scene class_bars(const ProgramQuery& query) {
  draw::Timeline parts;
  parts.title = "Time by class of kernel";
  parts.subtitle = fmt::format("estimate on {}", query.cluster->text);
  for (const auto& [of, sum] : class_sums(query)) {
    parts.bars.push_back({parts.lanes.size(), Seconds(0), sum.time, fmt::format("{} calls", sum.calls),
                          of == hlo::KernelClass::collective ? 1 : 0});
    parts.lanes.push_back({std::string(name(of))});
  }
  parts.classes = {{"computation"}, {"communication", draw::network_colour}};
  return draw::draw_timeline(parts);
}

std::optional<draw::Scene> roofline_scene(const ProgramQuery& query) {
  constexpr std::size_t most_points = 12;
  std::vector<std::size_t> order = costliest_kernels(query);
  std::erase_if(order, [&](std::size_t i) {
    const hlo::ProgramKernel& kernel = query.kernels.kernels[i];
    return !(kernel.work.matrix() > Flops(0)) || !(kernel.bytes > Bytes(0));
  });
  std::vector<draw::RoofPoint> points;
  std::map<Dtype, FlopsPerSecond> peaks;
  const hardware::Chip& chip = query.cluster->chip;
  for (std::size_t i = 0; i < std::min(most_points, order.size()); ++i) {
    const hlo::ProgramKernel& kernel = query.kernels.kernels[order[i]];
    const hlo::KernelPrice& price = query.price->kernels[order[i]];
    if (!(price.estimate > Seconds(0)) || !(price.compute > Seconds(0))) continue;
    points.push_back({fmt::format("{} {}", kernel_label(query, kernel), work_text(query.module, kernel)),
                      kernel.work.matrix() / kernel.bytes, query.share * kernel.work.matrix() / price.estimate});
    const FlopsPerSecond peak = query.share * kernel.work.matrix() / price.compute;
    for (const DtypeFacts& dtype : all_dtypes()) {
      const auto& known = chip.peak[static_cast<std::size_t>(dtype.dtype)];
      if (!known || std::abs(known->value / peak - 1.0) > 1e-3) continue;
      peaks.emplace(dtype.dtype, known->value);
      break;
    }
  }
  if (points.empty() || peaks.empty()) return std::nullopt;
  std::vector<draw::RoofLine> roofs;
  for (const auto& [format, peak] : peaks)
    roofs.push_back({std::string(name(format)), peak, chip.hbm().bandwidth->value});
  return draw::draw(draw::roofline_chart("Products below the roof", chip.name, roofs, points));
}

/// A graph of the costliest kernels of a computation; paths over others are edges.
struct Graph {
  std::vector<std::size_t> kernels;
  std::vector<std::vector<std::size_t>> sources;  ///< of each, places in `kernels`
  std::vector<std::size_t> level;
};

Graph graph_of(const ProgramQuery& query, std::uint32_t number) {
  constexpr std::size_t most_nodes = 40;  // at most 64: sets of them are bits
  Graph graph;
  for (const std::size_t i : costliest_kernels(query))
    if (query.kernels.kernels[i].computation == number) graph.kernels.push_back(i);
  graph.kernels.resize(std::min(most_nodes, graph.kernels.size()));
  const auto instruction = [&](std::size_t i) { return query.kernels.kernels[i].instruction; };
  std::sort(graph.kernels.begin(), graph.kernels.end(),
            [&](std::size_t a, std::size_t b) { return instruction(a) < instruction(b); });
  std::map<std::uint32_t, std::size_t> shown;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) shown.emplace(instruction(graph.kernels[i]), i);
  const hlo::Computation& computation = query.module.computations[number];
  std::vector<std::vector<std::size_t>> reach(computation.instructions.size());
  std::vector<std::uint64_t> ancestors(graph.kernels.size(), 0);
  graph.sources.resize(graph.kernels.size());
  graph.level.resize(graph.kernels.size(), 0);
  for (std::uint32_t i = 0; i < computation.instructions.size(); ++i) {
    std::vector<std::size_t>& from = reach[i];
    for (const std::uint32_t operand : computation.instructions[i].operands)
      for (const std::size_t node : reach[operand])
        if (std::find(from.begin(), from.end(), node) == from.end() && from.size() < most_nodes) from.push_back(node);
    if (const auto node = shown.find(i); node != shown.end()) {
      for (const std::size_t source : from) {
        ancestors[node->second] |= ancestors[source] | std::uint64_t{1} << source;
        graph.level[node->second] = std::max(graph.level[node->second], graph.level[source] + 1);
      }
      // An edge that a longer path makes plain is left out.
      for (const std::size_t source : from)
        if (std::none_of(from.begin(), from.end(), [&](std::size_t other) { return ancestors[other] >> source & 1; }))
          graph.sources[node->second].push_back(source);
      from = {node->second};
    }
  }
  // What nothing is waited for stands right above where it is needed.
  for (std::size_t i = graph.kernels.size(); i-- > 0;) {
    std::size_t needed = graph.level[i] + 1;
    bool any = false;
    for (std::size_t user = i + 1; user < graph.kernels.size(); ++user)
      if (std::find(graph.sources[user].begin(), graph.sources[user].end(), i) != graph.sources[user].end()) {
        needed = any ? std::min(needed, graph.level[user]) : graph.level[user];
        any = true;
      }
    if (any) graph.level[i] = needed - 1;
  }
  return graph;
}

}  // namespace

draw::Scene program_picture(const ProgramQuery& query) {
  draw::Scene scene = memory_chart(query);
  if (!query.price) return scene;
  scene = draw::stacked(class_bars(query), scene);
  if (const auto roofline = roofline_scene(query)) scene = draw::stacked(std::move(scene), *roofline);
  return scene;
}

Result<draw::Scene> program_graph(const ProgramQuery& query, std::string_view computation) {
  std::uint32_t number = query.module.entry;
  if (!computation.empty()) {
    std::vector<std::string> names;
    number = hlo::no_computation;
    for (std::uint32_t i = 0; i < query.module.computations.size(); ++i)
      if (query.kernels.calls[i] > 0.0 && !query.module.computations[i].fused) {
        names.emplace_back(query.module.computations[i].name);
        if (names.back() == computation) number = i;
      }
    if (number == hlo::no_computation)
      return fail("--graph", fmt::format("no computation {} runs", in_quotes(computation)),
                  suggestion(computation, names));
  }
  if (number == hlo::no_computation)
    return fail("--graph", "the program has no entry computation", "write the whole module");
  const Graph graph = graph_of(query, number);
  constexpr double box_width = 168.0, box_height = 40.0, gap = 22.0, margin = 28.0, title_room = 70.0;
  std::map<std::size_t, std::size_t> in_level;
  std::vector<draw::PlotPoint> places(graph.kernels.size());
  std::size_t widest = 1, levels = 1;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const std::size_t column = in_level[graph.level[i]]++;
    places[i] = {margin + static_cast<double>(column) * (box_width + gap),
                 title_room + static_cast<double>(graph.level[i]) * (box_height + gap)};
    widest = std::max(widest, column + 1);
    levels = std::max(levels, graph.level[i] + 1);
  }
  draw::Scene scene;
  scene.width = std::max(520.0, 2.0 * margin + static_cast<double>(widest) * (box_width + gap) - gap);
  scene.height = title_room + static_cast<double>(levels) * (box_height + gap) + margin;
  scene.title = fmt::format("Graph of {}", query.module.computations[number].name);
  scene.description = fmt::format("The {} costliest kernels and which of them needs which", graph.kernels.size());
  scene.add(draw::Label{{margin, 30.0}, scene.title, 16.0, draw::Anchor::start, draw::ColourRole::ink, true});
  scene.add(draw::Label{{margin, 50.0}, scene.description, 12.0, draw::Anchor::start, draw::ColourRole::muted});
  for (std::size_t i = 0; i < graph.kernels.size(); ++i)
    for (const std::size_t source : graph.sources[i]) {
      draw::Paint paint;
      paint.stroke = draw::ColourRole::muted;
      scene.add(draw::Polyline{{{places[source].x + box_width / 2.0, places[source].y + box_height},
                                {places[i].x + box_width / 2.0, places[i].y}},
                               paint});
    }
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const hlo::ProgramKernel& kernel = query.kernels.kernels[graph.kernels[i]];
    const hlo::Instruction& at = query.module.computations[number].instructions[kernel.instruction];
    const std::string shapes = work_text(query.module, kernel);
    draw::Paint paint;
    paint.fill = draw::ColourRole::surface;
    paint.stroke = draw::series_colour(1 + static_cast<int>(kernel.of) % static_cast<int>(class_count));
    paint.stroke_width = 2.0;
    std::string tip = fmt::format("{} = {}, {}", at.name, shape_text(at.shape, false), name(kernel.of));
    if (query.price)
      tip += fmt::format(", {}", report::short_quantity(query.price->kernels[graph.kernels[i]].estimate));
    scene.add(draw::Rectangle{places[i].x, places[i].y, box_width, box_height, 4.0, paint}, tip);
    scene.add(draw::Label{{places[i].x + 8.0, places[i].y + 16.0},
                          draw::shortened(kernel_label(query, kernel), 12.0, box_width - 16.0),
                          12.0},
              tip);
    scene.add(draw::Label{{places[i].x + 8.0, places[i].y + 32.0},
                          draw::shortened(shapes, 11.0, box_width - 16.0),
                          11.0,
                          draw::Anchor::start,
                          draw::ColourRole::muted},
              tip);
  }
  return scene;
}

}  // namespace assay::verbs::profile
