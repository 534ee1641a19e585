// Decoders with the layers of other families but their own names for the configuration keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// Qwen 1: intermediate_size counts gate and up together.
void qwen(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = -1, .layers = 32, .heads = 32, .vocabulary = 151936});
  common.feed_forward().width = std::max<std::int64_t>(in.size("intermediate_size", 22016) / 2, 1);
  Attention& attention = common.attention();
  attention.head_dim = attention.value_dim = in.derived("kv_channels", attention.head_dim, "width / heads");
  set_bias(attention, true, !in.flag("no_bias", true));
  add_all(model, common);
}

void baichuan(ConfigReader& in, Transformer& model) {
  Common common =
      read_common(in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 125696});
  common.attention().rotary = in.has("max_position_embeddings");  // the 13 B models have ALiBi and no such field
  add_all(model, common);
}

/// EXAONE 3: a llama.
void exaone(ConfigReader& in, Transformer& model) {
  Common common;
  model.d_model = in.size("hidden_size", 2048);
  model.vocabulary = in.size("vocab_size", 102400);
  model.max_context = in.count("max_position_embeddings", 2048);
  model.tied = in.flag("tie_word_embeddings", true);
  common.layers = read_layers(in, {"num_layers", "num_hidden_layers"}, 32);
  Attention attention{.heads = in.size("num_attention_heads", 32)};
  attention.kv_heads = in.derived("num_key_value_heads", attention.heads, "the number of heads");
  check_groups(in, attention.heads, attention.kv_heads);
  attention.head_dim = attention.value_dim = read_head_dim(in, "head_dim", model.d_model, attention.heads);
  common.layer.attention = attention;
  common.layer.feed_forward = FeedForward{.width = in.derived("intermediate_size", 4 * model.d_model, "4 x width")};
  add_all(model, common);
}

/// EXAONE 4: norms after the blocks and of each head; windows by a pattern of L and G, or in all but each n-th layer.
void exaone4(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 16384,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 32,
                               .vocabulary = 102400,
                               .context = 2048});
  common.attention().qk_norm = Attention::QkNorm::per_head;
  const std::int64_t window = in.count("sliding_window", 4096);
  std::int64_t period = 4;
  if (in.is_text("sliding_window_pattern")) {
    const std::string pattern = in.text("sliding_window_pattern", "LLLG");
    period = std::ssize(pattern);
    if (pattern.find('G') + 1 != pattern.size() || pattern.find_first_not_of("LG") != std::string::npos)
      in.fault("sliding_window_pattern", fmt::format("must be L... followed by one G, got {}", in_quotes(pattern)));
  } else {
    period = in.count("sliding_window_pattern", 4);
  }
  add_windowed(
      in, model, common, window,
      [](std::int64_t index, std::int64_t every) { return every <= 0 || (index + 1) % every != 0; }, period);
  turn_windows_only(model);
}

/// GLM 4 and its forerunners as their own code writes them.
void chatglm(ConfigReader& in, Transformer& model) {
  Common common;
  model.d_model = in.size("hidden_size", 4096);
  model.vocabulary = in.has("padded_vocab_size") ? in.size("padded_vocab_size") : in.size("vocab_size", 65024);
  in.ignore({"vocab_size"});
  model.max_context = in.count("seq_length", 2048);
  model.tied = in.flag("tie_word_embeddings", false);
  model.final_norm = in.flag("post_layer_norm", true);
  if (!in.flag("rmsnorm", true)) model.norm = layer_norm;
  common.layers = read_layers(in, {"num_layers"}, 28);
  if (in.has("num_hidden_layers") && in.size("num_hidden_layers") != common.layers)
    in.fault("num_hidden_layers", fmt::format("contradicts num_layers, which is {}", common.layers));
  const bool bias = in.flag("add_bias_linear", false);
  Attention attention{.heads = in.size("num_attention_heads", 32)};
  attention.head_dim = attention.value_dim = read_head_dim(in, "kv_channels", model.d_model, attention.heads);
  const bool grouped = in.flag("multi_query_attention", false);
  const std::int64_t groups = in.size("multi_query_group_num", 1);
  attention.kv_heads = grouped ? groups : attention.heads;
  check_groups(in, attention.heads, attention.kv_heads);
  set_bias(attention, bias || in.flag("add_qkv_bias", false), bias);
  common.layer.attention = attention;
  common.layer.feed_forward =
      FeedForward{.width = in.size("ffn_hidden_size", 13696), .up_bias = bias, .down_bias = bias};
  in.ignore({"apply_query_key_layer_scaling", "vocab_size"});
  add_all(model, common);
}

