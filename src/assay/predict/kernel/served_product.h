// A product of a serving step that is priced at many batches: what does not depend on its size is found once.
#pragma once
#include <array>
#include <optional>

#include "assay/predict/kernel/grouped_tiles.h"
#include "assay/predict/kernel/price.h"
#include "assay/predict/kernel/product_time.h"
#include "assay/predict/kernel/tile_table.h"

namespace assay::kernel {

/// A product among the other kernels of a step, of which `load` times the mean work is on the fullest expert.
template <class N>
NumberOf<N, Seconds> product_in_step(const NumberOf<N, Seconds>& starts, const NumberOf<N, double>& slower,
                                     const NumberOf<N, double>& load, const NumberOf<N, Seconds>& alone) {
  return starts + slower * load * alone;
}

/// Of a product that is cut into tiles, those of a table or of a kernel over experts. Refers to what its rates refer
/// to, and to the table.
class ServedProduct {
 public:
  /// `tiles`: nothing for a kernel over experts.
  ServedProduct(const ServingKernels& kernels, const Kernel& kernel, TileTable* tiles);
  /// What price() gives `batch` such products of so many rows, whose operands and results pass through memory in `full`
  /// at its full rate.
  Seconds operator()(double batch, double rows, double load, Seconds full) const {
    return product_in_step<Plain>(
        starts_, slower_, load,
        with_memory<Plain>(Plain{}, false, {Plain{}, rates_, regime_, full}, tiled(batch, rows), slowed_, starts_alone_)
            .total);
  }

 private:
  TiledTime<Plain> tiled(double batch, double rows) const {
    if (tiles_) return tiled_time(tiles_->best(batch, rows));
    MatmulShape shape = shape_;
    shape.batch = batch;
    shape.m = rows;
    const GroupedTiles<Plain> tiles(Plain{}, shape, (*grouped_)[is_grouped_tile_small(rows, shape.n) ? 1 : 0]);
    return {tiles.time, {}, tiles.busy};
  }

  ProductRates rates_;
  hardware::Regime regime_;
  MatmulShape shape_;
  Throttle<Plain> slowed_;
  Seconds starts_, starts_alone_;
  double slower_;
  TileTable* tiles_;
  std::optional<std::array<GroupedTile<Plain>, 2>> grouped_ = {};  ///< a large one and a small one
};

}  // namespace assay::kernel
