#include "assay/search/training_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "assay/base/text.h"
#include "assay/search/divisors.h"

namespace assay {
namespace {

/// The given value where the user fixed one, else all that `allowed` accepts.
template <class T, class F>
std::vector<T> options(const std::optional<T>& fixed, const std::vector<T>& all, F&& allowed) {
  if (fixed) return {*fixed};
  std::vector<T> out;
  for (const T& value : all)
    if (allowed(value)) out.push_back(value);
  return out;
}

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

struct MeshKey {
  std::array<std::int64_t, 7> sizes;
  friend bool operator==(const MeshKey&, const MeshKey&) = default;
};
struct MeshKeyHash {
  std::size_t operator()(const MeshKey& key) const {
    std::uint64_t h = 1469598103934665603ull;
    for (std::int64_t v : key.sizes) h = (h ^ static_cast<std::uint64_t>(v)) * 1099511628211ull;
    return static_cast<std::size_t>(h);
  }
};

/// Whether two layouts differ in nothing that costs time.
bool same_costs(const StageLinks& a, const StageLinks& b) {
  const auto same = [](const CollectiveLine& x, const CollectiveLine& y) {
    return x.rate.value() == y.rate.value() && x.floor == y.floor;
  };
  if (a.resources != b.resources || !same(a.between_stages, b.between_stages)) return false;
  for (std::size_t i = 0; i < a.lines.size(); ++i)
    for (std::size_t k = 0; k < a.lines[i].size(); ++k)
      if (!same(a.lines[i][k], b.lines[i][k])) return false;
  return true;
}

class Searcher {
 public:
  Searcher(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
           const TrainingChoices& choices, double capacity, std::size_t top, bool prune)
      : question_(question),
        model_(*question.setup.model),
        sequence_(sequence),
        cluster_(cluster),
        choices_(choices),
        capacity_(capacity),
        top_(top),
        prune_(prune) {
    for (std::size_t k = 0; k < model_.decoder.kinds.size(); ++k) counts_.push_back(model_.decoder.count(k));
    for (const Layer& layer : model_.decoder.kinds) {
      if (layer.attention) heads_ = std::gcd(heads_, layer.attention->heads);
      if (layer.feed_forward) width_ = std::gcd(width_, layer.feed_forward->width);
      if (layer.feed_forward && layer.feed_forward->experts > 0)
        experts_ = std::gcd(experts_, layer.feed_forward->experts);
    }
  }

  Result<TrainingSearch> run() {
    const std::int64_t chips = cluster_.chips();
    const std::vector<std::int64_t> all = divisors(chips);
    const auto fits_heads = [&](std::int64_t n) {
      return (heads_ == 0 || heads_ % n == 0) && (width_ == 0 || width_ % n == 0) && n <= 256;
    };
    const auto tensors = options(choices_.tensor, all, fits_heads);
    const auto pipelines =
        options(choices_.pipeline, all, [&](std::int64_t n) { return n <= model_.decoder.layers(); });
    const auto contexts = options(choices_.context, all, [&](std::int64_t n) {
      return n == 1 || (n <= 64 && sequence_ / n >= 1024 && sequence_ % n == 0);
    });
    std::int64_t meshes = 0;
    for (std::int64_t tp : tensors)
      for (std::int64_t pp : pipelines)
        for (std::int64_t cp : contexts) {
          if (chips % (tp * pp * cp) != 0) continue;
          ASSAY_TRY(used, split_data(tp, pp, cp, chips / (tp * pp * cp)));
          meshes += used;
        }
    if (meshes == 0) return nothing_matches();
    std::sort(found_.best.begin(), found_.best.end(),
              [](const Candidate& a, const Candidate& b) { return a.cost.estimate < b.cost.estimate; });
    return std::move(found_);
  }

 private:
  /// Splits data-parallel devices into replicas and fsdp; returns how many meshes were tried.
  Result<std::int64_t> split_data(std::int64_t tp, std::int64_t pp, std::int64_t cp, std::int64_t data) {
    std::int64_t tried = 0;
    for (std::int64_t fsdp : divisors(data)) {
      if (choices_.fsdp && *choices_.fsdp != fsdp) continue;
      if (choices_.data && *choices_.data != data / fsdp) continue;
      const std::int64_t replicas = data / fsdp;
      const auto experts = options(choices_.expert, divisors(data),
                                   [&](std::int64_t n) { return n == 1 || (experts_ > 0 && experts_ % n == 0); });
      for (std::int64_t ep : experts) {
        if (data % ep != 0) continue;
        Parallelism p;
        p.data = replicas, p.fsdp = fsdp, p.tensor = tp, p.pipeline = pp, p.context = cp, p.expert = ep;
        ++tried;
        ASSAY_CHECK(vary_mesh(p));
      }
    }
    return tried;
  }

