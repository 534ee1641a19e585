#include "assay/validate/rows/table_line.h"

#include <vector>

#include "assay/lower/lowering.h"
#include "assay/model/model_catalogue.h"

namespace assay::validate {

std::int64_t noted(std::string_view notes, std::string_view name) {
  const std::size_t at = notes.find(name);
  return at == std::string_view::npos ? 0 : std::atoll(std::string(notes.substr(at + name.size())).c_str());
}

const model::Transformer* KnownModels::find(std::string_view name) {
  const auto known = read_.find(name);
  if (known != read_.end()) return known->second ? &*known->second : nullptr;
  std::optional<model::Transformer>& model = read_[std::string(name)];
  std::optional<std::string> id = names_.find(name);
  const std::string_view bare = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  if (!id) id = names_.find(bare);
  if (!id) return nullptr;
  const auto read = model::catalogue_model(*id, catalogue_, "model");
  if (read && lower::check_lowers(read->imported.model, "model")) model = read->imported.model;
  return model ? &*model : nullptr;
}

namespace {

/// Copies the expert grouping from a model with the same number of experts.
void take_groups(const model::Transformer& from, model::Transformer& to) {
  for (const model::Layer& known : from.decoder.kinds) {
    if (!known.feed_forward || known.feed_forward->experts == 0) continue;
    for (model::Layer& layer : to.decoder.kinds)
      if (layer.feed_forward && layer.feed_forward->experts == known.feed_forward->experts) {
        layer.feed_forward->expert_groups = known.feed_forward->expert_groups;
        layer.feed_forward->groups_per_token = known.feed_forward->groups_per_token;
      }
  }
}

/// Whether the columns state a size that no layer of the model has. The vocabulary may be padded.
bool contradicted(const TableLine& in, const model::Transformer& model) {
  const auto differs = [&](std::string_view column, auto... sizes_of) {
    const std::int64_t stated = in.count(column);
    if (stated == 0) return false;
    for (const model::Layer& layer : model.decoder.kinds)
      if (((sizes_of(layer) == stated) || ...)) return false;
    return true;
  };
  const auto attention = [](std::int64_t model::Attention::*size) {
    return [size](const model::Layer& layer) { return layer.attention ? (*layer.attention).*size : 0; };
  };
  const auto block = [](std::int64_t model::FeedForward::*size) {
    return [size](const model::Layer& layer) { return layer.feed_forward ? (*layer.feed_forward).*size : 0; };
  };
  return in.count("layers", model.decoder.layers()) != model.decoder.layers() ||
         in.count("d_model", model.d_model) != model.d_model ||
         differs("n_heads", attention(&model::Attention::heads)) ||
         differs("n_kv_heads", attention(&model::Attention::kv_heads)) ||
         differs("head_dim", attention(&model::Attention::head_dim), attention(&model::Attention::value_dim)) ||
         differs("moe_experts", block(&model::FeedForward::experts)) ||
         differs("moe_topk", block(&model::FeedForward::experts_per_token)) ||
         differs("moe_d_ff_expert", block(&model::FeedForward::width)) ||
         (in.count("moe_experts") == 0 && differs("d_ff", block(&model::FeedForward::width)));
}

Why read_columns(const TableLine& in, std::int64_t vocabulary, model::Transformer& model) {
  const std::int64_t layers = in.count("layers"), heads = in.count("n_heads");
  model.d_model = in.count("d_model");
  model.vocabulary = in.count("vocab", vocabulary);
  if (layers == 0 || heads == 0 || model.d_model == 0 || model.vocabulary == 0)
    return "the model's layers, width, heads or vocabulary are not stated";
  const std::string_view notes = in.text("arch_notes");
  model::Layer dense;
  model::Attention& attention = dense.attention.emplace();
  attention.heads = heads;
  attention.kv_heads = in.count("n_kv_heads", heads);
  attention.head_dim = attention.value_dim = in.count("head_dim", model.d_model / heads);
  if (in.text("attn_type") == "mla") {
    attention.q_rank = noted(notes, "q_lora=");
    attention.kv_rank = noted(notes, "kv_lora=");
    attention.rope_dim = noted(notes, "qk_rope=");
    attention.value_dim = noted(notes, " v=");
    attention.head_dim = noted(notes, "qk_nope=") + attention.rope_dim;
    if (attention.kv_rank == 0) return "the ranks of latent attention are not stated";
  }
  model::FeedForward& block = dense.feed_forward.emplace();
  block.width = in.count("d_ff");
  block.gated = in.text("gated_mlp") != "n";
  model::Layer routed = dense;
  const std::int64_t experts = in.count("moe_experts");
  if (experts > 0) {
    model::FeedForward& moe = *routed.feed_forward;
    moe.width = in.count("moe_d_ff_expert");
    moe.experts = experts;
    moe.experts_per_token = in.count("moe_topk");
    moe.shared_width = in.count("moe_shared_experts") * moe.width;
    if (moe.width == 0 || moe.experts_per_token == 0) return "the experts' width or number per token is not stated";
  } else if (block.width == 0) {
    return "the feed-forward width is not stated";
  }
  const std::int64_t first_dense = in.count("moe_first_dense_layers");
  const std::int64_t every = std::max<std::int64_t>(1, noted(notes, "interleave_moe_layer_step="));
  for (std::int64_t i = 0; i < layers; ++i) {
    model::Layer layer = experts > 0 && i >= first_dense && (i + 1) % every == 0 ? routed : dense;
    if (layer.feed_forward->width == 0) return "the feed-forward width is not stated";
    if (contains(notes, "sliding-window(128)") && i % 2 == 0) layer.attention->window = 128;
    if (contains(notes, "chunked local") && (i + 1) % 4 != 0) layer.attention->chunk = 8192;
    model.decoder.add(layer);
  }
  return std::nullopt;
}

}  // namespace

Why unread_model(const TableLine& in) {
  using enum Field::Kind;
  static constexpr Field fields[] = {{"layers", count},
                                     {"d_model", count},
                                     {"d_ff", count},
                                     {"n_heads", count},
                                     {"n_kv_heads", count},
                                     {"head_dim", count},
                                     {"vocab", count},
                                     {"moe_experts", whole},
                                     {"moe_topk", whole},
                                     {"moe_d_ff_expert", whole},
                                     {"moe_shared_experts", whole},
                                     {"moe_first_dense_layers", whole},
                                     {"gated_mlp", words, "y|n"},
                                     {"attn_type", words, "mha|gqa|mqa|mla"}};
  return unread(in.table, in.row, fields);
}

Why read_model(const TableLine& in, std::int64_t vocabulary, KnownModels& known, model::Transformer& model) {
  const model::Transformer* found = known.find(in.text("model"));
  if (found && !contradicted(in, *found)) {
    model = *found;
    model.vocabulary = in.count("vocab", model.vocabulary);
    return std::nullopt;
  }
  const Why why = read_columns(in, vocabulary, model);
  if (!why && found) take_groups(*found, model);
  return why && found ? Why("the columns contradict the catalogue's model of that name") : why;
}

}  // namespace assay::validate
