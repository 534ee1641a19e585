#include "assay/predict/search/training/search_frontier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>

#include "assay/base/parallel.h"
#include "assay/base/progress.h"

namespace assay::search {

void SearchFrontier::list_mesh(const lower::Parallelism& p) {
  const std::int64_t per_group = in_.space.per_group(p);
  if (per_group == 0) return;
  const auto micro_batches = in_.space.micro_batches(per_group);
  const auto residuals = in_.space.residuals(p);
  const auto schemes = in_.space.context_schemes(p);
  const auto zeros = in_.space.zeros(p);
  WorkMesh mesh;
  mesh.parallelism = p;
  mesh.orders = in_.space.orders(p);
  if (mesh.orders.empty()) return;
  if (mesh.orders.size() > most_orders) throw InternalError("more orders of stages than bits");
  mesh.layers = &in_.layers.of(p);
  for (const AlikeOrders& alike : mesh.layers->alike)
    for (std::size_t o = 0; o < mesh.orders.size(); ++o) {  // more chunks of equal layers take no longer
      const bool is_last = alike.orders >> o == 1u;
      if ((alike.orders >> o & 1u) && (is_last || mesh.orders[o].schedule != clock::PipelineSchedule::interleaved))
        mesh.unbeaten_orders |= std::uint64_t{1} << o;
    }
  const std::size_t layouts = in_.places.count(p);
  if (layouts == 0) return;
  considered_ +=
      static_cast<std::int64_t>(micro_batches.size() * residuals.size() * schemes.size() * in_.policies.size() *
                                zeros.size() * in_.choices.offloads.size() * mesh.orders.size() * layouts);
  for (int zero : zeros) {
    WeightsSharing sharing{zero, 0};
    std::array<std::optional<bool>, 2> states_fit;  // whether states fit if they stay, and if they go to the host
    for (training::Offload offload : in_.choices.offloads) {
      std::optional<bool>& fit = states_fit[training::moves_states(offload)];
      training::Strategy s;
      s.parallelism = p;
      s.parallelism.zero = zero;
      s.offload = offload;
      if (!fit) fit = !in_.prune || in_.fit.least_bytes(s).all <= in_.fit.capacity();
      if (*fit) sharing.offloads = static_cast<std::uint8_t>(sharing.offloads | 1u << static_cast<unsigned>(offload));
    }
    if (sharing.offloads != 0) mesh.sharings.push_back(sharing);
  }
  if (mesh.sharings.empty()) return;
  mesh.inner = in_.places.least_inner(p);
  mesh.weight_traffics.resize(mesh.sharings.size() * residual_ways);
  meshes_.push_back(std::move(mesh));
  TrainingWork work;
  work.mesh = static_cast<std::uint32_t>(meshes_.size() - 1);
  for (lower::ResidualScheme residual : residuals)
    for (lower::ContextScheme scheme : schemes) {
      const std::size_t first = works_.size();
      for (std::int64_t micro : micro_batches) {
        work.residual = residual;
        work.context_scheme = scheme;
        work.micro_batch = micro;
        // Recomputation only adds time, so other policies are looked at after this one.
        const training::Strategy s = strategy_of(work);
        work.possible = possible_orders(meshes_.back().orders, p.pipeline,
                                        static_cast<std::int64_t>(training::microbatches(in_.question, s)));
        if (work.possible == 0) continue;
        work.made = &in_.profiles.microbatch_of(s);
        work.number = static_cast<std::uint32_t>(works_.size());
        works_.push_back(work);
      }
      // The largest multiple bounds a microbatch.
      for (std::size_t i = first; i < works_.size(); ++i)
        for (std::size_t k = works_.size(); k-- > i + 1 && !works_[i].made->whole;)
          if (works_[k].micro_batch % works_[i].micro_batch == 0) works_[i].made->whole = works_[k].made;
    }
}

void SearchFrontier::list(const std::vector<lower::Parallelism>& meshes, const std::vector<Seconds>* floors,
                          Seconds too_slow) {
  for (const lower::Parallelism& p : meshes) list_mesh(p);
  if (progress.is_stopped()) return;
  const bool are_known = in_.prune && floors && floors->size() == works_.size();
  listed_.reserve(works_.size());
  for (TrainingWork& work : works_) {
    if (are_known) work.floor = (*floors)[work.number];
    listed_.push_back({work.floor, work.number});
  }
  if (in_.prune) bound_by_larger(too_slow);
  std::sort(listed_.begin(), listed_.end(), sooner);
}

std::vector<Seconds> SearchFrontier::floors() const {
  std::vector<Seconds> out;
  for (const TrainingWork& work : works_) out.push_back(work.floor);
  return out;
}

template <class Test>
SearchFrontier::Alike SearchFrontier::alike(std::size_t first, std::size_t last, Test wanted) {
  std::unordered_map<const void*, std::size_t> numbers;
  Alike all;
  for (std::size_t i = first; i < last; ++i) {
    TrainingWork& work = works_[listed_[i].number];
    if (!wanted(work)) continue;
    const auto [known, is_new] = numbers.try_emplace(work.made, all.size());
    if (is_new) all.emplace_back();
    all[known->second].push_back(&work);
  }
  return all;
}

namespace {

constexpr std::size_t grain = 16;  ///< about as many are made while a thread starts

TrainingProfiles::Microbatch& largest(TrainingProfiles::Microbatch& made) {
  TrainingProfiles::Microbatch* at = &made;
  while (at->whole) at = at->whole;
  return *at;
}

}  // namespace

/// Bounds work that is not made yet by the largest microbatches alone, which are made.
void SearchFrontier::bound_by_larger(Seconds too_slow) {
  const auto is_made = [&](const TrainingWork& work) {
    return TrainingProfiles::is_priced(*work.made, in_.numbers[0]);
  };
  const Alike all =
      alike(0, listed_.size(), [&](const TrainingWork& work) { return work.floor < too_slow && !is_made(work); });
  std::vector<TrainingProfiles::Microbatch*> wholes;
  for (const auto& works : all) {
    TrainingProfiles::Microbatch& whole = largest(*works.front()->made);
    if (!TrainingProfiles::is_priced(whole, in_.numbers[0])) wholes.push_back(&whole);
  }
  std::sort(wholes.begin(), wholes.end());
  wholes.erase(std::unique(wholes.begin(), wholes.end()), wholes.end());
  if (2 * wholes.size() > all.size()) return;  // few are left to bound
  parallel_for(
      wholes.size(), grain, [&] { return training::FusedPrices(); },
      [&](std::size_t i, training::FusedPrices& prices) {
        if (!progress.is_stopped()) in_.profiles.priced(*wholes[i], in_.numbers[0], prices);
      });
  if (progress.is_stopped()) return;
  parallel_for(
      all.size(), 16 * grain, [&] { return bounding(); },
      [&](std::size_t i, Bounding& with) {
        const TrainingProfiles::Microbatch &made = *all[i].front()->made, &whole = largest(*all[i].front()->made);
        if (&made == &whole) return make(all[i], too_slow, with);
        const training::Strategy s = strategy_of(*all[i].front());
        in_.bound.fill_share({in_.question, s, whole.policies[in_.numbers[0]]->profile, nullptr,
                              in_.places.inner(meshes_[all[i].front()->mesh].inner)},
                             static_cast<double>(made.key->micro_batch) / static_cast<double>(whole.key->micro_batch),
                             with.passes, with.least);
        for (TrainingWork* work : all[i]) work->floor = std::max(work->floor, floor_of(with.least, *work, with));
      });
  for (Listed& one : listed_) one.floor = works_[one.number].floor;
}

const TrainingWork* SearchFrontier::next(Seconds too_slow) {
  while (made_ < listed_.size() && !progress.is_stopped()) {
    if (in_.prune && listed_[made_].floor >= too_slow) break;
    if (!open_.empty() && sooner(open_.front(), listed_[made_])) break;
    make_work(too_slow);
  }
  if (open_.empty() || (in_.prune && open_.front().floor >= too_slow)) return nullptr;
  std::pop_heap(open_.begin(), open_.end(), later);
  const Listed next = open_.back();
  open_.pop_back();
  return &works_[next.number];
}

/// Makes what some works compute, and lower bounds on their time. Work that may be fast enough is asked for under the
/// other policies soon, which follow from the same program.
void SearchFrontier::make(const std::vector<TrainingWork*>& works, Seconds too_slow, Bounding& with) {
  TrainingProfiles::Microbatch& made = *works.front()->made;
  std::optional<training::PolicyProfiles> profiles;
  const auto add = [&](std::size_t i) {
    const std::size_t number = in_.numbers[i];
    if (made.policies.size() <= number) made.policies.resize(number + 1);
    if (!made.policies[number])
      made.policies[number] =
          std::make_unique<TrainingProfiles::Priced>(TrainingProfiles::Priced{profiles->with(in_.policies[i]), {}});
  };
  if (!TrainingProfiles::is_priced(made, in_.numbers[0])) {
    profiles.emplace(in_.question.setup, with.prices, *made.key, training::ProfilePart::work);
    add(0);
  }
  if (!in_.prune) return;
  bool is_fast = false;
  for (TrainingWork* work : works) {
    work->floor = floor_of(least_times(strategy_of(*work), *work, meshes_[work->mesh].inner, with), *work, with);
    is_fast |= work->floor < too_slow;
  }
  if (profiles && is_fast && too_slow < Seconds(HUGE_VAL))
    for (std::size_t i = 1; i < in_.numbers.size(); ++i) add(i);
}

/// Makes the next works on all cores: those that compute the same are made once.
void SearchFrontier::make_work(Seconds too_slow) {
  constexpr std::size_t some = 256;  // where bounds may rule out the rest
  const std::size_t first = made_++;
  while (made_ < listed_.size() && (listed_[made_].floor == Seconds() || made_ - first < some) &&
         !(in_.prune && listed_[made_].floor >= too_slow))
    ++made_;
  const Alike all = alike(first, made_, [](const TrainingWork&) { return true; });
  parallel_for(
      all.size(), grain, [&] { return bounding(); },
      [&](std::size_t i, Bounding& with) {
        if (!progress.is_stopped()) make(all[i], too_slow, with);
      });
  for (std::size_t i = first; i < made_; ++i) {
    const TrainingWork& work = works_[listed_[i].number];
    open_.push_back({work.floor, work.number});
    std::push_heap(open_.begin(), open_.end(), later);
  }
}

training::Strategy SearchFrontier::strategy_of(const TrainingWork& work) const {
  training::Strategy s;
  s.parallelism = meshes_[work.mesh].parallelism;
  s.parallelism.residual = work.residual;
  s.parallelism.context_scheme = work.context_scheme;
  s.micro_batch = work.micro_batch;
  s.recompute = in_.policies[work.policy];
  return s;
}

/// A step takes at least its arithmetic, its memory traffic, the collectives that wait for each other and the waiting
/// of stages. Weight traffic and hops between stages come on top.
Seconds SearchFrontier::floor_of(const LeastTimes& least, const TrainingWork& of, Bounding& with) const {
  const WorkMesh& mesh = meshes_[of.mesh];
  Seconds fastest(HUGE_VAL);
  with.orders.each({least, strategy_of(of), mesh, {}, of.possible & mesh.unbeaten_orders, fastest},
                   [&](std::uint64_t, Seconds time) {
                     fastest = std::min(fastest, time);
                     return true;
                   });
  return fastest;
}

const LeastTimes& SearchFrontier::least_times(const training::Strategy& s, const TrainingWork& of, std::size_t inner,
                                              Bounding& with) const {
  TrainingProfiles::Priced& work = in_.profiles.priced(*of.made, in_.numbers[of.policy], with.prices);
  auto known =
      std::find_if(work.least.begin(), work.least.end(), [&](const auto& least_on) { return least_on.first == inner; });
  if (known == work.least.end()) {
    training::fill_passes({in_.question, s, work.profile, nullptr, in_.places.inner(inner)}, with.passes);
    known = work.least.insert(known, {inner, {}});
    in_.bound.fill(with.passes, known->second);
  }
  return known->second;
}

}  // namespace assay::search
