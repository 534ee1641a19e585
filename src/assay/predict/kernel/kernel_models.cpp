#include "assay/predict/kernel/kernel_models.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "assay/predict/kernel/chip_numbers.h"
#include "assay/predict/kernel/grouped_tiles.h"
#include "assay/predict/kernel/product_time.h"
#include "assay/predict/kernel/tiles.h"

namespace assay::kernel {
namespace {

constexpr Seconds never(HUGE_VAL);      ///< of a tile that is not taken
constexpr double nearly = 1.0 - 1e-12;  ///< bounds are rounded

template <class N>
NumberOf<N, Seconds> systolic_arithmetic(const N& num, const ProductRates& rates, const MatmulShape& shape) {
  const SizesOf<N> size(num, shape);
  const auto round_up = [&](NumberOf<N, double> length, double unit, std::string_view name) {
    const auto step = num.given(name, unit, rates.sources, "array");
    return ceil(length / step) * step;
  };
  const auto padded = num.named("padded", round_up(size.m, rates.chip.pad_m, "array rows") *
                                              round_up(size.k, rates.chip.pad_k, "array depth") *
                                              round_up(size.n, rates.chip.pad_n, "array columns"));
  return multiply_and_add(num) * size.batch * padded / reached_rate(num, rates);
}

/// On some cores of a CPU. They share its rates in equal parts.
template <class N>
MatmulTimeOf<N> forked_at(const N& num, const ProductRates& rates, const MatmulShape& shape,
                          const hardware::Regime& regime, double cores) {
  const hardware::MatmulCalibration& fit = rates.fit;
  const SizesOf<N> size(num, shape);
  const auto used = num.given("cores in use", cores, "as many as pay off");
  const auto part = num.named("part of the cores", used / core_count(num, rates.chip, rates.sources));
  const auto fill = num.given("fill", fit.fill, rates.sources, "matmul.fill");
  const auto work = multiply_and_add(num) * size.batch * size.m * size.n * (size.k + fill);
  MatmulTimeOf<N> time;
  time.arithmetic = work / (part * reached_rate(num, rates));
  time.sustained = num.named("arithmetic", Throttle<N>(num, rates, shape, regime)(time.arithmetic));
  const ProductStream<N> stream(num, rates, shape, regime, part * main_memory(num, rates.chip, rates.sources));
  time.memory = stream.time;
  time.adding = num.given("adding", Seconds(0), "k is not split");
  const auto launch = num.given("launch", regime.launch, rates.sources, "regime.launch");
  const auto start = cores > 1.0 ? launch + num.given("fork", *fit.fork, rates.sources, "matmul.fork") : launch;
  time.total = start + stream.ramp + time.sustained + time.memory;
  time.tile.cores = cores;
  return time;
}

/// On as many cores of a CPU as pay off.
template <class N>
MatmulTimeOf<N> forked_time(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime) {
  MatmulTime best;
  best.total = Seconds(HUGE_VAL);
  for (double cores = 1.0;; cores = std::min(2.0 * cores, rates.chip.cores)) {
    const MatmulTime time = forked_at(Plain{}, rates, shape, regime, cores);
    if (time.total < best.total) best = time;
    if (cores >= rates.chip.cores) break;
  }
  if constexpr (N::traced)
    return forked_at(num, rates, shape, regime, best.tile.cores);
  else
    return best;
}

}  // namespace

double row_alignment(Dtype dtype, double elements) {
  const auto bytes =
      static_cast<std::uint64_t>(std::ceil(storage(dtype, elements).value())) | static_cast<std::uint64_t>(cache_line);
  return std::max(facts(dtype).bits < 16 ? bulk_copy : 1.0, static_cast<double>(bytes & ~(bytes - 1)));
}

double padded_row(double elements, Bytes element, double unit) {
  const double step = unit / element.value();
  return std::ceil(elements / step) * step;
}

bool loads_narrowly(const hardware::MatmulCalibration& fit, const MatmulShape& shape) {
  return fit.narrow_port && fit.scattered_port && std::min(shape.operand_rows, shape.result_rows) < bulk_copy;
}

void pad_rows(MatmulShape& shape) {
  shape.operand_rows = std::max(shape.operand_rows, bulk_copy);
  shape.result_rows = std::max(shape.result_rows, bulk_copy);
}

CoreRates core_rates(const hardware::Chip& chip) {
  CoreRates rates;
  rates.cores = static_cast<double>(chip.cores.count.value);
  rates.hbm = chip.hbm().bandwidth->value;
  constexpr double warp = 32, multiply_add = 2;
  rates.vector = warp * multiply_add * static_cast<double>(chip.cores.count.value * chip.vector_unit.partitions.value) *
                 1_FLOP * chip.vector_unit.clock.value;
  if (const auto& bf16 = chip.peak[static_cast<std::size_t>(Dtype::bf16)]) rates.bf16 = bf16->value;
  const hardware::MatrixUnit& unit = chip.matrix_unit;
  // Arrays whose padding is not known are treated as cores that work on tiles.
  rates.systolic = unit.rows.has_value() && unit.tile_m.has_value();
  if (rates.systolic) {
    rates.vector = hardware::vector_fma_rate(chip).value;
    if (unit.tile_m) rates.pad_m = static_cast<double>(unit.tile_m->value);
    if (unit.tile_k) rates.pad_k = static_cast<double>(unit.tile_k->value);
    if (unit.tile_n) rates.pad_n = static_cast<double>(unit.tile_n->value);
  }
  return rates;
}

namespace {

/// Parts that k may be cut into: those of usual kernels, then further ones of kernels for odd rows, which fill the
/// cores.
constexpr std::array<double, 12> splits{1.0, 2.0, 4.0, 8.0, 3.0, 5.0, 6.0, 10.0, 12.0, 16.0, 24.0, 32.0};
using Splits = std::array<double, splits.size()>;
using SplitTimes = std::array<Seconds, splits.size()>;

/// Elements of k that a core does, for each split.
Splits parts_of(const TileSteps& steps, double k) {
  Splits part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = steps.part(k, splits[i]);
  return part;
}

/// Time to add them up, for each split.
SplitTimes adding_parts(const hardware::MatmulCalibration& fit, const CoreRates& chip, const MatmulShape& shape) {
  const Seconds partial = partial_sums(shape.batch, shape.m, shape.n) / partial_sum_rate(fit, chip);
  SplitTimes adding{};
  for (std::size_t i = 1; i < adding.size(); ++i) adding[i] = fit.split_cost + splits[i] * partial;
  return adding;
}

/// Time of the tiles of a product, and of adding up its partial sums over k.
struct Tiled {
  Seconds arithmetic = never, adding;
  std::size_t size = 0;  ///< in tile_sizes
};

/// Cut into tiles, and along k where that pays, on as many cores as there are: the best choice of a library. It
/// considers arithmetic alone, so k is split even if memory would have hidden the tiles, and the sums are added up
/// afterwards.
Tiled tiled_arithmetic(const hardware::MatmulCalibration& fit, const CoreRates& chip, const MatmulShape& shape,
                       const TileSteps& steps, bool may_split, TileChoice& choice) {
  const std::size_t ways = !may_split ? 1 : loads_narrowly(fit, shape) ? splits.size() : usual_splits.size();
  const double share_of_core = 1.0 / chip.cores;
  const double unpadded = shape.batch * shape.m * shape.n * share_of_core;
  const Splits part = parts_of(steps, shape.k);
  const SplitTimes adding = adding_parts(fit, chip, shape);
  // The smallest tile that holds all rows is a good first guess, which rules out most others.
  const int guess = shape.m <= 16.0 ? 1 : shape.m <= 32.0 ? 3 : shape.m <= 64.0 ? 5 : shape.m <= 128.0 ? 6 : 7;
  Tiled found;
  Seconds best = never;
  for (int next = -1; next < static_cast<int>(steps.tiles); ++next) {
    if (next == guess) continue;
    const auto t = static_cast<std::size_t>(next < 0 ? guess : next);
    const TileSize& tile = tile_sizes[t];
    // At least the time of one round of one tile, and of all tiles if cores were never idle; first without padding.
    if (nearly * steps.step[t] * std::max(part[ways - 1], unpadded * tile.over_area * part[0]) >= best) continue;
    const double tiles = shape.batch * tile.tiles(shape.m, shape.n);
    const double fair = tiles * share_of_core;
    if (nearly * steps.step[t] * std::max(part[ways - 1], fair * part[0]) >= best) continue;
    for (std::size_t i = 0; i < ways; ++i) {
      if (nearly * (steps.step[t] * std::max(1.0, fair * splits[i]) * part[i] + adding[i]) >= best) continue;
      const double waves = waves_of(Plain{}, tiles / chip.cores * splits[i]);
      const Seconds time = waves * steps.step[t] * part[i];
      if (!(time + adding[i] < best)) continue;
      best = time + adding[i];
      found = {time, adding[i], t};
      choice = {tile.m, tile.n, splits[i], waves};
    }
  }
  return found;
}

/// The derivation of what the search found, in the same order of operations.
template <class N>
TiledTime<N> derived_tiles(const N& num, const ProductRates& rates, const MatmulShape& shape, const Tiled& found,
                           const TileChoice& choice) {
  const TileSize& tile = tile_sizes[found.size];
  const SizesOf<N> size(num, shape);
  const TileRates<N> by(num, rates, shape);
  const auto tile_m = num.given("tile rows", tile.m, "the library's choice"),
             tile_n = num.given("tile columns", tile.n, "the library's choice"),
             split = num.given("parts of k", choice.split, "the library's choice");
  const auto tiles = num.named("tiles", size.batch * (ceil(size.m / tile_m) * ceil(size.n / tile_n)));
  const auto waves = waves_of(num, tiles / core_count(num, rates.chip, rates.sources) * split);
  const auto part = num.named("k of a core", size.k / split + by.fill(num, rates));
  TiledTime<N> time{waves * by.step(num, tile_m, tile_n, tile_edges(num, tile_m, tile_n)) * part, {}};
  if (!(choice.split > 1.0)) return time;
  const auto rate = num.given("memory share", rates.fit.memory_share, rates.sources, "matmul.memory_share") *
                    main_memory(num, rates.chip, rates.sources);
  const auto partial =
      num.given("partial sum", storage(Dtype::fp32, 1.0), name(Dtype::fp32)) * size.batch * size.m * size.n / rate;
  time.adding = num.given("split cost", rates.fit.split_cost, rates.sources, "matmul.split_cost") + split * partial;
  return time;
}

}  // namespace

template <class N>
MatmulTimeOf<N> matmul_time(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime, bool may_split) {
  if (rates.fit.fork) return forked_time(num, rates, shape, regime);
  if (rates.chip.systolic)
    return with_memory<N>(num, rates, shape, regime, {systolic_arithmetic(num, rates, shape), {}});
  if (runs_grouped(rates.fit, shape)) {
    const GroupedTile<N> tile(num, rates, shape, is_grouped_tile_small(shape.m, shape.n));
    const GroupedTiles<N> tiles(num, shape, tile);
    MatmulTimeOf<N> time = with_memory<N>(num, rates, shape, regime, {tiles.time, {}, tiles.busy});
    time.tile = {tile.size.m, tile.size.n, 1.0, plain(tiles.waves)};
    return time;
  }
  TileChoice tile;
  const Tiled found = tiled_arithmetic(rates.fit, rates.chip, shape, TileSteps(rates, shape), may_split, tile);
  TiledTime<N> tiled;
  if constexpr (N::traced) {
    tiled = derived_tiles(num, rates, shape, found, tile);
  } else {
    tiled.arithmetic = found.arithmetic;
    if (tile.split > 1.0) tiled.adding = found.adding;
  }
  MatmulTimeOf<N> time = with_memory(num, rates, shape, regime, tiled);
  time.tile = tile;
  return time;
}

template <class N>
NumberOf<N, Seconds> stream_time(const N& num, NumberOf<N, BytesPerSecond> hbm, NumberOf<N, double> share,
                                 NumberOf<N, Seconds> ramp, NumberOf<N, Bytes> bytes) {
  if (!(bytes.value() > 0.0)) return num.given("nothing to move", Seconds(0), "");
  const auto full = num.named("at full bandwidth", bytes / hbm);
  return full / share * (1.0 + sqrt(ramp / full));
}

#define ASSAY_INSTANTIATE(N)                                                                                       \
  template MatmulTimeOf<N> matmul_time(const N&, const ProductRates&, const MatmulShape&, const hardware::Regime&, \
                                       bool);                                                                      \
  template NumberOf<N, Seconds> stream_time(const N&, NumberOf<N, BytesPerSecond>, NumberOf<N, double>,            \
                                            NumberOf<N, Seconds>, NumberOf<N, Bytes>);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::kernel
