// One price: what is drawn and traced is what is listed, explained and answered. Numbers are read back from pictures
// and traces.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/base/text.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::verbs {
namespace {

Result<report::Response> drawn_answer(const std::string& line) {
  const auto words = split_words(line);
  if (!words) return tl::unexpected<Error>(words.error());
  auto request = parse_request(*words);
  if (!request) return tl::unexpected<Error>(request.error());
  request->want_picture();
  return ask(*request, {testing::catalogue()});
}

double value_of(const report::Value& row, std::string_view key) {
  const report::Value* found = row.find(key);
  const auto number = found ? report::numeric(*found) : std::nullopt;
  EXPECT_TRUE(number) << key;
  return number.value_or(-1.0);
}
std::string text_of(const report::Value& row, std::string_view key) { return report::scalar_text(*row.find(key)); }

/// A bar of a timeline as answers have it.
struct AnsweredBar {
  std::size_t lane = 0;
  std::string label;
  double start = 0, end = 0;
  std::optional<double> alone;
};
struct AnsweredTimeline {
  std::vector<std::string> lanes;
  std::vector<AnsweredBar> bars;

  explicit AnsweredTimeline(const report::Value& results) {
    const auto timeline = report::find_path(results, "timeline");
    EXPECT_TRUE(timeline);
    if (!timeline) return;
    for (const report::Value& lane : *timeline->find("lanes")->items()) lanes.push_back(text_of(lane, "name"));
    for (const report::Value& bar : *timeline->find("bars")->items())
      bars.push_back({static_cast<std::size_t>(value_of(bar, "lane")), text_of(bar, "label"), value_of(bar, "start"),
                      value_of(bar, "end"), report::numeric(*bar.find("alone"))});
  }
  std::vector<AnsweredBar> of(std::size_t lane) const {
    std::vector<AnsweredBar> out;
    for (const AnsweredBar& bar : bars)
      if (bar.lane == lane) out.push_back(bar);
    return out;
  }
};

/// Every event of the trace is a bar of the answer, and the other way round.
void expect_traced(const AnsweredTimeline& timeline, const std::string& trace, const std::string& line) {
  using Event = std::tuple<std::size_t, double, double, std::string, double>;
  std::vector<Event> traced, answered;
  const nlohmann::json document = nlohmann::json::parse(trace);
  for (const auto& event : document.at("traceEvents"))
    if (event.at("ph") == "X")
      traced.emplace_back(event.at("tid"), event.at("ts"), event.at("dur"), event.at("name"),
                          event.contains("args") ? event.at("args").at("alone").get<double>() : -1.0);
  for (const AnsweredBar& bar : timeline.bars)
    answered.emplace_back(bar.lane, Seconds(bar.start).in(1_us), (Seconds(bar.end) - Seconds(bar.start)).in(1_us),
                          bar.label, bar.alone ? Seconds(*bar.alone).in(1_us) : -1.0);
  std::sort(traced.begin(), traced.end());
  std::sort(answered.begin(), answered.end());
  EXPECT_EQ(traced, answered) << line;
}

/// Bars of the picture say what the answer says, and lie where it says. Returns how many.
std::size_t expect_drawn(const AnsweredTimeline& timeline, const draw::Scene& picture, const std::string& line) {
  std::map<std::string, std::vector<double>> starts;
  for (const AnsweredBar& bar : timeline.bars)
    starts[fmt::format("{}: {}, {}, {} to {}", timeline.lanes[bar.lane], bar.label,
                       human(Seconds(bar.end) - Seconds(bar.start)), human(Seconds(bar.start)),
                       human(Seconds(bar.end)))]
        .push_back(bar.start);
  std::vector<std::pair<double, double>> places;  // pixels and seconds
  std::size_t drawn = 0;
  for (const draw::SceneItem& item : picture.items) {
    const auto* shape = std::get_if<draw::Rectangle>(&item.shape);
    if (!shape || item.tooltip.find(" to ") == std::string::npos) continue;
    const auto known = starts.find(item.tooltip);
    EXPECT_NE(known, starts.end()) << item.tooltip << " of " << line;
    if (known == starts.end()) continue;
    ++drawn;
    if (known->second.size() == 1) places.emplace_back(shape->x, known->second.front());
  }
  if (places.size() < 3) return drawn;
  const auto [first, last] = std::minmax_element(places.begin(), places.end());
  const double scale = (last->first - first->first) / (last->second - first->second);
  for (const auto& [x, start] : places) EXPECT_NEAR(x, first->first + (start - first->second) * scale, 1e-6) << line;
  return drawn;
}

/// Kernels of the first pass through a layer take on the chip what the list says, where no collective slows them.
/// Returns how many.
std::size_t expect_listed(const AnsweredTimeline& timeline, const report::Value& results, const std::string& line) {
  if (timeline.lanes.empty() || timeline.lanes.front() != "chip") return 0;
  const auto rows = report::find_path(results, "program");
  std::vector<std::pair<std::string, double>> kernels;
  std::string block;
  for (const report::Value& row : *rows->items()) {
    const std::string of = text_of(row, "block");
    if (of.find("layer forward") == std::string::npos || (!block.empty() && of != block)) {
      if (!block.empty()) break;
      continue;
    }
    block = of;
    // Not collectives, views, parts of fused kernels and waiting for the host.
    if (!report::numeric(*row.find("flops")) || !(report::numeric(*row.find("time")).value_or(0.0) > 0.0)) continue;
    const std::string text = text_of(row, "text");
    kernels.emplace_back(text.substr(0, text.find('[')), value_of(row, "time"));
  }
  std::vector<AnsweredBar> chip = timeline.of(0);
  std::erase_if(chip, [](const AnsweredBar& bar) { return bar.label.starts_with("copy "); });
  EXPECT_GE(chip.size(), kernels.size()) << line;
  std::size_t alone = 0;
  for (std::size_t i = 0; i < std::min(chip.size(), kernels.size()); ++i) {
    const AnsweredBar& bar = chip[i];
    EXPECT_EQ(bar.label, kernels[i].first) << line;
    EXPECT_EQ(bar.alone, kernels[i].second) << bar.label << " of " << line;
    const bool is_slowed = std::any_of(timeline.bars.begin(), timeline.bars.end(), [&](const AnsweredBar& other) {
      return timeline.lanes[other.lane].starts_with("net") && other.start < bar.end && bar.start < other.end;
    });
    if (is_slowed) continue;
    ++alone;
    EXPECT_EQ(bar.end, bar.start + kernels[i].second) << bar.label << " of " << line;
  }
  return alone;
}

double named_node(const Ledger& ledger, std::string_view name) {
  for (int id = 0; id < ledger.size(); ++id)
    if (ledger.at(id).name == name) return ledger.at(id).quantity.value;
  return -1.0;
}

/// Every kernel and every collective of the list has its number in the explanation, to the last bit, and those of a
/// pass add up to it. Returns how many.
std::size_t expect_explained(const report::Response& response, const std::string& line) {
  std::map<std::string, std::set<double>> nodes;
  for (int id = 0; id < response.ledger.size(); ++id)
    if (!response.ledger.at(id).name.empty())
      nodes[response.ledger.at(id).name].insert(response.ledger.at(id).quantity.value);
  const auto rows = report::find_path(report::Value(response.results), "program");
  std::set<double> fused;  // lines that others are part of
  for (const report::Value& row : *rows->items())
    if (const auto of = report::numeric(*row.find("part_of"))) fused.insert(*of);
  std::map<std::string, double> passes;  // what is listed of each
  std::size_t explained = 0;
  for (const report::Value& row : *rows->items()) {
    std::string pass = text_of(row, "block");
    pass = pass.substr(0, pass.find(" x"));
    const auto time = report::numeric(*row.find("time"));
    const std::string kind = text_of(row, "kind"), text = text_of(row, "text");
    if (!nodes.contains(pass) || !time || !(*time > 0.0) || kind == "cast") continue;
    passes[pass] += report::numeric(*row.find("exposed")).value_or(0.0);
    if (kind == "launch") continue;
    ++explained;
    const bool moves = !report::numeric(*row.find("flops")), is_fused = fused.contains(value_of(row, "line"));
    const std::string name = moves      ? kind + " over "
                             : is_fused ? "fused "
                                        : kind + " " + text.substr(0, text.find('['));
    const bool found = std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
      const std::string& known = node.first;
      return (known.find(name) != std::string::npos ||
              (kind == "product" && known.find("fused ") != std::string::npos)) &&
             node.second.contains(*time);
    });
    EXPECT_TRUE(found) << text << ", " << *time << " s, of " << line;
  }
  for (const auto& [pass, listed] : passes) {
    double sum = 0.0;
    for (const char* part :
         {"", " tensor collectives", " context collectives", " expert collectives", " weights traffic"})
      if (const auto known = nodes.find(pass + part); known != nodes.end()) sum += *known->second.begin();
    EXPECT_NEAR(listed, sum, 1e-12 * sum) << pass << " of " << line;
  }
  return explained;
}

