#include "assay/search/training_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <unordered_map>

#include "assay/base/text.h"
#include "assay/schedule/repeatable_layer.h"

namespace assay {
namespace {

struct KeyHash {
  std::size_t operator()(const ProfileKey& key) const {
    std::uint64_t h = 1469598103934665603ull;
    const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 1099511628211ull; };
    mix(static_cast<std::uint64_t>(key.tensor)), mix(static_cast<std::uint64_t>(key.context));
    mix(static_cast<std::uint64_t>(key.expert)), mix(static_cast<std::uint64_t>(key.micro_batch));
    mix((key.fsdp ? 1u : 0u) | (key.replicas ? 2u : 0u) | static_cast<unsigned>(key.zero) << 2 |
        static_cast<unsigned>(key.residual) << 4 | static_cast<unsigned>(key.context_scheme) << 6 |
        (key.expert_over.tensor ? 128u : 0u) | (key.expert_over.context ? 256u : 0u));
    return static_cast<std::size_t>(h);
  }
};

/// Whether two layouts differ in nothing that costs time.
bool same_costs(const StageLinks& a, const StageLinks& b) {
  const auto same = [](const CollectiveLine& x, const CollectiveLine& y) {
    return x.rate.value() == y.rate.value() && x.floor == y.floor;
  };
  if (a.resources != b.resources || a.forms != b.forms || !same(a.between_stages, b.between_stages)) return false;
  for (std::size_t i = 0; i < a.lines.size(); ++i)
    for (std::size_t k = 0; k < a.lines[i].size(); ++k)
      if (!same(a.lines[i][k], b.lines[i][k])) return false;
  return true;
}

/// Best first: work is visited in order of a bound on its time, so the first that is slower than all that are wanted
/// ends the search.
class Searcher {
 public:
  Searcher(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
           const TrainingChoices& choices, double capacity, std::size_t top, bool prune, double slowest)
      : question_(question),
        model_(*question.setup.model),
        sequence_(sequence),
        cluster_(cluster),
        choices_(choices),
        space_(question, sequence, cluster, choices),
        policies_(space_.policies()),
        capacity_(capacity),
        top_(top),
        prune_(prune),
        worst_(slowest),
        stragglers_(straggler_share(question)) {}

  Result<TrainingSearch> run() {
    const std::vector<Parallelism> all = space_.meshes();
    if (all.empty()) return nothing_matches();
    for (const Parallelism& p : all) list_work(p);
    std::sort(works_.begin(), works_.end(), sooner);
    settled_.resize(works_.size() + 1);
    // First what makes nothing again and moves nothing to the host: bounds are worth what has been found before.
    for (const bool is_simple : {true, false})
      for (const Work& work : works_) {
        if (prune_ ? work.floor >= worst_ : is_simple) break;
        price(work, is_simple);
      }
    if (found_.best.empty() && std::isinf(worst_)) find_closest(all);
    std::stable_sort(found_.best.begin(), found_.best.end(), faster);
    return std::move(found_);
  }

 private:
  struct Placed {
    std::uint8_t layout = 0;
    std::size_t inner = 0;  ///< see inner_of()
    StageLinks links;
  };
  /// Estimates of collectives over sets of expert, context and tensor axes.
  using InnerForms = std::array<std::array<CollectiveForm, 4>, 8>;
  static constexpr std::size_t offload_ways = std::size(offload_names);
  /// Where weights, gradients and states lie.
  struct Sharing {
    int zero = 0;
    std::uint8_t offloads = 0;  ///< a bit each: with which weights and optimizer states alone fit

    bool allows(Offload offload) const { return offloads >> static_cast<unsigned>(offload) & 1u; }
  };
  struct Mesh {
    Parallelism parallelism;
    std::vector<Sharing> sharings;
    std::vector<StageOrder> orders;
    std::vector<Placed> placements;  ///< that are possible and do not cost the same as another

    std::uint64_t every_order() const { return ~std::uint64_t{0} >> (64 - orders.size()); }
    std::array<std::uint64_t, std::size(stage_layouts)> by_layout{};

