#include "assay/ask/verbs/run/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/chart/chart.h"
#include "assay/ask/draw/heat_map.h"
#include "assay/ask/draw/pages_scene.h"
#include "assay/ask/draw/timeline/timeline_scene.h"
#include "assay/ask/report/figures.h"
#include "assay/base/index.h"
#include "assay/predict/serving/load/paged_cache.h"

namespace assay::verbs::run {
namespace {

using Kind = engine::EngineCall::Kind;

constexpr std::size_t most_shown = 64;  ///< of calls, iterations and pages that are drawn or listed

/// Characters that a picture can show.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '.';
  return text;
}

draw::Scene pages_frame(const ServedRun& run, const serving::PagedCache& cache, std::int64_t page,
                        std::int64_t iteration) {
  std::vector<draw::PageTable> tables;
  std::map<std::int64_t, std::size_t> place;
  for (const auto& [request, pages] : cache.tables()) {
    place[request] = tables.size();
    tables.push_back({fmt::format("request {}", request + 1), {}, static_cast<int>(request) + 1});
    for (const int one : pages) tables.back().pages.push_back(at(one));
  }
  std::vector<draw::PageBox> boxes;
  for (const serving::PagedCache::Page& one : cache.pages()) {
    if (boxes.size() == most_shown) break;
    draw::PageBox box;
    box.text = printable(run.text(one.tokens));
    box.filled = static_cast<double>(one.tokens.size()) / static_cast<double>(page);
    for (const std::int64_t owner : one.owners) box.tables.push_back(place.at(owner));
    boxes.push_back(std::move(box));
  }
  for (draw::PageTable& table : tables)
    std::erase_if(table.pages, [&](std::size_t number) { return number >= boxes.size(); });
  return draw::draw_pages(
      fmt::format("Pages after iteration {}", iteration),
      fmt::format("{} in use, {} shared, {} copied so far; {} of their room is not used", cache.in_use(),
                  cache.shared(), cache.copies(), report::percent(cache.unused_share())),
      tables, boxes);
}

report::Items table_rows(const serving::PagedCache& cache) {
  report::Items rows;
  for (const auto& [request, pages] : cache.tables()) {
    report::Items numbers;
    std::int64_t tokens = 0;
    for (const int one : pages) {
      numbers.emplace_back(static_cast<std::int64_t>(one));
      tokens += std::ssize(cache.pages()[at(one)].tokens);
    }
    rows.emplace_back(report::Members{{"request", request + 1}, {"tokens", tokens}, {"pages", std::move(numbers)}});
  }
  return rows;
}

}  // namespace

