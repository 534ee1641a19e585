#include "assay/model/accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/model/layer_parts.h"
#include "assay/model/scan_kernels.h"

namespace assay::model {
namespace {

/// Layers that process text.
template <class F>
void for_each_used_kind(const Transformer& model, F visit) {
  model.for_each_kind([&](const Layer& layer, std::int64_t times) {
    if (!layer.needs_image) visit(layer, times);
  });
}

/// The part of a weight that one token uses.
std::int64_t active_elements(const Weight& weight, const FeedForward* feed_forward) {
  const std::int64_t elements = weight.elements();
  if (weight.dims[0].dim != LogicalDim::experts || weight.part != Part::experts) return elements;
  return elements / feed_forward->experts * feed_forward->experts_per_token;
}

void add(ParameterCounts& counts, const std::vector<Weight>& weights, std::int64_t times,
         const Layer* layer = nullptr) {
  const FeedForward* feed_forward = layer && layer->feed_forward ? &*layer->feed_forward : nullptr;
  const bool is_used = !layer || !layer->needs_image;
  for (const Weight& weight : weights) {
    const std::int64_t elements = weight.elements(), active = is_used ? active_elements(weight, feed_forward) : 0;
    const std::int64_t copies = weight.copies(times);
    counts.by_part[static_cast<std::size_t>(weight.part)] += copies * elements;
    counts.total += copies * elements;
    counts.active += copies * active;
    if (weight.matrix) counts.active_matrix += times * active;
    if (weight.matrix && !weight.trained) counts.frozen_matrix += times * active;
    if (weight.trained) counts.trained += copies * elements;
  }
}

/// Products of keys and values that a state accumulates; a plain convolution has none.
std::int64_t memory_cells(const StateSpace& s) {
  return s.kind == StateSpace::Kind::gated_convolution ? 0 : s.inner * s.key_dim;
}

/// Channels of the convolution: keys pass it too, unless they are computed from its result.
std::int64_t convolved_channels(const StateSpace& s) {
  return s.inner + (facts(s.kind).has(grouped_keys) ? 2 * s.key_heads * s.key_dim : 0);
}

/// Recurrent FLOP per token: cells of the state, and the convolution.
template <class N>
NumberOf<N, Flops> state_space_flops(const N& num, const StateSpace& s) {
  const ScanWork work = scan_work(s);
  NumberOf<N, Flops> sum{};
  if (work.per_cell > Flops())
    sum = num.given("FLOP of a cell", work.per_cell, work.formula) *
          num.given("cells of the state", static_cast<double>(memory_cells(s)), "channels x key dim");
  if (s.convolution == 0) return sum;
  return sum + multiply_and_add(num) *
                   num.given("convolution", static_cast<double>(s.convolution), "tokens that it reaches over") *
                   num.given("channels", static_cast<double>(convolved_channels(s)), "that it mixes");
}

std::int64_t state_values(const StateSpace& s) {
  return state_cells(s) + convolved_channels(s) * std::max<std::int64_t>(s.convolution - 1, 0);
}

/// Cached values of a token while it is in the window.
std::int64_t kv_values(const Attention& a) {
  if (a.shares_kv || (!a.causal && !a.cross)) return 0;  // an encoder sees its tokens once
  const std::int64_t index = a.compression > 0 || a.index_heads == 0 ? 0 : a.index_dim;
  if (a.kv_rank > 0) return a.kv_rank + a.rope_dim + index;
  return a.kv_heads * (a.head_dim + (a.one_cache ? 0 : a.value_dim)) + index;
}

/// Cached values of a key that stands for several tokens.
std::int64_t compressed_values(const Attention& a) {
  if (a.compression == 0) return 0;
  return a.kv_heads * a.head_dim + (a.index_heads > 0 ? a.index_dim : 0);
}

/// Values that one more token adds, rounded to whole values.
std::int64_t kv_growth(const Attention& a) {
  return kv_values(a) + (a.compression > 0 ? compressed_values(a) / a.compression : 0);
}

template <class N>
NumberOf<N, Flops> attention_flops_per_key(const N& num, const Attention& a) {
  return multiply_and_add(num) * num.given("heads", static_cast<double>(a.heads), "of queries") *
         num.given("elements of a head", static_cast<double>(a.head_dim + a.value_dim), "head_dim + value_dim");
}

/// Scores of the index: a product per head, and their weighted sum.
template <class N>
NumberOf<N, Flops> index_flops_per_key(const N& num, const Attention& a) {
  return multiply_and_add(num) * num.given("index heads", static_cast<double>(a.index_heads), "of queries") *
         num.given("elements of an index head", static_cast<double>(a.index_dim + 1), "index dim, and its weight");
}

/// Mean number of complete keys of `each` tokens that a query sees, at most `most`.
double mean_complete(double sequence, double each, double most, MaskCount count) {
  if (count == MaskCount::full) return std::min(most, std::floor(sequence / each));
  // Query t sees floor(t / each) of them, up to `most`; the area under these steps leaves out
  // the key that a query's own token completes.
  const double one = count == MaskCount::exact ? 1 : 0;
  const double growing = std::min(sequence, (most + 1) * each - one), whole = std::floor(growing / each);
  const double met = each * whole * (whole - 1) / 2 + whole * (growing - whole * each + one);
  return (met + (sequence - growing) * most) / sequence;
}

}  // namespace

ParameterCounts layer_parameter_counts(const Transformer& model, const Layer& layer) {
  ParameterCounts counts;
  add(counts, layer_weights(model, layer), 1, &layer);
  return counts;
}

double most_expert_load(const Transformer& model) {
  double most = 1.0;
  for (const Layer& layer : model.decoder.kinds)
    if (layer.has_experts())
      most = std::max(most, static_cast<double>(layer.feed_forward->experts) /
                                static_cast<double>(layer.feed_forward->experts_per_token));
  return most;
}

ParameterCounts parameter_counts(const Transformer& model) {
  ParameterCounts counts;
  add(counts, outer_weights(model), 1);
  model.for_each_kind(
      [&](const Layer& layer, std::int64_t times) { add(counts, layer_weights(model, layer), times, &layer); });
  if (model.head && model.tied) {
    const std::int64_t head = model.vocabulary * (model.embedding_width > 0 ? model.embedding_width : model.d_model);
    counts.active_matrix += head;
    if (model.adapters) counts.frozen_matrix += head;
  }
  return counts;
}

template <class N>
typename N::template Number<Dim{}> parameter_total(const N& num, const Transformer& model) {
  std::string shape;  // must outlive the copy in the number
  const auto sum_of = [&](const std::vector<Weight>& weights) {
    auto sum = num.given("nothing", 0.0, "no weights");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if constexpr (N::traced) {
        shape = shape_text(weights[i]);
        shape = shape.substr(1, shape.size() - 2);
      }
      const auto part = num.given(weights[i].name, static_cast<double>(weights[i].elements()), shape);
      sum = i == 0 ? part : sum + part;
    }
    return sum;
  };
  auto total = num.named("outside of the layers", sum_of(outer_weights(model)));
  std::size_t kind = 0;
  model.for_each_kind([&](const Layer& layer, std::int64_t times) {
    std::string label;
    if constexpr (N::traced) label = fmt::format("layer of kind {}", ++kind);
    std::vector<Weight> own = layer_weights(model, layer);
    const auto common = std::stable_partition(own.begin(), own.end(), [](const Weight& w) { return !w.shared; });
    const std::vector<Weight> shared(common, own.end());
    own.erase(common, own.end());
    const auto layers = num.given("layers", static_cast<double>(times), "of that kind");
    if (!own.empty()) total = total + layers * num.named(label, sum_of(own));
    if constexpr (N::traced) label = fmt::format("shared by layers of kind {}", kind);
    if (!shared.empty()) total = total + num.named(label, sum_of(shared));
  });
  return num.named("parameters", total);
}
template double parameter_total(const Plain&, const Transformer&);
template Traced::Number<Dim{}> parameter_total(const Traced&, const Transformer&);

