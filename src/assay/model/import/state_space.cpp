// State-space models, and their hybrids with attention: Mamba 1 and 2, Jamba, Bamba, Falcon H1, Nemotron H.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// The rank of Mamba 1's step sizes: "auto", or a number; hidden / 16, rounded up.
std::int64_t read_dt_rank(ConfigReader& in, std::string_view key, std::int64_t hidden) {
  const std::int64_t automatic = (hidden + 15) / 16;
  if (in.is_text(key)) {
    if (in.text(key, "auto") != "auto") in.fault(key, "must be \"auto\" or a whole number");
    return automatic;
  }
  return in.derived(key, automatic, "hidden / 16");
}

void read_outer(ConfigReader& in, Transformer& model, std::int64_t hidden, std::int64_t vocabulary, bool tied) {
  model.d_model = in.size({"hidden_size", "d_model"}, hidden);
  model.vocabulary = in.size("vocab_size", vocabulary);
  model.max_context = in.count("max_position_embeddings", 0);
  model.tied = in.flag("tie_word_embeddings", tied);
}

/// A stack with a single block in each layer.
void add_state_spaces(Transformer& model, const StateSpace& s, std::int64_t layers) {
  Layer layer;
  layer.state_space = s;
  layer.norms = 1;
  for (std::int64_t i = 0; i < layers; ++i) model.decoder.add(layer);
}

void mamba(ConfigReader& in, Transformer& model) {
  read_outer(in, model, 768, 50280, true);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers", "n_layer"}, 32);
  StateSpace s;
  s.kind = StateSpace::Kind::mamba1;
  s.inner = in.derived("intermediate_size", in.size("expand", 2) * model.d_model, "expand x hidden_size");
  s.key_dim = in.size("state_size", 16);
  s.convolution = in.size("conv_kernel", 4);
  s.dt_rank = read_dt_rank(in, "time_step_rank", model.d_model);
  s.projection_bias = in.flag("use_bias", false);
  s.convolution_bias = in.flag("use_conv_bias", true);
  s.output_norm = false;
  in.ignore({"d_inner", "d_state", "pad_vocab_size_multiple"});
  add_state_spaces(model, s, layers);
}

void mamba2(ConfigReader& in, Transformer& model) {
  read_outer(in, model, 4096, 32768, false);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers", "n_layer"}, 64);
  StateSpace s;
  s.kind = StateSpace::Kind::mamba2;
  s.inner = in.size("expand", 2) * model.d_model;
  s.heads = in.size("num_heads", 128);
  const std::int64_t head_dim = in.size("head_dim", 64);
  if (s.heads * head_dim != s.inner)
    in.fault("num_heads",
             fmt::format("{} heads of size {} do not add up to expand x hidden_size = {}", s.heads, head_dim, s.inner));
  s.key_heads = in.size("n_groups", 8);
  s.chunk = in.size("chunk_size", 256);
  s.key_dim = in.size("state_size", 128);
  s.convolution = in.size("conv_kernel", 4);
  s.projection_bias = in.flag("use_bias", false);
  s.convolution_bias = in.flag("use_conv_bias", true);
  // The library writes both and uses neither: its width is expand x hidden_size, and step sizes have no rank.
  if (in.has("intermediate_size"))
    if (const std::int64_t width = in.size("intermediate_size"); width != s.inner)
      in.fault("intermediate_size", fmt::format("is {}, but expand x hidden_size is {}", width, s.inner),
               "both name the same width: leave this out, or change expand");
  in.ignore({"time_step_rank"});
  add_state_spaces(model, s, layers);
}

