// Decoders in the manner of GPT-2: LayerNorm, biases, learned or ALiBi positions, keys named n_embd and n_head.
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

void add_all(Transformer& model, const Layer& layer, std::int64_t layers) {
  for (std::int64_t i = 0; i < layers; ++i) model.decoder.add(layer);
}

/// Attention with as many key heads as query heads and the width of the model.
Attention plain_attention(ConfigReader& in, std::int64_t width, std::int64_t heads, bool bias) {
  Attention attention;
  attention.heads = attention.kv_heads = heads;
  attention.head_dim = attention.value_dim = read_head_dim(in, "head_dim", width, heads);
  set_bias(attention, bias, bias);
  return attention;
}

FeedForward plain_feed_forward(std::int64_t width, bool bias) {
  return {.width = width, .gated = false, .up_bias = bias, .down_bias = bias};
}

void gpt2(ConfigReader& in, Transformer& model) {
  model.d_model = in.size({"n_embd", "hidden_size"}, 768);
  model.vocabulary = in.size("vocab_size", 50257);
  model.learned_positions = model.max_context = in.size({"n_positions", "max_position_embeddings"}, 1024);
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = layer_norm;
  const std::int64_t layers = read_layers(in, {"n_layer", "num_hidden_layers"}, 12);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, in.size({"n_head", "num_attention_heads"}, 12), true);
  layer.feed_forward = plain_feed_forward(in.derived("n_inner", 4 * model.d_model, "4 x n_embd"), true);
  if (in.has("add_cross_attention") && in.flag("add_cross_attention", false))
    in.fault("add_cross_attention", "cross-attention of this decoder is not supported");
  add_all(model, layer, layers);
}

/// GPT 1: norms after the blocks, so none at the end.
void openai_gpt(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("n_embd", 768);
  model.vocabulary = in.size("vocab_size", 40478);
  model.learned_positions = model.max_context = in.size("n_positions", 512);
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = layer_norm;
  model.final_norm = false;
  const std::int64_t layers = read_layers(in, {"n_layer"}, 12);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, in.size("n_head", 12), true);
  layer.feed_forward = plain_feed_forward(4 * model.d_model, true);
  add_all(model, layer, layers);
}

/// StarCoder 1: GPT-2 with a single key and value head.
void gpt_bigcode(ConfigReader& in, Transformer& model) {
  gpt2(in, model);
  if (!in.flag("multi_query", true)) return;
  for (Layer& layer : model.decoder.kinds) layer.attention->kv_heads = 1;
}

/// GPT-J: one norm feeds attention and feed-forward in parallel; only the latter has biases, and the head.
void gptj(ConfigReader& in, Transformer& model) {
  model.d_model = in.size({"n_embd", "hidden_size"}, 4096);
  model.vocabulary = in.size("vocab_size", 50400);
  model.max_context = in.size({"n_positions", "max_position_embeddings"}, 2048);
  model.tied = in.flag("tie_word_embeddings", false);
  model.norm = layer_norm;
  model.head_bias = true;
  const std::int64_t layers = read_layers(in, {"n_layer", "num_hidden_layers"}, 28);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, in.size({"n_head", "num_attention_heads"}, 16), false);
  layer.feed_forward = plain_feed_forward(in.derived("n_inner", 4 * model.d_model, "4 x n_embd"), true);
  layer.norms = 1;
  layer.parallel = true;
  in.ignore({"rotary_dim"});
  add_all(model, layer, layers);
}

/// GPT-Neo: queries, keys and values without biases; every other layer sees a window.
void gpt_neo(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 2048);
  model.vocabulary = in.size("vocab_size", 50257);
  model.learned_positions = model.max_context = in.size("max_position_embeddings", 2048);
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = layer_norm;
  const std::int64_t layers = read_layers(in, {"num_layers"}, 24);
  const std::int64_t window = in.size("window_size", 256);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, in.size("num_heads", 16), false);
  layer.attention->o_bias = true;
  layer.feed_forward = plain_feed_forward(in.derived("intermediate_size", 4 * model.d_model, "4 x hidden_size"), true);
  const auto types = in.texts("attention_layers");
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    layer.attention->window = (at < types.size() ? types[at] == "local" : i % 2 == 1) ? window : 0;
    model.decoder.add(layer);
  }
}

