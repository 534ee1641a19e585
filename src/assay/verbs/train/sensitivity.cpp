#include "assay/verbs/train/sensitivity.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "assay/base/text.h"
#include "assay/search/threshold.h"
#include "assay/verbs/train/limits.h"
#include "assay/verbs/train/list.h"

namespace assay::verbs::train {
namespace {

constexpr double small_step = 0.01;     // of the logarithm, for derivatives
constexpr double limiter_reach = 64.0;  // factors up to which a rate is varied
constexpr double search_reach = 4.0;
constexpr double limiter_precision = 1e-3, search_precision = 0.02;

/// One number of the hardware that can be scaled.
struct Rate {
  std::string name;
  AnyQuantity value;
  std::function<void(hardware::Cluster&, double)> scale;
  bool changes_kernels = false;  ///< how long the steps of one chip take, too
  std::function<void(training::TrainingQuestion&, double)> scale_calibrated =
      {};  ///< what calibrations say of the same
};

void scale_level(hardware::Level& level, double factor) {
  level.child_bandwidth = factor * level.child_bandwidth;
  level.chip_bandwidth = factor * level.chip_bandwidth;
}

void scale_latency(training::TrainingQuestion& question, double factor) {
  if (!question.collectives) return;
  hardware::CollectiveCalibration& c = *question.collectives;
  for (const auto curve : hardware::collective_curves)
    (c.*curve).latency = factor * (c.*curve).latency, (c.*curve).member = factor * (c.*curve).member;
  for (auto* curve : {&c.infiniband, &c.efa, &c.tcpxo})
    if (*curve) (*curve)->latency = factor * (*curve)->latency;
}

std::vector<Rate> rates_of(const TrainQuery& query, const training::Strategy& strategy) {
  const hardware::Cluster& cluster = query.cluster;
  const hardware::Chip& chip = cluster.chip;
  std::vector<Rate> out;
  if (const auto& peak = chip.peak[static_cast<std::size_t>(query.compute)])
    out.push_back({"matrix rate", peak->value,
                   [](hardware::Cluster& c, double f) {
                     for (auto& one : c.chip.peak)
                       if (one) one->value = f * one->value;
                   },
                   true});
  if (const auto& hbm = chip.hbm().bandwidth)
    out.push_back({"memory bandwidth", hbm->value,
                   [](hardware::Cluster& c, double f) {
                     c.chip.memory.front().bandwidth->value = f * c.chip.hbm().bandwidth->value;
                   },
                   true});
  if (strategy.offload != training::Offload::none)
    out.push_back({"host link bandwidth", chip.host.pcie.value,
                   [](hardware::Cluster& c, double f) { c.chip.host.pcie.value = f * c.chip.host.pcie.value; }});
  if (strategy.offload != training::Offload::none && chip.host.memory_bandwidth)
    out.push_back({"host memory bandwidth", chip.host.memory_bandwidth->value, [](hardware::Cluster& c, double f) {
                     auto& rate = c.chip.host.memory_bandwidth->value;
                     rate = f * rate;
                   }});
  if (cluster.chips() == 1) return out;
  if (cluster.torus && chip.network.scale_up)
    out.push_back({"link bandwidth", chip.network.scale_up->link_bandwidth.value, [](hardware::Cluster& c, double f) {
                     auto& link = c.chip.network.scale_up->link_bandwidth.value;
                     link = f * link;
                   }});
  for (std::size_t i = 0; i < cluster.levels.size(); ++i)
    out.push_back({fmt::format("{} bandwidth", cluster.levels[i].name), cluster.levels[i].chip_bandwidth,
                   [i](hardware::Cluster& c, double f) { scale_level(c.levels[i], f); }});
  const bool hops = chip.network.scale_up && chip.network.scale_up->hop_latency;
  if (hops || query.question.collectives)
    out.push_back({"latency",
                   hops ? AnyQuantity(chip.network.scale_up->hop_latency->value)
                        : AnyQuantity(query.question.collectives->all_reduce.latency),
                   [](hardware::Cluster& c, double f) {
                     auto& up = c.chip.network.scale_up;
                     if (up && up->hop_latency) up->hop_latency->value = f * up->hop_latency->value;
                   },
                   false, &scale_latency});
  return out;
}

/// The model of a step with one rate changed.
class Varied {
 public:
  Varied(const Request& request, const Context& context, const TrainQuery& query, const search::Candidate& best)
      : request_(request), context_(context), query_(query), best_(best) {}

