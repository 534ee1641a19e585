#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/ask/draw/chart/roofline_chart.h"
#include "assay/ask/draw/stacked.h"
#include "assay/ask/verbs/profile/profile.h"
#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;

/// Operations that took longest, as points below the chip's roof for their format.
std::optional<draw::Scene> roofline_of(const Query& query) {
  if (!query.chip) return std::nullopt;
  constexpr std::size_t most_points = 12;
  std::vector<draw::RoofPoint> points;
  std::map<Dtype, FlopsPerSecond> peaks;
  for (const trace::OperationTime& one : query.device().summary.operations) {
    if (points.size() == most_points) break;
    if (!one.work || !one.work->format || !one.work->matrix || !one.work->bytes || !(one.time > Seconds(0))) continue;
    const auto peak = hardware::peak_rate(*query.chip, *one.work->format, "");
    if (!peak || !(*one.work->bytes > Bytes(0)) || !(one.work->flops > Flops(0))) continue;
    peaks.emplace(*one.work->format, peak->value);
    points.push_back({fmt::format("{} {}", one.name.substr(one.name.rfind(':') + 1), one.shapes),
                      one.work->flops / *one.work->bytes, static_cast<double>(one.calls) * one.work->flops / one.time});
  }
  if (points.empty()) return std::nullopt;
  std::vector<draw::RoofLine> roofs;
  for (const auto& [format, peak] : peaks)
    roofs.push_back({std::string(name(format)), peak, query.chip->hbm().bandwidth->value});
  return draw::draw(draw::roofline_chart("Operations below the roof", query.chip->name, roofs, points));
}

}  // namespace

draw::Timeline timeline_of(const Query& query) {
  const Device& device = query.device();
  const trace::Trace& of = query.traces[device.trace];
  draw::Timeline timeline;
  timeline.title = of.file;
  timeline.subtitle = device.summary.name;
  const auto all = trace::device_events(of, *query.vocabulary);
  const std::vector<trace::PlacedEvent>& events = all.at(device.summary.device);
  const trace::Ticks first = of.events[events.front().event].start;
  std::map<std::uint32_t, std::size_t> lanes;
  std::map<std::size_t, int> classes;
  for (const trace::CategoryTime& category : device.summary.categories)  // the longest first
    if (classes.try_emplace(category.category, static_cast<int>(timeline.classes.size())).second)
      timeline.classes.emplace_back(query.vocabulary->categories[category.category].name);
  for (const trace::PlacedEvent& placed : events) {
    const trace::Event& event = of.events[placed.event];
    const auto [lane, is_new] = lanes.try_emplace(event.lane, timeline.lanes.size());
    if (is_new) timeline.lanes.push_back({fmt::format("stream {}", of.lanes[event.lane].thread)});
    const std::uint32_t operation = trace::operation_of(of, event);
    std::string label = short_kernel(of.name(event));
    if (operation != trace::none) label += fmt::format(" ({})", of.name(of.events[operation]));
    timeline.bars.push_back({lane->second, trace::seconds(event.start - first), trace::seconds(event.end() - first),
                             std::move(label), classes.at(placed.category)});
  }
  Seconds at(0);
  for (const trace::StepTime& step : device.summary.steps)
    timeline.marks.push_back({at += step.time, fmt::format("end of {}", step.name)});
  return timeline;
}

draw::Scene picture_of(const Query& query) {
  const trace::DeviceSummary& summary = query.device().summary;
  draw::Timeline parts;
  parts.title = "Time by category";
  parts.subtitle = "sum over kernels";
  for (const trace::CategoryTime& one : summary.categories) {
    const trace::Category& category = query.vocabulary->categories[one.category];
    parts.bars.push_back({parts.lanes.size(), Seconds(0), one.time, fmt::format("{} calls", one.count),
                          static_cast<int>(category.work_class)});
    parts.lanes.push_back({one.kind.empty() ? category.name : one.kind});
  }
  parts.classes = {{"computation"}, {"communication", draw::network_colour}, {"copies"}};
  draw::Timeline timeline = timeline_of(query);
  draw::Scene scene = draw::stacked(draw::draw_timeline(timeline), draw::draw_timeline(parts));
  if (const auto roofline = roofline_of(query)) scene = draw::stacked(std::move(scene), *roofline);
  return scene;
}

}  // namespace assay::verbs::profile
