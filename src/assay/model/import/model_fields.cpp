// The fields of a model by the names that the files of catalogue/architectures use.
#include <algorithm>
#include <array>
#include <iterator>

#include "assay/model/import/architecture.h"
#include "assay/model/mixers.h"

namespace assay::model {
namespace {

constexpr std::string_view qk_norm_words[] = {"none", "per_head", "keys", "whole"};
constexpr auto mixer_words = [] {
  std::array<std::string_view, std::size(mixers)> words{};
  for (const Mixer& mixer : mixers) words[static_cast<std::size_t>(mixer.kind)] = mixer.word;
  return words;
}();
constexpr std::string_view norm_words[] = {"rms", "layer", "layer_without_bias", "composed_layer", "none"};

/// A size is at least 1: a wrong one was reported where it was read.
std::int64_t size(const Value& value) { return std::max<std::int64_t>(value.whole(), 1); }
std::int64_t count(const Value& value) { return std::max<std::int64_t>(value.whole(), 0); }
int small(const Value& value) { return static_cast<int>(std::clamp<std::int64_t>(value.whole(), 0, most_layers)); }

/// The enumerator of a word; of an unknown one, the first.
template <class E>
E enumerator(const Value& value, std::span<const std::string_view> words) {
  const auto at = std::find(words.begin(), words.end(), value.text());
  return at == words.end() ? E{} : static_cast<E>(at - words.begin());
}

Norm norm_of(const Value& value) {
  const std::string& text = value.text();
  return {.scale = text != "none",
          .bias = text == "layer",
          .mean = text == "layer" || text == "layer_without_bias" || text == "composed_layer",
          .composed = text == "composed_layer"};
}

}  // namespace

std::span<const ModelField<Transformer>> transformer_fields() {
  using T = Transformer;
  static constexpr ModelField<T> fields[] = {
      {"d_model", [](T& m, const Value& v) { m.d_model = size(v); }},
      {"vocabulary", [](T& m, const Value& v) { m.vocabulary = size(v); }},
      {"max_context", [](T& m, const Value& v) { m.max_context = count(v); }},
      {"learned_positions", [](T& m, const Value& v) { m.learned_positions = count(v); }},
      {"token_types", [](T& m, const Value& v) { m.token_types = count(v); }},
      {"embedding_width", [](T& m, const Value& v) { m.embedding_width = count(v); }},
      {"narrow_positions", [](T& m, const Value& v) { m.narrow_positions = v.truth(); }},
      {"token_input_vocabulary", [](T& m, const Value& v) { m.token_input_vocabulary = count(v); }},
      {"extra_embeddings", [](T& m, const Value& v) { m.extra_embeddings = count(v); }},
      {"streams", [](T& m, const Value& v) { m.streams = size(v); }},
      {"one_stream_works", [](T& m, const Value& v) { m.one_stream_works = v.truth(); }},
      {"tied", [](T& m, const Value& v) { m.tied = v.truth(); }},
      {"head", [](T& m, const Value& v) { m.head = v.truth(); }},
      {"head_bias", [](T& m, const Value& v) { m.head_bias = v.truth(); }},
      {"head_transform", [](T& m, const Value& v) { m.head_transform = v.truth(); }},
      {"pooler", [](T& m, const Value& v) { m.pooler = v.truth(); }},
      {"embedding_norm", [](T& m, const Value& v) { m.embedding_norm = v.truth(); }},
      {"final_norm", [](T& m, const Value& v) { m.final_norm = v.truth(); }},
      {"norm", [](T& m, const Value& v) { m.norm = norm_of(v); }, norm_words},
      {"norm_scale", [](T& m, const Value& v) { m.norm.scale = v.truth(); }},
      {"norm_bias", [](T& m, const Value& v) { m.norm.bias = v.truth(); }},
      {"norm_mean", [](T& m, const Value& v) { m.norm.mean = v.truth(); }},
      {"logits", [](T& m, const Value& v) { m.logits = enumerator<Logits>(v, logits_names); }, logits_names},
      {"prediction_layers", [](T& m, const Value& v) { m.prediction_layers = count(v); }},
  };
  return fields;
}

std::span<const ModelField<Attention>> attention_fields() {
  using T = Attention;
  static constexpr ModelField<T> fields[] = {
      {"heads", [](T& a, const Value& v) { a.heads = a.kv_heads = size(v); }},
      {"kv_heads", [](T& a, const Value& v) { a.kv_heads = size(v); }},
      {"head_dim", [](T& a, const Value& v) { a.head_dim = a.value_dim = size(v); }},
      {"value_dim", [](T& a, const Value& v) { a.value_dim = size(v); }},
      {"q_rank", [](T& a, const Value& v) { a.q_rank = count(v); }},
      {"kv_rank", [](T& a, const Value& v) { a.kv_rank = count(v); }},
      {"rope_dim", [](T& a, const Value& v) { a.rope_dim = count(v); }},
      {"window", [](T& a, const Value& v) { a.window = count(v); }},
      {"chunk", [](T& a, const Value& v) { a.chunk = count(v); }},
      {"bias", [](T& a, const Value& v) { a.q_bias = a.k_bias = a.v_bias = a.o_bias = v.truth(); }},
      {"qkv_bias", [](T& a, const Value& v) { a.q_bias = a.k_bias = a.v_bias = v.truth(); }},
      {"o_bias", [](T& a, const Value& v) { a.o_bias = v.truth(); }},
      {"qk_norm", [](T& a, const Value& v) { a.qk_norm = enumerator<T::QkNorm>(v, qk_norm_words); }, qk_norm_words},
      {"qk_norm_bias", [](T& a, const Value& v) { a.qk_norm_bias = v.truth(); }},
      {"sinks", [](T& a, const Value& v) { a.sinks = v.truth(); }},
      {"rotary", [](T& a, const Value& v) { a.rotary = v.truth(); }},
      {"output_gate", [](T& a, const Value& v) { a.output_gate = v.truth(); }},
      {"shares_kv", [](T& a, const Value& v) { a.shares_kv = v.truth(); }},
      {"idle_kv", [](T& a, const Value& v) { a.idle_kv = v.truth(); }},
      {"values_are_keys", [](T& a, const Value& v) { a.values_are_keys = v.truth(); }},
      {"one_cache", [](T& a, const Value& v) { a.one_cache = v.truth(); }},
      {"compression", [](T& a, const Value& v) { a.compression = count(v); }},
      {"overlapping", [](T& a, const Value& v) { a.overlapping = v.truth(); }},
      {"index_heads", [](T& a, const Value& v) { a.index_heads = count(v); }},
      {"index_dim", [](T& a, const Value& v) { a.index_dim = count(v); }},
      {"index_picks", [](T& a, const Value& v) { a.index_picks = count(v); }},
      {"output_groups", [](T& a, const Value& v) { a.output_groups = count(v); }},
      {"output_rank", [](T& a, const Value& v) { a.output_rank = count(v); }},
      {"causal", [](T& a, const Value& v) { a.causal = v.truth(); }},
      {"cross", [](T& a, const Value& v) { a.cross = v.truth(); }},
      {"relative_buckets", [](T& a, const Value& v) { a.relative_buckets = count(v); }},
      {"relative_projection", [](T& a, const Value& v) { a.relative_projection = v.truth(); }},
      {"turned", [](T& a, const Value& v) { a.turned = count(v); }},
      {"joined", [](T& a, const Value& v) { a.joined = enumerator<JoinedProjection>(v, projection_names); },
       projection_names},
      {"rotation", [](T& a, const Value& v) { a.rotation = enumerator<Rotation>(v, rotation_names); }, rotation_names},
  };
  return fields;
}

std::span<const ModelField<StateSpace>> state_space_fields() {
  using T = StateSpace;
  static constexpr ModelField<T> fields[] = {
      {"kind", [](T& s, const Value& v) { s.kind = enumerator<T::Kind>(v, mixer_words); }, mixer_words},
      {"inner", [](T& s, const Value& v) { s.inner = size(v); }},
      {"heads", [](T& s, const Value& v) { s.heads = size(v); }},
      {"key_heads", [](T& s, const Value& v) { s.key_heads = size(v); }},
      {"key_dim", [](T& s, const Value& v) { s.key_dim = size(v); }},
      {"convolution", [](T& s, const Value& v) { s.convolution = count(v); }},
      {"chunk", [](T& s, const Value& v) { s.chunk = size(v); }},
      {"dt_rank", [](T& s, const Value& v) { s.dt_rank = count(v); }},
      {"gate_rank", [](T& s, const Value& v) { s.gate_rank = count(v); }},
      {"decay_rank", [](T& s, const Value& v) { s.decay_rank = count(v); }},
      {"mix_rank", [](T& s, const Value& v) { s.mix_rank = count(v); }},
      {"rate_rank", [](T& s, const Value& v) { s.rate_rank = count(v); }},
      {"value_rank", [](T& s, const Value& v) { s.value_rank = count(v); }},
      {"lends_values", [](T& s, const Value& v) { s.lends_values = v.truth(); }},
      {"convolution_bias", [](T& s, const Value& v) { s.convolution_bias = v.truth(); }},
      {"projection_bias", [](T& s, const Value& v) { s.projection_bias = v.truth(); }},
      {"inner_norms", [](T& s, const Value& v) { s.inner_norms = v.truth(); }},
      {"output_norm", [](T& s, const Value& v) { s.output_norm = v.truth(); }},
  };
  return fields;
}

std::span<const ModelField<FeedForward>> feed_forward_fields() {
  using T = FeedForward;
  static constexpr ModelField<T> fields[] = {
      {"width", [](T& f, const Value& v) { f.width = size(v); }},
      {"gated", [](T& f, const Value& v) { f.gated = v.truth(); }},
      {"shifted", [](T& f, const Value& v) { f.shifted = v.truth(); }},
      {"receptance", [](T& f, const Value& v) { f.receptance = v.truth(); }},
      {"bias", [](T& f, const Value& v) { f.up_bias = f.down_bias = v.truth(); }},
      {"experts", [](T& f, const Value& v) { f.experts = count(v); }},
      {"experts_per_token", [](T& f, const Value& v) { f.experts_per_token = count(v); }},
      {"expert_groups", [](T& f, const Value& v) { f.expert_groups = size(v); }},
      {"groups_per_token", [](T& f, const Value& v) { f.groups_per_token = size(v); }},
      {"shared_width", [](T& f, const Value& v) { f.shared_width = count(v); }},
      {"latent", [](T& f, const Value& v) { f.latent = count(v); }},
      {"zero_experts", [](T& f, const Value& v) { f.zero_experts = count(v); }},
      {"activation_scales", [](T& f, const Value& v) { f.activation_scales = count(v); }},
      {"shared_gate", [](T& f, const Value& v) { f.shared_gate = v.truth(); }},
      {"router_bias", [](T& f, const Value& v) { f.router_bias = v.truth(); }},
      {"router_correction", [](T& f, const Value& v) { f.router_correction = v.truth(); }},
      {"router_scale", [](T& f, const Value& v) { f.router_scale = v.truth(); }},
      {"joined", [](T& f, const Value& v) { f.joined = v.truth(); }},
  };
  return fields;
}

std::span<const ModelField<SharedBlock>> shared_fields() {
  using T = SharedBlock;
  static constexpr ModelField<T> fields[] = {
      {"number", [](T& s, const Value& v) { s.number = small(v); }},
      {"aside", [](T& s, const Value& v) { s.aside = v.truth(); }},
      {"attention_rank", [](T& s, const Value& v) { s.attention_rank = count(v); }},
      {"feed_forward_rank", [](T& s, const Value& v) { s.feed_forward_rank = count(v); }},
  };
  return fields;
}

std::span<const ModelField<Layer>> layer_fields() {
  using T = Layer;
  static constexpr ModelField<T> fields[] = {
      {"norms", [](T& l, const Value& v) { l.norms = small(v); }},
      {"token_input", [](T& l, const Value& v) { l.token_input = count(v); }},
      {"parallel", [](T& l, const Value& v) { l.parallel = v.truth(); }},
      {"bypass_rank", [](T& l, const Value& v) { l.bypass_rank = count(v); }},
      {"needs_image", [](T& l, const Value& v) { l.needs_image = v.truth(); }},
  };
  return fields;
}

namespace {

template <class F>
void with_fields(std::string_view part, F use) {
  if (part == "model") use(transformer_fields());
  if (part == "attention" || part == "cross_attention") use(attention_fields());
  if (part == "state_space") use(state_space_fields());
  if (part == "mlp" || part == "experts") use(feed_forward_fields());
  if (part == "shared") use(shared_fields());
  if (part == "layer") use(layer_fields());
}

}  // namespace

std::vector<std::string> field_names(std::string_view part) {
  std::vector<std::string> names;
  with_fields(part, [&](auto fields) {
    for (const auto& field : fields) names.emplace_back(field.name);
  });
  if (part == "layer") names.insert(names.end(), std::begin(part_names), std::end(part_names) - 1);
  return names;
}

std::span<const std::string_view> field_words(std::string_view part, std::string_view name) {
  std::span<const std::string_view> words;
  with_fields(part, [&](auto fields) {
    for (const auto& field : fields)
      if (field.name == name) words = field.words;
  });
  return words;
}

}  // namespace assay::model
