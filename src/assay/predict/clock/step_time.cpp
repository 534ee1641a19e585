#include "assay/predict/clock/step_time.h"

#include <algorithm>

#include "assay/base/index.h"
#include "assay/predict/collective/collective_models.h"

namespace assay::clock {

Seconds collective_time(const PricedOn& on, program::Collective kind, const collective::CollectiveGroup& group,
                        Bytes array) {
  const hardware::Chip& chip = on.cluster.chip;
  if (!on.collectives)
    return collective::collective_time(Plain{}, collective::uncalibrated_form(Plain{}, chip, kind, group), array);
  const auto& outside = chip.network.scale_out;
  const hardware::Fabric fabric = hardware::fabric_of(outside && outside->technology ? *outside->technology : "");
  return collective::collective_estimate(*on.collectives, kind, array, group, fabric);
}

Seconds step_time(const PricedOn& on, const collective::Placement& placement, const program::Program& program,
                  const program::Step& step) {
  if (program::facts(step.op).cost == program::CostClass::free) return Seconds(0);
  if (!program::is_collective(step.op)) return kernel::kernel_time(on.rates, program, step).estimate;
  return collective_time(on, step.collective, placement.group(step.axes), collective::array_bytes(program, step));
}

std::vector<Item> eager_items(const program::Program& program, const std::vector<Seconds>& times) {
  std::vector<Item> items;
  constexpr std::int32_t nobody = -1;
  std::vector<std::int32_t> maker(program.tensors.size(), nobody);  // the item that makes a tensor
  std::vector<char> is_there(program.tensors.size(), 0), started(program.steps.size(), 0);
  for (std::size_t id = 0; id < program.tensors.size(); ++id) is_there[id] = program.tensors[id].is_given ? 1 : 0;
  const auto add = [&](Item item) {
    items.push_back(std::move(item));
    return static_cast<std::int32_t>(items.size()) - 1;
  };
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const program::Step& step = program.steps[i];
    Item arrival;  // the rank has what the step reads
    for (const int id : step.in) {
      if (id < 0) continue;
      if (maker[at(id)] != nobody) arrival.after.push_back(maker[at(id)]);
      is_there[at(id)] = 1;
    }
    const std::int32_t arrived = add(std::move(arrival));
    for (std::size_t later = i; later < program.steps.size(); ++later) {
      const program::Step& moves = program.steps[later];
      if (!program::is_collective(moves.op) || started[later] || !is_there[at(moves.in[0])]) continue;
      started[later] = 1;
      maker[at(moves.out[0])] = add({Item::Kind::collective, network_lane, times[later], {arrived}});
    }
    if (program::is_collective(step.op)) continue;
    const std::int32_t made = add({Item::Kind::kernel, chip_lane, times[i]});
    for (const int id : step.out)
      if (id >= 0) {
        maker[at(id)] = made;
        is_there[at(id)] = 1;
      }
  }
  return items;
}

OverlapTimes on_cores(OverlapTimes ideal, double cores) {
  // Steps and the copies of what travels are both work of the cores.
  ideal.overlapped = std::max(ideal.overlapped, ideal.blocking / std::clamp(cores, 1.0, 2.0));
  ideal.hidden = ideal.blocking - ideal.overlapped;
  return ideal;
}

OverlapTimes overlap_times(const program::Program& program, const std::vector<Seconds>& times, double cores) {
  const Totals all = totals(eager_items(program, times));
  return on_cores({all.computation + all.communication, all.whole, all.communication, {}}, cores);
}

}  // namespace assay::clock
