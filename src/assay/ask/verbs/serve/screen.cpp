#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/patterns.h"
#include "assay/ask/report/render.h"
#include "assay/ask/verbs/plan_text.h"

namespace assay::verbs::serve {
namespace {

using report::BarPart;
using report::Phrase;
using report::Reader;
using report::Tone;

constexpr std::size_t most_points = 5, most_compared = 8;

/// Of a server that both prefills and decodes.
std::vector<Phrase> headline(const Reader& results) {
  std::vector<Phrase> out{verdict_phrase(results)};
  const std::vector<Phrase> rates = report::phrases(
      results,
      {"{served.requests_per_second} requests/s", "{served.output_tokens_per_second} of output",
       "{served.time_per_token} per token", "{served.cost_per_million_output_tokens} per M output tokens"},
      Tone::strong);
  out.insert(out.end(), rates.begin(), rates.end());
  for (Phrase& phrase : report::phrases(results, {"{first_token.time} to the first token"}, Tone::strong))
    out.push_back(std::move(phrase));
  return out;
}

/// "80 % of such predictions lie within 69.8 .. 96.1 ms to the first token, 26.9 .. 33.4 ms per decode step"
std::string certainty(const Reader& results) {
  std::string text, outside;
  for (const auto& [path, time, of] : {std::tuple{"first_token", "time", "to the first token"},
                                       std::tuple{"decode.step_time", "estimate", "per decode step"}}) {
    const auto at = [&, from = path](const char* key) { return fmt::format("{}.{}", from, key); };
    const auto estimate = results.quantity(at(time));
    if (!estimate || !results.has(at("interval"))) continue;
    const report::SharedUnit unit = report::shared_unit(*estimate);
    text += text.empty() ? fmt::format("{:.0f} % of such predictions lie within ",
                                       100.0 * results.number(at("interval.coverage")))
                         : ", ";
    text += fmt::format("{} .. {} {}", unit.number(results.number(at("interval.low"))),
                        unit.text(results.number(at("interval.high"))), of);
    if (results.truth(at("interval.extrapolates"))) outside = results.text(at("interval.extrapolates_in"));
  }
  return outside.empty() ? text : fmt::format("{} (extrapolates in {})", text, outside);
}

std::vector<BarPart> memory_parts(const Reader& results) {
  const auto held = [&](const char* key) { return results.number(fmt::format("memory.{}", key)); };
  std::vector<BarPart> parts{{"weights", held("weights")},
                             {"cache", held("kv_cache")},
                             {"prefixes", held("prefixes")},
                             {"draft", held("draft")}};
  double other = held("total");
  for (const BarPart& part : parts) other -= part.size;
  parts.push_back({"other", other});
  return parts;
}

/// What a decode step waits for, each as a part of the step: they overlap.
void add_decode(report::Screen& screen, const Reader& results) {
  const auto step = results.quantity("decode.step_time.estimate");
  if (!step) return;
  const report::SharedUnit unit = report::shared_unit(*step);
  std::vector<BarPart> limits{{"memory", results.number("decode.memory_time")},
                              {"arithmetic", results.number("decode.compute_time")},
                              {"network", results.number("decode.network_time")}};
  std::erase_if(limits, [&](const BarPart& part) { return !unit.shows(part.size); });
  std::stable_sort(limits.begin(), limits.end(), [](const BarPart& a, const BarPart& b) { return a.size > b.size; });
  for (const BarPart& limit : limits) {
    const bool first = &limit == &limits.front();
    screen.blocks.emplace_back(
        report::FillBar{first ? "Decode" : "",
                        limit.size,
                        0.0,
                        step->value,
                        {},
                        unit,
                        {{fmt::format("{} {}{}", limit.name, unit.number(limit.size),
                                      first ? fmt::format(" of {} at ideal rates", unit.text(step->value)) : ""),
                          first ? Tone::strong : Tone::plain}}});
  }
}

/// What would help most: by the output of a chip or, at a given batch, by the time per token.
std::vector<Phrase> helps(const Reader& results, bool is_batch_given) {
  constexpr double worth_saying = 0.005;
  constexpr std::size_t most_helps = 3;
  std::vector<Phrase> line;
  const auto add = [&](const std::string& text) { line.push_back({text}); };
  for (const report::Value& row : results.rows("helps")) {
    const Reader help(*row.members());
    const std::string change = help.text("change");
    const double gain = help.number(is_batch_given ? "time_gain" : "output_gain");
    if (gain < worth_saying || line.size() == most_helps) continue;
    const bool per_chip = !is_batch_given && help.number("chips") != results.number("chips");
    add(fmt::format("{} {}{}{}", change, report::signed_percent(is_batch_given ? -gain : gain),
                    !line.empty()    ? ""
                    : is_batch_given ? " time per token"
                                     : " output",
                    per_chip ? " per chip" : ""));
  }
  for (const report::Value& row : results.rows("helps"))
    if (const Reader help(*row.members());
        help.text("change").starts_with("--batch") && help.number("output_gain") >= worth_saying)
      add(fmt::format("{} {} output at {} time per token", help.text("change"),
                      report::signed_percent(help.number("output_gain")),
                      report::signed_percent(-help.number("time_gain"))));
  const double now = results.number("served.output_tokens_per_second_per_chip"),
               apart = results.number("with_prefill.disaggregated.tokens_per_second_per_chip");
  if (now > 0.0 && apart / now - 1.0 >= worth_saying)
    add(fmt::format("separate prefill servers {} output per chip", report::signed_percent(apart / now - 1.0)));
  return line;
}

/// A few points from the front, the ends among them.
report::ScreenTable front(const Reader& results) {
  const report::Items& all = results.rows("pareto");
  report::Items some;
  const std::size_t count = std::min(most_points, all.size());
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[count > 1 ? i * (all.size() - 1) / (count - 1) : 0]);
  const report::Members shown{{"pareto", std::move(some)}};
  report::ScreenTable table = table_of(Reader(shown), "pareto", "Front",
                                       {{"per token", "{latency}"},
                                        {"output", "{throughput}"},
                                        {"batch", "{batch}"},
                                        {"prompt alone", "{ttft}"},
                                        {"per M tokens", "{cost}"},
                                        {"plan", "{strategy}"}},
                                       most_points);
  shorten_plans(table);
  table.least_rows = 2;
  if (all.size() > count) table.more = fmt::format("{} points in all: --all", all.size());
  return table;
}

/// All clusters and formats: at the rate that is asked for, or at full load.
report::ScreenTable compared(const Reader& results) {
  std::vector<std::pair<std::string_view, std::string_view>> columns{
      {"cluster", "{cluster}"}, {"formats", "{formats}"}, {"meets", "{meets}"}};
  if (results.has("load"))
    columns.insert(columns.end(), {{"busy", "{load.utilisation%}"},
                                   {"99 % first token", "{load.time_to_first_token}"},
                                   {"99 % per token", "{load.time_per_token}"},
                                   {"per M tokens", "{load.cost}"}});
  else
    columns.insert(columns.end(), {{"per token", "{latency}"}, {"output", "{throughput}"}, {"per M tokens", "{cost}"}});
  columns.insert(columns.end(), {{"plan", "{strategy}"}, {"why", "{why}"}});
  report::ScreenTable table = table_of(results, "comparison", "Compared", columns, most_compared);
  table.least_rows = 3;
  return table;
}

/// The latencies that have limits, beside them.
std::vector<Phrase> asked_limits(const Request& request, const Reader& results) {
  const bool is_loaded = results.has("load.time_to_first_token.p99");
  std::vector<Phrase> line;
  for (const auto& [option, path, at_rate] : {std::tuple{"ttft", "first_token.time", "load.time_to_first_token.p99"},
                                              std::tuple{"tpot", "served.time_per_token", "load.time_per_token.p99"}})
    if (const auto limit = request.value(option); limit && results.has(path))
      line.push_back({fmt::format("--{} {}: {}", option, *limit, results.text(is_loaded ? at_rate : path))});
  return line;
}

/// The list that a request asks for.
std::optional<report::ScreenTable> asked_list(const Request& request, const report::Members& results) {
  const struct {
    const char *option, *list;
    std::vector<std::string_view> keys;
  } lists[] = {
      {"list", "decode_steps", {"block", "layers", "step", "over", "time", "time_of_all", "limiter", "bytes"}},
      {"products", "products", {}},
      {"fits",
       "fits",
       {"format", "weights", "kv_bytes_per_token", "smallest_slice", "caches", "slice_for_batch", "max_batch_here"}},
      {"improve", "changes", {"change", "tokens_per_second", "gain", "time_per_token", "time_to_first_token"}},
      {"vary",
       "sweep",
       {"batch", "step_time", "tokens_per_second", "served_tokens_per_second", "total", "limiter", "cost", "fits"}}};
  for (const auto& [option, list, keys] : lists)
    if (request.has(option))
      if (auto table = report::whole_list(results, list, keys)) return table;
  return std::nullopt;
}

}  // namespace

