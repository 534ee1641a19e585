// Attention: grouped and latent heads, caches, keys of other layers.
#include <algorithm>

#include "assay/base/index.h"
#include "assay/program/lower/layers/layer_writer.h"

namespace assay::lower {
namespace {

using enum model::LogicalDim;

}  // namespace

template <class N>
NumberOf<N, Flops> attention_flops(const N& num, const program::Program& program, const program::Step& step) {
  const bool is_gradient = step.op == program::Op::attention_grad;
  const program::ProgramTensor& q = program.tensor(step.in[is_gradient ? 1 : 0]);
  const program::ProgramTensor& o = program.tensor(is_gradient ? step.in[4] : step.out[0]);
  const program::AttentionShape& shape = program.attentions[at(step.detail)];
  const auto rows = program::local_extent(num, program, q, 0) * program::local_extent(num, program, q, 1) *
                    program::local_extent(num, program, q, 2);
  const auto met = num.given("keys per query", shape.flash ? shape.mean_keys() : static_cast<double>(shape.keys),
                             "that a query meets on average, of one sequence");
  const auto ways =
      num.given("devices with parts of the keys", program.ways(o.sharding.unreduced), "that share a query");
  const auto width = num.given("elements of a query and of a result",
                               static_cast<double>(q.dims[3].size + o.dims[3].size), "of a head");
  const auto once = multiply_and_add(num) * rows * met / ways * width;
  // Flash attention recomputes the scores: five products instead of four.
  if (!is_gradient) return once;
  return once * num.given("passes", shape.flash ? program::backward_passes : 2.0,
                          shape.flash ? "recomputed scores, and four gradients" : "four gradients of two products");
}
template Flops attention_flops(const Plain&, const program::Program&, const program::Step&);
template NumberOf<Traced, Flops> attention_flops(const Traced&, const program::Program&, const program::Step&);

int LayerWriter::attention_block(const model::Attention& a, int x) {
  int o;
  if (a.kv_rank > 0) {
    o = latent_attention(a, x);
  } else {
    const std::string_view wq = a.cross ? "W_cq" : "W_q", wk = a.cross ? "W_ck" : "W_k", wv = a.cross ? "W_cv" : "W_v";
    const int source = a.cross ? encoded_ : x;
    int k, v;
    int q =
        build_.product("Q", x, weight(wq), {batch, sequence, heads, head_dim}, -1, weight(a.cross ? "b_cq" : "b_q"));
    // The encoder's output is projected in the first step of a sequence; later steps read keys and values from a cache.
    const bool known = a.cross && work_.cached && work_.keys > work_.queries;
    const auto encoded_cache = [&](std::string_view name, model::Weight::Size size) {
      return build_.given(name, {{batch, work_.sequences}, {context, work_.source}, {kv_heads, a.kv_heads}, size},
                          program::TensorClass::key_value, build_.formats().kv_cache);
    };
    if (known) {
      k = encoded_cache("CK_cache", {head_dim, a.head_dim});
      v = encoded_cache("CV_cache", {value_dim, a.value_dim});
    } else if (a.shares_kv) {
      k = shared(a, "K", a.head_dim, head_dim);
      v = shared(a, "V", a.value_dim, value_dim);
    } else {
      k = build_.product("K", source, weight(wk), {batch, sequence, kv_heads, head_dim}, -1,
                         weight(a.cross ? "b_ck" : "b_k"));
      const int w = weight(wv);
      v = w < 0 ? k
                : build_.product("V", source, w, {batch, sequence, kv_heads, value_dim}, -1,
                                 weight(a.cross ? "b_cv" : "b_v"));
    }
    if (a.qk_norm != model::Attention::QkNorm::none) {
      q = norm(q, "q_norm", "Q");
      if (!a.shares_kv && !known) k = norm(k, "k_norm", "K");
    }
    if (a.rotary && model_.learned_positions == 0 && a.relative_buckets == 0 && !a.cross) {
      const auto turned = [&](std::string_view name, int t) {
        t = build_.pointwise(program::Op::rotate, name, {t}, t);
        program::Step& step = build_.program().steps.back();
        if (a.turned > 0) step.detail = static_cast<std::int16_t>(a.turned);
        step.composed = static_cast<std::uint8_t>(a.rotation);
        return t;
      };
      q = turned("Q", q);
      if (!a.shares_kv) k = turned("K", k);
    }
    k = build_.settle(k, program::TensorClass::key_value);
    v = build_.settle(v, program::TensorClass::key_value);
    if (a.shares_kv_with_later) lend(k, "K"), lend(v, "V"), lent_ = {k, v};
    if (work_.cached && !a.cross) {
      k = cached(k, a, "K_cache");
      v = cached(v, a, "V_cache");
    }
    o = attend(a, build_.settle(q, program::TensorClass::query), k, v, {value_dim, a.value_dim});
  }
  if (a.output_gate) {
    const int gate = build_.product("Gate", x, weight("W_og"), {batch, sequence, heads, value_dim});
    o = build_.pointwise(program::Op::activate, "O", {o, build_.reshard(gate, sharding(o), program::Urgency::critical)},
                         o);
  }
  postpone(weight(a.cross ? "b_co" : "b_o"));
  return build_.product("Attn", o, weight(a.cross ? "W_co" : "W_o"), {batch, sequence, d_model});
}

void LayerWriter::lend(int keys, std::string_view name) {
  program::ProgramTensor& tensor = build_.program().tensors[at(keys)];
  tensor.is_cross_layer = true;
  tensor.name = name;
}

int LayerWriter::shared(const model::Attention& a, std::string_view name, std::int64_t size, model::LogicalDim dim) {
  const int keys =
      build_.given(name, {{batch, work_.sequences}, {sequence, work_.queries}, {kv_heads, a.kv_heads}, {dim, size}},
                   program::TensorClass::key_value, build_.formats().activations);
  lend(keys, name);
  return keys;
}

int LayerWriter::cached(int fresh, const model::Attention& a, std::string_view name, bool whole) {
  program::Program& program = build_.program();
  program::ProgramTensor made = program.tensor(fresh);
  // The first new token looks back a window, or to the start of its chunk; the last one sees all new tokens.
  std::int64_t kept = work_.keys;
  if (a.window > 0) kept = std::min(kept, a.window + work_.queries - 1);
  if (a.chunk > 0) kept = std::min(kept, (work_.keys - work_.queries) % a.chunk + work_.queries);
  made.name = name;
  made.dims.set(1, {context, kept});
  made.tensor_class = program::TensorClass::key_value;
  made.store_as(build_.formats().kv_cache);
  made.is_given = true;
  made.is_kept = false;
  made.sharding = build_.ruled(program::TensorClass::key_value, made);
  if (whole) made.sharding.dims[1] = {};
  const int before = program.add(made);
  if (a.shares_kv) return before;  // written by the layer that made them
  const int after = build_.pointwise(program::Op::cast, name, {fresh, before}, before);
  program.tensors[at(after)].tensor_class = program::TensorClass::key_value;
  build_.count_traffic(program.steps.back());
  return after;
}

int LayerWriter::latent_attention(const model::Attention& a, int x) {
  int q = x;
  if (a.q_rank > 0) {
    q = build_.product("C_q", x, weight("W_qa"), {batch, sequence, rank}, -1, weight("b_qa"));
    q = norm(q, "qa_norm", "C_q");
  }
  const int low = q;
  q = build_.product("Q", q, weight(a.q_rank > 0 ? "W_qb" : "W_q"), {batch, sequence, heads, head_dim});
  if (a.rotary) {
    q = build_.pointwise(program::Op::rotate, "Q", {q}, q);
    build_.program().steps.back().detail = static_cast<std::int16_t>(a.rope_dim);
  }
  const int both =
      build_.settle_sums(build_.product("C_kv", x, weight("W_kva"), {batch, sequence, rank}, -1, weight("b_kva")));
  // The latent part is normalised; the rest is a key's position, shared by all heads.
  int c = resized(both, "C", rank, a.kv_rank), place = resized(both, "K_pos", rank, a.rope_dim);
  build_.emit(program::Op::split, {both}, {c, place});
  c = norm(c, "kva_norm", "C");
  if (a.rotary) place = build_.pointwise(program::Op::rotate, "K_pos", {place}, place);
  const int expansion = weight("W_kvb"), picked = picked_keys(a, x, low);
  if (!work_.cached) {
    const auto [k, v] = expand(a, c, place, expansion, sequence);
    return attend(a, build_.settle(q, program::TensorClass::query), build_.settle(k, program::TensorClass::key_value),
                  build_.settle(v, program::TensorClass::key_value), {value_dim, a.value_dim}, picked);
  }
  // The cache holds the compressed form.
  int latent = resized(both, "Latent", rank, a.kv_rank + a.rope_dim);
  build_.emit(program::Op::split, {c, place}, {latent});
  latent = cached(build_.settle(latent, program::TensorClass::key_value), a, "KV_cache");
  // Expanding the cache costs kv_rank x (head_dim - rope_dim + value_dim) multiplications per head and key. Attending
  // in latent form costs 2 kv_rank + rope_dim - head_dim - value_dim extra per head, key and query.
  const std::int64_t once = a.kv_rank * (a.head_dim - a.rope_dim + a.value_dim);
  const std::int64_t per_query = 2 * a.kv_rank + a.rope_dim - a.head_dim - a.value_dim;
  // Queries that each see their own keys share no expanded ones.
  const bool few = picked >= 0 && a.index_picks < work_.keys;
  return few || work_.queries * per_query < once ? absorbed(a, q, latent, expansion, picked)
                                                 : expanded(a, q, latent, expansion, picked);
}

int LayerWriter::picked_keys(const model::Attention& a, int x, int low) {
  if (a.index_heads == 0) return -1;
  program::Program& program = build_.program();
  const auto turned = [&](int t, std::string_view name) {
    t = build_.pointwise(program::Op::rotate, name, {t}, t);
    program.steps.back().detail = static_cast<std::int16_t>(std::min(a.rope_dim, a.index_dim));
    return t;
  };
  // Queries of the index are sharded like attention's queries, so that the picks need not move.
  low = build_.moved_once(low, build_.ruled(program::TensorClass::query, program.tensor(low)));
  const int q =
      turned(build_.settle_sums(build_.product("IQ", low, weight("W_iq"), {batch, sequence, other, head_dim})), "IQ");
  int k = build_.settle_sums(build_.product("IK", x, weight("W_ik"), {batch, sequence, head_dim}));
  const int scale = weight("ik_norm");
  k = turned(build_.norm("IK", k, scale, weight("b_ik_norm")), "IK");
  k = build_.settle(k, program::TensorClass::key_value);
  if (work_.cached) k = cached(k, a, "IK_cache", true);
  int w = build_.settle_sums(build_.product("IW", x, weight("W_iw"), {batch, sequence, other}));
  program::Sharding beside = sharding(q);
  beside.dims[3] = {};
  w = build_.reshard(w, beside, program::Urgency::critical);
  program::ProgramTensor made = program.tensor(q);
  made.name = "Picked";
  made.store_as(Dtype::int32);
  made.rank = 3;
  made.dims.set(2, {other, std::min(a.index_picks, work_.keys)});
  const int picked = program.add(made);
  program::Step& step = build_.emit(program::Op::pick, {q, k, w}, {picked});
  program::AttentionShape candidates;
  candidates.causal = a.causal && work_.causal_flops;
  candidates.queries = work_.queries;
  candidates.keys = work_.keys;
  step.detail = static_cast<std::int16_t>(program.candidates.size());
  program.candidates.push_back(candidates);
  step.flops = arithmetic(Plain{}, program, step);
  build_.count_traffic(step);
  return picked;
}

LayerWriter::KeysAndValues LayerWriter::expand(const model::Attention& a, int c, int place, int expansion,
                                               model::LogicalDim along) {
  const int both = build_.product("KV", c, expansion, {batch, along, heads, head_dim});
  program::Sharding beside = sharding(place);
  for (std::size_t i = 0; i < 2; ++i) beside.dims[i] = sharding(both).dims[i];
  place = build_.reshard(place, beside, program::Urgency::critical);
  const int k = resized(both, "K", head_dim, a.head_dim), v = resized(both, "V", head_dim, a.value_dim);
  build_.program().tensors[at(v)].dims.set(3, {value_dim, a.value_dim});
  build_.emit(program::Op::split, {both, place}, {k, v});
  return {k, v};
}

int LayerWriter::expanded(const model::Attention& a, int q, int latent, int expansion, int picked) {
  const int c = resized(latent, "C", rank, a.kv_rank), place = resized(latent, "K_pos", rank, a.rope_dim);
  build_.emit(program::Op::split, {latent}, {c, place});
  const auto [k, v] = expand(a, c, place, expansion, context);
  return attend(a, build_.settle(q, program::TensorClass::query), build_.settle(k, program::TensorClass::key_value),
                build_.settle(v, program::TensorClass::key_value), {value_dim, a.value_dim}, picked);
}

int LayerWriter::absorbed(const model::Attention& a, int q, int latent, int expansion, int picked) {
  const int w = build_.used(expansion);
  const int w_k = resized(w, "W_kb", head_dim, a.head_dim - a.rope_dim);
  const int w_v = resized(w, "W_vb", head_dim, a.value_dim);
  build_.program().tensors[at(w_v)].dims.set(2, {value_dim, a.value_dim});
  build_.emit(program::Op::split, {w}, {w_k, w_v}).bytes = Bytes(0);  // two views of one weight
  q = build_.settle_sums(q);
  const int plain = resized(q, "Q", head_dim, a.head_dim - a.rope_dim),
            place = resized(q, "Q_pos", head_dim, a.rope_dim);
  build_.emit(program::Op::split, {q}, {plain, place}).bytes = Bytes(0);
  const int turned = build_.product("Q_lat", plain, w_k, {batch, sequence, heads, rank});
  int whole = resized(q, "Q_lat", head_dim, a.kv_rank + a.rope_dim);
  build_.emit(program::Op::split, {turned, place}, {whole});
  whole = build_.settle(whole, program::TensorClass::query);
  const int o = attend(a, whole, latent, -1, {rank, a.kv_rank}, picked);
  return build_.product("O", o, w_v, {batch, sequence, heads, value_dim});
}

int LayerWriter::attend(const model::Attention& a, int q, int k, int v, model::Weight::Size result, int picked) {
  program::Program& program = build_.program();
  const program::ProgramTensor& keys = program.tensor(k);
  const int along = keys.find(context);
  const program::AxisSet over = along >= 0 ? keys.sharding.dims[at(along)].set() : 0;
  program::AttentionShape shape;
  shape.causal = a.causal && !a.cross && work_.causal_flops;
  shape.both_sides = !a.causal && !a.cross && work_.causal_flops;
  shape.flash = work_.flash || over != 0;
  shape.window = a.window;
  shape.chunk = a.chunk;
  shape.picks = picked >= 0 ? a.index_picks : 0;
  shape.queries = work_.queries;
  shape.keys = a.cross ? work_.source : work_.keys;
  shape.cross = a.cross;
  program.attentions.push_back(shape);
  program::ProgramTensor out = program.tensor(q);
  out.name = "O";
  out.tensor_class = program::TensorClass::activation;
  out.dims.set(3, result);
  out.sharding.unreduced = over;
  const int o = program.add(out);
  // Flash attention keeps one number per query and head; plain attention keeps all probabilities.
  program::ProgramTensor rest = out;
  if (shape.flash) {
    rest.name = "L";
    rest.rank = 3;
    rest.store_as(build_.sums_format());
  } else {
    rest.name = "P";
    rest.dims.set(3, {context, shape.keys});
    rest.sharding.dims[3] = {};
  }
  const int second = program.add(rest);
  const int terms = score_terms(a, q);
  // Sinks count once: if keys are split across devices, only after their sums have been added.
  const bool sinks_last = a.sinks && over != 0;
  program::Step& step = build_.emit(program::Op::attention, {q, k, v, sinks_last ? -1 : terms, picked}, {o, second});
  step.detail = static_cast<std::int16_t>(program.attentions.size() - 1);
  step.composed = static_cast<std::uint8_t>(a.joined);
  step.flops = attention_flops(Plain{}, program, step);
  if (!shape.flash || program::reads_picks(program, step)) build_.count_traffic(step);
  return over ? merged(o, second, sinks_last ? terms : -1)
              : build_.reshard(o, beside_output(o), program::Urgency::critical);
}

int LayerWriter::score_terms(const model::Attention& a, int q) {
  const int w = a.sinks ? weight("sinks") : a.relative_buckets > 0 ? weight("relative") : -1;
  if (w < 0) return w;
  const int terms = build_.used(w);
  program::Sharding like;
  like.dims[a.sinks ? 0 : 1] = sharding(q).dims[2];
  return build_.reshard(terms, like, program::Urgency::ahead);
}

program::Sharding LayerWriter::beside_output(int o) {
  const program::TensorDims& dims = build_.program().tensor(o).dims;
  const model::Weight::Size tokens[] = {dims[0], dims[1]}, rows[] = {dims[2]};
  program::Sharding target = build_.ruled(program::TensorClass::activation, tokens);
  target.dims[2] = remaining(build_.ruled(program::TensorClass::used_weight, rows).dims[0], target.split_axes());
  return target;
}

int LayerWriter::merged(int o, int weights, int sinks) {
  const program::Sharding target = beside_output(o);
  o = build_.reshard(o, target, program::Urgency::critical);
  weights = build_.reshard(weights, target, program::Urgency::critical);
  if (sinks >= 0) {
    program::Sharding like;
    like.dims[0] = target.dims[2];
    sinks = build_.reshard(sinks, like, program::Urgency::ahead);
  }
  return build_.pointwise(program::Op::attention, "O", {o, weights, sinks}, o);
}

}  // namespace assay::lower
