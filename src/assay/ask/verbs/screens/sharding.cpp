#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/screens/screens.h"

namespace assay::verbs::screens {
namespace {

using report::Reader;
using report::Tone;

constexpr std::size_t most_steps = 6, most_others = 3;

report::Screen planned(const Answer& answer) {
  report::Screen screen;
  screen.headline = {{answer.headline, answer.outcome == report::Outcome::ok ? Tone::strong : Tone::bad}};
  const Reader results(answer.results);
  if (const auto time = filled(results, "{time.estimate} estimated, bound by {limiter}"))
    screen.beneath = {fmt::format("{}; {}", *time, report::range_words(results, "time"))};
  screen.notes = answer.notes;
  return screen;
}

void add_steps(report::Screen& screen, const Reader& results, std::string_view path, std::string label) {
  add_table(screen, table_of(results, path, std::move(label),
                             {{"step", "{text}"}, {"received", "{bytes}"}, {"time", "{time}"}}, most_steps));
}

/// A layer over one of its sizes, or over chips.
report::Screen swept_layer(const Answer& answer, const std::string& varied) {
  constexpr std::size_t most_points = 16;
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, Tone::strong}};
  add_line(screen, "On", phrases(results, {"{cluster}", "{mesh}"}));
  add_table(screen, table_of(results, "sweep", "Sweep",
                             {{varied, "{" + varied + "}"},
                              {"time", "{time.estimate}"},
                              {"arithmetic", "{compute_time}"},
                              {"memory", "{memory_time}"},
                              {"network", "{collective_time}"},
                              {"output", "{tokens_per_second}"},
                              {"limit", "{limiter}"}},
                             most_points));
  add_blocks(screen, results, R"(
Weights split in: 16 rows of splits: chips = {chips} | slice = {cluster} | one direction = {one_direction} |
  two directions = {two_directions} | faster = {faster})");
  screen.notes = answer.notes;
  return screen;
}

}  // namespace

std::optional<report::Screen> shard(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen = planned(answer);
  add_blocks(screen, results, R"(
Mesh: {mesh} | {devices} devices
Tensors: 4 rows of tensors: tensor = {tensor} | local shape = {local_shape} | per device = {bytes_per_device} |
  all devices = {total_bytes} | copies = {replication} | padded = {padded})");
  add_steps(screen, results, "steps", "Steps");
  add_blocks(screen, results, R"(
Times: compute {compute_time} | collectives {collective_time} | {flops_per_device} per device)");
  if (results.has("overlap"))
    add_line(screen, "Overlap",
             phrases(results, {"{overlap.collective} in {overlap.chunks} chunks: {overlap.overlapped}",
                               "{overlap.blocking} one after the other", "product alone {overlap.product}"}));
  add_steps(screen, results, "backward", "Backward");
  add_table(screen, table_of(results, "alternatives", "Others",
                             {{"steps", "{steps}"}, {"received", "{collective_bytes}"}, {"time", "{time}"}}, 2));
  if (results.has("check"))
    add_line(screen, "Check",
             phrases(results, {"executed: maximum error {check.max_error}", "{check.bytes_moved} moved",
                               "{check.bytes_predicted} predicted"}));
  return screen;
}

std::optional<report::Screen> layer(const Request& request, const Answer& answer) {
  if (const auto vary = request.value("vary")) return swept_layer(answer, vary->substr(0, vary->find('=')));
  const Reader results(answer.results);
  report::Screen screen = planned(answer);
  add_line(screen, "Mesh", phrases(results, {"{mesh}", "{cluster}"}));
  add_line(screen, "Sharding",
           phrases(results, {"{shardings.In}", "{shardings.W_in}", "{shardings.W_out}", "{shardings.A}",
                             "{shardings.B}", "{shardings.C}", "{shardings.Out}"}));
  if (const auto capacity = results.quantity("memory.capacity")) {
    report::SharedUnit unit = report::shared_unit(*capacity);
    unit.decimals = std::max(unit.decimals, 2);  // one layer is a small part of a chip's memory
    report::FillBar bar{"Memory", results.number("memory.total"), 0.0, capacity->value, {}, unit, {}};
    bar.text = {{fmt::format("{} of {}", unit.number(bar.used), unit.text(bar.whole))}};
    bar.parts = {{"stored", results.number("memory.stored")}, {"working", results.number("memory.working")}};
    screen.blocks.emplace_back(std::move(bar));
  }
  add_steps(screen, results, "steps", "Steps");
  add_line(screen, "Times",
           phrases(results, {"compute {compute_time}", "memory {memory_time}", "collectives {collective_time}"}));
  report::ScreenTable others = table_of(
      results, "alternatives", "Others",
      {{"sharding", "{shardings}"}, {"time", "{time}"}, {"memory", "{memory.total}"}, {"why", "{why}"}}, most_others);
  for (auto& row : others.rows) row.back() = row.back().substr(0, row.back().find(';'));  // one reason is enough
  add_table(screen, std::move(others));
  return screen;
}

