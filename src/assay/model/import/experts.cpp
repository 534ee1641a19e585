// Mixtures of experts with ordinary attention.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

void mixtral(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model, {.hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8, .context = 131072});
  common.attention().window = in.count("sliding_window", 0);
  common.feed_forward().experts = in.size("num_local_experts", 8);
  common.feed_forward().experts_per_token = in.size("num_experts_per_tok", 2);
  check_experts(in, common.feed_forward(), "num_experts_per_tok");
  add_all(model, common);
}

/// Phi 3.5 MoE: LayerNorms with biases, and biases of attention and head where switched on.
void phimoe(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 6400,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 8,
                               .vocabulary = 32064,
                               .context = 131072});
  read_attention_bias(in, common.attention());
  common.attention().window = in.count("sliding_window", 0);
  model.head_bias = in.flag("lm_head_bias", false);
  model.norm = {.scale = true, .bias = true, .mean = true};
  common.feed_forward().experts = in.size("num_local_experts", 16);
  common.feed_forward().experts_per_token = in.size("num_experts_per_tok", 2);
  check_experts(in, common.feed_forward(), "num_experts_per_tok");
  add_all(model, common);
}

/// Which layers of a Qwen mixture have experts: each decoder_sparse_step-th that mlp_only_layers does not name.
void add_qwen_layers(ConfigReader& in, Transformer& model, const Common& common, const FeedForward& experts) {
  const std::int64_t step = in.size("decoder_sparse_step", 1);
  const auto dense = in.sizes("mlp_only_layers");
  in.ignore({"max_window_layers", "sliding_window"});
  if (in.flag("use_sliding_window", false))
    in.fault("use_sliding_window", "sliding windows are not supported for this architecture");
  add_mixed(model, common, experts, [&](std::int64_t i) {
    return experts.experts > 0 && (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  });
}

void qwen2_moe(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = 5632,
                               .layers = 24,
                               .heads = 16,
                               .kv_heads = 16,
                               .vocabulary = 151936,
                               .context = 32768});
  set_bias(common.attention(), in.flag("qkv_bias", true), false);
  FeedForward experts;
  experts.width = in.size("moe_intermediate_size", 1408);
  experts.shared_width = in.size("shared_expert_intermediate_size", 5632);
  experts.shared_gate = true;
  experts.experts = in.size("num_experts", 60);
  experts.experts_per_token = in.size("num_experts_per_tok", 4);
  check_experts(in, experts, "num_experts_per_tok");
  add_qwen_layers(in, model, common, experts);
}

void qwen3_moe(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = 6144,
                               .layers = 24,
                               .heads = 32,
                               .kv_heads = 4,
                               .vocabulary = 151936,
                               .context = 32768});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::per_head;
  FeedForward experts;
  experts.width = in.size("moe_intermediate_size", 768);
  experts.experts = in.size("num_experts", 128);
  experts.experts_per_token = in.size("num_experts_per_tok", 8);
  check_experts(in, experts, "num_experts_per_tok");
  add_qwen_layers(in, model, common, experts);
}

void olmoe(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 2048, .intermediate = 2048, .layers = 16, .heads = 16, .vocabulary = 50304, .context = 4096});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::whole;
  common.feed_forward().experts = in.size("num_experts", 64);
  common.feed_forward().experts_per_token = in.size("num_experts_per_tok", 8);
  check_experts(in, common.feed_forward(), "num_experts_per_tok");
  add_all(model, common);
}

/// GLM 4.5 to 4.7 and dots: leading dense layers, shared experts, corrections of the router.
void fill_glm4_moe(ConfigReader& in, Transformer& model, bool qk_norm) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 10944,
                               .layers = 46,
                               .heads = 96,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .vocabulary = 151552,
                               .context = 131072});
  set_bias(common.attention(), in.flag("attention_bias", false), false);
  if (qk_norm) common.attention().qk_norm = Attention::QkNorm::per_head;
  FeedForward experts;
  experts.width = in.size("moe_intermediate_size", 1408);
  experts.experts = in.size("n_routed_experts", 128);
  experts.experts_per_token = in.size("num_experts_per_tok", 8);
  experts.shared_width = in.count("n_shared_experts", 1) * experts.width;
  experts.router_correction = true;
  check_experts(in, experts, "num_experts_per_tok");
  const std::int64_t dense = in.count("first_k_dense_replace", 1);
  model.prediction_layers = in.count("num_nextn_predict_layers");
  add_mixed(model, common, experts, [&](std::int64_t i) { return i >= dense; });
}

void glm4_moe(ConfigReader& in, Transformer& model) { fill_glm4_moe(in, model, in.flag("use_qk_norm", false)); }

void dots1(ConfigReader& in, Transformer& model) {
  in.ignore({"max_window_layers"});
  if (in.has("sliding_window")) in.fault("sliding_window", "sliding windows are not supported for this architecture");
  if (in.has("moe_layer_freq") && in.size("moe_layer_freq") != 1)
    in.fault("moe_layer_freq", "in this architecture every layer after the dense ones has experts");
  fill_glm4_moe(in, model, true);
}

