#include "assay/predict/search/training/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "assay/base/parallel.h"
#include "assay/base/progress.h"
#include "assay/predict/search/threshold.h"
#include "assay/predict/search/training/profiles.h"
#include "assay/predict/training/limits.h"

namespace assay::search {
namespace {

constexpr double small_step = 0.01;     // of the logarithm, for derivatives
constexpr double limiter_reach = 64.0;  // factors up to which a rate is varied
constexpr double search_reach = 4.0;
constexpr double limiter_precision = 1e-3, search_precision = 0.02;

/// One number of the hardware that can be scaled.
struct HardwareRate {
  std::string name;
  AnyQuantity value;
  std::function<void(hardware::Cluster&, double)> scale;
  bool changes_kernels = false;  ///< kernels of one chip change their times, too
  std::function<void(training::TrainingQuestion&, double)> scale_calibrated =
      {};                ///< scales the same rate in calibrations
  bool is_time = false;  ///< a larger value makes steps longer, not shorter
};

void scale_level(hardware::Level& level, double factor) {
  level.child_bandwidth = factor * level.child_bandwidth;
  level.chip_bandwidth = factor * level.chip_bandwidth;
}

void scale_latency(training::TrainingQuestion& question, double factor) {
  if (!question.collectives) return;
  hardware::CollectiveCalibration& c = *question.collectives;
  for (hardware::CollectiveCurve* curve : {&c.all_gather, &c.reduce_scatter, &c.all_reduce, &c.all_to_all}) {
    curve->latency = factor * curve->latency;
    curve->member = factor * curve->member;
  }
  for (auto* curve : {&c.infiniband, &c.efa, &c.tcpxo})
    if (*curve) (*curve)->latency = factor * (*curve)->latency;
}

void add_chip_rates(const SensitivityQuestion& in, std::vector<HardwareRate>& out) {
  const hardware::Chip& chip = in.cluster.chip;
  if (const auto& peak = chip.peak[static_cast<std::size_t>(in.compute)])
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
  if (in.best.strategy.offload == training::Offload::none) return;
  out.push_back({"host link bandwidth", chip.host.pcie.value,
                 [](hardware::Cluster& c, double f) { c.chip.host.pcie.value = f * c.chip.host.pcie.value; }});
  if (chip.host.memory_bandwidth)
    out.push_back({"host memory bandwidth", chip.host.memory_bandwidth->value, [](hardware::Cluster& c, double f) {
                     auto& rate = c.chip.host.memory_bandwidth->value;
                     rate = f * rate;
                   }});
}

void add_network_rates(const SensitivityQuestion& in, std::vector<HardwareRate>& out) {
  const hardware::Cluster& cluster = in.cluster;
  const auto& up = cluster.chip.network.scale_up;
  if (cluster.torus && up)
    out.push_back({"link bandwidth", up->link_bandwidth.value, [](hardware::Cluster& c, double f) {
                     auto& link = c.chip.network.scale_up->link_bandwidth.value;
                     link = f * link;
                   }});
  for (std::size_t i = 0; i < cluster.levels.size(); ++i)
    out.push_back({fmt::format("{} bandwidth", cluster.levels[i].name), cluster.levels[i].chip_bandwidth,
                   [i](hardware::Cluster& c, double f) { scale_level(c.levels[i], f); }});
  const bool hops = up && up->hop_latency;
  if (hops || in.question.collectives)
    out.push_back(
        {"latency",
         hops ? AnyQuantity(up->hop_latency->value) : AnyQuantity(in.question.collectives->all_reduce.latency),
         [](hardware::Cluster& c, double f) {
           auto& network = c.chip.network.scale_up;
           if (network && network->hop_latency) network->hop_latency->value = f * network->hop_latency->value;
         },
         false, &scale_latency, true});
}

std::vector<HardwareRate> hardware_rates(const SensitivityQuestion& in) {
  std::vector<HardwareRate> out;
  add_chip_rates(in, out);
  if (in.cluster.chips() > 1) add_network_rates(in, out);
  return out;
}

/// The question with one rate changed.
struct VariedQuestion {
  hardware::Cluster cluster;
  training::TrainingQuestion question;
};
Result<VariedQuestion> varied(const SensitivityQuestion& in, const HardwareRate& rate, double factor) {
  VariedQuestion out{in.cluster, in.question};
  rate.scale(out.cluster, factor);
  if (rate.changes_kernels) {
    ASSAY_TRY(question, in.on_cluster(out.cluster));
    out.question = std::move(question);
  }
  out.question.host = training::host_link(out.cluster);
  if (rate.scale_calibrated) rate.scale_calibrated(out.question, factor);
  return out;
}

Result<training::TrainingCost> cost_at(const SensitivityQuestion& in, const HardwareRate& rate, double factor) {
  ASSAY_TRY(there, varied(in, rate, factor));
  return training::price_strategy(there.question, in.sequence, there.cluster, in.best.strategy);
}

/// Slightly more than `seconds`: a search that ends there still finds what takes as long.
Seconds just_over(Seconds step) { return (1.0 + 1e-9) * step; }

using Floors = std::vector<Seconds>;  ///< see SearchLimits

/// Strategies that beat the best one where a rate differs. Pricing one of them again is far cheaper than a search.
class Rivals {
 public:
  /// `profiles` are of the question as it is, and `floors` lower bounds on the steps of all its work.
  Rivals(const SensitivityQuestion& in, const HardwareRate& rate, TrainingProfiles& profiles, const Floors& floors)
      : in_(in), rate_(rate), profiles_(profiles), floors_{{1.0, floors}} {}