/// Mamba 1 and 2 as their authors' own code writes them: no type, sizes of the mixer in ssm_cfg, a padded vocabulary.
void mamba_ssm(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("d_model", 2560);
  const std::int64_t multiple = in.size("pad_vocab_size_multiple", 8);
  model.vocabulary = (in.size("vocab_size", 50277) + multiple - 1) / multiple * multiple;
  model.tied = in.flag("tie_embeddings", true);
  if (!in.flag("rms_norm", true)) model.norm = {.scale = true, .bias = true, .mean = true};
  const std::int64_t layers = read_layers(in, {"n_layer"}, 64);
  const Json nothing;
  const Json* object = in.object("ssm_cfg");
  ConfigReader inner(object ? *object : nothing, in.file(), "ssm_cfg.");
  StateSpace s;
  s.convolution_bias = true;
  const std::string type = inner.text("layer", "Mamba1");
  const bool second = type == "Mamba2";
  if (!second && type != "Mamba1") inner.fault("layer", fmt::format("unknown mixer {}", in_quotes(type)));
  s.kind = second ? StateSpace::Kind::mamba2 : StateSpace::Kind::mamba1;
  s.inner = inner.size("expand", 2) * model.d_model;
  s.key_dim = inner.size("d_state", second ? 128 : 16);
  s.convolution = inner.size("d_conv", 4);
  if (second) {
    const std::int64_t head_dim = inner.size("headdim", 64);
    if (s.inner % head_dim != 0)
      inner.fault("headdim", fmt::format("must divide the width of {}, got {}", s.inner, head_dim));
    s.heads = std::max<std::int64_t>(s.inner / head_dim, 1);
    s.key_heads = inner.size("ngroups", 1);
    s.chunk = inner.size("chunk_size", 256);
  } else {
    s.dt_rank = read_dt_rank(inner, "dt_rank", model.d_model);
    s.output_norm = false;
  }
  inner.check_unread();
  in.take(inner);
  if (!in.sizes("attn_layer_idx").empty())
    in.fault("attn_layer_idx", "attention layers in this architecture are not supported");
  if (in.count("d_intermediate") > 0)
    in.fault("d_intermediate", "feed-forward blocks are not supported for this architecture");
  add_state_spaces(model, s, layers);
}

/// Mamba layers with attention each attn_layer_period-th and experts each expert_layer_period-th.
void jamba(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 14336,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 8,
                               .vocabulary = 65536,
                               .context = 262144});
  StateSpace s = read_mamba1(in, model.d_model);
  s.inner_norms = true;
  FeedForward experts = common.feed_forward();
  experts.experts = in.size("num_experts", 16);
  experts.experts_per_token = in.size("num_experts_per_tok", 2);
  check_experts(in, experts, "num_experts_per_tok");
  const std::int64_t expert_period = in.size("expert_layer_period", 2),
                     expert_offset = in.count("expert_layer_offset", 1);
  const std::int64_t attention_period = in.size("attn_layer_period", 8);
  const std::int64_t attention_offset = in.count("attn_layer_offset", 4);
  in.ignore({"sliding_window", "mamba_inner_layernorms"});
  for (std::int64_t i = 0; i < common.layers; ++i) {
    Layer layer = common.layer;
    if (i % attention_period != attention_offset) {
      layer.attention.reset();
      layer.state_space = s;
    }
    if (i % expert_period == expert_offset && experts.experts > 1) layer.feed_forward = experts;
    model.decoder.add(layer);
  }
}

}  // namespace

StateSpace read_mamba1(ConfigReader& in, std::int64_t hidden) {
  StateSpace s;
  s.kind = StateSpace::Kind::mamba1;
  s.inner = in.size("mamba_expand", 2) * hidden;
  s.key_dim = in.size("mamba_d_state", 16);
  s.convolution = in.size("mamba_d_conv", 4);
  s.dt_rank = read_dt_rank(in, "mamba_dt_rank", hidden);
  s.convolution_bias = in.flag("mamba_conv_bias", true);
  s.projection_bias = in.flag("mamba_proj_bias", false);
  s.output_norm = false;
  return s;
}

