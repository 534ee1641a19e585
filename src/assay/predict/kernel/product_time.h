// The time of a product from that of its tiles: the clock under power, memory, parts of k that are added up, and
// starts. For the models of kernels, and for callers that price one product at many sizes.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "assay/predict/kernel/chip_numbers.h"
#include "assay/predict/kernel/kernel_models.h"
#include "assay/predict/kernel/tile_table.h"

namespace assay::kernel {

/// Arithmetic and memory overlap, but not perfectly: the fourth root of the sum of fourth powers is between the larger
/// of both and 1.19 times it. Square roots only, so that every machine gives the same bits.
template <class N>
NumberOf<N, Seconds> overlapped(const N& num, NumberOf<N, Seconds> a, NumberOf<N, Seconds> b) {
  const auto most = num.named("longer", max(a, b));
  if (!(most.value() > 0.0)) return most;
  const auto r = num.named("ratio", min(a, b) / most), r2 = r * r;
  return num.named("overlapped", most * sqrt(sqrt(1.0 + r2 * r2)));
}

/// Of a product.
template <class N>
class Throttle {
 public:
  Throttle(const N& num, const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime)
      : droop_(loads_narrowly(rates.fit, shape) ? num.given("droop", 0.0, "matrix units wait for loads")
                                                : num.given("droop", rates.fit.droop, rates.sources, "matmul.droop")),
        gap_(num.given("gap", regime.gap, rates.sources, "regime.gap")) {}
  auto operator()(NumberOf<N, Seconds> work) const { return throttled<N>(work, droop_, gap_); }

 private:
  NumberOf<N, double> droop_;
  NumberOf<N, Seconds> gap_;
};

/// Until a product starts to multiply; the epilogue waits for the scales of its operands besides.
template <class N>
NumberOf<N, Seconds> started(const N& num, const ProductRates& rates, const MatmulShape& shape,
                             const hardware::Regime& regime) {
  const auto launch = num.given("launch", regime.launch, rates.sources, "regime.launch");
  const auto all = product_starts<N>(num, rates, shape, launch);
  if (!rates.fit.scales || facts(rates.format).bits >= 16) return all;
  return all + num.given("scales", *rates.fit.scales, rates.sources, "matmul.scales");
}

/// The bytes of a product through its memory.
template <class N>
struct ProductStream {
  NumberOf<N, Seconds> ramp;  ///< until memory answers at its rate, or as long as the transfer if that is shorter
  NumberOf<N, Seconds> time;

  /// `full`: at the full bandwidth.
  ProductStream(const N& num, const ProductRates& rates, const hardware::Regime& regime, NumberOf<N, Seconds> full)
      : ramp(
            num.named("ramp", min(full, num.given("until memory answers", regime.ramp, rates.sources, "regime.ramp")))),
        time(num.named("streaming", full / num.given("memory share", rates.fit.memory_share, rates.sources,
                                                     "matmul.memory_share"))) {}
  ProductStream(const N& num, const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime,
                NumberOf<N, BytesPerSecond> hbm)
      : ProductStream(num, rates, regime, num.named("at full bandwidth", bytes(num, shape) / hbm)) {}

 private:
  static NumberOf<N, Bytes> bytes(const N& num, const MatmulShape& shape) {
    const auto once = num.given("bytes", shape.bytes, "operands and result, once each");
    if (!(shape.added.value() > 0.0)) return once;
    return once + num.given("buffer", shape.added, "what the result is added to, read");
  }
};

/// The partial sums of a part of k, in fp32, and how fast they are moved.
inline Bytes partial_sums(double batch, double m, double n) { return Bytes(4.0 * batch * m * n); }
inline BytesPerSecond partial_sum_rate(const hardware::MatmulCalibration& fit, const CoreRates& chip) {
  return fit.memory_share * chip.hbm;
}

/// The arithmetic of a product that is cut into tiles, and the time to add up its partial sums over k.
template <class N>
struct TiledTime {
  NumberOf<N, Seconds> arithmetic;
  std::optional<NumberOf<N, Seconds>> adding;  ///< where k is split
  std::optional<NumberOf<N, Seconds>> busy{};  ///< matrix units, where it is known how long they wait for loads
};

/// The tiles that a table found.
inline TiledTime<Plain> tiled_time(const TileTable::Best& best) {
  if (!(best.adding > Seconds())) return {best.tiles, {}};
  return {best.tiles, best.adding};
}

/// The time of a product whose arithmetic is known.
template <class N>
MatmulTimeOf<N> with_memory(const N& num, bool systolic, const ProductStream<N>& stream, const TiledTime<N>& tiled,
                            const Throttle<N>& slowed, const NumberOf<N, Seconds>& starts) {
  MatmulTimeOf<N> time;
  time.arithmetic = num.named("arithmetic in a burst", tiled.arithmetic);
  const auto at_its_clock = tiled.busy ? max(tiled.arithmetic, slowed(*tiled.busy)) : slowed(tiled.arithmetic);
  time.sustained = num.named("arithmetic", at_its_clock);
  time.memory = stream.time;
  // No tile can start before the first operands are there, so that nothing hides the ramp.
  // A systolic array's compiler prefetches across products, so only the longer of both counts.
  const auto both =
      systolic ? num.named("longer", max(time.sustained, time.memory)) : overlapped(num, time.sustained, time.memory);
  const auto start = starts + stream.ramp;
  if (!tiled.adding) {
    time.adding = num.given("adding", Seconds(0), "k is not split");
    time.total = start + both;
    return time;
  }
  // Of both together, so that a split never saves what power would have cost.
  time.adding = num.named("adding", slowed(tiled.arithmetic + *tiled.adding) - time.sustained);
  time.total = start + time.adding + both;
  return time;
}

template <class N>
MatmulTimeOf<N> with_memory(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime, const TiledTime<N>& tiled) {
  const ProductStream<N> stream(num, rates, shape, regime, main_memory(num, rates.chip, rates.sources));
  return with_memory<N>(num, rates.chip.systolic, stream, tiled, Throttle<N>(num, rates, shape, regime),
                        started(num, rates, shape, regime));
}

/// Parts of k of the times in a table.
inline constexpr std::array<double, 4> usual_splits{1.0, 2.0, 4.0, 8.0};

}  // namespace assay::kernel
