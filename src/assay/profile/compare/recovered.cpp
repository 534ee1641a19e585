#include "assay/profile/compare/recovered.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/base/text.h"
#include "assay/profile/compare/explains.h"
#include "assay/profile/compare/layer_reader.h"

namespace assay::compare {
namespace {

using Kind = MeasuredCall::Kind;

/// The first shape that a call was recorded with.
std::vector<std::int64_t> first_shape(const MeasuredCall& call) {
  std::vector<std::int64_t> out;
  const std::string shape = call.shapes.substr(0, call.shapes.find(']'));
  for (const std::string& size : split(shape.substr(std::min<std::size_t>(1, shape.size())), ','))
    if (const auto value = parse_count(size, "shape")) out.push_back(*value);
  return out;
}

/// Attention of single operations: a product of queries and keys for each head, a softmax, and a product with values.
std::vector<AttentionRun> plain_attention(const MeasuredStep& measured, RecoveredRun& run) {
  std::vector<AttentionRun> out;
  const MeasuredCall* scores = nullptr;
  std::vector<std::int64_t> heads;  // sequences, heads, queries, keys
  const auto is_batched = [](const MeasuredCall& call) {
    return call.kind == Kind::product && call.dims[0].size() == 3 && call.dims[1].size() == 3 &&
           plausible(call.dims[0]) && plausible(call.dims[1]);
  };
  for (std::size_t i = 0; i < measured.calls.size(); ++i) {
    const MeasuredCall& call = measured.calls[i];
    if (call.backward) continue;
    if (call.label.find("softmax") != std::string::npos && first_shape(call).size() == 4) heads = first_shape(call);
    if (!is_batched(call)) continue;
    const bool weighs = scores && heads.size() == 4 && plausible(heads) && call.dims[0][0] == scores->dims[0][0] &&
                        heads[0] * heads[1] == call.dims[0][0] && call.dims[0][1] == heads[2] &&
                        call.dims[0][2] == heads[3] && scores->dims[1][2] == heads[3];
    if (weighs) {
      const std::int64_t dim = scores->dims[0][2];
      out.push_back({i, {heads[0], heads[1], heads[2], dim}, {heads[0], heads[1], heads[3], dim}});
      run.attention = call.format == Dtype::fp32 ? "math" : "";
    }
    scores = weighs ? nullptr : &call;
  }
  run.plain = !out.empty();
  return out;
}

/// The update, and the formats that its kernels name.
void read_update(const MeasuredStep& measured, const trace::Vocabulary& vocabulary, RecoveredRun& run) {
  trace::Ticks longest = -1, longest_named = -1, all = 0;
  std::map<std::string_view, trace::Ticks> by_operation;
  for (const MeasuredCall& call : measured.calls) {
    if (!vocabulary.categories[call.category].optimizer) continue;
    all += call.duration;
    by_operation[call.label] += call.duration;
    if (call.duration > longest) {
      longest = call.duration;
      run.optimizer = call.label;
    }
    if (call.duration <= longest_named) continue;
    constexpr std::string_view parameters = "Functor<";
    const std::size_t at = call.kernel.find(parameters);
    if (at == std::string::npos) continue;
    const std::string_view of = std::string_view(call.kernel).substr(at + parameters.size());
    for (const auto& [type, format] : vocabulary.types)
      if (of.starts_with(type) && (of.size() == type.size() || of[type.size()] == ',' || of[type.size()] == '>')) {
        run.updated = format;
        longest_named = call.duration;
      }
  }
  // One operation does nearly all of it, where it is fused.
  trace::Ticks most = 0;
  for (const auto& [label, time] : by_operation) most = std::max(most, time);
  run.unfused_update = 2 * most < all;
}

/// Whether the head is the embedding: kernels of the update tell how many weights there are.
void read_tied(const MeasuredStep& measured, const trace::UpdateKernels& update, RecoveredRun& run) {
  RecoveredModel& model = run.model;
  const bool known = model.tied || model.vocabulary == 0 || model.experts > 0 || run.unfused_update;
  if (known || update.weights == 0) return;
  double kernels = 0;
  for (const MeasuredCall& call : measured.calls)
    if (call.kernel.find(update.name) != std::string::npos) kernels += static_cast<double>(call.kernels);
  if (kernels == 0.0) return;
  const std::int64_t attention = (2 * model.heads + 2 * model.kv_heads) * model.head_dim * model.hidden;
  const std::int64_t layer = attention + (model.gated ? 3 : 2) * model.intermediate * model.hidden;
  const auto table = static_cast<double>(model.vocabulary * model.hidden);
  const double tables =
      (kernels * static_cast<double>(update.weights) - static_cast<double>(model.layers * layer)) / table;
  if (tables > 0.5 && tables < 3.0) model.tied = tables < 1.5;
}

void read_how(const MeasuredStep& measured, RecoveredRun& run) {
  std::int64_t forward = 0, again = 0, gradients = 0;
  for (const MeasuredCall& call : measured.calls) {
    run.compiled |= call.fused;
    if (call.kind == Kind::attention) ++(call.backward ? again : forward);
    if (call.kind == Kind::attention_gradient) ++gradients;
  }
  run.recomputes = again > 0 || (gradients > 0 && forward >= 2 * gradients);
}

/// Reads what kernels between products tell of a model whose sizes are known.
class CodeReader {
 public:
  CodeReader(const MeasuredStep& measured, RecoveredRun& run) : run_(run), model_(run.model) {
    const std::int64_t queries = run.kind == RecoveredRun::Kind::decode ? 1 : run.sequence;
    tokens_ = static_cast<double>(run.batch * queries);
    for (const MeasuredCall& call : measured.calls) add(call);
  }

