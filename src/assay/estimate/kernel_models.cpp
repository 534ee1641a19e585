#include "assay/estimate/kernel_models.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "assay/estimate/chip_numbers.h"

namespace assay::estimate {
namespace {

/// 128 x 256, the tile that loses least: the mean of 1/128 and 1/256.
constexpr double large_tile_edge = (1.0 / 128 + 1.0 / 256) / 2;

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
constexpr TileSize tile_sizes[] = {
    {16, 64},   {16, 128},  {32, 64},   {32, 128},  {64, 64},   {64, 128},  {128, 128}, {128, 256}, {256, 128},
    {96, 128},  {128, 96},  {160, 128}, {128, 160}, {192, 128}, {128, 192}, {192, 192}, {160, 256}, {256, 160},
    {48, 64},   {80, 64},   {64, 96},   {96, 64},   {64, 112},  {112, 64},  {128, 112}, {112, 128}, {144, 128},
    {144, 256}, {112, 192}, {80, 192},  {176, 128}, {208, 128}, {208, 192}, {80, 128},  {96, 192},  {176, 192}};
constexpr std::size_t coarse_tiles = 9;  ///< the first ones, of powers of two
constexpr double unit_rows = 16;         ///< every tile has a multiple of these
constexpr Seconds never(HUGE_VAL);       ///< of a tile that is not taken

/// Arithmetic and memory overlap, but not perfectly: the fourth root of the sum of fourth powers is between the larger
/// of both and 1.19 times it. Square roots only, so that every machine gives the same bits.
template <class N>
NumberOf<N, Seconds> overlapped(const N& num, NumberOf<N, Seconds> a, NumberOf<N, Seconds> b) {
  const auto most = num.named("longer", max(a, b));
  if (!(most.value() > 0.0)) return most;
  const auto r = num.named("ratio", min(a, b) / most), r2 = r * r;
  return num.named("overlapped", most * sqrt(sqrt(1.0 + r2 * r2)));
}

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

/// How much longer a product takes because rows of its operands begin inside cache lines; 1 where this was not
/// measured.
template <class N>
NumberOf<N, double> straddled(const N& num, const ProductRates& rates, const MatmulShape& shape) {
  if (!rates.fit.straddle || !(shape.operand_rows < cache_line) || loads_narrowly(rates.fit, shape))
    return num.given("straddling", 1.0, "rows are whole cache lines");
  const auto inside = num.given("part of a line", 1.0 - shape.operand_rows / cache_line, "where rows may begin");
  return num.named("straddling",
                   1.0 + num.given("straddle", *rates.fit.straddle, rates.sources, "matmul.straddle") * inside);
}

/// Until a product starts to multiply; the epilogue waits for the scales of its operands besides.
template <class N>
NumberOf<N, Seconds> started(const N& num, const ProductRates& rates, const hardware::Regime& regime) {
  const auto launch = num.given("launch", regime.launch, rates.sources, "regime.launch");
  if (!rates.fit.scales || facts(rates.format).bits >= 16) return launch;
  return launch + num.given("scales", *rates.fit.scales, rates.sources, "matmul.scales");
}

template <class N>
NumberOf<N, Seconds> product_stream(const N& num, const ProductRates& rates, const MatmulShape& shape,
                                    const hardware::Regime& regime, NumberOf<N, BytesPerSecond> hbm) {
  const auto dense = num.given("memory share", rates.fit.memory_share, rates.sources, "matmul.memory_share");
  const auto share =
      shape.grouped ? dense * num.given("grouped", rates.fit.grouped, rates.sources, "matmul.grouped") : dense;
  auto bytes = num.given("bytes", shape.bytes, "operands and result, once each");
  if (shape.added.value() > 0.0) bytes = bytes + num.given("buffer", shape.added, "what the result is added to, read");
  const auto moved = stream_time(num, hbm, share, num.given("ramp", regime.ramp, rates.sources, "regime.ramp"), bytes);
  return num.named("streaming", shape.operand_rows < cache_line ? moved * straddled(num, rates, shape) : moved);
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
  time.memory = product_stream(num, rates, shape, regime, part * main_memory(num, rates.chip, rates.sources));
  time.adding = num.given("adding", Seconds(0), "k is not split");
  const auto launch = num.given("launch", regime.launch, rates.sources, "regime.launch");
  const auto start = cores > 1.0 ? launch + num.given("fork", *fit.fork, rates.sources, "matmul.fork") : launch;
  time.total = start + time.sustained + time.memory;
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
  const double bytes = std::ceil(storage(dtype, elements).value());
  double divides = facts(dtype).bits < 16 ? bulk_copy : 1.0;
  while (divides < cache_line && std::fmod(bytes, 2.0 * divides) == 0.0) divides *= 2.0;
  return divides;
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
  const double warps = static_cast<double>(chip.cores.count.value * chip.vector_unit.partitions.value);
  rates.vector = 2.0 * 32.0 * warps * 1_FLOP * chip.vector_unit.clock.value;
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

  TileRates(const N& num, const ProductRates& rates, const MatmulShape& shape)
      : per_core(num.named("rate of a core", reached_rate(num, rates) / core_count(num, rates.chip, rates.sources))),
        faster(rates.chip.bf16.value() > 0.0
                   ? num.named("faster than bf16", peak_of(num, rates) / num.given("bf16 peak", rates.chip.bf16,
                                                                                   rates.sources, "peak.bf16"))
                   : num.given("faster than bf16", 1.0, "the chip has no bf16")),
        small_tile(num.given("small tile", rates.fit.small_tile, rates.sources, "matmul.small_tile")) {
    straddles = shape.operand_rows < cache_line;
    if (straddles) longer = straddled(num, rates, shape);
    if (rates.fit.stage) turn = num.given("stage", *rates.fit.stage, rates.sources, "matmul.stage") / stage_k(num);
    const bool narrow = loads_narrowly(rates.fit, shape);
    constexpr double narrow_load = 4;  // bytes: the least that is copied without passing through registers
    const bool scattered = narrow && std::min(shape.operand_rows, shape.result_rows) < narrow_load;
    const std::optional<BytesPerSecond>& port = scattered ? rates.fit.scattered_port
                                                : narrow  ? rates.fit.narrow_port
                                                          : rates.fit.port;
    if (!port || !(port->value() > 0.0)) return;
    const auto element = min(num.given("widest element", storage(Dtype::fp32, 1.0), name(Dtype::fp32)),
                             num.given("element in bf16", storage(Dtype::bf16, 1.0), name(Dtype::bf16)) / faster);
    loaded = element / num.given("port", *port, rates.sources,
                                 scattered ? "matmul.scattered_port"
                                 : narrow  ? "matmul.narrow_port"
                                           : "matmul.port");
  }
  /// Elements of k in a stage: a cache line of each row.
  NumberOf<N, double> stage_k(const N& num) const {
    return num.given("stage of bf16", cache_line / storage(Dtype::bf16, 1.0).value(), "a cache line of each row") *
           faster;
  }
  auto fill(const N& num, const ProductRates& rates) const {
    return num.named("fill", num.given("fill in bf16", rates.fit.fill, rates.sources, "matmul.fill") * faster);
  }
  /// Time of one tile of m x n for one element of k.
  NumberOf<N, Seconds> step(const N& num, NumberOf<N, double> m, NumberOf<N, double> n,
                            NumberOf<N, double> edges) const {
    const auto work = num.named("FLOP of a tile", multiply_and_add(num) * m * n);
    auto time = work * (1.0 + small_tile * edges) / per_core;
    if (loaded) time = max(time, num.named("operands of a tile", m + n) * *loaded);
    if (turn) time = max(time, *turn);
    return num.named("step of a tile", straddles ? time * longer : time);
  }
};

}  // namespace

TileSteps tile_steps(const ProductRates& rates, const MatmulShape& shape) {
  TileSteps steps;
  static_assert(std::tuple_size_v<decltype(steps.step)> == std::size(tile_sizes));
  const Plain num;
  const TileRates<Plain> tiles(num, rates, shape);
  const bool fine = rates.fit.fine_tiles && !loads_narrowly(rates.fit, shape);
  steps.fill = tiles.fill(num, rates);
  steps.step.fill(never);
  for (std::size_t t = 0; t < (fine ? steps.step.size() : coarse_tiles); ++t)
    steps.step[t] = tiles.step(num, tile_sizes[t].m, tile_sizes[t].n, tile_sizes[t].edges);
  return steps;
}

namespace {

using Splits = std::array<double, 4>;
using SplitTimes = std::array<Seconds, 4>;
constexpr Splits splits{1.0, 2.0, 4.0, 8.0};  ///< parts that k may be cut into

/// Elements of k that a core does, for each split.
Splits parts_of(const TileSteps& steps, double k) {
  Splits part{};
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = k / splits[i] + steps.fill;
  return part;
}

/// Time to add up partial sums in fp32, for each split.
SplitTimes adding_parts(const hardware::MatmulCalibration& fit, const CoreRates& chip, const MatmulShape& shape) {
  const Seconds partial = Bytes(4.0 * shape.batch * shape.m * shape.n) / (fit.memory_share * chip.hbm);
  SplitTimes adding{};
  for (std::size_t i = 1; i < adding.size(); ++i) adding[i] = fit.split_cost + splits[i] * partial;
  return adding;
}

/// A partly full last round costs between its share and a whole one: cores do not run in lockstep.
template <class N>
NumberOf<N, double> waves_of(const N& num, NumberOf<N, double> rounds) {
  return num.named("waves", 0.5 * ceil(rounds) + 0.5 * max(num.given("one", 1.0, "at least one round"), rounds));
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
  const std::size_t ways = may_split ? splits.size() : 1;
  const double share_of_core = 1.0 / chip.cores;
  const double unpadded = shape.batch * shape.m * shape.n * share_of_core;
  const Splits part = parts_of(steps, shape.k);
  const SplitTimes adding = adding_parts(fit, chip, shape);
  // The smallest tile that holds all rows is a good first guess, which rules out most others.
  const int guess = shape.m <= 16.0 ? 1 : shape.m <= 32.0 ? 3 : shape.m <= 64.0 ? 5 : shape.m <= 128.0 ? 6 : 7;
  constexpr double nearly = 1.0 - 1e-12;  // bounds are rounded
  Tiled found;
  Seconds best = never;
  for (int next = -1; next < static_cast<int>(std::size(tile_sizes)); ++next) {
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

/// The arithmetic of a product that is cut into tiles, and the time to add up its partial sums over k.
template <class N>
struct TiledTime {
  NumberOf<N, Seconds> arithmetic;
  std::optional<NumberOf<N, Seconds>> adding;  ///< where k is split
};

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

/// The time of a product whose arithmetic is known.
template <class N>
MatmulTimeOf<N> with_memory(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime, const TiledTime<N>& tiled) {
  MatmulTimeOf<N> time;
  const Throttle<N> slowed(num, rates, shape, regime);
  time.arithmetic = num.named("arithmetic in a burst", tiled.arithmetic);
  time.sustained = num.named("arithmetic", slowed(tiled.arithmetic));
  time.memory = product_stream(num, rates, shape, regime, main_memory(num, rates.chip, rates.sources));
  // A systolic array's compiler prefetches across products, so only the longer of both counts.
  const auto both = rates.chip.systolic ? num.named("longer", max(time.sustained, time.memory))
                                        : overlapped(num, time.sustained, time.memory);
  const auto launch = started(num, rates, regime);
  if (!tiled.adding) {
    time.adding = num.given("adding", Seconds(0), "k is not split");
    time.total = launch + both;
    return time;
  }
  // Of both together, so that a split never saves what power would have cost.
  time.adding = num.named("adding", slowed(tiled.arithmetic + *tiled.adding) - time.sustained);
  time.total = launch + time.adding + both;
  return time;
}

template <class N>
MatmulTimeOf<N> searched_time(const N& num, const ProductRates& rates, const MatmulShape& shape,
                              const hardware::Regime& regime, const TileSteps& steps, bool may_split) {
  if (rates.fit.fork) return forked_time(num, rates, shape, regime);
  if (rates.chip.systolic)
    return with_memory<N>(num, rates, shape, regime, {systolic_arithmetic(num, rates, shape), {}});
  TileChoice tile;
  const Tiled found = tiled_arithmetic(rates.fit, rates.chip, shape, steps, may_split, tile);
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

}  // namespace

TileRows tile_rows(const hardware::MatmulCalibration& fit, const CoreRates& chip, const TileSteps& steps,
                   const MatmulShape& product, double most) {
  TileRows rows;
  if (fit.fork || chip.systolic) return rows;
  const auto count = static_cast<std::size_t>(std::ceil(most / unit_rows));
  const Splits part = parts_of(steps, product.k);
  SplitTimes none;
  none.fill(never);
  rows.assign(count, none);
  for (std::size_t t = 0; t < steps.step.size(); ++t) {
    const TileSize& tile = tile_sizes[t];
    if (steps.step[t] == never) continue;
    const auto high = static_cast<std::size_t>(tile.m / unit_rows);
    for (std::size_t first = 0; first < count; first += high) {
      const double tiles = product.batch * static_cast<double>(first / high + 1) * std::ceil(product.n / tile.n);
      const double rounds = tiles / chip.cores;
      SplitTimes times;
      for (std::size_t i = 0; i < splits.size(); ++i)
        times[i] = waves_of(Plain{}, rounds * splits[i]) * steps.step[t] * part[i];
      for (std::size_t row = first; row < std::min(first + high, count); ++row)
        for (std::size_t i = 0; i < splits.size(); ++i) rows[row][i] = std::min(rows[row][i], times[i]);
    }
  }
  return rows;
}

template <class N>
MatmulTimeOf<N> matmul_time(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime, bool may_split) {
  const bool tiled = !rates.fit.fork && !rates.chip.systolic;
  return searched_time(num, rates, shape, regime, tiled ? tile_steps(rates, shape) : TileSteps{}, may_split);
}

template <class N>
MatmulTimeOf<N> matmul_time(const N& num, const ProductRates& rates, const MatmulShape& shape,
                            const hardware::Regime& regime, const KnownTiles& known) {
  const double row = std::ceil(shape.m / unit_rows);
  if (N::traced || !(row <= static_cast<double>(known.rows.size())))
    return searched_time(num, rates, shape, regime, known.steps, true);
  if constexpr (!N::traced) {
    const SplitTimes &tiles = known.rows[static_cast<std::size_t>(row) - 1],
                     adding = adding_parts(rates.fit, rates.chip, shape);
    std::size_t best = 0;
    for (std::size_t i = 1; i < splits.size(); ++i)
      if (tiles[i] + adding[i] < tiles[best] + adding[best]) best = i;
    TiledTime<N> tiled{tiles[best], {}};
    if (best > 0) tiled.adding = adding[best];
    return with_memory(num, rates, shape, regime, tiled);
  }
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
  template MatmulTimeOf<N> matmul_time(const N&, const ProductRates&, const MatmulShape&, const hardware::Regime&, \
                                       const KnownTiles&);                                                         \
  template NumberOf<N, Seconds> stream_time(const N&, NumberOf<N, BytesPerSecond>, NumberOf<N, double>,            \
                                            NumberOf<N, Seconds>, NumberOf<N, Bytes>);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::estimate
