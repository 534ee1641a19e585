#include "assay/lower/layers.h"

#include <algorithm>
#include <cmath>

#include "assay/base/result.h"

namespace assay {
namespace {

using enum LogicalDim;

std::size_t at(int id) { return static_cast<std::size_t>(id); }

class LayerWriter {
 public:
  LayerWriter(Builder& builder, const Transformer& model, const Layer& layer, const Workload& work, int encoded)
      : build_(builder), model_(model), layer_(layer), work_(work), encoded_(encoded) {
    const std::vector<Weight> weights = layer_weights(model, layer);
    weights_.reserve(weights.size());
    for (const Weight& weight : weights) weights_.push_back({weight, -1});
  }

  int write(int input) {
    int x = input;
    const int mixers = (layer_.attention || layer_.state_space ? 1 : 0) + (layer_.cross_attention ? 1 : 0) +
                       (layer_.feed_forward ? 1 : 0);
    sandwich_ = mixers > 0 && layer_.norms == 2 * mixers && !layer_.parallel;
    if (layer_.parallel && layer_.feed_forward && layer_.attention) return parallel(x);
    if (layer_.attention) x = joined_to(x, attention_block(*layer_.attention, normed(x)), "Mid");
    if (layer_.state_space) x = joined_to(x, state_space(*layer_.state_space, normed(x)), "Mid");
    if (layer_.cross_attention) x = joined_to(x, attention_block(*layer_.cross_attention, normed(x)), "Mid");
    if (layer_.feed_forward) x = joined_to(x, feed_forward(*layer_.feed_forward, normed(x), -1), "Out");
    return x;
  }

 private:
  struct Entry {
    Weight weight;
    int id;
    bool taken = false;
  };

  /// The tensor of the next unused weight of that name; below 0 where the model has none.
  int weight(std::string_view name) {
    for (Entry& entry : weights_)
      if (entry.weight.name == name && !entry.taken) {
        entry.taken = true;
        return entry.id >= 0 ? entry.id : entry.id = build_.weight(entry.weight);
      }
    return -1;
  }

  int normed(int x) {
    if (layer_.norms == 0) return x;
    return norm(x, "norm", "Norm");
  }

  int norm(int x, std::string_view scale, std::string_view name) {
    const int w = weight(scale);
    return build_.norm(name, x, w, scale == "norm" ? weight("b_norm") : -1);
  }

  /// x + branch, the branch brought to where x lies.
  int joined_to(int x, int branch, std::string_view name) {
    int settled = build_.settle(branch, TensorClass::residual);
    if (sandwich_) settled = norm(settled, "norm", "PostNorm");
    return add(x, settled, name);
  }

  int add(int x, int y, std::string_view name) {
    const int out = build_.pointwise(Op::add, name, {x, y}, x);
    build_.program().tensors[at(out)].tensor_class = TensorClass::residual;
    return out;
  }

  /// Attention and feed-forward read the same input; their partial sums are added before they are reduced.
  int parallel(int x) {
    const int normal = normed(x);
    const int second = layer_.norms > 1 ? normed(x) : normal;
    const int mixed = attention_block(*layer_.attention, normal);
    const int both = layer_.feed_forward->experts > 0 ? -1 : feed_forward(*layer_.feed_forward, second, mixed);
    if (both >= 0) return joined_to(x, both, "Out");
    const int mid = joined_to(x, mixed, "Mid");
    return joined_to(mid, feed_forward(*layer_.feed_forward, second, -1), "Out");
  }

  // --- attention

