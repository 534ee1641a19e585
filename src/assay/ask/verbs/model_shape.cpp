#include "assay/ask/verbs/model_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"

namespace assay::verbs {

namespace {

using Traits = std::vector<std::string_view>;

void add_traits(const model::Attention& a, Traits& out) {
  using QkNorm = model::Attention::QkNorm;
  const std::pair<std::string_view, bool> all[] = {
      {"latent-attention", a.kv_rank > 0},
      {"compressed-queries", a.q_rank > 0 && a.kv_rank == 0},
      {"chunked-attention", a.chunk > 0},
      {"sparse-attention", a.compression > 0 || a.index_heads > 0},
      {"attention-sinks", a.sinks},
      {"gated-attention", a.output_gate},
      {"biases-of-queries-keys-and-values", (a.q_bias || a.k_bias || a.v_bias) && !a.o_bias},
      {"norms-of-queries-and-keys", a.qk_norm == QkNorm::per_head},
      {"norms-across-heads", a.qk_norm == QkNorm::whole},
      {"norms-of-keys-alone", a.qk_norm == QkNorm::keys},
      {"shared-keys-and-values", a.shares_kv || a.values_are_keys || a.one_cache},
      {"grouped-output-projections", a.output_groups > 0},
      {"attention-in-both-directions", !a.causal},
      {"relative-positions", a.relative_buckets > 0 || a.relative_projection},
      {"partly-rotated-heads", a.rotary && a.turned > 0}};
  for (const auto& [word, has] : all)
    if (has) out.push_back(word);
}

void add_traits(const model::FeedForward& f, Traits& out) {
  const std::pair<std::string_view, bool> all[] = {{"shared-experts", f.shared_width > 0},
                                                   {"gates-of-shared-experts", f.shared_gate},
                                                   {"latent-experts", f.latent > 0},
                                                   {"experts-that-do-nothing", f.zero_experts > 0},
                                                   {"scaled-routing", f.router_scale},
                                                   {"biases-of-routers", f.router_bias && !f.down_bias},
                                                   {"balancing-by-biases", f.router_correction},
                                                   {"groups-of-experts", f.expert_groups > 1},
                                                   {"token-shift", f.shifted},
                                                   {"learned-activations", f.activation_scales > 0},
                                                   {"squared-relu", f.function == model::Activation::relu2}};
  for (const auto& [word, has] : all)
    if (has) out.push_back(word);
}

void add_traits(const model::Transformer& model, Traits& out) {
  const std::pair<std::string_view, bool> all[] = {
      {"an-encoder", model.encoder.has_value()},
      {"adapters", model.adapters.has_value()},
      {"no-head", !model.head},
      {"a-norm-of-embeddings", model.embedding_norm},
      {"a-narrow-embedding", model.embedding_width > 0},
      {"segments", model.token_types > 0},
      {"a-transform-before-the-head", model.head_transform || model.head_bias || model.pooler},
      {"no-last-norm", !model.final_norm},
      {"norms-without-weights", !model.norm.scale},
      {"layer-norms-without-bias", model.norm.mean && !model.norm.bias && model.norm.scale},
      {"scaled-logits", model.logits == model::Logits::scaled},
      {"capped-logits", model.logits == model::Logits::capped},
      {"several-residual-streams", model.streams > 1},
      {"inputs-of-layers-by-token", model.token_input_vocabulary > 0}};
  for (const auto& [word, has] : all)
    if (has) out.push_back(word);
}

/// Layers of a stack by a property, as programs read lists of them: "([0]*3+[1]*58)", "([1]*1+[0]*1)*12"; empty where
/// all layers are alike.
template <class Property>
std::string pattern_of(const model::LayerStack& stack, const Property& has) {
  std::vector<bool> marks;
  for (const std::uint16_t kind : stack.order) marks.push_back(has(stack.kinds[kind]));
  if (std::adjacent_find(marks.begin(), marks.end(), std::not_equal_to<>()) == marks.end()) return "";
  std::size_t period = 1;
  const auto repeats = [&] {
    if (marks.size() % period != 0) return false;
    return std::equal(marks.begin() + static_cast<std::ptrdiff_t>(period), marks.end(), marks.begin());
  };
  while (!repeats()) ++period;
  std::string out = "(";
  for (std::size_t first = 0, end = 0; first < period; first = end) {
    while (end < period && marks[end] == marks[first]) ++end;
    out += fmt::format("{}[{}]*{}", first > 0 ? "+" : "", marks[first] ? 1 : 0, end - first);
  }
  return out + (period < marks.size() ? fmt::format(")*{}", marks.size() / period) : ")");
}

bool has_experts(const model::Layer& layer) { return layer.has_experts(); }
bool has_window(const model::Layer& layer) { return layer.attention && layer.attention->window > 0; }
bool has_no_position(const model::Layer& layer) { return layer.attention && !layer.attention->rotary; }

/// The window of all layers that have one; nothing where they differ.
std::optional<std::int64_t> window_of(const model::LayerStack& stack) {
  std::optional<std::int64_t> out;
  for (const model::Layer& layer : stack.kinds) {
    if (!has_window(layer)) continue;
    if (out && *out != layer.attention->window) return std::nullopt;
    out = layer.attention->window;
  }
  return out.value_or(0);
}

/// What sets a model apart from layers of causal attention and a feed-forward block, one after the other.
std::string traits_of(const model::Transformer& model) {
  Traits out;
  add_traits(model, out);
  const bool some_turn = std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(),
                                     [](const model::Layer& l) { return l.attention && l.attention->rotary; });
  for (const model::Layer& layer : model.decoder.kinds) {
    const std::pair<std::string_view, bool> all[] = {
        {"state-spaces", layer.state_space.has_value()},
        {"layers-of-one-block", !layer.feed_forward || !(layer.attention || layer.state_space)},
        {"shared-layers", layer.shared.has_value()},
        {"parallel-blocks", layer.parallel},
        {"norms-after-blocks", layer.norms > 2},
        {"images", layer.needs_image},
        {"a-bypass-of-attention", layer.bypass_rank > 0},
        {"layers-without-positions", some_turn && has_no_position(layer)},
        {"positions-neither-rotated-nor-learned",
         !some_turn && has_no_position(layer) && model.learned_positions == 0}};
    for (const auto& [word, has] : all)
      if (has) out.push_back(word);
    if (layer.attention) add_traits(*layer.attention, out);
    if (layer.feed_forward) add_traits(*layer.feed_forward, out);
  }
  if (const auto window = window_of(model.decoder); !window)
    out.push_back("windows-of-several-sizes");
  else if (*window > 0)
    out.push_back(pattern_of(model.decoder, has_window).empty() ? "sliding-windows" : "windows-in-some-layers");
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return join(std::vector<std::string>(out.begin(), out.end()), ",");
}

/// The model with what a sequence of this length shows of it: windows and chunks that are no shorter change nothing.
model::Transformer seen_by(model::Transformer model, std::int64_t sequence) {
  for (model::Layer& layer : model.decoder.kinds) {
    if (!layer.attention) continue;
    if (layer.attention->window >= sequence) layer.attention->window = 0;
    if (layer.attention->chunk >= sequence) layer.attention->chunk = 0;
  }
  return model;
}

}  // namespace

