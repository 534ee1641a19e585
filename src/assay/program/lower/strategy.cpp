#include "assay/program/lower/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "assay/base/text.h"
#include "assay/model/layer_parts.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

/// Axis lists by role, on the mesh without axes of one device.
struct Axes {
  program::AxisList data, fsdp, expert, context, tensor;
  program::AxisList experts;  ///< all axes that split experts

  explicit Axes(const Parallelism& p) {
    const auto sizes = stage_axis_sizes(p);
    program::AxisList* const lists[] = {&data, &fsdp, &expert, &context, &tensor};
    int next = 0;
    for (std::size_t i = 0; i < 5; ++i)
      if (sizes[i] > 1) *lists[i] = program::AxisList().pushed(next++);
    // Tensor-parallel devices may hold the same tokens: each takes those for its experts before the others exchange.
    if (p.expert_over.tensor) experts = tensor;
    if (p.expert_over.context) experts = joined(experts, context);
    experts = joined(experts, expert);
  }
};

program::AxisList all_of(std::initializer_list<program::AxisList> lists) {
  program::AxisList out;
  for (program::AxisList list : lists) out = joined(out, list);
  return out;
}

void set(ShardingRules& rules, std::initializer_list<program::TensorClass> classes,
         std::initializer_list<model::LogicalDim> dims, program::AxisList axes) {
  for (program::TensorClass c : classes)
    for (model::LogicalDim d : dims) rules.at(c, d) = axes;
}

std::string one_of(std::int64_t n) {
  std::string text;
  int listed = 0;
  for (std::int64_t d = 1; d <= n && listed < 12; ++d)
    if (n % d == 0) {
      text += (text.empty() ? "" : ", ") + std::to_string(d);
      ++listed;
    }
  return text;
}

Result<void> divides(std::string_view where, std::int64_t n, std::int64_t ways, std::string_view what) {
  if (ways <= n && n % ways == 0) return {};
  return fail(std::string(where), fmt::format("{} {} cannot be split {} ways", n, what, ways),
              fmt::format("use a divisor of {}: {}", n, one_of(n)));
}

constexpr std::size_t most_tensor_parts = 4;

/// How many ways each part of the tensor axis splits: products of the leading parts divide the key heads.
std::vector<std::int64_t> tensor_cuts(std::int64_t tensor, const model::Transformer& model) {
  std::vector<std::int64_t> shared;
  model.for_each_kind([&](const model::Layer& layer, std::int64_t) {
    for (const auto* a : {&layer.attention, &layer.cross_attention})
      if (*a && (*a)->kv_rank == 0) shared.push_back(std::gcd((*a)->kv_heads, tensor));
  });
  std::sort(shared.begin(), shared.end());
  std::vector<std::int64_t> cuts;
  std::int64_t before = 1;
  for (const std::int64_t ways : shared)
    if (ways > before && ways < tensor && ways % before == 0 && cuts.size() + 1 < most_tensor_parts) {
      cuts.push_back(ways / before);
      before = ways;
    }
  cuts.push_back(tensor / before);
  return cuts;
}

/// Replaces one axis by several in a list.
program::AxisList cut(program::AxisList list, int axis, int first, int parts) {
  if (list.empty()) return list;
  program::AxisList out = cut(list.popped(), axis, first, parts).pushed(list.last());
  for (int i = 0; list.last() == axis && i < parts; ++i) out = out.pushed(first + i);
  return out;
}

void cut_tensor_axis(std::int64_t tensor, const model::Transformer& model, StageRules& stage) {
  if (tensor == 1) return;
  const std::vector<std::int64_t> cuts = tensor_cuts(tensor, model);
  // The tensor axis is the last one; its parts take its place.
  const int axis = static_cast<int>(stage.mesh.axes.size()) - 1, parts = static_cast<int>(cuts.size()) - 1;
  const program::MeshAxis whole = stage.mesh.axes.back();
  stage.mesh.axes.pop_back();
  for (std::size_t i = 0; i < cuts.size(); ++i)
    stage.mesh.axes.push_back({parts == 0 ? whole.name : program::part_name(whole.name, i + 1), cuts[i], whole.role});
  for (auto& by_class : stage.rules.axes)
    for (program::AxisList& list : by_class) list = cut(list, axis, axis + 1, parts);
  for (int i = 0; i <= parts; ++i) stage.rules.key_replicas |= program::axis_bit(axis + i);
}

/// Keys and queries that heads of a recurrence share are split like these heads if every device gets whole key heads.
void split_state_keys(std::int64_t tensor, const model::Transformer& model, ShardingRules& rules) {
  using enum program::TensorClass;
  for (const model::Layer& layer : model.decoder.kinds) {
    if (!layer.state_space) continue;
    const model::StateSpace& s = *layer.state_space;
    if (!model::facts(s.kind).has(model::grouped_keys) || s.key_heads % tensor != 0) return;
  }
  for (const program::TensorClass of :
       {program::TensorClass::weight, used_weight, program::TensorClass::gradient, optimizer})
    rules.at(of, state) = rules.at(of, inner);
}