std::string_view name(MaskCount count) {
  static constexpr std::string_view names[] = {"exact", "half", "full"};
  return names[static_cast<std::size_t>(count)];
}

double mean_keys(const Attention& a, double sequence, MaskCount count) {
  if (!a.causal && a.window > 0 && sequence > 0) {
    const auto reach = static_cast<double>((a.window - 1) / 2);
    if (count == MaskCount::full) return std::min(sequence, static_cast<double>(a.window));
    const double side = sequence - 1 <= reach ? sequence * (sequence - 1) / 2
                                              : reach * (reach + 1) / 2 + (sequence - 1 - reach) * reach;
    return 1 + 2 * side / sequence;
  }
  if (a.cross || !a.causal || sequence <= 0) return sequence;
  double limit = sequence;
  if (a.window > 0) limit = std::min(limit, static_cast<double>(a.window));
  if (a.chunk > 0) limit = std::min(limit, static_cast<double>(a.chunk));
  const double picks = a.index_heads > 0 ? static_cast<double>(a.index_picks) : sequence;
  if (a.compression == 0) limit = std::min(limit, picks);
  const double compressed =
      a.compression > 0 ? mean_complete(sequence, static_cast<double>(a.compression), picks, count) : 0.0;
  if (count == MaskCount::full) return limit + compressed;
  // The area under the mask, or with the full diagonal: 1 + 2 + ... + n is n (n + 1) / 2.
  const double one = count == MaskCount::exact ? 1 : 0;
  if (a.chunk > 0 && limit < sequence) {  // whole chunks, and the rest as a shorter one
    const double chunks = std::floor(sequence / limit), rest = sequence - chunks * limit;
    return (chunks * limit * (limit + one) + rest * (rest + one)) / 2 / sequence + compressed;
  }
  // The first `limit` queries see 1, 2, ... keys, all later ones `limit`.
  return (limit * (limit + one) / 2 + (sequence - limit) * limit) / sequence + compressed;
}