/// The busiest stage of the simulated step is occupied for as long as explanation and headline say, up to the rounding
/// of sums: events add up one after the other, the headline by parts.
void expect_scheduled(const AnsweredTimeline& timeline, const report::Response& response, const std::string& line) {
  double interval = 0.0;
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (!timeline.lanes[lane].starts_with("stage ")) continue;
    const std::vector<AnsweredBar> bars = timeline.of(lane);
    double end = 0.0;
    for (const AnsweredBar& bar : bars) end = std::max(end, bar.end);
    interval = std::max(interval, end - bars.front().start);
  }
  const double derived = named_node(response.ledger, "interval");
  const double repeated = named_node(response.ledger, "further periods");
  const bool compares = derived >= 0.0 && repeated < 0.0;
  if (compares) EXPECT_NEAR(interval, derived, 1e-14 * derived) << line;
  const double worked = named_node(response.ledger, "work and waiting");
  const double step =
      worked >= 0.0 ? worked : report::numeric(*report::find_path(response.results, "step_time.estimate")).value_or(0);
  EXPECT_NEAR(interval, step, 1e-14 * step) << line;
}

template <class T>
const T& any_of(const std::vector<T>& all, std::mt19937& draw) {
  return all[draw() % all.size()];
}

std::string drawn_training(std::mt19937& draw) {
  const std::vector<std::string> models{"llama-3-8b", "llama-2-13b",   "mixtral-8x7b",
                                        "gpt-3-13b",  "qwen3-30b-a3b", "gemma-2-27b"};
  const std::vector<std::string> clusters{"h100-sxm:64", "h200-sxm:16", "tpu-v5e:8x8", "mi300x:32", "a100-sxm-80:64"};
  const std::vector<std::string> options{"",
                                         " --tp 4",
                                         " --pp 4",
                                         " --recompute full",
                                         " --tp 2 --pp 2",
                                         " --pp 2 --schedule 1f1b",
                                         " --cp 2",
                                         " --zero 3",
                                         " --software any",
                                         " --no-overlap",
                                         " --pp 4 --schedule zb-h1 --software any"};
  return fmt::format("train {} --on {} --batch {}seq --seq {}{} --explain --list", any_of(models, draw),
                     any_of(clusters, draw), 64u << draw() % 3, 1024u << draw() % 3, any_of(options, draw));
}