launch::Settings model_shape(const model::Transformer& whole, std::int64_t sequence) {
  const model::Transformer model = sequence > 0 ? seen_by(whole, sequence) : whole;
  const auto yes = [](bool is) { return std::string(is ? "yes" : "no"); };
  launch::Settings out{{"layers", std::to_string(model.decoder.layers())}, {"d_model", std::to_string(model.d_model)},
                       {"vocabulary", std::to_string(model.vocabulary)},   {"tied", yes(model.tied)},
                       {"norm", model.norm.mean ? "layer" : "rms"},        {"traits", traits_of(model)}};
  const auto add = [&](const char* field, std::int64_t count) {
    if (count > 0) out[field] = std::to_string(count);
  };
  if (model.encoder) add("encoder_layers", model.encoder->layers());
  const model::LayerStack& stack = model.decoder;
  const auto with_attention =
      std::find_if(stack.kinds.begin(), stack.kinds.end(), [](const model::Layer& l) { return l.attention; });
  if (with_attention != stack.kinds.end()) {
    const model::Attention& a = *with_attention->attention;
    add("heads", a.heads);
    add("kv_heads", a.kv_heads);
    add("d_head", a.head_dim);
    out["grouped"] = yes(a.kv_heads < a.heads && a.kv_rank == 0);
    out["latent"] = yes(a.kv_rank > 0);
    const bool turns = std::any_of(stack.kinds.begin(), stack.kinds.end(),
                                   [](const model::Layer& l) { return l.attention && l.attention->rotary; });
    out["positions"] = turns ? "rotary" : "learned";
    out["sinks"] = yes(a.sinks);
    out["windowed"] = yes(std::any_of(stack.kinds.begin(), stack.kinds.end(), [](const model::Layer& l) {
      return l.attention && (l.attention->window > 0 || l.attention->chunk > 0);
    }));
    out["qk_norm"] = yes(a.qk_norm != model::Attention::QkNorm::none || a.kv_rank > 0);
    out["qkv_bias"] = yes(a.q_bias && !a.o_bias);
    if (turns && model.rotary_base > 0.0) out["rotary_base"] = exact_number(model.rotary_base);
    if (turns && a.kv_rank == 0) add("d_rotated", a.turned > 0 ? a.turned : a.head_dim);
    add("q_rank", a.kv_rank > 0 ? a.q_rank : 0);
    add("kv_rank", a.kv_rank);
    add("d_position", a.rope_dim);
    add("d_content", a.kv_rank > 0 ? a.head_dim - a.rope_dim : 0);
    add("d_value", a.kv_rank > 0 ? a.value_dim : 0);
  }
  out["balanced_by"] = "none";
  if (const std::int64_t window = window_of(stack).value_or(0); window > 0) {
    add("window", window);
    add("window_before", window - 1);
  }
  bool biases = false;
  for (const model::Layer& layer : stack.kinds) {
    if (layer.attention) biases = biases || layer.attention->o_bias;
    if (!layer.feed_forward) continue;
    const model::FeedForward& f = *layer.feed_forward;
    biases = biases || f.down_bias;
    out["gated"] = yes(f.gated);
    out["squared_relu"] = yes(f.function == model::Activation::relu2);
    add(f.experts > 0 ? "d_expert" : "d_ff", f.width);
    if (f.experts == 0) continue;
    add("experts", f.experts);
    add("experts_per_token", f.experts_per_token);
    add("d_shared", f.shared_width);
    out["balanced_by"] = f.router_correction ? "biases" : "losses";
    if (f.expert_groups > 1) {
      add("expert_groups", f.expert_groups);
      add("groups_per_token", f.groups_per_token);
    }
  }
  out["biases"] = yes(biases);
  for (const auto& [field, pattern] : {std::pair{"expert_layers", pattern_of(stack, has_experts)},
                                       {"window_layers", pattern_of(stack, has_window)},
                                       {"unturned_layers", pattern_of(stack, has_no_position)}})
    if (!pattern.empty()) out[field] = pattern;
  return out;
}

