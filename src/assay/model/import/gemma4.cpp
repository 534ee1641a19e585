// Gemma 3n and 4: the last layers share keys, and each layer has an input from the token itself. Gemma 4: wide heads
// without separate values in the layers that see everything, and experts in parallel with a dense block. Gemma 3n:
// several residual streams, only one of them passing each layer, and two narrow matrices in parallel with attention.
#include <fmt/format.h>

#include <algorithm>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// Experts in the same layer as the dense block: every token uses the block, so it is a shared expert.
FeedForward read_experts(ConfigReader& in, std::int64_t dense_width) {
  FeedForward experts;
  experts.width = in.size("moe_intermediate_size");
  experts.experts = in.size("num_experts");
  experts.experts_per_token = in.size({"top_k_experts", "num_experts_per_tok"});
  experts.shared_width = dense_width;
  experts.router_scale = true;
  check_experts(in, experts, "top_k_experts");
  return experts;
}

/// An input of each layer from the token itself, and its norm.
void read_token_input(ConfigReader& in, Transformer& model, Layer& layer) {
  layer.token_input = in.count("hidden_size_per_layer_input", 256);
  if (layer.token_input > 0) {
    model.token_input_vocabulary = in.size("vocab_size_per_layer_input", 262144);
    ++layer.norms;
  } else {
    in.ignore({"vocab_size_per_layer_input"});
  }
}

/// The last layers use the keys of the last layer of their type that computes keys: where this starts, and who lends.
template <class F>
std::pair<std::int64_t, std::vector<bool>> read_shared_keys(ConfigReader& in, std::int64_t layers,
                                                            std::int64_t fallback, F is_full) {
  const std::int64_t shared = std::min(in.count("num_kv_shared_layers", fallback), layers);
  const std::int64_t sharing = shared > 0 ? std::max<std::int64_t>(layers - shared, 1) : layers;
  std::vector<bool> lends(static_cast<std::size_t>(layers));
  for (const bool full : {false, true})
    for (std::int64_t i = sharing; shared > 0 && i-- > 0;)
      if (is_full(i) == full) {
        lends[static_cast<std::size_t>(i)] = true;
        break;
      }
  return {sharing, lends};
}

void gemma4(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2304,
                               .intermediate = 9216,
                               .layers = 30,
                               .heads = 8,
                               .kv_heads = 4,
                               .head_dim = 256,
                               .vocabulary = 262144,
                               .context = 131072,
                               .tied = true});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::per_head;
  common.layer.norms = 4;
  read_token_input(in, model, common.layer);
  if (in.flag("enable_moe_block", false)) {
    common.layer.feed_forward = read_experts(in, common.feed_forward().width);
    common.layer.norms += 3;
  } else {
    in.ignore({"moe_intermediate_size", "num_experts", "top_k_experts"});
  }
  const bool keys_are_values = in.flag("attention_k_eq_v", false);
  const std::int64_t window = in.size("sliding_window", 512);
  const std::int64_t wide = in.size("global_head_dim", 512);
  const std::int64_t wide_kv = in.count("num_global_key_value_heads", 0);
  const bool double_width = in.flag("use_double_wide_mlp", false);
  const auto types = read_layer_types(in, common.layers);
  const std::int64_t period = types.empty() ? in.size("sliding_window_pattern", 6) : 1;
  in.ignore({"sliding_window_pattern"});
  const auto is_full = [&](std::int64_t i) {
    return i + 1 == common.layers ||
           (types.empty() ? (i + 1) % period == 0 : types[static_cast<std::size_t>(i)] == "full_attention");
  };
  const auto [sharing, lends] = read_shared_keys(in, common.layers, 0, is_full);
  for (std::int64_t i = 0; i < common.layers; ++i) {
    const bool full = is_full(i);
    Layer layer = common.layer;
    Attention& a = *layer.attention;
    if (full) {
      a.head_dim = a.value_dim = wide;
      a.values_are_keys = keys_are_values;
      if (keys_are_values && wide_kv > 0) a.kv_heads = wide_kv;
      check_groups(in, a.heads, a.kv_heads);
    } else {
      a.window = window;
    }
    a.shares_kv_with_later = lends[static_cast<std::size_t>(i)];
    if (i >= sharing) {
      a.shares_kv = true;
      if (double_width && layer.feed_forward->experts == 0) layer.feed_forward->width *= 2;
    }
    model.decoder.add(layer);
    if (in.failed()) return;
  }
}

/// Widths of the layers: one for all, or a list.
std::vector<std::int64_t> read_widths(ConfigReader& in, std::int64_t layers, std::int64_t fallback) {
  if (!in.is_list("intermediate_size"))
    return std::vector<std::int64_t>(static_cast<std::size_t>(layers), in.size("intermediate_size", fallback));
  auto widths = in.sizes("intermediate_size", 1);
  if (std::ssize(widths) != layers)
    in.fault("intermediate_size", fmt::format("lists {} layers, num_hidden_layers is {}", widths.size(), layers),
             "write one width for each layer, or one for all");
  widths.resize(static_cast<std::size_t>(layers), 1);
  return widths;
}

void gemma3n(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2048,
                               .intermediate = -1,
                               .layers = 35,
                               .heads = 8,
                               .kv_heads = 2,
                               .head_dim = 256,
                               .vocabulary = 262400,
                               .context = 32768,
                               .tied = true});
  read_attention_bias(in, common.attention());
  common.attention().qk_norm = Attention::QkNorm::per_head;
  common.layer.norms = 4;
  read_token_input(in, model, common.layer);
  common.layer.bypass_rank = in.size("laurel_rank", 64);
  model.streams = in.size("altup_num_inputs", 4);
  model.one_stream_works = model.streams > 1;
  const auto widths = read_widths(in, common.layers, 16384);
  const std::int64_t window = in.size("sliding_window", 512);
  const auto types = read_layer_types(in, common.layers);
  const auto is_full = [&](std::int64_t i) {
    return types.empty() ? (i + 1) % 5 == 0 : types[static_cast<std::size_t>(i)] == "full_attention";
  };
  const auto [sharing, lends] = read_shared_keys(in, common.layers, 15, is_full);
  in.note("activation_sparsity_pattern is ignored: activations of the first layers count as dense");
  for (std::int64_t i = 0; i < common.layers; ++i) {
    Layer layer = common.layer;
    layer.attention->window = is_full(i) ? 0 : window;
    layer.attention->shares_kv_with_later = lends[static_cast<std::size_t>(i)];
    layer.attention->shares_kv = layer.attention->idle_kv = i >= sharing;
    layer.feed_forward->width = widths[static_cast<std::size_t>(i)];
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> gemma4_families() {
  static constexpr Family families[] = {
      {"gemma3n_text", "Gemma3nForCausalLM", &gemma3n},
      {"gemma3n", "Gemma3nForConditionalGeneration", &gemma3n},
      {"gemma4_text", "Gemma4ForCausalLM", &gemma4},
      {"gemma4", "Gemma4ForConditionalGeneration", &gemma4},
  };
  return families;
}

}  // namespace assay::model