    std::uint64_t orders_of(StageLayout layout) const { return by_layout[static_cast<std::size_t>(layout)]; }
  };
  /// Orders of a mesh's stages, a bit each, by what lies on the host.
  using Orders = std::array<std::uint64_t, offload_ways>;
  static std::uint64_t& orders_with(Orders& orders, Offload offload) {
    return orders[static_cast<std::size_t>(offload)];
  }
  /// What nothing hides: of a layer of each kind, the embedding and the head.
  struct Least {
    struct Share {
      double passes = 0;              ///< seconds of a microbatch
      double reduce = 0, behind = 0;  ///< seconds of gradients once a step, and of the backward pass beside them
      void add(const Share& other, double times) {
        passes += times * other.passes, reduce += times * other.reduce, behind += times * other.behind;
      }
    };
    FixedList<Share, max_layer_kinds> kinds;
    Share embedding, head;
  };
  /// What a microbatch computes under a policy, and the least that it takes by the links of its inner axes.
  struct Priced {
    TrainingProfile profile;
    std::vector<std::pair<std::size_t, Least>> least;  ///< by Placed::inner
  };
  struct Microbatch {
    PolicyProfiles profiles;
    std::vector<std::unique_ptr<Priced>> policies;  ///< made when asked for
  };
  /// All strategies of a mesh that compute the same: they differ in how weights are shared out, in the order of
  /// stages and in placement.
  struct Work {
    double floor = 0;  ///< seconds that no such strategy is faster than
    std::int64_t micro_batch = 1;
    std::uint32_t mesh = 0;
    ResidualScheme residual = ResidualScheme::replicated;
    ContextScheme context_scheme = ContextScheme::gather;
    std::uint8_t policy = 0;     ///< of policies_
    std::uint64_t possible = 0;  ///< orders of stages that exist for as many microbatches
    std::uint32_t group = 0;     ///< its number
  };

  static bool sooner(const Work& a, const Work& b) {
    return a.floor != b.floor ? a.floor < b.floor : a.group < b.group;
  }
  static bool faster(const Candidate& a, const Candidate& b) { return a.cost.estimate < b.cost.estimate; }

  void list_work(const Parallelism& p) {
    const std::int64_t per_group = space_.per_group(p);
    if (per_group == 0) return;
    const auto micro_batches = space_.micro_batches(per_group);
    const auto residuals = space_.residuals(p);
    const auto schemes = space_.context_schemes(p);
    const auto zeros = space_.zeros(p);
    const auto layouts = space_.layouts(p);
    Mesh mesh{p, {}, space_.orders(p), {}, {}};
    if (mesh.orders.size() > 64) throw InternalError("more orders of stages than bits");
    for (std::size_t o = 0; o < mesh.orders.size(); ++o)
      mesh.by_layout[static_cast<std::size_t>(layout_of(mesh.orders[o].schedule))] |= std::uint64_t{1} << o;
    found_.count.considered +=
        static_cast<std::int64_t>(micro_batches.size() * residuals.size() * schemes.size() * policies_.size() *
                                  zeros.size() * choices_.offloads.size() * mesh.orders.size() * layouts.size());
    for (int zero : zeros) {
      Sharing sharing{zero, 0};
      for (Offload offload : choices_.offloads) {
        Strategy s;
        s.parallelism = p, s.parallelism.zero = zero, s.offload = offload;
        if (!prune_ || state_bytes(s) <= capacity_)
          sharing.offloads = static_cast<std::uint8_t>(sharing.offloads | 1u << static_cast<unsigned>(offload));
      }
      if (sharing.offloads != 0) mesh.sharings.push_back(sharing);
    }
    if (mesh.sharings.empty()) return;
    mesh.placements = placements(p, layouts);
    meshes_.push_back(std::move(mesh));
    Work work;
    work.mesh = static_cast<std::uint32_t>(meshes_.size() - 1);
    work.group = works_.empty() ? 0 : works_.back().group;  // nothing is taken before all is listed
    for (ResidualScheme residual : residuals)
      for (ContextScheme scheme : schemes)
        for (std::int64_t micro : micro_batches) {
          work.residual = residual, work.context_scheme = scheme, work.micro_batch = micro;
          // What is computed again comes on top, so that other policies are looked at once this one is.
          work.possible = possible_orders(strategy_of(work), meshes_.back());
          if (work.possible == 0) continue;
          work.floor = prune_ ? floor_of(strategy_of(work), work) : 0.0;
          ++work.group;
          works_.push_back(work);
        }
  }

  Strategy strategy_of(const Work& work) const {
    Strategy s;
    s.parallelism = meshes_[work.mesh].parallelism;
    s.parallelism.residual = work.residual, s.parallelism.context_scheme = work.context_scheme;
    s.micro_batch = work.micro_batch, s.recompute = policies_[work.policy];
    return s;
  }

