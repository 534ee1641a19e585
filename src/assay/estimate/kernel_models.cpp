#include "assay/estimate/kernel_models.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::estimate {
namespace {

/// 128 x 256, the tile that loses least: the mean of 1/128 and 1/256.
constexpr double large_tile_edge = (1.0 / 128 + 1.0 / 256) / 2;

/// A tile of the result.
struct TileSize {
  double m, n;
  double over_area = 1.0 / (m * n);
  double edges = std::max(0.0, (1.0 / m + 1.0 / n) / 2.0 - large_tile_edge);  ///< loss at its edges, over the best
  double tiles(double rows, double columns) const { return std::ceil(rows / m) * std::ceil(columns / n); }
};
/// Tiles that GPU libraries choose among; a core holds one at a time. Tiles whose sides are not powers of two come in
/// steps of 32 and hold up to 256 x 160 sums.
constexpr TileSize tile_sizes[] = {{16, 64},   {16, 128},  {32, 64},   {32, 128},  {64, 64},   {64, 128},
                                   {128, 128}, {128, 256}, {256, 128}, {96, 128},  {128, 96},  {160, 128},
                                   {128, 160}, {192, 128}, {128, 192}, {192, 192}, {160, 256}, {256, 160}};
constexpr std::size_t coarse_tiles = 9;  ///< the first ones, of powers of two
constexpr double unit_rows = 16;         ///< every tile has a multiple of these

/// Arithmetic and memory overlap, but not perfectly: the fourth root of the sum of fourth powers is between the larger
/// of both and 1.19 times it. Square roots only, so that every machine gives the same bits.
Seconds overlapped(Seconds a, Seconds b) {
  const double most = std::max(a, b).value();
  if (!(most > 0.0)) return Seconds(0);
  const double r = std::min(a, b).value() / most, r2 = r * r;
  return Seconds(most * std::sqrt(std::sqrt(1.0 + r2 * r2)));
}

double round_up(double size, double unit) { return std::ceil(size / unit) * unit; }

Seconds systolic_arithmetic(const CoreRates& chip, FlopsPerSecond rate, const MatmulShape& shape) {
  const double padded = round_up(shape.m, chip.pad_m) * round_up(shape.k, chip.pad_k) * round_up(shape.n, chip.pad_n);
  return Flops(2.0 * shape.batch * padded) / rate;
}

/// On as many cores of a CPU as pay off. They share its rates in equal parts.
MatmulTime forked_time(const hardware::MatmulCalibration& fit, const CoreRates& chip, FlopsPerSecond rate,
                       const MatmulShape& shape, const hardware::Regime& regime) {
  const Flops work(2.0 * shape.batch * shape.m * shape.n * (shape.k + fit.fill));
  MatmulTime best;
  best.total = Seconds(HUGE_VAL);
  for (double cores = 1.0;; cores = std::min(2.0 * cores, chip.cores)) {
    const double part = cores / chip.cores;
    MatmulTime time;
    time.arithmetic = work / (part * rate);
    time.sustained = time.arithmetic * (1.0 + fit.droop * (time.arithmetic / (time.arithmetic + regime.gap)));
    time.memory = stream_time(part * chip.hbm, fit.memory_share, regime.ramp, shape.bytes);
    time.total = regime.launch + (cores > 1.0 ? *fit.fork : Seconds(0)) + time.sustained + time.memory;
    time.tile.cores = cores;
    if (time.total < best.total) best = time;
    if (cores >= chip.cores) return best;
  }
}

}  // namespace

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
    if (unit.tile_m) rates.pad_m = static_cast<double>(unit.tile_m->value);
    if (unit.tile_k) rates.pad_k = static_cast<double>(unit.tile_k->value);
    if (unit.tile_n) rates.pad_n = static_cast<double>(unit.tile_n->value);
  }
  return rates;
}

