// What would make a plan fit that does not, and fewer chips that are as fast: changes of the request, each asked as a
// request of its own.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "assay/ask/verbs/train/train.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/predict/search/training/caches.h"
#include "assay/predict/search/training/nearest_fit.h"

namespace assay::verbs::train {
namespace {

/// Chips, with their hosts where states may be there, that have room for the states.
double least_chips(const TrainQuery& query) {
  const search::PlanRules& rules = query.choices.rules;
  const bool moves = search::PlanRules::has(rules.offloads, training::Offload::optimizer) ||
                     search::PlanRules::has(rules.offloads, training::Offload::both);
  const Bytes on_chip = query.cluster.chip.hbm().capacity.value;
  return search::chips_for_states(query.question.setup, moves ? on_chip + query.question.host.capacity : on_chip);
}

class WaysOut {
 public:
  WaysOut(const Request& request, const Context& context, const TrainQuery& query)
      : request_(request.without("emit")), context_(context), query_(query) {}

  report::Items rows() {
    add_open_strategy();
    add_narrower();
    add_shorter();
    add_more_chips();
    if (!request_.has("lora")) add("--lora 16", request_.with("lora", "16"));
    return std::move(rows_);
  }

 private:
  /// Whether some plan of a changed request fits.
  bool fits(const Request& changed) const {
    const auto cluster = cluster_of(changed, context_);
    if (!cluster) return false;
    auto query = read_train_query(changed, context_, *cluster);
    if (!query) return false;
    query->bind();
    if (least_chips(*query) > query->question.chips) return false;
    search::TrainingCaches caches(query->question, query->sequence, query->cluster);
    return search::any_fits(caches, !query_.refused_by.empty() ? query->open_choices : query->choices,
                            query->cluster.chip.hbm().capacity.value);
  }

  /// Adds a change that fits, with its best plan.
  bool add(const std::string& change, const Request& changed) {
    if (!fits(changed)) return false;
    const auto found = train_sizes(changed, context_);
    if (!found || found->all.empty() || !found->all[found->chosen].fits()) return false;
    const SizedTraining& size = found->all[found->chosen];
    const search::Candidate& plan = size.found.best.front();
    report::Members row{{"change", change},
                        {"step_time", plan.cost.estimate},
                        {"tokens_per_second", Tokens(size.query.batch_tokens) / plan.cost.estimate},
                        {"strategy", strategy_text(plan.strategy)}};
    add_plan(changed, size.query, plan, row);
    rows_.emplace_back(std::move(row));
    return true;
  }

  /// Without what the request fixes of the plan.
  void add_open_strategy() {
    constexpr std::string_view fixed[] = {"dp",       "fsdp",       "tp",        "pp",      "cp",
                                          "ep",       "ep-over",    "zero",      "order",   "micro-batch",
                                          "schedule", "interleave", "recompute", "offload", "sequence-parallel"};
    Request open = request_;
    std::string given;
    for (const std::string_view option : fixed) {
      if (!request_.has(option)) continue;
      open = open.without(option);
      given += fmt::format("{}--{}", given.empty() ? "without " : ", ", option);
    }
    if (!given.empty()) add(given, open);
  }

  /// Gradients and moments in the format of the weights, first one of them.
  void add_narrower() {
    constexpr std::string_view narrow = "bf16";
    const Request grads = request_.with("grads", std::string(narrow)),
                  moments = request_.with("moments", std::string(narrow));
    const bool first = !request_.has("grads") && add(fmt::format("--grads {}", narrow), grads);
    if (first || request_.has("moments") || add(fmt::format("--moments {}", narrow), moments)) return;
    if (!request_.has("grads"))
      add(fmt::format("--grads {0} --moments {0}", narrow), grads.with("moments", std::string(narrow)));
  }

  /// The longest sequence, in 64 steps up to the one asked for; they fit up to a length.
  void add_shorter() {
    constexpr std::int64_t steps = 64;
    const std::int64_t step = std::max<std::int64_t>(query_.sequence / steps, 1);
    const auto ask = [&](std::int64_t length) { return request_.with("seq", std::to_string(length)); };
    std::int64_t fit = 0, too_many = (query_.sequence + step - 1) / step;  // steps
    while (fit + 1 < too_many) {
      const std::int64_t middle = fit + 1 + (too_many - fit - 1) / 2;
      (fits(ask(middle * step)) ? fit : too_many) = middle;
    }
    if (fit > 0) add(fmt::format("--seq {}", fit * step), ask(fit * step));
  }

  /// The fewest chips of the kind that are tried, up to 64 times as many.
  void add_more_chips() {
    constexpr std::int64_t most_times = 64;
    constexpr std::size_t most_between = 32;
    const hardware::Cluster& cluster = query_.cluster;
    if (cluster.slices > 1) return;
    const auto fewest = static_cast<std::int64_t>(std::min(least_chips(query_), 1e6));
    const std::string chip = cluster.text.substr(0, cluster.text.find(':'));
    const auto ask = [&](std::int64_t chips) { return request_.with("on", fmt::format("{}:{}", chip, chips)); };
    std::int64_t lacks = std::max(cluster.chips(), fewest - 1), reaches = 0;
    for (std::int64_t from = 2 * cluster.chips(); reaches == 0; from *= 2) {
      if (from < fewest) continue;
      const auto next = hardware::cluster_sizes(cluster.chip, from, 2 * from, 1);
      if (next.empty() || next.front() > most_times * cluster.chips()) return;
      (fits(ask(next.front())) ? reaches : lacks) = next.front();
    }
    // More chips need not fit where fewer do: those between are tried from below, of very many some.
    const std::vector<std::int64_t> between =
        hardware::cluster_sizes(cluster.chip, lacks + 1, reaches - 1, static_cast<std::size_t>(reaches - lacks));
    for (std::size_t i = 0, step = between.size() / most_between + 1; i < between.size(); i += step)
      if (fits(ask(between[i]))) {
        reaches = between[i];
        break;
      }
    add(fmt::format("--on {}:{}", chip, reaches), ask(reaches));
  }

  Request request_;
  const Context& context_;
  const TrainQuery& query_;
  report::Items rows_;
};

}  // namespace

report::Items ways_out(const Request& request, const Context& context, const TrainQuery& query) {
  return WaysOut(request, context, query).rows();
}

std::optional<report::Members> fewer_chips(const Request& request, const Context& context, const SizedTraining& size) {
  const hardware::Cluster& cluster = size.query.cluster;
  const auto chips = static_cast<std::uint64_t>(cluster.chips());
  const std::string all = fmt::format("{}:{}", cluster.chip.id, chips);
  if (cluster.torus || cluster.slices > 1 || std::has_single_bit(chips) || cluster.text != all) return std::nullopt;
  const std::string fewer = fmt::format("{}:{}", cluster.chip.id, std::bit_floor(chips));
  auto found = train_sizes(request.without("emit").with("on", fewer), context);
  if (!found || found->all.empty() || !found->best().fits()) return std::nullopt;
  const search::Candidate &there = *found->best().shown(), &here = *size.shown();
  if (there.cost.estimate > here.cost.estimate) return std::nullopt;
  return report::Members{{"cluster", fewer},
                         {"chips", found->best().query.cluster.chips()},
                         {"step_time", there.cost.estimate},
                         {"gain", 1.0 - there.cost.estimate / here.cost.estimate},
                         {"strategy", strategy_text(there.strategy)}};
}

}  // namespace assay::verbs::train
