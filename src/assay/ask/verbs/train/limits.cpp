#include "assay/ask/verbs/train/limits.h"

namespace assay::verbs::train {

report::Items limit_rows(const training::TrainingCost& cost) {
  report::Items rows;
  const std::vector<training::StepLimit> limits = training::step_limits(cost);
  for (const training::StepLimit& limit : limits) {
    if (limit.time <= Seconds(0)) continue;
    rows.emplace_back(
        report::Members{{"limit", limit.name}, {"time", limit.time}, {"distance", limits.front().time / limit.time}});
  }
  return rows;
}

report::Members threshold_members(const TrainQuery& query, const search::Candidate& best) {
  const training::LimitThresholds t =
      training::limit_thresholds(query.question, query.sequence, query.cluster, best.strategy, best.cost);
  report::Members out;
  const auto add = [&](const char* key, const auto& value) {
    if (value) out.emplace_back(key, *value);
  };
  add("compute_over_weights_traffic", t.compute_over_weights_traffic);
  add("microbatch_where_weights_traffic_limits", t.microbatch_where_weights_traffic_limits);
  if (t.reduces_gradients)
    out.emplace_back("batch_where_gradients_limit",
                     t.batch_where_gradients_limit ? report::Value(*t.batch_where_gradients_limit) : report::Value());
  add("compute_over_tensor_traffic", t.compute_over_tensor_traffic);
  add("largest_tensor_parallelism", t.largest_tensor_parallelism);
  add("compute_over_memory_traffic", t.compute_over_memory_traffic);
  out.emplace_back("memory_left", t.memory_left);
  return out;
}

}  // namespace assay::verbs::train
