// DeepSeek and its relatives: shared experts after leading dense layers, and multi-head latent attention.
#include <fmt/format.h>

#include <algorithm>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

struct LatentDefaults {
  CommonDefaults common;
  std::int64_t expert_width = 1407, experts = 0, experts_per_token = 0, shared = 0, dense = 0;
  std::int64_t q_rank = 1536;
  std::int64_t groups = 1, groups_per_token = 1;
  bool router_correction = false;
  std::int64_t index_heads = 0;  ///< of the light attention that picks keys (DeepSeek V3.2)
  bool whole_values = false;     ///< the heads determine the width of values (MiniCPM 3)
};

/// Groups of experts: a token first picks some groups, which limits the nodes it is sent to.
void read_groups(ConfigReader& in, FeedForward& experts, const LatentDefaults& defaults) {
  if (experts.experts == 0) return;
  const std::int64_t groups = std::max<std::int64_t>(1, in.count("n_group", defaults.groups)),
                     picked = std::max<std::int64_t>(1, in.count("topk_group", defaults.groups_per_token));
  if (experts.experts % groups != 0)
    return in.fault("n_group", fmt::format("must divide the {} experts, got {}", experts.experts, groups));
  if (picked > groups)
    return in.fault("topk_group", fmt::format("must be at most n_group = {}, got {}", groups, picked));
  experts.expert_groups = groups;
  experts.groups_per_token = picked;
}

/// Experts after the leading dense layers.
void add_expert_layers(ConfigReader& in, Transformer& model, const Common& common, const LatentDefaults& defaults) {
  FeedForward experts;
  experts.width = in.size("moe_intermediate_size", defaults.expert_width);
  experts.experts = in.count("n_routed_experts", defaults.experts);
  experts.experts_per_token = in.count("num_experts_per_tok", defaults.experts_per_token);
  experts.shared_width = in.count("n_shared_experts", defaults.shared) * experts.width;
  experts.router_correction = defaults.router_correction && in.text("topk_method", "noaux_tc") == "noaux_tc";
  check_experts(in, experts, "num_experts_per_tok");
  read_groups(in, experts, defaults);
  const std::int64_t dense = in.count("first_k_dense_replace", defaults.dense);
  // One number for all layers, or a one for each that has experts.
  const std::vector<std::int64_t> listed =
      in.is_list("moe_layer_freq") ? in.sizes("moe_layer_freq") : std::vector<std::int64_t>{};
  const std::int64_t step = listed.empty() ? in.size("moe_layer_freq", 1) : 1;
  if (!listed.empty() && static_cast<std::int64_t>(listed.size()) != common.layers)
    return in.fault("moe_layer_freq", fmt::format("lists {} layers of {}", listed.size(), common.layers));
  model.prediction_layers = in.count("num_nextn_predict_layers");
  in.ignore({"topk_method"});
  add_mixed(model, common, experts, [&](std::int64_t i) {
    return experts.experts > 0 && i >= dense && i % step == 0 &&
           (listed.empty() || listed[static_cast<std::size_t>(i)] != 0);
  });
}

void deepseek(ConfigReader& in, Transformer& model) {
  const LatentDefaults defaults{
      .common = {
          .hidden = 4096, .intermediate = 11008, .layers = 30, .heads = 32, .kv_heads = 32, .vocabulary = 102400}};
  Common common = read_common(in, model, defaults.common);
  read_attention_bias(in, common.attention());
  add_expert_layers(in, model, common, defaults);
}

void read_outer(ConfigReader& in, Transformer& model, const CommonDefaults& defaults) {
  model.d_model = in.size("hidden_size", defaults.hidden);
  model.vocabulary = in.size("vocab_size", defaults.vocabulary);
  model.max_context = in.count("max_position_embeddings", defaults.context);
  model.tied = in.flag("tie_word_embeddings", defaults.tied);
}

/// Queries, keys and values through low ranks.
Attention read_latent_attention(ConfigReader& in, const Transformer& model, const LatentDefaults& defaults) {
  Attention attention;
  attention.heads = attention.kv_heads = in.size("num_attention_heads", defaults.common.heads);
  attention.kv_rank = in.size("kv_lora_rank", 512);
  attention.q_rank = in.count("q_lora_rank", defaults.q_rank);
  attention.rope_dim = in.size("qk_rope_head_dim", 64);
  attention.value_dim = defaults.whole_values ? read_head_dim(in, "v_head_dim", model.d_model, attention.heads)
                                              : in.size("v_head_dim", 128);
  attention.head_dim = in.size("qk_nope_head_dim", 128) + attention.rope_dim;
  in.ignore({"head_dim", "qk_head_dim", "num_key_value_heads"});
  return attention;
}

void latent(ConfigReader& in, Transformer& model, const LatentDefaults& defaults) {
  const CommonDefaults& shared = defaults.common;
  Common common;
  read_outer(in, model, shared);
  common.layers = read_layers(in, {"num_hidden_layers"}, shared.layers);
  Attention attention = read_latent_attention(in, model, defaults);
  if (defaults.index_heads > 0) {
    read_index(in, attention, defaults.index_heads, 2048);
    in.ignore({"indexer_rope_interleave"});
  }
  read_attention_bias(in, attention);
  common.layer.attention = attention;
  common.layer.feed_forward = FeedForward{.width = in.size("intermediate_size", shared.intermediate)};
  add_expert_layers(in, model, common, defaults);
}

