// Encoders without a decoder: BERT, RoBERTa, ALBERT, DistilBERT, ModernBERT.
#include <fmt/format.h>

#include <algorithm>

#include "assay/model/import/families.h"

namespace assay::model {
namespace {

/// All tokens see each other; LayerNorms after the blocks and the embeddings, biases everywhere, learned positions.
void fill_encoder(ConfigReader& in, Transformer& model, std::int64_t layers, std::int64_t heads, std::int64_t width) {
  model.norm = {.scale = true, .bias = true, .mean = true};
  model.embedding_norm = true;
  model.final_norm = false;
  Attention a{.heads = heads, .kv_heads = heads};
  a.head_dim = a.value_dim = read_head_dim(in, "head_dim", model.d_model, heads);
  a.causal = a.rotary = false;
  set_bias(a, true, true);
  Layer layer;
  layer.attention = a;
  layer.feed_forward = FeedForward{.width = width, .gated = false, .up_bias = true, .down_bias = true};
  for (std::int64_t i = 0; i < layers; ++i) model.decoder.add(layer);
}

/// The top of the model: a language-model head tied to the embedding, or a pooler of the sequence.
void read_top(ConfigReader& in, Transformer& model, bool pools) {
  const auto architectures = in.texts("architectures");
  const std::string name = architectures.empty() ? "ForMaskedLM" : architectures.front();
  const bool pretrains = name.ends_with("ForPreTraining");
  model.tied = in.flag("tie_word_embeddings", true);
  model.head = model.head_bias = model.head_transform = pretrains || name.ends_with("ForMaskedLM");
  model.pooler = pools && (pretrains || !model.head);
  if (pretrains) in.note("the next-sentence head is not counted");
  if (!model.head && !name.ends_with("Model")) in.note(fmt::format("the head of {} is not counted", name));
}

void bert(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 768);
  model.vocabulary = in.size("vocab_size", 30522);
  model.max_context = model.learned_positions = in.size("max_position_embeddings", 512);
  model.token_types = in.count("type_vocab_size", 2);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 12);
  const std::int64_t heads = in.size("num_attention_heads", 12);
  fill_encoder(in, model, layers, heads, in.size("intermediate_size", 3072));
  read_top(in, model, true);
  in.ignore({"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head"});
}

/// RoBERTa: the table of positions starts at two.
void roberta(ConfigReader& in, Transformer& model) {
  bert(in, model);
  model.max_context = std::max<std::int64_t>(model.learned_positions - 2, 1);
}

/// ALBERT: layers share their weights, all of them or in groups, and the embedding is narrow.
void albert(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 4096);
  model.vocabulary = in.size("vocab_size", 30000);
  model.embedding_width = in.size("embedding_size", 128);
  model.narrow_positions = true;
  if (model.embedding_width == model.d_model)
    in.fault("embedding_size", "an embedding as wide as the layers is not supported", "ALBERT's is narrow: 128");
  model.max_context = model.learned_positions = in.size("max_position_embeddings", 512);
  model.token_types = in.count("type_vocab_size", 2);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 12), heads = in.size("num_attention_heads", 64);
  fill_encoder(in, model, layers, heads, in.size("intermediate_size", 16384));
  const std::int64_t groups = in.size("num_hidden_groups", 1);
  if (in.size("inner_group_num", 1) != 1) in.fault("inner_group_num", "groups of different layers are not supported");
  if (layers % groups != 0)
    return in.fault("num_hidden_groups", fmt::format("must divide the {} layers, got {}", layers, groups));
  Layer layer = model.decoder.kinds.front();
  model.decoder = {};
  for (std::int64_t i = 0; i < layers; ++i) {
    layer.shared = SharedBlock{.number = static_cast<int>(i / (layers / groups)) + 1};
    model.decoder.add(layer);
  }
  read_top(in, model, true);
  in.ignore({"net_structure_type", "num_memory_blocks", "gap_size", "down_scale_factor", "classifier_dropout_prob"});
}

void distilbert(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("dim", 768);
  model.vocabulary = in.size("vocab_size", 30522);
  model.max_context = model.learned_positions = in.size("max_position_embeddings", 512);
  const std::int64_t layers = read_layers(in, {"n_layers"}, 6), heads = in.size("n_heads", 12);
  fill_encoder(in, model, layers, heads, in.size("hidden_dim", 3072));
  read_top(in, model, false);
}

/// ModernBERT: gated blocks, rotary positions, windows to both sides in all but each n-th layer; the first norm is the
/// embedding norm.
void modernbert(ConfigReader& in, Transformer& model) {
  Common common = read_common(in, model,
                              {.hidden = 768,
                               .intermediate = 1152,
                               .layers = 22,
                               .heads = 12,
                               .vocabulary = 50368,
                               .context = 8192,
                               .tied = true});
  read_attention_bias(in, common.attention());
  common.attention().causal = false;
  common.feed_forward().up_bias = common.feed_forward().down_bias = in.flag("mlp_bias", false);
  model.norm = {.scale = true, .bias = in.flag("norm_bias", false), .mean = true};
  model.embedding_norm = true;
  read_top(in, model, false);
  const bool bias = in.flag("decoder_bias", true);
  model.head_bias = model.head && bias;
  const std::int64_t window = in.count("local_attention", 128) / 2 * 2 + 1;
  const std::int64_t step = in.size("global_attn_every_n_layers", 3);
  in.ignore({"classifier_bias", "layer_types", "sliding_window"});
  for (std::int64_t i = 0; i < common.layers; ++i) {
    common.attention().window = i % step == 0 ? 0 : window;
    common.layer.norms = i == 0 ? 1 : 2;
    model.decoder.add(common.layer);
  }
}

}  // namespace

std::span<const Family> encoder_families() {
  static constexpr Family families[] = {
      {"bert", "BertForMaskedLM", &bert},
      {"roberta", "RobertaForMaskedLM", &roberta},
      {"xlm-roberta", "XLMRobertaForMaskedLM", &roberta},
      {"camembert", "CamembertForMaskedLM", &roberta},
      {"albert", "AlbertForMaskedLM", &albert},
      {"distilbert", "DistilBertForMaskedLM", &distilbert},
      {"modernbert", "ModernBertForMaskedLM", &modernbert},
  };
  return families;
}

}  // namespace assay::model
