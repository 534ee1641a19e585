// Tiles that the result of a product is cut into on a GPU, and how long one takes. For the models of kernels alone.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "assay/predict/kernel/chip_numbers.h"
#include "assay/predict/kernel/kernel_models.h"

namespace assay::kernel {

/// 128 x 256, the tile that loses least: the mean of 1/128 and 1/256.
inline constexpr double large_tile_edge = (1.0 / 128 + 1.0 / 256) / 2;

/// Loss at the edges of a tile, over the best.
template <class N>
constexpr NumberOf<N, double> tile_edges(const N& num, NumberOf<N, double> m, NumberOf<N, double> n) {
  const auto one = num.constant(1.0);
  const auto best = num.given("edges of the best tile", large_tile_edge, "128 x 256");
  return num.named("edges", max(num.constant(0.0), (one / m + one / n) / 2.0 - best));
}

/// A tile of the result.
struct TileSize {
  double m, n;
  double over_area = 1.0 / (m * n);
  double edges = tile_edges(Plain{}, m, n);
  double tiles(double rows, double columns) const { return std::ceil(rows / m) * std::ceil(columns / n); }
};
/// Tiles that GPU libraries choose among; a core holds one at a time. Kernels that multiply from shared memory take
/// rows in multiples of 64 and columns in multiples of 8, or the other way round, up to about 256 x 160 sums: these are
/// the ones of such that ours chose, in steps of 16.
inline constexpr TileSize tile_sizes[] = {
    {16, 64},   {16, 128},  {32, 64},   {32, 128},  {64, 64},   {64, 128},  {128, 128}, {128, 256}, {256, 128},
    {96, 128},  {128, 96},  {160, 128}, {128, 160}, {192, 128}, {128, 192}, {192, 192}, {160, 256}, {256, 160},
    {48, 64},   {80, 64},   {64, 96},   {96, 64},   {64, 112},  {112, 64},  {128, 112}, {112, 128}, {144, 128},
    {144, 256}, {112, 192}, {80, 192},  {176, 128}, {208, 128}, {208, 192}, {80, 128},  {96, 192},  {176, 192}};
inline constexpr std::size_t coarse_tiles = 9;  ///< the first ones, of powers of two

template <class N>
auto reached_rate(const N& num, const ProductRates& rates) {
  if constexpr (N::traced)
    return num.named("reached rate", num.given("matrix share", rates.share, rates.sources,
                                               "matmul.share." + std::string(name(rates.format))) *
                                         peak_of(num, rates));
  else
    return rates.rate();
}

/// A product's sizes on one device.
template <class N>
struct SizesOf {
  NumberOf<N, double> batch, m, n, k;
  SizesOf(const N& num, const MatmulShape& shape)
      : batch(num.given("batch", shape.batch, "independent products")),
        m(num.given("m", shape.m, "rows")),
        n(num.given("n", shape.n, "columns")),
        k(num.given("k", shape.k, "summed over")) {}
};

/// How much longer loads take because rows of the operands begin inside cache lines; 1 where this was not measured.
template <class N>
NumberOf<N, double> straddled(const N& num, const ProductRates& rates, const MatmulShape& shape) {
  if (!rates.fit.straddle || !(shape.operand_rows < cache_line) || loads_narrowly(rates.fit, shape))
    return num.given("straddling", 1.0, "rows are whole cache lines");
  const auto inside = num.given("part of a line", 1.0 - shape.operand_rows / cache_line, "where rows may begin");
  return num.named("straddling",
                   1.0 + num.given("straddle", *rates.fit.straddle, rates.sources, "matmul.straddle") * inside);
}

/// What does not depend on the size of a tile.
template <class N>
struct TileRates {
  NumberOf<N, FlopsPerSecond> per_core;
  NumberOf<N, double> faster;                  ///< than bf16; a tile's start and end take the same time in all formats
  NumberOf<N, double> small_tile;              ///< elements
  std::optional<NumberOf<N, Seconds>> loaded;  ///< time to get one element of an operand
  std::optional<NumberOf<N, Seconds>> turn;    ///< least time for one element of k
  bool straddles = false;                      ///< rows begin inside cache lines
  NumberOf<N, double> longer{};                ///< by that
  bool grouped = false;                        ///< a kernel over experts