  /// Prices everything that computes as `work` says, under every policy, unless a bound rules it out or less work fits.
  void price(Work work, bool is_simple) {
    Strategy s = strategy_of(work);
    const Mesh& mesh = meshes_[work.mesh];
    if (settled_[work.group] + 1u == 1u << mesh.sharings.size()) return;
    const TrainingProfile& least_work = priced(s, 0).profile;
    const std::size_t offloads = is_simple ? 1 : choices_.offloads.size();
    for (std::size_t i = 0; i < mesh.sharings.size(); ++i) {
      if (settled_[work.group] >> i & 1u) continue;
      bool is_settled = is_simple;
      s.parallelism.zero = mesh.sharings[i].zero;
      const TrainingProfile& traffic = sharing_of(s);
      left_.assign(policies_.size(), std::nullopt);
      for (const Placed& placed : mesh.placements) {
        s.layout = placed.layout;
        fill_passes(question_, s, least_work, &traffic, placed.links, steady_);
        work.policy = 0, s.recompute = policies_[0];
        // What is too slow with the least work is so with more, and what fits needs no more.
        if (!price_passes(s, work, i, placed, least_work, traffic, offloads)) continue;
        if (fitting_orders(work, i, Offload::none) == mesh.every_order()) continue;
        is_settled = false;
        for (work.policy = 1; work.policy < policies_.size() && !is_simple; ++work.policy) {
          s.recompute = policies_[work.policy];
          if (prune_ && floor_of(s, work) >= worst_) continue;
          const TrainingProfile& profile = priced(s, work.policy).profile;
          for (std::size_t k = 0; k < steady_.layers.size(); ++k)  // all that a policy changes
            steady_.layers[k][1] = pass_time(profile.kinds[k].backward, traffic.kinds[k].backward.traffic, placed.links,
                                             question_.overlap, question_.setup.effects);
          price_passes(s, work, i, placed, profile, traffic, offloads);
        }
      }
      if (is_settled) settled_[work.group] = static_cast<std::uint8_t>(settled_[work.group] | 1u << i);
    }
  }

  /// Prices the stages of a microbatch whose passes are known; false where all are too slow whatever is done once.
  bool price_passes(Strategy s, const Work& work, std::size_t i, const Placed& placed, const TrainingProfile& profile,
                    const TrainingProfile& traffic, std::size_t offloads) {
    const Mesh& mesh = meshes_[work.mesh];
    const double m = microbatches(question_, s);
    const Least least = least_of(steady_);
    bool may_be_fast = false;
    for (const StageLayout layout : stage_layouts) {
      const std::uint64_t of_split = mesh.orders_of(layout) & work.possible;
      if (of_split == 0) continue;
      const StageSplit& split = split_of(s.parallelism.pipeline, layout);
      if (prune_ && least_step(slowest_stage(least, m, split) + 2.0 * m * steady_.hop) >= worst_) continue;
      may_be_fast = true;
      std::optional<Orders>& left = left_[work.policy];
      if (!left) left = orders_left(work, i, offloads);
      for (std::size_t o = 0; o < offloads; ++o) {
        s.offload = choices_.offloads[o];
        const std::uint64_t orders = orders_with(*left, s.offload) & of_split;
        if (orders == 0) continue;
        fill_stages(question_, s, profile, &traffic, placed.links, split, steady_);
        if (!prune_ || least_seconds(steady_) < worst_) take_orders(s, mesh, orders);
      }
    }
    return may_be_fast;
  }

  void take_orders(Strategy s, const Mesh& mesh, std::uint64_t orders) {
    for (std::size_t o = 0; o < mesh.orders.size(); ++o) {
      const StageOrder& order = mesh.orders[o];
      if (!(orders >> o & 1u)) continue;
      s.schedule = order.schedule, s.interleave = order.interleave;
      take({s, training_cost(steady_, s)});
    }
  }

  std::uint64_t possible_orders(const Strategy& s, const Mesh& mesh) const {
    const auto m = static_cast<std::int64_t>(microbatches(question_, s));
    std::uint64_t bits = 0;
    for (std::size_t o = 0; o < mesh.orders.size(); ++o)
      if (is_possible(s, mesh.orders[o], m)) bits |= std::uint64_t{1} << o;
    return bits;
  }
  static bool is_possible(const Strategy& s, const StageOrder& order, std::int64_t m) {
    const std::int64_t stages = s.parallelism.pipeline;
    return stages == 1 || assay::is_possible({order.schedule, stages, m, order.interleave});
  }