TileSteps tile_steps(const ProductRates& rates) {
  const hardware::MatmulCalibration& fit = rates.fit;
  TileSteps steps;
  static_assert(std::tuple_size_v<decltype(steps.seconds)> == std::size(tile_sizes));
  const double per_core = rates.rate().value() / rates.chip.cores;
  // Narrower formats are proportionally faster; a tile's start and end take the same time in all of them.
  const double faster = rates.chip.bf16.value() > 0.0 ? rates.peak / rates.chip.bf16 : 1.0;
  const double loaded = fit.port && fit.port->value() > 0.0 ? std::min(4.0, 2.0 / faster) / fit.port->value() : 0.0;
  steps.fill = fit.fill * faster;
  steps.seconds.fill(HUGE_VAL);
  for (std::size_t t = 0; t < (fit.fine_tiles ? steps.seconds.size() : coarse_tiles); ++t) {
    const TileSize& tile = tile_sizes[t];
    const double arithmetic = 2.0 * tile.m * tile.n * (1.0 + fit.small_tile * tile.edges) / per_core;
    steps.seconds[t] = std::max(arithmetic, (tile.m + tile.n) * loaded);
  }
  return steps;
}

namespace {

using Splits = std::array<double, 4>;
constexpr Splits splits{1.0, 2.0, 4.0, 8.0};  ///< parts that k may be cut into

/// Elements of k that a core does, for each split.
Splits parts_of(const TileSteps& steps, double k) {
  Splits part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = k / splits[i] + steps.fill;
  return part;
}

/// Time to add up partial sums in fp32, for each split.
Splits adding_parts(const hardware::MatmulCalibration& fit, const CoreRates& chip, const MatmulShape& shape) {
  const double partial = 4.0 * shape.batch * shape.m * shape.n / (fit.memory_share * chip.hbm).value();
  Splits adding{};
  for (std::size_t i = 1; i < adding.size(); ++i) adding[i] = fit.split_cost.value() + splits[i] * partial;
  return adding;
}

/// A partly full last round costs between its share and a whole one: cores do not run in lockstep.
double waves_of(double rounds) { return 0.5 * std::ceil(rounds) + 0.5 * std::max(1.0, rounds); }

/// Seconds of the tiles of a product, and of adding up its partial sums over k.
struct Tiled {
  double arithmetic = HUGE_VAL, adding = 0;
};

/// Cut into tiles, and along k where that pays, on as many cores as there are: the best choice of a library. It
/// considers arithmetic alone, so k is split even if memory would have hidden the tiles, and the sums are added up
/// afterwards.
Tiled tiled_arithmetic(const hardware::MatmulCalibration& fit, const CoreRates& chip, const MatmulShape& shape,
                       const TileSteps& steps, bool may_split, TileChoice& choice) {
  const std::size_t ways = may_split ? splits.size() : 1;
  const double share_of_core = 1.0 / chip.cores;
  const double unpadded = shape.batch * shape.m * shape.n * share_of_core;
  const Splits part = parts_of(steps, shape.k), adding = adding_parts(fit, chip, shape);
  // The smallest tile that holds all rows is a good first guess, which rules out most others.
  const int guess = shape.m <= 16.0 ? 1 : shape.m <= 32.0 ? 3 : shape.m <= 64.0 ? 5 : shape.m <= 128.0 ? 6 : 7;
  constexpr double nearly = 1.0 - 1e-12;  // bounds are rounded
  Tiled found;
  double best = HUGE_VAL;
  for (int next = -1; next < static_cast<int>(std::size(tile_sizes)); ++next) {
    if (next == guess) continue;
    const auto t = static_cast<std::size_t>(next < 0 ? guess : next);
    const TileSize& tile = tile_sizes[t];
    // At least the time of one round of one tile, and of all tiles if cores were never idle; first without padding.
    if (nearly * steps.seconds[t] * std::max(part[ways - 1], unpadded * tile.over_area * part[0]) >= best) continue;
    const double tiles = shape.batch * tile.tiles(shape.m, shape.n);
    const double fair = tiles * share_of_core;
    if (nearly * steps.seconds[t] * std::max(part[ways - 1], fair * part[0]) >= best) continue;
    for (std::size_t i = 0; i < ways; ++i) {
      if (nearly * (steps.seconds[t] * std::max(1.0, fair * splits[i]) * part[i] + adding[i]) >= best) continue;
      const double waves = waves_of(tiles / chip.cores * splits[i]);
      const double seconds = waves * steps.seconds[t] * part[i];
      if (!(seconds + adding[i] < best)) continue;
      best = seconds + adding[i];
      found = {seconds, adding[i]};
      choice = {tile.m, tile.n, splits[i], waves};
    }
  }
  return found;
}

/// The time of a product whose arithmetic is known.
MatmulTime with_memory(const hardware::MatmulCalibration& fit, const CoreRates& chip, const MatmulShape& shape,
                       const hardware::Regime& regime, Seconds arithmetic, Seconds adding = Seconds(0)) {
  MatmulTime time;
  // Of both together, so that a split never saves what power would have cost.
  const auto slowed = [&](Seconds work) { return work * (1.0 + fit.droop * (work / (work + regime.gap))); };
  time.arithmetic = arithmetic;
  time.sustained = slowed(arithmetic);
  time.adding = slowed(arithmetic + adding) - time.sustained;
  time.memory = stream_time(chip.hbm, fit.memory_share * (shape.grouped ? fit.grouped : 1.0), regime.ramp, shape.bytes);
  // A systolic array's compiler prefetches across products, so only the longer of both counts.
  time.total = regime.launch + time.adding +
               (chip.systolic ? std::max(time.sustained, time.memory) : overlapped(time.sustained, time.memory));
  return time;
}

MatmulTime searched_time(const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime,
                         const TileSteps& steps, bool may_split) {
  const auto& [fit, chip, peak, share] = rates;
  if (fit.fork) return forked_time(fit, chip, rates.rate(), shape, regime);
  if (chip.systolic) return with_memory(fit, chip, shape, regime, systolic_arithmetic(chip, rates.rate(), shape));
  TileChoice tile;
  const Tiled found = tiled_arithmetic(fit, chip, shape, steps, may_split, tile);
  MatmulTime time = with_memory(fit, chip, shape, regime, Seconds(found.arithmetic), Seconds(found.adding));
  time.tile = tile;
  return time;
}

}  // namespace