void gpt_neox(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 6144);
  model.vocabulary = in.size("vocab_size", 50432);
  model.max_context = in.size("max_position_embeddings", 2048);
  model.tied = in.flag("tie_word_embeddings", false);
  model.norm = layer_norm;
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 44);
  Layer layer;
  const std::int64_t heads = in.size("num_attention_heads", 64);
  layer.attention = plain_attention(in, model.d_model, heads, in.flag("attention_bias", true));
  layer.feed_forward = plain_feed_forward(in.size("intermediate_size", 24576), true);
  layer.parallel = in.flag("use_parallel_residual", true);
  add_all(model, layer, layers);
}

void opt(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 768);
  model.vocabulary = in.size("vocab_size", 50272);
  model.max_context = in.size("max_position_embeddings", 2048);
  model.learned_positions = model.max_context + 2;  // the table starts at two: a leftover of its tokenizer
  model.tied = in.flag("tie_word_embeddings", true);
  const std::int64_t embedded = in.derived("word_embed_proj_dim", model.d_model, "hidden_size");
  if (embedded != model.d_model) model.embedding_width = embedded;
  const bool affine = in.flag("layer_norm_elementwise_affine", true);
  model.norm = {.scale = affine, .bias = affine, .mean = true};
  const bool bias = in.flag("enable_bias", true);
  const bool before = in.flag("do_layer_norm_before", true);
  const bool removed = in.has("_remove_final_layer_norm") && in.flag("_remove_final_layer_norm", false);
  model.final_norm = before && !removed;
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 12);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, in.size("num_attention_heads", 12), bias);
  layer.feed_forward = plain_feed_forward(in.size("ffn_dim", 3072), bias);
  in.ignore({"layerdrop", "_remove_final_layer_norm"});
  add_all(model, layer, layers);
}

/// XGLM and BioGPT: OPT's layers after sinusoidal positions, or a table that starts at two.
void fill_xglm(ConfigReader& in, Transformer& model, Layer& layer, std::int64_t layers, std::int64_t heads) {
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = layer_norm;
  layer.attention = plain_attention(in, model.d_model, heads, true);
  layer.attention->rotary = false;
  in.ignore({"layerdrop"});
  add_all(model, layer, layers);
}

void xglm(ConfigReader& in, Transformer& model) {
  model.d_model = in.size({"d_model", "hidden_size"}, 1024);
  model.vocabulary = in.size("vocab_size", 256008);
  model.max_context = in.size("max_position_embeddings", 2048);
  Layer layer;
  layer.feed_forward = plain_feed_forward(in.size("ffn_dim", 4096), true);
  const std::int64_t layers = read_layers(in, {"num_layers", "num_hidden_layers"}, 24);
  fill_xglm(in, model, layer, layers, in.size({"attention_heads", "num_attention_heads"}, 16));
}

void biogpt(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 1024);
  model.vocabulary = in.size("vocab_size", 42384);
  model.max_context = in.size("max_position_embeddings", 1024);
  model.learned_positions = model.max_context + 2;
  Layer layer;
  layer.feed_forward = plain_feed_forward(in.size("intermediate_size", 4096), true);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 24);
  fill_xglm(in, model, layer, layers, in.size("num_attention_heads", 16));
}

void bloom(ConfigReader& in, Transformer& model) {
  model.d_model = in.size({"hidden_size", "n_embed", "n_embd"}, 64);
  model.vocabulary = in.size("vocab_size", 250880);
  model.max_context = in.count("seq_length", 0);
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = layer_norm;
  model.embedding_norm = true;
  const std::int64_t layers = read_layers(in, {"n_layer", "num_hidden_layers"}, 2);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, in.size({"n_head", "num_attention_heads"}, 8), true);
  layer.attention->rotary = false;  // scores decrease with distance
  layer.feed_forward = plain_feed_forward(4 * model.d_model, true);
  in.ignore({"n_inner", "skip_bias_add", "skip_bias_add_qkv", "masked_softmax_fusion", "offset_alibi"});
  add_all(model, layer, layers);
}

