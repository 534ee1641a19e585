#include "assay/lab/validate/rows/table_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "assay/base/record_reader.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/kernel/software/version_numbers.h"
#include "assay/program/lower/lowering.h"

namespace assay::validate {

std::int64_t noted(std::string_view notes, std::string_view name) {
  const std::size_t at = notes.find(name);
  return at == std::string_view::npos ? 0 : std::atoll(std::string(notes.substr(at + name.size())).c_str());
}

Result<KnownModels> KnownModels::make(const hardware::Catalogue& catalogue) {
  KnownModels known(catalogue);
  for (const auto& [path, text] : catalogue.files("validation/names.toml")) {
    RecordFile shared{.name = path};
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
      reader.table("models", [&](RecordReader& inner) {
        inner.texts("beginnings", known.beginnings_);
        inner.texts("endings", known.endings_);
      });
    }));
  }
  return known;
}

std::string_view KnownModels::without_ending(std::string_view name) const {
  for (const std::string& end : endings_)
    if (name.size() > end.size() && kernel::matches(end, name.substr(name.size() - end.size())))
      return name.substr(0, name.size() - end.size());
  const std::size_t dash = name.rfind('-');  // a month: "-0528", "-2507"
  const bool dated = dash != std::string_view::npos && name.size() - dash == 5 &&
                     name.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
  return dated ? name.substr(0, dash) : std::string_view();
}

const model::Transformer* KnownModels::find(std::string_view name) {
  const auto known = read_.find(name);
  if (known != read_.end()) return known->second ? &*known->second : nullptr;
  std::optional<model::Transformer>& model = read_[std::string(name)];
  std::string_view left = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  std::optional<std::string> id = names_.find(name);
  if (!id) id = names_.find(left);
  for (const std::string& start : beginnings_)
    if (!id && left.starts_with(start)) left.remove_prefix(start.size());
  for (; !id && !left.empty(); left = without_ending(left)) id = names_.find(left);
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

/// Whether attention is what a table calls "mha", "gqa", "mqa" or "mla".
bool is_kind(const model::Attention& attention, std::string_view kind) {
  if (attention.kv_rank > 0) return kind == "mla";
  if (attention.kv_heads == attention.heads) return kind == "mha";
  return kind == "gqa" || (kind == "mqa" && attention.kv_heads == 1);
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
  const std::string_view kind = in.text("attn_type"), gated = in.text("gated_mlp");
  const auto any = [&](auto holds) {
    return std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(), holds);
  };
  if (!gated.empty() && !any([&](const model::Layer& layer) {
        return layer.feed_forward && layer.feed_forward->gated == (gated != "n");
      }))
    return true;
  if (!kind.empty() &&
      !any([&](const model::Layer& layer) { return layer.attention && is_kind(*layer.attention, kind); }))
    return true;
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
  template <class V>
  void add(std::string_view key, V value) {
    text_ += fmt::format(R"(,"{}":{})", key, value);
  }
  template <class V>
  void add_if(bool states, std::string_view key, V value) {
    if (states) add(key, value);
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

/// What notes on a model may say where its columns describe it.
std::span<const Field> notes_fields() {
  static constexpr Field fields[] = {{"arch_notes", Field::Kind::words,
                                      "MLA *|*sliding-window(128)/full attention|*interleave_moe_layer_step=*|"
                                      "*chunked local attention*"}};
  return fields;
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
  const std::string_view kind = in.text("attn_type"), notes = in.text("arch_notes");
  if (kind == "gqa" && in.count("n_kv_heads") == 0) return "the number of key and value heads is not stated";
  out.add("kv_heads", in.count("n_kv_heads", kind == "mqa" ? 1 : heads));
  if (auto why = unread(in.table, in.row, notes_fields())) return why;
  std::int64_t head_dim = in.count("head_dim", width / heads);
  if (kind == "mla")
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
  // What no column states is as in the catalogue's model of that name.
  const model::Layer* like = same && !same->decoder.kinds.empty() ? &same->decoder.kinds.front() : nullptr;
  const std::string_view gate = in.text("gated_mlp");
  if (gate.empty() && !(like && like->feed_forward)) return "whether the feed-forward is gated is not stated";
  out.add_if(gate.empty() ? like->feed_forward->gated : gate != "n", "gated", "true");
  if (like && like->parallel) {
    out.add("parallel", "true");
    out.add("norms", like->norms);
  }
  text = out.text();
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

std::span<const Field> model_fields() {
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
                                     {"gated_mlp", yes_no, "swiglu|geglu"},
                                     {"attn_type", words, "mha|gqa|mqa|mla"}};
  return fields;
}

namespace {

/// The parameters that a table counts with or without embeddings, and rounds, say which model it is.
Why unlike_parameters(const TableLine& in, const model::Transformer& model) {
  constexpr double most = 1.5;
  const double stated = in.number("params"), all = static_cast<double>(model::parameter_counts(model).total);
  if (stated <= 0.0 || (stated < most * all && all < most * stated)) return std::nullopt;
  return fmt::format("the row contradicts itself: params is {:.3g}, its model has {:.3g}", stated, all);
}

Why read_shape(const TableLine& in, std::int64_t vocabulary, KnownModels& known, RowModel& out) {
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

}  // namespace

Why read_model(const TableLine& in, std::int64_t vocabulary, KnownModels& known, RowModel& out) {
  if (auto why = read_shape(in, vocabulary, known, out)) return why;
  return unlike_parameters(in, out.model);
}

}  // namespace assay::validate
