#include "assay/predict/roofline/systolic.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace assay::roofline {
namespace {

using Index = std::int64_t;

Index ceil_div(Index a, Index b) { return (a - 1) / b + 1; }

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

void derive_shares(const SystolicArray& array, SystolicCycles& cycles) {
  const double useful = static_cast<double>(cycles.useful_macs);
  const double padded = static_cast<double>(cycles.padded_macs);
  const double slots =
      static_cast<double>(cycles.total) * static_cast<double>(array.rows) * static_cast<double>(array.columns);
  cycles.utilisation = useful / slots;
  cycles.padding_waste = padded / slots;
  cycles.utilisation_limit = useful / (useful + padded);
}

// Blocks of fixed length through a local array: the compiler then needs neither an alias check nor a remainder loop,
// which is what lets it vectorise at -O2.
void multiply_add(double* sum, const double* above, const float* weight, const float* activation, Index count) {
  constexpr Index block = 8;
  Index i = 0;
  for (; i + block <= count; i += block) {
    double lane[block];
    for (Index j = 0; j < block; ++j) lane[j] = above[i + j] + double{weight[i + j]} * double{activation[i + j]};
    for (Index j = 0; j < block; ++j) sum[i + j] = lane[j];
  }
  for (; i < count; ++i) sum[i] = above[i] + double{weight[i]} * double{activation[i]};
}

void add_to_profile(SystolicActivity& activity, Index cycle, Index useful, Index padded) {
  if (at(cycle / activity.cycles_per_bucket) == SystolicActivity::max_buckets) {
    const auto halve = [](std::vector<Index>& buckets) {
      for (std::size_t i = 0; i < buckets.size() / 2; ++i) buckets[i] = buckets[2 * i] + buckets[2 * i + 1];
      buckets.resize(buckets.size() / 2);
    };
    halve(activity.useful);
    halve(activity.padded);
    activity.cycles_per_bucket *= 2;
  }
  const std::size_t bucket = at(cycle / activity.cycles_per_bucket);
  activity.useful.resize(bucket + 1);
  activity.padded.resize(bucket + 1);
  activity.useful[bucket] += useful;
  activity.padded[bucket] += padded;
}

// A stream in transit through the array. Since row r and column c lag by r and c cycles, its age alone determines which
// PEs it occupies; this replaces a valid bit that travels with the data.
struct Wave {
  Index first_k = 0;
  Index first_n = 0;
  Index depth = 0;  // rows of the tile that are not padding
  Index width = 0;  // columns of the tile that are not padding
  Index age = 0;
  Index rows_out = 0;  // sums that have left the last column
};

class Simulation {
 public:
  Simulation(const SystolicArray& array, Index m, Index k, Index n, std::span<const float> x, std::span<const float> w)
      : array_(array),
        rows_(array.rows),
        columns_(array.columns),
        m_(m),
        k_(k),
        n_(n),
        tiles_(ceil_div(k, rows_) * ceil_div(n, columns_)),
        x_(x),
        w_(w),
        activation_(at(rows_ * (columns_ + 1))),
        sum_(at((rows_ + 1) * columns_)),
        weight_(at(rows_ * columns_)),
        next_weight_(array.double_buffered ? weight_.size() : 0) {
    run_.result.resize(at(m * n));
  }

  std::vector<SystolicFrame> frames() && {
    std::vector<SystolicFrame> out;
    while (started_ < tiles_ || !waves_.empty()) {
      works_.assign(at(rows_ * columns_), false);
      tick();
      out.push_back(frame());
    }
    return out;
  }

  SystolicRun finish() && {
    while (started_ < tiles_ || !waves_.empty()) tick();
    SystolicCycles& cycles = run_.cycles;
    cycles.tiles = tiles_;
    cycles.steady_cycles_per_tile = (cycles.fill + cycles.steady) / tiles_;
    derive_shares(array_, cycles);
    return std::move(run_);
  }

 private:
  enum class Port { idle, shifting, ready };

  SystolicFrame frame() const {
    SystolicFrame out{at(rows_), at(columns_), {weight_.begin(), weight_.end()}, {}, {}, works_};
    for (Index r = 0; r < rows_; ++r)
      for (Index c = 0; c < columns_; ++c) {
        out.activations.push_back(static_cast<double>(activation_[at(r * (columns_ + 1) + c + 1)]));
        out.sums.push_back(sum_[at((r + 1) * columns_ + c)]);
      }
    return out;
  }

  bool feeding() const { return !waves_.empty() && waves_.back().age < m_; }

