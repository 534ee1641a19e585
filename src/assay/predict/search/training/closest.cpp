#include "assay/predict/search/training/closest.h"

#include <algorithm>
#include <limits>

#include "assay/predict/search/training/bound.h"

namespace assay::search {

std::vector<ClosestSearch::Start> ClosestSearch::by_state_bytes(const std::vector<lower::Parallelism>& meshes) {
  std::vector<Start> sorted;
  training::Strategy shared;
  for (const lower::Parallelism& p : meshes)
    if (in_.space.per_group(p) > 0)
      for (int zero : in_.space.zeros(p))
        for (training::Offload offload : in_.choices.offloads) {
          shared.parallelism = p;
          shared.parallelism.zero = zero;
          shared.offload = offload;
          sorted.push_back({in_.fit.least_bytes(shared), shared});
        }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Start& a, const Start& b) { return a.least.states < b.least.states; });
  return sorted;
}

void ClosestSearch::run(const std::vector<lower::Parallelism>& meshes, TrainingSearch& found) {
  for (const auto& [floor, start] : by_state_bytes(meshes)) {
    if (floor.states - in_.fit.capacity() >= least_) break;
    if (floor.all - in_.fit.capacity() >= least_) continue;
    const lower::Parallelism& mesh = start.parallelism;
    // Memory does not depend on placement: one layout that exists will do.
    const auto layouts = in_.space.layouts(mesh);
    if (layouts.empty()) continue;
    const Result<training::StageLinks> links = in_.linker.links(mesh, layouts.front());
    if (!links) continue;
    for (lower::ResidualScheme residual : in_.space.residuals(mesh))
      for (lower::ContextScheme scheme : in_.space.context_schemes(mesh))
        for (std::int64_t micro : in_.space.micro_batches(in_.space.per_group(mesh)))
          for (std::size_t i = 0; i < in_.policies.size(); ++i) {
            if (least_ == Bytes()) return;
            const std::size_t policy = any_ ? in_.policies.size() - 1 - i : i;
            training::Strategy s = start;
            s.parallelism.residual = residual;
            s.parallelism.context_scheme = scheme;
            s.micro_batch = micro;
            s.recompute = in_.policies[policy];
            s.layout = layouts.front();
            price(s, policy, *links, found);
          }
  }
}

bool ClosestSearch::any_fits(const std::vector<lower::Parallelism>& meshes) {
  any_ = true;
  least_ = Bytes(std::numeric_limits<double>::min());  // less than what does not fit lacks
  TrainingSearch found;
  run(meshes, found);
  return least_ == Bytes();
}

void ClosestSearch::price(training::Strategy s, std::size_t policy, const training::StageLinks& links,
                          TrainingSearch& found) {
  const training::TrainingProfile &profile =
                                      in_.profiles.priced(in_.profiles.microbatch_of(s), in_.numbers[policy]).profile,
                                  &traffic = in_.profiles.sharing_of(s);
  const std::vector<StageOrder> orders = in_.space.orders(s.parallelism);
  const std::uint64_t possible = possible_orders(orders, s.parallelism.pipeline,
                                                 static_cast<std::int64_t>(training::microbatches(in_.question, s)));
  const StageLayers& layers = in_.layers.of(s.parallelism);
  bool is_filled = false;
  for (const AlikeOrders& alike : layers.alike) {
    if (least_memory(in_.fit.memory(s, profile, &traffic, alike.split)) - in_.fit.capacity() >= least_) continue;
    if (!is_filled) training::fill_passes({in_.question, s, profile, &traffic, links}, steady_);
    is_filled = true;
    training::fill_stages({in_.question, s, profile, &traffic, links}, alike.split, steady_);
    for (std::size_t o = 0; o < orders.size(); ++o) {
      if (!((alike.orders & possible) >> o & 1u) || least_memory(steady_) - in_.fit.capacity() >= least_) continue;
      s.schedule = orders[o].schedule;
      s.interleave = orders[o].interleave;
      Candidate candidate{s, training::training_cost(steady_, s)};
      ++found.count.evaluated;
      if (in_.fit.excess(candidate.cost) >= least_) continue;
      least_ = in_.fit.excess(candidate.cost);
      if (s.parallelism.pipeline > 1) {
        events_.fill({in_.question, s, profile, &traffic, links}, alike.split, layers.each[o].runs, steady_);
        training::set_interval(steady_, events_.interval(), candidate.cost);
      }
      found.closest = candidate;
    }
  }
}

}  // namespace assay::search
