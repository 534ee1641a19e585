#include "assay/schedule/serving.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "assay/model/accounting.h"

namespace assay {
namespace {

std::size_t at(int id) { return static_cast<std::size_t>(id); }

/// Bytes on one device of a cache once it holds `keys` tokens, or its window.
double cache_bytes_at(const Program& program, ProgramTensor tensor, std::int64_t keys, std::int64_t window) {
  const int along = tensor.find(LogicalDim::context);
  if (along >= 0) tensor.dims[at(along)].size = window > 0 ? std::min(window, keys) : keys;
  return local_bytes(program, tensor).value();
}

template <class T>
void add_or_count(std::vector<T>& list, const T& item, bool (*same)(const T&, const T&)) {
  for (T& known : list)
    if (same(known, item)) {
      known.count += item.count;
      return;
    }
  list.push_back(item);
}

bool same_kernel(const ServedKernel& a, const ServedKernel& b) { return a.same_work(b); }
bool same_collective(const ServedCollective& a, const ServedCollective& b) {
  return a.kind == b.kind && a.over == b.over && a.bytes == b.bytes;
}

/// Kernels that several kinds of layers have in common are priced once, with the first of them. Weights of experts stay
/// where they are: which of them are read depends on the block.
void share_kernels(ServingProfile& profile) {
  for (std::size_t b = 1; b < profile.blocks.size(); ++b) {
    ServingProfile::Block& later = profile.blocks[b];
    const auto taken = [&](const ServedKernel& kernel) {
      if (kernel.expert_bytes > 0.0) return false;
      for (std::size_t e = 0; e < b; ++e) {
        ServingProfile::Block& earlier = profile.blocks[e];
        if (earlier.last_tokens != later.last_tokens) continue;
        for (ServedKernel& known : earlier.kernels)
          if (known.same_work(kernel)) {
            known.count += kernel.count * later.layers / earlier.layers;
            return true;
          }
      }
      return false;
    };
    later.kernels.erase(std::remove_if(later.kernels.begin(), later.kernels.end(), taken), later.kernels.end());
  }
}

/// Sequences of each device at which slots of experts come out whole.
std::int64_t whole_slots(const Transformer& model) {
  std::int64_t all = 1;
  for (const Layer& layer : model.decoder.kinds)
    if (layer.feed_forward && layer.feed_forward->experts > 0) {
      const std::int64_t n = layer.feed_forward->experts, k = layer.feed_forward->experts_per_token;
      all = std::lcm(all, n / std::gcd(n, k));
    }
  return all;
}

double weight_elements(const std::vector<Weight>& weights, const Program& program, const ShardingRules& rules) {
  double sum = 0.0;
  for (const Weight& weight : weights) {
    sum += local_elements(rules, program, TensorClass::weight, weight);
  }
  return sum;
}

}  // namespace

Parallelism ServingStrategy::parallelism() const {
  Parallelism p;
  p.tensor = tensor, p.fsdp = second, p.pipeline = pipeline, p.expert = expert, p.data = data;
  return p;
}

Result<StageLinks> serving_links(const ServingSetup& setup, const ServingStrategy& strategy, const Cluster& cluster) {
  return stage_links(strategy.parallelism(), strategy.layout, cluster,
                     setup.collectives ? &*setup.collectives : nullptr);
}

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys, std::int64_t cache_keys) {
  const Transformer& model = *setup.model;
  const Parallelism p = strategy.parallelism();
  const Mesh mesh = stage_mesh(p);
  const ShardingRules rules = serving_rules(p, strategy.scheme);
  if (cache_keys == 0) cache_keys = keys;
  ServingProfile profile;
  profile.queries = static_cast<double>(queries);
  // A whole number of sequences on every device, however batches are split.
  std::int64_t unit = p.data;
  if (strategy.scheme.cache == CacheScheme::batch) unit *= p.tensor;
  if (strategy.scheme.weights == WeightScheme::gathered) unit *= p.fsdp;
  profile.unit = static_cast<double>(unit);
  Workload work;
  work.queries = queries, work.keys = keys, work.cached = true;
  work.source = model.encoder ? keys : 0;
  work.expert_load = setup.expert_load;
  work.sequences = unit * whole_slots(model);
  const auto lowered = static_cast<double>(work.sequences);
  const Program one = lower_serving(model, mesh, rules, work, setup.formats);
  work.sequences *= 2;
  const Program two = lower_serving(model, mesh, rules, work, setup.formats);
  for (const Block& block : one.blocks) {
    ServingProfile::Block out;
    out.layers = static_cast<double>(block.layers);
    const Layer* layer = block.kind >= 0 ? &model.decoder.kinds[at(block.kind)] : nullptr;
    out.last_tokens = !layer && block.last == one.blocks.back().last;
    double touched_one = 1.0, touched_two = 1.0;
    if (layer && layer->feed_forward && layer->feed_forward->experts > 0) {
      out.experts = static_cast<double>(layer->feed_forward->experts);
      out.per_token = static_cast<double>(layer->feed_forward->experts_per_token);
      touched_one = touched_share(lowered * profile.queries, out.per_token, out.experts);
      touched_two = touched_share(2.0 * lowered * profile.queries, out.per_token, out.experts);
    }
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const Step &s1 = one.steps[at(i)], &s2 = two.steps[at(i)];
      if (s1.op == Op::slice) continue;
      if (is_collective(s1.op)) {
        const StraightLine bytes = line_through(lowered, array_bytes(one, s1).value(), array_bytes(two, s2).value());
        add_or_count(out.collectives, {collective_of(s1.op), roles_of(mesh, s1.axes), 1.0, bytes}, &same_collective);
        continue;
      }
      add_or_count(out.kernels, served_kernel(setup.rates, one, s1, two, s2, lowered, touched_one, touched_two),
                   &same_kernel);
      double around = 0.0;
      for (int id : s1.out)
        if (id >= 0) around += local_bytes(one, one.tensor(id)).value();
      profile.widest = std::max(profile.widest, around / lowered);
    }
    profile.blocks.push_back(std::move(out));
  }
  share_kernels(profile);
  // Caches and weights lie on the stages that use them.
  const auto stages = static_cast<double>(p.pipeline);
  double weights = weight_elements(outer_weights(model), one, rules);
  for (std::size_t k = 0; k < model.decoder.kinds.size(); ++k)
    weights += static_cast<double>(model.decoder.count(k)) / stages *
               weight_elements(layer_weights(model, model.decoder.kinds[k]), one, rules);
  profile.weight_bytes = storage(setup.formats.weights, weights).value();
  for (const Block& block : one.blocks) {
    if (block.kind < 0) continue;
    const Layer& layer = model.decoder.kinds[at(block.kind)];
    const std::int64_t window = layer.attention ? layer.attention->window : 0;
    std::vector<char> seen(one.tensors.size(), 0);
    for (std::int32_t i = block.first; i < block.last; ++i)
      for (int id : one.steps[at(i)].in) {
        if (id < 0 || seen[at(id)]) continue;
        seen[at(id)] = 1;
        const ProgramTensor& tensor = one.tensor(id);
        if (tensor.is_given && tensor.tensor_class == TensorClass::key_value &&
            !(layer.attention && layer.attention->shares_kv))
          profile.cache_bytes +=
              static_cast<double>(block.layers) / stages * cache_bytes_at(one, tensor, cache_keys, window) / lowered;
      }
  }
  const double ways = one.ways(rules.at(TensorClass::residual, LogicalDim::batch).set());
  profile.state_bytes =
      storage(setup.formats.activations, static_cast<double>(state_values_per_sequence(model))).value() / stages /
      ways / static_cast<double>(p.tensor);
  profile.boundary =
      storage(setup.formats.activations, static_cast<double>(model.d_model) * profile.queries).value() / ways;
  return profile;
}