  /// Activations that go to the host pass its link twice; a stage has at least the mean of all.
  bool is_too_slow(const Work& work, Offload offload) {
    if (!moves_activations(offload)) return false;
    const Strategy s = strategy_of(work);
    const TrainingProfile& profile = priced(s, work.policy).profile;
    double kept = 0.0;
    for (const StageSplit::Part& part : split_of(1, StageLayout::straight).parts)
      for (std::size_t k = 0; k < profile.kinds.size(); ++k) kept += part.layers[k] * profile.kinds[k].kept.value();
    kept *= kept_over_fewest(question_.setup.effects, s.recompute) / static_cast<double>(s.parallelism.pipeline);
    return least_step(microbatches(question_, s) * 2.0 * kept / question_.host.rate) >= worst_;
  }

  /// Orders of stages worth pricing where weights are shared out in the `i`-th way: those that fit, where nothing fits
  /// that does a part of the same. Copies and work done again only add, but for one thing: work done again spares
  /// copies of activations, so that a policy says nothing of those that make more again once activations go to the
  /// host.
  Orders orders_left(const Work& work, std::size_t i, std::size_t offloads) {
    using enum Offload;
    Orders left{};
    for (std::size_t o = 0; o < offloads; ++o)
      orders_with(left, choices_.offloads[o]) = meshes_[work.mesh].every_order();
    Work less = work;
    for (less.policy = 0; less.policy < work.policy; ++less.policy) {
      if (!policies_[work.policy].includes(policies_[less.policy])) continue;
      const std::uint64_t fit = fitting_orders(less, i, none);
      for (std::uint64_t& orders : left) orders &= ~fit;
      if (orders_with(left, optimizer) | orders_with(left, both)) {
        const std::uint64_t without_states = fitting_orders(less, i, optimizer);
        for (const Offload more : {optimizer, both}) orders_with(left, more) &= ~without_states;
      }
      if (left == Orders{}) return left;
    }
    for (const Offload more : {none, optimizer, activations, both}) {
      std::uint64_t& orders = orders_with(left, more);
      if (more != none && orders != 0) orders &= ~fitting_orders(work, i, none);
      for (const Offload fewer : {optimizer, activations})
        if (more == both && orders != 0) orders &= ~fitting_orders(work, i, fewer);
      if (prune_ && orders != 0) orders &= is_too_slow(work, more) ? 0 : fitting_orders(work, i, more);
    }
    return left;
  }

  /// Orders of stages under which work fits into memory; none where the user did not allow that.
  std::uint64_t fitting_orders(const Work& work, std::size_t i, Offload offload) {
    const Mesh& mesh = meshes_[work.mesh];
    if (!mesh.sharings[i].allows(offload)) return 0;
    const std::uint64_t key =
        ((std::uint64_t{work.group} * 16 + work.policy) * 4 + i) * offload_ways + static_cast<std::uint64_t>(offload);
    const auto [known, is_new] = fitting_.try_emplace(key);
    std::uint64_t& bits = known->second;
    if (!is_new) return bits;
    Strategy s = strategy_of(work);
    s.parallelism.zero = mesh.sharings[i].zero, s.offload = offload;
    const TrainingProfile &profile = priced(s, work.policy).profile, &traffic = sharing_of(s);
    sizes_only_.size = role_sizes(s.parallelism);
    bits = mesh.every_order() & ~work.possible;  // what no schedule can run needs no more of them
    for (const StageLayout layout : stage_layouts) {
      const std::uint64_t of_split = mesh.orders_of(layout) & work.possible;
      if (of_split == 0) continue;
      fill_memory(question_, s, profile, &traffic, sizes_only_, split_of(s.parallelism.pipeline, layout), scratch_);
      if (least_memory(scratch_) > capacity_) continue;
      for (std::size_t o = 0; o < mesh.orders.size(); ++o) {
        if (!(of_split >> o & 1u)) continue;
        s.schedule = mesh.orders[o].schedule, s.interleave = mesh.orders[o].interleave;
        if (fits(scratch_, s)) bits |= std::uint64_t{1} << o;
      }
    }
    return bits;
  }

