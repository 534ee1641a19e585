#include "assay/ask/verbs/train/plans.h"

#include "assay/ask/verbs/launched.h"
#include "assay/ask/verbs/train/launch.h"
#include "assay/ask/verbs/train/memory.h"
#include "assay/ask/verbs/train/software.h"

namespace assay::verbs::train {
namespace {

/// Choices of a strategy. The order of mesh axes is not among them: the search finds the best one of a strategy.
constexpr std::string_view plan_fields[] = {"dp",        "fsdp",    "tp",          "pp",         "cp",
                                            "ep",        "ep-over", "zero",        "schedule",   "residual",
                                            "recompute", "offload", "micro-batch", "interleave", "context-scheme"};
/// What asks for other plans, or for more than a plan.
constexpr std::string_view other_questions[] = {
    "sequence-parallel", "objective", "pareto", "top",      "list", "timeline",
    "sensitivity",       "improve",   "emit",   "launcher", "from"};

}  // namespace

Request plan_request(const Request& request, const TrainQuery& query, const training::Strategy& strategy) {
  const bool one_of_several = request.value("on").value_or("").find_first_of(",.") != std::string::npos;
  Request out = one_of_several ? request.with("on", query.cluster.text) : request;
  for (const std::string_view option : other_questions) out = out.without(option);
  const launch::Settings plan = plan_of(query, strategy);
  for (const std::string_view field : plan_fields) {
    out = out.without(field);
    const auto value = plan.find(std::string(field));
    if (value == plan.end()) continue;
    if (const auto said = option_of(value->first, value->second, plan)) out = out.with(said->first, said->second);
  }
  return out;
}

void add_plan(const Request& request, const TrainQuery& query, const search::Candidate& plan, report::Members& row) {
  const training::TrainingCost& cost = plan.cost;
  report::Members time = time_range(query, cost.lower, cost.estimate, cost.upper);
  for (auto& [key, value] : time)
    if (key == "interval") row.emplace_back(key, std::move(value));
  row.emplace_back("memory", report::Members{{"total", Bytes(cost.memory.total())},
                                             {"verdict", name_of(memory_verdict(query, cost))}});
  row.emplace_back("arguments", plan_request(request, query, plan.strategy).named_arguments());
}

}  // namespace assay::verbs::train
