#include "assay/predict/roofline/roofline.h"

#include <cmath>

namespace assay::roofline {
namespace {

template <class N>
struct Sizes {
  typename N::template Number<Dim{}> batch, m, k, n;
  bool batched;
};

template <class N>
Sizes<N> sizes_of(const N& num, const Matmul& matmul, const MatmulNames& names) {
  return {num.given(names.batch, matmul.batch, "operation"), num.given(names.m, matmul.m, "operation"),
          num.given(names.k, matmul.k, "operation"), num.given(names.n, matmul.n, "operation"), matmul.batch != 1.0};
}

template <class N>
auto bytes_per_element(const N& num, Dtype dtype, double scale_bits = 0) {
  return num.given(name(dtype), storage(dtype, 1.0) + Bytes(scale_bits / 8.0),
                   scale_bits > 0.0 ? "bytes per element, scales included" : "bytes per element");
}

template <class N>
auto per_element(const N& num, double flops, std::string_view how) {
  return num.given("FLOP each", Flops(flops), how);
}

/// Omits a factor of one from the derivation.
template <class N, class Q>
auto times_batch(const Sizes<N>& s, Q q) {
  return s.batched ? s.batch * q : q;
}

template <class N>
auto matmul_flops(const N& num, const Sizes<N>& s) {
  const auto each = per_element(num, 2.0, "a product and an addition");
  return num.named("flops", times_batch<N>(s, each * s.m * s.k * s.n));
}

template <class N>
Work<N> counted_matmul_work(const N& num, const Matmul& matmul, const TrafficCounting& counting,
                            const MatmulNames& names) {
  if (counting.split_chips > 1) return split_matmul_work(num, matmul, counting.split_chips, counting.sums, names);
  if (counting.tile) return tiled_matmul_work(num, matmul, *counting.tile, names);
  return matmul_work(num, matmul, names);
}

constexpr double largest_size = 1e15;

double log_midpoint(double a, double b) { return std::sqrt(a) * std::sqrt(b); }

}  // namespace

template <class N>
Work<N> matmul_work(const N& num, const Matmul& matmul, const MatmulNames& names) {
  const auto s = sizes_of(num, matmul, names);
  const auto a = num.named("left", s.m * s.k * bytes_per_element(num, matmul.a, matmul.a_scale));
  const auto b = num.named("right", s.k * s.n * bytes_per_element(num, matmul.b, matmul.b_scale));
  const auto stored = s.m * s.n * bytes_per_element(num, matmul.out);
  const auto out = num.named("result", matmul.accumulates ? 2.0 * stored : stored);
  return {matmul_flops(num, s), num.named("bytes", times_batch<N>(s, a + b + out))};
}

template <class N>
Work<N> tiled_matmul_work(const N& num, const Matmul& matmul, const Tile& tile, const MatmulNames& names) {
  const auto s = sizes_of(num, matmul, names);
  const auto bm = num.given("bm", tile.m, "--tile");
  const auto bk = num.given("bk", tile.k, "--tile");
  const auto bn = num.given("bn", tile.n, "--tile");
  const auto tm = num.named("tm", ceil(s.m / bm));
  const auto tk = num.named("tk", ceil(s.k / bk));
  const auto tn = num.named("tn", ceil(s.n / bn));
  const auto streams = num.named(
      "streams", tk * (bm * bk * bytes_per_element(num, matmul.a) + bk * bn * bytes_per_element(num, matmul.b)));
  const auto store = num.named("store", bm * bn * bytes_per_element(num, matmul.out));
  return {matmul_flops(num, s), num.named("bytes", times_batch<N>(s, tm * tn * (streams + store)))};
}

template <class N>
Work<N> split_matmul_work(const N& num, const Matmul& matmul, double chips, Dtype sums, const MatmulNames& names) {
  const auto s = sizes_of(num, matmul, names);
  const auto count = num.given("chips", chips, "--split");
  const auto partial = num.named("partial sums", times_batch<N>(s, s.m * s.n * bytes_per_element(num, sums)));
  const auto share = num.named("share", 2.0 * ((count - 1.0) / count));
  return {num.named("flops per chip", matmul_flops(num, s) / count), num.named("bytes", share * partial)};
}

template <class N>
Work<N> pointwise_work(const N& num, const Pointwise& pointwise) {
  const PointwiseFunction& function = *pointwise.function;
  const auto elements = num.given("elements", pointwise.elements, "operation");
  const auto results = num.given("results", pointwise.results, "operation");
  const auto each = per_element(num, function.flops, function.sum);
  const auto operands = num.given("operands", static_cast<double>(function.operands), function.name);
  const auto one = num.given("one less", Flops(function.reduces ? 1.0 : 0.0), "the first of a sum needs no addition");
  const auto flops = function.reduces ? each * elements - one * results : each * elements;
  const auto read = num.named("read", operands * elements * bytes_per_element(num, pointwise.in));
  const auto one_result = results * bytes_per_element(num, pointwise.out);
  const auto written = num.named(
      "written", function.results > 1
                     ? num.given("tensors written", static_cast<double>(function.results), function.name) * one_result
                     : one_result);
  return {num.named("flops", flops), num.named("bytes", read + written)};
}

template <class N>
Work<N> attention_work(const N& num, const Attention& attention) {
  const auto each = per_element(num, 4.0, "a product and an addition for the score, and for the weighted value");
  const auto heads = num.given("heads", attention.batch * attention.heads, "of all sequences");
  const auto queries = num.given("queries", attention.queries, "operation");
  const auto keys = num.given("keys per query", attention.shape().mean_keys(), "mean, by the mask");
  const auto size = num.given("head size", (attention.head_dim + attention.value_dim) / 2.0, "of keys and values");
  const auto passes = num.given("passes", attention.work(), "1 forward, 2.5 backward with recomputed scores");
  const auto once = num.given("tensors", attention.bytes(), "queries, keys, values and results");
  // The backward pass also has the gradients of all four tensors; both passes read the operands once more.
  const double tensors = attention.passes == AttentionPasses::forward ? 1.0
                         : attention.passes == AttentionPasses::both  ? 3.0
                                                                      : 2.0;
  return {num.named("flops", each * heads * queries * keys * size * passes),
          num.named("bytes", num.given("times", tensors, "with gradients") * once)};
}

template <class N>
Bound<N> roofline_bound(const N& num, const Work<N>& work, const Roof& roof) {
  const auto chips = num.given("chips", roof.chips, "cluster");
  const auto peak = num.given("peak", roof.peak);
  const auto bandwidth = num.given(roof.level, roof.bandwidth);
  const auto rate = roof.chips == 1.0 ? peak : num.named("all chips' peak", chips * peak);
  const auto stream = roof.chips == 1.0 ? bandwidth : num.named("all chips' bandwidth", chips * bandwidth);
  const auto compute = num.named("compute", work.flops / rate);
  const auto memory = num.named("memory", work.bytes / stream);
  const auto compute_share = num.given("matrix efficiency", roof.compute_efficiency);
  const auto memory_share = num.given("memory efficiency", roof.memory_efficiency);
  const auto lower = num.named("lower bound", max(compute, memory));
  return {compute,
          memory,
          lower,
          num.named("upper bound", compute + memory),
          num.named("estimate", max(compute / compute_share, memory / memory_share)),
          num.named("intensity", work.flops / work.bytes),
          num.named("critical intensity", peak / bandwidth),
          num.named("achieved", work.flops / lower)};
}

std::string_view roofline_limiter(const Bound<Plain>& bound) {
  return bound.compute < bound.memory ? "memory" : "compute";
}

template <class N>
Work<N> operation_work(const N& num, const Operation& operation, const TrafficCounting& counting) {
  if (operation.is_attention()) return attention_work(num, operation.attention());
  if (!operation.is_matmul()) return pointwise_work(num, operation.pointwise());
  if (operation.matmul().grouped)
    return counted_matmul_work(num, operation.matmul(), counting, {"groups with rows", "m", "k", "n"});
  if constexpr (N::traced) {
    const std::string batch = operation.group_name('b'), m = operation.group_name('m'), k = operation.group_name('k'),
                      n = operation.group_name('n');
    return counted_matmul_work(num, operation.matmul(), counting, {batch, m, k, n});
  } else {
    return counted_matmul_work(num, operation.matmul(), counting, {});
  }
}

Knee find_knee(const Operation& operation, std::string_view letter, const TrafficCounting& counting, const Roof& roof) {
  const Plain num;
  const auto work = [&](double size) { return operation_work(num, operation.with(letter, size), counting); };
  // Above 1 the operation is compute-bound; it grows with the size, since arithmetic grows at least as fast as bytes.
  const auto balance = [&](double size) {
    const Work<Plain> w = work(size);
    return (w.flops / roof.peak.value) / (w.bytes / roof.bandwidth.value);
  };
  Knee knee;
  const Work<Plain> large = work(largest_size), smaller = work(largest_size / 2.0);
  // Doubling a huge size barely changes a bounded intensity and doubles an unbounded one.
  const FlopsPerByte limit = large.flops / large.bytes;
  if (limit < 1.5 * (smaller.flops / smaller.bytes)) knee.limit = limit;
  const Work<Plain> zero = work(0.0), one = work(1.0);
  if (const Flops growth = one.flops - zero.flops; growth > Flops(0) && zero.bytes > Bytes(0))
    knee.approximate = (zero.bytes / roof.bandwidth.value) / (growth / roof.peak.value);
  double low = 1e-12, high = largest_size;
  if (balance(low) >= 1.0) {
    knee.always_compute_bound = true;
    return knee;
  }
  if (!(balance(high) >= 1.0)) {
    knee.approximate.reset();
    return knee;
  }
  for (int i = 0; i < 200; ++i) {
    const double middle = log_midpoint(low, high);
    double& end = balance(middle) >= 1.0 ? high : low;
    if (end == middle) break;  // the interval no longer shrinks
    end = middle;
  }
  knee.exact = high;
  return knee;
}

std::optional<Traced::Number<Dim{}>> traced_knee(const Traced& num, const Operation& operation, std::string_view letter,
                                                 const TrafficCounting& counting, const Roof& roof) {
  const Plain plain_policy;
  const auto work = [&](double size) { return operation_work(plain_policy, operation.with(letter, size), counting); };
  const Work<Plain> zero = work(0.0), one = work(1.0), two = work(2.0);
  const bool linear = two.flops - one.flops == one.flops - zero.flops &&
                      two.bytes - one.bytes == one.bytes - zero.bytes && zero.flops == Flops(0);
  if (!linear) return std::nullopt;
  // Without a surplus of compute per unit, or without fixed bytes, the limiter never changes.
  const Seconds surplus = one.flops / roof.peak.value - (one.bytes - zero.bytes) / roof.bandwidth.value;
  const Seconds constant = zero.bytes / roof.bandwidth.value;
  if (!(constant > Seconds(0)) || !(constant < largest_size * surplus)) return std::nullopt;
  const std::string each = "per " + std::string(letter);
  const auto flops = num.given("flops " + each, one.flops, "the operation at size 1 minus at size 0");
  const auto grow = num.given("bytes " + each, one.bytes - zero.bytes, "tensors that grow with it");
  const auto fixed = num.given("fixed bytes", zero.bytes, "tensors that do not grow with it");
  const auto peak = num.given("peak", roof.peak);
  const auto bandwidth = num.given(roof.level, roof.bandwidth);
  return num.named("critical " + std::string(letter), (fixed / bandwidth) / (flops / peak - grow / bandwidth));
}

std::optional<Padding> pad_to_unit(const Matmul& matmul, const hardware::Chip& chip) {
  const hardware::MatrixUnit& unit = chip.matrix_unit;
  if (!unit.tile_m || !unit.tile_k || !unit.tile_n) return std::nullopt;
  const auto up = [](double size, const hardware::Count& tile) {
    const auto t = static_cast<double>(tile.value);
    return std::ceil(size / t) * t;
  };
  Padding padding{up(matmul.m, *unit.tile_m), up(matmul.k, *unit.tile_k), up(matmul.n, *unit.tile_n), {}, 1.0};
  padding.flops = 2.0 * matmul.batch * padding.m * padding.k * padding.n * 1_FLOP;
  padding.utilisation = matmul.m * matmul.k * matmul.n / (padding.m * padding.k * padding.n);
  return padding;
}

double smallest_square_tile(const Matmul& matmul, const Roof& roof) {
  // A side of t does 2 t^2 FLOP per step of k and streams t elements of each operand: t = (C / W) (s_a + s_b) / 2.
  const Bytes step = storage(matmul.a, 1.0) + storage(matmul.b, 1.0);
  return (roof.peak.value / roof.bandwidth.value) * step / 2_FLOP;
}

FlopsPerByte tile_intensity(const Matmul& matmul, const Tile& tile) {
  return 2.0 * tile.m * tile.n * 1_FLOP / (storage(matmul.a, tile.m) + storage(matmul.b, tile.n));
}

#define ASSAY_INSTANTIATE(N)                                                                      \
  template Work<N> matmul_work(const N&, const Matmul&, const MatmulNames&);                      \
  template Work<N> tiled_matmul_work(const N&, const Matmul&, const Tile&, const MatmulNames&);   \
  template Work<N> split_matmul_work(const N&, const Matmul&, double, Dtype, const MatmulNames&); \
  template Work<N> pointwise_work(const N&, const Pointwise&);                                    \
  template Work<N> attention_work(const N&, const Attention&);                                    \
  template Work<N> operation_work(const N&, const Operation&, const TrafficCounting&);            \
  template Bound<N> roofline_bound(const N&, const Work<N>&, const Roof&);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::roofline