/// gpt-oss: every other layer sees a short window; learned sinks; biases everywhere, also in router and experts.
void gpt_oss(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2880,
                               .intermediate = 2880,
                               .layers = 36,
                               .heads = 64,
                               .kv_heads = 8,
                               .head_dim = 64,
                               .vocabulary = 201088,
                               .context = 131072});
  const bool bias = in.flag("attention_bias", true);
  set_bias(common.attention(), bias, bias);
  common.attention().sinks = true;
  FeedForward& experts = common.feed_forward();
  experts.experts = in.size("num_local_experts", 128);
  experts.experts_per_token = in.size("num_experts_per_tok", 4);
  in.ignore({"experts_per_token"});
  experts.up_bias = experts.down_bias = experts.router_bias = true;
  check_experts(in, experts, "num_experts_per_tok");
  add_windowed(
      in, model, common, in.size("sliding_window", 128),
      [](std::int64_t index, std::int64_t) { return index % 2 == 0; }, 0);
}

/// Llama 4: experts in each interleave_moe_layer_step-th layer, one shared expert; all layers but each fourth see only
/// their own chunk.
void llama4(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 5120,
                               .intermediate = 8192,
                               .layers = 48,
                               .heads = 40,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .vocabulary = 202048,
                               .context = 131072});
  read_attention_bias(in, common.attention());
  in.ignore(
      {"use_qk_norm", "attn_temperature_tuning", "floor_scale", "for_llm_compressor"});  // that norm has no parameters
  FeedForward experts = common.feed_forward();
  experts.shared_width = experts.width;
  experts.experts = in.size("num_local_experts", 16);
  experts.experts_per_token = in.size("num_experts_per_tok", 1);
  check_experts(in, experts, "num_experts_per_tok");
  common.feed_forward().width = in.size("intermediate_size_mlp", 16384);
  const std::int64_t step = in.size("interleave_moe_layer_step", 1);
  const bool listed = in.has("moe_layers");
  const auto sparse = in.sizes("moe_layers");
  const std::int64_t chunk = in.count("attention_chunk_size", 8192);
  const auto turning = read_turning(in, common.layers);
  const auto types = read_layer_types(in, common.layers);
  for (std::int64_t i = 0; i < common.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool has_experts = listed ? std::find(sparse.begin(), sparse.end(), i) != sparse.end() : (i + 1) % step == 0;
    const bool chunked = types.empty() ? turning[at] : types[at] == "chunked_attention";
    Layer layer = common.layer;
    if (has_experts) layer.feed_forward = experts;
    layer.attention->chunk = chunked ? chunk : 0;
    layer.attention->rotary = turning[at];
    model.decoder.add(layer);
  }
}

/// MiniMax M2: one norm over all queries and one over all keys, a correction of the router.
void minimax_m2(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 3072,
                               .intermediate = 1536,
                               .layers = 62,
                               .heads = 48,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .vocabulary = 200064,
                               .context = 196608});
  if (in.flag("use_qk_norm", true)) {
    const std::string type = in.text("qk_norm_type", "per_layer");
    common.attention().qk_norm = type == "per_layer" ? Attention::QkNorm::whole : Attention::QkNorm::per_head;
  }
  read_attention_bias(in, common.attention());
  FeedForward& experts = common.feed_forward();
  experts.experts = in.size({"num_local_experts"}, 256);
  experts.experts_per_token = in.size("num_experts_per_tok", 8);
  experts.shared_width = in.count("shared_intermediate_size", 0);
  experts.router_correction = in.flag("use_routing_bias", true);
  check_experts(in, experts, "num_experts_per_tok");
  if (in.flag("use_mtp", false)) model.prediction_layers = in.count("num_mtp_modules", 1);
  in.ignore({"num_mtp_modules", "mtp_transformer_layers", "attn_window_size", "sliding_window", "swa_rope_theta",
             "max_model_len", "mlp_intermediate_size", "attn_type_list", "layernorm_full_attention_beta",
             "layernorm_linear_attention_beta", "layernorm_mlp_beta"});
  if (in.has("attn_window_size") || in.has("sliding_window"))
    in.fault("attn_window_size", "sliding windows are not supported for this architecture");
  add_all(model, common);
}