  int attention_block(const Attention& a, int x) {
    int o;
    if (a.kv_rank > 0) {
      o = latent_attention(a, x);
    } else {
      const std::string_view wq = a.cross ? "W_cq" : "W_q", wk = a.cross ? "W_ck" : "W_k",
                             wv = a.cross ? "W_cv" : "W_v";
      const int source = a.cross ? encoded_ : x;
      int k, v;
      int q = build_.product("Q", x, weight(wq), {batch, sequence, heads, head_dim});
      if (a.shares_kv) {
        k = shared(a, "K", a.head_dim, head_dim), v = shared(a, "V", a.value_dim, value_dim);
      } else {
        k = build_.product("K", source, weight(wk), {batch, sequence, kv_heads, head_dim});
        const int w = weight(wv);
        v = w < 0 ? k : build_.product("V", source, w, {batch, sequence, kv_heads, value_dim});
      }
      if (a.qk_norm != Attention::QkNorm::none) {
        q = norm(q, "q_norm", "Q");
        if (!a.shares_kv) k = norm(k, "k_norm", "K");
      }
      if (model_.learned_positions == 0 && a.relative_buckets == 0 && !a.cross) {
        q = build_.pointwise(Op::rotate, "Q", {q}, q);
        if (!a.shares_kv) k = build_.pointwise(Op::rotate, "K", {k}, k);
      }
      k = build_.settle(k, TensorClass::key_value);
      v = build_.settle(v, TensorClass::key_value);
      if (work_.cached && !a.cross) k = cached(k, a, "K_cache"), v = cached(v, a, "V_cache");
      o = attend(a, build_.settle(q, TensorClass::query), k, v, {value_dim, a.value_dim});
    }
    if (a.output_gate) {
      const int gate = build_.product("Gate", x, weight("W_og"), {batch, sequence, heads, value_dim});
      o = build_.pointwise(Op::activate, "O", {o, build_.reshard(gate, sharding(o), Urgency::critical)}, o);
    }
    return build_.product("Attn", o, weight(a.cross ? "W_co" : "W_o"), {batch, sequence, d_model});
  }

  Sharding sharding(int id) { return build_.program().tensor(id).sharding; }

  /// Keys or values of an earlier layer.
  int shared(const Attention& a, std::string_view name, std::int64_t size, LogicalDim dim) {
    return build_.given(name,
                        {{batch, work_.sequences}, {sequence, work_.queries}, {kv_heads, a.kv_heads}, {dim, size}},
                        TensorClass::key_value, build_.formats().activations);
  }

  /// The cache with the new keys (or values) written into its last places, in the cache's format.
  int cached(int fresh, const Attention& a, std::string_view name) {
    Program& program = build_.program();
    ProgramTensor made = program.tensor(fresh);
    // The first of the new tokens looks back a window, the last one sees all new ones.
    const std::int64_t kept = a.window > 0 ? std::min(a.window + work_.queries - 1, work_.keys) : work_.keys;
    made.name = name;
    made.dims[1] = {context, kept};
    made.tensor_class = TensorClass::key_value;
    made.dtype = build_.formats().kv_cache;
    made.is_given = true, made.is_kept = false;
    made.sharding = build_.ruled(TensorClass::key_value, std::span(made.dims.data(), made.rank));
    program.tensors.push_back(made);
    const int before = static_cast<int>(program.tensors.size()) - 1;
    if (a.shares_kv) return before;  // the layer that made them wrote them
    const int after = build_.pointwise(Op::cast, name, {fresh, before}, before);
    program.tensors[at(after)].tensor_class = TensorClass::key_value;
    const ProgramTensor& written = program.tensor(fresh);
    program.steps.back().bytes = local_bytes(program, written) + storage(made.dtype, local_elements(program, written));
    return after;
  }

  // --- multi-head latent attention

  int latent_attention(const Attention& a, int x) {
    int q = x;
    if (a.q_rank > 0) {
      q = build_.product("C_q", x, weight("W_qa"), {batch, sequence, rank});
      q = norm(q, "qa_norm", "C_q");
    }
    q = build_.product("Q", q, weight(a.q_rank > 0 ? "W_qb" : "W_q"), {batch, sequence, heads, head_dim});
    q = build_.pointwise(Op::rotate, "Q", {q}, q);
    const int both = build_.settle_sums(build_.product("C_kv", x, weight("W_kva"), {batch, sequence, rank}));
    // The latent part is normalised, the rest is a key's position, shared by all heads.
    int c = resized(both, "C", rank, a.kv_rank), place = resized(both, "K_pos", rank, a.rope_dim);
    build_.emit(Op::split, {both}, {c, place});
    c = norm(c, "kva_norm", "C");
    place = build_.pointwise(Op::rotate, "K_pos", {place}, place);
    const int expansion = weight("W_kvb");
    if (!work_.cached) {
      int k, v;
      expand(a, c, place, expansion, sequence, k, v);
      return attend(a, build_.settle(q, TensorClass::query), build_.settle(k, TensorClass::key_value),
                    build_.settle(v, TensorClass::key_value), {value_dim, a.value_dim});
    }
    // The cache holds what was compressed.
    int latent = resized(both, "Latent", rank, a.kv_rank + a.rope_dim);
    build_.emit(Op::split, {c, place}, {latent});
    latent = cached(build_.settle(latent, TensorClass::key_value), a, "KV_cache");
    // Expanding the cache costs kv_rank x (head_dim - rope_dim + value_dim) products per head and key, attending in
    // latent form 2 kv_rank + rope_dim - head_dim - value_dim more than otherwise per head, key and query.
    const std::int64_t once = a.kv_rank * (a.head_dim - a.rope_dim + a.value_dim);
    const std::int64_t per_query = 2 * a.kv_rank + a.rope_dim - a.head_dim - a.value_dim;
    return work_.queries * per_query < once ? absorbed(a, q, latent, expansion) : expanded(a, q, latent, expansion);
  }