  /// The fastest strategy that beats the best one at `factor`; nothing where none does.
  Result<std::optional<Candidate>> fastest_at(double factor) { return search_at(factor, false); }
  /// Whether any strategy beats the best one at `factor`.
  Result<bool> is_beaten_at(double factor) {
    ASSAY_TRY(rival, search_at(factor, true));
    return rival.has_value();
  }
  /// Whether a strategy that was found at another factor beats the best one at `factor`.
  Result<bool> is_known_at(double factor) const {
    if (known_.empty()) return false;
    ASSAY_TRY(there, varied(in_, rate_, factor));
    ASSAY_TRY(here, training::price_strategy(there.question, in_.sequence, there.cluster, in_.best.strategy));
    for (const training::Strategy& rival : known_) {
      ASSAY_TRY(cost, training::price_strategy(there.question, in_.sequence, there.cluster, rival));
      if (cost.estimate < noticeable * here.estimate) return true;
    }
    return false;
  }

 private:
  Result<std::optional<Candidate>> search_at(double factor, bool any_will_do) {
    if (const auto asked = searched_.find(factor); asked != searched_.end()) return asked->second;
    ASSAY_TRY(there, varied(in_, rate_, factor));
    ASSAY_TRY(here, training::price_strategy(there.question, in_.sequence, there.cluster, in_.best.strategy));
    SearchLimits limits{in_.budget, 1, true, noticeable * here.estimate};
    limits.any_will_do = any_will_do;
    Floors floors = floors_at(factor);
    limits.floors = &floors;
    TrainingProfiles changed(there.question, in_.sequence, &profiles_);
    limits.profiles = rate_.changes_kernels ? &changed : &profiles_;
    ASSAY_TRY(found, search_training(there.question, in_.sequence, there.cluster, in_.choices, limits));
    floors_[factor] = std::move(floors);
    std::optional<Candidate> rival;
    if (!found.best.empty()) {
      rival = found.best.front();
      known_.push_back(rival->strategy);
    }
    if (!rival || !any_will_do) searched_.emplace(factor, rival);
    return rival;
  }

  /// Lower bounds at `factor` from those at others: a step never falls by more than a rate rises, nor where it falls.
  Floors floors_at(double factor) const {
    Floors out;
    for (const auto& [other, floors] : floors_) {
      const double scale = noticeable * std::min(1.0, rate_.is_time ? factor / other : other / factor);
      out.resize(floors.size());
      for (std::size_t i = 0; i < floors.size(); ++i) out[i] = std::max(out[i], scale * floors[i]);
    }
    return out;
  }