report::Screen serve_screen(const Request& request, const report::Response& response, const std::string& plan) {
  const Reader results(response.results);
  report::Screen screen;
  const bool ok = response.outcome == report::Outcome::ok;
  if (ok && !results.has("load"))
    screen.headline = headline(results);
  else
    screen.headline = {{response.headline, ok ? Tone::strong : Tone::bad}};
  if (std::string text = certainty(results); ok && !text.empty()) screen.beneath.push_back(std::move(text));
  std::vector<Phrase> plan_line = plan_phrases(plan);
  const bool replicas = results.number("strategy.dp") > 1.0;
  for (Phrase& phrase :
       report::phrases(results, {replicas ? "{strategy.batch_per_replica} sequences each" : "batch {batch}"}))
    plan_line.push_back(std::move(phrase));
  if (results.text("software") != "any") plan_line.push_back({results.text("software"), Tone::faint});
  add_line(screen, "Plan", std::move(plan_line));
  add_blocks(screen, results, R"(
Chips: {load.prefill_servers} prefill servers x {load.chips_of_a_prefill_server} | {load.decoding_chips} decoding |
  {load.chips} in all)");
  if (results.quantity("memory.capacity")) screen.blocks.emplace_back(memory_bar(results, memory_parts(results)));
  add_decode(screen, results);
  const std::string first = results.has("load.first_token") ? "load.first_token" : "first_token";
  std::vector<Phrase> parts;
  for (const char* part : {"front end", "waits", "prompt", "delivery"}) {
    std::string key = part;
    std::replace(key.begin(), key.end(), ' ', '_');
    for (Phrase& phrase : report::phrases(results, {fmt::format("{} {{{}.{}}}", part, first, key)}))
      parts.push_back(std::move(phrase));
  }
  add_line(screen, "First", std::move(parts));
  std::vector<Phrase> assumed;
  for (const report::Value& row : results.rows("numbers"))
    if (const Reader number(*row.members()); number.text("of") == "deployment")
      for (Phrase& phrase :
           report::phrases(number, {assumed.empty() ? "assumed: {number} {value}" : "{number} {value}"}))
        assumed.push_back(std::move(phrase));
  if (results.text("software") != "any") add_line(screen, "Host", std::move(assumed));  // a screen has 25 lines
  add_blocks(screen, results, R"(
Limit: decode: {decode.limiter} | prefill: {prefill.limiter} | critical batch {critical_batch} |
  at most {memory.max_batch} sequences fit
Or: {without_stages.strategy} without stages | batch {without_stages.batch} |
  {without_stages.tokens_per_second} ({without_stages.gain+%}) | {without_stages.time_per_token} per token
Load: {load.requests_per_second} requests/s | {load.utilisation%} busy |
  saturates at {load.saturation_requests_per_second} | 99 % within {load.time_to_first_token.p99} to the first token |
  {load.time_per_token.p99} per token
Simulated: {load.simulated.requests} requests | 99 % within {load.simulated.time_to_first_token.p99} to the first token |
  {load.simulated.time_per_token.p99} per token
Draft: {speculation.draft_length} drafted | {speculation.tokens_per_second} | {speculation.time_per_token} per token | {speculation.speedup} times as fast)");
  add_line(screen, "Asked", asked_limits(request, results));
  if (!results.has("comparison")) add_line(screen, "Helps", helps(results, request.has("batch")));
  if (results.has("comparison"))
    add_table(screen, compared(results));
  else if (!results.has("sweep"))
    add_table(screen, front(results));
  screen.list = asked_list(request, response.results);
  screen.spare = {"Host", "Front", "Or", "First", "Helps", "Limit", "", "Decode", "Memory"};
  screen.notes = notes_on_options(response);
  if (request.has("improve") && results.rows("changes").empty())
    screen.notes.emplace_back("--improve: no change of one choice produces more");
  screen.notes.insert(screen.notes.end(), response.important.begin(), response.important.end());
  screen.notes.emplace_back("More: --all, --explain, --compare CLUSTER, --rate R");
  return screen;
}

}  // namespace assay::verbs::serve