/// OLMo 1 as its own code writes it: the hidden width counts gate and up together.
void hf_olmo(ConfigReader& in, Transformer& model) {
  Common common;
  model.d_model = in.size("d_model", 768);
  model.vocabulary = in.has("embedding_size") ? in.size("embedding_size") : in.size("vocab_size", 50304);
  model.max_context = in.count("max_sequence_length", 1024);
  model.tied = in.flag("weight_tying", true);
  const bool affine = in.flag("layer_norm_with_affine", true), bias = in.flag("include_bias", true);
  model.norm = {.scale = affine, .bias = affine && in.flag("bias_for_layer_norm", bias), .mean = true};
  if (in.text("layer_norm_type", "default") == "rms") model.norm.mean = false;
  common.layers = read_layers(in, {"n_layers"}, 12);
  Attention attention{.heads = in.size("n_heads", 12)};
  const bool one = in.has("multi_query_attention") && in.flag("multi_query_attention", false);
  attention.kv_heads = in.derived("n_kv_heads", one ? 1 : attention.heads, one ? "multi-query" : "the number of heads");
  check_groups(in, attention.heads, attention.kv_heads);
  attention.head_dim = attention.value_dim = read_head_dim(in, "head_dim", model.d_model, attention.heads);
  attention.rotary = in.flag("rope", false);
  if (!attention.rotary && !in.flag("alibi", false)) model.learned_positions = model.max_context;
  if (in.flag("attention_layer_norm", false)) attention.qk_norm = Attention::QkNorm::whole;
  set_bias(attention, bias, bias);
  const std::string activation = in.text("activation_type", "swiglu");
  const bool gated = activation == "swiglu";
  if (!gated && activation != "gelu" && activation != "relu")
    in.fault("activation_type", fmt::format("unknown activation {}", in_quotes(activation)), "swiglu, gelu or relu");
  const auto ratio = static_cast<std::int64_t>(in.factor("mlp_ratio", 4) * static_cast<double>(model.d_model));
  const std::int64_t hidden = in.derived("mlp_hidden_size", std::max<std::int64_t>(ratio, 1), "mlp_ratio x d_model");
  common.layer.attention = attention;
  common.layer.feed_forward = FeedForward{.width = gated ? std::max<std::int64_t>(hidden / 2, 1) : hidden,
                                          .gated = gated,
                                          .up_bias = bias,
                                          .down_bias = bias};
  if (const std::string type = in.text("block_type", "sequential"); type != "sequential")
    in.fault("block_type", fmt::format("unknown block type {}", in_quotes(type)), "sequential");
  in.ignore({"block_group_size", "flash_attention", "scale_logits", "init_device", "vocab_size"});
  add_all(model, common);
}

/// Phi 3 small: LayerNorms and biases around gated blocks. Its sparse layers have the weights of dense ones.
void phi3small(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = -1,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 8,
                               .vocabulary = 100352,
                               .context = 8192,
                               .tied = true});
  set_bias(common.attention(), true, true);
  common.layer.feed_forward =
      FeedForward{.width = in.size("ff_intermediate_size", 14336), .up_bias = true, .down_bias = true};
  model.norm = layer_norm;
  const std::int64_t dense = in.count("dense_attention_every_n_layers", 2);
  if (dense != 1) in.note("block-sparse attention (blocksparse_*) is counted as dense: an upper bound");
  in.ignore({"blocksparse_block_size", "blocksparse_num_local_blocks", "blocksparse_homo_head_pattern",
             "blocksparse_vert_stride", "blocksparse_triton_kernel_block_size", "pad_sequence_to_multiple_of_64",
             "mup_use_scaling", "mup_width_multiplier", "gegelu_pad_to_256"});
  add_all(model, common);
}

