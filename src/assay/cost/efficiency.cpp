#include "assay/cost/efficiency.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

struct TileSize {
  double m, n;
};
/// Tiles of the result that GPU libraries choose among; a core holds one at a time.
constexpr TileSize tile_sizes[] = {{64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 128}};
/// 128 x 256, the tile that loses least: the mean of 1/128 and 1/256.
constexpr double large_tile_edge = (1.0 / 128 + 1.0 / 256) / 2;

/// Arithmetic and memory overlap, but not perfectly: the fourth root of the sum of fourth powers lies between the
/// larger of both and 1.19 times it. Square roots only, so that every machine gives the same bits.
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

}  // namespace

CoreRates core_rates(const Chip& chip) {
  CoreRates rates;
  rates.cores = static_cast<double>(chip.cores.count.value);
  rates.hbm = chip.hbm().bandwidth->value;
  const MatrixUnit& unit = chip.matrix_unit;
  rates.systolic = unit.rows.has_value() && chip.family == "tpu";
  if (rates.systolic) {
    if (unit.tile_m) rates.pad_m = static_cast<double>(unit.tile_m->value);
    if (unit.tile_k) rates.pad_k = static_cast<double>(unit.tile_k->value);
    if (unit.tile_n) rates.pad_n = static_cast<double>(unit.tile_n->value);
  }
  return rates;
}

MatmulTime matmul_time(const MatmulCalibration& fit, const CoreRates& chip, FlopsPerSecond peak, double share,
                       const MatmulShape& shape, const Regime& regime, bool may_split) {
  MatmulTime time;
  const FlopsPerSecond rate = share * peak;
  const BytesPerSecond stream = fit.memory_share * chip.hbm;
  if (chip.systolic) {
    time.arithmetic = systolic_arithmetic(chip, rate, shape);
  } else {
    double best = HUGE_VAL;
    const double per_core = rate.value() / chip.cores;
    for (const TileSize& tile : tile_sizes) {
      const double tiles = shape.batch * std::ceil(shape.m / tile.m) * std::ceil(shape.n / tile.n);
      const double edges = std::max(0.0, (1.0 / tile.m + 1.0 / tile.n) / 2.0 - large_tile_edge);
      const double step = 2.0 * tile.m * tile.n * (1.0 + fit.small_tile * edges) / per_core;  // for one element of k
      for (double split = 1.0; split <= (may_split ? 8.0 : 1.0); split *= 2.0) {
        const double rounds = tiles * split / chip.cores;
        // A last round that is part full costs between its share and a whole one: cores do not run in step.
        const double waves = 0.5 * std::ceil(rounds) + 0.5 * std::max(1.0, rounds);
        double seconds = waves * step * (shape.k / split + fit.fill);
        if (split > 1.0)  // partial sums in fp32 go out and come back
          seconds += fit.split_cost.value() + 4.0 * split * shape.batch * shape.m * shape.n / stream.value();
        if (seconds < best) best = seconds, time.tile = {tile.m, tile.n, split, waves};
      }
    }
    time.arithmetic = Seconds(best);
  }
  const double busy = time.arithmetic / (time.arithmetic + regime.gap);
  time.sustained = time.arithmetic * (1.0 + fit.droop * busy);
  time.memory = stream_time(chip.hbm, fit.memory_share, regime.ramp, shape.bytes);
  // A systolic array's compiler prefetches across products, so that the longer of both is all there is.
  time.total =
      regime.launch + (chip.systolic ? std::max(time.sustained, time.memory) : overlapped(time.sustained, time.memory));
  return time;
}

Seconds stream_time(BytesPerSecond hbm, double share, Seconds ramp, Bytes bytes) {
  if (!(bytes > Bytes(0))) return Seconds(0);
  const Seconds full = bytes / hbm;
  return full / share * (1.0 + std::sqrt(ramp / full));
}

Seconds attention_time(const AttentionPass& fit, const CoreRates& chip, FlopsPerSecond peak, const AttentionWork& work,
                       bool backward) {
  constexpr double side = 128;  // of a tile of scores
  const auto keys = static_cast<double>(work.shape.keys);
  const double rows = work.queries <= side / 2.0 ? side / 2.0 : side;
  const double products = backward ? 2.5 : 1.0;  // scores once more, and four gradients
  const double tile = 4.0 * rows * side * (work.head_dim + fit.softmax) * products;
  const Seconds each = Flops(tile) / (fit.share / chip.cores * peak);
  // Tiles on the diagonal are done whole.
  const double across = std::ceil(keys / side);
  const double visited = std::min(across, work.shape.mean_keys() / side + (work.shape.causal ? 0.5 : 0.0));
  const double window = static_cast<double>(work.shape.window > 0 ? work.shape.window : work.shape.chunk);
  const double most = window > 0.0 ? std::min(across, std::ceil(window / side) + 1.0) : across;
  const double all = work.heads * std::ceil(work.queries / rows) * visited / chip.cores;
  // Rows of tiles are dealt out to the cores; the longest one sets the end where there are few.
  const Seconds busy = each * std::sqrt(all * all + most * most);
  return busy + (backward ? 2.5 : 1.0) * fit.passes * (work.bytes / chip.hbm);
}

Seconds decode_time(const DecodeCalibration& fit, const CoreRates& chip, double items, Bytes bytes) {
  return bytes / (fit.share * chip.hbm) + items / chip.cores * fit.item;
}

const AttentionKernelCalibration* attention_kernel(const AttentionCalibration& fit, AttentionKernel choice) {
  const auto* flash2 = fit.flash2 ? &*fit.flash2 : nullptr;
  const auto* cudnn = fit.cudnn ? &*fit.cudnn : nullptr;
  if (choice == AttentionKernel::flash2) return flash2 ? flash2 : cudnn;
  return cudnn ? cudnn : flash2;
}

}  // namespace assay
