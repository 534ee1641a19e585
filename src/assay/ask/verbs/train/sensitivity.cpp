#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include "assay/ask/draw/tornado.h"
#include "assay/ask/report/figures.h"
#include "assay/base/progress.h"
#include "assay/predict/search/training/caches.h"
#include "assay/predict/search/training/sensitivity.h"

namespace assay::verbs::train {
namespace {

search::SensitivityQuestion question_of(const Request& request, const Context& context, const TrainQuery& query,
                                        const search::Candidate& best) {
  const auto on_cluster = [&](const hardware::Cluster& cluster) -> Result<training::TrainingQuestion> {
    ASSAY_TRY(there, read_train_query(request, context, cluster));
    there.question.setup.model = &query.imported.model;
    return there.question;
  };
  // A plan without the margin competes with others without it.
  const Bytes budget = std::max(query.margin.budget, best.cost.memory.total());
  return {query.question, query.sequence, query.cluster, query.choices, best,
          query.compute,  budget,         on_cluster,    nullptr};
}

report::Members sensitivity_members(const search::Sensitivity& one) {
  report::Members row{{"rate", one.rate},
                      {"value", one.value},
                      {"elasticity", one.elasticity},
                      {"lower_elasticity", one.lower_elasticity},
                      {"step_time_if_doubled", one.if_doubled}};
  if (one.if_halved) row.emplace_back("step_time_if_halved", *one.if_halved);
  if (one.best_if_doubled) row.emplace_back("best_if_doubled", *one.best_if_doubled);
  if (one.fits_if_doubled) row.emplace_back("fits_if_doubled", *one.fits_if_doubled);
  if (one.break_even) {
    row.emplace_back("break_even", one.break_even->value);
    row.emplace_back("break_even_factor", one.break_even->factor);
    row.emplace_back("limiter_then", one.break_even->limiter);
  }
  if (one.takeover) {
    row.emplace_back("takeover", one.takeover->value);
    row.emplace_back("takeover_factor", one.takeover->factor);
    if (one.takeover->strategy) row.emplace_back("strategy_then", strategy_text(*one.takeover->strategy));
  }
  return row;
}

report::Members memory_sensitivity_members(const search::MemorySensitivity& memory) {
  report::Members out{{"capacity", memory.capacity},
                      {"strategy_fits_down_to", memory.needed},
                      {"factor", memory.needed / memory.capacity}};
  if (memory.smallest) {
    out.emplace_back("something_fits_down_to", memory.smallest->cost.memory.total());
    out.emplace_back("least_memory_strategy", strategy_text(memory.smallest->strategy));
  }
  if (memory.unlimited) {
    out.emplace_back("step_time_if_unlimited", memory.unlimited->cost.estimate);
    out.emplace_back("unlimited_needs", memory.unlimited->cost.memory.total());
    out.emplace_back("unlimited_strategy", strategy_text(memory.unlimited->strategy));
  }
  return out;
}

draw::Scene tornado_of(const TrainQuery& query, const search::Candidate& best,
                       const std::vector<search::Sensitivity>& rates) {
  const auto end = [](Seconds time) { return draw::TornadoEnd{time.value(), report::short_quantity(time)}; };
  draw::Tornado tornado{
      fmt::format("{} on {}: the step and the rates of the hardware", query.imported.model.id, query.cluster.text),
      "time of a step if a rate is halved or doubled; marks: with the best plan where it is doubled",
      end(best.cost.estimate),
      {}};
  for (const search::Sensitivity& one : rates)
    if (one.if_halved)
      tornado.rows.push_back({one.rate, end(*one.if_halved), end(one.if_doubled),
                              one.best_if_doubled && *one.best_if_doubled < one.if_doubled
                                  ? std::optional(end(*one.best_if_doubled))
                                  : std::nullopt});
  return draw::draw_tornado(std::move(tornado));
}

}  // namespace

Result<void> add_sensitivity(const Request& request, const Context& context, const SizedTraining& size,
                             report::Response& response) {
  report::Members& out = response.results;
  const TrainQuery& query = size.query;
  search::SensitivityQuestion question = question_of(request, context, query, *size.shown());
  std::optional<search::TrainingProfiles> own;
  question.profiles = size.caches ? &size.caches->profiles : &own.emplace(query.question, query.sequence);
  ASSAY_TRY(rates, search::training_sensitivities(question));
  out.emplace_back("sensitivity",
                   report::rows_of(rates, [&](const search::Sensitivity& one) { return sensitivity_members(one); }));
  const auto memory = search::memory_sensitivity(question);
  if (progress.is_stopped()) return {};
  if (!memory) return tl::unexpected<Error>(memory.error());
  out.emplace_back("memory_sensitivity", memory_sensitivity_members(*memory));
  question.profiles->forget_recomputation();
  if (request.picture()) response.picture = tornado_of(query, *size.shown(), rates);
  return {};
}

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
  if (t.reduces_gradients) out.emplace_back("batch_where_gradients_limit", t.batch_where_gradients_limit);
  add("compute_over_tensor_traffic", t.compute_over_tensor_traffic);
  add("largest_tensor_parallelism", t.largest_tensor_parallelism);
  add("compute_over_memory_traffic", t.compute_over_memory_traffic);
  out.emplace_back("memory_left", t.memory_left);
  return out;
}

}  // namespace assay::verbs::train