/// Experts take their devices from the sharded data axis first, then from the replicas.
std::int64_t experts_from_fsdp(const Parallelism& p) { return std::gcd(p.expert_data(), p.fsdp); }

}  // namespace

std::string expert_axes_text(const Parallelism& p) {
  std::vector<std::string> names;
  const auto add = [&](bool is_used, program::Role role) {
    if (is_used) names.emplace_back(program::name(role));
  };
  const std::int64_t from_fsdp = experts_from_fsdp(p);
  add(p.expert_over.tensor && p.tensor > 1, program::Role::tensor);
  add(p.expert_over.context && p.context > 1, program::Role::context);
  add(from_fsdp > 1, program::Role::fsdp);
  add(p.expert_data() > from_fsdp || names.empty(), program::Role::data);
  return join(names, ",");
}

Result<void> check_parallelism(const Parallelism& p, const model::Transformer& model) {
  for (const model::Layer& layer : model.decoder.kinds) {
    if (layer.attention) {
      ASSAY_CHECK(divides("--tp", layer.attention->heads, p.tensor, "heads"));
      if (p.context_scheme == ContextScheme::exchange)
        ASSAY_CHECK(
            divides("--cp", layer.attention->heads / p.tensor, p.context,
                    p.tensor > 1 ? fmt::format("heads per tensor-parallel device (tp {})", p.tensor) : "heads"));
    }
    if (layer.state_space) {
      const model::StateSpace& s = *layer.state_space;
      const bool channels = model::has_free_channels(s);
      ASSAY_CHECK(divides("--tp", channels ? s.inner : s.heads, p.tensor,
                          channels ? "channels of the state space" : "heads of the state space"));
    }
    if (layer.feed_forward) {
      const bool mixes = layer.feed_forward->experts > 0;
      if (!mixes || !p.expert_over.tensor)
        ASSAY_CHECK(divides("--tp", layer.feed_forward->width, p.tensor, "columns of the feed-forward block"));
      if (mixes) ASSAY_CHECK(divides("--ep", layer.feed_forward->experts, p.expert, "experts"));
    }
  }
  if (p.expert > 1) {
    bool any = false;
    for (const model::Layer& layer : model.decoder.kinds) any |= layer.feed_forward && layer.feed_forward->experts > 0;
    if (!any) return fail("--ep", fmt::format("{} has no experts", model.id), "leave --ep out");
    if (p.expert % p.expert_others() != 0)
      return fail("--ep", fmt::format("{} ways cannot be split over {} devices", p.expert, p.expert_others()),
                  "use a multiple, or fewer axes in --ep-over");
    ASSAY_CHECK(divides("--ep", p.data * p.fsdp, p.expert_data(), "data-parallel devices"));
  }
  if (p.pipeline > model.decoder.layers())
    return fail("--pp", fmt::format("{} stages, but {} has {} layers", p.pipeline, model.id, model.decoder.layers()),
                fmt::format("at most {} stages", model.decoder.layers()));
  return {};
}

std::array<std::int64_t, 5> stage_axis_sizes(const Parallelism& p) {
  const std::int64_t experts = p.expert_data(), from_fsdp = experts_from_fsdp(p), from_data = experts / from_fsdp;
  return {p.data / from_data, p.fsdp / from_fsdp, experts, p.context, p.tensor};
}

program::Mesh stage_mesh(const Parallelism& p) {
  const auto sizes = stage_axis_sizes(p);
  program::Mesh mesh;
  for (std::size_t i = 0; i < 5; ++i)
    if (sizes[i] > 1) mesh.axes.push_back(program::axis_of(static_cast<program::Role>(i), sizes[i]));
  return mesh;
}

StageRules training_stage(const Parallelism& p, const model::Transformer& model) {
  StageRules stage{stage_mesh(p), training_rules(p)};
  split_state_keys(p.tensor, model, stage.rules);
  cut_tensor_axis(p.tensor, model, stage);
  return stage;
}

StageRules serving_stage(const Parallelism& p, const ServingScheme& scheme, const model::Transformer& model) {
  StageRules stage{stage_mesh(p), serving_rules(p, scheme)};
  split_state_keys(p.tensor * p.context, model, stage.rules);
  cut_tensor_axis(p.tensor, model, stage);
  stage.rules.key_replicas |= Axes(p).context.set();
  return stage;
}