/// The effect of one entry of block_configs on a layer.
Layer searched_layer(ConfigReader& in, const Json& entry, std::size_t index, Attention attention, std::int64_t width) {
  const Json nothing;
  const std::string place = fmt::format("block_configs[{}].", index);
  ConfigReader block(entry, in.file(), place);
  const Json *mixer = block.object("attention"), *dense = block.object("ffn");
  ConfigReader a(mixer ? *mixer : nothing, in.file(), place + "attention.");
  ConfigReader f(dense ? *dense : nothing, in.file(), place + "ffn.");
  const auto is = [](ConfigReader& part, std::string_view key) { return part.has(key) && part.flag(key, false); };
  Layer layer;
  layer.norms = 0;
  for (ConfigReader* part : {&a, &f})
    if (is(*part, "replace_with_linear"))
      part->fault("replace_with_linear", "a linear layer in place of a block is not supported");
  if (!is(a, "no_op")) {
    const std::int64_t shared = a.size("n_heads_in_group", 8);
    if (attention.heads % shared != 0)
      a.fault("n_heads_in_group", fmt::format("must divide the {} heads, got {}", attention.heads, shared));
    attention.kv_heads = std::max<std::int64_t>(attention.heads / shared, 1);
    attention.window = a.count("window_length");
    layer.attention = attention;
    ++layer.norms;
  }
  if (!is(f, "no_op")) {
    // Two thirds of the multiple, in whole 256: the rule of llama's own code.
    const double wanted = std::floor(2.0 * f.factor("ffn_mult", 1) * static_cast<double>(width) / 3.0);
    layer.feed_forward = FeedForward{.width = static_cast<std::int64_t>(std::ceil(wanted / 256.0)) * 256};
    ++layer.norms;
  }
  in.take(block);
  in.take(a);
  in.take(f);
  return layer;
}

/// Models found by a search. DeciLM: each layer has its own number of key heads; Nemotron Super and Ultra: its own
/// width too, or it lacks a block.
void deci(ConfigReader& in, Transformer& model) {
  in.ignore({"num_key_value_heads"});
  model.d_model = in.size("hidden_size", 4096);
  model.vocabulary = in.size("vocab_size", 32000);
  model.max_context = in.count("max_position_embeddings", 8192);
  model.tied = in.flag("tie_word_embeddings", false);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 32);
  Attention attention{.heads = in.size("num_attention_heads", 32)};
  attention.head_dim = attention.value_dim = read_head_dim(in, "head_dim", model.d_model, attention.heads);
  if (in.has("block_configs")) {
    in.ignore({"intermediate_size"});
    const std::vector<const Json*> blocks = in.objects("block_configs");
    if (static_cast<std::int64_t>(blocks.size()) != layers)
      return in.fault("block_configs", fmt::format("lists {} layers, num_hidden_layers is {}", blocks.size(), layers));
    for (std::size_t i = 0; i < blocks.size() && !in.failed(); ++i)
      model.decoder.add(searched_layer(in, *blocks[i], i, attention, model.d_model));
    return;
  }
  const FeedForward feed_forward{.width = in.size("intermediate_size", 14336)};
  const auto kv_heads = in.sizes("num_key_value_heads_per_layer", 1);
  if (static_cast<std::int64_t>(kv_heads.size()) != layers)
    return in.fault("num_key_value_heads_per_layer", fmt::format("lists {} layers of {}", kv_heads.size(), layers));
  for (std::int64_t heads : kv_heads) {
    attention.kv_heads = heads;
    check_groups(in, attention.heads, heads);
    Layer layer;
    layer.attention = attention;
    layer.feed_forward = feed_forward;
    model.decoder.add(layer);
  }
}

/// Ministral 3: windows only where they are given.
void ministral3(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 14336,
                               .layers = 34,
                               .heads = 32,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .vocabulary = 131072,
                               .context = 262144});
  common.attention().window = in.count("sliding_window");
  add_all(model, common);
}

/// MiMo: a Qwen 2 with modules that predict further tokens.
void mimo(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 11008,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 32,
                               .vocabulary = 151936,
                               .context = 32768});
  set_bias(common.attention(), in.flag("attention_bias", true), false);
  if (in.flag("use_sliding_window", false))
    in.fault("use_sliding_window", "sliding windows are not supported for this architecture");
  in.ignore({"sliding_window", "max_window_layers"});
  model.prediction_layers = in.count("num_nextn_predict_layers");
  add_all(model, common);
}