  Result<void> vary_mesh(Parallelism p) {
    const double per_group = question_.sequences / static_cast<double>(p.data * p.fsdp);
    if (per_group < 1.0 || per_group != std::floor(per_group)) return {};
    std::vector<int> zeros{0};
    if (p.data > 1) zeros = p.fsdp > 1 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2};
    if (choices_.zero) zeros = {*choices_.zero};
    std::vector<ResidualScheme> residuals{ResidualScheme::replicated};
    if (p.tensor > 1) residuals.push_back(ResidualScheme::sequence);
    if (choices_.residual) residuals = {*choices_.residual};
    std::vector<ContextScheme> schemes{ContextScheme::gather};
    if (p.context > 1 && heads_ % (p.tensor * p.context) == 0) schemes.push_back(ContextScheme::exchange);
    if (choices_.context_scheme) schemes = {*choices_.context_scheme};
    const std::size_t layouts = cluster_.torus ? axis_layouts().size() : 2;
    std::vector<const StageLinks*> distinct;
    for (std::size_t layout = 0; layout < layouts; ++layout) {
      const StageLinks* links = links_of(p, layout);
      if (!links || std::any_of(distinct.begin(), distinct.end(),
                                [&](const StageLinks* known) { return same_costs(*known, *links); }))
        continue;
      distinct.push_back(links);
      for (int zero : zeros)
        for (ResidualScheme residual : residuals)
          for (ContextScheme scheme : schemes) {
            p.zero = zero, p.residual = residual, p.context_scheme = scheme;
            vary_schedule(p, layout, *links, static_cast<std::int64_t>(per_group));
          }
    }
    return {};
  }

  void vary_schedule(const Parallelism& p, std::size_t layout, const StageLinks& links, std::int64_t per_group) {
    const StageSplit& split = split_of(p.pipeline);
    std::vector<RecomputePolicy> policies{RecomputePolicy::none, RecomputePolicy::full};
    if (!question_.setup.flash) policies.push_back(RecomputePolicy::selective);
    if (choices_.recompute) policies = {*choices_.recompute};
    struct Order {
      PipelineSchedule schedule;
      std::int64_t interleave;
    };
    std::vector<Order> orders{{PipelineSchedule::one_f_one_b, 1}};
    if (p.pipeline > 1) {
      using enum PipelineSchedule;
      if (choices_.schedule) {
        orders.clear();
        if (*choices_.schedule != interleaved) orders.push_back({*choices_.schedule, choices_.interleave.value_or(1)});
      } else {
        orders.insert(orders.end(), {{zb_h1, 1}, {zb_h2, 1}, {zb_v, 1}, {dualpipe, 1}});
        if (choices_.interleave && *choices_.interleave > 1) orders.clear();
      }
      if (!choices_.schedule || *choices_.schedule == interleaved) {
        const std::int64_t per_stage = model_.decoder.layers() / p.pipeline;
        for (std::int64_t v : divisors(per_stage))
          if (v > 1 && model_.decoder.layers() % p.pipeline == 0 && (!choices_.interleave || *choices_.interleave == v))
            orders.push_back({interleaved, v});
      }
    }
    Strategy strategy;
    strategy.parallelism = p;
    strategy.layout = static_cast<std::uint8_t>(layout);
    for (std::int64_t micro : divisors(per_group)) {
      if (choices_.micro_batch ? *choices_.micro_batch != micro : micro > 16) continue;
      strategy.micro_batch = micro;
      const std::int64_t m = per_group / micro;
      for (RecomputePolicy policy : policies) {
        strategy.recompute = policy;
        bool known = false;
        for (const Order& order : orders) {
          ++found_.count.considered;
          if (p.pipeline > 1 && !is_possible({order.schedule, p.pipeline, m, order.interleave})) continue;
          strategy.schedule = order.schedule, strategy.interleave = order.interleave;
          if (!known) {
            const TrainingProfile& work = work_of(strategy);
            // No stage is faster than the mean of all, and none does less than its arithmetic and memory traffic.
            const double floor = static_cast<double>(m) * busy_seconds(work) / static_cast<double>(p.pipeline);
            if (prune_ && found_.best.size() >= top_ && floor >= worst_) break;
            profile_ = work;
            take_weights_traffic(profile_, sharing_of(strategy));
            steady_cost(question_, strategy, profile_, links, split, steady_);
            known = true;
          }
          take({strategy, training_cost(steady_, strategy)});
        }
      }
    }
  }

