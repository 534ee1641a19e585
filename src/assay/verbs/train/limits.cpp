#include "assay/verbs/train/limits.h"

#include <algorithm>

namespace assay::verbs::train {

std::vector<StepLimit> step_limits(const training::TrainingCost& cost) {
  const double network = std::max(*std::max_element(cost.network.begin(), cost.network.end()), cost.copies);
  const training::StepParts& p = cost.parts;
  const double waiting = p.tensor + p.context + p.expert + p.weights + p.handover + p.gradients + p.overhead;
  std::vector<StepLimit> out{{"compute", cost.compute},
                             {"memory", cost.memory_time},
                             {"network", network},
                             {"bubble", cost.fill},
                             {"host", cost.host_time}};
  // Links that are busy for longer than anything else are the reason for the waiting.
  if (network < std::max(cost.compute, cost.memory_time)) out.push_back({"waiting", waiting});
  std::stable_sort(out.begin(), out.end(),
                   [](const StepLimit& a, const StepLimit& b) { return a.seconds > b.seconds; });
  return out;
}

std::string_view limiter_of(const training::TrainingCost& cost) { return step_limits(cost).front().name; }

report::Items limit_rows(const training::TrainingCost& cost) {
  report::Items rows;
  const std::vector<StepLimit> limits = step_limits(cost);
  for (const StepLimit& limit : limits) {
    if (limit.seconds <= 0.0) continue;
    rows.emplace_back(report::Members{
        {"limit", limit.name}, {"time", Seconds(limit.seconds)}, {"distance", limits.front().seconds / limit.seconds}});
  }
  return rows;
}

report::Members threshold_members(const TrainQuery& query, const search::Candidate& best) {
  const training::TrainingCost& cost = best.cost;
  const lower::Parallelism& p = best.strategy.parallelism;
  report::Members out;
  const auto of = [&](training::Role role) { return cost.network[static_cast<std::size_t>(role)]; };
  const training::Role busier =
      of(training::Role::replica) > of(training::Role::fsdp) ? training::Role::replica : training::Role::fsdp;
  if (const double data = of(busier); data > 0.0 || cost.copies > 0.0) {
    const double ended = cost.end_network[static_cast<std::size_t>(busier)], each = data - ended;
    const double end = std::max(ended, cost.copies);  // on other links
    out.emplace_back("compute_over_weights_traffic", cost.compute / (data + (end - ended)));
    // Weights travel once a microbatch however long it is; its arithmetic grows with it.
    if (each > 0.0) {
      const double micro_batch = static_cast<double>(best.strategy.micro_batch * query.sequence);
      out.emplace_back("microbatch_where_weights_traffic_limits", Tokens(micro_batch * each / cost.compute));
    }
    // Gradients are reduced once a step however many microbatches it has. Below one microbatch for each group, that one
    // shrinks, and the weights travel as before; where they limit each microbatch, no batch is large enough.
    if (end > 0.0) {
      const double one = 1.0 / training::microbatches(query.question, best.strategy);
      double share = each < cost.compute ? end / (cost.compute - each) : 2.0 * one;
      if (share < one) share = (each * one + end) / cost.compute;
      out.emplace_back("batch_where_gradients_limit", each < cost.compute || share <= one
                                                          ? report::Value(Tokens(query.batch_tokens * share))
                                                          : report::Value());
    }
  }
  if (const double tensor = of(training::Role::tensor); tensor > 0.0) {
    out.emplace_back("compute_over_tensor_traffic", cost.compute / tensor);
    // n devices share arithmetic by n and pass on (n - 1) / n of what lies between blocks.
    double ways = 1.0 + static_cast<double>(p.tensor - 1) * cost.compute / tensor;
    // Links as fast as these end with the node.
    if (const std::int64_t node = query.cluster.chips_per_node; !query.cluster.torus && p.tensor <= node)
      ways = std::min(ways, static_cast<double>(node));
    out.emplace_back("largest_tensor_parallelism", ways);
  }
  if (cost.memory_time > 0.0) out.emplace_back("compute_over_memory_traffic", cost.compute / cost.memory_time);
  out.emplace_back("memory_left", Bytes(query.cluster.chip.hbm().capacity.value.value() - cost.memory.total()));
  return out;
}

}  // namespace assay::verbs::train