namespace {

/// Sequences that each kind of work sees in one step.
struct StepSizes {
  double tokens = 1;     ///< products, norms and collectives, in steps of the profile's queries
  double attention = 1;  ///< sequences whose caches are read
  double heads = 1;      ///< sequences that get a next token
};

void add_kernel(const KernelRates& rates, const ServedKernel& kernel, double sequences, double touched, double layers,
                ServingTime& time) {
  const double flops = kernel.flops(sequences), n = layers * kernel.count;
  const double arithmetic = flops * kernel.seconds_per_flop;
  const double bytes = kernel.bytes(sequences) + kernel.expert_bytes * touched;
  const double traffic = bytes / rates.hbm.value();
  time.flops += n * flops;
  if (kernel.attends) time.attention_flops += n * flops, time.attention_bytes += n * bytes;
  // Ideal kernels fuse what is element-wise.
  if (arithmetic > 0.0) {
    time.compute += n * arithmetic, time.memory += n * traffic;
    time.rooflines += n * std::max(arithmetic, traffic);
  }
  time.estimate += n * served_estimate(rates, kernel, sequences, arithmetic, bytes);
}

void add_blocks(const KernelRates& rates, const ServingProfile& profile, const StageLinks& links,
                const StepSizes& sizes, ServingTime& time) {
  for (const ServingProfile::Block& block : profile.blocks) {
    const double sequences = block.last_tokens ? sizes.heads : sizes.tokens;
    const double touched =
        block.experts > 0.0 ? touched_share(sequences * profile.queries, block.per_token, block.experts) : 1.0;
    for (const ServedKernel& kernel : block.kernels)
      add_kernel(rates, kernel, kernel.attends ? sizes.attention : sequences, touched, block.layers, time);
    for (const ServedCollective& collective : block.collectives) {
      const CollectiveLine& line = links.lines[collective.over][StageLinks::line_of(collective.kind)];
      const double ideal = line.rate.value() * collective.bytes(sequences);
      const double n = block.layers * collective.count;
      time.network += n * std::max(ideal, line.floor.value());
      time.estimate += n * links.forms[collective.over][StageLinks::line_of(collective.kind)].seconds(
                               collective.bytes(sequences), 1.0);
    }
  }
}

void finish(const ServingStrategy& strategy, const ServingProfile& profile, const StageLinks& links, double sequences,
            ServingTime& time) {
  const auto stages = static_cast<double>(strategy.pipeline);
  const double bytes = profile.boundary * sequences;
  const double hop = strategy.pipeline > 1
                         ? (stages - 1.0) * (bytes * links.between_stages.rate.value() / links.network_share +
                                             links.between_stages.floor.value())
                         : 0.0;
  time.lower = std::max({time.compute, time.memory, time.network});
  time.estimate += hop;
  time.upper = time.compute + time.memory + time.network + hop;
}

}  // namespace

