// Layers that share the weights of a block: Zamba 1 and 2.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// Attention over twice the width with heads to match, and a gated feed-forward block.
Layer read_block_aside(ConfigReader& in, const Transformer& model, std::int64_t heads, ConfigReader::Keys width) {
  Attention a;
  a.heads = in.size("num_attention_heads", heads);
  a.kv_heads = in.derived("num_key_value_heads", a.heads, "the number of heads");
  check_groups(in, a.heads, a.kv_heads);
  a.head_dim = a.value_dim = read_head_dim(in, "attention_head_dim", 2 * model.d_model, a.heads);
  if (in.has("attention_hidden_size") && in.size("attention_hidden_size") != 2 * model.d_model)
    in.fault("attention_hidden_size", fmt::format("must be twice the width of {}", model.d_model),
             "a block aside reads the stream and the embedding");
  Layer layer;
  layer.attention = a;
  layer.feed_forward = FeedForward{.width = in.size(width, 4 * model.d_model)};
  layer.shared = SharedBlock{.aside = true};
  layer.norms = 1;
  return layer;
}

/// Which layers use a block: as layers_block_type lists them, else as `is_hybrid` says.
template <class F>
std::vector<bool> read_block_types(ConfigReader& in, std::int64_t layers, F is_hybrid) {
  std::vector<bool> out;
  const std::vector<std::string> types = in.texts("layers_block_type");
  if (!types.empty() && std::ssize(types) != layers)
    in.fault("layers_block_type", fmt::format("lists {} layers, num_hidden_layers is {}", types.size(), layers),
             "one entry for each layer");
  for (std::int64_t i = 0; i < layers; ++i) {
    if (i >= std::ssize(types)) {
      out.push_back(types.empty() && is_hybrid(i));
      continue;
    }
    const std::string& type = types[static_cast<std::size_t>(i)];
    if (type != "hybrid" && type != "g" && type != "mamba" && type != "m")
      in.fault("layers_block_type", fmt::format("unknown layer type {}", in_quotes(type)), "mamba or hybrid");
    out.push_back(type == "hybrid" || type == "g");
  }
  return out;
}

/// A state space in each layer; `blocks` blocks take turns in those that use one.
void add_layers(Transformer& model, const StateSpace& s, Layer hybrid, const std::vector<bool>& types, int blocks) {
  Layer plain;
  plain.norms = 1;
  plain.state_space = hybrid.state_space = s;
  int next = 0;
  for (const bool is_hybrid : types) {
    hybrid.shared->number = next % blocks + 1;
    next += is_hybrid ? 1 : 0;
    model.decoder.add(is_hybrid ? hybrid : plain);
  }
}

void zamba(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 3712);
  model.vocabulary = in.size("vocab_size", 32000);
  model.max_context = in.count("max_position_embeddings", 4096);
  model.tied = in.flag("tie_word_embeddings", true);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 76);
  Layer hybrid = read_block_aside(in, model, 16, {"intermediate_size"});
  hybrid.attention->rotary = false;
  const StateSpace s = read_mamba1(in, model.d_model);
  const std::int64_t period = in.size("attn_layer_period", 6), offset = in.count("attn_layer_offset", 4);
  in.ignore({"n_mamba_heads"});  // they split the projections of step sizes, B and C into blocks; the total size stays
  add_layers(
      model, s, hybrid,
      read_block_types(in, layers, [=](std::int64_t i) { return i == 2 || (i > 2 && (i - 3) % period == offset); }), 1);
}

void zamba2(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 2560);
  model.vocabulary = in.size("vocab_size", 32000);
  model.max_context = in.count("max_position_embeddings", 4096);
  model.tied = in.flag("tie_word_embeddings", true);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 54);
  const bool bias = in.flag("add_bias_linear", false);
  Layer hybrid = read_block_aside(in, model, 32, {"intermediate_size", "ffn_hidden_size"});
  hybrid.attention->rotary = in.flag("use_mem_rope", false);
  hybrid.feed_forward->up_bias = hybrid.feed_forward->down_bias = bias;
  hybrid.feed_forward->gated = !in.has("gated_linear_unit") || in.flag("gated_linear_unit", true);
  // The library always adapts the feed-forward block, ignoring use_shared_mlp_adapter; the authors' code checks it.
  const std::int64_t rank = in.size({"adapter_rank", "lora_rank"}, 128);
  if (!in.has("use_shared_block_lora") || in.flag("use_shared_block_lora", true))
    hybrid.shared->feed_forward_rank = rank;
  const bool adapts_attention = in.flag(
      in.has("use_shared_attention_lora") ? "use_shared_attention_lora" : "use_shared_attention_adapter", false);
  if (adapts_attention) hybrid.shared->attention_rank = rank;
  StateSpace s;
  s.kind = StateSpace::Kind::mamba2;
  s.inner = in.size({"mamba_expand", "expansion_factor"}, 2) * model.d_model;
  const std::int64_t head_dim = in.has("mamba_headdim") ? in.size("mamba_headdim") : 0;
  s.heads = head_dim > 0
                ? in.derived("n_mamba_heads", std::max<std::int64_t>(s.inner / head_dim, 1), "width / mamba_headdim")
                : in.size("n_mamba_heads", 8);
  if (s.inner % s.heads != 0 || (head_dim > 0 && s.heads * head_dim != s.inner))
    in.fault("n_mamba_heads", fmt::format("{} heads do not divide a width of {}", s.heads, s.inner));
  s.key_heads = in.size("mamba_ngroups", 1);
  s.chunk = in.size("chunk_size", 256);
  s.key_dim = in.size({"mamba_d_state", "state_size"}, 64);
  s.convolution = in.size({"mamba_d_conv", "conv_dimension"}, 4);
  s.convolution_bias = in.flag("use_conv_bias", true);
  s.projection_bias = bias;
  const auto blocks = static_cast<int>(std::min<std::int64_t>(in.size("num_mem_blocks", 1), layers));
  if (in.has("use_long_context") && in.flag("use_long_context", false)) model.max_context = 16384;
  in.ignore({"use_shared_mlp_adapter", "kv_channels", "num_query_groups", "hybrid_layer_ids"});
  // The library's default layers with a block, as many as the 2.7B has.
  constexpr std::int64_t usual[] = {6, 12, 18, 24, 30, 36, 42, 47, 51};
  add_layers(model, s, hybrid,
             read_block_types(
                 in, layers,
                 [&](std::int64_t i) { return std::find(std::begin(usual), std::end(usual), i) != std::end(usual); }),
             blocks);
}

}  // namespace

std::span<const Family> shared_families() {
  static constexpr Family families[] = {
      {"zamba", "ZambaForCausalLM", &zamba},
      {"zamba2", "Zamba2ForCausalLM", &zamba2},
  };
  return families;
}

}  // namespace assay::model