  static constexpr double noticeable = 1.0 - 1e-9;
  const SensitivityQuestion& in_;
  const HardwareRate& rate_;
  TrainingProfiles& profiles_;
  std::map<double, Floors> floors_;  ///< by factor
  std::map<double, std::optional<Candidate>> searched_;
  std::vector<training::Strategy> known_;
};

/// d ln(after / before) / d ln(ratio).
double elasticity(Seconds before, Seconds after, double log_ratio) { return std::log(after / before) / log_ratio; }

AnyQuantity scaled(AnyQuantity value, double factor) {
  value.value *= factor;
  return value;
}

Result<Sensitivity> rate_sensitivity(const SensitivityQuestion& in, const HardwareRate& rate,
                                     TrainingProfiles& profiles, const Floors& floors) {
  ASSAY_TRY(below, cost_at(in, rate, std::exp(-small_step)));
  ASSAY_TRY(above, cost_at(in, rate, std::exp(small_step)));
  ASSAY_TRY(halved, cost_at(in, rate, 0.5));
  ASSAY_TRY(doubled, cost_at(in, rate, 2.0));
  Rivals rivals(in, rate, profiles, floors);
  ASSAY_TRY(other, rivals.fastest_at(2.0));
  Sensitivity out;
  out.rate = rate.name;
  out.value = rate.value;
  out.elasticity = elasticity(below.estimate, above.estimate, 2.0 * small_step);
  out.lower_elasticity = elasticity(below.lower, above.lower, 2.0 * small_step);
  out.if_halved = halved.estimate;
  out.if_doubled = doubled.estimate;
  out.best_if_doubled = other ? other->cost.estimate : doubled.estimate;
  std::optional<Error> failed;
  const std::string_view now = training::limiter_of(in.best.cost);
  const auto limiter_at = [&](double factor) {
    const auto cost = cost_at(in, rate, factor);
    if (!cost) failed = cost.error();
    return cost ? training::limiter_of(*cost) : now;
  };
  if (const auto turns =
          nearest_change([&](double f) { return limiter_at(f) != now; }, limiter_reach, limiter_precision))
    out.break_even = Sensitivity::BreakEven{scaled(rate.value, *turns), *turns, limiter_at(*turns)};
  const auto beaten = [&](double factor) {
    const auto is_beaten = rivals.is_beaten_at(factor);
    if (!is_beaten) failed = is_beaten.error();
    return is_beaten && *is_beaten;
  };
  const auto known = [&](double factor) {
    const auto is_known = rivals.is_known_at(factor);
    if (!is_known) failed = is_known.error();
    return is_known && *is_known;
  };
  if (const auto takes_over = nearest_change(beaten, known, search_reach, search_precision)) {
    out.takeover = Sensitivity::Takeover{scaled(rate.value, *takes_over), *takes_over, {}};
    ASSAY_TRY(winner, rivals.fastest_at(*takes_over));
    if (winner) out.takeover->strategy = winner->strategy;
  }
  if (failed) return tl::unexpected<Error>(*failed);
  return out;
}

/// Twice as many sequences, or sequences twice as long; nothing where the strategy cannot run then.
std::optional<Sensitivity> doubled_size(const SensitivityQuestion& in, double sequences, std::int64_t length) {
  training::TrainingQuestion question = in.question;
  question.sequences *= sequences;
  const auto cost = training::price_strategy(question, in.sequence * length, in.cluster, in.best.strategy);
  if (!cost) return std::nullopt;
  const double log_ratio = std::log(2.0);
  Sensitivity out;
  out.elasticity = elasticity(in.best.cost.estimate, cost->estimate, log_ratio);
  out.lower_elasticity = elasticity(in.best.cost.lower, cost->lower, log_ratio);
  out.if_doubled = cost->estimate;
  out.fits_if_doubled = cost->memory.total() <= in.budget;
  SearchLimits limits{in.budget, 1};
  if (*out.fits_if_doubled) limits.slowest = just_over(cost->estimate);
  if (length == 1) limits.profiles = in.profiles;
  const auto found = search_training(question, in.sequence * length, in.cluster, in.choices, limits);
  if (found && !found->best.empty()) out.best_if_doubled = found->best.front().cost.estimate;
  return out;
}

/// The batch nearest to this one that the schedule can run and at which the limiter is another.
std::optional<Sensitivity::BreakEven> batch_break_even(const SensitivityQuestion& in) {
  const std::string_view now = training::limiter_of(in.best.cost);
  const training::Strategy& s = in.best.strategy;
  const double m = training::microbatches(in.question, s),
               group = static_cast<double>(clock::microbatch_group(
                   {s.schedule, s.parallelism.pipeline, static_cast<std::int64_t>(m), s.interleave})),
               unit = group * in.question.sequences / m;
  const auto batch_at = [&](double factor) {
    return std::max(1.0, std::round(factor * in.question.sequences / unit)) * unit;
  };
  const auto limiter_at = [&](double factor) {
    training::TrainingQuestion question = in.question;
    question.sequences = batch_at(factor);
    const auto cost = training::price_strategy(question, in.sequence, in.cluster, in.best.strategy);
    return cost ? training::limiter_of(*cost) : now;
  };
  const auto turns = nearest_change([&](double f) { return limiter_at(f) != now; }, limiter_reach, limiter_precision);
  if (!turns) return std::nullopt;
  const double sequences = batch_at(*turns);
  return Sensitivity::BreakEven{Tokens(sequences * static_cast<double>(in.sequence)), sequences / in.question.sequences,
                                limiter_at(*turns)};
}

}  // namespace

namespace {

/// Sensitivities to the batch and the sequence length, as far as the strategy can run twice as much.
std::vector<Sensitivity> size_sensitivities(const SensitivityQuestion& in) {
  std::vector<Sensitivity> out;
  const auto length = static_cast<double>(in.sequence);
  if (auto batch = doubled_size(in, 2.0, 1)) {
    batch->rate = "batch";
    batch->value = Tokens(in.question.sequences * length);
    batch->break_even = batch_break_even(in);
    out.push_back(*std::move(batch));
  }
  const model::Transformer& model = *in.question.setup.model;
  if (model.learned_positions > 0 && 2 * in.sequence > model.max_context) return out;
  if (auto sequence = doubled_size(in, 1.0, 2)) {
    sequence->rate = "sequence length";
    sequence->value = Tokens(length);
    out.push_back(*std::move(sequence));
  }
  return out;
}

}  // namespace

Result<std::vector<Sensitivity>> training_sensitivities(const SensitivityQuestion& in) {
  const std::vector<HardwareRate> rates = hardware_rates(in);
  std::vector<std::optional<Result<Sensitivity>>> rows(rates.size());
  std::vector<Sensitivity> sizes;
  Floors floors;
  SearchLimits as_it_is{in.budget, 1, true, just_over(in.best.cost.estimate)};
  as_it_is.profiles = in.profiles;
  as_it_is.floors = &floors;
  if (const auto base = search_training(in.question, in.sequence, in.cluster, in.choices, as_it_is);
      !base && !progress.is_stopped())
    return tl::unexpected<Error>(base.error());
  // Where kernels change, every search prices them itself. The others share their prices and so follow each other.
  parallel_for(2, 1, [&](std::size_t part) {
    const bool changes_kernels = part == 0;
    TrainingProfiles of_any_rates(in.question, in.sequence);
    TrainingProfiles& profiles = changes_kernels || !in.profiles ? of_any_rates : *in.profiles;
    for (std::size_t i = 0; i < rates.size(); ++i)
      if (rates[i].changes_kernels == changes_kernels && !progress.is_stopped())
        rows[i] = rate_sensitivity(in, rates[i], profiles, floors);
    if (!changes_kernels && !progress.is_stopped()) sizes = size_sensitivities(in);
  });
  std::vector<Sensitivity> out;
  for (std::optional<Result<Sensitivity>>& row : rows) {
    if (!row || (!*row && progress.is_stopped())) continue;
    if (!*row) return tl::unexpected<Error>(row->error());
    out.push_back(**std::move(row));
  }
  out.insert(out.end(), sizes.begin(), sizes.end());
  return out;
}

Result<MemorySensitivity> memory_sensitivity(const SensitivityQuestion& in) {
  constexpr Bytes no_limit(HUGE_VAL);
  const auto search = [&](Bytes capacity, Seconds slowest) {
    return search_training(in.question, in.sequence, in.cluster, in.choices,
                           {capacity, 1, true, slowest, no_limit, false, in.profiles});
  };
  ASSAY_TRY(least, search(Bytes(), Seconds(HUGE_VAL)));
  ASSAY_TRY(unlimited, search(no_limit, just_over(in.best.cost.estimate)));
  MemorySensitivity out{in.cluster.chip.hbm().capacity.value, in.best.cost.memory.total(), least.closest, {}};
  if (!unlimited.best.empty()) out.unlimited = unlimited.best.front();
  return out;
}

}  // namespace assay::search
