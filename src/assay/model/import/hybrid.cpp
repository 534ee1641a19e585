// Attention mixed with linear attention: Qwen 3 Next and 3.5 (gated delta rule), MiniMax 01 (lightning attention).
#include <fmt/format.h>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// The gated delta rule of the linear layers.
StateSpace read_gated_delta(ConfigReader& in) {
  StateSpace s;
  s.kind = StateSpace::Kind::gated_delta;
  s.heads = in.size("linear_num_value_heads", 32);
  s.key_heads = in.size("linear_num_key_heads", 16);
  s.key_dim = in.size("linear_key_head_dim", 128);
  s.inner = s.heads * in.size("linear_value_head_dim", 128);
  s.convolution = in.size("linear_conv_kernel_dim", 4);
  if (s.heads % s.key_heads != 0)
    in.fault("linear_num_key_heads", fmt::format("must divide the {} value heads, got {}", s.heads, s.key_heads),
             fmt::format("a divisor of {}", s.heads));
  return s;
}

/// Attention each full_attention_interval-th layer, with a gate from the query projection and norms of each head.
template <class F>
void add_qwen_hybrid(ConfigReader& in, Transformer& model, Common& common, F feed_forward_of) {
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::per_head;
  common.attention().output_gate = !in.has("attn_output_gate") || in.flag("attn_output_gate", true);
  const StateSpace linear = read_gated_delta(in);
  const auto types = read_layer_types(in, common.layers);
  const std::int64_t interval = types.empty() ? in.size("full_attention_interval", 4) : 1;
  in.ignore({"full_attention_interval", "attn_output_gate", "mtp_use_dedicated_embeddings"});
  model.prediction_layers = in.count({"mtp_num_hidden_layers", "num_nextn_predict_layers"}, 0);
  for (std::int64_t i = 0; i < common.layers; ++i) {
    Layer layer = common.layer;
    const bool full = types.empty() ? (i + 1) % interval == 0 : types[static_cast<std::size_t>(i)] == "full_attention";
    if (!full) {
      layer.attention.reset();
      layer.state_space = linear;
    }
    layer.feed_forward = feed_forward_of(i);
    model.decoder.add(layer);
  }
}

FeedForward read_experts(ConfigReader& in, std::int64_t width, std::int64_t experts, std::int64_t per_token) {
  FeedForward f;
  f.width = in.size("moe_intermediate_size", width);
  f.shared_width = in.size("shared_expert_intermediate_size", width);
  f.shared_gate = true;
  f.experts = in.size("num_experts", experts);
  f.experts_per_token = in.size("num_experts_per_tok", per_token);
  check_experts(in, f, "num_experts_per_tok");
  return f;
}

void qwen3_next(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = 5632,
                               .layers = 48,
                               .heads = 16,
                               .kv_heads = 2,
                               .head_dim = 256,
                               .vocabulary = 151936,
                               .context = 32768});
  const FeedForward dense = common.feed_forward(), experts = read_experts(in, 512, 512, 10);
  const std::int64_t step = in.size("decoder_sparse_step", 1);
  const auto dense_layers = in.sizes("mlp_only_layers");
  add_qwen_hybrid(in, model, common, [&](std::int64_t i) {
    bool sparse = (i + 1) % step == 0;
    for (std::int64_t layer : dense_layers) sparse = sparse && layer != i;
    return sparse ? experts : dense;
  });
}

void qwen3_5_moe(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = -1,
                               .layers = 40,
                               .heads = 16,
                               .kv_heads = 2,
                               .head_dim = 256,
                               .vocabulary = 248320,
                               .context = 32768});
  const FeedForward experts = read_experts(in, 512, 256, 8);
  if (!in.sizes("mlp_only_layers").empty()) in.fault("mlp_only_layers", "in this architecture every layer has experts");
  in.ignore({"intermediate_size"});
  add_qwen_hybrid(in, model, common, [&](std::int64_t) { return experts; });
}

void qwen3_5(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 12288,
                               .layers = 32,
                               .heads = 16,
                               .kv_heads = 4,
                               .head_dim = 256,
                               .vocabulary = 248320,
                               .context = 32768});
  const FeedForward dense = common.feed_forward();
  in.ignore({"mlp_only_layers"});
  add_qwen_hybrid(in, model, common, [&](std::int64_t) { return dense; });
}

/// Lightning attention, and softmax attention where attn_type_list has a one.
void minimax(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model, {.hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8, .context = 131072});
  common.feed_forward().experts = in.size("num_local_experts", 8);
  common.feed_forward().experts_per_token = in.size("num_experts_per_tok", 2);
  common.feed_forward().shared_width = in.count("shared_intermediate_size", 0);
  check_experts(in, common.feed_forward(), "num_experts_per_tok");
  const Attention& a = common.attention();
  StateSpace s;
  s.kind = StateSpace::Kind::lightning;
  s.heads = s.key_heads = a.heads;
  s.key_dim = a.head_dim;
  s.inner = a.heads * a.head_dim;
  const auto types = read_layer_types(in, common.layers);
  const auto list = in.sizes("attn_type_list");
  if (!list.empty() && static_cast<std::int64_t>(list.size()) != common.layers)
    return in.fault("attn_type_list", fmt::format("lists {} layers of {}", list.size(), common.layers));
  in.ignore({"block_size", "rotary_dim", "postnorm", "shared_moe_mode", "full_attn_alpha_factor",
             "linear_attn_alpha_factor", "mlp_alpha_factor", "full_attn_beta_factor", "linear_attn_beta_factor",
             "mlp_beta_factor", "sliding_window", "layernorm_mlp_alpha", "layernorm_mlp_beta"});
  for (std::int64_t i = 0; i < common.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool full = !list.empty() ? list[at] == 1 : !types.empty() ? types[at] == "full_attention" : i % 2 == 1;
    Layer layer = common.layer;
    if (!full) {
      layer.attention.reset();
      layer.state_space = s;
    }
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> hybrid_families() {
  static constexpr Family families[] = {
      {"qwen3_next", "Qwen3NextForCausalLM", &qwen3_next},
      {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", &qwen3_5_moe},
      {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", &qwen3_5_moe},
      {"qwen3_5_text", "Qwen3_5ForCausalLM", &qwen3_5},
      {"qwen3_5", "Qwen3_5ForConditionalGeneration", &qwen3_5},
      {"minimax", "MiniMaxForCausalLM", &minimax},
      {"minimax_text_01", "MiniMaxText01ForCausalLM", &minimax},
      {"minimax_m1", "MiniMaxM1ForCausalLM", &minimax},
  };
  return families;
}

}  // namespace assay::model