  void finish(std::int64_t passes) {
    if (run_.compiled) return finish_compiled();
    if (wide_norms_ + whole_norms_ == 0) return;
    model_.centred = whole_norms_ > wide_norms_;
    // One more at the end of all layers.
    model_.norms = std::max<std::int64_t>(1, std::max(whole_norms_, wide_norms_) / passes);
    model_.head_norms = head_norms_ >= 2 * passes;
    model_.rotary = turns_;
    model_.biased = 2 * with_bias_ > products_;
    // Gradients of microbatches are added up, too.
    if (run_.kind == RecoveredRun::Kind::training && model_.vocabulary > 0 && passes == model_.layers)
      model_.tied = adds_tables_;
    model_.activation = function();
    model_.composed_norms = differences_ >= passes;
    if (casts_ >= passes) model_.rotation = stacks_ >= casts_ ? model::Rotation::wide_pairs : model::Rotation::wide;
    if (scales_) model_.logits = caps_ ? model::Logits::capped : model::Logits::scaled;
    finish_heads();
  }

 private:
  static bool has(const MeasuredCall& call, std::string_view name) {
    return call.names.find(name) != std::string::npos;
  }

  /// A compiler's kernels have the names of the operations in them, but not how often those ran.
  void finish_compiled() {
    if (fused_.empty()) return;
    model_.rotary = fuses("cos");
    model_.centred = fuses("native_layer_norm");
    model_.biased = 2 * with_bias_ > products_;
    // It takes functions of one operation apart.
    if (fuses("silu"))
      model_.activation = "silu";
    else if (fuses("tanh") || fuses("erf") || fuses("gelu"))
      model_.activation = fuses("tanh") && fuses("pow") && *model_.centred ? "gelu_new" : "gelu";
  }
  bool fuses(std::string_view operation) const {
    return fused_.find(fmt::format("_{}_", operation)) != std::string::npos;
  }

  /// Whether its first tensor has four dimensions, as those of heads have.
  bool is_of_heads(const MeasuredCall& call) const {
    const std::string first = call.shapes.substr(0, call.shapes.find(']'));
    return std::count(first.begin(), first.end(), ',') >= 3;
  }

  /// Where parts of heads turn, one more kernel for each puts the heads together; caches join keys, too. Code that cuts
  /// heads also cuts them out of a joined projection; other code splits its columns.
  void finish_heads() {
    const bool rejoins = run_.kind == RecoveredRun::Kind::training && joins_ >= 2 * halves_;
    if (halves_ > 0 && (2 * half_ < model_.head_dim || rejoins)) model_.turned = 2 * half_;
    if (!joined_) return;
    const bool woven = cuts_ || (model_.turned > 0 && model_.turned < model_.head_dim);
    model_.projections = woven ? model::JoinedProjection::woven : model::JoinedProjection::split;
  }

  /// One half of what turns of a head is negated; what is joined has no recorded shapes.
  void add_heads(const MeasuredCall& call) {
    if (call.kind == Kind::product) {
      const std::int64_t heads = model_.heads + 2 * model_.kv_heads;
      joined_ |= call.dims[1].size() == 2 && call.dims[1][0] == model_.hidden &&
                 call.dims[1][1] == heads * model_.head_dim && heads * model_.head_dim != model_.vocabulary;
      within_ = false;
    }
    if (call.kind == Kind::attention) within_ = false;
    const bool negates =
        has(call, "aten::neg") && is_of_heads(call) && 2.0 * call.width <= static_cast<double>(model_.head_dim);
    if (negates) {
      half_ = static_cast<std::int64_t>(call.width);
      ++halves_;
      within_ = true;
    }
    joins_ += within_ && has(call, "aten::cat") ? 1 : 0;
  }

