// Attention mixed with layers that have another small state: short convolutions (LFM2), a gated linear recurrence
// (RecurrentGemma), the delta rule with a decay per dimension (Kimi Linear).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// Which LFM2 layers attend: by layer types, or by numbers; all if neither is given.
std::vector<bool> read_attending(ConfigReader& in, std::int64_t layers) {
  const auto types = in.texts("layer_types");
  const auto numbers = in.sizes("full_attn_idxs");
  std::vector<bool> out(static_cast<std::size_t>(layers), types.empty() && numbers.empty());
  if (!types.empty() && std::ssize(types) != layers) {
    in.fault("layer_types", fmt::format("lists {} layers, num_hidden_layers is {}", types.size(), layers),
             "write one type for each layer");
    return out;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != "conv")
      in.fault("layer_types", fmt::format("unknown layer type {}", in_quotes(types[i])), "full_attention or conv");
    out[i] = types[i] == "full_attention";
  }
  for (const std::int64_t i : numbers) {
    if (i >= layers)
      in.fault("full_attn_idxs", fmt::format("names layer {}, but there are {} layers", i, layers),
               "layers count from 0");
    else if (types.empty())
      out[static_cast<std::size_t>(i)] = true;
  }
  return out;
}

template <class F>
void add_lfm2_layers(ConfigReader& in, Transformer& model, Common& common, F feed_forward_of) {
  common.attention().qk_norm = Attention::QkNorm::per_head;
  StateSpace s;
  s.kind = StateSpace::Kind::gated_convolution;
  s.inner = model.d_model;
  s.convolution = in.size("conv_L_cache", 3);
  s.projection_bias = s.convolution_bias = in.flag("conv_bias", false);
  const auto attending = read_attending(in, common.layers);
  for (std::int64_t i = 0; i < common.layers; ++i) {
    Layer layer = common.layer;
    if (!attending[static_cast<std::size_t>(i)]) {
      layer.attention.reset();
      layer.state_space = s;
    }
    layer.feed_forward = feed_forward_of(i);
    model.decoder.add(layer);
  }
}

Common read_lfm2(ConfigReader& in, Transformer& model, std::int64_t hidden, std::int64_t intermediate) {
  return read_common(in, model,
                     {.hidden = hidden,
                      .intermediate = intermediate,
                      .layers = 32,
                      .heads = 32,
                      .kv_heads = 8,
                      .vocabulary = 65536,
                      .context = 128000,
                      .tied = true});
}

void lfm2(ConfigReader& in, Transformer& model) {
  Common common = read_lfm2(in, model, 2560, -1);
  if (in.has("tie_embedding")) model.tied = in.flag("tie_embedding", true);
  std::int64_t width = in.size({"block_ff_dim", "intermediate_size"}, 12288);
  if (in.flag("block_auto_adjust_ff_dim", true)) {
    // Two thirds, times a factor, in whole multiples: the rule of llama's own code.
    const std::int64_t multiple = in.size("block_multiple_of", 256);
    const double wanted = std::floor(in.factor("block_ffn_dim_multiplier", 1.0) * static_cast<double>(2 * width / 3));
    width = std::max<std::int64_t>((static_cast<std::int64_t>(wanted) + multiple - 1) / multiple * multiple, 1);
  }
  in.ignore({"block_multiple_of", "block_ffn_dim_multiplier", "block_dim", "conv_dim", "conv_dim_out", "num_heads",
             "block_use_swiglu", "block_use_xavier_init", "conv_use_xavier_init"});
  common.layer.feed_forward = FeedForward{.width = width};
  add_lfm2_layers(in, model, common, [&](std::int64_t) { return common.feed_forward(); });
}

void lfm2_moe(ConfigReader& in, Transformer& model) {
  Common common = read_lfm2(in, model, 2048, 7168);
  FeedForward experts{.width = in.size("moe_intermediate_size", 1792)};
  experts.experts = in.size("num_experts", 32);
  experts.experts_per_token = in.size("num_experts_per_tok", 4);
  in.ignore({"use_expert_bias"});  // set to balance the experts, and not a parameter
  check_experts(in, experts, "num_experts_per_tok");
  const std::int64_t dense = in.count("num_dense_layers", 2);
  add_lfm2_layers(in, model, common, [&](std::int64_t i) { return i < dense ? common.feed_forward() : experts; });
}

