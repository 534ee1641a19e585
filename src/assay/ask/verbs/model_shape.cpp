#include "assay/ask/verbs/model_shape.h"

#include <algorithm>

#include "assay/model/model_catalogue.h"

namespace assay::verbs {

launch::Settings model_shape(const model::Transformer& model) {
  const auto yes = [](bool is) { return std::string(is ? "yes" : "no"); };
  launch::Settings out{{"layers", std::to_string(model.decoder.layers())}, {"d_model", std::to_string(model.d_model)},
                       {"vocabulary", std::to_string(model.vocabulary)},   {"tied", yes(model.tied)},
                       {"norm", model.norm.mean ? "layer" : "rms"},        {"shape", "mixed"}};
  const model::Layer& layer = model.decoder.kinds.front();
  if (model.decoder.kinds.size() > 1 || model.encoder || !layer.attention || !layer.feed_forward) return out;
  const model::Attention& a = *layer.attention;
  const model::FeedForward& f = *layer.feed_forward;
  out["heads"] = std::to_string(a.heads);
  out["kv_heads"] = std::to_string(a.kv_heads);
  out["d_head"] = std::to_string(a.head_dim);
  out["grouped"] = yes(a.kv_heads < a.heads);
  out["gated"] = yes(f.gated);
  out["positions"] = a.rotary ? "rotary" : "learned";
  out["biases"] = yes(a.o_bias || f.down_bias);
  if (f.experts > 0) {
    out["experts"] = std::to_string(f.experts);
    out["experts_per_token"] = std::to_string(f.experts_per_token);
    out["d_expert"] = std::to_string(f.width);
  } else {
    out["d_ff"] = std::to_string(f.width);
  }
  const bool plain = a.kv_rank == 0 && a.q_rank == 0 && a.window == 0 && a.chunk == 0 && a.compression == 0 &&
                     !a.sinks && !a.output_gate && a.index_heads == 0 && f.shared_width == 0 && f.latent == 0 &&
                     !f.shifted && !layer.state_space && !layer.shared;
  if (plain) out["shape"] = "plain";
  return out;
}

Result<std::vector<std::string>> models_alike(const hardware::Catalogue& catalogue, const launch::Settings& plan) {
  static constexpr std::string_view telling[] = {"layers",  "d_model",           "heads",    "kv_heads",  "d_ff",
                                                 "experts", "experts_per_token", "d_expert", "vocabulary"};
  std::vector<std::string> out;
  if (plan.find("layers") == plan.end() || plan.find("d_model") == plan.end()) return out;
  for (const std::string& id : model::model_ids(catalogue)) {
    ASSAY_TRY(model, model::catalogue_model(id, catalogue, "--from"));
    const launch::Settings shape = model_shape(model.imported.model);
    const bool alike = std::all_of(std::begin(telling), std::end(telling), [&](std::string_view field) {
      const auto wanted = plan.find(field);
      if (wanted == plan.end()) return true;
      const auto has = shape.find(field);
      return has != shape.end() && has->second == wanted->second;
    });
    if (alike) out.push_back(id);
  }
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
