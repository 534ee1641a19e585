#include "assay/ask/verbs/serve/plans.h"

#include <fmt/format.h>

#include "assay/ask/verbs/serve/software.h"
#include "assay/base/text.h"

namespace assay::verbs::serve {
namespace {

/// What asks for other points, for limits that choose one, or for more than a point.
constexpr std::string_view other_questions[] = {
    "ttft", "tpot",     "rate",    "simulate", "prefill-servers", "compare", "formats", "vary",           "fits",
    "list", "products", "picture", "emit",     "launcher",        "from",    "improve", "gather-weights", "ep-over"};

}  // namespace

std::string_view cache_name(lower::CacheScheme scheme) {
  return scheme == lower::CacheScheme::heads ? "heads" : scheme == lower::CacheScheme::batch ? "batch" : "sequence";
}

std::string cache_name(const serving::ServingStrategy& strategy) {
  return fmt::format("{}{}", strategy.cache_ways > 1 ? "heads-" : "", cache_name(strategy.scheme.cache));
}

std::string expert_axes(const serving::ServingStrategy& s) {
  return s.expert == 1 ? "none" : s.expert_over.tensor && s.tensor > 1 ? "tp" : "dp";
}

std::string_view memory_verdict(const ServeQuery& query, Bytes total) {
  if (total > query.question.chip_memory) return "no";
  return total <= query.question.capacity ? "fits" : "tight";
}

Request plan_request(const Request& request, const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingStrategy& s = point.strategy;
  Request out = query.sizes.size() > 1 ? request.with("on", query.cluster.text) : request;
  for (const std::string_view option : other_questions) out = out.without(option);
  const std::pair<std::string_view, std::int64_t> degrees[] = {
      {"dp", s.data}, {"tp", s.tensor}, {"pp", s.pipeline}, {"ep", s.expert}, {"weights-2d", s.second}};
  for (const auto& [option, ways] : degrees) out = out.with(option, std::to_string(ways));
  out = out.with("batch", exact_number(point.batch)).with("cache", cache_name(s));
  if (s.expert > 1) out = out.with("ep-over", expert_axes(s));
  if (s.scheme.weights == lower::WeightScheme::gathered) out = out.with("gather-weights", "");
  return out;
}

void add_plan(const std::optional<Request>& request, const ServeQuery& query, const serving::ServingPoint& point,
              report::Members& row) {
  serving::ServingTime token = point.decode;  // measured steps tell how far tokens of a loaded server are off, too
  token.estimate = point.served.per_token;
  if (report::Members interval = step_interval(query, token, false, point.batch); !interval.empty())
    row.emplace_back("interval", std::move(interval));
  row.emplace_back("memory", report::Members{{"total", point.memory.total()},
                                             {"verdict", memory_verdict(query, point.memory.total())}});
  if (request) row.emplace_back("arguments", plan_request(*request, query, point).named_arguments());
}

}  // namespace assay::verbs::serve