TileRows tile_rows(const hardware::MatmulCalibration& fit, const CoreRates& chip, const TileSteps& steps,
                   const MatmulShape& product, double most) {
  TileRows rows;
  if (fit.fork || chip.systolic) return rows;
  const auto count = static_cast<std::size_t>(std::ceil(most / unit_rows));
  const Splits part = parts_of(steps, product.k);
  Splits none;
  none.fill(HUGE_VAL);
  rows.assign(count, none);
  for (std::size_t t = 0; t < steps.seconds.size(); ++t) {
    const TileSize& tile = tile_sizes[t];
    if (steps.seconds[t] == HUGE_VAL) continue;
    const auto high = static_cast<std::size_t>(tile.m / unit_rows);
    for (std::size_t first = 0; first < count; first += high) {
      const double tiles = product.batch * static_cast<double>(first / high + 1) * std::ceil(product.n / tile.n);
      const double rounds = tiles / chip.cores;
      Splits seconds;
      for (std::size_t i = 0; i < splits.size(); ++i)
        seconds[i] = waves_of(rounds * splits[i]) * steps.seconds[t] * part[i];
      for (std::size_t row = first; row < std::min(first + high, count); ++row)
        for (std::size_t i = 0; i < splits.size(); ++i) rows[row][i] = std::min(rows[row][i], seconds[i]);
    }
  }
  return rows;
}

MatmulTime matmul_time(const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime,
                       bool may_split) {
  const bool tiled = !rates.fit.fork && !rates.chip.systolic;
  return searched_time(rates, shape, regime, tiled ? tile_steps(rates) : TileSteps{}, may_split);
}

MatmulTime matmul_time(const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime,
                       const TileSteps& steps, const TileRows& rows) {
  const double row = std::ceil(shape.m / unit_rows);
  if (!(row <= static_cast<double>(rows.size()))) return searched_time(rates, shape, regime, steps, true);
  const Splits &tiles = rows[static_cast<std::size_t>(row) - 1], adding = adding_parts(rates.fit, rates.chip, shape);
  std::size_t best = 0;
  for (std::size_t i = 1; i < splits.size(); ++i)
    if (tiles[i] + adding[i] < tiles[best] + adding[best]) best = i;
  return with_memory(rates.fit, rates.chip, shape, regime, Seconds(tiles[best]), Seconds(adding[best]));
}