void dbrx(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("d_model", 2048);
  model.vocabulary = in.size("vocab_size", 32000);
  model.max_context = in.count("max_seq_len", 2048);
  model.tied = in.flag("tie_word_embeddings", false);
  model.norm = {.scale = true, .bias = false, .mean = true};
  const std::int64_t layers = read_layers(in, {"n_layers"}, 24);
  Layer layer;
  Attention attention;
  attention.heads = in.size("n_heads", 16);
  attention.head_dim = attention.value_dim = read_head_dim(in, "head_dim", model.d_model, attention.heads);
  attention.kv_heads = 1;
  FeedForward experts;
  const Json empty;
  const Json* attention_config = in.object("attn_config");
  const Json* expert_config = in.object("ffn_config");
  ConfigReader inner(attention_config ? *attention_config : empty, in.file(), "attn_config.");
  attention.kv_heads = inner.size("kv_n_heads", 1);
  inner.check_unread();
  ConfigReader ffn(expert_config ? *expert_config : empty, in.file(), "ffn_config.");
  experts.width = ffn.size("ffn_hidden_size", 3584);
  experts.experts = ffn.size("moe_num_experts", 4);
  experts.experts_per_token = ffn.size("moe_top_k", 1);
  check_experts(ffn, experts, "moe_top_k");
  ffn.ignore({"hidden_size", "moe_normalize_expert_weights", "uniform_expert_assignment"});
  ffn.check_unread();
  in.take(inner);
  in.take(ffn);
  check_groups(in, attention.heads, attention.kv_heads);
  layer.attention = attention;
  layer.feed_forward = experts;
  for (std::int64_t i = 0; i < layers; ++i) model.decoder.add(layer);
}

/// Grok 1 and 2: norms before and after each block; in Grok 2 a dense block runs in parallel with the experts.
void grok(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 6144,
                               .intermediate = 32768,
                               .layers = 64,
                               .heads = 48,
                               .kv_heads = 8,
                               .vocabulary = 131072,
                               .context = 8192,
                               .tied = true});
  common.layer.norms = 4;
  const std::int64_t dense = common.feed_forward().width;
  if (in.has("moe_intermediate_size")) common.feed_forward().width = in.size("moe_intermediate_size");
  if (in.flag("residual_moe", false)) common.feed_forward().shared_width = dense;
  common.feed_forward().experts = in.size({"num_experts", "num_local_experts"}, 8);
  common.feed_forward().experts_per_token = in.size({"num_experts_per_tok", "num_selected_experts"}, 2);
  check_experts(in, common.feed_forward(), "num_experts_per_tok");
  in.ignore({"widening_factor", "max_attn_value"});
  add_all(model, common);
}

/// Arctic: a dense block as wide as the model, in parallel with the experts, which read the layer's input.
void arctic(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model, {.hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 0, .context = 4096});
  common.attention().window = in.count("sliding_window");
  FeedForward experts = common.feed_forward();
  experts.experts = in.size("num_local_experts", 8);
  experts.experts_per_token = in.size("num_experts_per_tok", 1);
  check_experts(in, experts, "num_experts_per_tok");
  const std::int64_t step = in.size("moe_layer_frequency", 2);
  const bool beside = in.flag("parallel_attn_mlp_res", false);
  if (beside) experts.shared_width = model.d_model;
  in.ignore({"moe_min_capacity", "moe_token_dropping", "moe_train_capacity_factor", "moe_eval_capacity_factor",
             "enable_expert_tensor_parallelism", "use_residual"});
  Layer sparse = common.layer;
  sparse.feed_forward = experts;
  sparse.norms = beside ? 3 : 2;
  for (std::int64_t i = 0; i < common.layers; ++i) model.decoder.add((i + 1) % step == 0 ? sparse : common.layer);
}

void granitemoe(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .context = 2048});
  read_attention_bias(in, common.attention());
  common.feed_forward().experts = in.size("num_local_experts", 8);
  common.feed_forward().experts_per_token = in.size("num_experts_per_tok", 2);
  common.feed_forward().shared_width = in.count("shared_intermediate_size", 0);
  check_experts(in, common.feed_forward(), "num_experts_per_tok");
  add_all(model, common);
}

}  // namespace

std::span<const Family> expert_families() {
  static constexpr Family families[] = {
      {"mixtral", "MixtralForCausalLM", &mixtral},
      {"phimoe", "PhimoeForCausalLM", &phimoe},
      {"qwen2_moe", "Qwen2MoeForCausalLM", &qwen2_moe},
      {"qwen3_moe", "Qwen3MoeForCausalLM", &qwen3_moe},
      {"qwen3_vl_moe_text", "", &qwen3_moe},
      {"qwen3_omni_moe_text", "", &qwen3_moe},
      {"olmoe", "OlmoeForCausalLM", &olmoe},
      {"glm4_moe", "Glm4MoeForCausalLM", &glm4_moe},
      {"glm4v_moe_text", "", &glm4_moe},
      {"dots1", "Dots1ForCausalLM", &dots1},
      {"gpt_oss", "GptOssForCausalLM", &gpt_oss},
      {"llama4_text", "Llama4ForCausalLM", &llama4},
      {"llama4", "Llama4ForConditionalGeneration", &llama4},
      {"minimax_m2", "MiniMaxM2ForCausalLM", &minimax_m2},
      {"dbrx", "DbrxForCausalLM", &dbrx},
      {"grok-1", "Grok1ModelForCausalLM", &grok},
      {"grok-1", "Grok1ForCausalLM", &grok},
      {"arctic", "ArcticForCausalLM", &arctic},
      {"granitemoe", "GraniteMoeForCausalLM", &granitemoe},
      {"granitemoeshared", "GraniteMoeSharedForCausalLM", &granitemoe},
  };
  return families;
}

}  // namespace assay::model