/// RecurrentGemma (Griffin): blocks of a gated linear recurrence, and local attention with one key head; biases of
/// all but queries, keys and values. intermediate_size counts gate and up together.
void recurrent_gemma(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2560,
                               .intermediate = -1,
                               .layers = 26,
                               .heads = 10,
                               .vocabulary = 256000,
                               .context = 8192,
                               .tied = true});
  Attention& a = common.attention();
  set_bias(a, in.flag("attention_bias", false), true);
  a.window = in.size("attention_window_size", 2048);
  common.layer.feed_forward = FeedForward{
      .width = std::max<std::int64_t>(in.size("intermediate_size", 7680) / 2, 1), .up_bias = true, .down_bias = true};
  StateSpace s;
  s.kind = StateSpace::Kind::gated_linear;
  s.inner = in.derived("lru_width", model.d_model, "hidden_size");
  s.heads = a.heads;
  s.convolution = in.size("conv1d_width", 4);
  s.convolution_bias = s.projection_bias = true;
  if (s.inner % s.heads != 0)
    in.fault("lru_width", fmt::format("{} heads do not divide {}", s.heads, s.inner),
             "give num_attention_heads that divide it");
  std::vector<std::string> types = in.texts("block_types");
  in.ignore({"embeddings_scale_by_sqrt_dim"});
  if (types.empty()) {
    types = {"recurrent", "recurrent", "attention"};
    in.note("block_types not given: recurrent, recurrent, attention");
  }
  for (std::int64_t i = 0; i < common.layers && !in.failed(); ++i) {
    const std::string& type = types[static_cast<std::size_t>(i) % types.size()];
    Layer layer = common.layer;
    if (type == "recurrent") {
      layer.attention.reset();
      layer.state_space = s;
    } else if (type != "attention") {
      in.fault("block_types", fmt::format("unknown layer type {}", in_quotes(type)), "recurrent or attention");
    }
    model.decoder.add(layer);
  }
}

/// Which layers are linear, numbered from one, and their shape.
std::vector<bool> read_kimi_delta(ConfigReader& in, std::int64_t layers, StateSpace& s) {
  std::vector<bool> out(static_cast<std::size_t>(layers));
  const Json* object = in.object("linear_attn_config");
  if (!object) {
    in.fault("linear_attn_config", "is missing", "it names the layers of linear attention");
    return out;
  }
  ConfigReader linear(*object, in.file(), "linear_attn_config.");
  s.kind = StateSpace::Kind::gated_delta;
  s.heads = s.key_heads = linear.size("num_heads");
  s.key_dim = s.gate_rank = linear.size("head_dim");
  s.inner = s.heads * s.key_dim;
  s.convolution = linear.size("short_conv_kernel_size", 4);
  for (const std::int64_t number : linear.sizes("kda_layers", 1)) {
    if (number > layers)
      linear.fault("kda_layers", fmt::format("names layer {}, but there are {} layers", number, layers),
                   "layers count from 1");
    else
      out[static_cast<std::size_t>(number - 1)] = true;
  }
  for (const std::int64_t number : linear.sizes("full_attn_layers", 1))
    if (number > layers || out[static_cast<std::size_t>(number - 1)])
      linear.fault("full_attn_layers", fmt::format("layer {} is linear or past the last layer", number),
                   "name each layer once, in kda_layers or here");
  linear.check_unread();
  in.take(linear);
  return out;
}

/// Kimi Linear: three layers of the delta rule, then one of latent attention without positions; experts.
void kimi_linear(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 4096);
  model.vocabulary = in.size("vocab_size", 163840);
  model.max_context = in.count({"model_max_length", "max_position_embeddings"}, 0);
  model.tied = in.flag("tie_word_embeddings", false);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 32);
  Attention attention;
  attention.heads = attention.kv_heads = in.size("num_attention_heads", 32);
  attention.kv_rank = in.size("kv_lora_rank");
  attention.q_rank = in.count("q_lora_rank");
  attention.rope_dim = in.size("qk_rope_head_dim");
  attention.head_dim = in.size("qk_nope_head_dim") + attention.rope_dim;
  attention.value_dim = in.size("v_head_dim");
  attention.rotary = !in.flag("mla_use_nope", false);
  FeedForward dense{.width = in.size("intermediate_size", 11008)}, experts{.width = in.size("moe_intermediate_size")};
  experts.experts = in.count("num_experts");
  experts.experts_per_token = in.count({"num_experts_per_token", "num_experts_per_tok"}, 0);
  experts.shared_width = in.count("num_shared_experts") * experts.width;
  experts.router_correction = true;
  check_experts(in, experts, "num_experts_per_token");
  const std::int64_t leading = in.count("first_k_dense_replace"), step = in.size("moe_layer_freq", 1);
  model.prediction_layers = in.count("num_nextn_predict_layers");
  in.ignore({"head_dim", "num_key_value_heads", "num_expert_group", "moe_renormalize", "use_grouped_topk"});
  StateSpace s;
  const std::vector<bool> linear = read_kimi_delta(in, layers, s);
  for (std::int64_t i = 0; i < layers; ++i) {
    Layer layer;
    if (linear[static_cast<std::size_t>(i)])
      layer.state_space = s;
    else
      layer.attention = attention;
    layer.feed_forward = experts.experts > 0 && i >= leading && i % step == 0 ? experts : dense;
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> recurrent_families() {
  static constexpr Family families[] = {
      {"lfm2", "Lfm2ForCausalLM", &lfm2},
      {"lfm2", "LFM2ForCausalLM", &lfm2},
      {"lfm2_moe", "Lfm2MoeForCausalLM", &lfm2_moe},
      {"recurrent_gemma", "RecurrentGemmaForCausalLM", &recurrent_gemma},
      {"kimi_linear", "KimiLinearForCausalLM", &kimi_linear},
  };
  return families;
}

}  // namespace assay::model