ServingTime serving_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                         const StageLinks& links, double batch) {
  // Stages work on different parts of the batch at the same time.
  const double sequences = std::max(profile.unit, batch / static_cast<double>(strategy.pipeline));
  ServingTime time;
  add_blocks(setup.rates, profile, links, {sequences, sequences, sequences}, time);
  finish(strategy, profile, links, sequences, time);
  return time;
}

ServingTime verify_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                        const StageLinks& links, double batch) {
  const double sequences = std::max(profile.unit, batch / static_cast<double>(strategy.pipeline));
  ServingTime time;
  add_blocks(setup.rates, profile, links, {sequences, sequences, sequences * profile.queries}, time);
  finish(strategy, profile, links, sequences, time);
  return time;
}

ServingTime mixed_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& decode,
                       const ServingProfile& chunk, const StageLinks& links, double batch, double chunks) {
  const auto stages = static_cast<double>(strategy.pipeline), data = static_cast<double>(strategy.data);
  const double sequences = std::max(decode.unit, batch / stages);
  const double joined = data * chunk.queries / stages;
  ServingTime time;
  add_blocks(setup.rates, decode, links, {sequences + joined, sequences, sequences + data / chunks / stages}, time);
  for (const ServingProfile::Block& block : chunk.blocks)
    for (const ServedKernel& kernel : block.kernels)
      if (kernel.attends) add_kernel(setup.rates, kernel, chunk.unit, 1.0, block.layers / stages, time);
  finish(strategy, decode, links, sequences + joined, time);
  return time;
}

}  // namespace assay