  void take(const Candidate& candidate) {
    ++found_.count.evaluated;
    if (candidate.cost.memory.total() > capacity_) {
      if (found_.best.empty() &&
          (!found_.closest || candidate.cost.memory.total() < found_.closest->cost.memory.total()))
        found_.closest = candidate;
      return;
    }
    ++found_.count.feasible;
    if (found_.best.size() >= top_ && candidate.cost.estimate >= worst_) return;
    found_.closest.reset();
    found_.best.push_back(candidate);
    if (found_.best.size() > top_) {
      const auto slowest =
          std::max_element(found_.best.begin(), found_.best.end(),
                           [](const Candidate& a, const Candidate& b) { return a.cost.estimate < b.cost.estimate; });
      found_.best.erase(slowest);
    }
    worst_ = 0.0;
    for (const Candidate& kept : found_.best) worst_ = std::max(worst_, kept.cost.estimate);
  }

  /// Seconds that one microbatch keeps all stages busy.
  double busy_seconds(const TrainingProfile& profile) const {
    const auto both = [](const LayerProfile& layer) {
      return layer.forward.estimate.value() + layer.backward.estimate.value();
    };
    double seconds = both(profile.embedding) + both(profile.head);
    for (std::size_t k = 0; k < model_.decoder.kinds.size(); ++k)
      seconds += static_cast<double>(counts_[k]) * both(profile.kinds[k]);
    return seconds;
  }

  /// What a microbatch computes: it does not depend on how weights are shared out.
  const TrainingProfile& work_of(const Strategy& strategy) {
    ProfileKey key = profile_key(strategy, sequence_);
    key.fsdp = key.replicas = false;
    key.zero = 0;
    return half_of(key);
  }

  /// How weights and gradients travel: it does not depend on what a microbatch computes.
  const TrainingProfile& sharing_of(const Strategy& strategy) {
    ProfileKey key = profile_key(strategy, sequence_);
    key.micro_batch = 1;
    key.recompute = Recompute::none();
    key.residual = ResidualScheme::replicated;
    return half_of(key);
  }

  const TrainingProfile& half_of(const ProfileKey& key) {
    const auto known = halves_.find(key);
    if (known != halves_.end()) return known->second;
    return halves_.emplace(key, make_profile(question_.setup, key)).first->second;
  }

  const StageLinks* links_of(const Parallelism& p, std::size_t layout) {
    const MeshKey key{{p.data, p.fsdp, p.tensor, p.pipeline, p.context, p.expert, static_cast<std::int64_t>(layout)}};
    const auto known = links_.find(key);
    if (known != links_.end()) return known->second ? &*known->second : nullptr;
    Result<StageLinks> made =
        stage_links(p, layout, cluster_, question_.collectives ? &*question_.collectives : nullptr);
    auto& kept = links_[key];
    if (made) kept = *made;
    return kept ? &*kept : nullptr;
  }

  const StageSplit& split_of(std::int64_t stages) {
    const auto known = splits_.find(stages);
    if (known != splits_.end()) return known->second;
    return splits_.emplace(stages, split_stages(model_, stages)).first->second;
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
  double capacity_;
  std::size_t top_;
  bool prune_;
  double worst_ = 0.0;  ///< time of the slowest of the best found
  std::int64_t heads_ = 0, width_ = 0, experts_ = 0;
  TrainingSearch found_;
  SteadyCost steady_;
  TrainingProfile profile_;           ///< of the strategy at hand; its memory is reused
  std::vector<std::int64_t> counts_;  ///< layers by kind
  std::unordered_map<ProfileKey, TrainingProfile, KeyHash> halves_;
  std::unordered_map<MeshKey, std::optional<StageLinks>, MeshKeyHash> links_;
  std::unordered_map<std::int64_t, StageSplit> splits_;
};

}  // namespace

Result<TrainingSearch> search_training(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                       const TrainingChoices& choices, double capacity, std::size_t top, bool prune) {
  return Searcher(question, sequence, cluster, choices, capacity, top, prune).run();
}

}  // namespace assay
