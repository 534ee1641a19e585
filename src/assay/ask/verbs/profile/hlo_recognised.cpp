#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/ask/verbs/profile/hlo.h"
#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"

namespace assay::verbs::profile {
namespace {

namespace hlo = assay::hlo;

/// Whether a model of the catalogue has these dimensions; layers are compared apart.
bool same_dimensions(const hlo::RecognisedModel& found, const model::Transformer& model) {
  if (model.encoder || model.decoder.kinds.empty()) return false;
  if (model.d_model != found.hidden || model.vocabulary != found.vocabulary || model.tied != found.tied) return false;
  const model::Layer& layer = model.decoder.kinds.back();
  if (!layer.attention || !layer.feed_forward) return false;
  const auto& attention = *layer.attention;
  const auto& feed_forward = *layer.feed_forward;
  if (attention.heads != found.heads || attention.kv_heads != found.kv_heads || attention.head_dim != found.head_dim)
    return false;
  if (feed_forward.experts != found.experts) return false;
  return feed_forward.width == (found.experts > 0 ? found.expert_feed_forward : found.feed_forward);
}

/// A model of the catalogue with these dimensions, as MODEL of a request.
std::optional<std::string> model_word(const hlo::RecognisedModel& found, const Context& context) {
  std::optional<std::string> shortened;
  for (const std::string& id : model::model_ids(context.catalogue)) {
    const auto entry = model::catalogue_model(id, context.catalogue, "model");
    if (!entry || !same_dimensions(found, entry->imported.model)) continue;
    if (static_cast<std::int64_t>(entry->imported.model.decoder.order.size()) == found.layers) return id;
    if (!shortened) shortened = fmt::format(R"('{{"base": "{}", "num_hidden_layers": {}}}')", id, found.layers);
  }
  return shortened;
}

std::string model_configuration(const hlo::RecognisedModel& found) {
  const bool routed = found.experts > 0;
  std::string out = fmt::format(
      R"('{{"model_type": "{}", "hidden_size": {}, "intermediate_size": {}, "num_hidden_layers": {}, )"
      R"("num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {}, "vocab_size": {}, "tie_word_embeddings": {})",
      routed ? "mixtral" : "llama", found.hidden, routed ? found.expert_feed_forward : found.feed_forward, found.layers,
      found.heads, found.kv_heads, found.head_dim, found.vocabulary, found.tied);
  if (routed)
    out += fmt::format(R"(, "num_local_experts": {}, "num_experts_per_tok": {})", found.experts,
                       std::max<std::int64_t>(found.experts_per_token, 1));
  return out + "}'";
}

/// Formats of weights and of Adam's moments, where they are not the usual ones.
std::string format_options(const hlo::RecognisedModel& found) {
  constexpr std::int64_t adam = 3;  // the weights and two moments
  if (found.copies != adam || !found.weight_type || !found.weight_type->format || !found.state_type ||
      !found.state_type->format)
    return "";
  std::string out;
  if (*found.state_type->format != Dtype::fp32) out += fmt::format(" --moments {}", name(*found.state_type->format));
  // Weights in fp32 are their own master copy, cast as they are gathered.
  return out + (*found.weight_type->format == Dtype::fp32 ? " --optimizer shared" : " --optimizer none");
}

/// The format of most products, where it is a short one.
std::string compute_option(const hlo::ProgramKernels& kernels) {
  std::map<Dtype, Flops> flops;
  for (const hlo::ProgramKernel& kernel : kernels.kernels)
    for (const hlo::Product& product : kernel.work.products)
      if (product.format) flops[*product.format] += kernel.calls * product.flops();
  const auto most =
      std::max_element(flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == flops.end() || (most->first != Dtype::fp8 && most->first != Dtype::int8)) return "";
  return fmt::format(" --compute {}", name(most->first));
}

/// The request that predicts the same step; nothing where a part of it has no option.
std::optional<std::string> train_command(const ProgramQuery& query, const std::string& chip, const Context& context) {
  const hlo::RecognisedModel& found = query.model;
  if (!found.trains || !query.is_model() || found.heads == 0 || !found.batch || !found.sequence) return std::nullopt;
  if (found.feed_forward == 0 && found.experts == 0) return std::nullopt;
  std::int64_t data = 1, fsdp = 1, tensor = 1, context_parallel = 1, expert = 1;
  for (std::size_t i = 0; i < found.axes.size(); ++i) {
    const hlo::AxisUse& use = found.axes[i];
    const std::int64_t size = query.mesh.axes[i].size;
    if (use.sequence)
      context_parallel *= size;
    else if (use.batch)
      (use.weights ? fsdp : data) *= size;
    else if (use.weights)
      tensor *= size;
    if (use.experts) expert *= size;
  }
  const auto known = model_word(found, context);
  std::string out =
      fmt::format("assay train {} --on {}:{} --batch {}seq --seq {}", known ? *known : model_configuration(found), chip,
                  query.module.devices(), *found.batch, *found.sequence);
  for (const auto& [option, size] : {std::pair("dp", data), std::pair("fsdp", fsdp), std::pair("tp", tensor),
                                     std::pair("cp", context_parallel), std::pair("ep", expert)})
    if (size > 1) out += fmt::format(" --{} {}", option, size);
  if (found.recompute) out += fmt::format(" --recompute {}", *found.recompute);
  return out + compute_option(query.kernels) + format_options(found);
}

report::Members model_members(const hlo::RecognisedModel& found) {
  report::Members out;
  const auto add = [&](const char* key, std::int64_t value) {
    if (value > 0) out.emplace_back(key, value);
  };
  add("hidden", found.hidden);
  add("feed_forward", found.feed_forward);
  add("heads", found.heads);
  add("kv_heads", found.kv_heads);
  add("head_dim", found.head_dim);
  add("layers", found.layers);
  add("vocabulary", found.vocabulary);
  add("experts", found.experts);
  add("expert_feed_forward", found.expert_feed_forward);
  add("experts_per_token", found.experts_per_token);
  out.emplace_back("tied", found.tied);
  out.emplace_back("parameters", found.parameters);
  out.emplace_back("copies", found.copies);
  if (found.weight_type) out.emplace_back("weight_type", found.weight_type->name);
  if (found.state_type) out.emplace_back("state_type", found.state_type->name);
  add("batch", found.batch.value_or(0));
  add("sequence", found.sequence.value_or(0));
  if (found.recompute) out.emplace_back("recompute", *found.recompute);
  return out;
}

}  // namespace