Result<std::vector<std::string>> models_alike(const hardware::Catalogue& catalogue, const launch::Settings& plan) {
  static constexpr std::string_view telling[] = {"layers",   "d_model",   "heads",   "encoder_layers",
                                                 "kv_heads", "d_ff",      "experts", "experts_per_token",
                                                 "d_expert", "vocabulary"};
  constexpr std::size_t least = 4;  // layers, width and heads, or what a file has of them
  std::vector<std::string> exact, roughly;
  if (plan.find("layers") == plan.end()) return exact;
  for (const std::string& id : model::model_ids(catalogue)) {
    ASSAY_TRY(model, model::catalogue_model(id, catalogue, "--from"));
    const launch::Settings shape = model_shape(model.imported.model);
    const auto agree = [&](std::span<const std::string_view> fields) {
      return std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
        const auto wanted = plan.find(field);
        auto has = shape.find(field);
        if (field == "encoder_layers" && wanted == plan.end()) return has == shape.end();
        if (wanted == plan.end()) return true;
        // Where all layers have experts, the width of the other ones is theirs, or of no meaning.
        if (field == "d_ff" && has == shape.end()) {
          if (plan.find("d_expert") != plan.end()) return true;
          has = shape.find("d_expert");
        }
        return has != shape.end() && has->second == wanted->second;
      });
    };
    if (agree(telling)) exact.push_back(id);
    if (agree(std::span(telling).first(least))) roughly.push_back(id);
  }
  // Layers alone, or parts that differ from the published ones, tell a model only where it is the only one.
  const bool told = plan.find("d_model") != plan.end();
  std::vector<std::string> out = exact.empty() && told ? roughly : exact;
  if ((!told || exact.empty()) && out.size() != 1) return std::vector<std::string>();
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return out;
}

std::string hub_name(std::string_view model, const hardware::Catalogue& catalogue) {
  constexpr std::string_view hub = "https://huggingface.co/";
  if (model::names_path(model, catalogue)) return std::string(model);
  const auto found = model::catalogue_model(model, catalogue, "MODEL");
  if (!found) return std::string(model);
  for (const hardware::SourceEntry& source : found->sources) {
    if (!source.url.starts_with(hub)) continue;
    const std::string path = source.url.substr(hub.size());
    const std::size_t owner = path.find('/');
    if (owner != std::string::npos) return path.substr(0, path.find('/', owner + 1));
  }
  return std::string(model);
}

}  // namespace assay::verbs
