#include "assay/ask/verbs/train/timeline_members.h"

#include <algorithm>

namespace assay::verbs::train {

report::Members timeline_members(const draw::Timeline& timeline) {
  report::Items lanes, classes, bars, marks, counters;
  for (const draw::TimelineClass& one : timeline.classes) classes.emplace_back(one.name);
  for (const draw::TimelineLane& lane : timeline.lanes)
    lanes.emplace_back(report::Members{{"name", lane.name}, {"members", lane.members}});
  std::vector<const draw::TimelineBar*> order;
  for (const draw::TimelineBar& bar : timeline.bars) order.push_back(&bar);
  std::stable_sort(order.begin(), order.end(), [](const draw::TimelineBar* a, const draw::TimelineBar* b) {
    return a->start != b->start ? a->start < b->start : a->lane < b->lane;
  });
  for (const draw::TimelineBar* bar : order)
    bars.emplace_back(report::Members{{"lane", static_cast<std::int64_t>(bar->lane)},
                                      {"class", static_cast<std::int64_t>(bar->colour_class)},
                                      {"label", bar->label},
                                      {"start", bar->start},
                                      {"end", bar->end},
                                      {"alone", bar->alone ? report::Value(*bar->alone) : report::Value()}});
  for (const draw::TimelineMark& mark : timeline.marks)
    marks.emplace_back(report::Members{{"at", mark.at}, {"label", mark.label}});
  for (const draw::TimelineCounter& counter : timeline.counters) {
    report::Items points;
    for (const draw::TimelineCounter::Point& point : counter.points)
      points.emplace_back(report::Members{{"at", point.at}, {"value", point.value}});
    counters.emplace_back(report::Members{{"name", counter.name}, {"points", std::move(points)}});
  }
  return {{"title", timeline.title},        {"subtitle", timeline.subtitle}, {"lanes", std::move(lanes)},
          {"classes", std::move(classes)},  {"bars", std::move(bars)},       {"marks", std::move(marks)},
          {"counters", std::move(counters)}};
}

}  // namespace assay::verbs::train
