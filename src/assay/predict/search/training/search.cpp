#include "assay/predict/search/training/search.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "assay/predict/search/training/best_strategies.h"
#include "assay/predict/search/training/caches.h"
#include "assay/predict/search/training/closest.h"
#include "assay/predict/search/training/search_frontier.h"

namespace assay::search {
namespace {

/// Best first: work is visited in order of a lower bound on its time, so the first item that is slower than all wanted
/// strategies ends the search.
class StrategySearcher {
 public:
  StrategySearcher(TrainingCaches& caches, const TrainingChoices& choices, const SearchLimits& limits)
      : question_(caches.question),
        choices_(choices),
        space_(question_, caches.sequence, caches.cluster, choices),
        layers_(*question_.setup.model, space_),
        policies_(space_.policies()),
        profiles_(caches.profiles),
        numbers_(profiles_.numbers_of(policies_)),
        fit_(question_, profiles_, layers_, limits.capacity),
        best_(limits),
        known_floors_(limits.floors),
        prune_(limits.prune),
        bound_(question_),
        linker_(caches.linker),
        places_(space_, caches.inner, choices.layout || choices.rules.limits_orders(caches.cluster)),
        frontier_(
            {question_, choices_, space_, policies_, numbers_, profiles_, layers_, places_, fit_, bound_, prune_}),
        with_(frontier_.bounding()) {}

  Result<TrainingSearch> run(bool wants_closest) {
    const std::vector<lower::Parallelism> all = space_.meshes();
    if (all.empty()) return space_.no_meshes();
    frontier_.list(all, known_floors_, best_.too_slow());
    if (progress.is_stopped()) return interrupted();
    found_.count.considered = frontier_.considered();
    settled_.resize(frontier_.size());
    // First without recomputation and offloading: the better the strategies found so far, the more the bounds cut.
    progress.start("ways to run", 2 * frontier_.size());
    std::vector<const Work*> visited;
    while (const Work* work = frontier_.next(best_.too_slow())) {
      visited.push_back(work);
      if (!progress.advance()) break;
      if (prune_) price(*work, true);
    }
    for (const Work* work : visited) {
      if (prune_ && work->floor >= best_.too_slow()) break;
      if (!progress.advance()) break;
      price(*work, false);
    }
    if (known_floors_) *known_floors_ = frontier_.floors();
    if (best_.empty() && progress.is_stopped()) return interrupted();
    if (wants_closest && best_.empty() && std::isinf(best_.too_slow().value())) {
      ClosestSearch(closest_input()).run(all, found_);
    }
    found_.best = std::move(best_).sorted();
    return std::move(found_);
  }

  bool any_fits() { return ClosestSearch(closest_input()).any_fits(space_.meshes()); }

 private:
  using Mesh = WorkMesh;
  using Work = TrainingWork;
  using Orders = OrdersByOffload;

  ClosestInput closest_input() {
    return {question_, choices_, space_, policies_, numbers_, profiles_, layers_, linker_, fit_};
  }

  /// Prices everything that computes as `work` says, under every policy, unless a bound rules it out or less work fits.
  void price(Work work, bool is_simple) {
    training::Strategy s = frontier_.strategy_of(work);
    Mesh& mesh = frontier_.mesh_of(work);
    if (settled_[work.number] + 1u == 1u << mesh.sharings.size()) return;
    for (std::size_t i = 0; i < mesh.sharings.size(); ++i) {
      if (settled_[work.number] >> i & 1u) continue;
      s.parallelism.zero = mesh.sharings[i].zero;
      // Too slow with the least work is too slow with more, and what fits needs no more.
      work.policy = 0;
      s.recompute = policies_[0];
      const WeightsTimes& least = weight_traffic(s, work, i).least;
      const std::size_t way = work.traffic_index(i);
      const auto is_worth_it = [&](std::size_t inner, const WeightsTimes& weights) {
        return may_be_fast(weights, s, work, inner, work.possible & mesh.unbeaten_orders);
      };
      bool is_settled = is_simple;
      if (is_worth_it(mesh.inner, least)) {
        left_.assign(policies_.size(), std::nullopt);
        fitting_.assign(policies_.size(), {});
        std::optional<bool> is_open;  // memory does not depend on places
        const auto has_work = [&] {
          if (!is_open) is_open = has_open(s, work, i, is_simple);
          return *is_open;
        };
        if (mesh.places.empty() && has_work()) mesh.places = places_.all(s.parallelism);
        for (AlikePlaces& at : mesh.places)
          if (is_worth_it(at.inner, at.is_known(way) ? at.weights[way].least : least)) {
            if (!has_work()) break;
            if (price_alike(s, work, i, at, is_simple)) is_settled = false;
          }
        if (is_open == false) is_settled = false;
      }
      if (is_settled) settled_[work.number] = static_cast<std::uint8_t>(settled_[work.number] | 1u << i);
    }
  }