std::optional<report::Screen> scaling(const Request& request, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, answer.outcome == report::Outcome::ok ? Tone::strong : Tone::bad}};
  add_blocks(screen, results, R"(
Layer: {model} | width {layer.d_model} | feed-forward {layer.d_ff} |
  {layer.experts_per_token} of {layer.experts} experts | {layer.flops_per_token} per token
Batch: {batch} | {tokens_per_chip} per chip on {cluster})");
  report::ScreenTable schemes{
      "Schemes", {"scheme", "links", "bandwidth", "tokens/chip", "batch", "ratio", "bound by"}, {}};
  for (const auto& [key, name] :
       {std::pair{"data_parallel", "data parallel"}, std::pair{"fsdp", "FSDP"}, std::pair{"mixed", "FSDP + tensor"}}) {
    const report::Value* scheme = results.at(key);
    if (!scheme || !scheme->members()) continue;
    const Reader one(*scheme->members());
    const std::string links =
        one.has("links") ? one.text("links") : one.text("fsdp_links") + " + " + one.text("tensor_links");
    const std::string tokens = one.text("min_tokens_per_chip");
    schemes.rows.push_back({name, links, one.text("bandwidth"), tokens.substr(0, tokens.find(" tokens")),
                            one.text("min_batch"), one.text("ratio"),
                            !one.has("compute_bound")    ? ""
                            : one.truth("compute_bound") ? "compute"
                                                         : "network"});
  }
  if (!results.has("batch")) {  // which way the ratio goes depends on it
    schemes.head.resize(schemes.head.size() - 2);
    for (auto& row : schemes.rows) row.resize(schemes.head.size());
  }
  add_table(screen, std::move(schemes));
  add_blocks(screen, results, R"(
Tensor: over {tensor_parallel.links} | {tensor_parallel.power_of_two_ways} ways as a power of two |
  {tensor_parallel.bandwidth}
Experts: {expert_parallel.ways} ways | ratio {expert_parallel.ratio}
Best!: FSDP {best.fsdp} x tensor {best.tensor} | {best.placed} | {best.layer_time} per layer
Splits: 4 rows of splits: FSDP = {fsdp} | tensor = {tensor} | compute = {compute_time} | weights = {weight_time} |
  activations = {activation_time} | ratio = {ratio} | limiter = {limiter})");
  if (const auto capacity = results.quantity("memory.capacity"); capacity && results.has("memory.sharded")) {
    const report::SharedUnit unit = report::shared_unit(*capacity);
    std::vector<report::Phrase> memory{
        {fmt::format("{} of {} per chip when sharded", unit.number(results.number("memory.sharded.bytes_per_chip")),
                     unit.text(capacity->value))}};
    for (report::Phrase& phrase : phrases(results, {"at least {memory.min_chips} chips"}))
      memory.push_back(std::move(phrase));
    add_line(screen, "Memory", std::move(memory));
  }
  add_line(
      screen, "Training",
      phrases(results, {"{training.step_time} per step", "{training.training_time}",
                        request.has("chip-hours") ? "{training.mfu%} MFU reached" : "{training.mfu%} MFU assumed"}));
  screen.notes = answer.notes;
  if (request.has("vary") || request.has("walk")) screen.table = answer.table_key;
  return screen;
}

}  // namespace assay::verbs::screens
