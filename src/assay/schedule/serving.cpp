#include "assay/schedule/serving.h"

#include <algorithm>
#include <cmath>

#include "assay/model/accounting.h"

namespace assay {
namespace {

std::size_t at(int id) { return static_cast<std::size_t>(id); }

CollectiveKind kind_of(Op op) {
  switch (op) {
    case Op::all_gather:
      return CollectiveKind::all_gather;
    case Op::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    case Op::all_reduce:
      return CollectiveKind::all_reduce;
    default:
      return CollectiveKind::all_to_all;
  }
}

std::size_t line_index(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather       ? 0
         : kind == CollectiveKind::reduce_scatter ? 1
         : kind == CollectiveKind::all_reduce     ? 2
                                                  : 3;
}

RoleSet roles_of(const Mesh& mesh, AxisSet axes) {
  constexpr std::string_view names = "RXWZY";
  unsigned all = 0;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (axes >> i & 1u) all |= 1u << names.find(mesh.axes[i].name);
  return static_cast<RoleSet>(all);
}

/// Bytes of the array that a group sees.
double array_bytes(const Program& program, const Step& step) {
  const bool grows = step.op == Op::all_gather || step.op == Op::all_to_all;
  return local_bytes(program, program.tensor(step.in[0])).value() * (grows ? program.ways(step.axes) : 1.0);
}

double expert_weight_bytes(const Program& program, const Step& step) {
  if (step.op != Op::product) return 0.0;
  const ProgramTensor& weight = program.tensor(step.in[1]);
  return weight.find(LogicalDim::experts) >= 0 ? local_bytes(program, weight).value() : 0.0;
}

double weight_elements(const std::vector<Weight>& weights, const Program& program, const ShardingRules& rules) {
  double sum = 0.0;
  for (const Weight& weight : weights) {
    ProgramTensor tensor;
    tensor.rank = weight.rank;
    std::copy_n(weight.dims.begin(), weight.rank, tensor.dims.begin());
    if (weight.part == Part::router)
      for (Weight::Size& dim : tensor.dims)
        if (dim.dim == LogicalDim::experts) dim.dim = LogicalDim::other;
    tensor.sharding = rule_sharding(rules, program, TensorClass::weight, std::span(tensor.dims.data(), tensor.rank));
    sum += local_elements(program, tensor);
  }
  return sum;
}

}  // namespace

Parallelism ServingStrategy::parallelism() const {
  Parallelism p;
  p.tensor = tensor, p.fsdp = second, p.pipeline = pipeline, p.expert = expert, p.data = data;
  return p;
}

ServingProfile make_serving_profile(const ServingSetup& setup, const ServingStrategy& strategy, std::int64_t queries,
                                    std::int64_t keys) {
  const Transformer& model = *setup.model;
  const Parallelism p = strategy.parallelism();
  const Mesh mesh = stage_mesh(p);
  const ShardingRules rules = serving_rules(p, strategy.scheme);
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
  work.sequences = unit;
  const Program one = lower_serving(model, mesh, rules, work, setup.formats);
  work.sequences = 2 * unit;
  const Program two = lower_serving(model, mesh, rules, work, setup.formats);
  const double per = 1.0 / profile.unit;
  for (std::size_t b = 0; b < one.blocks.size(); ++b) {
    const Block& block = one.blocks[b];
    ServingProfile::Block out;
    out.layers = static_cast<double>(block.layers);
    const Layer* layer = block.kind >= 0 ? &model.decoder.kinds[at(block.kind)] : nullptr;
    if (layer && layer->feed_forward && layer->feed_forward->experts > 0) {
      out.experts = static_cast<double>(layer->feed_forward->experts);
      out.per_token = static_cast<double>(layer->feed_forward->experts_per_token);
    }
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const Step &s1 = one.steps[at(i)], &s2 = two.steps[at(i)];
      if (s1.op == Op::slice) continue;
      if (is_collective(s1.op)) {
        const double a = array_bytes(one, s1), c = array_bytes(two, s2);
        out.collectives.push_back({kind_of(s1.op), roles_of(mesh, s1.axes), 2.0 * a - c, (c - a) * per});
        continue;
      }
      ServedKernel kernel;
      kernel.flops = (s2.flops - s1.flops).value() * per;
      kernel.expert_bytes = expert_weight_bytes(one, s1);
      // Slots of experts grow in whole numbers; the rest is a straight line. Expert weights are counted apart.
      const auto plain = [&](const Program& program, const Step& step, double sequences) {
        double bytes = step.bytes.value();
        if (kernel.expert_bytes > 0.0)
          bytes -= touched_share(sequences * profile.queries, out.per_token, out.experts) *
                   expert_weight_bytes(program, step);
        return bytes;
      };
      const double b1 = plain(one, s1, profile.unit), b2 = plain(two, s2, 2.0 * profile.unit);
      kernel.fixed = 2.0 * b1 - b2, kernel.moving = (b2 - b1) * per;
      if (s1.flops.value() > 0.0)
        kernel.seconds_per_flop = kernel_time(setup.rates, one, s1).compute.value() / s1.flops.value();
      out.kernels.push_back(kernel);
      double around = 0.0;
      for (int id : s1.out)
        if (id >= 0) around += local_bytes(one, one.tensor(id)).value();
      profile.widest = std::max(profile.widest, around * per);
    }
    profile.blocks.push_back(std::move(out));
  }
  // Caches and weights lie on the stages that use them.
  const auto stages = static_cast<double>(p.pipeline);
  double weights = weight_elements(outer_weights(model), one, rules);
  for (std::size_t k = 0; k < model.decoder.kinds.size(); ++k)
    weights += static_cast<double>(model.decoder.count(k)) / stages *
               weight_elements(layer_weights(model, model.decoder.kinds[k]), one, rules);
  profile.weight_bytes = storage(setup.formats.weights, weights).value();
  for (const Block& block : one.blocks) {
    std::vector<char> seen(one.tensors.size(), 0);
    for (std::int32_t i = block.first; i < block.last; ++i)
      for (int id : one.steps[at(i)].in) {
        if (id < 0 || seen[at(id)]) continue;
        seen[at(id)] = 1;
        const ProgramTensor& tensor = one.tensor(id);
        if (tensor.is_given && tensor.tensor_class == TensorClass::key_value)
          profile.cache_bytes += static_cast<double>(block.layers) / stages * local_bytes(one, tensor).value() * per;
      }
  }
  const double ways = one.ways(rules.at(TensorClass::residual, LogicalDim::batch).set());
  profile.state_bytes =
      storage(setup.formats.activations, static_cast<double>(state_values_per_sequence(model))).value() / stages / ways /
      static_cast<double>(p.tensor);
  profile.boundary =
      storage(setup.formats.activations, static_cast<double>(model.d_model) * profile.queries).value() / ways;
  return profile;
}

