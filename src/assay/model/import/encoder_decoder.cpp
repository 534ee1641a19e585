// Encoder-decoders: T5 and its relatives, BART.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// `each`: every layer has its own relative biases (uMT5); otherwise the first layer of a stack has them for all.
void fill_t5(ConfigReader& in, Transformer& model, std::int64_t vocabulary, std::string_view projection, bool tied,
             bool each) {
  model.d_model = in.size({"d_model", "hidden_size"}, 512);
  model.vocabulary = in.size("vocab_size", vocabulary);
  model.max_context = in.count("n_positions", 0);
  model.tied = in.flag("tie_word_embeddings", tied);
  const std::int64_t layers = read_layers(in, {"num_layers", "num_hidden_layers"}, each ? 8 : 6);
  const std::int64_t decoder_layers = in.has("num_decoder_layers")
                                          ? read_layers(in, {"num_decoder_layers"}, layers)
                                          : in.derived("num_decoder_layers", layers, "num_layers");
  Attention attention;
  attention.heads = attention.kv_heads = in.size({"num_heads", "num_attention_heads"}, each ? 6 : 8);
  attention.head_dim = attention.value_dim = in.size("d_kv", 64);
  attention.causal = attention.rotary = false;
  const std::int64_t buckets = in.size("relative_attention_num_buckets", 32);
  in.ignore({"relative_attention_max_distance", "dense_act_fn", "is_gated_act", "output_past", "n_positions"});
  const std::string act = in.text("feed_forward_proj", projection);
  if (act != "relu" && act != "gelu" && !act.starts_with("gated-"))
    in.fault("feed_forward_proj", fmt::format("must be relu, gelu or gated-..., got {}", in_quotes(act)));
  const FeedForward feed_forward{.width = in.size("d_ff", each ? 1024 : 2048), .gated = act.starts_with("gated-")};
  Layer encoder, decoder;
  encoder.attention = attention;
  encoder.feed_forward = decoder.feed_forward = feed_forward;
  decoder.attention = attention;
  decoder.attention->causal = true;
  decoder.cross_attention = attention;
  decoder.cross_attention->cross = true;
  decoder.norms = 3;
  model.encoder.emplace();
  for (std::int64_t i = 0; i < layers; ++i) {
    encoder.attention->relative_buckets = each || i == 0 ? buckets : 0;
    model.encoder->add(encoder);
  }
  for (std::int64_t i = 0; i < decoder_layers; ++i) {
    decoder.attention->relative_buckets = each || i == 0 ? buckets : 0;
    model.decoder.add(decoder);
  }
}

void t5(ConfigReader& in, Transformer& model) { fill_t5(in, model, 32128, "relu", true, false); }
void mt5(ConfigReader& in, Transformer& model) { fill_t5(in, model, 250112, "gated-gelu", false, false); }
void umt5(ConfigReader& in, Transformer& model) { fill_t5(in, model, 250112, "gated-gelu", false, true); }

/// Switch: a T5 with one expert for a token in every so-many-th block of either stack.
void switch_transformers(ConfigReader& in, Transformer& model) {
  fill_t5(in, model, 32128, "relu", true, false);
  const std::int64_t experts = in.size("num_experts", 8);
  const bool bias = in.flag("router_bias", false);
  in.ignore({"expert_capacity", "encoder_sparse_step", "decoder_sparse_step", "router_type"});
  const auto spread = [&](LayerStack& stack, std::string_view key) {
    const std::int64_t sparse = in.count(key, 3), step = sparse > 0 ? stack.layers() / sparse : 0;
    const LayerStack dense = std::move(stack);
    stack = {};
    for (std::int64_t i = 0; i < dense.layers(); ++i) {
      Layer layer = dense.kinds[dense.order[static_cast<std::size_t>(i)]];
      if (step == 1 || (step > 1 && i % step == 1)) {
        layer.feed_forward->experts = experts;
        layer.feed_forward->experts_per_token = 1;
        layer.feed_forward->router_bias = bias;
      }
      stack.add(layer);
    }
  };
  spread(*model.encoder, "num_sparse_encoder_layers");
  spread(model.decoder, "num_sparse_decoder_layers");
}

/// Differences between the relatives of BART.
struct BartLike {
  std::int64_t vocabulary = 50265;
  bool learned_positions = true;  ///< else by sines
  bool embedding_norm = true, final_norm = false;
};