  /// Whether some policy leaves anything to price that may be fast enough, by a bound over all placements of the mesh.
  bool has_open(training::Strategy s, Work work, std::size_t i, bool is_simple) {
    const Mesh& mesh = frontier_.mesh_of(work);
    for (work.policy = 0; work.policy < (is_simple ? 1 : policies_.size()); ++work.policy) {
      s.recompute = policies_[work.policy];
      const auto is_worth_it = [&](std::uint64_t orders) {
        return may_be_fast(weight_traffic(s, work, i).least, s, work, mesh.inner, orders);
      };
      if (work.policy > 0 && !is_worth_it(work.possible & mesh.unbeaten_orders)) continue;
      std::uint64_t orders = 0;
      for (const std::uint64_t each : orders_left(work, i, is_simple)) orders |= each & work.possible;
      if (orders != 0 && is_worth_it(orders)) return true;
    }
    return false;
  }

  /// Prices equivalent placements; true if policies that recompute more may be worth pricing.
  bool price_alike(training::Strategy s, Work work, std::size_t i, AlikePlaces& alike, bool is_simple) {
    const Mesh& mesh = frontier_.mesh_of(work);
    const training::TrainingProfile& traffic = *weight_traffic(s, work, i).traffic;
    const training::RoleSets sets = training::role_sets(traffic);
    const std::size_t way = work.traffic_index(i);
    if (!alike.is_known(way)) {
      alike.weights.resize(mesh.weight_traffics.size());
      for (PlacedMesh& placed : alike.placements) {
        places_.lay(s.parallelism, placed, sets);
        alike.weights[way].add(bound_.weights_times(traffic, places_.links(s.parallelism, placed)));
      }
    }
    const AlikePlaces::Weights& weights_at = alike.weights[way];
    for (work.policy = 0; work.policy < (is_simple ? 1 : policies_.size()); ++work.policy) {
      s.recompute = policies_[work.policy];
      const auto is_worth_it = [&](const WeightsTimes& weights, std::uint64_t orders) {
        return may_be_fast(weights, s, work, alike.inner, orders);
      };
      if (!is_worth_it(weights_at.least, work.possible & mesh.unbeaten_orders)) {
        if (work.policy == 0) return false;  // with more work it is no faster
        continue;
      }
      const Orders left = orders_left(work, i, is_simple);
      std::uint64_t orders = 0;
      for (const std::uint64_t each : left) orders |= each & work.possible;
      if (orders == 0 || !is_worth_it(weights_at.least, orders)) continue;
      const training::TrainingProfile& profile = frontier_.priced(work).profile;
      for (std::size_t at = 0; at < alike.placements.size(); ++at) {
        PlacedMesh& placed = alike.placements[at];
        if (alike.placements.size() > 1 && !is_worth_it(weights_at.each[at], orders)) continue;
        s.layout = placed.layout;
        places_.lay(
            s.parallelism, placed,
            sets | training::role_sets(profile) | training::RoleSets{1} << training::role_bit(training::Role::tensor));
        const training::StageLinks& links = places_.links(s.parallelism, placed);
        training::fill_passes({question_, s, profile, &traffic, links}, steady_);
        price_passes(s, left, orders, mesh, {links, profile, traffic});
      }
    }
    work.policy = 0;
    return fitting_orders(work, i, training::Offload::none) != mesh.every_order();
  }