/// ERNIE 4.5, dense or with experts from one layer to another.
Common ernie(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2560,
                               .intermediate = 12288,
                               .layers = 28,
                               .heads = 20,
                               .kv_heads = 4,
                               .vocabulary = 103424,
                               .context = 131072,
                               .tied = true});
  const bool bias = in.flag("use_bias", false);
  set_bias(common.attention(), bias, bias);
  common.feed_forward().up_bias = common.feed_forward().down_bias = bias;
  return common;
}

void ernie4_5(ConfigReader& in, Transformer& model) { add_all(model, ernie(in, model)); }

void ernie4_5_moe(ConfigReader& in, Transformer& model) {
  const Common common = ernie(in, model);
  FeedForward experts = common.layer.feed_forward.value_or(FeedForward{});
  experts.width = in.size("moe_intermediate_size", 1536);
  experts.experts = in.size("moe_num_experts", 64);
  experts.experts_per_token = in.size("moe_k", 6);
  experts.shared_width = in.count("moe_num_shared_experts", 2) * experts.width;
  experts.router_correction = !in.has("moe_use_aux_free") || in.flag("moe_use_aux_free", true);
  check_experts(in, experts, "moe_k");
  const std::int64_t first = in.count("moe_layer_start_index", 1), step = in.size("moe_layer_interval", 1);
  // -1 stands for the last layer.
  const bool to_the_end = !in.has("moe_layer_end_index") || in.is_negative("moe_layer_end_index");
  const std::int64_t last = to_the_end ? common.layers - 1 : in.count("moe_layer_end_index", 0);
  model.prediction_layers = in.count("num_nextn_predict_layers");
  in.ignore({"moe_capacity", "moe_layer_end_index"});
  add_mixed(model, common, experts, [&](std::int64_t i) { return (i + 1) % step == 0 && i >= first && i <= last; });
}

/// Ling and Ring: shared experts after leading dense layers; the second generation has norms of queries and keys
/// and a correction of the router.
void bailing(ConfigReader& in, Transformer& model, bool second) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = 5120,
                               .layers = 20,
                               .heads = 16,
                               .kv_heads = 4,
                               .vocabulary = 157184,
                               .context = 32768});
  const bool bias = in.flag("use_bias", false);
  set_bias(common.attention(), in.flag("use_qkv_bias", false), bias);
  if (second && in.flag("use_qk_norm", true)) common.attention().qk_norm = Attention::QkNorm::per_head;
  FeedForward experts;
  experts.width = in.size("moe_intermediate_size", 512);
  experts.experts = in.size("num_experts", 256);
  experts.experts_per_token = in.size("num_experts_per_tok", 8);
  const std::int64_t shared = in.count("num_shared_experts", 1);
  experts.shared_width =
      shared * in.derived("moe_shared_expert_intermediate_size", experts.width, "moe_intermediate_size");
  experts.router_correction = second && in.flag("moe_router_enable_expert_bias", true);
  check_experts(in, experts, "num_experts_per_tok");
  const std::int64_t dense = in.count("first_k_dense_replace", 0);
  model.prediction_layers = in.count("num_nextn_predict_layers");
  in.ignore({"multi_gate", "norm_head", "norm_softmax", "moe_router_enable_expert_bias", "mtp_loss_scaling_factor",
             "n_group", "topk_group"});
  if (in.has("multi_gate") && in.flag("multi_gate", false))
    in.fault("multi_gate", "one gate per kind of token is not supported");
  add_mixed(model, common, experts, [&](std::int64_t i) { return i >= dense; });
}

void bailing_moe(ConfigReader& in, Transformer& model) { bailing(in, model, false); }
void bailing_moe_v2(ConfigReader& in, Transformer& model) { bailing(in, model, true); }

/// One number for all layers, or the same one for each of them.
std::int64_t same_for_all(ConfigReader& in, std::string_view key, std::int64_t fallback) {
  if (!in.is_list(key)) return in.size(key, fallback);
  const auto listed = in.sizes(key, 1);
  if (listed.empty() || std::count(listed.begin(), listed.end(), listed.front()) != std::ssize(listed)) {
    in.fault(key, "must be the same for all layers");
    return fallback;
  }
  return listed.front();
}

Common hunyuan(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 290943, .context = 2048});
  read_attention_bias(in, common.attention());
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  if (in.flag("use_qk_norm", true)) common.attention().qk_norm = Attention::QkNorm::per_head;
  if (in.has("use_cla") && in.flag("use_cla", false))
    in.fault("use_cla", "keys shared between layers are not supported for this architecture");
  in.ignore({"attention_head_dim", "cla_share_factor", "use_mixed_mlp_moe", "num_media_embeds", "use_rotary_pos_emb",
             "org_vocab_size"});
  return common;
}

