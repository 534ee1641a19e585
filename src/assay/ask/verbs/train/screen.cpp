#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/patterns.h"
#include "assay/ask/report/render.h"
#include "assay/ask/verbs/plan_text.h"
#include "assay/base/text.h"

namespace assay::verbs::train {
namespace {

using report::BarPart;
using report::Phrase;
using report::Reader;
using report::Tone;

constexpr std::size_t most_of_a_plan = 46, most_parts = 6, most_alternatives = 3, most_sizes = 10;

std::vector<Phrase> headline(const Reader& results) {
  std::vector<Phrase> out{verdict_phrase(results),
                          {results.text("step_time.estimate") + " per step", Tone::strong},
                          {report::percent(results.number("mfu")) + " MFU", Tone::strong}};
  if (results.has("training_time")) out.push_back({results.text("training_time.estimate"), Tone::strong});
  if (results.has("cost")) out.push_back({results.text("cost"), Tone::strong});
  return out;
}

std::vector<BarPart> memory_parts(const Reader& results) {
  const auto held = [&](const char* key) { return results.number(fmt::format("memory.{}", key)); };
  return {{"weights", held("parameters")},
          {"gradients", held("gradients")},
          {"optimizer", held("optimizer")},
          {"activations", held("activations")},
          {"logits", held("logits_and_loss")},
          {"buffers", held("communication_buffers") + held("workspace")},
          {"allocator and driver", held("allocator_overhead") + held("driver_context")}};
}

/// Where the time of a step goes. Kernels are a mean over stages, the arithmetic is that of the slowest one.
std::vector<BarPart> time_parts(const Reader& results) {
  std::vector<BarPart> parts{{"products", 0.0}, {"attention", 0.0}, {"element-wise", 0.0}};
  for (const report::Value& row : results.rows("breakdown_by_kind")) {
    const Reader kind(*row.members());
    for (const auto& [name, part] :
         {std::pair{"products", 0}, std::pair{"attention", 1}, std::pair{"other kernels", 2}})
      if (kind.text("kind") == name) parts[static_cast<std::size_t>(part)].size += kind.number("time");
  }
  const double kernels = parts[0].size + parts[1].size + parts[2].size, compute = results.number("breakdown.compute");
  constexpr double rounding = 1e-3;
  if (kernels > (1.0 + rounding) * compute)
    parts = {{"compute", compute}};
  else {
    // Where the host launches kernels more slowly than they run, passes take as long as the launches.
    const double uneven = std::min(results.number("breakdown.of_which_uneven_stages"), compute - kernels);
    parts.push_back({"uneven stages", std::max(uneven, 0.0)});
    parts.push_back({"waiting for launches", std::max(compute - kernels - uneven, 0.0)});
  }
  for (const auto& [key, name] :
       {std::pair{"tensor_collectives", "tensor parallelism"}, std::pair{"context_collectives", "context parallelism"},
        std::pair{"expert_collectives", "expert parallelism"}, std::pair{"weights_exposed", "weight gathering"},
        std::pair{"stage_handover", "stage handover"}, std::pair{"pipeline_bubble", "bubble"},
        std::pair{"gradients_exposed", "gradient reduction"}, std::pair{"update", "update"},
        std::pair{"host_link_exposed", "host copies"}, std::pair{"overhead", "overhead"}})
    parts.push_back({name, results.number(fmt::format("breakdown.{}", key))});
  return parts;
}

/// The three largest limits at ideal rates.
std::vector<Phrase> limits(const Reader& results) {
  std::vector<Phrase> line;
  const report::Items& rows = results.rows("limits");
  if (rows.empty()) return line;
  const report::SharedUnit unit = report::shared_unit(*Reader(*rows.front().members()).quantity("time"));
  for (const report::Value& row : rows) {
    const Reader limit(*row.members());
    const std::string text = fmt::format("{} {}", limit.text("limit"), unit.text(limit.number("time")));
    if (line.empty())
      line.push_back({text + " at ideal rates", Tone::strong});
    else if (line.size() < 3 && unit.shows(limit.number("time")))
      line.push_back({text});
  }
  return line;
}

/// What the step would gain at most, by the part of it that would vanish.
std::vector<Phrase> helps(const Reader& results, const std::string& plan) {
  struct Remedy {
    double gain;
    std::string text;
  };
  std::vector<Remedy> remedies;
  const double step = results.number("step_time.estimate");
  for (const auto& [key, name] :
       {std::pair{"pipeline_bubble", "no pipeline bubble"}, std::pair{"of_which_recompute", "no recomputation"},
        std::pair{"tensor_collectives", "hiding tensor-parallel collectives"},
        std::pair{"context_collectives", "hiding context-parallel collectives"},
        std::pair{"expert_collectives", "hiding expert all-to-alls"},
        std::pair{"weights_exposed", "hiding weight gathering"},
        std::pair{"gradients_exposed", "hiding gradient reduction"},
        std::pair{"host_link_exposed", "hiding host copies"}, std::pair{"update", "hiding the optimizer update"}})
    remedies.push_back({results.number(fmt::format("breakdown.{}", key)) / step, name});
  std::stable_sort(remedies.begin(), remedies.end(), [](const Remedy& a, const Remedy& b) { return a.gain > b.gain; });
  std::vector<Phrase> line;
  constexpr double worth_saying = 0.005;
  if (const double gain = results.number("open_space.gain"); gain >= worth_saying)
    line.push_back({fmt::format("--software any {} ({})", report::signed_percent(-gain),
                                plan_difference(plan, results.text("open_space.strategy")))});
  std::erase_if(remedies, [](const Remedy& remedy) { return remedy.gain < worth_saying; });
  constexpr std::size_t most_remedies = 3;
  if (remedies.size() > most_remedies) remedies.resize(most_remedies);
  for (const Remedy& remedy : remedies)
    line.push_back({fmt::format("{} {}{}", remedy.text, report::signed_percent(-remedy.gain),
                                &remedy == &remedies.back() ? " at most" : "")});
  if (results.number("batch") < results.number("thresholds.batch_where_gradients_limit"))
    line.push_back({fmt::format("batches above {} hide gradient reduction",
                                results.text("thresholds.batch_where_gradients_limit"))});
  return line;
}

report::ScreenTable alternatives(const Reader& results, const std::string& plan) {
  report::ScreenTable table{"Others", {}, {}};
  table.least_rows = 1;
  const report::SharedUnit unit = report::shared_unit(*results.quantity("step_time.estimate"));
  for (const report::Value& row : results.rows("alternatives")) {
    if (table.rows.size() == most_alternatives) break;
    const Reader other(*row.members());
    const std::string why = other.text("why");
    table.rows.push_back({shortened_plan(plan_difference(plan, other.text("strategy")), most_of_a_plan),
                          unit.text(other.number("step_time")), report::signed_percent(other.number("slower_by")),
                          why.substr(0, why.find(" ("))});
  }
  return table;
}

/// What would fit instead.
report::ScreenTable ways_out_table(const Reader& results) {
  report::ScreenTable table =
      table_of(results, "ways_out", "Fits",
               {{"with", "{change}"}, {"step", "{step_time}"}, {"rate", "{tokens_per_second}"}, {"plan", "{strategy}"}},
               most_sizes);
  shorten_plans(table);
  return table;
}

/// How much longer and shorter steps become, as cells left and right of a line; none where only one is known.
std::string tornado_cells(double longer, double shorter, double most) {
  constexpr std::size_t half = 6;
  if (!(most > 0.0)) return "";
  const auto cells = [&](double change, bool filled) {
    const auto full = static_cast<std::size_t>(std::lround(std::clamp(change / most, 0.0, 1.0) * half));
    std::string out;
    for (std::size_t i = 0; i < (filled ? full : half - full); ++i) out += filled ? "\u2588" : "\u00a0";
    return out;
  };
  return cells(longer, false) + cells(longer, true) + "\u2502" + cells(shorter, true) + cells(shorter, false);
}

/// What each rate of the hardware is worth, and where another limit takes over.
report::ScreenTable sensitivities(const Reader& results) {
  report::ScreenTable table{"Rates", {"", "now", "halved", "", "doubled", "other limit"}, {}};
  const double now = results.number("step_time.estimate");
  const auto change = [&](const Reader& rate, const char* key) {
    return rate.has(key) ? rate.number(key) / now - 1.0 : 0.0;
  };
  double most = 0.0;
  for (const report::Value& row : results.rows("sensitivity"))
    most = std::max(most, std::abs(change(Reader(*row.members()), "step_time_if_halved")));
  for (const report::Value& row : results.rows("sensitivity")) {
    const Reader rate(*row.members());
    const double halved = change(rate, "step_time_if_halved"), doubled = change(rate, "step_time_if_doubled");
    const bool is_rate = rate.has("step_time_if_halved");
    table.rows.push_back({rate.text("rate"), report::short_quantity(*rate.quantity("value")),
                          is_rate ? report::signed_percent(halved) : "",
                          is_rate ? tornado_cells(std::max(halved, doubled), -std::min(halved, doubled), most) : "",
                          report::signed_percent(doubled),
                          rate.has("break_even") ? fmt::format("{} at {:.2g}x", rate.text("limiter_then"),
                                                               rate.number("break_even_factor"))
                                                 : ""});
  }
  return table;
}

}  // namespace

report::Screen train_screen(const Request& request, const report::Response& response, const std::string& plan) {
  const Reader results(response.results);
  report::Screen screen;
  const bool fits = results.truth("memory.fits"), several = results.has("sizes");
  if (fits && response.outcome == report::Outcome::ok) {
    screen.headline = headline(results);
    if (several) screen.headline.front() = {response.headline.substr(0, response.headline.find(", ")), Tone::good};
  } else
    screen.headline = {{response.headline, response.outcome == report::Outcome::ok ? Tone::strong : Tone::bad}};
  if (fits)
    screen.beneath.push_back((results.has("step_time.interval") ? "" : "no steps of this kind were measured; ") +
                             report::range_words(results, "step_time"));
  std::vector<Phrase> plan_line = plan_phrases(plan);
  if (results.text("software") != "any") plan_line.push_back({results.text("software"), Tone::faint});
  add_line(screen, "Plan", std::move(plan_line));
  screen.blocks.emplace_back(memory_bar(results, memory_parts(results)));
  if (fits) {
    const AnyQuantity step = *results.quantity("step_time.estimate");
    const report::SharedUnit unit = report::shared_unit(step);
    screen.blocks.emplace_back(report::StackedBar{"Time", report::largest_parts(time_parts(results), most_parts), unit,
                                                  unit.text(step.value)});
    add_line(screen, "Limit", limits(results));
    if (!several) add_line(screen, "Helps", helps(results, plan));
    add_blocks(screen, results, R"(
Or: {fewer_chips.chips} of the chips take {fewer_chips.step_time} per step | {fewer_chips.strategy} |
  --on {fewer_chips.cluster}
Rate: {sequences} x {sequence_length} tokens per step | {tokens_per_second} |
  per chip {tokens_per_second_per_chip}, {flops_per_second_per_chip}
Run: {steps} steps | {chip_hours} chip hours | {energy} | {goodput.goodput%} goodput)");
  }
  if (const auto deadline = request.value("deadline"); deadline && results.has("training_time"))
    add_line(screen, "Asked", {{fmt::format("--deadline {}: {}", *deadline, results.text("training_time.estimate"))}});
  if (several) {
    report::ScreenTable sizes = table_of(results, "sizes", "Sizes",
                                         {{"cluster", "{cluster}"},
                                          {"step", "{step_time}"},
                                          {"run", "{training_time}"},
                                          {"cost", "{cost}"},
                                          {"efficiency", "{scaling_efficiency%}"},
                                          {"why not", "{why_not}"},
                                          {"plan", "{strategy}"}},
                                         most_sizes);
    if (sizes.head.size() < 7) shorten_plans(sizes);  // reasons stand whole
    sizes.least_rows = 3;
    add_table(screen, std::move(sizes));
  } else
    add_table(screen, fits ? alternatives(results, plan) : ways_out_table(results));
  if (results.has("sensitivity")) add_table(screen, sensitivities(results));
  screen.spare = {"Others", "Helps", "Limit", "Rate"};
  for (const Phrase& reason : report::phrases(results, {"{memory.reason}"})) screen.notes.push_back(reason.text);
  for (std::string& note : notes_on_options(response)) screen.notes.push_back(std::move(note));
  screen.notes.insert(screen.notes.end(), response.important.begin(), response.important.end());
  screen.notes.emplace_back(several ? "More: --all, --explain, --pareto"
                                    : "More: --all, --explain, --sensitivity, --list");
  if (request.has("list"))
    screen.list =
        report::whole_list(response.results, "program", {"line", "block", "text", "time", "exposed", "part_of"});
  else if (request.has("pareto"))
    screen.list = report::whole_list(response.results, "pareto",
                                     {"cluster", "chips", "step_time", "training_time", "cost", "strategy"});
  else if (request.has("improve"))
    screen.list = report::whole_list(response.results, "changes", {"change", "step_time", "faster_by", "why"});
  if (request.value("timeline") == "")
    screen.notes.emplace_back("--timeline: it is in the answer as JSON; --timeline FILE.json writes a Chrome trace");
  if (request.has("improve") && results.rows("changes").empty())
    screen.notes.emplace_back("--improve: no change of one choice is faster");
  return screen;
}

}  // namespace assay::verbs::train
