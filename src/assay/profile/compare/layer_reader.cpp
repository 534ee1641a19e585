#include "assay/profile/compare/layer_reader.h"

#include <tuple>

namespace assay::compare {
namespace {

using Kind = MeasuredCall::Kind;

/// Reads the sizes of layers from the products between attention calls.
class LayerReader {
 public:
  LayerReader(const std::vector<Product>& products, RecoveredRun& run) : products_(products), run_(run) {}

  bool read(const std::vector<AttentionRun>& attention) {
    RecoveredModel& model = run_.model;
    std::vector<std::pair<std::int64_t, std::int64_t>> results;  // of attention: its width, and what it leads back to
    for (const AttentionRun& one : attention)
      if (const Product* after = next(one.call); after && after->inner % model.heads == 0)
        results.emplace_back(after->inner, after->columns);
    if (results.empty()) return false;
    std::tie(width_, model.hidden) = most_common(results);
    if (width_ == model.heads * model.head_dim)
      read_keys(attention);
    else if (!read_latent())
      return false;
    read_experts();
    if (model.experts == 0)
      read_feed_forward(attention);
    else
      read_dense_layers(attention);
    for (const Product& one : products_)
      if (!one.backward && one.inner == model.hidden && one.experts == 0)
        model.vocabulary = std::max(model.vocabulary, one.columns);
    // Without a head, the widest product is one of a layer.
    const std::int64_t widest = std::max({2 * model.intermediate, (model.heads + 2 * model.kv_heads) * model.head_dim});
    if (model.vocabulary <= widest) model.vocabulary = 0;
    return model.intermediate > 0;
  }

 private:
  const Product* next(std::size_t call) const {
    for (const Product& one : products_)
      if (one.call > call) return one.backward ? nullptr : &one;
    return nullptr;
  }

  /// Keys may be repeated for every head before attention: their projection tells how many there are.
  void read_keys(const std::vector<AttentionRun>& attention) {
    RecoveredModel& model = run_.model;
    const std::int64_t seen = attention.front().key[1];
    model.kv_heads = seen;
    if (seen != model.heads) return;
    for (const Product& one : products_) {
      if (one.backward || one.call > attention.front().call || one.inner != model.hidden ||
          one.columns % model.head_dim != 0)
        continue;
      const std::int64_t heads = one.columns / model.head_dim;
      if (heads < model.heads)
        model.kv_heads = heads;
      else if (heads > model.heads && (heads - model.heads) % 2 == 0)
        model.kv_heads = (heads - model.heads) / 2;
    }
    run_.repeats_keys = model.kv_heads < seen;
  }

  /// Keys and values of all heads are made of one compressed vector, beside a part of the keys that turns and that all
  /// heads share.
  bool read_latent() {
    RecoveredModel& model = run_.model;
    model.value_dim = width_ / model.heads;
    const auto from = [&](std::int64_t inner, std::int64_t columns) {
      return std::any_of(products_.begin(), products_.end(), [&](const Product& one) {
        return !one.backward && one.experts == 0 && one.inner == inner && one.columns == columns;
      });
    };
    for (const Product& one : products_) {
      if (one.backward || one.experts > 0 || one.columns % model.heads != 0) continue;
      const std::int64_t still = one.columns / model.heads - model.value_dim, turns = model.head_dim - still;
      if (still > 0 && turns > 0 && from(model.hidden, one.inner + turns)) {
        model.kv_rank = one.inner;
        model.rope_dim = turns;
      }
    }
    for (const Product& one : products_)
      if (!one.backward && one.columns == model.heads * model.head_dim && one.inner != model.hidden &&
          from(model.hidden, one.inner))
        model.q_rank = one.inner;
    return model.kv_rank > 0;
  }

  /// Layers before the first one with experts.
  void read_dense_layers(const std::vector<AttentionRun>& attention) {
    RecoveredModel& model = run_.model;
    const auto routed = std::find_if(products_.begin(), products_.end(),
                                     [](const Product& one) { return !one.backward && one.experts > 0; });
    const std::size_t first = routed == products_.end() ? 0 : routed->call;
    model.dense_layers =
        std::count_if(attention.begin(), attention.end(), [&](const AttentionRun& run) { return run.call < first; }) -
        1;
    for (const Product& one : products_)
      if (!one.backward && one.call < first && one.columns == model.hidden && one.inner != width_ &&
          one.inner != model.shared)
        model.dense_width = one.inner;
    if (model.dense_width == 0) model.dense_layers = 0;
  }

