#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/screens/screens.h"

namespace assay::verbs::screens {
namespace {

using report::Reader;
using report::Tone;

/// Where the parameters are.
report::StackedBar parameter_bar(const Reader& results) {
  const AnyQuantity total(results.number("parameters.total"), Dim{});
  report::StackedBar bar{"Parameters", {}, report::shared_unit(total), ""};
  bar.text = bar.unit.text(total.value);
  bar.unit.decimals = std::max(bar.unit.decimals, 1);  // small parts count, too
  for (const char* key :
       {"attention", "mlp", "experts", "shared_experts", "mixer", "embedding", "positions", "head", "router", "norm"}) {
    std::string name = key;
    if (name == "shared_experts") name = "shared experts";
    const double size = results.number(fmt::format("parameters.{}", key));
    if (bar.unit.shows(size)) bar.parts.push_back({std::move(name), size});
  }
  constexpr std::size_t most = 6;
  bar.parts = report::largest_parts(std::move(bar.parts), most);
  return bar;
}

}  // namespace

std::optional<report::Screen> models(const Request& request, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  if (results.has("models")) {
    screen.headline = {{answer.headline, Tone::strong}};
    add_blocks(screen, results, R"(
: all rows of models: id = {id} | layers = {layers} | width = {d_model} | heads = {heads} | kv = {kv_heads} |
  parameters = {parameters} | active = {active} | cache/token = {kv_bytes_per_token})");
    screen.notes = answer.notes;
    return screen;
  }
  if (request.has("list") || results.has("checkpoint") || !results.has("parameters.total")) return std::nullopt;
  screen.headline = report::phrases(results, {results.has("name") ? "{name}" : "{id}", "{parameters.total} parameters"},
                                    Tone::strong);
  if (results.number("parameters.active") < results.number("parameters.total"))
    screen.headline.push_back({*filled(results, "{parameters.active} active"), Tone::strong});
  screen.blocks.emplace_back(parameter_bar(results));
  add_blocks(screen, results, R"(
Shape: {encoder_layers} encoder layers | {layers} layers | width {d_model} | {heads} heads of {head_dim} |
  {kv_heads} key-value heads | feed-forward {d_ff} | {experts_per_token} of {experts} experts of width {expert_width} |
  vocabulary {vocabulary} | context {context}
Layers: 5 rows of layer_kinds: stack = {stack} | layers = {layers} | mixer = {mixer} | feed-forward = {feed_forward} |
  parameters each = {parameters} | active each = {active}
Weights: {weight_bytes} | {weight_formats.quantised} | {weight_formats.all} | otherwise {weight_formats.others} |
  {weight_formats.bits_per_parameter} bits per parameter
FLOP: {flops_per_token.forward} per token forward | {flops_per_token.backward} backward |
  {flops_per_token.train} in training | of which attention {flops_per_token.attention}
Cache: {kv_bytes_per_token} per token | {kv_bytes_per_sequence} per sequence | {kv_cache} in all
Saved: {activation_bytes_per_token.none} per token for the backward pass |
  {activation_bytes_per_token.selective} with selective recomputation | {activation_bytes_per_token.full} with full)");
  if (results.has("published.parameters"))
    add_line(screen, "Published",
             {{fmt::format("{} parameters, {}", results.text("published.parameters"),
                           results.truth("published.agrees") ? "which agrees" : "which differs"),
               results.truth("published.agrees") ? Tone::plain : Tone::warning}});
  screen.notes = answer.notes;
  return screen;
}

std::optional<report::Screen> software(const Request&, const Answer& answer) {
  const Reader results(answer.results);
  report::Screen screen;
  screen.headline = {{answer.headline, Tone::strong}};
  if (results.has("software")) {
    add_blocks(screen, results, R"(
: all rows of software: id = {id} | name = {name} | does = {does} | versions = {versions} | properties = {properties})");
    return screen;
  }
  for (const char* verb : {"train", "serve"})
    add_table(screen, table_of(results, verb, verb,
                               {{"option", "{option}"}, {"value", "{value}"}, {"where", "{where}"}, {"note", "{note}"}},
                               results.rows(verb).size()));
  add_line(screen, "defaults", each_of(results, "defaults"));
  const report::Items& versions = results.rows("versions");
  if (!versions.empty())
    add_line(screen, "versions",
             {{fmt::format("{} to {}", Reader(*versions.front().members()).text("id"),
                           Reader(*versions.back().members()).text("id"))}});
  screen.notes = answer.notes;
  screen.notes.emplace_back("--all shows the source of every property");
  return screen;
}

}  // namespace assay::verbs::screens
