// Dense decoders close to llama, each with one peculiarity: cross attention to images (Llama 3.2 vision), an activation
// with learned parameters (Apertus), layers of several sizes (OpenELM).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// Llama 3.2 vision: some layers among the llama layers attend only to images. Text without an image skips them.
void mllama(ConfigReader& in, Transformer& model) {
  const Common common = read_common(in, model,
                                    {.hidden = 4096,
                                     .intermediate = 14336,
                                     .layers = 40,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .vocabulary = 128256,
                                     .context = 131072});
  model.extra_embeddings = 8;  // placeholders for images in the text
  Layer image = common.layer;
  image.cross_attention = image.attention;
  image.attention.reset();
  image.cross_attention->cross = image.needs_image = true;
  image.cross_attention->causal = image.cross_attention->rotary = false;
  image.cross_attention->qk_norm = Attention::QkNorm::per_head;
  std::vector<std::int64_t> looking = in.sizes("cross_attention_layers");
  if (looking.empty()) {
    for (std::int64_t i = 3; i < common.layers; i += 5) looking.push_back(i);
    in.note("cross_attention_layers not given: every fifth, beginning with layer 3");
  }
  if (std::any_of(looking.begin(), looking.end(), [&](std::int64_t i) { return i >= common.layers; }))
    in.fault("cross_attention_layers", fmt::format("names a layer past the last of {} layers", common.layers),
             "layers count from 0 to num_hidden_layers - 1");
  for (std::int64_t i = 0; i < common.layers; ++i)
    model.decoder.add(std::find(looking.begin(), looking.end(), i) == looking.end() ? common.layer : image);
  in.note(fmt::format("{} layers attend to images and are skipped for text", looking.size()));
}

/// Apertus: one matrix up, an activation with two learned numbers, norms of each head.
void apertus(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .vocabulary = 131072, .context = 65536});
  read_attention_bias(in, common.attention());
  if (!in.has("qk_norm") || in.flag("qk_norm", true)) common.attention().qk_norm = Attention::QkNorm::per_head;
  common.feed_forward().gated = false;
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  if (in.text("hidden_act", "xielu") == "xielu") common.feed_forward().activation_scales = 2;
  add_all(model, common);
}

void helium(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2560,
                               .intermediate = 7040,
                               .layers = 24,
                               .heads = 20,
                               .kv_heads = 20,
                               .head_dim = 128,
                               .vocabulary = 48000,
                               .context = 4096});
  set_bias(common.attention(), in.flag("attention_bias", false), false);
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  add_all(model, common);
}

/// Orion: a llama with LayerNorms.
void orion(ConfigReader& in, Transformer& model) {
  const Common common = read_common(
      in, model,
      {.hidden = 5120, .intermediate = 15360, .layers = 40, .heads = 40, .vocabulary = 84608, .context = 4096});
  model.norm = {.scale = true, .bias = true, .mean = true};
  add_all(model, common);
}

void internlm3(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model,
      {.hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .vocabulary = 128512, .context = 32768});
  const bool bias = in.flag("bias", false);
  set_bias(common.attention(), in.flag("qkv_bias", false), bias);
  common.feed_forward().up_bias = common.feed_forward().down_bias = bias;
  add_all(model, common);
}

/// nanochat: norms without parameters, also of embeddings (head norms are not a step of the program); one matrix up.
void nanochat(ConfigReader& in, Transformer& model) {
  Common common = read_common(
      in, model, {.hidden = 768, .intermediate = 8192, .layers = 12, .heads = 6, .vocabulary = 50304, .context = 2048});
  read_attention_bias(in, common.attention());
  common.feed_forward().gated = false;
  model.norm = {.scale = false, .bias = false, .mean = false};
  model.embedding_norm = true;
  add_all(model, common);
}

/// The nearest multiple that is at most a tenth below.
std::int64_t whole_multiple(double wanted, std::int64_t divisor) {
  const auto by = static_cast<double>(divisor);
  const double near = std::max(by, std::floor((std::floor(wanted + by / 2)) / by) * by);
  return static_cast<std::int64_t>(near < 0.9 * wanted ? near + by : near);
}

/// OpenELM: heads and widths grow from layer to layer.
void openelm(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("model_dim", 2048);
  model.vocabulary = in.size("vocab_size", 32000);
  model.max_context = in.count("max_context_length", 2048);
  model.tied = in.flag("share_input_output_layers", true);
  const std::int64_t layers = read_layers(in, {"num_transformer_layers"}, 12);
  const std::int64_t head_dim = in.size("head_dim", 128), divisor = in.size("ffn_dim_divisor", 256);
  const auto heads = in.sizes("num_query_heads", 1), kv_heads = in.sizes("num_kv_heads", 1);
  const auto multiples = in.factors("ffn_multipliers");
  const bool gated = in.flag("ffn_with_glu", true), norms = in.flag("normalize_qk_projections", true);
  in.ignore({"num_gqa_groups", "qkv_multipliers", "rope_max_length"});
  const auto check = [&](std::string_view key, std::size_t listed) {
    if (static_cast<std::int64_t>(listed) != layers)
      in.fault(key, fmt::format("lists {} layers, num_transformer_layers is {}", listed, layers),
               "write one for each layer");
  };
  check("num_query_heads", heads.size());
  check("num_kv_heads", kv_heads.size());
  check("ffn_multipliers", multiples.size());
  if (in.failed()) return;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Layer layer;
    layer.attention =
        Attention{.heads = heads[i], .kv_heads = kv_heads[i], .head_dim = head_dim, .value_dim = head_dim};
    if (norms) layer.attention->qk_norm = Attention::QkNorm::per_head;
    check_groups(in, heads[i], kv_heads[i]);
    layer.feed_forward = FeedForward{
        .width = whole_multiple(multiples[i] * static_cast<double>(model.d_model), divisor), .gated = gated};
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> dense_families() {
  static constexpr Family families[] = {
      {"mllama_text_model", "MllamaForCausalLM", &mllama},
      {"mllama", "MllamaForConditionalGeneration", &mllama},
      {"apertus", "ApertusForCausalLM", &apertus},
      {"helium", "HeliumForCausalLM", &helium},
      {"orion", "OrionForCausalLM", &orion},
      {"internlm3", "InternLM3ForCausalLM", &internlm3},
      {"nanochat", "NanoChatForCausalLM", &nanochat},
      {"openelm", "OpenELMForCausalLM", &openelm},
  };
  return families;
}

}  // namespace assay::model
