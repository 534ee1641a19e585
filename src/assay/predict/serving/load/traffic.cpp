#include "assay/predict/serving/load/traffic.h"

#include <algorithm>
#include <cmath>

namespace assay::serving {

Traffic::Traffic(const TrafficPlan& plan) : plan_(plan), arrivals_(plan.seed), bodies_(~plan.seed) {
  const bool by_trace = !plan.rate && !plan.clients;
  most_ = plan.requests > 0 ? plan.requests : std::numeric_limits<std::int64_t>::max();
  if (plan.trace && !by_trace && plan.requests == 0) most_ = std::ssize(plan.trace->requests);
  if (plan.rate) gap_ = 1.0 / (plan.rate->value() * plan.scale) * plan.stretch;
  if (plan.clients) {
    const auto clients = std::max(1.0, std::round(static_cast<double>(*plan.clients) * plan.scale));
    for (double i = 0; i < clients && made_ < most_; i += 1.0)
      add(plan.think > Seconds(0) ? arrivals_.exponential(plan.think.value() * plan.stretch) : 0.0);
  }
  prepare();
}

void Traffic::add(double arrival) {
  FleetRequest request;
  request.id = made_++;
  request.arrival = arrival;
  coming_.push(request);
}

void Traffic::prepare() {
  if (plan_.clients) return;
  if (plan_.rate) {
    if (coming_.empty() && made_ < most_) add(at_ += arrivals_.gamma(plan_.burstiness, gap_));
    return;
  }
  // Copies of a request arrive at random before the next one of the trace.
  const std::vector<TracedRequest>& all = plan_.trace->requests;
  while (coming_.empty() && traced_ < all.size() && made_ < most_) {
    const double from = all[traced_].arrival->value(),
                 to = traced_ + 1 < all.size() ? all[traced_ + 1].arrival->value() : from;
    const auto copies =
        static_cast<std::int64_t>(plan_.scale) +
        (plan_.scale > std::floor(plan_.scale) && arrivals_.share() < plan_.scale - std::floor(plan_.scale));
    for (std::int64_t copy = 0; copy < copies && made_ < most_; ++copy) {
      FleetRequest request;
      request.id = made_++;
      request.arrival = plan_.stretch * (copy == 0 ? from : from + arrivals_.share() * (to - from));
      request.traced = static_cast<std::int64_t>(traced_);
      request.copy = copy;
      coming_.push(request);
    }
    ++traced_;
  }
}

void Traffic::fill_body(FleetRequest& request) {
  if (!plan_.trace) {
    request.prompt = bodies_.draw(plan_.prompts);
    request.output = bodies_.draw(plan_.outputs);
    return;
  }
  const auto all = std::ssize(plan_.trace->requests);
  if (request.traced < 0) request.traced = request.id % all, request.copy = request.id / all;
  const TracedRequest& body = plan_.trace->requests[static_cast<std::size_t>(request.traced)];
  request.prompt = body.prompt;
  request.output = body.output;
  if (body.session >= 0) request.session = request.copy * all + body.session;
}

FleetRequest Traffic::take() {
  FleetRequest request = coming_.top();
  coming_.pop();
  request.id = taken_++;
  fill_body(request);
  prepare();
  return request;
}

void Traffic::ended(double at) {
  if (!plan_.clients || made_ >= most_) return;
  add(at + (plan_.think > Seconds(0) ? arrivals_.exponential(plan_.think.value() * plan_.stretch) : 0.0));
}

}  // namespace assay::serving
