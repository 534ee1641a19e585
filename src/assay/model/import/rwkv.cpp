// Recurrent models without attention: RWKV 4 to 7, and xLSTM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

using Kind = StateSpace::Kind;

/// Layer norms everywhere, including one after the embedding.
std::int64_t read_outer(ConfigReader& in, Transformer& model, std::int64_t hidden, std::int64_t vocabulary,
                        std::int64_t layers) {
  model.d_model = in.size("hidden_size", hidden);
  model.vocabulary = in.size("vocab_size", vocabulary);
  model.max_context = in.count({"context_length", "max_position_embeddings"}, 0);
  model.tied = in.flag("tie_word_embeddings", false);
  model.norm = {.scale = true, .bias = true, .mean = true};
  model.embedding_norm = true;
  return read_layers(in, {"num_hidden_layers"}, layers);
}

/// The block after each mixer.
FeedForward read_channel_mix(ConfigReader& in, std::int64_t fallback, std::string_view how, bool receptance) {
  return {.width = in.derived("intermediate_size", std::max<std::int64_t>(fallback, 1), how),
          .gated = false,
          .shifted = true,
          .receptance = receptance};
}

void add_layers(Transformer& model, const StateSpace& s, const FeedForward& f, std::int64_t layers) {
  Layer layer;
  layer.state_space = s;
  layer.feed_forward = f;
  for (std::int64_t i = 0; i < layers; ++i) model.decoder.add(layer);
}

/// Heads of one size that make up a width.
std::int64_t heads_of(ConfigReader& in, std::string_view key, std::int64_t width, std::int64_t size) {
  if (width % size != 0)
    in.fault(key, fmt::format("heads of size {} do not divide a width of {}", size, width), "a divisor of the width");
  return std::max<std::int64_t>(width / size, 1);
}

void rwkv4(ConfigReader& in, Transformer& model) {
  const std::int64_t layers = read_outer(in, model, 4096, 50277, 32);
  StateSpace s;
  s.kind = Kind::rwkv4;
  s.inner = in.derived("attention_hidden_size", model.d_model, "hidden_size");
  s.heads = s.key_heads = s.inner;
  s.output_norm = false;
  in.ignore({"rescale_every"});
  add_layers(model, s, read_channel_mix(in, 4 * model.d_model, "4 x hidden_size", true), layers);
}

std::int64_t multiple_of_32(double size) { return static_cast<std::int64_t>(size) / 32 * 32; }

void rwkv5(ConfigReader& in, Transformer& model) {
  const std::int64_t layers = read_outer(in, model, 768, 65536, 24);
  StateSpace s;
  s.kind = Kind::rwkv5;
  s.inner = in.derived("attention_hidden_size", model.d_model, "hidden_size");
  // num_attention_heads is the older name of head_size, never the number of heads.
  s.key_dim = in.size({"head_size", "num_attention_heads"}, 64);
  s.heads = s.key_heads = heads_of(in, "head_size", s.inner, s.key_dim);
  in.ignore({"rescale_every", "head_size_divisor", "num_attention_heads", "model_version"});
  const double wide = 3.5 * static_cast<double>(model.d_model);
  add_layers(model, s, read_channel_mix(in, multiple_of_32(wide), "3.5 x hidden_size", true), layers);
}

/// As written by its authors' code and by flash-linear-attention, which has a separate key width.
void rwkv6(ConfigReader& in, Transformer& model) {
  const bool fla = in.has("proj_low_rank_dim") || in.has("expand_k") || in.has("hidden_ratio");
  const std::int64_t layers = read_outer(in, model, fla ? 2048 : 768, fla ? 32000 : 65536, 24);
  const auto width = static_cast<double>(model.d_model);
  StateSpace s;
  s.kind = Kind::rwkv5;
  double ratio = 3.5;
  if (fla) {
    const auto keys = static_cast<std::int64_t>(width * in.factor("expand_k", 0.5));
    s.inner = std::max<std::int64_t>(static_cast<std::int64_t>(width * in.factor("expand_v", 1.0)), 1);
    s.heads = s.key_heads = in.size("num_heads", 4);
    s.key_dim = std::max<std::int64_t>(keys / s.heads, 1);
    if (keys % s.heads != 0 || s.inner % s.heads != 0)
      in.fault("num_heads", fmt::format("{} heads do not divide keys of {} and values of {}", s.heads, keys, s.inner));
    s.mix_rank = in.size("proj_low_rank_dim", 32);
    s.decay_rank = in.size("gate_low_rank_dim", 64);
    ratio = in.factor("hidden_ratio", 3.5);
    model.embedding_norm = in.flag("norm_first", true);
    model.norm.bias = in.flag("norm_bias", true);
    if (in.object("attn")) in.fault("attn", "attention layers in this architecture are not supported");
  } else {
    s.inner = in.derived("attention_hidden_size", model.d_model, "hidden_size");
    s.key_dim = in.size("head_size", 64);
    s.heads = s.key_heads = heads_of(in, "head_size", s.inner, s.key_dim);
    // Its code uses other ranks for only one width.
    const bool large = model.d_model == 4096;
    s.mix_rank = in.size("time_mix_extra_dim", large ? 64 : 32);
    s.decay_rank = in.size("time_decay_extra_dim", large ? 128 : 64);
  }
  in.ignore({"rescale_every", "head_size_divisor", "num_attention_heads", "num_heads", "model_version", "use_glu"});
  const std::int64_t wide = multiple_of_32(ratio * width + (fla ? 31.0 : 0.0));
  add_layers(model, s, read_channel_mix(in, wide, fmt::format("{} x hidden_size", ratio), true), layers);
}

