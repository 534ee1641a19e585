#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/profile/hlo.h"
#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

namespace hlo = assay::hlo;

/// Formats of weights and of Adam's moments, where they are not the usual ones.
std::string format_options(const compare::RecognisedModel& found) {
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
  const std::vector<Dtype> formats = hlo::product_formats(kernels);
  const bool is_short = !formats.empty() && (formats[0] == Dtype::fp8 || formats[0] == Dtype::int8);
  return is_short ? fmt::format(" --compute {}", name(formats[0])) : "";
}

/// The axes of the mesh by what they divide.
std::vector<program::MeshAxis> parallelism(const ProgramQuery& query) {
  using program::Role;
  std::vector<program::MeshAxis> out;
  for (const Role role : {Role::data, Role::fsdp, Role::tensor, Role::context, Role::expert}) {
    program::MeshAxis& axis = out.emplace_back(program::axis_of(role, 1));
    for (std::size_t i = 0; i < query.model.axes.size(); ++i) {
      const compare::AxisUse& use = query.model.axes[i];
      const bool divides = role == Role::expert    ? use.experts
                           : role == Role::context ? use.sequence
                           : use.sequence          ? false
                           : use.batch             ? role == (use.weights ? Role::fsdp : Role::data)
                                                   : use.weights && role == Role::tensor;
      if (divides) axis.size *= query.mesh.axes[i].size;
    }
  }
  return out;
}

/// The request that predicts the same step; nothing where a part of it has no option.
std::optional<std::string> train_command(const ProgramQuery& query, const std::string& chip, const Context& context) {
  const compare::RecognisedModel& found = query.model;
  if (!found.trains || !query.is_model() || found.heads == 0 || !found.batch || !found.sequence ||
      found.intermediate + found.dense_width == 0)
    return std::nullopt;
  std::string out = compare::train_command(compare::model_argument(found, context.catalogue),
                                           fmt::format("{}:{}", chip, query.module.devices()), *found.batch,
                                           *found.sequence, parallelism(query));
  if (found.recompute) out += fmt::format(" --recompute {}", *found.recompute);
  return out + compute_option(query.kernels) + format_options(found);
}

report::Members model_members(const compare::RecognisedModel& found) {
  report::Members out;
  const auto add = [&](const char* key, std::int64_t value) {
    if (value > 0) out.emplace_back(key, value);
  };
  add("hidden", found.hidden);
  add("feed_forward", found.experts > 0 ? found.dense_width : found.intermediate);
  add("heads", found.heads);
  add("kv_heads", found.kv_heads);
  add("head_dim", found.head_dim);
  add("layers", found.layers);
  add("vocabulary", found.vocabulary);
  add("experts", found.experts);
  add("expert_feed_forward", found.experts > 0 ? found.intermediate : 0);
  add("experts_per_token", found.experts_per_token);
  out.emplace_back("tied", found.tied.value_or(false));
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
  const compare::RecognisedModel& found = query->model;
  Recovered out;
  out.command = *command;
  out.model = compare::model_argument(found, context.catalogue);
  out.alone = query->module.devices() == 1;
  out.run.model = found;
  out.run.batch = *found.batch;
  out.run.sequence = *found.sequence;
  out.run.compiled = true;
  out.run.recomputes = found.recompute.value_or("none") != "none";
  return out;
}

void add_recognised(const ProgramQuery& query, const Context& context, report::Members& out) {
  const compare::RecognisedModel& found = query.model;
  report::Items axes, weights;
  for (std::size_t i = 0; i < query.mesh.axes.size(); ++i) {
    const std::string role = found.axes[i].role();
    report::Members row{{"axis", query.mesh.axes[i].name}, {"size", query.mesh.axes[i].size}};
    if (query.is_model() && !role.empty()) row.emplace_back("role", role);
    axes.emplace_back(std::move(row));
  }
  out.emplace_back("mesh", std::move(axes));
  if (query.is_model()) out.emplace_back("model", model_members(found));
  for (const compare::RecognisedWeight& weight : found.weights) {
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
