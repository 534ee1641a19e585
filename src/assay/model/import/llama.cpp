// Dense decoders with gated feed-forward blocks and rotary positions: llama and its relatives.
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

constexpr Norm layer_norm_without_bias{.scale = true, .bias = false, .mean = true};

// Whether layer `index` slides, when every period-th does not (or, for alternating, every other).
bool all_but_each(std::int64_t index, std::int64_t period) { return period <= 0 || (index + 1) % period != 0; }
bool none(std::int64_t, std::int64_t) { return false; }
bool all(std::int64_t, std::int64_t) { return true; }
bool from(std::int64_t index, std::int64_t first) { return index >= first; }

void llama(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  read_attention_bias(in, common.attention());
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  add_all(model, common);
}

void mistral(ConfigReader& in, Transformer& model) {
  const Common common = read_common(
      in, model, {.hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8, .context = 131072});
  const std::int64_t window = in.count("sliding_window", 4096);
  add_windowed(in, model, common, window, &all, 0);
}

/// Qwen 1.5 to 2.5: biases of queries, keys and values; windows above max_window_layers where they are switched on.
void add_qwen_layers(ConfigReader& in, Transformer& model, const Common& common) {
  const bool windows = in.flag("use_sliding_window", false);
  const std::int64_t first = in.count("max_window_layers", windows ? 28 : 0);
  std::int64_t window = in.count("sliding_window", windows ? 4096 : 0);
  if (!windows) window = 0;
  add_windowed(in, model, common, window, windows ? &from : &none, first);
}

void qwen2(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 22016,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 32,
                               .vocabulary = 151936,
                               .context = 32768});
  set_bias(common.attention(), true, false);
  add_qwen_layers(in, model, common);
}

void qwen3(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 22016,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 32,
                               .head_dim = 128,
                               .vocabulary = 151936,
                               .context = 32768});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::per_head;
  add_qwen_layers(in, model, common);
}

void gemma(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 3072,
                               .intermediate = 24576,
                               .layers = 28,
                               .heads = 16,
                               .kv_heads = 16,
                               .head_dim = 256,
                               .vocabulary = 256000,
                               .context = 8192,
                               .tied = true});
  read_attention_bias(in, common.attention());
  add_all(model, common);
}

Common read_gemma2(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2304,
                               .intermediate = 9216,
                               .layers = 26,
                               .heads = 8,
                               .kv_heads = 4,
                               .head_dim = 256,
                               .vocabulary = 256000,
                               .context = 8192,
                               .tied = true});
  read_attention_bias(in, common.attention());
  return common;
}

void gemma2(ConfigReader& in, Transformer& model) {
  Common common = read_gemma2(in, model);
  common.layer.norms = 4;
  in.ignore({"sliding_window_size"});
  add_windowed(in, model, common, in.count("sliding_window", 4096), &all_but_each, 2);
}

/// A Gemma 2 without norms after its blocks.
void vaultgemma(ConfigReader& in, Transformer& model) {
  const Common common = read_gemma2(in, model);
  add_windowed(in, model, common, in.count("sliding_window", 4096), &all_but_each, 2);
}

void gemma3(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2304,
                               .intermediate = 9216,
                               .layers = 26,
                               .heads = 8,
                               .kv_heads = 4,
                               .head_dim = 256,
                               .vocabulary = 262208,
                               .context = 131072,
                               .tied = true});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::per_head;
  common.layer.norms = 4;
  std::int64_t window = in.count("sliding_window", 4096);
  if (in.has("use_bidirectional_attention") && in.flag("use_bidirectional_attention", false)) {
    common.attention().causal = false;  // EmbeddingGemma: half of the window on either side
    if (window > 0) window = window / 2 * 2 + 1;
  }
  const std::int64_t period = in.has("layer_types")
                                  ? in.count({"sliding_window_pattern", "_sliding_window_pattern"}, 0)
                                  : in.count({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  add_windowed(in, model, common, window, &all_but_each, period);
}

void phi3(ConfigReader& in, Transformer& model) {
  const Common common = read_common(
      in, model,
      {.hidden = 3072, .intermediate = 8192, .layers = 32, .heads = 32, .vocabulary = 32064, .context = 4096});
  const std::int64_t window = in.count("sliding_window", 0);
  in.ignore({"original_max_position_embeddings"});
  add_windowed(in, model, common, window, &all, 0);
}

/// Phi 3 and 4 for images and sound: the language model without its towers and adapters.
void phi3_with_towers(ConfigReader& in, Transformer& model) {
  phi3(in, model);
  in.note("only the language model is read; encoders and LoRA adapters for images and sound are left out");
}

void olmo(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 50304});
  read_attention_bias(in, common.attention());
  model.norm = {.scale = false, .bias = false, .mean = true};
  add_all(model, common);
}