  /// Keys and values of all heads from their latent form.
  void expand(const Attention& a, int c, int place, int expansion, LogicalDim along, int& k, int& v) {
    const int both = build_.product("KV", c, expansion, {batch, along, heads, head_dim});
    Sharding beside = sharding(place);
    for (std::size_t i = 0; i < 2; ++i) beside.dims[i] = sharding(both).dims[i];
    place = build_.reshard(place, beside, Urgency::critical);
    k = resized(both, "K", head_dim, a.head_dim);
    v = resized(both, "V", head_dim, a.value_dim);
    build_.program().tensors[at(v)].dims[3].dim = value_dim;
    build_.emit(Op::split, {both, place}, {k, v});
  }

  int expanded(const Attention& a, int q, int latent, int expansion) {
    const int c = resized(latent, "C", rank, a.kv_rank), place = resized(latent, "K_pos", rank, a.rope_dim);
    build_.emit(Op::split, {latent}, {c, place});
    int k, v;
    expand(a, c, place, expansion, context, k, v);
    return attend(a, build_.settle(q, TensorClass::query), build_.settle(k, TensorClass::key_value),
                  build_.settle(v, TensorClass::key_value), {value_dim, a.value_dim});
  }

  /// Attention in latent form: the keys' half of the expansion is applied to the queries, the values' half to the
  /// result, and all heads share the cache.
  int absorbed(const Attention& a, int q, int latent, int expansion) {
    const int w = build_.used(expansion);
    const int w_k = resized(w, "W_kb", head_dim, a.head_dim - a.rope_dim);
    const int w_v = resized(w, "W_vb", head_dim, a.value_dim);
    build_.program().tensors[at(w_v)].dims[2].dim = value_dim;
    build_.emit(Op::split, {w}, {w_k, w_v}).bytes = Bytes(0);  // two views of one weight
    q = build_.settle_sums(q);
    const int plain = resized(q, "Q", head_dim, a.head_dim - a.rope_dim),
              place = resized(q, "Q_pos", head_dim, a.rope_dim);
    build_.emit(Op::split, {q}, {plain, place}).bytes = Bytes(0);
    const int turned = build_.product("Q_lat", plain, w_k, {batch, sequence, heads, rank});
    int whole = resized(q, "Q_lat", head_dim, a.kv_rank + a.rope_dim);
    build_.emit(Op::split, {turned, place}, {whole});
    whole = build_.settle(whole, TensorClass::query);
    const int o = attend(a, whole, latent, -1, {rank, a.kv_rank});
    return build_.product("O", o, w_v, {batch, sequence, heads, value_dim});
  }

  /// A new tensor like `like` with another size of one dimension.
  int resized(int like, std::string_view name, LogicalDim dim, std::int64_t size) {
    ProgramTensor made = build_.program().tensor(like);
    made.name = name;
    made.is_given = made.is_kept = false;
    made.dims[at(made.find(dim))].size = size;
    build_.program().tensors.push_back(made);
    return static_cast<int>(build_.program().tensors.size()) - 1;
  }

