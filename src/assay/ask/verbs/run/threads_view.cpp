#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/run/serving_view.h"

namespace assay::verbs::run {
namespace {

using Kind = engine::EngineCall::Kind;

constexpr const char* call_names[] = {"prefill", "insert", "generate"};

bool is_of_prompts(const engine::ServerActivity& activity) { return activity.kind == Kind::prefill; }

/// The time in which both threads worked. Activities of one thread come one after the other, by their start.
Seconds both_at_work(const std::vector<engine::ServerActivity>& activities) {
  Seconds sum;
  for (const engine::ServerActivity& one : activities)
    for (const engine::ServerActivity& other : activities)
      if (is_of_prompts(one) && !is_of_prompts(other))
        sum += std::max(Seconds(), std::min(one.end, other.end) - std::max(one.start, other.start));
  return sum;
}

}  // namespace

ThreadsView threads_view(const engine::ServerReport& report, std::int64_t queue) {
  draw::Timeline timeline;
  timeline.title = "Threads of a server";
  timeline.subtitle = fmt::format("a queue of {} between the thread of the prompts and the one that decodes", queue);
  timeline.lanes = {{"prefill"}, {"generate"}};
  for (const char* name : call_names) timeline.classes.emplace_back(name);
  report::Items rows;
  Seconds busy[2] = {};
  for (const engine::ServerActivity& one : report.activities) {
    const std::size_t lane = is_of_prompts(one) ? 0 : 1;
    const char* call = call_names[static_cast<std::size_t>(one.kind)];
    busy[lane] += one.end - one.start;
    report::Members row{{"thread", timeline.lanes[lane].name}, {"call", call}};
    std::string label;
    if (one.kind == Kind::generate) {
      row.emplace_back("sequences", one.sequences);
      label = fmt::format("{} sequence{}", one.sequences, one.sequences == 1 ? "" : "s");
    } else {
      row.emplace_back("request", static_cast<std::int64_t>(one.request) + 1);
      label = fmt::format("request {}", one.request + 1);
    }
    if (one.kind == Kind::insert) row.emplace_back("slot", one.slot + 1);
    row.emplace_back("start", one.start);
    row.emplace_back("end", one.end);
    rows.emplace_back(std::move(row));
    timeline.bars.push_back({lane, one.start, one.end, label, static_cast<int>(one.kind)});
  }
  const Seconds both = both_at_work(report.activities);
  ThreadsView view;
  view.members = {{"queue", queue},
                  {"time", report.time},
                  {"prefill_busy", busy[0]},
                  {"generate_busy", busy[1]},
                  {"both_busy", both},
                  {"waited_for_room", report.waited_for_room},
                  {"waited_for_prompts", report.waited_for_prompts},
                  {"activities", std::move(rows)}};
  const auto text = [](Seconds time) { return report::short_quantity(time); };
  view.sentences = {fmt::format("both threads worked during {} of {}", text(both), text(report.time)),
                    fmt::format("the queue held up prefill for {} and decoding for {}", text(report.waited_for_room),
                                text(report.waited_for_prompts))};
  view.picture = draw::draw_timeline(timeline);
  return view;
}

}  // namespace assay::verbs::run