double mean_candidates(const Attention& a, double sequence, MaskCount count) {
  if (a.index_heads == 0 || sequence <= 0) return 0.0;
  if (a.compression == 0) return mean_keys({}, sequence, count);
  return mean_complete(sequence, static_cast<double>(a.compression), sequence, count);
}

Flops attention_flops(const Attention& a, double sequence, MaskCount count) {
  return attention_flops_per_key(Plain{}, a) * mean_keys(a, sequence, count) +
         index_flops_per_key(Plain{}, a) * mean_candidates(a, sequence, count);
}

std::int64_t state_cells(const StateSpace& s) {
  if (s.kind == StateSpace::Kind::rwkv4) return 3 * s.inner;  // numerator, denominator and the largest exponent
  // A normaliser has one number per key dimension, and the largest exponent.
  const std::int64_t normaliser = facts(s.kind).has(normalised) ? s.heads * (s.key_dim + 1) : 0;
  return memory_cells(s) + normaliser;
}

ScanWork scan_work(const StateSpace& s) {
  const Mixer& mixer = facts(s.kind);
  const double normaliser = static_cast<double>(s.heads) / static_cast<double>(s.inner);
  return {Flops(mixer.per_cell * (mixer.has(normalised) ? 1.0 + normaliser : 1.0)), mixer.formula};
}

ScanKernels scan_kernels(const StateSpace& s) {
  const Mixer& mixer = facts(s.kind);
  ScanKernels out{scan_work(s).per_cell, static_cast<double>(s.key_dim)};
  if (mixer.has(by_token)) return out;
  out.chunk = static_cast<double>(s.chunk);
  out.delta = mixer.has(delta_rule);
  // The heads of a group share scores if only decays differ.
  const std::int64_t sharing = s.kind == StateSpace::Kind::mamba2 ? s.key_heads : s.heads;
  out.scores = out.chunk * static_cast<double>(sharing) / static_cast<double>(s.inner);
  return out;
}

template <class N>
TokenFlops<N> token_flops(const N& num, const Transformer& model, std::int64_t sequence, MaskCount count) {
  const double matrix = static_cast<double>(parameter_counts(model).active_matrix);
  const auto tokens = static_cast<double>(sequence);
  const auto matmul = num.named(
      "matmul", multiply_and_add(num) * num.given("active matrix elements", matrix, "weights, head included"));
  auto attention = num.given("attention", Flops(0), "no attention");
  auto recurrent = num.given("state space", Flops(0), "no state space");
  bool first_attention = true, first_state = true;
  for_each_used_kind(model, [&](const Layer& layer, std::int64_t times) {
    const auto layers = static_cast<double>(times);
    for (const auto* a :
         {layer.attention ? &*layer.attention : nullptr, layer.cross_attention ? &*layer.cross_attention : nullptr}) {
      if (!a) continue;
      const auto part = num.given("layers", layers, "of one kind") *
                        (num.named("FLOP of a key", attention_flops_per_key(num, *a)) *
                         num.given("keys per query", mean_keys(*a, tokens, count), name(count)));
      attention = first_attention ? part : attention + part;
      first_attention = false;
      if (a->index_heads > 0)
        attention =
            attention + num.given("layers", layers, "of one kind") *
                            (num.named("FLOP of a candidate", index_flops_per_key(num, *a)) *
                             num.given("candidates per query", mean_candidates(*a, tokens, count), name(count)));
    }
    if (layer.state_space) {
      const auto part = num.given("layers", layers, "of one kind") *
                        num.named("recurrence", state_space_flops(num, *layer.state_space));
      recurrent = first_state ? part : recurrent + part;
      first_state = false;
    }
  });
  attention = first_attention ? attention : num.named("attention", attention);
  recurrent = first_state ? recurrent : num.named("state space", recurrent);
  auto forward = matmul;
  if (!first_attention) forward = forward + attention;
  if (!first_state) forward = forward + recurrent;
  forward = num.named("forward", forward);
  const auto backward = num.named("backward", 2.0 * forward);
  const auto train = num.named("train", forward + backward);
  return {matmul, attention, recurrent, forward, backward, train};
}
template TokenFlops<Plain> token_flops(const Plain&, const Transformer&, std::int64_t, MaskCount);
template TokenFlops<Traced> token_flops(const Traced&, const Transformer&, std::int64_t, MaskCount);