  /// Values below 0: they are the leading part of the keys.
  int attend(const Attention& a, int q, int k, int v, Weight::Size result) {
    Program& program = build_.program();
    const ProgramTensor& keys = program.tensor(k);
    const int along = keys.find(context);
    const AxisSet over = along >= 0 ? keys.sharding.dims[at(along)].set() : 0;
    AttentionShape shape;
    shape.causal = a.causal && !a.cross && work_.causal_flops;
    shape.flash = work_.flash || over != 0;
    shape.window = a.window, shape.chunk = a.chunk;
    shape.queries = work_.queries;
    shape.keys = a.cross ? work_.source : work_.keys;
    program.attentions.push_back(shape);
    ProgramTensor out = program.tensor(q);
    out.name = "O";
    out.tensor_class = TensorClass::activation;
    out.dims[3] = result;
    out.sharding.unreduced = over;
    program.tensors.push_back(out);
    const int o = static_cast<int>(program.tensors.size()) - 1;
    // Flash attention keeps one number per query and head; plain attention keeps all probabilities.
    ProgramTensor rest = out;
    if (shape.flash) {
      rest.name = "L", rest.rank = 3, rest.dtype = Dtype::fp32;
    } else {
      rest.name = "P";
      rest.dims[3] = {context, shape.keys};
      rest.sharding.dims[3] = {};
    }
    program.tensors.push_back(rest);
    const int second = static_cast<int>(program.tensors.size()) - 1;
    Step& step = build_.emit(Op::attention, {q, k, v}, {o, second});
    step.detail = static_cast<std::int16_t>(program.attentions.size() - 1);
    const ProgramTensor& queries = program.tensor(q);
    const double rows =
        local_extent(program, queries, 0) * local_extent(program, queries, 1) * local_extent(program, queries, 2);
    const double met = shape.flash ? shape.mean_keys() : static_cast<double>(shape.keys);
    step.flops = Flops(2.0 * rows * met / program.ways(over) * static_cast<double>(queries.dims[3].size + result.size));
    if (!shape.flash)  // scores are written, read, written as probabilities (counted as a result) and read
      step.bytes += 3.0 * local_bytes(program, program.tensor(second));
    return over ? merged(o, second) : build_.reshard(o, beside_output(o), Urgency::critical);
  }

  /// Where the output projection wants the result of attention: tokens as in the rest of the layer, heads as its
  /// weight.
  Sharding beside_output(int o) {
    const ProgramTensor& result = build_.program().tensor(o);
    Sharding target = build_.ruled(TensorClass::activation, std::span(result.dims.data(), 2));
    target.dims[2] =
        remaining(build_.ruled(TensorClass::used_weight, std::span(&result.dims[2], 1)).dims[0], target.split_axes());
    return target;
  }

  /// Ends attention over a cache that is split by position: sums of weighted values and of weights are added up over
  /// the devices and divided.
  int merged(int o, int weights) {
    const Sharding target = beside_output(o);
    o = build_.reshard(o, target, Urgency::critical);
    weights = build_.reshard(weights, target, Urgency::critical);
    return build_.pointwise(Op::attention, "O", {o, weights}, o);
  }

  // --- feed-forward

  int feed_forward(const FeedForward& f, int x, int onto) {
    if (f.experts > 0) return experts_block(f, x);
    return dense(f, x, "W_in", "W_gate", "W_out", onto, {batch, sequence, width}, {batch, sequence, d_model});
  }

  int dense(const FeedForward& f, int x, std::string_view in, std::string_view gate, std::string_view out, int onto,
            std::initializer_list<LogicalDim> hidden, std::initializer_list<LogicalDim> result) {
    int up = build_.product("Up", x, weight(in), hidden);
    up = build_.settle_sums(up);
    int g = -1;
    if (f.gated) {
      g = build_.product("Gate", x, weight(gate), hidden);
      g = build_.settle_sums(g);
    }
    const int act = build_.pointwise(Op::activate, "Act", {up, g}, up);
    return build_.product("Down", act, weight(out), result, onto);
  }

