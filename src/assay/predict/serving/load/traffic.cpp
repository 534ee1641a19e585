#include "assay/predict/serving/load/traffic.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "assay/base/index.h"

namespace assay::serving {

Traffic::Traffic(const TrafficPlan& plan) : plan_(plan), arrivals_(plan.seed), bodies_(~plan.seed) {
  const bool by_trace = !plan.rate && !plan.clients;
  most_ = plan.requests > 0 ? plan.requests : std::numeric_limits<std::int64_t>::max();
  if (plan.trace && !by_trace && plan.requests == 0) most_ = std::ssize(plan.trace->requests);
  if (plan.rate) gap_ = 1.0 / (plan.rate->value() * plan.scale) * plan.stretch;
  if (plan.clients) {
    find_sessions();
    const auto clients = std::max(1.0, std::round(static_cast<double>(*plan.clients) * plan.scale));
    for (double i = 0; i < clients && made_ < most_; i += 1.0) next_of_client(thought(0.0));
  }
  prepare();
}

void Traffic::add(double arrival, std::int64_t traced, std::int64_t copy) {
  FleetRequest request;
  request.id = made_++;
  request.arrival = arrival;
  request.traced = traced;
  request.copy = copy;
  coming_.push(request);
}

/// Finds the sessions of a trace that says how long its clients thought.
void Traffic::find_sessions() {
  if (!plan_.trace) return;
  const std::vector<TracedRequest>& all = plan_.trace->requests;
  if (std::none_of(all.begin(), all.end(), [](const TracedRequest& one) { return one.think.has_value(); })) return;
  following_.assign(all.size(), -1);
  std::unordered_map<std::int64_t, std::int64_t> last;
  for (std::int64_t i = 0; i < std::ssize(all); ++i) {
    const std::int64_t session = all[at(i)].session;
    const auto before = session < 0 ? last.end() : last.find(session);
    before == last.end() ? heads_.push_back(i) : static_cast<void>(following_[at(before->second)] = i);
    if (session >= 0) last[session] = i;
  }
}

double Traffic::thought(double at) {
  return at + (plan_.think > Seconds(0) ? arrivals_.exponential(plan_.think.value() * plan_.stretch) : 0.0);
}

void Traffic::next_of_client(double arrival) {
  if (heads_.empty()) return add(arrival);
  const std::int64_t session = sessions_++, all = std::ssize(heads_);
  add(arrival, heads_[at(session % all)], session / all);
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

void Traffic::ended(const FleetRequest& request, double at) {
  if (!plan_.clients || made_ >= most_) return;
  const std::int64_t next = following_.empty() ? -1 : following_[assay::at(request.traced)];
  if (next < 0) return next_of_client(thought(at));
  const Seconds think = plan_.trace->requests[assay::at(next)].think.value_or(Seconds());
  add(at + think.value() * plan_.stretch, next, request.copy);
}

}  // namespace assay::serving
