#include "assay/program/plan/explorer.h"

#include <algorithm>
#include <cmath>

namespace assay::plan {

Explorer::Explorer(ShardingSpace& space, const TensorExtent& extent, const program::Sharding& start,
                   const Prices& prices, bool once)
    : space_(&space), prices_(&prices), extent_(extent), once_(once) {
  const int id = space.id(start);
  grow();
  cost_[static_cast<std::size_t>(id)] = 0.0;
  reached_[static_cast<std::size_t>(id)].steps = 0;
  heap_.push_back({0.0, 0, id});
}

/// Makes room for shardings that the space has gained.
void Explorer::grow() {
  const auto known = static_cast<std::size_t>(space_->size());
  if (cost_.size() == known) return;
  cost_.resize(known, infinity);
  reached_.resize(known);
  local_.resize(known, -1.0);
  settled_.resize(known, 0);
  permuted_.resize(known, 0);
}

double Explorer::local(int id) {
  double& known = local_[static_cast<std::size_t>(id)];
  if (known < 0.0) {
    double elements = 1.0;
    if (extent_.proportional) {
      for (std::size_t d = 0; d < space_->rank(); ++d) elements *= space_->ways(id, d);
      known = 1.0 / elements;
    } else {
      for (std::size_t d = 0; d < space_->rank(); ++d)
        elements *= std::ceil(static_cast<double>(extent_.sizes[d]) / space_->ways(id, d));
      known = storage(extent_.dtype, elements).value();
    }
  }
  return known;
}

bool Explorer::next(double limit) {
  while (!heap_.empty()) {
    const Entry top = heap_.front();
    if (top.cost > limit) return false;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    char& settled = settled_[static_cast<std::size_t>(top.id)];
    if (settled) continue;
    settled = 1;
    order_.push_back(top.id);
    expand(top.id, once_ ? limit : infinity);
    return true;
  }
  return false;
}

/// Records a cost no higher than the known one: settled shardings cost less than all that follow, or the same in fewer
/// steps.
inline void Explorer::reach(int from, int to, MoveKind kind, program::AxisSet axes, double cost) {
  const auto place = static_cast<std::size_t>(to);
  const int steps = reached_[static_cast<std::size_t>(from)].steps + 1;
  if (cost == cost_[place] && reached_[place].steps <= steps) return;
  cost_[place] = cost;
  reached_[place] = {steps, from, axes, kind};
  heap_.push_back({cost, steps, to});
  std::push_heap(heap_.begin(), heap_.end());
}

void Explorer::expand(int id, double limit) {
  const std::vector<SpaceEdge>& edges = space_->edges(id);
  grow();
  const double here = local(id), base = cost_[static_cast<std::size_t>(id)];
  const bool forward = space_->forward();
  for (const SpaceEdge& edge : edges) {
    const double known = cost_[static_cast<std::size_t>(edge.to)];
    if (known < base) continue;
    double cost = base;
    if (edge.kind) cost += (*prices_)(*edge.kind, edge.axes, Bytes(forward ? here : local(edge.to)));
    if (cost <= known && cost <= limit) reach(id, edge.to, edge.kind, edge.axes, cost);
  }
  // All shardings of one set of local shapes reach each other, and the first one settled is the cheapest to start from.
  if (permuted_[static_cast<std::size_t>(id)]) return;
  const program::AxisSet used = space_->split_axes(id);
  if (used == 0 || base + (*prices_)(program::Collective::permute, used, Bytes(here)) > limit) return;
  const std::vector<int>& members = space_->permutations(id);
  grow();
  for (int member : members) {
    permuted_[static_cast<std::size_t>(member)] = 1;
    if (member == id) continue;
    const program::AxisSet axes = used | space_->split_axes(member);
    const double cost = base + (*prices_)(program::Collective::permute, axes, Bytes(here));
    if (cost <= cost_[static_cast<std::size_t>(member)] && cost <= limit)
      reach(id, member, program::Collective::permute, axes, cost);
  }
}

}  // namespace assay::plan
