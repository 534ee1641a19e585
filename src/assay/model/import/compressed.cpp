// DeepSeek V4: a window of keys plus keys that stand for several tokens each, all of them or only those that an
// index picks; several residual streams; in some layers the token alone selects the experts.
#include <fmt/format.h>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {

void read_index(ConfigReader& in, Attention& attention, std::int64_t heads, std::int64_t picks) {
  attention.index_heads = in.size("index_n_heads", heads);
  attention.index_dim = in.size("index_head_dim", 128);
  attention.index_picks = in.size("index_topk", picks);
  if (attention.q_rank == 0)
    in.fault("q_lora_rank", "the index works on compressed queries, so these must have a rank");
}

namespace {

/// Keys that a layer sees beyond its window.
struct Compressed {
  std::int64_t tokens = 0;  ///< per key; 0: nothing
  bool sparse = false;      ///< windows overlap, and an index picks among the keys
};

/// From layer types and their rates, or from one list, which may also include the layers that predict further tokens.
std::vector<Compressed> read_compressed(ConfigReader& in, std::int64_t layers) {
  constexpr std::string_view plain = "sliding_attention", sparse = "compressed_sparse_attention",
                             heavy = "heavily_compressed_attention";
  std::int64_t few = 4, many = 128;
  if (const Json* object = in.object("compress_rates")) {
    ConfigReader rates(*object, in.file(), "compress_rates.");
    few = rates.size(sparse, few);
    many = rates.size(heavy, many);
    in.take(rates);
  }
  if (in.has("compress_rate_csa")) few = in.size("compress_rate_csa");
  if (in.has("compress_rate_hca")) many = in.size("compress_rate_hca");
  const auto types = in.texts("layer_types");
  const auto ratios = in.sizes("compress_ratios");
  std::vector<Compressed> out;
  for (const std::string& type : types) {
    if (type != plain && type != sparse && type != heavy)
      in.fault("layer_types", fmt::format("unknown layer type {}", in_quotes(type)));
    out.push_back({type == plain ? 0 : type == sparse ? few : many, type == sparse});
  }
  if (types.empty())
    for (const std::int64_t ratio : ratios) out.push_back({ratio, ratio > 0 && ratio == few});
  if (out.empty()) {
    in.note("compress_ratios not given: keys of many tokens in the first two layers, then of many and few by turns");
    for (std::int64_t i = 0; i < layers; ++i)
      out.push_back(i % 2 == 0 || i < 2 ? Compressed{many} : Compressed{few, true});
  }
  if (std::ssize(out) < layers)
    in.fault(types.empty() ? "compress_ratios" : "layer_types",
             fmt::format("lists {} layers, num_hidden_layers is {}", out.size(), layers));
  out.resize(static_cast<std::size_t>(layers));
  return out;
}

/// Which layers look up their experts by the token, and so need no balancing.
std::vector<bool> read_looked_up(ConfigReader& in, std::int64_t layers) {
  std::vector<bool> out(static_cast<std::size_t>(layers));
  const auto types = in.texts("mlp_layer_types");
  if (!types.empty() && std::ssize(types) != layers)
    in.fault("mlp_layer_types", fmt::format("lists {} layers, num_hidden_layers is {}", types.size(), layers));
  const std::int64_t first = types.empty() ? in.count("num_hash_layers", 3) : 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = i < types.size() ? types[i] == "hash_moe" : static_cast<std::int64_t>(i) < first;
  return out;
}

void deepseek_v4(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("hidden_size", 4096);
  model.vocabulary = in.size("vocab_size", 129280);
  model.max_context = in.count("max_position_embeddings", 1048576);
  model.tied = in.flag("tie_word_embeddings", false);
  model.streams = in.size("hc_mult", 4);
  model.prediction_layers = in.count("num_nextn_predict_layers", 1);
  const std::int64_t layers = read_layers(in, {"num_hidden_layers"}, 43);
  Attention attention{.heads = in.size("num_attention_heads", 64), .kv_heads = in.size("num_key_value_heads", 1)};
  check_groups(in, attention.heads, attention.kv_heads);
  attention.head_dim = attention.value_dim = in.size("head_dim", 512);
  attention.q_rank = in.size("q_lora_rank", 1024);
  attention.window = in.size("sliding_window", 128);
  attention.qk_norm = Attention::QkNorm::keys;  // the query norm has no parameters
  attention.sinks = attention.values_are_keys = attention.one_cache = true;
  attention.output_groups = in.size("o_groups", 8);
  attention.output_rank = in.size("o_lora_rank", 1024);
  if (attention.heads % attention.output_groups != 0)
    in.fault("o_groups", fmt::format("must divide the {} heads, got {}", attention.heads, attention.output_groups));
  Attention indexed = attention;
  read_index(in, indexed, 64, 512);
  indexed.overlapping = true;
  FeedForward experts;
  experts.width =
      in.has("moe_intermediate_size") ? in.size("moe_intermediate_size") : in.size("intermediate_size", 2048);
  in.ignore({"intermediate_size"});
  experts.experts = in.size("n_routed_experts", 256);
  experts.experts_per_token = in.size("num_experts_per_tok", 6);
  experts.shared_width = in.count("n_shared_experts", 1) * experts.width;
  check_experts(in, experts, "num_experts_per_tok");
  const auto compressed = read_compressed(in, layers);
  const auto looked_up = read_looked_up(in, layers);
  in.ignore({"qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank", "hc_sinkhorn_iters", "first_k_dense_replace"});
  for (std::size_t i = 0; i < compressed.size(); ++i) {
    Layer layer;
    layer.attention = compressed[i].sparse ? indexed : attention;
    layer.attention->compression = compressed[i].tokens;
    layer.feed_forward = experts;
    layer.feed_forward->router_correction = !looked_up[i];
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> compressed_families() {
  static constexpr Family families[] = {{"deepseek_v4", "DeepseekV4ForCausalLM", &deepseek_v4}};
  return families;
}

}  // namespace assay::model
