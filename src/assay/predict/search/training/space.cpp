#include "assay/predict/search/training/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "assay/base/text.h"
#include "assay/predict/clock/chunks.h"
#include "assay/predict/search/divisors.h"

namespace assay::search {
namespace {

constexpr std::int64_t usual_piece = 1024;  ///< tokens of a sequence on one device, at least

/// The given value where the user fixed one, else all that `allowed` accepts.
template <class T, class F>
std::vector<T> options(const std::optional<T>& fixed, const std::vector<T>& all, F&& allowed) {
  if (fixed) return {*fixed};
  std::vector<T> out;
  for (const T& value : all)
    if (allowed(value)) out.push_back(value);
  return out;
}

}  // namespace

TrainingSpace::TrainingSpace(const training::TrainingQuestion& question, std::int64_t sequence,
                             const hardware::Cluster& cluster, const TrainingChoices& choices)
    : question_(question), model_(*question.setup.model), sequence_(sequence), cluster_(cluster), choices_(choices) {
  for (const model::Layer& layer : model_.decoder.kinds) {
    if (layer.attention) heads_ = std::gcd(heads_, layer.attention->heads);
    if (layer.feed_forward) width_ = std::gcd(width_, layer.feed_forward->width);
    if (layer.feed_forward && layer.feed_forward->experts > 0)
      experts_ = std::gcd(experts_, layer.feed_forward->experts);
  }
}

std::vector<lower::Parallelism> TrainingSpace::meshes() const {
  const std::int64_t chips = cluster_.chips();
  const std::vector<std::int64_t> all = divisors(chips);
  const auto fits_heads = [&](std::int64_t n) {
    return (heads_ == 0 || heads_ % n == 0) && (width_ == 0 || width_ % n == 0) && n <= 256;
  };
  const auto tensors = options(choices_.tensor, all, fits_heads);
  const auto pipelines = options(choices_.pipeline, all, [&](std::int64_t n) {
    return n <= model_.decoder.layers() && choices_.rules.splits_layers(clock::layers_of(model_), n, 1, false);
  });
  // Context parallelism of short pieces is slow: it is left out unless the batch has too few sequences without it.
  std::vector<lower::Parallelism> out;
  for (const std::int64_t shortest : {usual_piece, std::int64_t{1}}) {
    const auto contexts = options(choices_.context, all, [&](std::int64_t n) {
      return n == 1 ||
             (sequence_ % n == 0 && question_.setup.source_of(sequence_) % n == 0 && sequence_ / n >= shortest);
    });
    for (std::int64_t tp : tensors)
      for (std::int64_t pp : pipelines)
        for (std::int64_t cp : contexts)
          if (chips % (tp * pp * cp) == 0) split_data(tp, pp, cp, out);
    if (std::any_of(out.begin(), out.end(), [&](const lower::Parallelism& p) { return per_group(p) > 0; })) break;
    if (choices_.context || shortest == 1) break;
    out.clear();
  }
  return out;
}

/// Splits data-parallel devices into replicas and fsdp, experts over them.
void TrainingSpace::split_data(std::int64_t tp, std::int64_t pp, std::int64_t cp,
                               std::vector<lower::Parallelism>& out) const {
  const std::int64_t data = cluster_.chips() / (tp * pp * cp);
  const std::vector<std::int64_t> parts = divisors(data);
  for (std::int64_t fsdp : parts) {
    if (choices_.fsdp && *choices_.fsdp != fsdp) continue;
    if (choices_.data && *choices_.data != data / fsdp) continue;
    lower::Parallelism p;
    p.data = data / fsdp;
    p.fsdp = fsdp;
    p.tensor = tp;
    p.pipeline = pp;
    p.context = cp;
    for (const lower::ExpertAxes over : {lower::ExpertAxes{}, lower::ExpertAxes{true, false},
                                         lower::ExpertAxes{false, true}, lower::ExpertAxes{true, true}})
      split_experts(over, parts, p, out);
  }
}

/// Experts over some data-parallel devices and other axes of more than one device.
void TrainingSpace::split_experts(lower::ExpertAxes over, const std::vector<std::int64_t>& parts, lower::Parallelism p,
                                  std::vector<lower::Parallelism>& out) const {
  if (choices_.expert_over && *choices_.expert_over != over) return;
  if ((over.tensor && p.tensor == 1) || (over.context && p.context == 1)) return;
  p.expert_over = over;
  for (std::int64_t part : parts) {
    p.expert = part * p.expert_others();
    const bool is_legal = p.expert == 1 || (experts_ > 0 && experts_ % p.expert == 0);
    if ((choices_.expert ? *choices_.expert == p.expert : is_legal) && choices_.rules.allows(p, model_))
      out.push_back(p);
  }
}

tl::unexpected<Error> TrainingSpace::no_meshes() const {
  TrainingChoices freely = choices_;
  freely.expert.reset();
  std::set<std::int64_t> allowed;
  for (const lower::Parallelism& p : TrainingSpace(question_, sequence_, cluster_, freely).meshes())
    if (p.expert > 1) allowed.insert(p.expert);
  if (choices_.expert && !allowed.empty()) {
    std::vector<std::string> ways;
    for (std::int64_t n : allowed) ways.push_back(std::to_string(n));
    return fail(
        "--ep", fmt::format("experts cannot be split {} ways over the devices of a stage", *choices_.expert),
        fmt::format("use a divisor of dp x fsdp, or with --ep-over of dp x fsdp x tp x cp: {}", join(ways, ", ")));
  }
  return fail("strategy", fmt::format("dp x fsdp x tp x cp x pp must equal {} chips", cluster_.chips()),
              "leave one of them out to have it chosen");
}

std::int64_t TrainingSpace::per_group(const lower::Parallelism& p) const {
  const double sequences = question_.sequences / static_cast<double>(p.data * p.fsdp);
  return sequences < 1.0 || sequences != std::floor(sequences) ? 0 : static_cast<std::int64_t>(sequences);
}

std::int64_t largest_microbatch(std::int64_t sequence) {
  constexpr std::int64_t sequences = 16, tokens = 128 * 1024;
  return std::max(sequences, tokens / sequence);
}

std::vector<int> TrainingSpace::zeros(const lower::Parallelism& p) const {
  if (choices_.zero && !PlanRules::has(choices_.rules.zeros_of(p), *choices_.zero)) return {};
  if (choices_.zero) return {*choices_.zero};
  // Sharding weights too is fsdp, which also covers context-parallel devices; without it they remain to shard over.
  const int last = p.data > 1 ? 2 : p.fsdp == 1 && p.context > 1 ? 3 : 0;
  std::vector<int> out;
  for (int zero = 0; zero <= last; ++zero)
    if (PlanRules::has(choices_.rules.zeros_of(p), zero)) out.push_back(zero);
  return out;
}

std::vector<lower::ResidualScheme> TrainingSpace::residuals(const lower::Parallelism& p) const {
  if (choices_.residual) return {*choices_.residual};
  if (p.tensor == 1) return {lower::ResidualScheme::replicated};
  const PlanRules::Bits allowed = p.expert > 1 ? choices_.rules.expert_residuals : choices_.rules.residuals;
  std::vector<lower::ResidualScheme> out;
  for (const lower::ResidualScheme scheme : {lower::ResidualScheme::replicated, lower::ResidualScheme::sequence})
    if (PlanRules::has(allowed, scheme)) out.push_back(scheme);
  return out;
}

std::vector<lower::ContextScheme> TrainingSpace::context_schemes(const lower::Parallelism& p) const {
  if (choices_.context_scheme) return {*choices_.context_scheme};
  if (p.context == 1) return {lower::ContextScheme::gather};
  std::vector<lower::ContextScheme> out;
  for (const lower::ContextScheme scheme : {lower::ContextScheme::gather, lower::ContextScheme::exchange})
    if (PlanRules::has(choices_.rules.contexts, scheme) &&
        (scheme == lower::ContextScheme::gather || heads_ % (p.tensor * p.context) == 0))
      out.push_back(scheme);
  return out;
}

std::vector<std::int64_t> TrainingSpace::micro_batches(std::int64_t per_group) const {
  if (!choices_.micro_batch) return divisors(per_group, largest_microbatch(sequence_));
  if (per_group % *choices_.micro_batch != 0) return {};
  return {*choices_.micro_batch};
}

std::vector<lower::Recompute> TrainingSpace::policies() const {
  if (choices_.recompute) return {*choices_.recompute};
  std::vector<lower::Recompute> out;
  for (std::size_t i = 0; i < std::size(lower::recompute_policies); ++i)
    if (PlanRules::has(choices_.rules.policies, i)) out.push_back(lower::recompute_policies[i].parts);
  return out;
}

std::vector<StageOrder> TrainingSpace::orders(const lower::Parallelism& p) const {
  using enum clock::PipelineSchedule;
  if (p.pipeline == 1) return {{one_f_one_b, 1}};
  const PlanRules& rules = choices_.rules;
  std::vector<StageOrder> out;
  if (choices_.schedule) {
    if (*choices_.schedule != interleaved)
      out.push_back({*choices_.schedule, choices_.interleave.value_or(1)});
    else if (choices_.interleave == 1)
      out.push_back({one_f_one_b, 1});  // equals interleaving with one chunk
  } else if (choices_.interleave.value_or(1) == 1) {
    for (const clock::PipelineSchedule one : {one_f_one_b, zb_h1, zb_h2, zb_v, dualpipe})
      if (PlanRules::has(rules.schedules, one)) out.push_back({one, 1});
    // It takes as long as 1F1B and holds more.
    if (!PlanRules::has(rules.schedules, one_f_one_b) && PlanRules::has(rules.schedules, gpipe))
      out.push_back({gpipe, 1});
  }
  if (choices_.schedule.value_or(interleaved) != interleaved) return out;
  if (!choices_.schedule && !PlanRules::has(rules.schedules, interleaved)) return out;
  // Many chunks that do not shrink the largest one of most stages cost hops and memory and gain next to nothing.
  constexpr std::int64_t few = 12;
  const std::int64_t layers = clock::layers_of(model_), longer = layers % p.pipeline;
  const std::int64_t usual = layers / p.pipeline + (2 * longer >= p.pipeline ? 1 : 0);
  const auto largest = [&](std::int64_t chunks) { return (usual + chunks - 1) / chunks; };
  // Where stages divide the layers, so do chunks that nobody asked for.
  const bool is_asked =
      choices_.interleave || (choices_.pipeline && !rules.splits_layers(layers, p.pipeline, 1, false));
  const std::int64_t most = choices_.interleave ? clock::most_chunks(layers, p.pipeline) : layers / p.pipeline;
  for (std::int64_t v = 2; v <= most && out.size() < most_orders; ++v)
    if ((choices_.interleave ? *choices_.interleave == v : v <= few || largest(v) < largest(v - 1)) &&
        rules.splits_layers(layers, p.pipeline, v, is_asked))
      out.push_back({interleaved, v});
  return out;
}

std::vector<collective::AxisLayout> TrainingSpace::layouts(const lower::Parallelism& p) const {
  if (!choices_.layout && choices_.rules.limits_orders(cluster_)) {
    std::vector<collective::AxisLayout> out;
    std::vector<std::vector<std::uint8_t>> known;  // axes of one device lie anywhere
    const auto sizes = training::whole_mesh_sizes(p);
    for (const auto& order : choices_.rules.orders) {
      std::vector<std::uint8_t> laid;
      for (const std::uint8_t axis : order)
        if (sizes[axis] > 1) laid.push_back(axis);
      if (std::find(known.begin(), known.end(), laid) != known.end()) continue;
      known.push_back(std::move(laid));
      std::copy(order.begin(), order.end(), out.emplace_back().order.begin());
    }
    return out;
  }
  if (!choices_.layout) return collective::axis_layouts(training::whole_mesh_sizes(p), cluster_);
  if (!training::whole_placement(p, *choices_.layout, cluster_)) return {};
  return {*choices_.layout};
}

}  // namespace assay::search
