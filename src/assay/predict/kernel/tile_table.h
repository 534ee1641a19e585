// Tiles of products that differ in nothing but their number and their rows, each choice found once.
#pragma once
#include <array>
#include <cmath>
#include <vector>

#include "assay/predict/kernel/tile_tables.h"

namespace assay::kernel {

/// Every tile has a multiple of 16 rows, so that nothing else about the rows matters. Changes no time.
class TileTable {
 public:
  /// Time of the tiles, and to add up parts of k; zero where k is not split.
  struct Best {
    Seconds tiles, adding;
  };

  TileTable(const ProductRates& rates, const MatmulShape& shape);
  /// The best tiles of `batch` products of so many rows.
  Best best(double batch, double rows) {
    const double units = std::ceil(rows / unit_rows);
    const Rows& last = rows_[static_cast<std::size_t>(units) & last_row_];
    const Rows& known = last.units == units && last.batch == batch ? last : found(batch, units);
    if (!known.splits) return {known.times[0], {}};
    return best_split(known, rows);
  }
  /// Whether products of this shape take these tiles.
  bool is_of(const ProductRates& rates, const MatmulShape& shape) const;

 private:
  static constexpr double unit_rows = 16;
  static constexpr std::size_t most_rows = 512;
  using Sizes = std::array<float, 36>;
  /// The times of `batch` products of so many rows, in units of 16.
  struct alignas(64) Rows {
    double units = -1, batch = -1;
    bool splits = false;             ///< parts of k may pay off
    std::array<Seconds, 4> times{};  ///< with k in 1, 2, 4 and 8 parts, before these are added up
  };
  const Rows& found(double batch, double units);
  void bound(double batch, double units, Seconds least_adding, Sizes& least) const;
  Best best_split(const Rows& of, double rows) const;
  Seconds partial(double batch, double rows) const;  ///< time to move the partial sums of a part of k

  Dtype format_;
  MatmulShape shape_;
  double cores_;
  Seconds split_cost_;
  BytesPerSecond partial_rate_;
  std::array<double, 4> part_{};      ///< elements of k that a core does, for each split
  std::size_t tiles_, guess_ = 0;     ///< sizes to choose among; the last best one
  std::array<Seconds, 36> step_{};    ///< of each, for one element of k
  std::array<double, 36> columns_{};  ///< tiles side by side
  // The same for bounds of all sizes, with 1 / units of 16 rows.
  Sizes short_step_{}, short_columns_{}, over_height_{};
  std::size_t last_row_ = 63;
  std::vector<Rows> rows_{last_row_ + 1};  ///< the last ones, by the units modulo their number, a power of two
};
/// The time of a product, equal to the last bit to the one without a table, which remembers its tiles.
MatmulTime matmul_time(const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime,
                       TileTable& table);

}  // namespace assay::kernel