TEST(Agreement, AStepIsDrawnAndTracedAsItIsListedAndPriced) {
  std::mt19937 draw(23);
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back(drawn_training(draw));
  lines = testing::sampled(lines);
  std::size_t answered = 0, drawn = 0, listed = 0, explained = 0;
  for (const std::string& line : lines) {
    const auto response = drawn_answer(line + " --timeline"), traced = drawn_answer(line + " --timeline trace.json");
    if (!response || response->outcome != report::Outcome::ok) continue;
    ++answered;
    ASSERT_TRUE(traced && traced->files.size() == 1 && response->picture) << line;
    const report::Value results(response->results);
    const AnsweredTimeline timeline(results);
    expect_traced(timeline, traced->files.front().second, line);
    drawn += expect_drawn(timeline, *response->picture, line);
    listed += expect_listed(timeline, results, line);
    explained += expect_explained(*response, line);
    expect_scheduled(timeline, *response, line);
  }
  EXPECT_GE(2 * answered, lines.size());
  if (testing::sampled_every() > 1) return;
  EXPECT_GT(drawn, 100u);
  EXPECT_GT(listed, 50u);
  EXPECT_GT(explained, 1000u);
}

std::string drawn_serving(std::mt19937& draw) {
  const std::vector<std::string> models{"llama-3-8b",  "llama-3-70b", "mixtral-8x7b", "qwen3-30b-a3b",
                                        "deepseek-v2", "gemma-2-27b", "jamba-v0.1",   "gpt-oss-20b"};
  const std::vector<std::string> clusters{"h100-sxm:8", "h200-sxm:16", "tpu-v5e:4x4", "mi300x:8", "a100-sxm-80:8"};
  const std::vector<std::string> options{"", " --tp 8", " --tp 4", " --pp 2", " --tp 2 --ep 4", " --software any"};
  return fmt::format("serve {} --on {} --batch {} --prompt {} --output 64{} --explain --list", any_of(models, draw),
                     any_of(clusters, draw), 1u << draw() % 9, 128u << draw() % 5, any_of(options, draw));
}

/// The values that an answer's explanation reaches, by name.
std::map<std::string, std::set<double>> explained_values(const report::Response& response) {
  std::map<std::string, std::set<double>> values;
  std::vector<int> left = response.derived;
  std::vector<bool> seen(static_cast<std::size_t>(response.ledger.size()), false);
  while (!left.empty()) {
    const int id = left.back();
    left.pop_back();
    if (id < 0 || seen[static_cast<std::size_t>(id)]) continue;
    seen[static_cast<std::size_t>(id)] = true;
    const Node& node = response.ledger.at(id);
    values[node.name].insert(node.quantity.value);
    left.insert(left.end(), {node.lhs, node.rhs});
  }
  return values;
}

