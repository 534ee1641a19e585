// Products of experts in one kernel, each with its own rows. For the models of kernels alone.
#pragma once
#include <algorithm>
#include <cmath>

#include "assay/predict/kernel/tiles.h"
#include "assay/predict/numbers/expert_kernels.h"

namespace assay::kernel {

/// How many units of so many rows an expert needs on average. Tokens choose at random, so that its rows spread around
/// their mean by the square root of it: here evenly, which needs no more than sums.
inline double expected_units(double mean, double unit) {
  const double reach = std::sqrt(3.0 * mean), low = std::max(0.0, mean - reach), high = mean + reach;
  if (!(high > low)) return 1.0;
  const auto units_up_to = [&](double rows) {  // the integral of the units
    const double whole = std::floor(rows / unit);
    return (0.5 * unit * whole + rows - unit * whole) * (whole + 1.0);
  };
  return std::max(1.0, (units_up_to(high) - units_up_to(low)) / (high - low));
}

/// The tile of such a kernel. It learns the rows of experts only on the device, so that one tile has to serve them all:
/// a large one, or a small one where a mean expert has few rows.
inline bool is_grouped_tile_small(double rows, double columns) {
  constexpr double few = 128;
  return rows <= few || columns <= few;
}

/// What does not depend on the experts and their rows.
template <class N>
struct GroupedTile {
  TileSize size;
  NumberOf<N, double> columns{};               ///< tiles side by side
  NumberOf<N, double> depth{};                 ///< elements of k that a core does for each
  NumberOf<N, Seconds> step{}, multiplying{};  ///< of one of these; matrix units multiply as long
  NumberOf<N, double> core_pairs{};

  GroupedTile(const N& num, const ProductRates& rates, const MatmulShape& shape, bool is_small)
      : size(is_small ? TileSize{64, 128} : TileSize{128, 256}) {
    const TileRates<N> by(num, rates, shape);
    const auto tile_m = num.given("tile rows", size.m, "one tile for all experts"),
               tile_n = num.given("tile columns", size.n, "one tile for all experts");
    columns = ceil(num.given("n", shape.n, "columns") / tile_n);
    auto k = num.given("k", shape.k, "summed over");
    if (shape.summed_rows) {
      const double stage = cache_line / storage(rates.format, 1.0).value();
      k = num.given("k in whole stages",
                    stage * (shape.even_rows ? std::ceil(shape.k / stage) : expected_units(shape.k, stage)),
                    "of an expert");
    }
    depth = k + by.fill(num, rates);
    const auto edges = tile_edges(num, tile_m, tile_n);
    step = by.step(num, tile_m, tile_n, edges);
    multiplying = by.multiplying(num, tile_m, tile_n, edges);
    core_pairs = core_count(num, rates.chip, rates.sources) / 2.0;
  }
};

/// Such a kernel cut into tiles. Two cores take tiles one below the other and wait for each other, so that rows of an
/// expert are rounded up to two tiles.
template <class N>
struct GroupedTiles {
  NumberOf<N, double> waves{};
  NumberOf<N, Seconds> time{};  ///< until all are done
  NumberOf<N, Seconds> busy{};  ///< of it, matrix units multiply

  GroupedTiles(const N& num, const MatmulShape& shape, const GroupedTile<N>& tile) {
    const double pair = 2.0 * tile.size.m;
    const bool random = !shape.summed_rows && !shape.even_rows;
    const auto pairs =
        num.given("pairs of tiles", random ? expected_units(shape.m, pair) : std::ceil(shape.m / pair), "of an expert");
    const auto tiles =
        num.named("tiles of pairs", num.given("batch", shape.batch, "independent products") * (pairs * tile.columns));
    waves = waves_of(num, tiles / tile.core_pairs);
    const auto steps = waves * tile.depth;
    time = steps * tile.step;
    busy = steps * tile.multiplying;
  }
};

/// Such a kernel of serving software, cut into blocks of one size.
template <class N>
NumberOf<N, Seconds> blocks_time(const N& num, const ProductRates& rates, BytesPerSecond hbm, const MatmulShape& shape,
                                 const numbers::ExpertBlocks& of) {
  const SizesOf<N> size(num, shape);
  const auto rows = num.given("rows", of.rows, "of a block"), columns = num.given("columns", of.columns, "of a block");
  const auto high = num.given("blocks of rows", expected_units(shape.m, of.rows), "of an expert");
  const auto blocks = num.named("blocks", size.batch * (high * ceil(size.n / columns)));
  const auto whole = num.named("FLOP of whole blocks", multiply_and_add(num) * blocks * rows * columns * size.k);
  const auto moved = num.given("bytes", shape.bytes, "operands and results") /
                     (num.given("share of the bandwidth", of.memory) * num.given("hbm", hbm, rates.sources, "hbm"));
  const auto multiplied = whole / (num.given("share of the peak", of.matrix) * peak_of(num, rates));
  return num.given("start of a kernel", of.start) +
         max(moved, max(multiplied, size.k * num.given("element of a block", of.element)));
}

}  // namespace assay::kernel