ShardingRules training_rules(const Parallelism& p) {
  using enum program::TensorClass;
  const Axes a(p);
  ShardingRules rules;
  const program::AxisList tokens = all_of({a.data, a.fsdp, a.expert});
  // Tensor parallelism splits heads, widths and the vocabulary, and experts that no other axis already splits.
  set(rules, {program::TensorClass::weight, used_weight, program::TensorClass::gradient, optimizer},
      {heads, kv_heads, width, vocabulary, inner}, a.tensor);
  set(rules, {program::TensorClass::weight, used_weight, program::TensorClass::gradient, optimizer}, {experts},
      a.experts);
  // Sharded weights: over the fsdp axis, the experts' part of it and the context devices, which hold the same
  // weights; over the replicas too at ZeRO stage 3.
  const program::AxisList fsdp = p.fsdp > 1 ? all_of({a.fsdp, a.expert, a.context}) : program::AxisList();
  // Replicas innermost, so that each replica's share is a part of an fsdp shard.
  const program::AxisList everyone = all_of({a.fsdp, a.expert, a.context, a.data});
  auto& spread = rules.spread;
  spread[static_cast<std::size_t>(program::TensorClass::weight)] = p.zero >= 3 ? everyone : fsdp;
  spread[static_cast<std::size_t>(optimizer)] =
      p.zero >= 1 ? everyone : spread[static_cast<std::size_t>(program::TensorClass::weight)];
  spread[static_cast<std::size_t>(program::TensorClass::gradient)] = spread[static_cast<std::size_t>(optimizer)];
  rules.deferred =
      p.zero >= 2 ? 0 : everyone.set() & ~spread[static_cast<std::size_t>(program::TensorClass::weight)].set();
  // Activations: sequences over the data axes, tokens of a sequence over context.
  set(rules, {residual, activation, query, key_value}, {batch}, tokens);
  set(rules, {residual, activation}, {sequence}, a.context);
  if (p.residual == ResidualScheme::sequence) rules.at(residual, sequence) = all_of({a.context, a.tensor});
  if (p.residual == ResidualScheme::model) rules.at(residual, d_model) = a.tensor;
  if (p.context_scheme == ContextScheme::gather) {
    rules.at(query, sequence) = a.context;
    set(rules, {query, key_value}, {heads, kv_heads}, a.tensor);
  } else {
    set(rules, {query, key_value}, {heads, kv_heads}, all_of({a.tensor, a.context}));
  }
  rules.at(dispatched, experts) = a.experts;
  rules.at(dispatched, capacity) =
      p.expert_over.context ? all_of({a.data, a.fsdp}) : all_of({a.data, a.fsdp, a.context});
  return rules;
}

ShardingRules serving_rules(const Parallelism& p, const ServingScheme& scheme) {
  using enum program::TensorClass;
  const Axes a(p);
  ShardingRules rules;
  // Only replicas and expert devices see different sequences; the other axes work on the same ones.
  const program::AxisList tokens = all_of({a.data, a.expert});
  // Devices that would hold the same keys split weights like the other tensor-parallel ones.
  const program::AxisList tensor = all_of({a.tensor, a.context});
  set(rules, {program::TensorClass::weight, used_weight}, {heads, kv_heads, width, vocabulary, inner}, tensor);
  set(rules, {program::TensorClass::weight, used_weight}, {experts}, a.experts);
  set(rules, {program::TensorClass::weight}, {d_model}, a.fsdp);
  if (scheme.weights == WeightScheme::two_dimensions) set(rules, {used_weight}, {d_model}, a.fsdp);
  const program::AxisList rows = scheme.weights == WeightScheme::gathered ? all_of({a.data, a.expert, a.fsdp}) : tokens;
  set(rules, {residual, activation}, {batch}, rows);
  set(rules, {query, key_value}, {batch}, rows);
  if (scheme.weights == WeightScheme::two_dimensions) rules.at(residual, d_model) = a.fsdp;
  // All devices of one copy share the attention work, but heads stay where tensor parallelism puts them. With a context
  // axis the others keep their heads, and only its devices split the rest.
  const program::AxisList second = scheme.weights == WeightScheme::two_dimensions ? a.fsdp : program::AxisList();
  const program::AxisList group = p.context > 1 ? all_of({second, a.context}) : all_of({a.tensor, second});
  if (scheme.cache == CacheScheme::heads)
    set(rules, {query, key_value}, {heads, kv_heads}, tensor);
  else if (p.context > 1)
    set(rules, {query, key_value}, {heads, kv_heads}, a.tensor);
  if (scheme.cache == CacheScheme::batch) set(rules, {query, key_value}, {batch}, all_of({rows, group}));
  if (scheme.cache == CacheScheme::sequence) rules.at(key_value, context) = group;
  rules.at(dispatched, experts) = a.experts;
  rules.at(dispatched, capacity) = a.data;
  return rules;
}

}  // namespace assay::lower