ServingTime serving_time(const ServingSetup& setup, const ServingStrategy& strategy, const ServingProfile& profile,
                         const StageLinks& links, double batch) {
  const auto stages = static_cast<double>(strategy.pipeline);
  // Stages work on different parts of the batch at the same time.
  const double sequences = std::max(profile.unit, batch / stages);
  const KernelRates& rates = setup.rates;
  const double hbm = rates.hbm.value();
  ServingTime time;
  for (const ServingProfile::Block& block : profile.blocks) {
    const double touched =
        block.experts > 0.0 ? touched_share(sequences * profile.queries, block.per_token, block.experts) : 1.0;
    double compute = 0.0, memory = 0.0, rooflines = 0.0, estimate = 0.0, network = 0.0, waiting = 0.0;
    for (const ServedKernel& kernel : block.kernels) {
      const double flops = kernel.flops * sequences;
      const double arithmetic = flops * kernel.seconds_per_flop;
      const double traffic = (kernel.fixed + kernel.moving * sequences + kernel.expert_bytes * touched) / hbm;
      time.flops += block.layers * flops;
      // Ideal kernels fuse what is element-wise.
      if (arithmetic > 0.0) compute += arithmetic, memory += traffic, rooflines += std::max(arithmetic, traffic);
      estimate += std::max(arithmetic / rates.matrix_share, traffic / rates.memory_share);
    }
    for (const ServedCollective& collective : block.collectives) {
      const CollectiveLine& line = links.lines[collective.over][line_index(collective.kind)];
      const double ideal = line.rate.value() * (collective.fixed + collective.moving * sequences);
      network += std::max(ideal, line.floor.value());
      waiting += ideal / links.network_share + line.floor.value();
    }
    time.compute += block.layers * compute, time.memory += block.layers * memory;
    time.rooflines += block.layers * rooflines, time.network += block.layers * network;
    time.estimate += block.layers * (estimate + waiting);
  }
  const double hop = strategy.pipeline > 1
                         ? (stages - 1.0) * (profile.boundary * sequences * links.between_stages.rate.value() /
                                                 links.network_share +
                                             links.between_stages.floor.value())
                         : 0.0;
  time.lower = std::max({time.compute, time.memory, time.network});
  time.estimate += hop;
  time.upper = time.compute + time.memory + time.network + hop;
  return time;
}

}  // namespace assay