  /// What the passes in steady_ belong to.
  struct PassesOf {
    const training::StageLinks& links;
    const training::TrainingProfile& profile;
    const training::TrainingProfile& traffic;
  };
  /// Prices the stages of a microbatch whose passes are known.
  void price_passes(training::Strategy s, const Orders& left, std::uint64_t fast, const Mesh& mesh,
                    const PassesOf& of) {
    bound_.fill(steady_, least_);
    std::uint64_t slow = 0;
    with_.orders.each({least_, s, mesh, steady_.hop, fast, best_.too_slow()}, [&](std::uint64_t orders, Seconds least) {
      if (least >= best_.too_slow()) slow |= orders;
      for (; orders != 0; orders &= orders - 1) floors_[static_cast<std::size_t>(std::countr_zero(orders))] = least;
      return true;
    });
    if (prune_) fast &= ~slow;
    for (const AlikeOrders& alike : mesh.layers->alike) {
      const std::uint64_t of_split = alike.orders & fast;
      if (of_split == 0) continue;
      for (const training::Offload offload : choices_.offloads) {
        s.offload = offload;
        const std::uint64_t orders = left[static_cast<std::size_t>(offload)] & of_split;
        if (orders == 0) continue;
        training::fill_stages({question_, s, of.profile, &of.traffic, of.links}, alike.split, steady_);
        if (prune_ && bound_.step(bound_.slowest_stage(steady_)) >= best_.too_slow()) continue;
        take_orders(s, mesh, orders, [&](const training::Strategy& one, const OrderLayers& layers) {
          events_.fill({question_, one, of.profile, &of.traffic, of.links}, alike.split, layers.runs, steady_);
        });
      }
    }
  }

  /// Simulates events for what bounds leave, the most promising first.
  template <class F>
  void take_orders(training::Strategy s, const Mesh& mesh, std::uint64_t orders, F&& fill_events) {
    while (orders != 0) {
      auto o = static_cast<std::size_t>(std::countr_zero(orders));
      for (std::uint64_t rest = orders; rest != 0; rest &= rest - 1)
        if (const auto other = static_cast<std::size_t>(std::countr_zero(rest)); floors_[other] < floors_[o]) o = other;
      orders &= ~(std::uint64_t{1} << o);
      if (prune_ && floors_[o] >= best_.too_slow()) return;
      s.schedule = mesh.orders[o].schedule;
      s.interleave = mesh.orders[o].interleave;
      Candidate candidate{s, training::training_cost(steady_, s)};
      ++found_.count.evaluated;
      if (fit_.excess(candidate.cost) > Bytes()) continue;
      ++found_.count.feasible;
      if (floors_[o] >= best_.too_slow() || candidate.cost.estimate >= best_.too_slow()) continue;
      if (s.parallelism.pipeline > 1) {
        fill_events(s, mesh.layers->each[o]);
        if (bound_.step(events_.least()) >= best_.too_slow()) continue;
        training::set_interval(steady_, events_.interval(), candidate.cost);
        if (candidate.cost.estimate >= best_.too_slow()) continue;
      }
      best_.take(candidate);
    }
  }

  /// Activations that go to the host pass its link twice; a stage has at least the mean of all.
  bool is_too_slow(const Work& work, training::Offload offload) {
    if (!training::moves_activations(offload)) return false;
    const training::Strategy s = frontier_.strategy_of(work);
    const training::TrainingProfile& profile = frontier_.priced(work).profile;
    Bytes kept;
    for (const clock::StageSplit::Part& part : layers_.of({}).alike.front().split.parts)
      for (std::size_t k = 0; k < profile.kinds.size(); ++k) kept += part.layers[k] * profile.kinds[k].kept;
    kept *=
        training::kept_over_fewest(question_.setup.effects, s.recompute) / static_cast<double>(s.parallelism.pipeline);
    return bound_.step(training::microbatches(question_, s) * 2.0 * kept / question_.host.rate) >= best_.too_slow();
  }