/// The value widths of all layers: one for all, one for each, or the model's width.
std::vector<std::int64_t> read_value_widths(ConfigReader& in, std::int64_t hidden, std::int64_t layers) {
  if (!in.is_list("value_dim"))
    return std::vector(static_cast<std::size_t>(layers), in.derived("value_dim", hidden, "hidden_size"));
  std::vector<std::int64_t> widths = in.sizes("value_dim", 1);
  if (std::ssize(widths) != layers) {
    in.fault("value_dim", fmt::format("lists {} layers, num_hidden_layers is {}", widths.size(), layers),
             "write one width for each layer");
    widths.assign(static_cast<std::size_t>(layers), hidden);
  }
  return widths;
}

/// All other layers mix in the first layer's values, each by its own gate.
void rwkv7(ConfigReader& in, Transformer& model) {
  const std::int64_t layers = read_outer(in, model, 2048, 32000, 24);
  model.embedding_norm = in.flag("norm_first", true);
  model.norm.bias = in.flag("norm_bias", true);
  StateSpace s;
  s.kind = Kind::rwkv7;
  s.key_dim = in.has("num_heads") && !in.has("head_dim")
                  ? std::max<std::int64_t>(model.d_model / in.size("num_heads", 1), 1)
                  : in.size({"head_dim", "head_size"}, 64);
  s.heads = s.key_heads = heads_of(in, "head_dim", model.d_model, s.key_dim);
  // Missing ranks grow with the root of the width, and all but the gate's with the heads.
  const auto rank = [&](std::string_view key, double share, double heads) {
    const double wanted = share * std::sqrt(static_cast<double>(model.d_model)) * heads / 32.0;
    return in.derived(key, std::max<std::int64_t>(32, std::llround(wanted) * 32), "from hidden_size");
  };
  const double wide_heads = static_cast<double>(s.key_dim) / 64.0;
  s.decay_rank = rank("decay_low_rank_dim", 2.5, wide_heads);
  s.gate_rank = rank("gate_low_rank_dim", 5.0, 1.0);
  s.rate_rank = rank("a_low_rank_dim", 2.5, wide_heads);
  const std::int64_t value_rank = rank("v_low_rank_dim", 1.7, wide_heads);
  if (in.object("attn")) in.fault("attn", "attention layers in this architecture are not supported");
  in.ignore({"num_heads", "num_attention_heads", "rescale_every", "fuse_linear_cross_entropy"});
  const double ratio = in.factor("hidden_ratio", 4.0);
  const std::int64_t wide = multiple_of_32(ratio * static_cast<double>(model.d_model) + 31.0);
  const FeedForward f = read_channel_mix(in, wide, fmt::format("{} x hidden_size", ratio), false);
  const std::vector<std::int64_t> widths = read_value_widths(in, model.d_model, layers);
  for (std::int64_t i = 0; i < layers && !in.failed(); ++i) {
    s.inner = widths[static_cast<std::size_t>(i)];
    s.lends_values = i == 0 && layers > 1;
    s.value_rank = i == 0 ? 0 : value_rank;
    if (s.inner != widths.front() || s.inner % s.heads != 0)
      return in.fault("value_dim",
                      fmt::format("{} heads do not divide it, or it is not that of the first layer", s.heads),
                      "all layers mix in the values of the first one");
    add_layers(model, s, f, 1);
  }
}

void xlstm(ConfigReader& in, Transformer& model) {
  model.d_model = in.size({"hidden_size", "embedding_dim"}, 4096);
  model.vocabulary = in.size("vocab_size", 50304);
  model.tied = in.flag("tie_word_embeddings", false);
  model.final_norm = in.flag("add_out_norm", true);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers", "num_blocks"}, 32);
  const auto width = static_cast<double>(model.d_model);
  StateSpace s;
  s.kind = Kind::mlstm;
  s.heads = s.key_heads = in.size("num_heads", 8);
  const auto keys = static_cast<std::int64_t>(width * in.factor("qk_dim_factor", 0.5));
  s.inner = std::max<std::int64_t>(static_cast<std::int64_t>(width * in.factor("v_dim_factor", 1.0)), 1);
  s.key_dim = std::max<std::int64_t>(keys / s.heads, 1);
  if (keys % s.heads != 0 || s.inner % s.heads != 0)
    in.fault("num_heads", fmt::format("{} heads do not divide keys of {} and values of {}", s.heads, keys, s.inner));
  if (in.flag("use_bias", false)) in.fault("use_bias", "biases on all products are not supported");
  const auto multiple = static_cast<double>(in.size("ffn_round_up_to_multiple_of", 64));
  const double wide = std::floor((in.factor("ffn_proj_factor", 2.667) * width + multiple - 1.0) / multiple) * multiple;
  in.ignore({"embedding_dim", "num_blocks", "chunk_size", "max_inference_chunksize", "gate_soft_cap",
             "output_logit_soft_cap", "head_dim", "weight_mode", "mode", "norm_reduction_force_float32",
             "return_last_states"});
  add_layers(model, s, FeedForward{.width = static_cast<std::int64_t>(wide)}, layers);
}

}  // namespace

std::span<const Family> rwkv_families() {
  static constexpr Family families[] = {
      {"rwkv", "RwkvForCausalLM", &rwkv4},   {"rwkv5", "Rwkv5ForCausalLM", &rwkv5},
      {"rwkv6", "Rwkv6ForCausalLM", &rwkv6}, {"rwkv6", "RWKV6ForCausalLM", &rwkv6},
      {"rwkv7", "RWKV7ForCausalLM", &rwkv7}, {"rwkv7", "Rwkv7ForCausalLM", &rwkv7},
      {"xlstm", "xLSTMForCausalLM", &xlstm},
  };
  return families;
}

}  // namespace assay::model