void hunyuan_dense(ConfigReader& in, Transformer& model) {
  add_all(model, hunyuan(in, model));
  if (in.has("num_experts") && in.size("num_experts") > 1)
    in.fault("num_experts", "is more than one, but this architecture is dense");
  in.ignore({"num_shared_expert", "moe_topk"});  // of the one
}

void hunyuan_moe(ConfigReader& in, Transformer& model) {
  Common common = hunyuan(in, model);
  FeedForward& experts = common.feed_forward();
  const std::int64_t width = experts.width;
  experts.width = same_for_all(in, "moe_intermediate_size", width);
  experts.experts = same_for_all(in, "num_experts", 64);
  experts.experts_per_token = same_for_all(in, "moe_topk", 8);
  experts.shared_width = same_for_all(in, "num_shared_expert", 1) * width;
  check_experts(in, experts, "moe_topk");
  in.ignore({"moe_layer_num_skipped", "moe_drop_tokens", "moe_random_routing_dropped_token"});
  if (in.count("moe_layer_num_skipped") > 0)
    in.fault("moe_layer_num_skipped", "leading dense layers are not supported for this architecture");
  add_all(model, common);
}

/// Granite 4: Mamba 2 or attention, then experts and a block that all tokens use, or only that block.
void granitemoehybrid(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model, {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 32000, .tied = true});
  read_attention_bias(in, common.attention());
  common.attention().rotary = in.text("position_embedding_type", "rope") == "rope";
  FeedForward& block = common.feed_forward();
  const std::int64_t shared = in.count("shared_intermediate_size", 1024);
  if (in.count("num_local_experts", 8) > 0) {
    block.experts = in.size("num_local_experts", 8);
    block.experts_per_token = in.size("num_experts_per_tok", 2);
    block.shared_width = shared;
    check_experts(in, block, "num_experts_per_tok");
  } else {
    block.width = std::max<std::int64_t>(shared, 1);
    in.ignore({"num_experts_per_tok"});
  }
  const auto types = read_layer_types(in, common.layers);
  const bool mamba = std::find(types.begin(), types.end(), "mamba") != types.end() || types.empty();
  const StateSpace s = mamba ? read_mamba2(in, model.d_model, 128, 256) : StateSpace{};
  if (!mamba)
    in.ignore({"mamba_expand", "mamba_d_ssm", "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state",
               "mamba_d_conv", "mamba_conv_bias"});
  for (std::int64_t i = 0; i < common.layers; ++i) {
    Layer layer = common.layer;
    if (types.empty() || types[static_cast<std::size_t>(i)] == "mamba") {
      layer.attention.reset();
      layer.state_space = s;
    }
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> renamed_families() {
  static constexpr Family families[] = {
      {"qwen", "QWenLMHeadModel", &qwen},
      {"baichuan", "BaichuanForCausalLM", &baichuan},
      {"baichuan", "BaiChuanForCausalLM", &baichuan},
      {"exaone", "ExaoneForCausalLM", &exaone},
      {"exaone4", "Exaone4ForCausalLM", &exaone4},
      {"chatglm", "ChatGLMModel", &chatglm},
      {"chatglm", "ChatGLMForConditionalGeneration", &chatglm},
      {"hf_olmo", "OLMoForCausalLM", &hf_olmo},
      {"phi3small", "Phi3SmallForCausalLM", &phi3small},
      {"deci", "DeciLMForCausalLM", &deci},
      {"nemotron-nas", "", &deci},
      {"ministral3", "Ministral3ForCausalLM", &ministral3},
      {"mimo", "MiMoForCausalLM", &mimo},
      {"ernie4_5", "Ernie4_5ForCausalLM", &ernie4_5},
      {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", &ernie4_5_moe},
      {"bailing_moe", "BailingMoeForCausalLM", &bailing_moe},
      {"bailing_moe_v2", "BailingMoeV2ForCausalLM", &bailing_moe_v2},
      {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", &hunyuan_dense},
      {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", &hunyuan_moe},
      {"granitemoehybrid", "GraniteMoeHybridForCausalLM", &granitemoehybrid},
  };
  return families;
}

}  // namespace assay::model