  void read_experts() {
    RecoveredModel& model = run_.model;
    for (const Product& one : products_) {
      if (one.backward || one.experts == 0 || one.columns != model.hidden) continue;
      model.experts = one.experts;
      model.intermediate = one.inner;
      model.experts_per_token = one.rows / (run_.batch * (run_.kind == RecoveredRun::Kind::decode ? 1 : run_.sequence));
    }
    std::int64_t up = 0;
    for (const Product& one : products_)
      if (!one.backward && one.experts > 0 && one.inner == model.hidden) up = std::max(up, one.columns);
    std::int64_t ups = std::count_if(products_.begin(), products_.end(), [&](const Product& one) {
      return !one.backward && one.experts > 0 && one.inner == model.hidden && one.columns == up;
    });
    const std::int64_t downs = std::count_if(products_.begin(), products_.end(), [&](const Product& one) {
      return !one.backward && one.experts > 0 && one.columns == model.hidden;
    });
    if (model.experts == 0) return;
    model.gated = up == 2 * model.intermediate || ups >= 2 * downs;
    read_shared_experts();
  }

  /// Products of all tokens that lead back to the residual stream, beside those of attention.
  void read_shared_experts() {
    RecoveredModel& model = run_.model;
    for (const Product& one : products_) {
      if (one.backward || one.experts > 0 || one.columns != model.hidden || one.inner == width_) continue;
      const bool leads_up = std::any_of(products_.begin(), products_.end(), [&](const Product& other) {
        return !other.backward && other.experts == 0 && other.inner == model.hidden && other.columns == one.inner &&
               other.call < one.call;
      });
      if (leads_up) model.shared = one.inner;
    }
  }

  /// The product of attention's result comes first, then what leads up, and what leads back to the residual stream.
  void read_feed_forward(const std::vector<AttentionRun>& attention) {
    RecoveredModel& model = run_.model;
    std::vector<std::tuple<std::int64_t, bool, bool>> found;  // width, whether it is gated, and by one product
    for (const AttentionRun& run : attention) {
      auto at =
          std::find_if(products_.begin(), products_.end(), [&](const Product& one) { return one.call > run.call; });
      if (at == products_.end()) continue;
      const auto first = ++at;
      while (at != products_.end() && !at->backward && at->columns != model.hidden) ++at;
      if (at == products_.end() || at->backward) continue;
      const auto ups = std::count_if(first, at, [&](const Product& one) { return one.columns == at->inner; });
      const auto both = std::count_if(first, at, [&](const Product& one) { return one.columns == 2 * at->inner; });
      if (ups + both > 0) found.emplace_back(at->inner, both > 0 || ups > 1, both > 0);
    }
    if (!found.empty()) std::tie(model.intermediate, model.gated, model.joined_gate) = most_common(found);
  }

  const std::vector<Product>& products_;
  RecoveredRun& run_;
  std::int64_t width_ = 0;  ///< of attention's result
};

}  // namespace

bool plausible(const std::vector<std::int64_t>& dims) {
  constexpr std::int64_t largest = 1 << 24;
  return std::all_of(dims.begin(), dims.end(), [](std::int64_t size) { return size >= 1 && size <= largest; });
}

std::vector<Product> products_of(const MeasuredStep& measured, std::int64_t tokens) {
  std::vector<Product> out;
  for (std::size_t i = 0; i < measured.calls.size(); ++i) {
    const MeasuredCall& call = measured.calls[i];
    if (call.kind != Kind::product) continue;
    const auto &a = call.dims[0], &b = call.dims[1];
    if (!plausible(a) || !plausible(b) || a.size() > 3) continue;
    if (a.size() == 2 && b.size() == 3)  // rows of all experts, with the weights of each
      out.push_back({a[0], a[1], b[2], b[0], call.backward, i});
    else if (b.size() == 2 && a.size() >= 2) {
      std::int64_t rows = 1;
      for (std::size_t d = 0; d + 1 < a.size(); ++d) rows *= a[d];
      if (rows == tokens || call.backward) out.push_back({rows, a.back(), b[1], 0, call.backward, i});
    }
  }
  return out;
}

bool read_layers(const std::vector<Product>& products, const std::vector<AttentionRun>& attention, RecoveredRun& run) {
  return LayerReader(products, run).read(attention);
}

}  // namespace assay::compare
