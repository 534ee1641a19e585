// How the library that a configuration is written for composes its blocks of operations. No shape depends on it, but
// eager software runs a kernel for each.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// What the code of a family does where its configuration does not say.
struct FamilyCode {
  std::string_view model_type;
  JoinedProjection attention = JoinedProjection::none;
  bool feed_forward = false;  ///< gate and input are halves of one product's result
  Activation function = Activation::simple;
  double turning = 0;  ///< share of each head that turns and is joined with the rest; 0: heads turn as they are
};

constexpr FamilyCode codes[] = {
    {.model_type = "gpt2", .attention = JoinedProjection::split, .function = Activation::gelu_new},
    {.model_type = "openai-gpt", .attention = JoinedProjection::split, .function = Activation::gelu_new},
    {.model_type = "gpt_bigcode", .attention = JoinedProjection::split},
    {.model_type = "gptj", .function = Activation::gelu_new, .turning = 0.25},
    {.model_type = "codegen", .attention = JoinedProjection::woven, .function = Activation::gelu_new, .turning = 0.25},
    {.model_type = "gpt_neo", .function = Activation::gelu_new},
    {.model_type = "gpt_neox", .attention = JoinedProjection::woven, .turning = 0.25},
    {.model_type = "bloom", .attention = JoinedProjection::woven, .function = Activation::gelu_fast},
    {.model_type = "falcon", .attention = JoinedProjection::woven},
    {.model_type = "mpt", .attention = JoinedProjection::split},
    {.model_type = "dbrx", .attention = JoinedProjection::split},
    {.model_type = "phi", .function = Activation::gelu_new, .turning = 0.5},
    {.model_type = "phi-msft", .attention = JoinedProjection::woven, .function = Activation::gelu_new, .turning = 0.5},
    {.model_type = "phi3", .attention = JoinedProjection::woven, .feed_forward = true, .turning = 1},
    {.model_type = "phi3_v", .attention = JoinedProjection::woven, .feed_forward = true, .turning = 1},
    {.model_type = "phi4mm", .attention = JoinedProjection::woven, .feed_forward = true, .turning = 1},
    {.model_type = "phi4_multimodal", .attention = JoinedProjection::woven, .feed_forward = true, .turning = 1},
    {.model_type = "stablelm", .turning = 0.25},
    {.model_type = "stablelm_epoch", .turning = 0.25},
    {.model_type = "glm", .feed_forward = true, .turning = 0.5},
    {.model_type = "glm4", .feed_forward = true, .turning = 0.5},
    {.model_type = "glm4v_text", .feed_forward = true, .turning = 0.5},
    {.model_type = "glm4_moe", .turning = 0.5},
    {.model_type = "chatglm", .attention = JoinedProjection::split, .feed_forward = true, .turning = 0.5},
    {.model_type = "nemotron", .function = Activation::relu2, .turning = 0.5},
    {.model_type = "persimmon", .attention = JoinedProjection::woven, .function = Activation::relu2, .turning = 0.5},
    {.model_type = "arcee", .function = Activation::relu2},
    {.model_type = "internlm2", .attention = JoinedProjection::woven},
    {.model_type = "qwen", .attention = JoinedProjection::split},
    {.model_type = "baichuan", .attention = JoinedProjection::split},
};

/// Other names of the same operations.
constexpr std::pair<std::string_view, Activation> synonyms[] = {
    {"gelu_accurate", Activation::gelu_new}, {"relu_squared", Activation::relu2}, {"sqrelu", Activation::relu2}};

Activation named_function(std::string_view name) {
  for (const auto& [other, function] : synonyms)
    if (other == name) return function;
  const auto* const at = std::find(std::begin(activation_names), std::end(activation_names), name);
  return at == std::end(activation_names) ? Activation::simple
                                          : static_cast<Activation>(at - std::begin(activation_names));
}

const Json* text_of(const Json& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const Json* value = config.find(key); value && value->kind == Json::Kind::text) return value;
  return nullptr;
}

/// The share of each head that turns, as the configuration says.
double turning_share(const Json& config, double fallback) {
  const auto number = [](const Json* value) { return value ? value->number : 0.0; };
  for (const std::string_view key : {"partial_rotary_factor", "rotary_pct", "rope_pct"})
    if (const double share = number(config.find(key)); share > 0.0 && share <= 1.0) return share;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"})
    if (const Json* inner = config.find(key); inner && inner->kind == Json::Kind::object)
      if (const double share = number(inner->find("partial_rotary_factor")); share > 0.0 && share <= 1.0) return share;
  return fallback;
}

}  // namespace

void read_composition(const Json& config, std::string_view model_type, Transformer& model) {
  const auto* const known = std::find_if(std::begin(codes), std::end(codes),
                                         [&](const FamilyCode& one) { return one.model_type == model_type; });
  const FamilyCode code = known == std::end(codes) ? FamilyCode{} : *known;
  const Json* named =
      text_of(config, {"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "afn"});
  const Activation function = named ? named_function(named->text) : code.function;
  const double share = turning_share(config, code.turning);
  const bool joins_heads = share > 0.0 && (share < 1.0 || code.turning > 0.0);
  for (LayerStack* stack : {&model.decoder, model.encoder ? &*model.encoder : nullptr})
    for (std::size_t i = 0; stack && i < stack->kinds.size(); ++i) {
      Layer& layer = stack->kinds[i];
      if (layer.attention && layer.attention->kv_rank == 0) {
        Attention& attention = *layer.attention;
        attention.joined = code.attention;
        if (joins_heads && attention.rotary)
          attention.turned = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(attention.head_dim)));
      }
      if (layer.feed_forward) {
        layer.feed_forward->function = function;
        layer.feed_forward->joined = code.feed_forward && layer.feed_forward->gated && layer.feed_forward->experts == 0;
      }
    }
}

}  // namespace assay::model