report::Items call_rows(const engine::ServerReport& report) {
  report::Items rows;
  for (std::size_t i = 0; i < report.calls.size(); ++i) {
    const engine::EngineCall& call = report.calls[i];
    report::Members row{{"iteration", call.iteration}};
    if (call.kind == Kind::generate) {
      std::size_t last = i;
      while (last + 1 < report.calls.size() && report.calls[last + 1].kind == Kind::generate &&
             report.calls[last + 1].iteration == call.iteration)
        ++last;
      row.emplace_back("call", "generate");
      row.emplace_back("sequences", static_cast<std::int64_t>(last - i + 1));
      i = last;
    } else {
      row.emplace_back("call", call.kind == Kind::prefill ? "prefill" : "insert");
      row.emplace_back("request", static_cast<std::int64_t>(call.request) + 1);
      if (call.kind == Kind::prefill) row.emplace_back("tokens", call.tokens - 1);  // the last one is the first answer
      if (call.kind == Kind::insert) {
        row.emplace_back("slot", call.slot + 1);
        if (call.cache > Bytes(0)) row.emplace_back("cache", call.cache);  // a GPU writes it where it stays
      }
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

draw::Scene slots_picture(const engine::ServerReport& report) {
  draw::HeatMapInput map{"Slots of the batch",
                         "the request that each slot decodes; a prompt is processed in the iteration before",
                         "iteration",
                         "",
                         {},
                         {},
                         {}};
  const std::size_t iterations = std::min(at(report.iterations), most_shown);
  for (std::size_t i = 0; i < iterations; ++i) map.columns.push_back(fmt::format("{}", i + 1));
  std::int64_t slots = 0;
  for (const engine::EngineCall& call : report.calls) slots = std::max(slots, call.slot + 1);
  map.rows.emplace_back("prefill");
  for (std::int64_t slot = 0; slot < slots; ++slot) map.rows.push_back(fmt::format("slot {}", slot + 1));
  map.cells.assign(map.rows.size(), std::vector<std::optional<draw::HeatMapCell>>(iterations));
  for (const engine::EngineCall& call : report.calls) {
    if (call.kind == Kind::insert || at(call.iteration) > iterations) continue;
    auto& cell = map.cells[call.kind == Kind::prefill ? 0 : at(call.slot) + 1][at(call.iteration) - 1];
    const std::string before = cell ? cell->text + ", " : "";
    cell = draw::HeatMapCell{static_cast<double>(call.request), fmt::format("{}{}", before, call.request + 1),
                             fmt::format("request {}, {} tokens", call.request + 1, call.tokens)};
  }
  return draw::draw_heat_map(map);
}

PagesView pages_view(const ServedRun& run, std::int64_t page, bool draws) {
  serving::PagedCache cache(page);
  PagesView out;
  report::Items moments;
  std::int64_t most = 0, most_shared = 0;
  double unused = 0.0;
  std::int64_t iterations = 0;
  const auto sequence = [&](std::size_t request) {
    std::vector<int> tokens = run.prompts[request].tokens;
    const std::vector<int>& made = run.report.requests[request].tokens;
    tokens.insert(tokens.end(), made.begin(), made.end());
    return tokens;
  };
  const auto moment = [&](std::int64_t iteration) {
    ++iterations;
    most = std::max(most, cache.in_use());
    most_shared = std::max(most_shared, cache.shared());
    unused += cache.unused_share();
    if (moments.size() < most_shown)
      moments.emplace_back(report::Members{{"iteration", iteration}, {"tables", table_rows(cache)}});
    if (draws && out.frames.size() < most_shown) out.frames.push_back(pages_frame(run, cache, page, iteration));
  };
  for (std::size_t i = 0; i < run.report.calls.size(); ++i) {
    const engine::EngineCall& call = run.report.calls[i];
    const auto id = static_cast<std::int64_t>(call.request);
    // The newest token is read in the next step, and only then is in the cache.
    const std::vector<int> tokens = sequence(call.request);
    if (call.kind == Kind::prefill) {
      cache.add(id, run.prompts[call.request].tokens);
    } else if (call.kind == Kind::generate) {
      std::int64_t held = 0;
      for (const int one : cache.tables().at(id)) held += std::ssize(cache.pages()[at(one)].tokens);
      for (; held < std::min<std::int64_t>(call.tokens - 1, std::ssize(tokens)); ++held)
        cache.append(id, tokens[at(held)]);
    }
    const bool ends = i + 1 == run.report.calls.size() || run.report.calls[i + 1].iteration != call.iteration;
    if (!ends) continue;
    moment(call.iteration);
    for (std::size_t request = 0; request < run.report.requests.size(); ++request)
      if (run.report.requests[request].finished == call.iteration) cache.remove(static_cast<std::int64_t>(request));
  }
  out.members = {{"page", Tokens(static_cast<double>(page))},
                 {"most", most},
                 {"most_shared", most_shared},
                 {"copies", cache.copies()},
                 {"unused_share", iterations == 0 ? 0.0 : unused / static_cast<double>(iterations)},
                 {"moments", std::move(moments)}};
  return out;
}

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

WorkView work_view(const model::Transformer& model, const engine::Prompt& prompt) {
  draw::Chart chart;
  chart.title = "Work of a token, with a cache and without";
  chart.subtitle = "without one, all tokens of the sequence are read again for each new one";
  chart.x.label = "tokens of the sequence";
  chart.y.label = "work of the next one";
  chart.y.unit = "FLOP";
  chart.series = {{"without a cache"}, {"with a cache"}};
  WorkView view;
  Flops sums[2] = {};
  for (std::int64_t made = 1; made < prompt.wanted; ++made) {
    const std::int64_t tokens = std::ssize(prompt.tokens) + made;
    const Flops each[2] = {engine::next_token_flops(model, tokens, false),
                           engine::next_token_flops(model, tokens, true)};
    for (std::size_t way = 0; way < 2; ++way) {
      sums[way] += each[way];
      chart.series[way].points.push_back({static_cast<double>(tokens), each[way].value()});
    }
    view.rows.emplace_back(report::Members{{"tokens", tokens}, {"without_cache", each[0]}, {"with_cache", each[1]}});
  }
  if (sums[1] > Flops(0))
    view.sentence = fmt::format("without a cache, the tokens after the first of a request take {:.3g} times the work",
                                sums[0] / sums[1]);
  view.picture = draw::draw(chart);
  return view;
}

}  // namespace assay::verbs::run