  Wave tile(Index index) const {
    const Index along_k = ceil_div(k_, rows_);
    const Index first_k = index % along_k * rows_;
    const Index first_n = index / along_k * columns_;
    return {first_k, first_n, std::min(rows_, k_ - first_k), std::min(columns_, n_ - first_n)};
  }

  void tick() {
    if (port_ == Port::ready && !feeding()) {
      waves_.push_back(tile(started_++));
      port_ = Port::idle;
    }
    if (port_ == Port::idle && loaded_ < tiles_ && (array_.double_buffered || waves_.empty())) {
      loads_.push_back(tile(loaded_++));
      port_ = Port::shifting;
    }
    const bool enters = feeding();

    // Oldest first: a wave reads the registers that its successor is about to overwrite.
    Index useful = 0;
    Index padded = 0;
    for (Wave& wave : waves_) advance(wave, useful, padded);
    // Last, as at the clock edge: a weight register may be refilled in the cycle in which its content moves on.
    for (Wave& load : loads_) shift_weights(load);

    count(enters, useful, padded);
    while (!waves_.empty() && waves_.front().rows_out == m_) waves_.pop_front();
    while (!loads_.empty() && loads_.front().age == rows_ + columns_ - 1) loads_.pop_front();
  }

  void count(bool enters, Index useful, Index padded) {
    SystolicCycles& cycles = run_.cycles;
    add_to_profile(run_.activity, cycles.total, useful, padded);
    ++cycles.total;
    cycles.useful_macs += useful;
    cycles.padded_macs += padded;
    if (started_ == 0) {
      ++cycles.load;
    } else if (enters) {
      ++(corner_reached_ ? cycles.steady : cycles.fill);
    } else {
      ++(started_ < tiles_ ? cycles.stall : cycles.drain);
    }
  }

  // One cycle of a tile's wavefront. Rows go from the bottom up and columns from the right, so that every register is
  // read before it is overwritten and one set of registers is enough.
  void advance(Wave& wave, Index& useful, Index& padded) {
    const Index newest = wave.age;           // diagonal r + c that activation row 0 has reached
    const Index oldest = wave.age - m_ + 1;  // diagonal of the last row
    const Index bottom = std::min(rows_ - 1, newest);
    const Index top = std::max<Index>(0, oldest - columns_ + 1);
    Index occupied = 0;
    Index needed = 0;
    for (Index r = bottom; r >= top; --r) {
      const Index begin = std::max<Index>(0, oldest - r);
      const Index end = std::min(columns_, newest - r + 1);
      float* activations = &activation_[at(r * (columns_ + 1))];  // [0] is the input at the left edge
      if (begin == 0) {
        activations[0] = r < wave.depth ? x_[at((wave.age - r) * k_ + wave.first_k + r)] : 0.0F;
      }
      std::copy_backward(activations + begin, activations + end, activations + end + 1);
      float* weights = &weight_[at(r * columns_)];
      const Index front = newest - r;
      if (array_.double_buffered && front < columns_) weights[front] = next_weight_[at(r * columns_ + front)];
      const double* above = &sum_[at(r * columns_)];  // row 0 of the sums is the zero that enters at the top
      multiply_add(&sum_[at((r + 1) * columns_)] + begin, above + begin, weights + begin, activations + begin + 1,
                   end - begin);
      occupied += end - begin;
      if (!works_.empty()) std::fill(works_.begin() + r * columns_ + begin, works_.begin() + r * columns_ + end, true);
      if (r < wave.depth) needed += std::max<Index>(0, std::min(end, wave.width) - begin);
    }
    useful += needed;
    padded += occupied - needed;
    if (bottom == rows_ - 1) collect(wave, newest - bottom, oldest - bottom);
    ++wave.age;
  }

  // Accumulates the sums that leave the bottom row: column c holds activation row `newest` - c.
  void collect(Wave& wave, Index newest, Index oldest) {
    const double* sums = &sum_[at(rows_ * columns_)];
    const Index end = std::min(wave.width, newest + 1);
    for (Index c = std::max<Index>(0, oldest); c < end; ++c) {
      run_.result[at((newest - c) * n_ + wave.first_n + c)] += sums[c];
    }
    if (newest >= columns_ - 1) {
      corner_reached_ = true;
      ++wave.rows_out;
    }
  }