  /// Orders of stages worth pricing with the `i`-th sharding of weights: those that fit, unless a subset of the same
  /// work fits. Copies and recomputation only add time, with one exception: recomputation saves copies of activations,
  /// so once activations go to the host, a policy says nothing about those that recompute more.
  const Orders& orders_left(const Work& work, std::size_t i, bool is_simple) {
    std::optional<Orders>& left = left_[work.policy];
    if (!left) left = made_orders_left(work, i, is_simple);
    return *left;
  }
  Orders made_orders_left(const Work& work, std::size_t i, bool is_simple) {
    using enum training::Offload;
    Orders left{};
    for (const training::Offload offload : choices_.offloads)
      // The simplest is priced first, and skipped with the rest.
      if (const bool is_first = work.policy == 0 && offload == choices_.offloads.front();
          is_simple ? is_first : !prune_ || !is_first)
        orders_with(left, offload) = frontier_.mesh_of(work).every_order();
    Work less = work;
    for (less.policy = 0; less.policy < work.policy; ++less.policy) {
      if (!policies_[work.policy].includes(policies_[less.policy])) continue;
      const std::uint64_t fit = fitting_orders(less, i, none);
      for (std::uint64_t& orders : left) orders &= ~fit;
      if (orders_with(left, optimizer) | orders_with(left, both)) {
        const std::uint64_t without_states = fitting_orders(less, i, optimizer);
        for (const training::Offload more : {optimizer, both}) orders_with(left, more) &= ~without_states;
      }
      if (left == Orders{}) return left;
    }
    for (const training::Offload more : {none, optimizer, activations, both}) {
      std::uint64_t& orders = orders_with(left, more);
      if (more != none && orders != 0) orders &= ~fitting_orders(work, i, none);
      for (const training::Offload fewer : {optimizer, activations})
        if (more == both && orders != 0) orders &= ~fitting_orders(work, i, fewer);
      if (prune_ && orders != 0) orders &= is_too_slow(work, more) ? 0 : fitting_orders(work, i, more);
    }
    return left;
  }

  /// Orders of stages under which work fits into memory; none where the user did not allow that.
  std::uint64_t fitting_orders(const Work& work, std::size_t i, training::Offload offload) {
    const Mesh& mesh = frontier_.mesh_of(work);
    if (!mesh.sharings[i].allows(offload)) return 0;
    std::optional<std::uint64_t>& known = fitting_[work.policy][static_cast<std::size_t>(offload)];
    if (known) return *known;
    training::Strategy s = frontier_.strategy_of(work);
    s.parallelism.zero = mesh.sharings[i].zero;
    s.offload = offload;
    const training::TrainingProfile &profile = frontier_.priced(work).profile,
                                    &traffic = *weight_traffic(s, work, i).traffic;
    std::uint64_t bits = mesh.every_order() & ~work.possible;  // what no schedule can run needs no more of them
    for (const AlikeOrders& alike : mesh.layers->alike) {
      const std::uint64_t of_split = alike.orders & work.possible;
      if (of_split == 0) continue;
      const training::MicrobatchCost& memory = fit_.memory(s, profile, &traffic, alike.split);
      if (least_memory(memory) > fit_.capacity()) continue;
      for (std::size_t o = 0; o < mesh.orders.size(); ++o) {
        if (!(of_split >> o & 1u)) continue;
        s.schedule = mesh.orders[o].schedule;
        s.interleave = mesh.orders[o].interleave;
        if (fit_.fits(memory, s)) bits |= std::uint64_t{1} << o;
      }
    }
    known = bits;
    return bits;
  }