/// Falcon: one key and value head, or groups in the new architecture; parallel blocks with one norm or two.
void falcon(ConfigReader& in, Transformer& model) {
  model.d_model = in.size({"hidden_size", "n_embed"}, 4544);
  model.vocabulary = in.size("vocab_size", 65024);
  model.max_context = in.count("max_position_embeddings", 2048);
  model.tied = in.flag("tie_word_embeddings", true);
  model.norm = layer_norm;
  const std::int64_t layers = read_layers(in, {"num_hidden_layers", "n_layer"}, 32);
  const std::int64_t heads = in.size({"num_attention_heads", "n_head"}, 71);
  // The 40 B were first published under a type of their own that has groups of keys throughout.
  const bool is_new = in.flag("new_decoder_architecture", in.has("n_head_kv"));
  const bool multi_query = in.flag("multi_query", true);
  const bool bias = in.flag("bias", false);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, heads, bias);
  const std::int64_t kv_heads = in.count({"num_kv_heads", "n_head_kv"}, 0);
  layer.attention->kv_heads = is_new ? (kv_heads > 0 ? kv_heads : heads) : multi_query ? 1 : heads;
  check_groups(in, heads, layer.attention->kv_heads);
  const std::int64_t width = in.derived("ffn_hidden_size", 4 * model.d_model, "4 x hidden_size");
  layer.feed_forward = plain_feed_forward(width, bias);
  layer.parallel = in.flag("parallel_attn", true) || is_new;
  const std::int64_t norms = in.count("num_ln_in_parallel_attn", 0);
  layer.norms = is_new ? (norms == 1 ? 1 : 2) : layer.parallel ? 1 : 2;
  in.ignore({"alibi", "ff_factor"});
  add_all(model, layer, layers);
}

/// MPT: no biases at all unless switched on; ALiBi, or else a table of positions.
void mpt(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("d_model", 2048);
  model.vocabulary = in.size("vocab_size", 50368);
  model.max_context = in.size("max_seq_len", 2048);
  model.tied = in.flag("tie_word_embeddings", true);
  const bool bias = !in.flag("no_bias", true);
  model.norm = {.scale = true, .bias = bias, .mean = true};
  const std::int64_t layers = read_layers(in, {"n_layers"}, 24);
  const std::int64_t heads = in.size("n_heads", 16);
  Layer layer;
  layer.attention = plain_attention(in, model.d_model, heads, bias);
  const double ratio = in.factor("expansion_ratio", 4);
  layer.feed_forward = plain_feed_forward(
      std::max<std::int64_t>(static_cast<std::int64_t>(ratio * static_cast<double>(model.d_model)), 1), bias);
  bool alibi = false;
  if (const Json* object = in.object("attn_config")) {
    ConfigReader inner(*object, in.file(), "attn_config.");
    alibi = inner.flag("alibi", false);
    if (inner.flag("qk_ln", false)) layer.attention->qk_norm = Attention::QkNorm::whole;
    layer.attention->qk_norm_bias = layer.attention->qk_norm != Attention::QkNorm::none && bias;
    const std::string type = inner.text("attn_type", "multihead_attention");
    layer.attention->kv_heads =
        type == "multiquery_attention" ? 1 : inner.derived("kv_n_heads", heads, "the number of heads");
    check_groups(in, heads, layer.attention->kv_heads);
    inner.ignore({"attn_impl", "alibi_bias_max", "prefix_lm", "attn_uses_sequence_id"});
    inner.check_unread();
    in.take(inner);
  }
  if (in.flag("learned_pos_emb", true) && !alibi) model.learned_positions = model.max_context;
  layer.attention->rotary = false;
  in.ignore({"init_device", "init_config", "embedding_fraction", "emb_pdrop", "use_pad_tok_in_ffn"});
  add_all(model, layer, layers);
}