template <class N>
NumberOf<N, Flops> sequence_flops(const N& num, const Transformer& model, std::int64_t sequence, std::int64_t source) {
  const auto tokens = static_cast<double>(sequence), read = static_cast<double>(source);
  const auto forward = num.given("tokens", tokens, "of a sequence") * token_flops(num, model, sequence).forward;
  if (!model.encoder || source == sequence) return forward;
  // Start from equal lengths: subtract what depends on the encoder's tokens, then add it for the real length.
  Transformer decoder = model;
  decoder.encoder.reset();
  double source_matrices = static_cast<double>(parameter_counts(model).active_matrix) -
                           static_cast<double>(parameter_counts(decoder).active_matrix);
  NumberOf<N, Flops> alike{}, apart{};  // attention over the encoder's tokens
  const auto add = [&](const LayerStack& stack, bool is_encoder) {
    for (std::size_t i = 0; i < stack.kinds.size(); ++i) {
      const auto layers = static_cast<double>(stack.count(i));
      const auto& attention = is_encoder ? stack.kinds[i].attention : stack.kinds[i].cross_attention;
      if (!attention) continue;
      if (!is_encoder)
        source_matrices += layers * static_cast<double>(model.d_model * attention->kv_heads *
                                                        (attention->head_dim + attention->value_dim));
      const auto per_key = num.given("layers", layers, "of one kind") *
                           num.named("FLOP of a key", attention_flops_per_key(num, *attention));
      const auto met = [&](double queries, double keys) {
        return num.given("queries", queries, "of a sequence") *
               num.given("keys per query", mean_keys(*attention, keys, MaskCount::exact), name(MaskCount::exact)) *
               per_key;
      };
      alike = alike + met(tokens, tokens);
      apart = apart + met(is_encoder ? read : tokens, read);
    }
  };
  add(*model.encoder, true);
  add(model.decoder, false);
  return forward +
         num.given("tokens beyond", read - tokens, "of the encoder's sequence") *
             num.given("matrix elements", source_matrices, "that read the encoder's tokens") * multiply_and_add(num) +
         (num.named("attention over the encoder's tokens", apart) - num.named("if they were as many", alike));
}

template <class N>
NumberOf<N, Flops> training_flops(const N& num, const Transformer& model, std::int64_t sequence, std::int64_t source) {
  const auto all = num.given("passes", 3.0, "forward, and two backward") *
                   num.named("forward pass of a sequence", sequence_flops(num, model, sequence, source));
  const auto frozen = static_cast<double>(parameter_counts(model).frozen_matrix);
  if (frozen == 0.0) return all;
  return all - num.given("tokens", static_cast<double>(sequence), "of a sequence") *
                   num.given("frozen matrix elements", frozen, "without gradients") * multiply_and_add(num);
}
#define ASSAY_INSTANTIATE(N)                                                                            \
  template NumberOf<N, Flops> sequence_flops(const N&, const Transformer&, std::int64_t, std::int64_t); \
  template NumberOf<N, Flops> training_flops(const N&, const Transformer&, std::int64_t, std::int64_t);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

std::int64_t kv_values_per_token(const Transformer& model) {
  std::int64_t values = 0;
  for (std::size_t i = 0; i < model.decoder.kinds.size(); ++i)
    if (const auto& a = model.decoder.kinds[i].attention) values += model.decoder.count(i) * kv_growth(*a);
  return values;
}