  Result<training::TrainingCost> cost(const Rate& rate, double factor) const {
    ASSAY_TRY(there, query_at(rate, factor));
    return training::price_strategy(there->question, there->sequence, there->cluster, best_.strategy);
  }

  /// The fastest strategy that beats this one there; nothing where none does.
  Result<std::optional<search::Candidate>> better(const Rate& rate, double factor) const {
    ASSAY_TRY(there, query_at(rate, factor));
    ASSAY_TRY(here, training::price_strategy(there->question, there->sequence, there->cluster, best_.strategy));
    constexpr double noticeable = 1.0 - 1e-9;
    ASSAY_TRY(found, search::search_training(
                         there->question, there->sequence, there->cluster, there->choices,
                         {there->cluster.chip.hbm().capacity.value.value(), 1, true, noticeable * here.estimate}));
    if (found.best.empty()) return std::optional<search::Candidate>();
    return std::optional<search::Candidate>(found.best.front());
  }

 private:
  Result<std::unique_ptr<TrainQuery>> query_at(const Rate& rate, double factor) const {
    hardware::Cluster cluster = query_.cluster;
    rate.scale(cluster, factor);
    auto out = std::make_unique<TrainQuery>(query_);
    if (rate.changes_kernels) {
      ASSAY_TRY(read, read_train_query(request_, context_, cluster));
      *out = std::move(read);
    }
    out->cluster = std::move(cluster);
    out->question.host = host_link(out->cluster);
    if (rate.scale_calibrated) rate.scale_calibrated(out->question, factor);
    out->bind();
    return out;
  }

