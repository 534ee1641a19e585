#include "assay/predict/search/layer/product_table.h"

#include <algorithm>

namespace assay::search {
namespace {

/// The cheapest ways from one sharding to all of `targets`. A slice of what is stored is a view; everything else is a
/// copy, and a step holds what it reads and what it writes.
std::vector<ReshardWay> ways_from(plan::Planner& planner, const program::Mesh& mesh, const program::Tensor& start,
                                  bool stored, const plan::Prices& prices,
                                  const std::vector<program::Sharding>& targets) {
  std::vector<ReshardWay> ways;
  for (const program::Sharding& target : targets) {
    const plan::Plan plan = planner.reshard(start, target, prices);
    ReshardWay way{Seconds(plan.cost), {}, stored ? Bytes() : program::local_bytes(mesh, start)};
    way.peak = way.held;
    for (const program::Step& step : plan.steps) {
      const bool view = step.op == program::Op::slice && way.held == Bytes();
      const Bytes copy = view ? Bytes() : program::local_bytes(mesh, plan.tensor(step.out[0]));
      way.peak = std::max(way.peak, way.held + copy);
      way.held = copy;
    }
    ways.push_back(way);
  }
  return ways;
}

bool faster(const ProductOption& a, const ProductOption& b) {
  if (!nearly_equal(a.lower, b.lower)) return a.lower < b.lower;
  return clearly_less(a.upper, b.upper);
}

/// Keeps a front in order, without what another option beats in time and memory.
void insert(std::vector<ProductOption>& front, const ProductOption& option) {
  for (const ProductOption& other : front)
    if (!faster(option, other) && other.working <= option.working) return;
  std::erase_if(front,
                [&](const ProductOption& other) { return !faster(other, option) && option.working <= other.working; });
  front.insert(std::upper_bound(front.begin(), front.end(), option, faster), option);
}

}  // namespace

ProductTable::ProductTable(const program::Mesh& mesh, const std::vector<program::Sharding>& shardings,
                           const program::Tensor& left, bool left_stored, const program::Tensor& right,
                           const program::Tensor& result, const ChooserHardware& hardware)
    : n_(shardings.size()), fronts_(n_ * n_ * n_) {
  const auto with = [](program::Tensor tensor, const program::Sharding& sharding) {
    tensor.sharding = sharding;
    return tensor;
  };
  for (std::size_t a = 0; a < n_; ++a)
    for (std::size_t b = 0; b < n_; ++b) {
      const program::AxisList shared = shardings[a].dims[1];
      if (shared != shardings[b].dims[0] || shardings[a].dims[0].set() & shardings[b].dims[1].set()) continue;
      ProductMeeting meeting{a, b, {}};
      meeting.result.dims = {shardings[a].dims[0], shardings[b].dims[1]};
      meeting.result.unreduced = shared.set();
      const program::Tensor x = with(left, shardings[a]), y = with(right, shardings[b]),
                            z = with(result, meeting.result);
      const auto rows = program::local_shape(mesh, x), columns = program::local_shape(mesh, y);
      const Flops flops(2.0 * static_cast<double>(rows[0]) * static_cast<double>(rows[1]) *
                        static_cast<double>(columns[1]));
      const Bytes traffic =
          program::local_bytes(mesh, x) + program::local_bytes(mesh, y) + program::local_bytes(mesh, z);
      meeting.compute = flops / hardware.peak;
      meeting.memory = traffic / hardware.memory_bandwidth;
      meeting.result_bytes = program::local_bytes(mesh, z);
      meeting.weight_bytes = program::local_bytes(mesh, y);
      meeting.ways = {program::shard_count(mesh, shardings[a].dims[0].set()), program::shard_count(mesh, shared.set()),
                      program::shard_count(mesh, shardings[b].dims[1].set())};
      meetings_.push_back(meeting);
    }
  plan::Planner planner(mesh);
  for (const program::Sharding& from : shardings) {
    left_.push_back(ways_from(planner, mesh, with(left, from), left_stored, hardware.prices, shardings));
    right_.push_back(ways_from(planner, mesh, with(right, from), true, hardware.prices, shardings));
  }
  for (const ProductMeeting& meeting : meetings_)
    finish_.push_back(ways_from(planner, mesh, with(result, meeting.result), false, hardware.prices, shardings));
}

Seconds ProductTable::communication(std::size_t left, std::size_t right, std::size_t result,
                                    const ProductOption& option) const {
  const ProductMeeting& at = meetings_[option.meeting];
  return left_[left][at.left].time + right_[right][at.right].time + finish_[option.meeting][result].time;
}

const std::vector<ProductOption>& ProductTable::front(std::size_t left, std::size_t right, std::size_t result) {
  std::vector<ProductOption>& front = fronts_[(left * n_ + right) * n_ + result];
  if (!front.empty()) return front;
  for (std::size_t m = 0; m < meetings_.size(); ++m) {
    const ProductMeeting& at = meetings_[m];
    const ReshardWay &x = left_[left][at.left], &y = right_[right][at.right], &z = finish_[m][result];
    const Seconds moves = x.time + y.time + z.time;
    ProductOption option;
    option.lower = std::max({at.compute, at.memory, moves});
    option.upper = at.compute + at.memory + moves;
    option.working = std::max({x.peak, x.held + y.peak, x.held + y.held + at.result_bytes, z.peak});
    option.meeting = m;
    insert(front, option);
  }
  return front;
}

}  // namespace assay::search
