#include "assay/predict/serving/load/fleet_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <unordered_set>
#include <vector>

#include "assay/base/index.h"

namespace assay::serving {
namespace {

/// What a request costs at least, in tokens.
struct Work {
  double prompt = 0, output = 0;
  double before = 0;  ///< tokens before each computed one of the prompt, added up
};

/// All of the traffic, with every block computed once.
struct Demand {
  std::vector<Work> requests;
  double last = 0;     ///< arrival
  double longest = 0;  ///< output
};

Demand demand_of(const FleetPlan& plan, const TrafficPlan& of) {
  Demand demand;
  std::unordered_set<std::int64_t> seen;
  Traffic traffic(of);
  while (traffic.next() != Traffic::never) {
    const FleetRequest request = traffic.take();
    std::size_t cached = 0;
    if (plan.prefixes && request.traced >= 0) {
      const std::int64_t from = request.copy * plan.prefixes->size();
      for (const int node : plan.prefixes->path(at(request.traced)))
        if (!seen.insert(from + node).second) ++cached;
    }
    const std::int64_t hit = cached > 0 ? plan.prefixes->cached_tokens(at(request.traced), cached) : std::int64_t{0};
    const auto prompt = static_cast<double>(request.prompt), known = static_cast<double>(hit);
    demand.requests.push_back(
        {prompt - known, static_cast<double>(request.output - 1), 0.5 * (prompt * prompt - known * known)});
    demand.last = request.arrival;
    demand.longest = std::max(demand.longest, static_cast<double>(request.output - 1));
  }
  return demand;
}

/// The time of all requests but the dearest.
double least_work(const Demand& demand, const LeastTimes& times, std::size_t left_out) {
  double sum = 0.0;
  std::priority_queue<double, std::vector<double>, std::greater<>> dearest;
  for (const Work& one : demand.requests) {
    const double time = one.prompt * times.per_prompt.value() + one.output * times.per_token.value() +
                        one.before * times.further.value();
    sum += time;
    if (left_out == 0) continue;
    dearest.push(time);
    if (dearest.size() > left_out) dearest.pop();
  }
  for (; !dearest.empty(); dearest.pop()) sum -= dearest.top();
  return sum;
}

}  // namespace

LeastTimes least_times(const ReplicaModel& model, double share) {
  constexpr double context = 1.0;  // no sequence has less
  const Seconds further = model.server().further;
  double token = HUGE_VAL, prompt = HUGE_VAL;
  for (std::int64_t n = 1; n <= model.places(); ++n)
    token = std::min(token, (model.step(n).fixed + model.step(n).each * context) / static_cast<double>(n));
  token *= share;
  // Prices are straight between these numbers of tokens.
  for (const double part : {0.0, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1.0}) {
    const auto tokens =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(part * static_cast<double>(model.budget())));
    for (std::int64_t n = 0; n <= model.places(); ++n) {
      const auto sequences = static_cast<double>(n), t = static_cast<double>(tokens);
      const Seconds first = model.server().mixed(sequences, context, t) - t * model.server().before * further;
      prompt = std::min(prompt, (first.value() - token * sequences) / t);
    }
  }
  return {Seconds(token), Seconds(prompt), further};
}

std::int64_t fewest_replicas(const FleetPlan& plan, const TrafficPlan& traffic) {
  const FleetLimits& limits = plan.limits;
  const bool chunked = plan.server->policy == BatchingPolicy::chunked;
  if (!limits.first_token || traffic.clients || !chunked) return 1;
  const ReplicaModel model(*plan.server, 0);
  const Demand demand = demand_of(plan, traffic);
  const auto left_out =
      static_cast<std::size_t>((1.0 - limits.share) * static_cast<double>(demand.requests.size()) + 1e-9);
  const double prompts_end = demand.last + limits.first_token->value();
  double most = least_work(demand, least_times(model, 0.0), left_out) / prompts_end;
  if (limits.per_token) {
    const double end = prompts_end + demand.longest * limits.per_token->value();
    for (const double share : {0.25, 0.5, 0.75, 0.9, 1.0})
      most = std::max(most, least_work(demand, least_times(model, share), left_out) / end);
  }
  constexpr double rounding = 0.999;  // tables are in whole tokens
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(rounding * most)));
}

}  // namespace assay::serving