  // One cycle of a tile's load: in column c the weight for row R - 1 enters first, c cycles after the load began, and
  // a register keeps its value until that first weight arrives: the previous tile may not have taken its own yet.
  void shift_weights(Wave& load) {
    std::vector<float>& plane = array_.double_buffered ? next_weight_ : weight_;
    const Index begin = std::max<Index>(0, load.age - rows_ + 1);
    for (Index r = std::min(rows_ - 1, load.age - begin); r > 0; --r) {
      const Index end = std::min(columns_, load.age - r + 1);
      float* above = &plane[at((r - 1) * columns_)];
      std::copy(above + begin, above + end, above + columns_ + begin);
    }
    const Index end = std::min(columns_, load.age + 1);
    for (Index c = begin; c < end; ++c) {
      const Index r = rows_ - 1 - (load.age - c);
      const bool inside = r < load.depth && c < load.width;
      plane[at(c)] = inside ? w_[at((load.first_k + r) * n_ + load.first_n + c)] : 0.0F;
    }
    if (++load.age == rows_) port_ = Port::ready;
  }

  SystolicArray array_;
  Index rows_, columns_, m_, k_, n_, tiles_;
  std::span<const float> x_, w_;
  std::vector<float> activation_;
  std::vector<double> sum_;
  std::vector<float> weight_, next_weight_;
  std::vector<bool> works_;  // PEs that multiplied in this cycle; empty unless frames are recorded
  std::deque<Wave> waves_, loads_;
  Port port_ = Port::idle;  // port of column 0; the other columns follow
  Index loaded_ = 0;
  Index started_ = 0;
  bool corner_reached_ = false;
  SystolicRun run_;
};

}  // namespace

std::int64_t tile_interval(const SystolicArray& array, std::int64_t m) {
  return array.double_buffered ? std::max(m, array.rows) : 2 * array.rows + array.columns + m - 2;
}

SystolicCycles systolic_cycles(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n) {
  const Index skew = array.rows + array.columns - 2;
  const Index interval = tile_interval(array, m);
  SystolicCycles cycles;
  cycles.tiles = ceil_div(k, array.rows) * ceil_div(n, array.columns);
  cycles.load = array.rows;
  cycles.drain = skew;
  cycles.stall = (cycles.tiles - 1) * (interval - m);
  // Rows enter in the first m cycles of every interval; fill counts those in the first `skew` cycles.
  const Index whole = skew / interval;
  const Index entering = cycles.tiles * m;
  cycles.fill = whole >= cycles.tiles ? entering : whole * m + std::min(skew % interval, m);
  cycles.steady = entering - cycles.fill;
  cycles.total = cycles.load + cycles.fill + cycles.steady + cycles.stall + cycles.drain;
  cycles.steady_cycles_per_tile = m;
  cycles.useful_macs = m * k * n;
  cycles.padded_macs = entering * array.rows * array.columns - cycles.useful_macs;
  derive_shares(array, cycles);
  return cycles;
}

double estimated_work(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n) {
  const double rows = static_cast<double>(array.rows);
  const double columns = static_cast<double>(array.columns);
  const double tiles = static_cast<double>(ceil_div(k, array.rows)) * static_cast<double>(ceil_div(n, array.columns));
  const double products = static_cast<double>(m) * rows * columns;
  const double weight_moves = rows * (rows + 1) / 2 * columns;
  // Bookkeeping per tile: each row is visited once per cycle in which the wavefront or the load is on it, and the
  // controller once per cycle. A visit costs about 20 products, measured with 1 x 1 and 4 x 4 arrays.
  constexpr double visit = 20;
  const double visits = (rows + 1) * (static_cast<double>(m) + columns) + rows * (rows + columns) / 2;
  return tiles * (products + weight_moves + visit * visits);
}

SystolicRun simulate_systolic(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n,
                              std::span<const float> x, std::span<const float> w) {
  return Simulation(array, m, k, n, x, w).finish();
}

std::vector<SystolicFrame> systolic_frames(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n,
                                           std::span<const float> x, std::span<const float> w) {
  return Simulation(array, m, k, n, x, w).frames();
}

std::vector<float> checked_operand(std::int64_t count, std::int64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<std::int64_t>(i) * 7 + seed) % 11 - 5);
  return values;
}

CheckedSystolicRun simulate_and_check(const SystolicArray& array, std::int64_t m, std::int64_t k, std::int64_t n) {
  const std::vector<float> x = checked_operand(m * k, checked_x_seed), w = checked_operand(k * n, checked_w_seed);
  CheckedSystolicRun out{simulate_systolic(array, m, k, n, x, w), 0.0};
  const auto depth = static_cast<std::size_t>(k), columns = static_cast<std::size_t>(n);
  std::vector<double> row(columns);
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t p = 0; p < depth; ++p)
      for (std::size_t j = 0; j < columns; ++j)
        row[j] += static_cast<double>(x[i * depth + p]) * static_cast<double>(w[p * columns + j]);
    for (std::size_t j = 0; j < columns; ++j)
      out.max_error = std::max(out.max_error, std::abs(row[j] - out.run.result[i * columns + j]));
  }
  return out;
}

}  // namespace assay::roofline
