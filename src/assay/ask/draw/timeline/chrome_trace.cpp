// The Chrome trace event format: complete events ("X") with microseconds, and names for threads ("M").
#include <nlohmann/json.hpp>

#include "assay/ask/draw/timeline/timeline_scene.h"

namespace assay::draw {

std::string chrome_trace_json(const Timeline& timeline) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"args", {{"name", timeline.title}}}});
  for (std::size_t i = 0; i < timeline.lanes.size(); ++i) {
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", i}, {"args", {{"name", timeline.lanes[i].name}}}});
    // Without it viewers sort lanes by name.
    events.push_back(
        {{"name", "thread_sort_index"}, {"ph", "M"}, {"pid", 0}, {"tid", i}, {"args", {{"sort_index", i}}}});
  }
  for (const TimelineBar& bar : timeline.bars) {
    if (bar.lane >= timeline.lanes.size()) continue;
    const auto kind = static_cast<std::size_t>(bar.colour_class);
    Json& event = events.emplace_back(
        Json{{"name", bar.label},
             {"cat", bar.colour_class >= 0 && kind < timeline.classes.size() ? timeline.classes[kind].name : ""},
             {"ph", "X"},
             {"pid", 0},
             {"tid", bar.lane},
             {"ts", bar.start.in(1_us)},
             {"dur", (bar.end - bar.start).in(1_us)}});
    if (bar.alone) event["args"] = {{"alone", bar.alone->in(1_us)}};
  }
  for (const TimelineMark& mark : timeline.marks)
    events.push_back({{"name", mark.label}, {"ph", "i"}, {"pid", 0}, {"tid", 0}, {"ts", mark.at.in(1_us)}, {"s", "g"}});
  for (const TimelineCounter& counter : timeline.counters)
    for (const TimelineCounter::Point& point : counter.points)
      events.push_back({{"name", counter.name},
                        {"ph", "C"},
                        {"pid", 0},
                        {"ts", point.at.in(1_us)},
                        {"args", {{"value", point.value}}}});
  const Json json = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::draw