  int experts_block(const FeedForward& f, int x) {
    Program& program = build_.program();
    const double k = static_cast<double>(f.experts_per_token), n = static_cast<double>(f.experts);
    const int scores = build_.settle_sums(build_.product("Router", x, weight("W_router"), {batch, sequence, other}));
    weight("b_router");
    const int gates = build_.pointwise(Op::route, "Route", {scores}, scores);
    // The tokens as each device sends them: slots of all experts, from the tokens that it holds.
    int through = x;
    if (f.latent > 0)
      through = build_.settle_sums(build_.product("Latent", x, weight("W_latent_in"), {batch, sequence, rank}));
    const ProgramTensor held = program.tensor(through);
    ProgramTensor sent = held;
    sent.name = "Sent";
    sent.tensor_class = TensorClass::activation;
    sent.sharding = {};
    // Slots have no order of their own, so the axes that leave for the experts go innermost, where they can.
    const std::array<Weight::Size, 2> places{Weight::Size{experts, f.experts}, Weight::Size{capacity, 1}};
    const Sharding there = build_.ruled(TensorClass::dispatched, places);
    const AxisList all = joined(held.sharding.dims[0], held.sharding.dims[1]);
    const AxisSet stay = there.dims[1].set(), leave = there.dims[0].set();
    const AxisList holders =
        joined(joined(remaining(there.dims[1], ~all.set()), remaining(all, stay | leave)), remaining(all, ~leave));
    const double slots = std::ceil(work_.tokens() * k * work_.expert_load / n / program.ways(holders.set())) *
                         program.ways(holders.set());
    sent.dims[0] = {experts, f.experts};
    sent.dims[1] = {capacity, static_cast<std::int64_t>(slots)};
    sent.sharding.dims[1] = holders;
    sent.sharding.dims[2] = held.sharding.dims[2];
    program.tensors.push_back(sent);
    const int out = static_cast<int>(program.tensors.size()) - 1;
    build_.emit(Op::dispatch, {through, gates}, {out});
    build_.touched_experts = touched_share(work_.tokens(), k, n);
    build_.filled_slots = work_.tokens() * k * work_.expert_load / (n * slots);
    int at_experts = build_.settle(out, TensorClass::dispatched, "Expert");
    const LogicalDim inside = f.latent > 0 ? rank : d_model;
    int done =
        dense(f, at_experts, "W_in", "W_gate", "W_out", -1, {experts, capacity, width}, {experts, capacity, inside});
    done = build_.reshard(done, sent.sharding, Urgency::critical, "Back");
    build_.touched_experts = build_.filled_slots = 1.0;
    int y = build_.pointwise(Op::combine, "Moe", {done, gates}, through);
    if (f.latent > 0) y = build_.product("Moe", y, weight("W_latent_out"), {batch, sequence, d_model});
    if (f.shared_width == 0) return y;
    int common = dense(f, x, "W_in_shared", "W_gate_shared", "W_out_shared", -1, {batch, sequence, width},
                       {batch, sequence, d_model});
    common = build_.settle(common, TensorClass::residual);
    y = build_.settle(y, TensorClass::residual);
    return add(y, common, "Moe");
  }

  // --- state spaces

  int state_space(const StateSpace& s, int x) {
    Program& program = build_.program();
    int mixed = -1, low = -1;
    std::array<int, 4> rest{-1, -1, -1, -1};
    std::size_t others = 0;
    for (Entry& entry : weights_) {
      if (entry.weight.part != Part::state_space || !entry.weight.matrix || entry.weight.name == "W_so") continue;
      entry.taken = true;
      const int w = entry.id = build_.weight(entry.weight);
      const Weight& shape = entry.weight;
      const LogicalDim from = shape.dims[0].dim, to = shape.dims[1].dim;
      const int source = from == inner ? mixed : from == rank ? low : x;
      int made = shape.rank == 3 ? build_.product("P", source, w, {batch, sequence, heads, head_dim})
                                 : build_.product(shape.name.substr(2), source, w, {batch, sequence, to});
      made = build_.settle_sums(made);
      if (to == rank) {
        low = made;
      } else if (to == inner && mixed < 0 && from == d_model) {
        mixed = s.convolution > 0 ? build_.pointwise(Op::convolve, "Conv", {made}, made) : made;
      } else if (others < rest.size()) {
        rest[others++] = made;
      }
    }
    const int y = build_.pointwise(Op::scan, "State", {mixed, rest[0], rest[1], rest[2], rest[3]}, mixed);
    // Per token, value and state element: the state is decayed and added to, then read; a delta rule reads it twice.
    const double per_element = s.kind == StateSpace::Kind::gated_delta ? 6.0 : 4.0;
    program.steps.back().flops =
        Flops(per_element * local_elements(program, program.tensor(y)) * static_cast<double>(s.key_dim));
    return build_.product("Mixed", y, weight("W_so"), {batch, sequence, d_model});
  }

  Builder& build_;
  const Transformer& model_;
  const Layer& layer_;
  const Workload& work_;
  int encoded_;
  bool sandwich_ = false;
  std::vector<Entry> weights_;
};

}  // namespace

double touched_share(double tokens, double k, double n) { return 1.0 - std::pow(1.0 - k / n, tokens); }

int forward_layer(Builder& builder, const Transformer& model, const Layer& layer, const Workload& work, int input,
                  int encoded) {
  return LayerWriter(builder, model, layer, work, encoded).write(input);
}

}  // namespace assay
