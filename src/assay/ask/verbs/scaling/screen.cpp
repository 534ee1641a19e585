
#include "assay/ask/report/figures.h"
#include "assay/ask/report/patterns.h"
#include "assay/ask/report/render.h"
#include "assay/ask/verbs/request.h"

namespace assay::verbs::scaling {
std::optional<report::Screen> screen_of(const Request& request, const report::Response& answer) {
  using report::Reader, report::Tone;
  const Reader results(answer.results, &answer.inputs);
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
  activations = {activation_time} | ratio = {ratio} | limiter = {limiter}
[memory.sharded] Memory: {memory.sharded.bytes_per_chip of memory.capacity} per chip when sharded |
  at least {memory.min_chips} chips
Training: {training.step_time} per step | {training.training_time} | [--chip-hours] {training.mfu%} MFU reached |
  [!--chip-hours] {training.mfu%} MFU assumed)");
  screen.notes = answer.notes;
  if (request.has("vary") || request.has("walk")) screen.list = report::whole_list(answer.results, answer.table_key);
  return screen;
}

}  // namespace assay::verbs::scaling
