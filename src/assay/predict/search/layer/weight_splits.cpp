#include "assay/predict/search/layer/weight_splits.h"

#include <algorithm>
#include <utility>

namespace assay::search {

WeightSplits weight_splits(const program::Mesh& mesh, const ChooserProblem& problem, const ChooserHardware& hardware) {
  program::AxisSet all = 0;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (mesh.axes[i].size > 1) all |= program::axis_bit(static_cast<int>(i));
  WeightSplits out;
  std::vector<std::pair<program::AxisSet, program::AxisSet>> seen;  // the order of axes within a dimension is free
  for (const program::Sharding& sharding : all_shardings(mesh, 2)) {
    const program::AxisSet rows = sharding.dims[0].set(), columns = sharding.dims[1].set();
    if ((rows | columns) != all || columns == 0) continue;
    if (std::find(seen.begin(), seen.end(), std::pair(rows, columns)) != seen.end()) continue;
    seen.emplace_back(rows, columns);
    ChooserProblem fixed = problem;
    fixed.runners_up = 0;
    fixed.tensors[1].sharding = fixed.tensors[2].sharding = sharding;
    std::swap(fixed.tensors[2].sharding.dims[0], fixed.tensors[2].sharding.dims[1]);
    fixed.fixed.resize(3);
    fixed.fixed[1] = fixed.fixed[2] = true;
    LayerSearch found = choose_sharding(mesh, fixed, hardware);
    if (found.choices.empty()) continue;
    std::optional<LayerChoice>& best = rows == 0 ? out.one : out.two;
    if (!best || found.choices.front().times.lower < best->times.lower) best = std::move(found.choices.front());
  }
  return out;
}

}  // namespace assay::search