  bool fits(const SteadyCost& steady, const Strategy& s) const {
    for (const SteadyCost::Part& part : steady.parts) {
      const MemoryParts memory = memory_at(steady, part, s);
      if (memory.total() > capacity_ || memory.host > question_.host.capacity) return false;
    }
    return true;
  }

  /// Bytes that are too many, on the chip and on its host.
  double excess(const TrainingCost& cost) const {
    return std::max(0.0, cost.memory.total() - capacity_) + std::max(0.0, cost.host_memory - question_.host.capacity);
  }

  void take(const Candidate& candidate) {
    ++found_.count.evaluated;
    if (excess(candidate.cost) > 0.0) return;
    ++found_.count.feasible;
    if (candidate.cost.estimate >= worst_) return;
    // The same on other links is no other strategy.
    const auto same = std::find_if(found_.best.begin(), found_.best.end(), [&](const Candidate& other) {
      Strategy moved = other.strategy;
      moved.layout = candidate.strategy.layout;
      return moved == candidate.strategy;
    });
    if (same == found_.best.end())
      found_.best.push_back(candidate);
    else if (faster(candidate, *same))
      *same = candidate;
    if (found_.best.size() > top_) found_.best.erase(std::max_element(found_.best.begin(), found_.best.end(), faster));
    if (found_.best.size() == top_)
      worst_ = std::max_element(found_.best.begin(), found_.best.end(), faster)->cost.estimate;
  }

  /// Where nothing fits: what is nearest to it, looked for among what shares out most first.
  void find_closest(const std::vector<Parallelism>& all) {
    std::vector<std::pair<double, Strategy>> meshes;
    Strategy shared;
    for (const Parallelism& p : all)
      if (space_.per_group(p) > 0)
        for (int zero : space_.zeros(p))
          for (Offload offload : choices_.offloads) {
            shared.parallelism = p, shared.parallelism.zero = zero, shared.offload = offload;
            meshes.emplace_back(state_bytes(shared), shared);
          }
    std::stable_sort(meshes.begin(), meshes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [floor, start] : meshes) {
      if (floor - capacity_ >= least) break;
      const Parallelism& mesh = start.parallelism;
      const auto placed = placements(mesh, space_.layouts(mesh));
      if (placed.empty()) continue;
      for (ResidualScheme residual : space_.residuals(mesh))
        for (ContextScheme scheme : space_.context_schemes(mesh))
          for (std::int64_t micro : space_.micro_batches(space_.per_group(mesh)))
            for (std::size_t policy = 0; policy < policies_.size(); ++policy) {
              Strategy s = start;
              s.parallelism.residual = residual, s.parallelism.context_scheme = scheme;
              s.micro_batch = micro, s.recompute = policies_[policy];
              take_closest(s, policy, placed.front(), least);
            }
    }
  }

  /// Memory does not depend on placement: one layout that exists will do.
  void take_closest(Strategy s, std::size_t policy, const Placed& placed, double& least) {
    s.layout = placed.layout;
    const TrainingProfile &profile = priced(s, policy).profile, &traffic = sharing_of(s);
    fill_passes(question_, s, profile, &traffic, placed.links, steady_);
    std::optional<StageLayout> filled;
    for (const StageOrder& order : space_.orders(s.parallelism)) {
      const StageLayout layout = layout_of(order.schedule);
      if (filled != layout)
        fill_stages(question_, s, profile, &traffic, placed.links, split_of(s.parallelism.pipeline, layout), steady_);
      filled = layout;
      if (least_memory(steady_) - capacity_ >= least) continue;
      if (!is_possible(s, order, static_cast<std::int64_t>(steady_.microbatches))) continue;
      s.schedule = order.schedule, s.interleave = order.interleave;
      const Candidate candidate{s, training_cost(steady_, s)};
      ++found_.count.evaluated;
      if (excess(candidate.cost) >= least) continue;
      least = excess(candidate.cost);
      found_.closest = candidate;
    }
  }

