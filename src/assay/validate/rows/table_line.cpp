#include "assay/validate/rows/table_line.h"

#include <fmt/format.h>

#include <algorithm>
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

const model::Transformer* KnownModels::written(const std::string& text) {
  const auto [known, fresh] = read_.try_emplace(text);
  if (fresh)
    if (const auto read = model::load_model(text, catalogue_, "model");
        read && lower::check_lowers(read->model, "model"))
      known->second = read->model;
  return known->second ? &*known->second : nullptr;
}

namespace {

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

/// A configuration of plain sizes and switches, field by field.
class Written {
 public:
  explicit Written(std::string_view start) : text_(start) {}
  void add(std::string_view key, std::int64_t size) { text_ += fmt::format(R"(,"{}":{})", key, size); }
  void add_if(bool states, std::string_view key, std::int64_t size) {
    if (states) add(key, size);
  }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_;
};

/// The sizes that latent attention has besides the others.
Why add_latent(std::string_view notes, std::int64_t& head_dim, Written& out) {
  const std::int64_t kv_rank = noted(notes, "kv_lora="), rope = noted(notes, "qk_rope=");
  if (kv_rank == 0) return "the ranks of latent attention are not stated";
  head_dim = noted(notes, "qk_nope=") + rope;
  out.add("q_rank", noted(notes, "q_lora="));
  out.add("kv_rank", kv_rank);
  out.add("rope_dim", rope);
  out.add("value_dim", noted(notes, " v="));
  return std::nullopt;
}

/// No column states how experts are grouped: `same`, the catalogue's model of that name, does.
Why add_experts(const TableLine& in, const model::Transformer* same, Written& out) {
  const std::int64_t experts = in.count("moe_experts"), width = in.count("moe_d_ff_expert"),
                     each = in.count("moe_topk"), leading = in.count("moe_first_dense_layers"),
                     every = std::max<std::int64_t>(1, noted(in.text("arch_notes"), "interleave_moe_layer_step="));
  if (width == 0 || each == 0) return "the experts' width or number per token is not stated";
  if (in.count("d_ff") == 0 && (leading > 0 || every > 1)) return "the feed-forward width is not stated";
  out.add("experts", experts);
  out.add("experts_per_token", each);
  out.add("expert_width", width);
  out.add_if(in.count("moe_shared_experts") > 0, "shared_width", in.count("moe_shared_experts") * width);
  out.add_if(leading > 0, "leading_dense", leading);
  out.add("experts_every", every);
  for (const model::Layer& layer : same ? same->decoder.kinds : std::vector<model::Layer>())
    if (const auto& block = layer.feed_forward; block && block->experts == experts && block->expert_groups > 1) {
      out.add("expert_groups", block->expert_groups);
      out.add("groups_per_token", block->groups_per_token);
      break;
    }
  return std::nullopt;
}

/// The configuration that the columns describe.
Why write_columns(const TableLine& in, std::int64_t usual_vocabulary, const model::Transformer* same,
                  std::string& text) {
  const std::int64_t layers = in.count("layers"), heads = in.count("n_heads"), width = in.count("d_model"),
                     vocabulary = in.count("vocab", usual_vocabulary);
  if (layers == 0 || heads == 0 || width == 0 || vocabulary == 0)
    return "the model's layers, width, heads or vocabulary are not stated";
  Written out(R"({"model_type":"transformer")");
  out.add("layers", layers);
  out.add("d_model", width);
  out.add("vocabulary", vocabulary);
  out.add("heads", heads);
  out.add("kv_heads", in.count("n_kv_heads", heads));
  const std::string_view notes = in.text("arch_notes");
  std::int64_t head_dim = in.count("head_dim", width / heads);
  if (in.text("attn_type") == "mla")
    if (auto why = add_latent(notes, head_dim, out)) return why;
  out.add("head_dim", head_dim);
  const bool routed = in.count("moe_experts") > 0;
  if (!routed && in.count("d_ff") == 0) return "the feed-forward width is not stated";
  out.add("d_ff", in.count("d_ff", in.count("moe_d_ff_expert")));
  if (routed)
    if (auto why = add_experts(in, same, out)) return why;
  if (contains(notes, "sliding-window(128)")) {
    out.add("window", 128);
    out.add("full_every", 2);
  }
  if (contains(notes, "chunked local")) {
    out.add("chunk", 8192);
    out.add("full_every", 4);
  }
  text = out.text();
  if (in.text("gated_mlp") != "n") text.insert(text.size() - 1, R"(,"gated":true)");
  return std::nullopt;
}

/// Changes a size of a catalogue's model. Configurations name it differently; the first key that has the effect counts.
void change_size(std::initializer_list<const char*> keys, std::int64_t wanted, std::int64_t model::Transformer::*size,
                 KnownModels& known, RowModel& out) {
  const std::string start = out.named.starts_with('{') ? out.named.substr(0, out.named.size() - 1)
                                                       : fmt::format(R"({{"base":"{}")", out.named);
  for (const char* key : keys) {
    const std::string text = fmt::format(R"({},"{}":{}}})", start, key, wanted);
    const model::Transformer* changed = known.written(text);
    if (!changed || changed->*size != wanted) continue;
    out = {text, *changed};
    return;
  }
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

Why read_model(const TableLine& in, std::int64_t vocabulary, KnownModels& known, RowModel& out) {
  const model::Transformer* found = known.find(in.text("model"));
  if (found && !contradicted(in, *found)) {
    out = {found->id, *found};
    if (const std::int64_t stated = in.count("vocab", out.model.vocabulary); stated != out.model.vocabulary)
      change_size({"vocab_size", "vocabulary", "padded_vocab_size"}, stated, &model::Transformer::vocabulary, known,
                  out);
    // A table of learned positions is as long as the sequences.
    if (out.model.learned_positions > 0 && in.count("seq_len") > out.model.learned_positions)
      change_size({"n_positions", "learned_positions", "max_position_embeddings", "max_seq_len"}, in.count("seq_len"),
                  &model::Transformer::learned_positions, known, out);
    return std::nullopt;
  }
  if (const Why why = write_columns(in, vocabulary, found, out.named))
    return found ? Why("the columns contradict the catalogue's model of that name") : why;
  const model::Transformer* written = known.written(out.named);
  if (!written) return "the model's sizes do not go together";
  out.model = *written;
  return std::nullopt;
}

}  // namespace assay::validate