/// OLMo 2 and 3: norms after the blocks, and one over all queries and all keys.
void olmo2(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 50304});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::whole;
  add_all(model, common);
}

void olmo3(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 50304});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::whole;
  add_windowed(in, model, common, in.count("sliding_window", 4096), &all_but_each, 4);
}

/// Command R: one LayerNorm without bias feeds attention and feed-forward in parallel.
Common cohere_common(ConfigReader& in, Transformer& model, std::int64_t kv_heads) {
  Common common = read_common(in, model,
                              {.hidden = 8192,
                               .intermediate = 22528,
                               .layers = 40,
                               .heads = 64,
                               .kv_heads = kv_heads,
                               .vocabulary = 256000,
                               .context = 8192,
                               .tied = true});
  read_attention_bias(in, common.attention());
  model.norm = layer_norm_without_bias;
  common.layer.norms = 1;
  common.layer.parallel = true;
  return common;
}

void cohere(ConfigReader& in, Transformer& model) {
  Common common = cohere_common(in, model, 0);
  if (in.flag("use_qk_norm", false)) common.attention().qk_norm = Attention::QkNorm::whole;
  add_all(model, common);
}

void cohere2(ConfigReader& in, Transformer& model) {
  const Common common = cohere_common(in, model, 0);
  in.ignore({"layer_switch", "use_parallel_block", "use_parallel_embedding", "use_gated_activation"});
  const std::int64_t window = in.count("sliding_window", 4096);
  const std::int64_t period = in.has("layer_types")
                                  ? in.count("sliding_window_pattern", 0)
                                  : in.count({"sliding_window_pattern", "_sliding_window_pattern"}, 4);
  add_windowed(in, model, common, window, &all_but_each, period);
  turn_windows_only(model);
}

void starcoder2(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 3072,
                               .intermediate = 12288,
                               .layers = 30,
                               .heads = 24,
                               .kv_heads = 2,
                               .vocabulary = 49152,
                               .context = 4096,
                               .tied = true});
  const bool bias = in.flag("use_bias", true);
  set_bias(common.attention(), bias, bias);
  common.feed_forward().gated = false;
  common.feed_forward().up_bias = common.feed_forward().down_bias = bias;
  model.norm = layer_norm;
  add_windowed(in, model, common, in.count("sliding_window", 0), &all, 0);
}

void nemotron(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 6144, .intermediate = 24576, .layers = 32, .heads = 48, .vocabulary = 256000, .context = 4096});
  read_attention_bias(in, common.attention());
  common.feed_forward().gated = false;
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  model.norm = layer_norm;
  add_all(model, common);
}

/// Arcee: llama with one matrix up.
void arcee(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 2560, .intermediate = 18432, .layers = 32, .heads = 32, .vocabulary = 32000, .context = 4096});
  read_attention_bias(in, common.attention());
  common.feed_forward().gated = false;
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  add_all(model, common);
}

/// MiniCPM: llama with scaled residuals and, by its own code's default, a tied head.
void minicpm(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .tied = true});
  read_attention_bias(in, common.attention());
  in.ignore({"dim_model_base"});
  add_all(model, common);
}

/// Persimmon: biases throughout, norms of queries and keys, one matrix up.
void persimmon(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 4096, .intermediate = 16384, .layers = 36, .heads = 64, .vocabulary = 262144, .context = 16384});
  set_bias(common.attention(), true, true);
  if (in.flag("qk_layernorm", true)) {
    common.attention().qk_norm = Attention::QkNorm::per_head;
    common.attention().qk_norm_bias = true;
  }
  common.feed_forward().gated = false;
  common.feed_forward().up_bias = common.feed_forward().down_bias = true;
  model.norm = layer_norm;
  add_all(model, common);
}

void internlm(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 103168});
  const bool bias = in.flag("bias", true);
  set_bias(common.attention(), bias, bias);
  add_all(model, common);
}

