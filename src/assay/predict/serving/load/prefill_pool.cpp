#include "assay/predict/serving/load/prefill_pool.h"

#include <algorithm>

#include "assay/base/index.h"

namespace assay::serving {

PrefillPool::PrefillPool(const PrefillPlan& plan, std::int64_t block)
    : plan_(plan), block_(block), model_(*plan.server, block), link_free_(at(plan.replicas), 0.0) {
  watchers_.ended = [this](const ServedRequest& one) { ended(one); };
  watchers_.passed = [this](const ReplicaSpan& span) { busy_ += span.to - span.from; };
  replicas_.reserve(at(plan.replicas));
  for (std::int64_t i = 0; i < plan.replicas; ++i) replicas_.emplace_back(model_, watchers_, i);
}

void PrefillPool::add(const FleetRequest& request, std::vector<std::int64_t> path) {
  std::size_t best = turn_;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const std::size_t place = (turn_ + i) % replicas_.size();
    if (replicas_[place].requests_at(request.arrival) < replicas_[best].requests_at(request.arrival)) best = place;
  }
  turn_ = (best + 1) % replicas_.size();
  asked_.emplace(request.id, request);
  FleetRequest prompt = request;
  prompt.output = 1;
  replicas_[best].add(prompt, std::move(path), block_);
}

void PrefillPool::advance(double until) {
  for (Replica& replica : replicas_) replica.advance(until);
}

/// A replica sends one cache after the other.
void PrefillPool::ended(const ServedRequest& one) {
  const auto asked = asked_.find(one.request.id);
  FleetRequest request = asked->second;
  asked_.erase(asked);
  const double time = (static_cast<double>(request.prompt) * plan_.per_token / plan_.link).value();
  double& free = link_free_[at(one.replica)];
  free = std::max(free, one.decoded) + time;
  sending_ += time;
  request.prefilled = {one.first, free, one.decoded, one.cached};
  handed_.push(request);
}

FleetRequest PrefillPool::take() {
  FleetRequest request = handed_.top();
  handed_.pop();
  return request;
}

std::int64_t PrefillPool::waiting() const {
  std::int64_t sum = 0;
  for (const Replica& replica : replicas_) sum += replica.waiting();
  return sum;
}

std::int64_t PrefillPool::held() const {
  std::int64_t sum = 0;
  for (const Replica& replica : replicas_) sum += replica.pool().held();
  return sum;
}

}  // namespace assay::serving