  TileRates(const N& num, const ProductRates& rates, const MatmulShape& shape)
      : per_core(num.named("rate of a core", reached_rate(num, rates) / core_count(num, rates.chip, rates.sources))),
        faster(rates.chip.bf16.value() > 0.0
                   ? num.named("faster than bf16", peak_of(num, rates) / num.given("bf16 peak", rates.chip.bf16,
                                                                                   rates.sources, "peak.bf16"))
                   : num.given("faster than bf16", 1.0, "the chip has no bf16")),
        small_tile(num.given("small tile", rates.fit.small_tile, rates.sources, "matmul.small_tile")) {
    grouped = runs_grouped(rates.fit, shape);
    straddles = shape.operand_rows < cache_line;
    if (straddles) longer = straddled(num, rates, shape);
    if (rates.fit.stage) turn = num.given("stage", *rates.fit.stage, rates.sources, "matmul.stage") / stage_k(num);
    const bool narrow = loads_narrowly(rates.fit, shape);
    constexpr double narrow_load = 4;  // bytes: the least that is copied without passing through registers
    const bool scattered = narrow && std::min(shape.operand_rows, shape.result_rows) < narrow_load;
    const bool result = scattered && shape.result_rows < narrow_load && rates.fit.scattered_result_port;
    const std::optional<BytesPerSecond>& port = result      ? rates.fit.scattered_result_port
                                                : scattered ? rates.fit.scattered_port
                                                : narrow    ? rates.fit.narrow_port
                                                : grouped   ? rates.fit.grouped_port
                                                            : rates.fit.port;
    if (!port || !(port->value() > 0.0)) return;
    const auto element = min(num.given("widest element", storage(Dtype::fp32, 1.0), name(Dtype::fp32)),
                             num.given("element in bf16", storage(Dtype::bf16, 1.0), name(Dtype::bf16)) / faster);
    loaded = element / num.given("port", *port, rates.sources,
                                 result      ? "matmul.scattered_result_port"
                                 : scattered ? "matmul.scattered_port"
                                 : narrow    ? "matmul.narrow_port"
                                 : grouped   ? "matmul.grouped_port"
                                             : "matmul.port");
  }
  /// Elements of k in a stage: a cache line of each row.
  NumberOf<N, double> stage_k(const N& num) const {
    return num.given("stage of bf16", cache_line / storage(Dtype::bf16, 1.0).value(), "a cache line of each row") *
           faster;
  }
  auto fill(const N& num, const ProductRates& rates) const {
    const auto in_bf16 = grouped
                             ? num.given("fill in bf16", *rates.fit.grouped_fill, rates.sources, "matmul.grouped_fill")
                             : num.given("fill in bf16", rates.fit.fill, rates.sources, "matmul.fill");
    return num.named("fill", in_bf16 * faster);
  }
  /// Time of matrix units for one element of k of a tile of m x n.
  NumberOf<N, Seconds> multiplying(const N& num, NumberOf<N, double> m, NumberOf<N, double> n,
                                   NumberOf<N, double> edges) const {
    const auto work = num.named("FLOP of a tile", multiply_and_add(num) * m * n);
    return work * (1.0 + small_tile * edges) / per_core;
  }
  /// Time of such a tile for one element of k.
  NumberOf<N, Seconds> step(const N& num, NumberOf<N, double> m, NumberOf<N, double> n,
                            NumberOf<N, double> edges) const {
    auto loads =
        loaded ? num.named("operands of a tile", m + n) * *loaded : num.given("loads", Seconds(0), "unbounded");
    if (turn) loads = max(loads, *turn);
    return num.named("step of a tile", max(multiplying(num, m, n, edges), straddles ? loads * longer : loads));
  }
};

/// What does not depend on the rows and columns of a product: tiles that its kernels choose among.
struct TileSteps {
  std::size_t tiles;                                  ///< the first ones
  double fill;                                        ///< elements of k that a prologue and an epilogue are worth
  std::array<Seconds, std::size(tile_sizes)> step{};  ///< of each tile, for one element of k

  TileSteps(const ProductRates& rates, const MatmulShape& shape) {
    const TileRates<Plain> by(Plain{}, rates, shape);
    tiles = rates.fit.fine_tiles && !loads_narrowly(rates.fit, shape) ? step.size() : coarse_tiles;
    fill = by.fill(Plain{}, rates);
    for (std::size_t t = 0; t < tiles; ++t)
      step[t] = by.step(Plain{}, tile_sizes[t].m, tile_sizes[t].n, tile_sizes[t].edges);
  }
  /// Elements of k that a core does.
  double part(double k, double split) const { return k / split + fill; }
};

/// A partly full last round costs between its share and a whole one: cores do not run in lockstep.
template <class N>
NumberOf<N, double> waves_of(const N& num, NumberOf<N, double> rounds) {
  return num.named("waves", 0.5 * ceil(rounds) + 0.5 * max(num.given("one", 1.0, "at least one round"), rounds));
}

}  // namespace assay::kernel