Seconds stream_time(BytesPerSecond hbm, double share, Seconds ramp, Bytes bytes) {
  if (!(bytes > Bytes(0))) return Seconds(0);
  const Seconds full = bytes / hbm;
  return full / share * (1.0 + std::sqrt(ramp / full));
}

namespace {

/// Elements of a head as matrix units work on them: scores contract them, weighted sums yield them. A systolic array is
/// filled up in both; GPU kernels are made for some widths.
double padded_head(const CoreRates& chip, double head_dim) {
  constexpr double gpu_step = 32;  // FlashAttention's
  const auto up_to = [&](double step) { return std::ceil(head_dim / step) * step; };
  return chip.systolic ? (up_to(chip.pad_k) + up_to(chip.pad_n)) / 2.0 : up_to(gpu_step);
}

}  // namespace

Seconds attention_time(const hardware::AttentionPass& fit, const CoreRates& chip, FlopsPerSecond peak,
                       const AttentionWork& work, bool backward) {
  constexpr double side = 128;  // of a tile of scores
  const auto keys = static_cast<double>(work.shape.keys);
  const double rows = work.queries <= side / 2.0 ? side / 2.0 : side;
  const double products = backward ? 2.5 : 1.0;  // recomputed scores, and four gradients
  const double tile = 4.0 * rows * side * (padded_head(chip, work.head_dim) + fit.softmax) * products;
  const double share = work.head_dim > hardware::wide_head ? fit.share * fit.wide : fit.share;
  const Seconds each = Flops(tile) / (share / chip.cores * peak);
  // Tiles on the diagonal are computed in full.
  const double across = std::ceil(keys / side);
  const double visited = std::min(across, work.shape.mean_keys() / side + (work.shape.causal ? 0.5 : 0.0));
  const double window = static_cast<double>(work.shape.window > 0 ? work.shape.window : work.shape.chunk);
  const double most = window > 0.0 ? std::min(across, std::ceil(window / side) + 1.0) : across;
  const double all = work.heads * std::ceil(work.queries / rows) * visited / chip.cores;
  // Rows of tiles are distributed over the cores; if there are few, the longest one determines the end.
  const Seconds busy = each * std::sqrt(all * all + most * most);
  const Bytes moved = backward ? 2.5 * (work.bytes + work.shared) : work.bytes;
  return busy + fit.passes * (moved / chip.hbm);
}

Seconds decode_time(const hardware::DecodeCalibration& fit, const CoreRates& chip, double items, double head_dim,
                    Bytes bytes) {
  // FlashAttention's rule: two blocks fit on a core, and nothing is split where there are 0.8 times as many.
  constexpr double parts = 0.8 * 2.0;
  const double narrow = items >= parts * chip.cores ? fit.share * fit.crowded : fit.share;
  return bytes / ((head_dim > hardware::wide_head ? fit.wide : narrow) * chip.hbm) + items / chip.cores * fit.item;
}

Seconds split_attention_time(const hardware::AttentionPass& fit, const CoreRates& chip, FlopsPerSecond peak,
                             const AttentionWork& work, double items) {
  constexpr double side = 128, rows = side / 2.0;  // of a tile of scores
  const double tiles = items * std::ceil(work.queries * work.heads / items / rows) * work.shape.mean_keys() / side;
  const double share = work.head_dim > hardware::wide_head ? fit.share * fit.wide : fit.share;
  return Flops(tiles * 4.0 * rows * side * (padded_head(chip, work.head_dim) + fit.softmax)) / (share * peak);
}

const hardware::AttentionKernelCalibration* attention_kernel(const hardware::AttentionCalibration& fit,
                                                             hardware::AttentionKernel choice) {
  const auto* flash2 = fit.flash2 ? &*fit.flash2 : nullptr;
  const auto* cudnn = fit.cudnn ? &*fit.cudnn : nullptr;
  if (choice == hardware::AttentionKernel::flash2) return flash2 ? flash2 : cudnn;
  return cudnn ? cudnn : flash2;
}

}  // namespace assay::estimate
