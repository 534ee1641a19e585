// Moves a tensor from one sharding to another, the way that the planner finds cheapest.
#include "assay/program/lower/builder.h"
#include "assay/program/plan/routes.h"

namespace assay::lower {

int Builder::moved(int from, const program::Sharding& target, program::Urgency urgency, std::string_view name) {
  const program::ProgramTensor& tensor = program_.tensor(from);
  const program::AxisSet stays = tensor.sharding.unreduced & target.unreduced;
  plan::ShardingChange change;
  change.from.unreduced = tensor.sharding.unreduced & ~stays;
  struct Changed {
    std::size_t dim;
    program::AxisList outer;  ///< axes that stay
  };
  std::array<Changed, program::max_tensor_rank> changed;
  for (std::size_t i = 0; i < tensor.rank; ++i) {
    const program::AxisList here = tensor.sharding.dims[i], there = target.dims[i];
    if (here == there) continue;
    const program::AxisList outer = common_prefix(here, there);
    changed[change.rank] = {i, outer};
    change.from.dims[change.rank] = remaining(here, outer.set());
    change.to.dims[change.rank++] = remaining(there, outer.set());
  }
  thread_local plan::Routes routes;  // a search lowers the same few movements for every strategy
  int current = from;
  for (const plan::RouteMove& move : routes.find(change)) {
    const Bytes before = bytes(current);
    const int next = copy_of(current, name);
    program::ProgramTensor& made = program_.tensors[static_cast<std::size_t>(next)];
    for (std::size_t i = 0; i < change.rank; ++i)
      made.sharding.dims[changed[i].dim] = joined(changed[i].outer, move.after.dims[i]);
    made.sharding.unreduced = stays | move.after.unreduced;
    made.elements = program::local_elements(program_, made);
    made.producer = static_cast<std::int16_t>(program_.steps.size());
    program::Step& step = program_.steps.emplace_back(program::movement(move.kind, move.axes, current, next));
    step.urgency = urgency;
    step.bytes = program::received_bytes(step, program_.ways(move.axes), before);
    current = next;
  }
  return current;
}

}  // namespace assay::lower
