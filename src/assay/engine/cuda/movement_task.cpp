#include "assay/engine/cuda/movement_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "assay/base/index.h"
#include "assay/engine/cuda/host_exchange.h"
#include "assay/engine/cuda/task_builder.h"

namespace assay::engine {
namespace {

/// A dimension that one tensor splits by more axes than the other.
struct CutDimension {
  std::size_t dim = 0;
  std::vector<int> axes;
};

/// The only dimension that `finer` splits further than `coarser`; nothing if there are none or several.
std::optional<CutDimension> cut_of(const program::ProgramTensor& finer, const program::ProgramTensor& coarser) {
  std::optional<CutDimension> found;
  for (std::size_t d = 0; d < finer.rank; ++d) {
    const std::vector<int> all = finer.sharding.dims[d].axes(), head = coarser.sharding.dims[d].axes();
    if (all.size() <= head.size()) continue;
    if (found || !std::equal(head.begin(), head.end(), all.begin())) return std::nullopt;
    found = CutDimension{d, {all.begin() + std::ssize(head), all.end()}};
  }
  return found;
}

struct MovementTask {
  AssayCudaTask task{};   ///< the number of its group is still to be set
  std::vector<int> axes;  ///< of the mesh, in the order of the parts; none: a slice
};

class Movement {
 public:
  Movement(const StepPlace& place, const program::Step& step)
      : place_(place),
        step_(step),
        before_(place.program.tensor(step.in[0])),
        after_(place.program.tensor(step.out[0])) {}

  Result<MovementTask> run() const {
    if (step_.op == program::Op::slice) return slice();
    switch (step_.collective) {
      case program::Collective::all_reduce: {
        MovementTask made = of(assay_cuda_all_reduce, axes_of(step_.axes));
        made.task.sizes[0] = 1;
        made.task.sizes[1] = elements_of(before_);
        return made;
      }
      case program::Collective::all_gather:
        if (const auto cut = cut_of(before_, after_)) return one_dimension(assay_cuda_all_gather, *cut, before_);
        break;
      case program::Collective::reduce_scatter:
        if (const auto cut = cut_of(after_, before_)) return one_dimension(assay_cuda_reduce_scatter, *cut, after_);
        break;
      case program::Collective::all_to_all:
        return exchange();
      default:
        break;
    }
    return refused();
  }

 private:
  tl::unexpected<Error> refused() const {
    return fail(
        "--engine cuda",
        fmt::format("such a movement does not run between GPUs yet: {}", program::step_text(place_.program, step_)),
        cuda_remedy);
  }

  MovementTask of(int kernel, std::vector<int> axes) const {
    MovementTask made{empty_task(kernel), std::move(axes)};
    made.task.in[0] = step_.in[0];
    made.task.out[0] = step_.out[0];
    return made;
  }

  /// Elements of a device before a dimension, and from it on.
  std::int64_t outer(const program::ProgramTensor& tensor, std::size_t dim) const {
    std::int64_t all = 1;
    for (std::size_t d = 0; d < dim; ++d) all *= local_size(place_.program, tensor, d);
    return all;
  }
  std::int64_t inner(const program::ProgramTensor& tensor, std::size_t dim) const {
    return elements_of(tensor) / outer(tensor, dim);
  }

  Result<MovementTask> one_dimension(int kernel, const CutDimension& cut, const program::ProgramTensor& part) const {
    MovementTask made = of(kernel, cut.axes);
    made.task.sizes[0] = outer(part, cut.dim);
    made.task.sizes[1] = inner(part, cut.dim);
    return made;
  }

  Result<MovementTask> slice() const {
    const auto cut = cut_of(after_, before_);
    if (!cut) return refused();
    MovementTask made = of(assay_cuda_slice, {});
    made.task.sizes[0] = outer(after_, cut->dim);
    made.task.sizes[1] = inner(after_, cut->dim);
    made.task.sizes[2] = inner(before_, cut->dim) / inner(after_, cut->dim);
    made.task.sizes[3] = shard_index(place_.program.mesh, cut->axes,
                                     coordinates(place_.program.mesh, static_cast<std::int64_t>(place_.device)));
    return made;
  }

  Result<MovementTask> exchange() const {
    const auto cut = cut_of(after_, before_), joined = cut_of(before_, after_);
    if (!cut || !joined || cut->axes != joined->axes) return refused();
    MovementTask made = of(assay_cuda_all_to_all, cut->axes);
    std::int64_t devices = 1;
    for (const int axis : cut->axes) devices *= place_.program.mesh.size(axis);
    made.task.sizes[0] = outer(before_, cut->dim);
    made.task.sizes[1] = inner(before_, cut->dim) / devices;
    made.task.sizes[3] = outer(after_, joined->dim);
    made.task.sizes[4] = inner(after_, joined->dim) / devices;
    return made;
  }

  const StepPlace& place_;
  const program::Step& step_;
  const program::ProgramTensor &before_, &after_;
};

}  // namespace

Result<AssayCudaTask> Movements::task(const StepPlace& place, const program::Step& step) {
  ASSAY_TRY(made, Movement(place, step).run());
  if (made.axes.empty()) return made.task;
  made.task.sizes[2] = number_of(made.axes);
  const auto members = static_cast<int>(groups_.devices[at(made.task.sizes[2])].size());
  moved += exchanged_bytes(made.task.kernel, members, made.task.sizes[0] * made.task.sizes[1],
                           type_of(place.program.tensor(step.in[0])));
  stated += step.bytes;
  return made.task;
}

Result<void> Movements::prepare(const StepPlace& place) {
  for (const program::Step& step : place.program.steps) {
    if (!program::is_movement(step.op)) continue;
    ASSAY_TRY(made, Movement(place, step).run());
    if (!made.axes.empty()) number_of(made.axes);
  }
  return {};
}

Result<RingShift> Movements::shift(const StepPlace& place, const program::Step& step) {
  ASSAY_TRY(made, Movement(place, step).run());
  RingShift shift{empty_task(assay_cuda_shift)};
  const int group = number_of(made.axes);
  shift.task.sizes[0] = 1;
  shift.task.sizes[1] = made.task.sizes[0] * made.task.sizes[1];
  shift.task.sizes[2] = group;
  shift.mine = groups_.places[at(group)];
  shift.count = static_cast<int>(groups_.devices[at(group)].size());
  stated += step.bytes;
  return shift;
}

int Movements::number_of(const std::vector<int>& axes) {
  const auto [known, is_new] = numbers_.try_emplace(axes, static_cast<int>(groups_.devices.size()));
  if (!is_new) return known->second;
  const std::vector<std::size_t> all = devices_.group(device_, axes);
  std::vector<int>& ranks = groups_.devices.emplace_back();
  for (const std::size_t device : all) ranks.push_back(static_cast<int>(first_ + device));
  groups_.places.push_back(static_cast<int>(std::find(all.begin(), all.end(), device_) - all.begin()));
  return known->second;
}

}  // namespace assay::engine