  const Request& request_;
  const Context& context_;
  const TrainQuery& query_;
  const search::Candidate& best_;
};

/// d ln(after / before) / d ln(ratio).
double elasticity(double before, double after, double log_ratio) { return std::log(after / before) / log_ratio; }

AnyQuantity scaled(AnyQuantity value, double factor) {
  value.value *= factor;
  return value;
}

Result<report::Members> rate_row(const Varied& varied, const Rate& rate, const search::Candidate& best) {
  ASSAY_TRY(below, varied.cost(rate, std::exp(-small_step)));
  ASSAY_TRY(above, varied.cost(rate, std::exp(small_step)));
  ASSAY_TRY(doubled, varied.cost(rate, 2.0));
  ASSAY_TRY(other, varied.better(rate, 2.0));
  report::Members row{{"rate", rate.name},
                      {"value", rate.value},
                      {"elasticity", elasticity(below.estimate, above.estimate, 2.0 * small_step)},
                      {"lower_elasticity", elasticity(below.lower, above.lower, 2.0 * small_step)},
                      {"step_time_if_doubled", Seconds(doubled.estimate)},
                      {"best_if_doubled", Seconds(other ? other->cost.estimate : doubled.estimate)}};
  std::optional<Error> failed;
  const std::string_view now = training::limiter_of(best.cost);
  const auto limiter_at = [&](double factor) {
    const auto cost = varied.cost(rate, factor);
    if (!cost) failed = cost.error();
    return cost ? training::limiter_of(*cost) : now;
  };
  const auto turns =
      search::nearest_change([&](double f) { return limiter_at(f) != now; }, limiter_reach, limiter_precision);
  if (turns) {
    row.emplace_back("break_even", scaled(rate.value, *turns));
    row.emplace_back("break_even_factor", *turns);
    row.emplace_back("limiter_then", limiter_at(*turns));
  }
  std::optional<search::Candidate> winner;
  const auto beaten = [&](double factor) {
    const auto found = varied.better(rate, factor);
    if (!found) failed = found.error();
    if (found && *found) winner = **found;
    return found && found->has_value();
  };
  if (const auto takes_over = search::nearest_change(beaten, search_reach, search_precision)) {
    row.emplace_back("takeover", scaled(rate.value, *takes_over));
    row.emplace_back("takeover_factor", *takes_over);
    if (beaten(*takes_over)) row.emplace_back("strategy_then", strategy_text(winner->strategy));
  }
  if (failed) return tl::unexpected<Error>(*failed);
  return row;
}

/// Twice as many sequences, or sequences twice as long: what the same strategy takes then, whether it fits, and what
/// the best one takes.
std::optional<report::Members> size_row(const TrainQuery& query, const search::Candidate& best, std::string_view name,
                                        AnyQuantity value, double sequences, std::int64_t length) {
  training::TrainingQuestion question = query.question;
  question.sequences *= sequences;
  const auto cost = training::price_strategy(question, query.sequence * length, query.cluster, best.strategy);
  if (!cost) return std::nullopt;
  const double log_ratio = std::log(2.0), capacity = query.cluster.chip.hbm().capacity.value.value();
  report::Members row{{"rate", name},
                      {"value", value},
                      {"elasticity", elasticity(best.cost.estimate, cost->estimate, log_ratio)},
                      {"lower_elasticity", elasticity(best.cost.lower, cost->lower, log_ratio)},
                      {"step_time_if_doubled", Seconds(cost->estimate)}};
  const auto found =
      search::search_training(question, query.sequence * length, query.cluster, query.choices, {capacity, 1});
  if (found && !found->best.empty()) row.emplace_back("best_if_doubled", Seconds(found->best.front().cost.estimate));
  row.emplace_back("fits_if_doubled", cost->memory.total() <= capacity);
  return row;
}

/// The batch nearest to this one, a whole number of microbatches, at which the limiter is another.
void add_batch_break_even(const TrainQuery& query, const search::Candidate& best, report::Members& row) {
  const std::string_view now = training::limiter_of(best.cost);
  const double unit = query.question.sequences / training::microbatches(query.question, best.strategy);
  const auto batch_at = [&](double factor) {
    return std::max(1.0, std::round(factor * query.question.sequences / unit)) * unit;
  };
  const auto limiter_at = [&](double factor) {
    training::TrainingQuestion question = query.question;
    question.sequences = batch_at(factor);
    const auto cost = training::price_strategy(question, query.sequence, query.cluster, best.strategy);
    return cost ? training::limiter_of(*cost) : now;
  };
  const auto turns =
      search::nearest_change([&](double f) { return limiter_at(f) != now; }, limiter_reach, limiter_precision);
  if (!turns) return;
  const double sequences = batch_at(*turns);
  row.emplace_back("break_even", Tokens(sequences * static_cast<double>(query.sequence)));
  row.emplace_back("break_even_factor", sequences / query.question.sequences);
  row.emplace_back("limiter_then", limiter_at(*turns));
}

}  // namespace

Result<report::Items> sensitivity_rows(const Request& request, const Context& context, const TrainQuery& query,
                                       const search::Candidate& best) {
  const Varied varied(request, context, query, best);
  report::Items rows;
  for (const Rate& rate : rates_of(query, best.strategy)) {
    ASSAY_TRY(row, rate_row(varied, rate, best));
    rows.emplace_back(row);
  }
  if (auto row = size_row(query, best, "batch", Tokens(query.batch_tokens), 2.0, 1)) {
    add_batch_break_even(query, best, *row);
    rows.emplace_back(std::move(*row));
  }
  const model::Transformer& model = query.imported.model;
  const bool can_grow = model.learned_positions == 0 || 2 * query.sequence <= model.max_context;
  if (can_grow)
    if (auto row = size_row(query, best, "sequence length", Tokens(static_cast<double>(query.sequence)), 1.0, 2))
      rows.emplace_back(std::move(*row));
  return rows;
}

Result<report::Members> capacity_members(const TrainQuery& query, const search::Candidate& best) {
  const Bytes capacity = query.cluster.chip.hbm().capacity.value;
  const auto search = [&](double bytes) {
    return search::search_training(query.question, query.sequence, query.cluster, query.choices, {bytes, 1});
  };
  ASSAY_TRY(least, search(0.0));
  ASSAY_TRY(unlimited, search(std::numeric_limits<double>::infinity()));
  report::Members out{{"capacity", capacity},
                      {"strategy_fits_down_to", Bytes(best.cost.memory.total())},
                      {"factor", best.cost.memory.total() / capacity.value()}};
  if (least.closest) {
    out.emplace_back("something_fits_down_to", Bytes(least.closest->cost.memory.total()));
    out.emplace_back("least_memory_strategy", strategy_text(least.closest->strategy));
  }
  if (!unlimited.best.empty()) {
    const search::Candidate& free = unlimited.best.front();
    out.emplace_back("step_time_if_unlimited", Seconds(free.cost.estimate));
    out.emplace_back("unlimited_needs", Bytes(free.cost.memory.total()));
    out.emplace_back("unlimited_strategy", strategy_text(free.strategy));
  }
  return out;
}

}  // namespace assay::verbs::train
