// Our own description for models that were published as a table of sizes: model_type = "transformer".
#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/model/import/families.h"

namespace assay::model {
namespace {

Norm read_norm(ConfigReader& in) {
  const std::string text = in.text("norm", "rms");
  if (text == "layer") return {.scale = true, .bias = true, .mean = true};
  if (text == "layer_without_bias") return {.scale = true, .bias = false, .mean = true};
  if (text == "composed_layer") return {.scale = true, .bias = false, .mean = true, .composed = true};
  if (text == "none") return {.scale = false};
  if (text != "rms")
    in.fault("norm",
             fmt::format("must be rms, layer, layer_without_bias, composed_layer or none, got {}", in_quotes(text)));
  return {};
}

/// A name of an enumeration, in its order; its first one is what a description need not say.
template <class E>
E read_named(ConfigReader& in, std::string_view key, std::span<const std::string_view> names) {
  if (!in.has(key)) return E{};
  const std::string text = in.text(key, names.front());
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end())
    in.fault(key, fmt::format("must be one of {}, got {}", fmt::join(names, ", "), in_quotes(text)));
  return at == names.end() ? E{} : static_cast<E>(at - names.begin());
}

Attention::QkNorm read_qk_norm(ConfigReader& in) {
  const std::string text = in.text("qk_norm", "none");
  if (text == "per_head") return Attention::QkNorm::per_head;
  if (text == "whole") return Attention::QkNorm::whole;
  if (text != "none") in.fault("qk_norm", fmt::format("must be none, per_head or whole, got {}", in_quotes(text)));
  return Attention::QkNorm::none;
}

/// Options that are off by default leave no note: the description is ours, without a library's defaults.
bool switched_on(ConfigReader& in, std::string_view key) { return in.has(key) && in.flag(key, false); }

/// Latent attention: ranks of queries, keys and values, and the parts of a head with and without position.
void read_latent(ConfigReader& in, Attention& a) {
  a.kv_rank = in.count("kv_rank");
  if (a.kv_rank == 0) return;
  a.q_rank = in.count("q_rank");
  a.rope_dim = in.size("rope_dim");
  a.value_dim = in.derived("value_dim", a.head_dim, "head_dim");
  if (a.rope_dim >= a.head_dim) in.fault("rope_dim", "must be below head_dim, which includes it");
}

/// A token's experts come from some of the groups.
void read_expert_groups(ConfigReader& in, FeedForward& experts) {
  if (!in.has("expert_groups")) return;
  experts.expert_groups = in.size("expert_groups");
  experts.groups_per_token = in.size("groups_per_token");
  if (experts.experts % experts.expert_groups != 0 || experts.groups_per_token > experts.expert_groups)
    in.fault("expert_groups", "must divide the experts, and groups_per_token must not exceed it");
}

void transformer(ConfigReader& in, Transformer& model) {
  model.d_model = in.size("d_model");
  model.vocabulary = in.size("vocabulary");
  model.max_context = in.count("context");
  model.learned_positions = in.count("learned_positions");
  model.tied = switched_on(in, "tied");
  model.norm = read_norm(in);
  model.logits = read_named<Logits>(in, "logits", logits_names);
  model.final_norm = !in.has("final_norm") || in.flag("final_norm", true);
  const std::int64_t layers = read_layers(in, {"layers"}, 0);
  const bool bias = switched_on(in, "bias");
  Layer layer;
  layer.parallel = switched_on(in, "parallel");
  layer.norms = static_cast<int>(std::min<std::int64_t>(in.count("norms", layer.parallel ? 1 : 2), 8));
  Attention a;
  a.heads = in.size("heads");
  a.kv_heads = in.derived("kv_heads", a.heads, "the number of heads");
  check_groups(in, a.heads, a.kv_heads);
  a.head_dim = a.value_dim = read_head_dim(in, "head_dim", model.d_model, a.heads);
  read_latent(in, a);
  a.window = in.count("window");
  a.chunk = in.count("chunk");
  // Every n-th layer attends to all tokens, the others have a window or chunks.
  const std::int64_t whole = a.window + a.chunk > 0 ? in.count("full_every") : 0;
  a.qk_norm = read_qk_norm(in);
  a.rotation = read_named<Rotation>(in, "rotation", rotation_names);
  a.joined = read_named<JoinedProjection>(in, "projections", projection_names);
  a.turned = in.count("turned");
  if (a.turned > a.head_dim) in.fault("turned", "must be at most head_dim, of which it is a part");
  a.relative_projection = switched_on(in, "relative_projection");
  set_bias(a, bias || switched_on(in, "qkv_bias"), bias);
  layer.attention = a;
  FeedForward dense{.width = in.size("d_ff"), .gated = switched_on(in, "gated"), .up_bias = bias, .down_bias = bias};
  dense.joined = switched_on(in, "joined_gate") && dense.gated;
  layer.feed_forward = dense;
  FeedForward experts = dense;
  experts.experts = in.count("experts");
  const std::int64_t period = experts.experts > 0 ? in.size("experts_every", 1) : 1;
  if (experts.experts > 0) {
    experts.experts_per_token = in.size("experts_per_token");
    experts.width = in.derived("expert_width", dense.width, "d_ff");
    experts.shared_width = in.count("shared_width");
    experts.joined = false;
    read_expert_groups(in, experts);
    check_experts(in, experts, "experts_per_token");
  }
  const std::int64_t leading = in.count("leading_dense");
  for (std::int64_t i = 0; i < layers; ++i) {
    layer.feed_forward = experts.experts > 0 && i >= leading && (i + 1) % period == 0 ? experts : dense;
    if (whole > 0) {
      layer.attention->window = (i + 1) % whole == 0 ? 0 : a.window;
      layer.attention->chunk = (i + 1) % whole == 0 ? 0 : a.chunk;
    }
    model.decoder.add(layer);
  }
}

}  // namespace

std::span<const Family> generic_families() {
  static constexpr Family families[] = {{"transformer", "", &transformer}};
  return families;
}

}  // namespace assay::model