  /// Rotations in fp32 end with a cast of the heads; norms of heads come before they turn, and cast, too.
  void add_rotation(const MeasuredCall& call) {
    if (call.kind == Kind::product) turning_ = false;
    stacks_ += has(call, "aten::stack") ? 1 : 0;
    turning_ |= has(call, "aten::cat") || has(call, "aten::stack");
    casts_ += turning_ && is_of_heads(call) && has(call, "aten::_to_copy") ? 1 : 0;
  }

  void add(const MeasuredCall& call) {
    const auto hidden = static_cast<double>(model_.hidden), table = static_cast<double>(model_.vocabulary) * hidden;
    if (call.backward && (call.label == "aten::add" || call.label == "aten::add_") && table > 0.0 &&
        call.elements == table)
      adds_tables_ = true;
    if (call.backward)
      cuts_ |= call.elements == tokens_ * static_cast<double>(model_.heads * model_.head_dim) &&
               (has(call, "slice_backward") || has(call, "select_backward"));
    if (call.backward) return;
    if (call.fused) fused_ += call.label + "_";
    if (call.kind == Kind::product) {
      ++products_;
      with_bias_ += call.label == "aten::addmm" || call.label == "aten::baddbmm" ? 1 : 0;
    }
    if (has(call, "layer_norm") && call.elements == tokens_ * hidden) ++whole_norms_;
    if (has(call, "aten::rsqrt")) {
      const bool of_heads = call.elements == tokens_ * static_cast<double>(model_.heads) ||
                            call.elements == tokens_ * static_cast<double>(model_.kv_heads);
      if (of_heads && (call.elements != tokens_ || is_of_heads(call)))
        ++head_norms_;
      else if (call.elements == tokens_)
        ++wide_norms_;
    }
    if (has(call, "aten::cos")) turns_ = true;
    if (call.label == "aten::sub" && call.elements == tokens_ * hidden) ++differences_;
    add_rotation(call);
    add_heads(call);
    if (call.elements == tokens_ * static_cast<double>(model_.vocabulary)) {
      scales_ |= call.label == "aten::mul" || call.label == "aten::div";
      caps_ |= call.label == "aten::tanh";
    }
    const double inner =
        tokens_ * static_cast<double>(model_.intermediate * std::max<std::int64_t>(1, model_.experts_per_token));
    if (call.elements != inner) return;
    for (std::size_t i = 0; i < std::size(signs); ++i) seen_[i] |= has(call, signs[i]);
  }

  std::string function() const {
    const auto seen = [&](std::string_view sign) {
      return seen_[static_cast<std::size_t>(std::find(std::begin(signs), std::end(signs), sign) - std::begin(signs))];
    };
    if (seen("aten::silu")) return "silu";
    if (seen("aten::gelu")) return "gelu";
    if (seen("aten::tanh")) return seen("aten::pow") ? "gelu_new" : "gelu_fast";
    if (seen("aten::erf")) return "gelu_python";
    if (seen("aten::sigmoid")) return "quick_gelu";
    if (seen("aten::relu") || seen("aten::clamp_min")) return seen("aten::pow") ? "relu2" : "relu";
    return "";
  }