void deepseek_v2(ConfigReader& in, Transformer& model) {
  if (in.has("use_mla") && !in.flag("use_mla", true)) {  // the language model of DeepSeek OCR
    in.ignore({"kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"});
    return deepseek(in, model);
  }
  latent(in, model,
         {.common = {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 102400}});
}

const LatentDefaults v3_defaults{
    .common =
        {.hidden = 7168, .intermediate = 18432, .layers = 61, .heads = 128, .vocabulary = 129280, .context = 4096},
    .expert_width = 2048,
    .experts = 256,
    .experts_per_token = 8,
    .shared = 1,
    .dense = 3,
    .groups = 8,
    .groups_per_token = 4,
    .router_correction = true};

void deepseek_v3(ConfigReader& in, Transformer& model) { latent(in, model, v3_defaults); }

void deepseek_v32(ConfigReader& in, Transformer& model) {
  LatentDefaults defaults = v3_defaults;
  defaults.index_heads = 64;
  latent(in, model, defaults);
}

/// GLM 5: the same with other sizes.
void glm_moe_dsa(ConfigReader& in, Transformer& model) {
  latent(
      in, model,
      {.common =
           {.hidden = 6144, .intermediate = 12288, .layers = 78, .heads = 64, .vocabulary = 154880, .context = 202752},
       .expert_width = 2048,
       .experts = 256,
       .experts_per_token = 8,
       .shared = 1,
       .dense = 3,
       .q_rank = 2048,
       .router_correction = true,
       .index_heads = 32});
}

void minicpm3(ConfigReader& in, Transformer& model) {
  in.ignore({"dim_model_base"});
  latent(in, model,
         {.common = {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .tied = true},
          .q_rank = 768,
          .whole_values = true});
}

void kimi_k2(ConfigReader& in, Transformer& model) { deepseek_v3(in, model); }

void glm4_moe_lite(ConfigReader& in, Transformer& model) {
  latent(
      in, model,
      {.common =
           {.hidden = 2048, .intermediate = 10240, .layers = 47, .heads = 20, .vocabulary = 154880, .context = 202752},
       .expert_width = 1536,
       .experts = 64,
       .experts_per_token = 4,
       .shared = 1,
       .dense = 1,
       .q_rank = 768,
       .router_correction = true});
}

/// LongCat: layers with two attentions and two dense blocks; experts run in parallel with the first block on the same
/// input, and some of them return a token unchanged. Their result is added one block later than here.
void longcat_flash(ConfigReader& in, Transformer& model) {
  const LatentDefaults defaults{
      .common = {
          .hidden = 6144, .intermediate = 12288, .layers = 28, .heads = 64, .vocabulary = 131072, .context = 131072}};
  read_outer(in, model, defaults.common);
  const std::int64_t layers = read_layers(in, {"num_layers", "num_hidden_layers"}, defaults.common.layers);
  Layer first;
  first.attention = read_latent_attention(in, model, defaults);
  read_attention_bias(in, *first.attention);
  first.feed_forward =
      FeedForward{.width = in.size({"ffn_hidden_size", "intermediate_size"}, defaults.common.intermediate)};
  Layer second = first;
  FeedForward experts{.width = in.size({"expert_ffn_hidden_size", "moe_intermediate_size"}, 2048)};
  experts.shared_width = first.feed_forward->width;
  experts.experts = in.size("n_routed_experts", 512);
  experts.zero_experts = in.count("zero_expert_num", 256);
  experts.router_correction = true;
  experts.router_bias = in.flag("router_bias", false);
  // Some of a token's picks are not experts: the same share as among all choices.
  const std::int64_t picks = in.size({"moe_topk", "num_experts_per_tok"}, 12);
  const std::int64_t all = experts.experts + experts.zero_experts;
  experts.experts_per_token = std::max<std::int64_t>((2 * picks * experts.experts + all) / (2 * all), 1);
  if (experts.zero_experts > 0)
    in.note(fmt::format("of the {} experts that a token picks among {}, {} on average have weights", picks, all,
                        experts.experts_per_token));
  check_experts(in, experts, "moe_topk");
  model.prediction_layers = in.count("num_nextn_predict_layers");
  in.ignore({"mla_scale_q_lora", "mla_scale_kv_lora"});
  first.feed_forward = experts;
  for (std::int64_t i = 0; i < layers; ++i) model.decoder.add(first), model.decoder.add(second);
}

}  // namespace

std::span<const Family> latent_families() {
  static constexpr Family families[] = {
      {"deepseek", "DeepseekForCausalLM", &deepseek},
      {"deepseek_v2", "DeepseekV2ForCausalLM", &deepseek_v2},
      {"deepseek_v3", "DeepseekV3ForCausalLM", &deepseek_v3},
      {"deepseek_v32", "DeepseekV32ForCausalLM", &deepseek_v32},
      {"glm_moe_dsa", "GlmMoeDsaForCausalLM", &glm_moe_dsa},
      {"kimi_k2", "KimiK2ForCausalLM", &kimi_k2},
      {"minicpm3", "MiniCPM3ForCausalLM", &minicpm3},
      {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", &glm4_moe_lite},
      {"longcat_flash", "LongcatFlashForCausalLM", &longcat_flash},
  };
  return families;
}

}  // namespace assay::model