/// Every kernel and every collective of a listed step of a server has its number in the explanation, to the last bit,
/// and all of them add up to the kernels and collectives of a step there. Returns how many.
std::size_t expect_served(const report::Response& response, std::string_view key, const std::string& line) {
  const auto values = explained_values(response);
  const auto rows = report::find_path(report::Value(response.results), key);
  EXPECT_TRUE(rows) << line;
  std::size_t explained = 0;
  double sum = 0.0;
  for (const report::Value& row : *rows->items()) {
    const std::string step = text_of(row, "step");
    const double time = value_of(row, "time");
    sum += value_of(row, "time_of_all");
    if (!(time > 0.0)) continue;
    ++explained;
    const auto known = values.find(step);
    EXPECT_TRUE(known != values.end() && known->second.contains(time))
        << key << ": " << step << ", " << time << " s, of " << line;
  }
  const auto sums = values.find("kernels and collectives");
  EXPECT_TRUE(sums != values.end() && std::any_of(sums->second.begin(), sums->second.end(),
                                                  [&](double whole) { return std::abs(whole - sum) <= 1e-12 * sum; }))
      << key << ": " << sum << " s in all, of " << line;
  return explained;
}

TEST(Agreement, AServedStepIsExplainedAsItIsListed) {
  std::mt19937 draw(31);
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) lines.push_back(drawn_serving(draw));
  std::size_t explained = 0;
  for (const std::string& line : testing::sampled(lines)) {
    const auto response = drawn_answer(line);
    if (!response || response->outcome != report::Outcome::ok) continue;
    explained += expect_served(*response, "decode_steps", line) + expect_served(*response, "prefill_steps", line);
  }
  EXPECT_GT(explained, testing::sampled_every() > 1 ? 0u : 1000u);
}

/// Places on an axis are a straight line of values, or of their logarithms.
void expect_straight(std::vector<std::pair<double, double>> of, const std::string& line) {
  const auto [first, last] =
      std::minmax_element(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (of.size() < 3 || !(first->second < last->second)) return;
  const double scale = (last->first - first->first) / (last->second - first->second);
  for (const auto& [place, value] : of)
    EXPECT_NEAR(place, first->first + (value - first->second) * scale, 1e-6) << line;
}

TEST(Agreement, AFrontIsDrawnAsItIsListed) {
  const std::vector<std::string> models{"llama-3-8b", "llama-3-70b", "mixtral-8x7b", "qwen3-30b-a3b"};
  const std::vector<std::string> clusters{"h100-sxm:8", "h200-sxm:16", "tpu-v5e:4x4", "mi300x:8", "b200:8"};
  std::mt19937 draw(29);
  std::vector<std::string> lines;
  for (int i = 0; i < 25; ++i)
    lines.push_back(fmt::format("serve {} --on {} --prompt {} --output {}", any_of(models, draw),
                                any_of(clusters, draw), 128u << draw() % 6, 64u << draw() % 4));
  std::size_t compared = 0;
  for (const std::string& line : testing::sampled(lines)) {
    const auto response = drawn_answer(line);
    if (!response || response->outcome != report::Outcome::ok || !response->picture) continue;
    // Points where the strategy changes are marked with it and with their batch; each is a row of the front.
    std::map<std::string, std::pair<double, double>> rows;
    const auto front = report::find_path(response->results, "pareto");
    ASSERT_TRUE(front) << line;
    for (const report::Value& row : *front->items())
      rows[fmt::format("{}, batch {}", text_of(row, "strategy"), human_number(value_of(row, "batch")))] = {
          value_of(row, "latency"), value_of(row, "throughput_per_chip")};
    std::vector<std::pair<double, double>> x, y;
    for (const draw::SceneItem& item : response->picture->items) {
      const auto* marker = std::get_if<draw::Marker>(&item.shape);
      const std::size_t end = item.tooltip.rfind(": ");
      if (!marker || end == std::string::npos) continue;
      const auto known = rows.find(item.tooltip.substr(0, end));
      EXPECT_NE(known, rows.end()) << item.tooltip << " of " << line;
      if (known == rows.end()) continue;
      x.emplace_back(marker->centre.x, std::log(known->second.first));
      y.emplace_back(marker->centre.y, known->second.second);
    }
    compared += x.size();
    expect_straight(x, line);
    expect_straight(y, line);
  }
  EXPECT_GT(compared, testing::sampled_every() > 1 ? 0u : 50u);
}

}  // namespace
}  // namespace assay::verbs