  static constexpr std::string_view signs[] = {"aten::silu", "aten::gelu",    "aten::tanh", "aten::pow",
                                               "aten::erf",  "aten::sigmoid", "aten::relu", "aten::clamp_min"};
  RecoveredRun& run_;
  RecoveredModel& model_;
  double tokens_ = 0;
  std::int64_t whole_norms_ = 0, wide_norms_ = 0, head_norms_ = 0, products_ = 0, with_bias_ = 0;
  std::int64_t differences_ = 0, casts_ = 0, stacks_ = 0, halves_ = 0, joins_ = 0, half_ = 0;
  bool within_ = false, joined_ = false, cuts_ = false;
  bool turns_ = false, turning_ = false, adds_tables_ = false, scales_ = false, caps_ = false;
  bool seen_[std::size(signs)] = {};
  std::string fused_;  ///< labels of all kernels that a compiler made
};

/// Whether it is a model of tokens: they are looked up, or predicted; layers alone may be a stage of one, where
/// attention is causal.
Result<void> read_embedding(const MeasuredStep& measured, RecoveredRun& run, const std::string& file) {
  bool causal = run.plain || run.masked;
  for (const MeasuredCall& call : measured.calls) {
    causal |= call.causal;
    if (call.backward || call.label.find("embedding") == std::string::npos) continue;
    const std::vector<std::int64_t> table = first_shape(call);
    if (table.size() == 2 && table[1] == run.model.hidden) run.model.embedded = std::max(run.model.embedded, table[0]);
  }
  constexpr std::int64_t narrowest = 16;  // of models of language
  if (run.model.hidden < narrowest)
    return fail(file, fmt::format("no model is named: its width would be {}", run.model.hidden),
                "give the request: --against 'train MODEL ...'");
  if (run.model.vocabulary > 0 || run.model.embedded > 0 || causal || run.kind == RecoveredRun::Kind::decode) return {};
  return fail(file,
              "no model is named: there are layers with attention to all tokens, but no embedding and no head of a "
              "language model",
              "give the request: --against 'train MODEL ...'");
}

void note_lacking(RecoveredRun& run) {
  if (run.model.vocabulary == 0) run.lacks.emplace_back("the vocabulary: no product of a head was found");
  if (run.attention.empty() && !run.plain) run.lacks.emplace_back("which attention kernel it is");
  if (run.kind != RecoveredRun::Kind::training) return;
  if (run.optimizer.empty())
    run.lacks.emplace_back("the optimizer: no update of weights was found");
  else if (!run.updated)
    run.lacks.emplace_back("the formats of gradients and optimizer states");
}

}  // namespace

Result<RecoveredRun> recover(const MeasuredStep& measured, const trace::Vocabulary& vocabulary,
                             const std::string& file) {
  RecoveredRun run;
  std::vector<AttentionRun> attention;
  bool trains = false;
  for (std::size_t i = 0; i < measured.calls.size(); ++i) {
    const MeasuredCall& call = measured.calls[i];
    trains |= call.kind == Kind::attention_gradient || (call.backward && call.kind == Kind::product);
    if (call.kind != Kind::attention || call.backward || !plausible(call.dims[0]) || !plausible(call.dims[1])) continue;
    attention.push_back({i, call.dims[0], call.dims[1]});
    run.attention = call.attention;
    run.masked = call.masked;
    if (call.to_all && !call.masked) run.model.seen = std::max(run.model.seen, call.dims[1][2]);
  }
  if (attention.empty()) attention = plain_attention(measured, run);
  if (attention.empty())
    return fail(file, "no attention with shapes is in the profile, so that the request cannot be found from it",
                "profile a language model with record_shapes=True, or give the request: --against 'train MODEL ...'");
  std::vector<std::vector<std::int64_t>> queries, keys;
  for (const AttentionRun& one : attention) queries.push_back(one.query), keys.push_back(one.key);
  const std::vector<std::int64_t> query = most_common(queries), key = most_common(keys);
  run.batch = query[0];
  run.model.heads = query[1];
  run.model.head_dim = query[3];
  run.sequence = key[2];
  run.kind = trains          ? RecoveredRun::Kind::training
             : query[2] == 1 ? RecoveredRun::Kind::decode
                             : RecoveredRun::Kind::prefill;
  const std::int64_t tokens = run.batch * query[2];
  const std::vector<Product> products = products_of(measured, tokens);
  const auto runs = static_cast<std::int64_t>(attention.size());
  run.model.layers = runs;
  if (!read_layers(products, attention, run))
    return fail(file, "the products around attention have no shapes that make layers",
                "profile with record_shapes=True, or give the request: --against 'train MODEL ...'");
  // The head runs once for each microbatch, or for each step of a profile without marks.
  const std::int64_t heads = std::count_if(products.begin(), products.end(), [&](const Product& one) {
    return !one.backward && one.experts == 0 && one.inner == run.model.hidden && one.columns == run.model.vocabulary;
  });
  if (heads > 1 && runs % heads == 0) {
    run.model.layers = runs / heads;
    if (run.kind == RecoveredRun::Kind::training && !measured.name.empty()) run.microbatches = heads;
  }
  ASSAY_CHECK(read_embedding(measured, run, file));
  ASSAY_CHECK(check_recovered(measured, run.model, vocabulary, file));
  read_how(measured, run);
  if (run.kind == RecoveredRun::Kind::training) read_update(measured, vocabulary, run);
  CodeReader(measured, run).finish(runs);
  if (run.kind == RecoveredRun::Kind::training && measured.steps == 1) read_tied(measured, vocabulary.update, run);
  note_lacking(run);
  return run;
}

}  // namespace assay::compare
