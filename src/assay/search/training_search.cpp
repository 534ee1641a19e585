#include "assay/search/training_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "assay/base/text.h"

namespace assay {
namespace {

struct KeyHash {
  std::size_t operator()(const ProfileKey& key) const {
    std::uint64_t h = 1469598103934665603ull;
    const auto mix = [&](std::uint64_t v) { h = (h ^ v) * 1099511628211ull; };
    mix(static_cast<std::uint64_t>(key.tensor)), mix(static_cast<std::uint64_t>(key.context));
    mix(static_cast<std::uint64_t>(key.expert)), mix(static_cast<std::uint64_t>(key.micro_batch));
    mix((key.fsdp ? 1u : 0u) | (key.replicas ? 2u : 0u) | static_cast<unsigned>(key.zero) << 2 |
        static_cast<unsigned>(key.residual) << 4 | static_cast<unsigned>(key.context_scheme) << 6);
    mix(key.recompute.ops);
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
        capacity_(capacity),
        top_(top),
        prune_(prune),
        worst_(slowest),
        stragglers_(straggler_share(question)) {}

  Result<TrainingSearch> run() {
    const std::vector<Parallelism> all = space_.meshes();
    if (all.empty()) return nothing_matches();
    for (const Parallelism& p : all) list_work(p);
    std::make_heap(works_.begin(), works_.end(), later);
    while (!works_.empty() && !(prune_ && works_.front().floor >= worst_)) {
      std::pop_heap(works_.begin(), works_.end(), later);
      const Work work = works_.back();
      works_.pop_back();
      price(work);
      if (work.recompute == space_.policies().front()) list_other_policies(work);
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
  /// Where weights, gradients and states lie.
  struct Sharing {
    int zero = 0;
    Offload offload = Offload::none;
  };
  struct Mesh {
    Parallelism parallelism;
    std::vector<Sharing> sharings;  ///< with which weights and optimizer states alone fit
    std::vector<StageOrder> orders;
    std::vector<Placed> placements;  ///< that are possible and do not cost the same as another

    std::uint64_t every_order() const { return ~std::uint64_t{0} >> (64 - orders.size()); }
    std::uint64_t orders_of(bool folded) const {
      std::uint64_t bits = 0;
      for (std::size_t o = 0; o < orders.size(); ++o)
        if (is_folded(orders[o].schedule) == folded) bits |= std::uint64_t{1} << o;
      return bits;
    }
  };
  /// Orders of a mesh's stages, a bit each, by its sharings.
  struct Fits {
    std::vector<std::uint64_t> orders;
    std::uint64_t every = 0;
    bool all() const {
      return std::all_of(orders.begin(), orders.end(), [&](std::uint64_t bits) { return bits == every; });
    }
  };
  /// Seconds of a microbatch in both passes that nothing hides: a layer of each kind, the embedding and the head.
  struct Least {
    std::vector<double> kinds;
    double embedding = 0, head = 0;

    /// Of the slowest stage.
    double slowest(const StageSplit& split) const {
      double most = 0.0;
      for (const StageSplit::Part& part : split.parts) {
        double sum = (part.first ? embedding : 0.0) + (part.last ? head : 0.0);
        for (std::size_t k = 0; k < kinds.size(); ++k) sum += part.layers[k] * kinds[k];
        most = std::max(most, sum);
      }
      return most;
    }
  };
  /// What a microbatch computes, and the least that it takes by the links of its inner axes.
  struct Microbatch {
    TrainingProfile profile;
    TrainingProfile memory;  ///< the same without its times
    std::vector<std::optional<Least>> least;
  };
  /// All strategies of a mesh that compute the same: they differ in how weights are shared out, in the order of
  /// stages and in placement.
  struct Work {
    double floor = 0;  ///< seconds that no such strategy is faster than
    std::int64_t micro_batch = 1;
    std::uint32_t mesh = 0;
    ResidualScheme residual = ResidualScheme::replicated;
    ContextScheme context_scheme = ContextScheme::gather;
    RecomputePolicy recompute = RecomputePolicy::none;
    std::uint32_t group = 0;  ///< the same for those that differ in recomputation only
  };

  static bool later(const Work& a, const Work& b) {
    return a.floor != b.floor ? a.floor > b.floor : a.group != b.group ? a.group > b.group : a.recompute > b.recompute;
  }
  static bool faster(const Candidate& a, const Candidate& b) { return a.cost.estimate < b.cost.estimate; }

  void list_work(const Parallelism& p) {
    const std::int64_t per_group = space_.per_group(p);
    if (per_group == 0) return;
    const auto micro_batches = space_.micro_batches(per_group);
    const auto residuals = space_.residuals(p);
    const auto schemes = space_.context_schemes(p);
    const auto policies = space_.policies();
    const auto zeros = space_.zeros(p);
    const auto layouts = space_.layouts(p);
    Mesh mesh{p, {}, space_.orders(p), {}};
    if (mesh.orders.size() > 64) throw InternalError("more orders of stages than bits");
    found_.count.considered +=
        static_cast<std::int64_t>(micro_batches.size() * residuals.size() * schemes.size() * policies.size() *
                                  zeros.size() * choices_.offloads.size() * mesh.orders.size() * layouts.size());
    for (int zero : zeros)
      for (Offload offload : choices_.offloads) {
        Strategy s;
        s.parallelism = p, s.parallelism.zero = zero, s.offload = offload;
        if (!prune_ || state_bytes(s) <= capacity_) mesh.sharings.push_back({zero, offload});
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
          work.recompute = policies.front();
          work.floor = prune_ ? floor_of(strategy_of(work), meshes_.back()) : 0.0;
          ++work.group;
          works_.push_back(work);
        }
  }

  /// The same work with more made again, where less does not fit.
  void list_other_policies(Work work) {
    const std::vector<RecomputePolicy> policies = space_.policies();
    if (policies.size() == 1) return;
    const std::vector<std::uint64_t>& fitting = fitting_orders(work);
    const std::uint64_t every = meshes_[work.mesh].every_order();
    if (std::all_of(fitting.begin(), fitting.end(), [&](std::uint64_t bits) { return bits == every; })) return;
    for (std::size_t i = 1; i < policies.size(); ++i) {
      work.recompute = policies[i];
      if (prune_) work.floor = floor_of(strategy_of(work), meshes_[work.mesh]);
      if (prune_ && work.floor >= worst_) continue;
      works_.push_back(work);
      std::push_heap(works_.begin(), works_.end(), later);
    }
  }

  Strategy strategy_of(const Work& work) const {
    Strategy s;
    s.parallelism = meshes_[work.mesh].parallelism;
    s.parallelism.residual = work.residual, s.parallelism.context_scheme = work.context_scheme;
    s.micro_batch = work.micro_batch, s.recompute = work.recompute;
    return s;
  }

  /// Prices everything that computes as `work` says, unless a bound rules it out or less work fits.
  void price(const Work& work) {
    Strategy s = strategy_of(work);
    const Mesh& mesh = meshes_[work.mesh];
    const Fits less = less_fits(work);
    if (less.all()) return;
    const auto m = static_cast<std::int64_t>(microbatches(question_, s));
    const TrainingProfile& profile = work_of(s).profile;
    const std::vector<std::uint64_t>* fitting = prune_ ? &fitting_orders(work) : nullptr;
    for (std::size_t i = 0; i < mesh.sharings.size(); ++i) {
      const std::uint64_t left = ~less.orders[i] & (fitting ? (*fitting)[i] : mesh.every_order());
      if (left == 0) continue;
      s.parallelism.zero = mesh.sharings[i].zero, s.offload = mesh.sharings[i].offload;
      const TrainingProfile& traffic = sharing_of(s);
      for (const Placed& placed : mesh.placements) {
        s.layout = placed.layout;
        for (const bool folded : {false, true}) {
          if (!(left & mesh.orders_of(folded))) continue;
          // Folded or not, stages do the same altogether; only copies to the host do not add up.
          if (prune_ && folded && left & mesh.orders_of(false) && s.offload == Offload::none &&
              mean_seconds(steady_) >= worst_)
            continue;
          steady_cost(question_, s, profile, &traffic, placed.links, split_of(s.parallelism.pipeline, folded), steady_);
          if (prune_ && least_seconds(steady_) >= worst_) continue;
          for (std::size_t o = 0; o < mesh.orders.size(); ++o) {
            const StageOrder& order = mesh.orders[o];
            if (is_folded(order.schedule) != folded || !(left >> o & 1u) || !is_possible(s, order, m)) continue;
            s.schedule = order.schedule, s.interleave = order.interleave;
            take({s, training_cost(steady_, s)});
          }
        }
      }
    }
  }

  static bool is_possible(const Strategy& s, const StageOrder& order, std::int64_t m) {
    const std::int64_t stages = s.parallelism.pipeline;
    return stages == 1 || assay::is_possible({order.schedule, stages, m, order.interleave});
  }

  /// Where a policy fits that makes a part of what `work` makes again, and no more. Placement does not matter to it.
  Fits less_fits(const Work& work) {
    const Mesh& mesh = meshes_[work.mesh];
    Fits any{std::vector<std::uint64_t>(mesh.sharings.size()), mesh.every_order()};
    const std::uint64_t again = recompute_of(work.recompute).ops;
    for (const RecomputePolicy policy : space_.policies()) {
      const std::uint64_t part = recompute_of(policy).ops;
      if (part == again || (part & ~again) != 0) continue;
      Work less = work;
      less.recompute = policy;
      const std::vector<std::uint64_t>& fits = fitting_orders(less);
      for (std::size_t i = 0; i < fits.size(); ++i) any.orders[i] |= fits[i];
      if (any.all()) break;
    }
    return any;
  }

  /// Orders of stages under which work fits into memory, a bit each, by how weights are shared out.
  const std::vector<std::uint64_t>& fitting_orders(const Work& work) {
    const std::uint64_t key = std::uint64_t{work.group} * 16 + static_cast<std::uint64_t>(work.recompute);
    const auto [known, is_new] = fitting_.try_emplace(key);
    std::vector<std::uint64_t>& out = known->second;
    if (!is_new) return out;
    Strategy s = strategy_of(work);
    const Mesh& mesh = meshes_[work.mesh];
    const auto m = static_cast<std::int64_t>(microbatches(question_, s));
    TrainingProfile& profile = work_of(s).memory;
    sizes_only_.size = role_sizes(s.parallelism);
    for (const Sharing& sharing : mesh.sharings) {
      s.parallelism.zero = sharing.zero, s.offload = sharing.offload;
      profile.head.gathered = sharing_of(s).head.gathered;
      std::uint64_t bits = 0;
      for (const bool folded : {false, true}) {
        if (!mesh.orders_of(folded)) continue;
        steady_cost(question_, s, profile, nullptr, sizes_only_, split_of(s.parallelism.pipeline, folded), steady_);
        if (least_memory(steady_) > capacity_) continue;
        for (std::size_t o = 0; o < mesh.orders.size(); ++o) {
          const StageOrder& order = mesh.orders[o];
          if (is_folded(order.schedule) != folded || !is_possible(s, order, m)) continue;
          s.schedule = order.schedule, s.interleave = order.interleave;
          if (fits(steady_, s)) bits |= std::uint64_t{1} << o;
        }
      }
      // What no schedule can run needs no more of them.
      for (std::size_t o = 0; o < mesh.orders.size(); ++o)
        if (!is_possible(s, mesh.orders[o], m)) bits |= std::uint64_t{1} << o;
      out.push_back(bits);
    }
    return out;
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
            for (RecomputePolicy policy : space_.policies()) {
              Strategy s = start;
              s.parallelism.residual = residual, s.parallelism.context_scheme = scheme;
              s.micro_batch = micro, s.recompute = policy;
              take_closest(s, placed.front(), least);
            }
    }
  }

  /// Memory does not depend on placement: one layout that exists will do.
  void take_closest(Strategy s, const Placed& placed, double& least) {
    s.layout = placed.layout;
    std::optional<bool> priced;
    for (const StageOrder& order : space_.orders(s.parallelism)) {
      const bool folded = is_folded(order.schedule);
      if (priced != folded)
        steady_cost(question_, s, work_of(s).profile, &sharing_of(s), placed.links,
                    split_of(s.parallelism.pipeline, folded), steady_);
      priced = folded;
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
  double floor_of(const Strategy& s, const Mesh& mesh) {
    double least = std::numeric_limits<double>::infinity();
    Microbatch& work = work_of(s);
    const std::int64_t stages = s.parallelism.pipeline;
    for (const Placed& placed : mesh.placements) {
      if (work.least.size() <= placed.inner) work.least.resize(inner_.size());
      std::optional<Least>& known = work.least[placed.inner];
      if (!known) known = least_of(s, work, placed.links);
      for (const bool folded : {false, true})
        if (mesh.orders_of(folded)) least = std::min(least, known->slowest(split_of(stages, stages > 1 && folded)));
    }
    return least_step(microbatches(question_, s) * least);
  }

  /// From two stages, which have an end each.
  Least least_of(Strategy s, const Microbatch& work, const StageLinks& links) {
    s.parallelism.pipeline = 2;
    const StageSplit& split = split_of(2);
    steady_cost(question_, s, work.profile, nullptr, links, split, steady_);
    // Schedules may hide as much of the exchange between experts as software lets them.
    const double hidden = 1.0 - std::min(1.0, question_.setup.effects.expert_waited);
    Least least;
    for (const auto& [forward, backward] : steady_.layers)
      least.kinds.push_back(forward.chain() + forward.exposed + backward.chain() + backward.exposed);
    for (std::size_t i = 0; i < split.parts.size(); ++i) {
      double rest = steady_.parts[i].forward + steady_.parts[i].backward;
      for (std::size_t k = 0; k < least.kinds.size(); ++k) rest -= split.parts[i].layers[k] * least.kinds[k];
      (split.parts[i].first ? least.embedding : least.head) = std::max(0.0, rest);
    }
    for (std::size_t k = 0; k < least.kinds.size(); ++k)
      least.kinds[k] -= hidden * (steady_.layers[k][0].expert + steady_.layers[k][1].expert);
    return least;
  }

  /// The same of one placement and one way to share out weights, with all that the slowest stage does once a step; only
  /// the bubble is missing.
  double least_seconds(const SteadyCost& steady) const {
    double most = 0.0;
    for (const SteadyCost::Part& part : steady.parts)
      most = std::max(most, steady.microbatches * part.least() + part.gradients + part.update + part.host.update);
    return least_step(most + steady.microbatches * 2.0 * steady.hop);
  }

  /// The same of the mean stage, without the end of a step.
  double mean_seconds(const SteadyCost& steady) const {
    double sum = 0.0;
    for (const SteadyCost::Part& part : steady.parts) sum += part.stages * part.least();
    return least_step(steady.microbatches * (sum / steady.stages + 2.0 * steady.hop));
  }

  /// A step whose slowest stage takes `stage` seconds. Rounded down: sums in another order differ in their last bits.
  double least_step(double stage) const {
    constexpr double rounding = 1e-12;
    return (1.0 - rounding) * ((1.0 + stragglers_) * stage + question_.setup.effects.fixed.value());
  }

  /// Every schedule holds one microbatch at least.
  static double least_memory(const SteadyCost& steady) {
    double most = 0.0;
    for (const SteadyCost::Part& part : steady.parts)
      most = std::max(most, memory_holding(steady, part, 1.0, 1.0).total());
    return most;
  }

  /// Bytes of weights and optimizer states on the fullest stage, whatever is computed and however stages are ordered.
  double state_bytes(const Strategy& s) {
    const Parallelism& p = s.parallelism;
    sizes_only_.size = role_sizes(p);
    double least = std::numeric_limits<double>::infinity();
    for (const bool folded : {false, true}) {
      if (folded && p.pipeline == 1) break;
      steady_cost(question_, s, elements_of(p), nullptr, sizes_only_, split_of(p.pipeline, folded), steady_);
      double most = 0.0;
      for (const SteadyCost::Part& part : steady_.parts)
        most = std::max(most, part.memory.weights + part.memory.master + part.memory.moments);
      least = std::min(least, most);
    }
    return least;
  }

  /// A profile of weights only: how many elements lie on one device before data-parallel devices share them out.
  const TrainingProfile& elements_of(const Parallelism& p) {
    const auto known = elements_.find({p.tensor, p.expert});
    if (known != elements_.end()) return known->second;
    Strategy s;
    s.parallelism.tensor = p.tensor, s.parallelism.expert = s.parallelism.data = p.expert;
    const TrainingProfile& whole = work_of(s).profile;
    const auto weights = [](const LayerProfile& from) {
      LayerProfile layer;
      layer.dense_elements = from.dense_elements, layer.expert_elements = from.expert_elements;
      return layer;
    };
    return elements_[{p.tensor, p.expert}] = only(whole, weights);
  }

  /// A profile of what `part` leaves of each layer.
  template <class F>
  static TrainingProfile only(const TrainingProfile& whole, F&& part) {
    TrainingProfile out;
    for (const LayerProfile& layer : whole.kinds) out.kinds.push_back(part(layer));
    out.embedding = part(whole.embedding), out.head = part(whole.head);
    return out;
  }
  static TrainingProfile memory_of(const TrainingProfile& whole) {
    return only(whole, [](const LayerProfile& from) {
      LayerProfile layer;
      layer.kept = from.kept, layer.gathered = from.gathered, layer.again = from.again, layer.widest = from.widest;
      layer.dense_elements = from.dense_elements, layer.expert_elements = from.expert_elements;
      return layer;
    });
  }

  /// What a microbatch computes: it does not depend on how weights are shared out.
  Microbatch& work_of(const Strategy& strategy) {
    ProfileKey key = profile_key(strategy, sequence_);
    key.fsdp = key.replicas = false;
    key.zero = 0;
    const auto known = works_made_.find(key);
    if (known != works_made_.end()) return known->second;
    TrainingProfile made = make_profile(question_.setup, key, ProfilePart::work);
    TrainingProfile memory = memory_of(made);
    return works_made_.emplace(key, Microbatch{std::move(made), std::move(memory), {}}).first->second;
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

  const StageSplit& split_of(std::int64_t stages, bool folded = false) {
    const auto known = splits_.find({stages, folded});
    if (known != splits_.end()) return known->second;
    return splits_.emplace(std::pair(stages, folded), split_stages(model_, stages, folded)).first->second;
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
  double capacity_;
  std::size_t top_;
  bool prune_;
  double worst_;  ///< seconds that are too slow: of the slowest of the best found once there are enough
  double stragglers_;
  TrainingSearch found_;
  std::vector<Mesh> meshes_;
  std::vector<Work> works_;
  SteadyCost steady_;
  StageLinks sizes_only_;
  std::unordered_map<ProfileKey, Microbatch, KeyHash> works_made_;
  std::unordered_map<ProfileKey, TrainingProfile, KeyHash> sharings_made_;
  std::map<std::pair<std::int64_t, std::int64_t>, TrainingProfile> elements_;
  std::vector<InnerForms> inner_;
  std::map<std::pair<std::int64_t, bool>, StageSplit> splits_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> fitting_;  ///< see fitting_orders()
};

}  // namespace

Result<TrainingSearch> search_training(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                       const TrainingChoices& choices, double capacity, std::size_t top, bool prune,
                                       double slowest) {
  return Searcher(question, sequence, cluster, choices, capacity, top, prune, slowest).run();
}

}  // namespace assay