  /// The slowest stage does no less than its arithmetic, its memory traffic and the collectives that wait for each
  /// other. How weights travel comes on top.
  double floor_of(const Strategy& s, const Work& of) {
    double least = std::numeric_limits<double>::infinity();
    const Mesh& mesh = meshes_[of.mesh];
    Priced& work = priced(s, of.policy);
    const double m = microbatches(question_, s);
    for (const Placed& placed : mesh.placements) {
      auto known = std::find_if(work.least.begin(), work.least.end(),
                                [&](const auto& least_on) { return least_on.first == placed.inner; });
      if (known == work.least.end()) {
        fill_passes(question_, s, work.profile, nullptr, placed.links, scratch_);
        known = work.least.insert(known, {placed.inner, least_of(scratch_)});
      }
      for (const StageLayout layout : stage_layouts)
        if (mesh.orders_of(layout) & of.possible)
          least = std::min(least, slowest_stage(known->second, m, split_of(s.parallelism.pipeline, layout)));
    }
    return least_step(least);
  }

  Least least_of(const SteadyCost& steady) const {
    // Schedules may hide as much of the exchange between experts as software lets them.
    const double hidden = 1.0 - std::min(1.0, question_.setup.effects.expert_waited);
    const auto share = [&](const std::array<PassTime, 2>& passes) {
      const auto& [f, b] = passes;
      return Least::Share{f.chain() + f.exposed + b.chain() + b.exposed - hidden * (f.expert + b.expert),
                          f.gradients + b.gradients, b.chain()};
    };
    Least least;
    for (const auto& passes : steady.layers) least.kinds.push_back(share(passes));
    least.embedding = share(steady.embedding), least.head = share(steady.head);
    return least;
  }

  /// Seconds of all microbatches on the slowest stage, and of gradients behind them.
  double slowest_stage(const Least& least, double m, const StageSplit& split) const {
    double most = 0.0;
    for (const StageSplit::Part& part : split.parts) {
      Least::Share sum;
      for (std::size_t k = 0; k < least.kinds.size(); ++k) sum.add(least.kinds[k], part.layers[k]);
      if (part.first) sum.add(least.embedding, 1.0);
      if (part.last) sum.add(least.head, 1.0);
      const double waited =
          question_.overlap ? std::max(question_.setup.effects.gradients_waited * sum.reduce, sum.reduce - sum.behind)
                            : sum.reduce;
      most = std::max(most, part.passed * (m * sum.passes + waited));
    }
    return most;
  }

  /// The same of one placement and one way to share out weights, with all that the slowest stage does once a step; only
  /// the bubble is missing.
  double least_seconds(const SteadyCost& steady) const {
    double most = 0.0;
    for (const SteadyCost::Part& part : steady.parts)
      most = std::max(most, steady.microbatches * part.least() + part.gradients + part.update + part.host.update);
    return least_step(most + steady.microbatches * 2.0 * steady.hop);
  }

  /// A step whose slowest stage takes `stage` seconds. Rounded down: sums in another order differ in their last bits.
  double least_step(double stage) const {
    constexpr double rounding = 1e-12;
    return (1.0 - rounding) * ((1.0 + stragglers_) * stage + question_.setup.effects.fixed.value());
  }

  /// Every schedule holds one microbatch at least.
  static double least_memory(const SteadyCost& steady) {
    double most = 0.0;
    for (const SteadyCost::Part& part : steady.parts) most = std::max(most, memory_holding(steady, part, 1.0).total());
    return most;
  }

  /// Bytes of weights and optimizer states on the fullest stage, whatever is computed and however stages are ordered.
  double state_bytes(const Strategy& s) {
    const Parallelism& p = s.parallelism;
    Strategy any;
    any.parallelism.tensor = p.tensor;
    any.parallelism.expert = p.expert, any.parallelism.data = p.expert_data();
    any.parallelism.expert_over = p.expert_over;
    if (p.expert_over.context) any.parallelism.context = p.context;
    const TrainingProfile& profile = priced(any, 0).profile;
    sizes_only_.size = role_sizes(p);
    double least = std::numeric_limits<double>::infinity();
    for (const StageLayout layout : stage_layouts) {
      if (layout != StageLayout::straight && p.pipeline == 1) break;
      fill_memory(question_, s, profile, nullptr, sizes_only_, split_of(p.pipeline, layout), scratch_);
      double most = 0.0;
      for (const SteadyCost::Part& part : scratch_.parts)
        most = std::max(most, part.memory.weights + part.memory.master + part.memory.moments);
      least = std::min(least, most);
    }
    return least;
  }

