#include "assay/training/pass_time.h"

#include <algorithm>

namespace assay::training {

double exposed_seconds(double background, double shared, double chain, const estimate::StepEffects& effects) {
  const double beside = std::max(0.0, background + shared - chain) + effects.contention * std::min(background, chain);
  return std::min(background, beside);
}

PassTime pass_time(const PassProfile& pass, std::span<const Traffic> weights, const StageLinks& links, bool overlap,
                   const estimate::StepEffects& effects) {
  PassTime time;
  time.compute = pass.estimate.value(), time.ideal_compute = pass.compute.value();
  time.ideal_memory = pass.memory.value(), time.recompute = pass.repeated.value();
  time.weight_gradients = pass.weight_gradients.value();
  time.flops = pass.flops.value(), time.repeated_flops = pass.repeated_flops.value();
  double background = 0.0;
  std::uint32_t background_links = 0;
  struct Waiting {
    std::uint32_t links;
    double seconds, alone;  ///< the second where nothing runs beside gradients of weights
  };
  std::array<Waiting, 2 * max_traffic> waited;
  std::size_t waits = 0;
  // Gradients of inputs take as long as those of weights, so that inputs that are gathered again have as much room as
  // sums that are scattered.
  double room_of_sums = pass.weight_gradients.value(), room_of_gathers = room_of_sums;
  // What software moves beside products and attention hides as far as these last.
  double room = pass.busy.value(), room_alone = room;
  const auto hide = [](double most, double& left) {
    const double hidden = std::min(most, left);
    left -= hidden;
    return hidden;
  };
  double tensor_alone = 0.0, context_alone = 0.0;
  const auto add = [&](const Traffic& traffic) {
    const network::CollectiveLine& line = links.lines[traffic.over][StageLinks::line_of(traffic.kind)];
    const double bytes = traffic.bytes / links.ways(traffic.divided), ideal = line.rate.value() * bytes;
    double seconds = links.forms[traffic.over][StageLinks::line_of(traffic.kind)].seconds(bytes, traffic.count);
    (traffic.once ? time.all_once : time.all_network) += std::max(ideal, traffic.count * line.floor.value());
    for (std::size_t r = 0; r < roles; ++r)
      if (traffic.over >> r & 1u) {
        (traffic.once ? time.ideal_once : time.ideal_network)[r] += ideal;
        break;
      }
    if (traffic.once) {
      (traffic.urgency == program::Urgency::ahead ? time.new_weights : time.gradients) += seconds;
      return;
    }
    if (traffic.urgency == program::Urgency::critical || !overlap) {
      const RoleSet over = traffic.urgency == program::Urgency::critical ? traffic.over : RoleSet(0);
      double alone = seconds;
      if (over & role_bit(Role::expert)) {
        time.expert += seconds;
      } else if (over & role_bit(Role::tensor)) {
        if (traffic.beside) {
          double& gap = traffic.kind == network::CollectiveKind::all_gather ? room_of_gathers : room_of_sums;
          const double hidden = std::min(seconds, gap);
          gap -= hidden;
          seconds -= hide((1.0 - effects.tensor_backward_exposed) * hidden, room);
        }
        seconds -= hide((1.0 - effects.tensor_exposed) * seconds, room);
        alone -= hide((1.0 - effects.tensor_exposed) * alone, room_alone);
        time.tensor += seconds, tensor_alone += alone;
      } else if (over & role_bit(Role::context)) {
        seconds -= hide((1.0 - effects.context_exposed) * seconds, room);
        alone -= hide((1.0 - effects.context_exposed) * alone, room_alone);
        time.context += seconds, context_alone += alone;
      } else {
        time.exposed += seconds;
      }
      waited[waits++] = {links.resources[traffic.over], seconds, alone};
    } else {
      background += seconds;
      background_links |= links.resources[traffic.over];
    }
  };
  for (const Traffic& traffic : pass.traffic) add(traffic);
  for (const Traffic& traffic : weights) add(traffic);
  const auto finish = [&](PassTime& of, double Waiting::*seconds) {
    // Power is what the chip draws on the average of many steps: while it moves bytes or waits, it cools.
    if (const double compute = of.compute; compute > 0.0) {
      const double idle = std::max(0.0, 1.0 - pass.busy.value() / of.chain());
      of.compute = std::max(compute - idle * pass.slowed.value(), std::min(compute, pass.started.value()));
      of.recompute *= of.compute / compute, of.weight_gradients *= of.compute / compute;
    }
    // Not behind collectives on the same links.
    double shared = 0.0;
    for (std::size_t i = 0; i < waits; ++i)
      if (waited[i].links & background_links) shared += waited[i].*seconds;
    of.exposed += exposed_seconds(background, shared, of.chain(), effects);
  };
  if (tensor_alone > time.tensor) {
    PassTime alone = time;
    alone.tensor = tensor_alone, alone.context = context_alone;
    finish(alone, &Waiting::alone);
    finish(time, &Waiting::seconds);
    time.beside_chain = alone.chain() - time.chain();
    time.beside = time.beside_chain + alone.exposed - time.exposed;
    time.beside_gradients = alone.weight_gradients - time.weight_gradients;
  } else {
    finish(time, &Waiting::seconds);
  }
  return time;
}

}  // namespace assay::training
