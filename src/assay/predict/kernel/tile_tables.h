// Tables of tiles by shape.
#pragma once
#include <memory>
#include <vector>

#include "assay/predict/kernel/kernel_models.h"

namespace assay::kernel {

class TileTable;

/// Products of many layers, strategies and phases share them.
class TileTables {
 public:
  /// Nothing where products are not cut into tiles that a table could hold.
  std::shared_ptr<TileTable> of(const ProductRates& rates, const MatmulShape& shape);

 private:
  std::vector<std::shared_ptr<TileTable>> tables_;
};

}  // namespace assay::kernel