/// Phi 1 to 2 as their own code wrote them: the names of GPT-2.
Common read_old_phi(ConfigReader& in, Transformer& model) {
  Common common;
  model.d_model = in.size("n_embd");
  model.vocabulary = in.size("vocab_size", 51200);
  model.max_context = in.count("n_positions", 2048);
  model.tied = in.flag("tie_word_embeddings", false);
  common.layers = read_layers(in, {"n_layer"}, 24);
  common.layer.attention = plain_attention(in, model.d_model, in.size("n_head", 32), true);
  common.attention().kv_heads = in.derived("n_head_kv", common.attention().heads, "the number of heads");
  check_groups(in, common.attention().heads, common.attention().kv_heads);
  common.layer.feed_forward = plain_feed_forward(in.derived("n_inner", 4 * model.d_model, "4 x n_embd"), true);
  return common;
}

/// Phi 1 to 2: one norm feeds both blocks; biases everywhere, also of the head.
void phi(ConfigReader& in, Transformer& model) {
  Common common =
      in.has("n_embd")
          ? read_old_phi(in, model)
          : read_common(in, model,
                        {.hidden = 2048, .intermediate = 8192, .layers = 24, .heads = 32, .vocabulary = 51200});
  set_bias(common.attention(), true, true);
  if (in.flag("qk_layernorm", false)) {
    common.attention().qk_norm = Attention::QkNorm::per_head;
    common.attention().qk_norm_bias = true;
  }
  common.layer.feed_forward = plain_feed_forward(common.feed_forward().width, true);
  common.layer.norms = 1;
  common.layer.parallel = true;
  model.norm = layer_norm;
  model.head_bias = true;
  add_all(model, common.layer, common.layers);
}

void stablelm(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 2560,
                               .intermediate = 6912,
                               .layers = 32,
                               .heads = 32,
                               .kv_heads = 32,
                               .vocabulary = 50304,
                               .context = 4096});
  set_bias(common.attention(), in.flag("use_qkv_bias", false), false);
  if (in.flag("qk_layernorm", false)) common.attention().qk_norm = Attention::QkNorm::whole;
  common.layer.parallel = in.flag("use_parallel_residual", false);
  common.layer.norms = common.layer.parallel ? 1 : 2;
  model.norm = layer_norm;
  in.ignore({"num_heads"});  // of its own code, which means num_attention_heads
  add_all(model, common.layer, common.layers);
}

}  // namespace

std::span<const Family> classic_families() {
  static constexpr Family families[] = {
      {"gpt2", "GPT2LMHeadModel", &gpt2},
      {"openai-gpt", "OpenAIGPTLMHeadModel", &openai_gpt},
      {"gpt_bigcode", "GPTBigCodeForCausalLM", &gpt_bigcode},
      {"gptj", "GPTJForCausalLM", &gptj},
      {"codegen", "CodeGenForCausalLM", &gptj},
      {"gpt_neo", "GPTNeoForCausalLM", &gpt_neo},
      {"gpt_neox", "GPTNeoXForCausalLM", &gpt_neox},
      {"opt", "OPTForCausalLM", &opt},
      {"xglm", "XGLMForCausalLM", &xglm},
      {"biogpt", "BioGptForCausalLM", &biogpt},
      {"bloom", "BloomForCausalLM", &bloom},
      {"falcon", "FalconForCausalLM", &falcon},
      {"RefinedWeb", "RWForCausalLM", &falcon},
      {"RefinedWebModel", "", &falcon},
      {"mpt", "MPTForCausalLM", &mpt},
      {"phi", "PhiForCausalLM", &phi},
      {"phi-msft", "", &phi},
      {"stablelm", "StableLmForCausalLM", &stablelm},
      {"stablelm_epoch", "StableLMEpochForCausalLM", &stablelm},
  };
  return families;
}

}  // namespace assay::model