StateSpace read_mamba2(ConfigReader& in, std::int64_t hidden, std::int64_t heads, std::int64_t state) {
  StateSpace s;
  s.kind = StateSpace::Kind::mamba2;
  const std::int64_t expand = in.size("mamba_expand", 2);
  const bool own_width = in.has("mamba_d_ssm");
  s.inner = own_width ? in.size("mamba_d_ssm", 1) : expand * hidden;
  s.heads = in.size("mamba_n_heads", heads);
  const std::int64_t head_dim =
      in.is_text("mamba_d_head")
          ? std::max<std::int64_t>(s.inner / s.heads, 1)
          : in.derived("mamba_d_head", std::max<std::int64_t>(s.inner / s.heads, 1), "width / heads");
  if (in.is_text("mamba_d_head")) in.ignore({"mamba_d_head"});
  if (s.heads * head_dim != s.inner)
    in.fault("mamba_n_heads",
             fmt::format("{} heads of size {} do not add up to a width of {}", s.heads, head_dim, s.inner));
  s.key_heads = in.size("mamba_n_groups", 1);
  s.chunk = in.size("mamba_chunk_size", 256);
  s.key_dim = in.size("mamba_d_state", state);
  s.convolution = in.size("mamba_d_conv", 4);
  s.convolution_bias = in.flag("mamba_conv_bias", true);
  s.projection_bias = in.flag("mamba_proj_bias", false);
  return s;
}

namespace {

void bamba(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 14336,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 8,
                               .vocabulary = 128000,
                               .context = 262144});
  read_attention_bias(in, common.attention());
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  const StateSpace s = read_mamba2(in, model.d_model, 128, 256);
  const auto attention = in.sizes("attn_layer_indices");
  in.ignore({"attn_rotary_emb", "layer_types", "layers_block_type"});
  for (std::int64_t i = 0; i < common.layers; ++i) {
    Layer layer = common.layer;
    if (std::find(attention.begin(), attention.end(), i) == attention.end()) {
      layer.attention.reset();
      layer.state_space = s;
    }
    model.decoder.add(layer);
  }
}

/// Falcon H1: attention and Mamba 2 in parallel in each layer.
void falcon_h1(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 4096,
                               .intermediate = 14336,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 8,
                               .vocabulary = 128000,
                               .context = 8192});
  const bool bias = in.flag("attention_bias", false), mlp_bias = in.flag("mlp_bias", false);
  set_bias(common.attention(), bias, bias);
  common.feed_forward().up_bias = common.feed_forward().down_bias = mlp_bias;
  StateSpace s = read_mamba2(in, model.d_model, 128, 256);
  s.output_norm = in.flag("mamba_rms_norm", false);
  // The library's name for the bias after the block; mamba_proj_bias is the one before it.
  if ((in.has("projectors_bias") && in.flag("projectors_bias", false)) != s.projection_bias)
    in.fault("projectors_bias", "the projections before and after a block must both have biases, or neither",
             "set it to the value of mamba_proj_bias");
  in.ignore({"mamba_use_mlp", "mamba_norm_before_gate", "mlp_expansion_factor", "attn_layer_indices", "ssm_multipliers",
             "mlp_multipliers", "num_logits_to_keep"});
  common.layer.state_space = s;
  add_all(model, common);
}

