#include "assay/predict/kernel/tile_table.h"

#include <algorithm>
#include <cmath>

#include "assay/predict/kernel/product_time.h"
#include "assay/predict/kernel/tiles.h"

namespace assay::kernel {
namespace {

constexpr double rounded_down = 1.0 - 1e-5;  ///< a bound in single precision stays below

}  // namespace

TileTable::TileTable(const ProductRates& rates, const MatmulShape& shape)
    : format_(rates.format),
      shape_(shape),
      cores_(rates.chip.cores),
      split_cost_(rates.fit.split_cost),
      partial_rate_(partial_sum_rate(rates.fit, rates.chip)) {
  static_assert(std::tuple_size_v<Sizes> == std::size(tile_sizes));
  const TileSteps steps(rates, shape);
  tiles_ = steps.tiles;
  step_ = steps.step;
  for (std::size_t i = 0; i < part_.size(); ++i) part_[i] = steps.part(shape.k, usual_splits[i]);
  for (std::size_t t = 0; t < tiles_; ++t) {
    columns_[t] = std::ceil(shape.n / tile_sizes[t].n);
    short_step_[t] = static_cast<float>(rounded_down * step_[t].value());
    short_columns_[t] = static_cast<float>(columns_[t]);
    over_height_[t] = static_cast<float>(unit_rows / tile_sizes[t].m);
  }
}

bool TileTable::is_of(const ProductRates& rates, const MatmulShape& shape) const {
  return format_ == rates.format && shape_.n == shape.n && shape_.k == shape.k &&
         shape_.operand_rows == shape.operand_rows;
}

Seconds TileTable::partial(double batch, double rows) const {
  return partial_sums(batch, rows, shape_.n) / partial_rate_;
}

TileTable::Best TileTable::best_split(const Rows& of, double rows) const {
  const Seconds part = partial(of.batch, rows);
  Best best{of.times[0], {}};
  Seconds least = best.tiles;
  for (std::size_t i = 1; i < of.times.size(); ++i) {
    const Seconds adding = split_cost_ + usual_splits[i] * part;
    if (!(of.times[i] + adding < least)) continue;
    least = of.times[i] + adding;
    best = {of.times[i], adding};
  }
  return best;
}

/// What tiles of each size take at least: one round, and all of them if cores were never idle.
void TileTable::bound(double batch, double units, Seconds least_adding, Sizes& least) const {
  const auto rows = static_cast<float>(units), of_core = static_cast<float>(batch / cores_),
             whole = static_cast<float>(part_[0]), shortest = static_cast<float>(part_.back()),
             adding = static_cast<float>(rounded_down * least_adding.value());
  const float slack = 1e-3f + 2e-7f * rows;  // of rounding; heights are small whole numbers
  for (std::size_t t = 0; t < least.size(); ++t) {
    const float all = whole * of_core * short_columns_[t] * std::ceil(rows * over_height_[t] - slack);
    const float in_one = short_step_[t] * (all > whole ? all : whole);
    const float in_parts = short_step_[t] * (all > shortest ? all : shortest) + adding;
    least[t] = in_one < in_parts ? in_one : in_parts;
  }
}

const TileTable::Rows& TileTable::found(double batch, double units) {
  if (units > static_cast<double>(last_row_) && rows_.size() < most_rows) {
    rows_.resize(most_rows);
    last_row_ = most_rows - 1;
  }
  Rows& rows = rows_[static_cast<std::size_t>(units) & last_row_];
  rows = {units, batch, false, {}};
  rows.times.fill(Seconds(HUGE_VAL));
  // The times serve all rows of the last unit, whose parts of k take between these times to add up.
  const Seconds least_part = partial(batch, (units - 1.0) * unit_rows), most_part = partial(batch, units * unit_rows);
  const Seconds least_adding = split_cost_ + usual_splits[1] * least_part;
  Seconds best(HUGE_VAL);
  const auto take = [&](std::size_t t) {
    const double tiles = batch * (std::ceil(units * unit_rows / tile_sizes[t].m) * columns_[t]), all = tiles / cores_;
    const auto time_of = [&](std::size_t i) {
      const Seconds time = waves_of(Plain{}, all * usual_splits[i]) * step_[t] * part_[i];
      return rows.times[i] = std::min(rows.times[i], time);
    };
    const auto keep = [&](Seconds total) {
      if (!(total < best)) return;
      best = total;
      guess_ = t;
    };
    keep(time_of(0));
    if (rounded_down * step_[t] * std::max(part_.back(), all * part_[0]) + rounded_down * least_adding >= best) return;
    for (std::size_t i = 1; i < part_.size(); ++i) keep(time_of(i) + (split_cost_ + usual_splits[i] * most_part));
  };
  const std::size_t guessed = guess_;
  take(guessed);
  Sizes least;
  bound(batch, units, least_adding, least);
  constexpr std::size_t few = 4;
  for (std::size_t first = 0; first < least.size(); first += few) {
    const float* of = &least[first];
    const float one = of[0] < of[1] ? of[0] : of[1], other = of[2] < of[3] ? of[2] : of[3];
    if (!((one < other ? one : other) < static_cast<float>(best.value()))) continue;
    for (std::size_t t = first; t < std::min(first + few, tiles_); ++t)
      if (least[t] < static_cast<float>(best.value()) && t != guessed) take(t);
  }
  for (std::size_t i = 1; i < part_.size(); ++i)
    rows.splits |= rows.times[i] + (split_cost_ + usual_splits[i] * least_part) < rows.times[0];
  return rows;
}

std::shared_ptr<TileTable> TileTables::of(const ProductRates& rates, const MatmulShape& shape) {
  const hardware::MatmulCalibration& fit = rates.fit;
  if (fit.fork || rates.chip.systolic || runs_grouped(fit, shape) || loads_narrowly(fit, shape)) return nullptr;
  for (const std::shared_ptr<TileTable>& known : tables_)
    if (known->is_of(rates, shape)) return known;
  return tables_.emplace_back(std::make_shared<TileTable>(rates, shape));
}

MatmulTime matmul_time(const ProductRates& rates, const MatmulShape& shape, const hardware::Regime& regime,
                       TileTable& table) {
  return with_memory(Plain{}, rates, shape, regime, tiled_time(table.best(shape.batch, shape.m)));
}

}  // namespace assay::kernel