  /// Whether one of some orders of stages may be fast enough, with the traffic of weights.
  bool may_be_fast(const WeightsTimes& weights, const training::Strategy& s, const Work& of, std::size_t inner,
                   std::uint64_t orders) {
    if (!prune_) return true;
    least_ = frontier_.least_times(s, of, inner, with_);
    bound_.add_weights(weights, least_);
    bool is_fast = false;
    with_.orders.each({least_, s, frontier_.mesh_of(of), {}, orders, best_.too_slow()},
                      [&](std::uint64_t, Seconds least) { return !(is_fast = least < best_.too_slow()); });
    return is_fast;
  }

  const WeightTraffic& weight_traffic(const training::Strategy& s, const Work& of, std::size_t i) {
    WeightTraffic& weights = frontier_.mesh_of(of).weight_traffics[of.traffic_index(i)];
    if (weights.traffic) return weights;
    weights.traffic = &profiles_.sharing_of(s);
    linker_.least_links(s.parallelism, training::role_sets(*weights.traffic), least_links_);
    weights.least = bound_.weights_times(*weights.traffic, least_links_);
    return weights;
  }

  const training::TrainingQuestion& question_;
  const TrainingChoices& choices_;
  TrainingSpace space_;
  LayersOfOrders layers_;
  std::vector<lower::Recompute> policies_;
  TrainingProfiles& profiles_;
  std::vector<std::size_t> numbers_;  ///< numbers of the policies in the profiles
  TrainingFit fit_;
  BestStrategies best_;
  std::vector<Seconds>* known_floors_;  ///< see SearchLimits
  bool prune_;
  TrainingBound bound_;
  training::StageLinker& linker_;
  TrainingPlaces places_;
  SearchFrontier frontier_;
  SearchFrontier::Bounding with_;  ///< for work that is priced
  TrainingSearch found_;
  training::StageLinks least_links_;
  training::MicrobatchCost steady_;
  training::StepEvents events_;
  std::array<Seconds, most_orders> floors_{};  ///< lower bounds on a step of the passes in steady_, by order
  LeastTimes least_;
  // By policy, for one sharding of weights:
  std::vector<std::optional<Orders>> left_;                                      ///< see orders_left()
  std::vector<std::array<std::optional<std::uint64_t>, offload_ways>> fitting_;  ///< see fitting_orders()
  std::vector<std::uint8_t> settled_;  ///< by work: shardings of weights that need no more than the least work
};

}  // namespace

TrainingCaches::TrainingCaches(const training::TrainingQuestion& of_question, std::int64_t of_sequence,
                               const hardware::Cluster& of_cluster, TrainingProfiles* shared)
    : question(of_question),
      sequence(of_sequence),
      cluster(of_cluster),
      own(question, sequence),
      profiles(shared ? *shared : own),
      linker(cluster, question.collectives ? &*question.collectives : nullptr,
             training::routing_of(*question.setup.model, question.setup.dispatch)),
      inner(linker) {
  profiles.trim(nullptr);
}

Result<TrainingSearch> search_training(TrainingCaches& caches, const TrainingChoices& choices,
                                       const SearchLimits& limits) {
  caches.profiles.trim(&caches.inner);
  if (limits.budget < limits.capacity) {
    SearchLimits within = limits;
    within.capacity = limits.budget;
    Result<TrainingSearch> found = StrategySearcher(caches, choices, within).run(false);
    if (!found || !found->best.empty() || !std::isinf(limits.slowest.value())) return found;
  }
  return StrategySearcher(caches, choices, limits).run(true);
}

bool any_fits(TrainingCaches& caches, const TrainingChoices& choices, Bytes capacity) {
  caches.profiles.trim(&caches.inner);
  return StrategySearcher(caches, choices, {capacity}).any_fits();
}

Result<TrainingSearch> search_training(const training::TrainingQuestion& question, std::int64_t sequence,
                                       const hardware::Cluster& cluster, const TrainingChoices& choices,
                                       const SearchLimits& limits) {
  TrainingCaches caches(question, sequence, cluster, limits.profiles);
  return search_training(caches, choices, limits);
}

}  // namespace assay::search