void fill_bart(ConfigReader& in, Transformer& model, const BartLike& kind) {
  model.d_model = in.size({"d_model", "hidden_size"}, 1024);
  model.vocabulary = in.size("vocab_size", kind.vocabulary);
  model.max_context = in.size("max_position_embeddings", 1024);
  if (kind.learned_positions) model.learned_positions = model.max_context + 2;  // the table starts at two
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = {.scale = true, .bias = true, .mean = true};
  model.embedding_norm = kind.embedding_norm;
  model.final_norm = kind.final_norm;
  const auto attention = [&](std::string_view key, bool causal, bool cross) {
    Attention a;
    a.heads = a.kv_heads = in.size(key, 16);
    if (model.d_model % a.heads != 0)
      in.fault(key, fmt::format("{} heads do not divide a width of {}", a.heads, model.d_model),
               fmt::format("a number of heads that divides {}", model.d_model));
    a.head_dim = a.value_dim = std::max<std::int64_t>(model.d_model / a.heads, 1);
    set_bias(a, true, true);
    a.causal = causal;
    a.cross = cross;
    a.rotary = false;
    return a;
  };
  Layer encoder, decoder;
  encoder.attention = attention("encoder_attention_heads", false, false);
  decoder.attention = attention("decoder_attention_heads", true, false);
  decoder.cross_attention = attention("decoder_attention_heads", false, true);
  decoder.norms = 3;
  encoder.feed_forward =
      FeedForward{.width = in.size("encoder_ffn_dim", 4096), .gated = false, .up_bias = true, .down_bias = true};
  decoder.feed_forward =
      FeedForward{.width = in.size("decoder_ffn_dim", 4096), .gated = false, .up_bias = true, .down_bias = true};
  const std::int64_t layers = read_layers(in, {"encoder_layers"}, 12),
                     decoder_layers = read_layers(in, {"decoder_layers"}, 12);
  in.ignore({"num_hidden_layers", "encoder_layerdrop", "decoder_layerdrop", "add_final_layer_norm"});
  model.encoder.emplace();
  for (std::int64_t i = 0; i < layers; ++i) model.encoder->add(encoder);
  for (std::int64_t i = 0; i < decoder_layers; ++i) model.decoder.add(decoder);
}

void bart(ConfigReader& in, Transformer& model) { fill_bart(in, model, {}); }
void mbart(ConfigReader& in, Transformer& model) { fill_bart(in, model, {.final_norm = true}); }
/// Sinusoidal positions, and norms before the blocks; Marian has them after.
void pegasus(ConfigReader& in, Transformer& model) {
  fill_bart(in, model, {.learned_positions = false, .embedding_norm = false, .final_norm = true});
}
void m2m_100(ConfigReader& in, Transformer& model) {
  fill_bart(in, model, {.vocabulary = 128112, .learned_positions = false, .embedding_norm = false, .final_norm = true});
}
void marian(ConfigReader& in, Transformer& model) {
  if (in.has("share_encoder_decoder_embeddings") && !in.flag("share_encoder_decoder_embeddings", true))
    in.fault("share_encoder_decoder_embeddings", "separate embeddings of encoder and decoder are not supported");
  in.ignore({"decoder_vocab_size"});
  fill_bart(in, model, {.vocabulary = 58101, .learned_positions = false, .embedding_norm = false});
}

}  // namespace

std::span<const Family> encoder_decoder_families() {
  static constexpr Family families[] = {
      {"t5", "T5ForConditionalGeneration", &t5},
      {"t5", "T5WithLMHeadModel", &t5},
      {"mt5", "MT5ForConditionalGeneration", &mt5},
      {"umt5", "UMT5ForConditionalGeneration", &umt5},
      {"switch_transformers", "SwitchTransformersForConditionalGeneration", &switch_transformers},
      {"bart", "BartForConditionalGeneration", &bart},
      {"mbart", "MBartForConditionalGeneration", &mbart},
      {"pegasus", "PegasusForConditionalGeneration", &pegasus},
      {"m2m_100", "M2M100ForConditionalGeneration", &m2m_100},
      {"marian", "MarianMTModel", &marian},
  };
  return families;
}

}  // namespace assay::model