void fill_glm(ConfigReader& in, Transformer& model, bool bias, int norms) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 13696,
                               .layers = 40,
                               .heads = 32,
                               .kv_heads = 2,
                               .head_dim = 128,
                               .vocabulary = 151552,
                               .context = 131072});
  set_bias(common.attention(), in.flag("attention_bias", bias), false);
  common.layer.norms = norms;
  add_all(model, common);
}

void glm4(ConfigReader& in, Transformer& model) { fill_glm(in, model, false, 4); }
void glm(ConfigReader& in, Transformer& model) { fill_glm(in, model, true, 2); }

void smollm3(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = 11008,
                               .layers = 36,
                               .heads = 16,
                               .kv_heads = 4,
                               .vocabulary = 128256,
                               .context = 32768,
                               .tied = true});
  read_attention_bias(in, common.attention());
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  in.ignore({"max_window_layers", "use_sliding_window", "layer_types"});
  const auto turning = read_turning(in, common.layers);
  for (std::int64_t i = 0; i < common.layers; ++i) {
    common.attention().rotary = turning[static_cast<std::size_t>(i)];
    model.decoder.add(common.layer);
  }
}

void seed_oss(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 27648,
                               .layers = 64,
                               .heads = 80,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .vocabulary = 155136,
                               .context = 524288});
  set_bias(common.attention(), in.flag("attention_bias", true), in.flag("attention_out_bias", false));
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  add_all(model, common);
}

}  // namespace

std::span<const Family> llama_families() {
  static constexpr Family families[] = {
      {"llama", "LlamaForCausalLM", &llama},
      {"llava_llama", "LlavaLlamaForCausalLM", &llama},
      {"llava_qwen", "LlavaQwenForCausalLM", &qwen2},
      {"granite", "GraniteForCausalLM", &llama},
      {"aquila", "AquilaForCausalLM", &llama},
      {"Yi", "YiForCausalLM", &llama},
      {"xverse", "XverseForCausalLM", &llama},
      {"arcee", "ArceeForCausalLM", &arcee},
      {"minicpm", "MiniCPMForCausalLM", &minicpm},
      {"persimmon", "PersimmonForCausalLM", &persimmon},
      {"mistral", "MistralForCausalLM", &mistral},
      {"qwen2", "Qwen2ForCausalLM", &qwen2},
      {"qwen2_vl", "Qwen2VLForConditionalGeneration", &qwen2},
      {"qwen2_vl_text", "", &qwen2},
      {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", &qwen2},
      {"qwen2_5_vl_text", "", &qwen2},
      {"qwen2_5_omni_text", "", &qwen2},
      {"qwen3", "Qwen3ForCausalLM", &qwen3},
      {"qwen3_vl_text", "", &qwen3},
      {"gemma", "GemmaForCausalLM", &gemma},
      {"gemma2", "Gemma2ForCausalLM", &gemma2},
      {"vaultgemma", "VaultGemmaForCausalLM", &vaultgemma},
      {"gemma3_text", "Gemma3ForCausalLM", &gemma3},
      {"gemma3", "Gemma3ForConditionalGeneration", &gemma3},
      {"phi3", "Phi3ForCausalLM", &phi3},
      {"phi3_v", "Phi3VForCausalLM", &phi3_with_towers},
      {"phi4mm", "Phi4MMForCausalLM", &phi3_with_towers},
      {"phi4_multimodal", "Phi4MultimodalForCausalLM", &phi3_with_towers},
      {"olmo", "OlmoForCausalLM", &olmo},
      {"olmo2", "Olmo2ForCausalLM", &olmo2},
      {"olmo3", "Olmo3ForCausalLM", &olmo3},
      {"cohere", "CohereForCausalLM", &cohere},
      {"cohere2", "Cohere2ForCausalLM", &cohere2},
      {"starcoder2", "Starcoder2ForCausalLM", &starcoder2},
      {"nemotron", "NemotronForCausalLM", &nemotron},
      {"internlm", "InternLMForCausalLM", &internlm},
      {"internlm2", "InternLM2ForCausalLM", &internlm},
      {"glm", "GlmForCausalLM", &glm},
      {"glm4", "Glm4ForCausalLM", &glm4},
      {"glm4v_text", "", &glm4},
      {"smollm3", "SmolLM3ForCausalLM", &smollm3},
      {"seed_oss", "SeedOssForCausalLM", &seed_oss},
  };
  return families;
}

}  // namespace assay::model