  /// What a microbatch computes under a policy: it does not depend on how weights are shared out.
  Priced& priced(const Strategy& strategy, std::size_t policy) {
    ProfileKey key = profile_key(strategy, sequence_);
    key.fsdp = key.replicas = false;
    key.zero = 0;
    key.recompute = Recompute::none();
    auto known = works_made_.find(key);
    if (known == works_made_.end()) {
      Microbatch made{PolicyProfiles(question_.setup, key, ProfilePart::work), {}};
      made.policies.resize(policies_.size());
      known = works_made_.emplace(key, std::move(made)).first;
    }
    std::unique_ptr<Priced>& under = known->second.policies[policy];
    if (!under) under = std::make_unique<Priced>(Priced{known->second.profiles.with(policies_[policy]), {}});
    return *under;
  }

  /// How weights and gradients travel: it does not depend on what a microbatch computes.
  const TrainingProfile& sharing_of(const Strategy& strategy) {
    ProfileKey key = profile_key(strategy, sequence_);
    key.micro_batch = 1;
    key.recompute = Recompute::none();
    key.context_scheme = ContextScheme::gather;
    const auto known = sharings_made_.find(key);
    if (known != sharings_made_.end()) return known->second;
    return sharings_made_.emplace(key, make_profile(question_.setup, key, ProfilePart::weights_traffic)).first->second;
  }

  std::vector<Placed> placements(const Parallelism& p, const std::vector<std::uint8_t>& layouts) {
    std::vector<Placed> kept;
    for (std::uint8_t layout : layouts) {
      const Result<StageLinks> made =
          stage_links(p, layout, cluster_, question_.collectives ? &*question_.collectives : nullptr,
                      routing_of(*question_.setup.model, question_.setup.dispatch));
      if (made &&
          std::none_of(kept.begin(), kept.end(), [&](const Placed& other) { return same_costs(other.links, *made); }))
        kept.push_back({layout, inner_of(*made), *made});
    }
    return kept;
  }

  /// The number of the links of tensor, context and expert axes; the same for placements that agree on them.
  std::size_t inner_of(const StageLinks& links) {
    InnerForms forms;
    for (std::size_t set = 0; set < forms.size(); ++set) forms[set] = links.forms[set << 2];
    static_assert(role_bit(Role::expert) == 1 << 2 && role_bit(Role::tensor) == 1 << 4);
    const auto known = std::find(inner_.begin(), inner_.end(), forms);
    if (known == inner_.end()) return inner_.push_back(forms), inner_.size() - 1;
    return static_cast<std::size_t>(known - inner_.begin());
  }

  const StageSplit& split_of(std::int64_t stages, StageLayout layout) {
    const auto known = splits_.find({stages, layout});
    if (known != splits_.end()) return known->second;
    return splits_.emplace(std::pair(stages, layout), split_stages(model_, stages, layout)).first->second;
  }

  Result<TrainingSearch> nothing_matches() const {
    return fail(
        "strategy", fmt::format("no product of the given parallelism makes {} chips", cluster_.chips()),
        "data x fsdp x tensor x context x pipeline must equal the chips; leave one of them out to have it found");
  }

  const TrainingQuestion& question_;
  const Transformer& model_;
  std::int64_t sequence_;
  const Cluster& cluster_;
  const TrainingChoices& choices_;
  TrainingSpace space_;
  std::vector<Recompute> policies_;
  double capacity_;
  std::size_t top_;
  bool prune_;
  double worst_;  ///< seconds that are too slow: of the slowest of the best found once there are enough
  double stragglers_;
  TrainingSearch found_;
  std::vector<Mesh> meshes_;
  std::vector<Work> works_;
  SteadyCost steady_;
  SteadyCost scratch_;  ///< for bounds and memory, while steady_ is in use
  StageLinks sizes_only_;
  std::unordered_map<ProfileKey, Microbatch, KeyHash> works_made_;
  std::unordered_map<ProfileKey, TrainingProfile, KeyHash> sharings_made_;
  std::vector<InnerForms> inner_;
  std::map<std::pair<std::int64_t, StageLayout>, StageSplit> splits_;
  std::vector<std::optional<Orders>> left_;  ///< see orders_left(), by policy, of one way to share out weights
  std::unordered_map<std::uint64_t, std::uint64_t> fitting_;  ///< see fitting_orders()
  std::vector<std::uint8_t> settled_;  ///< by work: ways to share out weights that need no more than the least work
};

}  // namespace

Result<TrainingSearch> search_training(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                       const TrainingChoices& choices, double capacity, std::size_t top, bool prune,
                                       double slowest) {
  return Searcher(question, sequence, cluster, choices, capacity, top, prune, slowest).run();
}

}  // namespace assay
