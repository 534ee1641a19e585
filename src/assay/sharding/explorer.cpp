#include "assay/sharding/explorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {

Explorer::Explorer(ShardingSpace& space, const Tensor& tensor, const Sharding& start, const Prices& prices)
    : space_(space), tensor_(tensor), prices_(prices) {
  const int id = space.id(start);
  const auto known = static_cast<std::size_t>(space.size());
  reached_.resize(known);
  local_.resize(known, -1.0);
  permuted_.resize(known);
  heap_.reserve(128);
  reached_[static_cast<std::size_t>(id)].steps = 0;
  heap_.push_back({0.0, 0, id});
}

double Explorer::frontier() const {
  return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().cost;
}

double Explorer::local(int id) {
  const auto at = static_cast<std::size_t>(id);
  if (local_[at] < 0.0) {
    double elements = 1.0;
    for (std::size_t d = 0; d < space_.rank(); ++d)
      elements *= std::ceil(static_cast<double>(tensor_.dims[d].size) / space_.ways(id, d));
    local_[at] = storage(tensor_.dtype, elements).value();
  }
  return local_[at];
}

int Explorer::next(double limit) {
  while (!heap_.empty()) {
    const Entry top = heap_.front();
    if (top.cost > limit) return -1;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    Reached& here = reached_[static_cast<std::size_t>(top.id)];
    if (here.settled) continue;
    here.settled = true;
    expand(top.id, limit);
    return top.id;
  }
  return -1;
}

void Explorer::reach(int from, int to, StepKind kind, AxisSet axes, double price, double limit) {
  const Reached& base = reached_[static_cast<std::size_t>(from)];
  const double cost = base.cost + price;
  if (cost > limit) return;
  Reached& there = reached_[static_cast<std::size_t>(to)];
  const int steps = base.steps + 1;
  if (there.settled || (there.steps >= 0 && (there.cost < cost || (there.cost == cost && there.steps <= steps))))
    return;
  there = {cost, steps, from, axes, kind, false};
  heap_.push_back({cost, steps, to});
  std::push_heap(heap_.begin(), heap_.end());
}

void Explorer::expand(int id, double limit) {
  const std::vector<SpaceEdge>& edges = space_.edges(id);
  const auto grow = [&] {
    const auto known = static_cast<std::size_t>(space_.size());
    if (reached_.size() == known) return;
    reached_.resize(known);
    local_.resize(known, -1.0);
    permuted_.resize(known);
  };
  grow();
  const double here = local(id);
  for (const SpaceEdge& edge : edges) {
    if (reached_[static_cast<std::size_t>(edge.to)].settled) continue;
    if (edge.kind == StepKind::slice) {
      reach(id, edge.to, edge.kind, edge.axes, 0.0, limit);
    } else {
      const Bytes source(space_.forward() ? here : local(edge.to));
      reach(id, edge.to, edge.kind, edge.axes, prices_(edge.kind, edge.axes, source), limit);
    }
  }
  // All shardings of one set of local shapes reach each other, and the first one settled is the cheapest to start from.
  if (permuted_[static_cast<std::size_t>(id)]) return;
  const AxisSet used = space_.sharding(id).split_axes();
  const double at = reached_[static_cast<std::size_t>(id)].cost;
  if (used == 0 || at + prices_(StepKind::permute, used, Bytes(here)) > limit) return;
  const std::vector<int>& members = space_.permutations(id);
  grow();
  for (int member : members) {
    permuted_[static_cast<std::size_t>(member)] = 1;
    if (member == id) continue;
    const AxisSet axes = used | space_.sharding(member).split_axes();
    reach(id, member, StepKind::permute, axes, prices_(StepKind::permute, axes, Bytes(here)), limit);
  }
}

}  // namespace assay