std::int64_t kv_values_per_sequence(const Transformer& model, std::int64_t sequence) {
  return kv_values_per_sequence(model, sequence, sequence);
}

std::int64_t held_tokens(const Attention& a, std::int64_t sequence) {
  if (a.window > 0) sequence = std::min(sequence, a.window);
  return a.chunk > 0 ? std::min(sequence, a.chunk) : sequence;
}

namespace {

std::int64_t met_tokens(const Attention& a, std::int64_t sequence) {
  return a.chunk > 0 && sequence > 0 ? (sequence - 1) % a.chunk + 1 : held_tokens(a, sequence);
}

std::int64_t kv_values_of(const Transformer& model, std::int64_t sequence, std::int64_t source,
                          std::int64_t (*tokens)(const Attention&, std::int64_t)) {
  std::int64_t values = 0;
  for (std::size_t i = 0; i < model.decoder.kinds.size(); ++i) {
    const Layer& layer = model.decoder.kinds[i];
    if (layer.needs_image) continue;
    if (layer.attention) {
      values += model.decoder.count(i) * tokens(*layer.attention, sequence) * kv_values(*layer.attention);
      if (const std::int64_t each = layer.attention->compression; each > 0)
        values += model.decoder.count(i) * (sequence / each) * compressed_values(*layer.attention);
    }
    if (layer.cross_attention) values += model.decoder.count(i) * source * kv_values(*layer.cross_attention);
  }
  return values;
}

}  // namespace

std::int64_t kv_values_per_sequence(const Transformer& model, std::int64_t sequence, std::int64_t source) {
  return kv_values_of(model, sequence, source, held_tokens);
}

std::int64_t kv_values_met(const Transformer& model, std::int64_t sequence, std::int64_t source) {
  return kv_values_of(model, sequence, source, met_tokens);
}

std::int64_t state_values_per_sequence(const Transformer& model) {
  std::int64_t values = 0;
  for (std::size_t i = 0; i < model.decoder.kinds.size(); ++i) {
    const Layer& layer = model.decoder.kinds[i];
    const std::int64_t layers = model.decoder.count(i);
    if (layer.state_space) values += layers * state_values(*layer.state_space);
    // The last token, if each token is mixed with the one before it.
    if (layer.state_space && is_shifted(*layer.state_space)) values += layers * model.d_model;
    if (layer.feed_forward && layer.feed_forward->shifted) values += layers * model.d_model;
  }
  return values;
}

template <class N>
typename N::template Number<Dim{.byte = 1}> kv_bytes_per_token(const N& num, const Transformer& model, Dtype dtype) {
  const auto per_value = num.given("per value", storage(dtype, 1), name(dtype));
  auto values = num.given("values", 0.0, "no attention");
  bool first = true;
  for (std::size_t i = 0; i < model.decoder.kinds.size(); ++i) {
    const auto& a = model.decoder.kinds[i].attention;
    if (!a) continue;
    const auto part = num.given("layers", static_cast<double>(model.decoder.count(i)), "of one kind") *
                      num.given("values of a layer", static_cast<double>(kv_growth(*a)),
                                a->shares_kv         ? "keys of an earlier layer"
                                : a->compression > 0 ? "keys of the window, and the compressed ones' share"
                                : a->index_heads > 0 ? "kv rank + rope dim + index dim"
                                : a->kv_rank > 0     ? "kv rank + rope dim"
                                : a->one_cache       ? "kv heads x head_dim"
                                                     : "kv heads x (head_dim + value_dim)");
    values = first ? part : values + part;
    first = false;
  }
  return num.named("kv bytes per token", values * per_value);
}
template Bytes kv_bytes_per_token(const Plain&, const Transformer&, Dtype);
template Traced::Number<Dim{.byte = 1}> kv_bytes_per_token(const Traced&, const Transformer&, Dtype);

Bytes kept_bytes_per_token(const Transformer& model, KeepPolicy policy, Dtype dtype) {
  Bytes total;
  for_each_used_kind(model, [&](const Layer& layer, std::int64_t times) {
    for (const Kept& kept : kept_activations(model, layer, policy))
      total += static_cast<double>(times) * storage(kept.dtype.value_or(dtype), static_cast<double>(kept.elements));
  });
  return total;
}

}  // namespace assay::model