std::optional<Recovered> recovered_of_program(const std::string& text, const std::string& chip,
                                              const Context& context) {
  const auto calls = hlo::calls_of(context.catalogue);
  if (!calls || text.empty()) return std::nullopt;
  Result<ProgramQuery> query = recognised_program(text, "program", **calls);
  if (!query) return std::nullopt;
  const auto command = train_command(*query, chip, context);
  if (!command) return std::nullopt;
  const hlo::RecognisedModel& found = query->model;
  Recovered out;
  out.command = *command;
  out.model = model_word(found, context).value_or(model_configuration(found));
  out.alone = query->module.devices() == 1;
  out.run.batch = *found.batch;
  out.run.sequence = *found.sequence;
  out.run.compiled = true;
  out.run.recomputes = found.recompute.value_or("none") != "none";
  compare::RecoveredModel& model = out.run.model;
  model.layers = found.layers;
  model.hidden = found.hidden;
  model.intermediate = found.experts > 0 ? found.expert_feed_forward : found.feed_forward;
  model.heads = found.heads;
  model.kv_heads = found.kv_heads;
  model.head_dim = found.head_dim;
  model.vocabulary = found.vocabulary;
  model.experts = found.experts;
  model.experts_per_token = found.experts_per_token;
  return out;
}

void add_recognised(const ProgramQuery& query, const Context& context, report::Members& out) {
  const hlo::RecognisedModel& found = query.model;
  report::Items axes, weights;
  for (std::size_t i = 0; i < query.mesh.axes.size(); ++i) {
    const std::string role = found.axes[i].role();
    report::Members row{{"axis", query.mesh.axes[i].name}, {"size", query.mesh.axes[i].size}};
    if (query.is_model() && !role.empty()) row.emplace_back("role", role);
    axes.emplace_back(std::move(row));
  }
  out.emplace_back("mesh", std::move(axes));
  if (query.is_model()) out.emplace_back("model", model_members(found));
  for (const hlo::RecognisedWeight& weight : found.weights) {
    std::string sharding;
    for (const std::string& axis : weight.axes)
      sharding += (sharding.empty() ? "[" : ", ") + (axis.empty() ? "-" : axis);
    const bool divided =
        std::any_of(weight.axes.begin(), weight.axes.end(), [](const auto& axis) { return !axis.empty(); });
    report::Members row;
    if (query.is_model() && !weight.role.empty()) row.emplace_back("role", weight.role);
    if (!weight.name.empty()) row.emplace_back("name", weight.name);
    row.emplace_back("shape", fmt::format("{}[{}]", weight.element->name, fmt::join(weight.dims, ",")));
    row.emplace_back("count", weight.count);
    if (divided) row.emplace_back("sharding", sharding + "]");
    weights.emplace_back(std::move(row));
  }
  out.emplace_back("weights", std::move(weights));
  const std::string chip = query.cluster ? query.cluster->chip.id : "CHIP";
  if (const auto command = train_command(query, chip, context)) out.emplace_back("command", *command);
}

}  // namespace assay::verbs::profile
