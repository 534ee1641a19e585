// The families of configurations: each reads its keys and fills a model. Shared by config_import.cpp and import_*.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/model/import/config_reader.h"
#include "assay/model/transformer.h"

namespace assay::model {

/// LayerNorm with scale and bias, as in GPT-2.
inline constexpr Norm layer_norm{.scale = true, .bias = true, .mean = true};

/// One kind of configuration.
struct Family {
  std::string_view model_type;
  std::string_view architecture;  ///< of `architectures`, where model_type is missing
  void (*fill)(ConfigReader&, Transformer&);
};

std::span<const Family> llama_families();
std::span<const Family> expert_families();
std::span<const Family> latent_families();
std::span<const Family> compressed_families();
std::span<const Family> classic_families();
std::span<const Family> dense_families();
std::span<const Family> encoder_families();
std::span<const Family> recurrent_families();
std::span<const Family> rwkv_families();
std::span<const Family> state_space_families();
std::span<const Family> gemma4_families();
std::span<const Family> hybrid_families();
std::span<const Family> encoder_decoder_families();
std::span<const Family> generic_families();
std::span<const Family> renamed_families();
std::span<const Family> shared_families();

/// Defaults of the fields that llama-like configurations share.
struct CommonDefaults {
  std::int64_t hidden, intermediate, layers, heads;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  std::int64_t vocabulary = 32000;
  std::int64_t context = 2048;
  bool tied = false;
};

/// The values of those fields: the model's outer part, one dense layer, and the number of layers.
struct Common {
  Layer layer;
  std::int64_t layers = 1;

  Attention& attention() { return *layer.attention; }
  FeedForward& feed_forward() { return *layer.feed_forward; }
};

/// Reads the shared fields. A family without intermediate_size passes `intermediate` < 0 and sets the width itself.
Common read_common(ConfigReader& in, Transformer& model, const CommonDefaults& defaults);

/// Number of layers, within the accepted range.
std::int64_t read_layers(ConfigReader& in, ConfigReader::Keys keys, std::int64_t fallback);
/// head_dim, or hidden / heads, which must divide.
std::int64_t read_head_dim(ConfigReader& in, std::string_view key, std::int64_t hidden, std::int64_t heads);
/// kv_heads must divide heads.
void check_groups(ConfigReader& in, std::int64_t heads, std::int64_t kv_heads);
/// experts_per_token must be between one and experts.
void check_experts(ConfigReader& in, const FeedForward& feed_forward, std::string_view k_key);

/// layer_types as the library lists them, checked for their number; empty if not given.
std::vector<std::string> read_layer_types(ConfigReader& in, std::int64_t layers);

/// Adds `layers` layers; those whose type is "sliding_attention" get the window, the others none.
void add_windowed(ConfigReader& in, Transformer& model, const Common& common, std::int64_t window,
                  bool (*is_sliding)(std::int64_t index, std::int64_t period), std::int64_t period);

/// Layers that slide have positions, the others have none.
void turn_windows_only(Transformer& model);
/// Which layers have positions: those with a one in no_rope_layers, or all but each no_rope_layer_interval-th.
std::vector<bool> read_turning(ConfigReader& in, std::int64_t layers);

/// Experts for the layers that `is_sparse` picks, the dense feed-forward block for the others.
template <class F>
void add_mixed(Transformer& model, const Common& common, const FeedForward& experts, F is_sparse) {
  Layer sparse = common.layer;
  sparse.feed_forward = experts;
  for (std::int64_t i = 0; i < common.layers; ++i) model.decoder.add(is_sparse(i) ? sparse : common.layer);
}

/// All biases of an attention at once.
void set_bias(Attention& attention, bool qkv, bool output);
/// `attention_bias` of the common fields: of queries, keys, values and the result alike.
void read_attention_bias(ConfigReader& in, Attention& attention);
/// The Mamba 1 and 2 mixers of hybrids, whose keys start with mamba_.
StateSpace read_mamba1(ConfigReader& in, std::int64_t hidden);
StateSpace read_mamba2(ConfigReader& in, std::int64_t hidden, std::int64_t heads, std::int64_t state);
/// The light attention that picks keys for sparse attention; it reads compressed queries.
void read_index(ConfigReader& in, Attention& attention, std::int64_t heads, std::int64_t picks);
/// All layers alike.
void add_all(Transformer& model, const Common& common);

}  // namespace assay::model
