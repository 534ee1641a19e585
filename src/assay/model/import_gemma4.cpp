// Gemma 4: wide heads without values of their own in the layers that see everything, keys shared across the last
// layers, an input of each layer from the token itself, and experts beside a dense block.
#include <fmt/format.h>

#include <algorithm>

#include "assay/model/import_families.h"

namespace assay {
namespace {

/// Experts in the same layer as the dense block: the block is what every token passes, a shared expert.
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
  common.layer.token_input = in.count("hidden_size_per_layer_input", 256);
  if (common.layer.token_input > 0) {
    model.token_input_vocabulary = in.size("vocab_size_per_layer_input", 262144);
    ++common.layer.norms;
  } else {
    in.ignore({"vocab_size_per_layer_input"});
  }
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
  const std::int64_t shared = std::min(in.count("num_kv_shared_layers", 0), common.layers);
  const bool double_width = in.flag("use_double_wide_mlp", false);
  const auto types = read_layer_types(in, common.layers);
  const std::int64_t period = types.empty() ? in.size("sliding_window_pattern", 6) : 1;
  in.ignore({"sliding_window_pattern"});
  const auto is_full = [&](std::int64_t i) {
    return i + 1 == common.layers ||
           (types.empty() ? (i + 1) % period == 0 : types[static_cast<std::size_t>(i)] == "full_attention");
  };
  // The last layers use the keys of the last layer of their type that makes some.
  const std::int64_t sharing = shared > 0 ? std::max<std::int64_t>(common.layers - shared, 1) : common.layers;
  const auto lends = [&](std::int64_t i) {
    if (sharing == common.layers || i >= sharing) return false;
    for (std::int64_t later = i + 1; later < sharing; ++later)
      if (is_full(later) == is_full(i)) return false;
    return true;
  };
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
    a.lends_kv = lends(i);
    if (i >= sharing) {
      a.shares_kv = true;
      if (double_width && layer.feed_forward->experts == 0) layer.feed_forward->width *= 2;
    }
    model.decoder.add(layer);
    if (in.failed()) return;
  }
}

}  // namespace

std::span<const Family> gemma4_families() {
  static constexpr Family families[] = {
      {"gemma4_text", "Gemma4ForCausalLM", &gemma4},
      {"gemma4", "Gemma4ForConditionalGeneration", &gemma4},
  };
  return families;
}

}  // namespace assay
