#include "assay/predict/training/limits.h"

#include <algorithm>
#include <utility>

#include "assay/model/accounting.h"

namespace assay::training {
namespace {

Seconds network_time(const TrainingCost& cost, Role role) { return cost.network[static_cast<std::size_t>(role)]; }

/// Traffic of weights and gradients against arithmetic.
void set_weights_thresholds(const TrainingQuestion& question, std::int64_t sequence, const Strategy& strategy,
                            const TrainingCost& cost, LimitThresholds& out) {
  const Role busier = network_time(cost, Role::data) > network_time(cost, Role::fsdp) ? Role::data : Role::fsdp;
  const Seconds data = network_time(cost, busier);
  if (!(data > Seconds() || cost.copies > Seconds())) return;
  const Seconds end_of_axis = cost.end_network[static_cast<std::size_t>(busier)];
  const Seconds every_microbatch = data - end_of_axis;
  const Seconds end = std::max(end_of_axis, cost.copies);  // copies of the model are summed on other links
  out.compute_over_weights_traffic = cost.compute / (data + (end - end_of_axis));
  // Weights travel once per microbatch whatever its size; its arithmetic grows with it.
  if (every_microbatch > Seconds()) {
    const auto tokens = static_cast<double>(strategy.micro_batch * sequence);
    out.microbatch_where_weights_traffic_limits = Tokens(tokens * every_microbatch / cost.compute);
  }
  // Gradients are reduced once a step, whatever the number of microbatches. Below one microbatch per group, the
  // microbatch shrinks but its weight traffic does not; if that traffic limits every microbatch, no batch is large
  // enough.
  out.reduces_gradients = end > Seconds();
  if (!out.reduces_gradients) return;
  const double one = 1.0 / microbatches(question, strategy);
  double share = every_microbatch < cost.compute ? end / (cost.compute - every_microbatch) : 2.0 * one;
  if (share < one) share = (every_microbatch * one + end) / cost.compute;
  const double batch = question.sequences * static_cast<double>(sequence);
  if (every_microbatch < cost.compute || share <= one) out.batch_where_gradients_limit = Tokens(batch * share);
}

}  // namespace

std::vector<StepLimit> step_limits(const TrainingCost& cost) {
  const Seconds network = std::max(*std::max_element(cost.network.begin(), cost.network.end()), cost.copies);
  const StepParts& p = cost.parts;
  const Seconds waiting = p.tensor + p.context + p.expert + p.weights + p.handover + p.gradients + p.overhead;
  std::vector<StepLimit> out{{"compute", cost.compute},
                             {"memory", cost.memory_time},
                             {"network", network},
                             {"bubble", cost.fill},
                             {"host", cost.host_time}};
  // If links are the busiest resource, they cause the waiting.
  if (network < std::max(cost.compute, cost.memory_time)) out.push_back({"waiting", waiting});
  std::stable_sort(out.begin(), out.end(), [](const StepLimit& a, const StepLimit& b) { return a.time > b.time; });
  return out;
}

std::string_view limiter_of(const TrainingCost& cost) { return step_limits(cost).front().name; }

LimitThresholds limit_thresholds(const TrainingQuestion& question, std::int64_t sequence,
                                 const hardware::Cluster& cluster, const Strategy& strategy, const TrainingCost& cost) {
  LimitThresholds out;
  set_weights_thresholds(question, sequence, strategy, cost, out);
  if (const Seconds tensor = network_time(cost, Role::tensor); tensor > Seconds()) {
    out.compute_over_tensor_traffic = cost.compute / tensor;
    // n devices divide arithmetic by n, and each sends (n - 1) / n of the activations between blocks.
    const std::int64_t now = strategy.parallelism.tensor;
    double ways = 1.0 + static_cast<double>(now - 1) * cost.compute / tensor;
    // Links of this speed end with the node.
    if (const std::int64_t node = cluster.chips_per_node; !cluster.torus && now <= node)
      ways = std::min(ways, static_cast<double>(node));
    out.largest_tensor_parallelism = ways;
  }
  if (cost.memory_time > Seconds()) out.compute_over_memory_traffic = cost.compute / cost.memory_time;
  out.memory_left = cluster.chip.hbm().capacity.value - cost.memory.total();
  return out;
}

Flops model_flops_per_sequence(const TrainingQuestion& question, std::int64_t sequence) {
  return model::training_flops(*question.setup.model, sequence, question.setup.source_of(sequence));
}

Flops model_flops_per_chip(const TrainingQuestion& question, std::int64_t sequence) {
  return question.sequences / question.chips * model_flops_per_sequence(question, sequence);
}

Dtype utilisation_format(const hardware::Chip& chip, Dtype products, Dtype others) {
  const auto peak = hardware::peak_rate(chip, products, "chip"), other = hardware::peak_rate(chip, others, "chip");
  return peak && other && other->value > peak->value ? others : products;
}

Utilisation utilisation(const TrainingQuestion& question, std::int64_t sequence, const TrainingCost& cost,
                        FlopsPerSecond peak) {
  Utilisation out;
  out.useful = model_flops_per_chip(question, sequence) / cost.estimate;
  out.mfu = out.useful / peak;
  out.hfu = cost.executed_flops / cost.estimate / peak;
  out.rate = Tokens(question.sequences * static_cast<double>(sequence)) / cost.estimate;
  out.chip_rate = out.rate / question.chips;
  return out;
}

SlowerPart slowest_difference(const TrainingCost& best, const TrainingCost& other) {
  const StepParts &a = best.parts, &b = other.parts;
  const Seconds uneven = other.uneven, best_uneven = best.uneven;
  const std::pair<std::string_view, Seconds> differences[] = {
      {"recomputation", b.recompute - a.recompute},
      {"less efficient kernels", (b.compute - b.recompute - uneven) - (a.compute - a.recompute - best_uneven)},
      {"uneven stages", uneven - best_uneven},
      {"tensor collectives", b.tensor - a.tensor},
      {"context collectives", b.context - a.context},
      {"expert collectives", b.expert - a.expert},
      {"exposed weight traffic", b.weights - a.weights},
      {"sends between stages", b.handover - a.handover},
      {"pipeline bubble", b.bubble - a.bubble},
      {"exposed gradient reduction", b.gradients - a.gradients},
      {"optimizer update", b.update - a.update},
      {"exposed host copies", b.host - a.host}};
  const auto worst = std::max_element(std::begin(differences), std::end(differences),
                                      [](const auto& x, const auto& y) { return x.second < y.second; });
  return {worst->first, worst->second};
}

}  // namespace assay::training