/// Nemotron H: each layer is a single block, given by the pattern: M Mamba 2, * attention, - feed-forward, E experts.
void nemotron_h(ConfigReader& in, Transformer& model) {
  read_outer(in, model, 4096, 131072, false);
  std::vector<std::string> blocks = in.texts("layers_block_type");
  const std::string pattern = in.text("hybrid_override_pattern", "");
  if (blocks.empty())
    for (char c : pattern)
      if (c != '|') blocks.emplace_back(1, c);
  if (blocks.empty()) {
    in.fault("hybrid_override_pattern", "is missing, and so is layers_block_type", "e.g. \"M-M*M-\"");
    return;
  }
  if (in.has("num_hidden_layers"))
    if (const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 1);
        layers != static_cast<std::int64_t>(blocks.size()))
      in.fault("num_hidden_layers", fmt::format("is {}, but the pattern has {} layers", layers, blocks.size()));
  const bool mlp_bias = in.flag("mlp_bias", false), attention_bias = in.flag("attention_bias", false);
  Layer attention, dense, experts, mamba_layer;
  attention.norms = dense.norms = experts.norms = mamba_layer.norms = 1;
  Attention a;
  a.heads = in.size("num_attention_heads", 32);
  a.kv_heads = in.size("num_key_value_heads", 8);
  check_groups(in, a.heads, a.kv_heads);
  a.head_dim = a.value_dim = in.size({"head_dim", "attention_head_dim"}, 128);
  a.window = in.count("sliding_window", 0);
  a.rotary = false;  // the state spaces encode the order
  set_bias(a, attention_bias, attention_bias);
  attention.attention = a;
  dense.feed_forward = FeedForward{
      .width = in.size("intermediate_size", 21504), .gated = false, .up_bias = mlp_bias, .down_bias = mlp_bias};
  const bool has_experts = std::find_if(blocks.begin(), blocks.end(), [](const std::string& block) {
                             return block == "E" || block == "moe";
                           }) != blocks.end();
  if (has_experts) {
    FeedForward f{.width = in.size("moe_intermediate_size", 7688), .gated = false};
    f.experts = in.size("n_routed_experts", 8);
    f.experts_per_token = in.size("num_experts_per_tok", 2);
    f.shared_width = in.count("n_shared_experts", 1) * in.size("moe_shared_expert_intermediate_size", 7688);
    f.latent = in.count("moe_latent_size", 0);
    f.router_correction = true;
    check_experts(in, f, "num_experts_per_tok");
    experts.feed_forward = f;
  } else {
    in.ignore({"moe_intermediate_size", "n_routed_experts", "num_experts_per_tok", "n_shared_experts",
               "moe_shared_expert_intermediate_size", "moe_latent_size"});
  }
  StateSpace s;
  s.kind = StateSpace::Kind::mamba2;
  s.heads = in.size("mamba_num_heads", 128);
  s.inner = s.heads * in.size("mamba_head_dim", 64);
  s.key_heads = in.size({"n_groups", "mamba_n_groups"}, 8);
  s.chunk = in.size({"chunk_size", "mamba_chunk_size"}, 128);
  s.key_dim = in.size("ssm_state_size", 128);
  s.convolution = in.size({"conv_kernel", "mamba_d_conv"}, 4);
  s.convolution_bias = in.flag("use_conv_bias", true);
  s.projection_bias = in.flag("use_bias", false) || (in.has("mamba_proj_bias") && in.flag("mamba_proj_bias", false));
  mamba_layer.state_space = s;
  model.prediction_layers = in.count("num_nextn_predict_layers");
  in.ignore({"expand", "mamba_expand", "moe_shared_expert_overlap", "mtp_layers_block_type", "mamba_proj_bias",
             "mtp_hybrid_override_pattern", "time_step_rank", "num_query_groups"});
  for (const std::string& block : blocks) {
    if (block == "M" || block == "mamba" || block == "linear_attention")
      model.decoder.add(mamba_layer);
    else if (block == "*" || block == "attention" || block == "full_attention")
      model.decoder.add(attention);
    else if (block == "-" || block == "mlp")
      model.decoder.add(dense);
    else if (block == "E" || block == "moe")
      model.decoder.add(experts);
    else
      return in.fault("hybrid_override_pattern", fmt::format("unknown layer type {}", in_quotes(block)),
                      "M mamba, * attention, - feed-forward, E experts");
  }
}

}  // namespace

std::span<const Family> state_space_families() {
  static constexpr Family families[] = {
      {"mamba", "MambaForCausalLM", &mamba},
      {"falcon_mamba", "FalconMambaForCausalLM", &mamba},
      {"mamba2", "Mamba2ForCausalLM", &mamba2},
      {"mamba_ssm", "", &mamba_ssm},
      {"jamba", "JambaForCausalLM", &jamba},
      {"bamba", "BambaForCausalLM", &bamba},
      {"falcon_h1", "FalconH1ForCausalLM", &falcon_h1},
      {"nemotron_h", "NemotronHForCausalLM", &nemotron_h},
  };
  return families;
}

}  // namespace assay::model
