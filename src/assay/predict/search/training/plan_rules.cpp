#include "assay/predict/search/training/plan_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/predict/search/training/space.h"

namespace assay::search {
namespace {

using Words = std::vector<std::string>;

bool has_word(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A bit for each word that is in a list of names; "none" alone is no bit where it is no name.
template <class Names>
PlanRules::Bits bits_of(const Words& words, const Names& names) {
  PlanRules::Bits bits = 0;
  std::size_t at = 0;
  for (const auto& name : names) {
    if (has_word(words, name)) bits = static_cast<PlanRules::Bits>(bits | 1u << at);
    ++at;
  }
  return bits;
}

constexpr std::string_view residual_names[] = {"replicated", "sequence", "model"};
constexpr std::string_view stage_names[] = {"0", "1", "2", "3"};
constexpr std::string_view context_names[] = {"ring", "all-to-all"};
constexpr std::string_view layers_names[] = {"even", "ends", "layout", "any"};

PlanRules::Bits schedule_bits(const Words& words) {
  PlanRules::Bits bits = 0;
  for (const std::string& word : words)
    if (const auto schedule = clock::parse_schedule(word, ""))
      bits = static_cast<PlanRules::Bits>(bits | 1u << static_cast<unsigned>(*schedule));
  return bits;
}

Result<std::array<std::uint8_t, 6>> read_axis_order(std::string_view text, std::string_view where) {
  std::array<std::uint8_t, 6> order{};
  std::size_t at = 0;
  for (const std::string& word : split(text, ',')) {
    const auto axis = training::whole_mesh_axis(word);
    if (!axis || at == order.size()) break;
    order[at++] = *axis;
  }
  std::array<std::uint8_t, 6> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (at != order.size() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return fail(std::string(where), fmt::format("{} is not an order of mesh axes", in_quotes(text)),
                "name pp, dp, fsdp, ep, cp and tp once, outermost first");
  return order;
}

/// Searches start from the policy with the least work, which is a part of all others.
Result<void> check_least(const Words& words, const std::string& where) {
  const lower::RecomputePolicy* least = nullptr;
  for (const lower::RecomputePolicy& policy : lower::recompute_policies) {
    if (!has_word(words, policy.name)) continue;
    if (!least) least = &policy;
    if (!policy.parts.includes(least->parts))
      return fail(where, fmt::format("{} does not recompute all that {} does", policy.name, least->name),
                  "add the policy that is a part of all others, e.g. none");
  }
  return least ? Result<void>() : fail(where, "no policy of recomputation is named", "e.g. none full");
}

void set_experts(const Words& words, PlanRules& rules) {
  rules.experts = !has_word(words, "none");
  rules.experts_are_sharded = has_word(words, "sharded");
  rules.experts_over_whole = {has_word(words, "whole-tensor"), has_word(words, "whole-context")};
  rules.experts_over = {rules.experts_over_whole.tensor || has_word(words, "tensor"),
                        rules.experts_over_whole.context || has_word(words, "context")};
}

std::int64_t key_heads_of(const model::Transformer& model) {
  std::int64_t heads = 0;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.attention && layer.attention->kv_heads > 0)
      heads = heads == 0 ? layer.attention->kv_heads : std::min(heads, layer.attention->kv_heads);
  return heads;
}

bool allows_tensor(PlanRules::Tensor rule, std::int64_t ways, const model::Transformer& model) {
  const std::int64_t heads = key_heads_of(model);
  switch (rule) {
    case PlanRules::Tensor::none:
      return ways == 1;
    case PlanRules::Tensor::key_heads:
      return heads % ways == 0;
    case PlanRules::Tensor::copies:
      return heads == 0 || heads % ways == 0 || ways % heads == 0;
    case PlanRules::Tensor::any:
      break;
  }
  return true;
}

bool allows_experts(const PlanRules& rules, const lower::Parallelism& p) {
  if (p.expert == 1) return true;
  if (!rules.experts) return false;
  if (rules.experts_are_sharded && p.fsdp % p.expert_data() != 0) return false;
  const lower::ExpertAxes &over = p.expert_over, &whole = rules.experts_over_whole, &may = rules.experts_over;
  return (!over.tensor || may.tensor) && (!over.context || may.context) &&
         (over.tensor || !whole.tensor || p.tensor == 1) && (over.context || !whole.context || p.context == 1);
}

/// Whether some usual number of stages holds as many layers each.
bool has_even_split(std::int64_t layers) {
  constexpr std::int64_t usual_stages = 16;
  for (std::int64_t stages = 2; stages <= usual_stages; ++stages)
    if (layers % stages == 0) return true;
  return false;
}

/// The number of a named policy; nothing for lists of parts, of which the rules say nothing.
std::optional<std::size_t> number_of(lower::Recompute recompute) {
  for (std::size_t i = 0; i < std::size(lower::recompute_policies); ++i)
    if (lower::recompute_policies[i].parts == recompute) return i;
  return std::nullopt;
}

}  // namespace

bool PlanRules::splits_layers(std::int64_t layer_count, std::int64_t stages, std::int64_t chunks, bool is_asked) const {
  const std::int64_t parts = stages * chunks;
  if (stages == 1 || has(layers, Layers::any)) return true;
  if ((is_asked || !has_even_split(layer_count)) && has(layers, Layers::layout)) return true;
  if (has(layers, Layers::even) && layer_count % parts == 0) return true;
  // Embedding and loss, or one of them, take the place of a layer.
  return has(layers, Layers::ends) && ((layer_count + 1) % parts == 0 || (layer_count + 2) % parts == 0);
}

bool PlanRules::allows(const lower::Parallelism& p, const model::Transformer& model) const {
  const bool is_piped = p.pipeline > 1;
  if (is_piped && schedules == 0) return false;
  if (p.fsdp > 1 && (!fsdp || (is_piped && !stage_fsdp) || (p.data > 1 && !hybrid))) return false;
  if (p.context > 1 && contexts == 0) return false;
  if (vocabulary_divides && model.vocabulary % p.tensor != 0) return false;
  return allows_tensor(tensor, p.tensor, model) && allows_experts(*this, p);
}

Result<PlanRules> read_plan_rules(std::span<const kernel::SoftwareProperty> plan) {
  PlanRules rules;
  for (const kernel::SoftwareProperty& property : plan) {
    ASSAY_TRY(words, kernel::plan_rule_words(property.option, property.value, property.source));
    const std::string& rule = property.option;
    const bool yes = words.front() == "yes";
    if (rule == "schedules") rules.schedules = schedule_bits(words);
    if (rule == "layers") rules.layers = bits_of(words, layers_names);
    if (rule == "tensor")
      rules.tensor = words.front() == "none"        ? PlanRules::Tensor::none
                     : words.front() == "key-heads" ? PlanRules::Tensor::key_heads
                     : words.front() == "copies"    ? PlanRules::Tensor::copies
                                                    : PlanRules::Tensor::any;
    if (rule == "vocabulary") rules.vocabulary_divides = words.front() == "even";
    if (rule == "residual") rules.residuals = rules.expert_residuals = bits_of(words, residual_names);
    if (rule == "residual-with-experts") rules.expert_residuals = bits_of(words, residual_names);
    if (rule == "fsdp") rules.fsdp = yes;
    if (rule == "fsdp-with-stages") rules.stage_fsdp = yes;
    if (rule == "hybrid") rules.hybrid = yes;
    if (rule == "zero") rules.zeros = rules.stage_zeros = bits_of(words, stage_names);
    if (rule == "zero-with-stages") rules.stage_zeros = bits_of(words, stage_names);
    if (rule == "zero-with-fsdp") rules.fsdp_zeros = bits_of(words, stage_names);
    if (rule == "context") rules.contexts = bits_of(words, context_names);
    if (rule == "experts") set_experts(words, rules);
    if (rule == "recompute") {
      rules.policies = 0;
      for (std::size_t i = 0; i < std::size(lower::recompute_policies); ++i)
        if (has_word(words, lower::recompute_policies[i].name))
          rules.policies = static_cast<PlanRules::Bits>(rules.policies | 1u << i);
      ASSAY_CHECK(check_least(words, property.source));
    }
    if (rule == "offload") rules.offloads = bits_of(words, training::offload_names);
    if (rule == "order")
      for (const std::string& word : words) {
        ASSAY_TRY(order, read_axis_order(word, property.source));
        rules.orders.push_back(order);
      }
  }
  return rules;
}

namespace {

/// Collects what a rule forbids of what the user asked for.
class Conflicts {
 public:
  void check(bool is_allowed, std::string_view rule, std::string option, std::string what) {
    if (!is_allowed) found.push_back({std::string(rule), std::move(option), std::move(what)});
  }
  std::vector<PlanConflict> found;
};

void check_stages(const PlanRules& rules, const TrainingChoices& c, const model::Transformer& model, Conflicts& out) {
  using enum clock::PipelineSchedule;
  const std::int64_t stages = c.pipeline.value_or(1), chunks = c.interleave.value_or(1);
  if (stages > 1) out.check(rules.schedules != 0, "schedules", "--pp", "it has no pipeline stages");
  if (rules.schedules == 0) return;
  if (c.schedule)
    out.check(PlanRules::has(rules.schedules, *c.schedule), "schedules", "--schedule",
              fmt::format("it has no schedule {}", clock::schedule_name(*c.schedule)));
  else if (chunks > 1)
    out.check(PlanRules::has(rules.schedules, interleaved), "schedules", "--interleave",
              "it does not interleave stages");
  const std::int64_t layers = clock::layers_of(model);
  out.check(rules.splits_layers(layers, stages, chunks, true), "layers", chunks > 1 ? "--interleave" : "--pp",
            fmt::format("{} layers cannot be split evenly over {} stages{}", layers, stages,
                        chunks > 1 ? fmt::format(" of {} chunks", chunks) : ""));
}

void check_sharding(const PlanRules& rules, const TrainingChoices& c, Conflicts& out) {
  const bool is_piped = c.pipeline.value_or(1) > 1;
  if (c.fsdp.value_or(1) > 1) {
    out.check(rules.fsdp, "fsdp", "--fsdp", "it does not shard weights over data-parallel devices");
    if (rules.fsdp && is_piped)
      out.check(rules.stage_fsdp, "fsdp-with-stages", "--fsdp", "it does not shard weights in a pipeline");
    if (rules.fsdp && c.data.value_or(1) > 1)
      out.check(rules.hybrid, "hybrid", "--dp", "it has no replicas of fully sharded groups");
  }
  if (!c.zero) return;
  out.check(PlanRules::has(rules.zeros, *c.zero), "zero", "--zero", fmt::format("it has no ZeRO stage {}", *c.zero));
  if (is_piped && PlanRules::has(rules.zeros, *c.zero))
    out.check(PlanRules::has(rules.stage_zeros, *c.zero), "zero-with-stages", "--zero",
              fmt::format("it has no ZeRO stage {} in a pipeline", *c.zero));
  if (c.fsdp.value_or(1) > 1)
    out.check(PlanRules::has(rules.fsdp_zeros, *c.zero), "zero-with-fsdp", "--zero",
              fmt::format("it has no ZeRO stage {} over fully sharded groups", *c.zero));
}

void check_model_axes(const PlanRules& rules, const TrainingChoices& c, const model::Transformer& model,
                      Conflicts& out) {
  if (c.tensor) {
    out.check(allows_tensor(rules.tensor, *c.tensor, model), "tensor", "--tp",
              rules.tensor == PlanRules::Tensor::none
                  ? std::string("it has no tensor parallelism")
                  : fmt::format("{} key heads cannot be split {} ways", key_heads_of(model), *c.tensor));
    out.check(!rules.vocabulary_divides || model.vocabulary % *c.tensor == 0, "vocabulary", "--tp",
              fmt::format("a vocabulary of {} cannot be split {} ways", model.vocabulary, *c.tensor));
  }
  if (c.residual)
    out.check(PlanRules::has(rules.residuals, *c.residual), "residual", "--residual",
              fmt::format("it does not keep activations {}", residual_names[static_cast<std::size_t>(*c.residual)]));
  if (c.context.value_or(1) > 1) out.check(rules.contexts != 0, "context", "--cp", "it has no context parallelism");
  if (c.context_scheme && rules.contexts != 0)
    out.check(
        PlanRules::has(rules.contexts, *c.context_scheme), "context", "--context-scheme",
        fmt::format("it has no context parallelism by {}", context_names[static_cast<std::size_t>(*c.context_scheme)]));
  if (c.expert.value_or(1) == 1) return;
  lower::Parallelism p;
  p.expert = *c.expert;
  p.tensor = c.tensor.value_or(1);
  p.context = c.context.value_or(1);
  p.expert_over = c.expert_over.value_or(rules.experts_over_whole);
  p.fsdp = c.fsdp.value_or(p.expert);
  out.check(allows_experts(rules, p), "experts", rules.experts ? "--ep-over" : "--ep",
            rules.experts ? "it does not distribute experts over these axes" : "it has no expert parallelism");
}

/// Whether a layout has the mesh axes in this order; axes of one device do not count.
bool is_order(const std::array<std::uint8_t, 6>& order, const collective::AxisLayout& layout,
              const TrainingChoices& c) {
  const std::optional<std::int64_t>* const sizes[] = {&c.pipeline, &c.data, &c.fsdp, &c.expert, &c.context, &c.tensor};
  const auto counted = [&](const auto& axes) {
    std::vector<std::uint8_t> out;
    for (const std::uint8_t axis : axes)
      if (axis < order.size() && *sizes[axis] != 1) out.push_back(axis);
    return out;
  };
  return counted(order) == counted(layout.order);
}

}  // namespace

std::vector<PlanConflict> plan_conflicts(const PlanRules& rules, const TrainingChoices& choices,
                                         const model::Transformer& model, const hardware::Cluster& cluster) {
  Conflicts out;
  check_stages(rules, choices, model, out);
  check_sharding(rules, choices, out);
  check_model_axes(rules, choices, model, out);
  if (choices.recompute)
    if (const auto number = number_of(*choices.recompute))
      out.check(PlanRules::has(rules.policies, *number), "recompute", "--recompute",
                fmt::format("it has no setting that recomputes {}", lower::name(*choices.recompute)));
  if (choices.offloads.size() == 1)
    out.check(PlanRules::has(rules.offloads, choices.offloads.front()), "offload", "--offload",
              fmt::format("it does not offload {}", training::name(choices.offloads.front())));
  if (choices.layout && rules.limits_orders(cluster))
    out.check(std::any_of(rules.orders.begin(), rules.orders.end(),
                          [&](const auto& order) { return is_order(order, *choices.layout, choices); }),
              "order", "--order", "it does not place mesh axes in this order");
  return std::move(out.found);
}

}  // namespace assay::search
