#include "assay/schedule/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/schedule/pipeline_forms.h"

namespace assay {

std::string_view name(RecomputePolicy policy) {
  constexpr std::string_view names[] = {"none",     "selective",   "full",        "operators",
                                        "products", "projections", "feed-forward"};
  return names[static_cast<std::size_t>(policy)];
}

Recompute recompute_of(RecomputePolicy policy) {
  switch (policy) {
    case RecomputePolicy::none:
      return Recompute::none();
    case RecomputePolicy::selective:
      return Recompute::selective();
    case RecomputePolicy::full:
      return Recompute::full();
    case RecomputePolicy::operators:
      return Recompute::operators();
    case RecomputePolicy::products:
      return Recompute::all_but_products();
    case RecomputePolicy::projections:
      return Recompute::all_but_projections();
    case RecomputePolicy::feed_forward:
      return Recompute::feed_forward();
  }
  throw InternalError("a policy of recomputation without a meaning");
}

bool names_kept(RecomputePolicy policy) {
  return policy != RecomputePolicy::none && policy != RecomputePolicy::selective;
}

std::span<const std::array<char, 6>> axis_layouts() {
  // Tensor parallelism talks most and lies innermost, except where a torus axis suits it better; pipeline stages and
  // replicas talk least and lie outside.
  static constexpr std::array<char, 6> all[] = {{'P', 'R', 'X', 'W', 'Z', 'Y'}, {'R', 'P', 'X', 'W', 'Z', 'Y'},
                                                {'R', 'X', 'W', 'P', 'Z', 'Y'}, {'Y', 'Z', 'W', 'X', 'R', 'P'},
                                                {'P', 'Y', 'Z', 'W', 'X', 'R'}, {'P', 'R', 'Y', 'X', 'W', 'Z'}};
  return all;
}

Mesh whole_mesh(const Parallelism& parallelism, std::size_t layout) {
  const Mesh stage = stage_mesh(parallelism);
  Mesh mesh;
  for (const char axis : axis_layouts()[layout]) {
    if (axis == 'P' && parallelism.pipeline > 1) mesh.axes.push_back({"P", parallelism.pipeline});
    for (const MeshAxis& known : stage.axes)
      if (known.name[0] == axis) mesh.axes.push_back(known);
  }
  if (mesh.axes.empty()) mesh.axes.push_back({"X", 1});
  return mesh;
}

namespace {

constexpr CollectiveKind line_kinds[4] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                          CollectiveKind::all_reduce, CollectiveKind::all_to_all};

/// The links that a set of mesh axes uses: torus axes, or levels of the tree that are really crossed.
std::uint32_t resources_of(const Placement& placement, const CollectiveGroup& group, AxisSet axes, std::size_t mesh) {
  std::uint32_t bits = 0;
  if (!group.axes.empty() || group.levels.empty())
    for (std::size_t i = 0; i < mesh; ++i)
      if (axes >> i & 1u)
        for (const AxisPart& part : placement.parts(static_cast<int>(i))) bits |= 1u << part.axis;
  for (std::size_t l = 0; l < group.levels.size(); ++l)
    if (group.levels[l].groups > 1.0) bits |= 1u << (16 + l);
  return bits;
}

/// collective_estimate() of a group is a constant, a part that grows with the bytes and one that grows with their
/// root; three sizes tell them.
CollectiveForm form_of(const CollectiveCalibration& fit, CollectiveKind kind, const CollectiveGroup& group,
                       Fabric fabric) {
  constexpr double one = 1e6, four = 4e6;
  const auto at = [&](double bytes) { return collective_estimate(fit, kind, Bytes(bytes), group, fabric).value(); };
  CollectiveForm form;
  form.floor = at(0.0);
  const double a = at(one) - form.floor, b = at(four) - form.floor;  // x + y and 4 x + 2 y
  form.rate = (b - 2.0 * a) / 2.0 / one;
  form.root = (4.0 * a - b) / 2.0 / std::sqrt(one);
  return form;
}

}  // namespace

double CollectiveForm::seconds(double bytes, double count) const {
  return count * floor + rate * bytes + (root > 0.0 ? root * std::sqrt(count * bytes) : 0.0);
}

std::array<double, roles> role_sizes(const Parallelism& parallelism) {
  std::array<double, roles> sizes{1, 1, 1, 1, 1};
  for (const MeshAxis& axis : stage_mesh(parallelism).axes)
    sizes[stage_axis_names.find(axis.name)] = static_cast<double>(axis.size);
  return sizes;
}

Result<StageLinks> stage_links(const Parallelism& parallelism, std::size_t layout, const Cluster& cluster,
                               const CollectiveCalibration* calibration) {
  StageLinks links;
  const auto& out_of_node = cluster.chip.network.scale_out;
  const Fabric fabric = fabric_of(out_of_node && out_of_node->technology ? *out_of_node->technology : "");
  links.network_share = network_efficiency(cluster.chip);
  const Mesh mesh = whole_mesh(parallelism, layout);
  links.size = role_sizes(parallelism);
  std::array<int, roles> axis_of{-1, -1, -1, -1, -1};
  int pipeline = -1;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    const std::size_t role = stage_axis_names.find(mesh.axes[i].name);
    if (role == std::string_view::npos) {
      pipeline = static_cast<int>(i);
      continue;
    }
    axis_of[role] = static_cast<int>(i);
  }
  if (mesh.devices() == 1 && cluster.chips() == 1) return links;
  ASSAY_TRY(placement, Placement::make(mesh, cluster, "strategy"));
  for (std::size_t set = 1; set < 32; ++set) {
    AxisSet axes = 0;
    bool present = true;
    for (std::size_t r = 0; r < roles; ++r)
      if (set >> r & 1u) {
        if (axis_of[r] < 0) {
          present = false;
          continue;
        }
        axes |= axis_bit(axis_of[r]);
      }
    if (axes == 0) continue;
    if (!present) {  // axes of one device add nothing: the same as the set without them
      std::size_t rest = 0;
      for (std::size_t r = 0; r < roles; ++r)
        if (set >> r & 1u && axis_of[r] >= 0) rest |= std::size_t{1} << r;
      links.lines[set] = links.lines[rest];
      links.forms[set] = links.forms[rest];
      links.resources[set] = links.resources[rest];
      continue;
    }
    const CollectiveGroup group = placement.group(axes);
    for (std::size_t k = 0; k < 4; ++k) {
      const CollectiveLine line = links.lines[set][k] = collective_line(line_kinds[k], group);
      links.forms[set][k] = calibration
                                ? form_of(*calibration, line_kinds[k], group, fabric)
                                : CollectiveForm{line.floor.value(), line.rate.value() / links.network_share, 0};
    }
    links.resources[set] = resources_of(placement, group, axes, mesh.axes.size());
  }
  if (pipeline >= 0)
    links.between_stages = collective_line(CollectiveKind::permute, placement.group(axis_bit(pipeline)));
  return links;
}

StageSplit split_stages(const Transformer& model, std::int64_t stages) {
  std::vector<std::size_t> order;  // kinds of the decoder are numbered first
  if (model.encoder)
    for (std::uint16_t kind : model.encoder->order) order.push_back(model.decoder.kinds.size() + kind);
  for (std::uint16_t kind : model.decoder.order) order.push_back(kind);
  const auto layers = static_cast<std::int64_t>(order.size());
  StageSplit split;
  std::int64_t next = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    // Stages with one layer more lie in the middle: the ends also hold the embedding and the head.
    const std::int64_t extra = layers % stages, low = (stages - extra) / 2;
    const std::int64_t mine = layers / stages + (s >= low && s < low + extra ? 1 : 0);
    StageSplit::Part part;
    part.stages = 1;
    part.first = s == 0, part.last = s == stages - 1;
    for (std::int64_t i = 0; i < mine; ++i, ++next) {
      const std::size_t kind = order[static_cast<std::size_t>(next)];
      if (kind >= max_layer_kinds) throw InternalError("a model with more kinds of layers than can be priced");
      ++part.layers[kind];
    }
    bool merged = false;
    for (StageSplit::Part& known : split.parts)
      if (known.layers == part.layers && known.first == part.first && known.last == part.last) {
        ++known.stages;
        merged = true;
        break;
      }
    if (!merged) split.parts.push_back(part);
  }
  return split;
}

double microbatches(const TrainingQuestion& question, const Strategy& strategy) {
  const Parallelism& p = strategy.parallelism;
  return question.sequences / (static_cast<double>(p.data * p.fsdp) * static_cast<double>(strategy.micro_batch));
}

ProfileKey profile_key(const Strategy& strategy, std::int64_t sequence) {
  const Parallelism& p = strategy.parallelism;
  ProfileKey key;
  key.tensor = p.tensor, key.context = p.context, key.expert = p.expert;
  key.micro_batch = strategy.micro_batch, key.sequence = sequence;
  key.fsdp = p.fsdp > 1, key.replicas = p.data > 1;
  key.zero = p.zero;
  key.residual = p.residual, key.context_scheme = p.context_scheme;
  key.recompute = recompute_of(strategy.recompute);
  return key;
}

namespace {

/// One pass of one microbatch through some layers: seconds by kind of waiting, in the three readings.
struct PassTime {
  double compute = 0, ideal_compute = 0, ideal_memory = 0, recompute = 0;
  double tensor = 0, context = 0, expert = 0;  ///< critical collectives
  double exposed = 0;                          ///< what of them is not hidden
  std::array<double, roles> ideal_network{};   ///< collectives of each microbatch at full bandwidth, by role
  double all_network = 0;
  double gradients = 0, new_weights = 0;  ///< once per step
  double flops = 0, repeated_flops = 0;

  double chain() const { return compute + tensor + context + expert; }
  void add(const PassTime& other, double times) {
    compute += times * other.compute, ideal_compute += times * other.ideal_compute;
    ideal_memory += times * other.ideal_memory, recompute += times * other.recompute;
    tensor += times * other.tensor, context += times * other.context, expert += times * other.expert;
    exposed += times * other.exposed;
    for (std::size_t r = 0; r < roles; ++r) ideal_network[r] += times * other.ideal_network[r];
    all_network += times * other.all_network;
    gradients += times * other.gradients, new_weights += times * other.new_weights;
    flops += times * other.flops, repeated_flops += times * other.repeated_flops;
  }
};

PassTime pass_time(const PassProfile& pass, const StageLinks& links, bool overlap, const StepEffects& effects) {
  PassTime time;
  time.compute = pass.estimate.value(), time.ideal_compute = pass.compute.value();
  time.ideal_memory = pass.memory.value(), time.recompute = pass.repeated.value();
  time.flops = pass.flops.value(), time.repeated_flops = pass.repeated_flops.value();
  double background = 0.0;
  std::uint32_t background_links = 0;
  struct Waiting {
    std::uint32_t links;
    double seconds;
  };
  std::array<Waiting, max_traffic> waited{};
  std::size_t waits = 0;
  for (const Traffic& traffic : pass.traffic) {
    const CollectiveLine& line = links.lines[traffic.over][StageLinks::line_of(traffic.kind)];
    const double bytes = traffic.bytes / links.ways(traffic.divided), ideal = line.rate.value() * bytes;
    double seconds = links.forms[traffic.over][StageLinks::line_of(traffic.kind)].seconds(bytes, traffic.count);
    if (traffic.once) {
      (traffic.urgency == Urgency::ahead ? time.new_weights : time.gradients) += seconds;
      continue;
    }
    time.all_network += std::max(ideal, traffic.count * line.floor.value());
    for (std::size_t r = 0; r < roles; ++r)
      if (traffic.over >> r & 1u) {
        time.ideal_network[r] += ideal;
        break;
      }
    if (traffic.urgency == Urgency::critical || !overlap) {
      const RoleSet over = traffic.over;
      if (over & role_bit(Role::tensor))
        seconds *= effects.tensor_waited;
      else if (over & role_bit(Role::expert))
        seconds *= effects.expert_waited;
      else if (over & role_bit(Role::context))
        seconds *= effects.context_waited;
      (over & role_bit(Role::tensor)    ? time.tensor
       : over & role_bit(Role::expert)  ? time.expert
       : over & role_bit(Role::context) ? time.context
                                        : time.exposed) += seconds;
      waited[waits++] = {links.resources[over], seconds};
    } else {
      background += seconds;
      background_links |= links.resources[traffic.over];
    }
  }
  // Background traffic hides behind the chain of steps that wait for each other, but not behind collectives on the
  // same links.
  double shared = 0.0;
  for (std::size_t i = 0; i < waits; ++i)
    if (waited[i].links & background_links) shared += waited[i].seconds;
  const double chain = time.chain();
  time.exposed += std::max(0.0, background + shared - chain) + effects.contention * std::min(background, chain);
  return time;
}

double elements_of(const LayerProfile& layer) { return layer.dense_elements + layer.expert_elements; }

/// Ways in which weights, gradients and optimizer states are shared out over data-parallel axes.
struct Sharing {
  double weights = 1, gradients = 1, states = 1;                       ///< of dense weights
  double expert_weights = 1, expert_gradients = 1, expert_states = 1;  ///< experts lie on their own axis already
};

Sharing sharing(const Parallelism& p, const StageLinks& links) {
  constexpr RoleSet everyone =
      role_bit(Role::replica) | role_bit(Role::fsdp) | role_bit(Role::expert) | role_bit(Role::context);
  constexpr RoleSet sharded = everyone & ~role_bit(Role::replica);
  const RoleSet weights = p.zero >= 3 ? everyone : p.fsdp > 1 ? sharded : 0;
  const RoleSet states = p.zero >= 1 ? everyone : weights;
  const RoleSet gradients = p.zero >= 2 ? everyone : weights;
  constexpr RoleSet no_expert = static_cast<RoleSet>(~role_bit(Role::expert));
  return {links.ways(weights),
          links.ways(gradients),
          links.ways(states),
          links.ways(weights & no_expert),
          links.ways(gradients & no_expert),
          links.ways(states & no_expert)};
}

/// Seconds that a pipeline idles, from the mean times of one microbatch on one stage.
double bubble_time(const PipelineShape& shape, double forward, double backward) {
  const StageTimes stage{Seconds(forward), Seconds(backward / 2.0), Seconds(backward / 2.0)};
  return pipeline_form(shape, stage).makespan.value() - static_cast<double>(shape.microbatches) * (forward + backward);
}

/// What a stage has to hide copies behind, in seconds: both passes of a microbatch and the update.
struct HidesCopies {
  double forward, backward, update;
};

/// Moves activations or optimizer states of a stage to the host; what is at work stays on the chip.
void move_to_host(const TrainingQuestion& question, Offload offload, const HidesCopies& hides, double layer_kept,
                  double layer_share, SteadyCost::Part& out) {
  HostLoad load;
  if (moves_activations(offload)) {
    load.activations = out.offloaded = out.kept;
    out.kept = std::min(out.kept, layers_on_chip * layer_kept);
  }
  if (moves_states(offload)) {
    load.states = out.memory.host = out.memory.master + out.memory.moments;
    out.memory.buffers += std::min(1.0, layers_on_chip * layer_share) * load.states;
    out.memory.master = out.memory.moments = 0.0;
  }
  load.forward = hides.forward, load.backward = hides.backward, load.update = hides.update;
  load.overlap = question.overlap;
  out.host = host_time(question.host, load);
  out.forward += out.host.forward, out.backward += out.host.backward;
  out.lower = std::max(out.lower, out.host.ideal);
  out.upper += 2.0 * out.host.ideal;
}

}  // namespace

SteadyCost steady_cost(const TrainingQuestion& question, const Strategy& strategy, const TrainingProfile& profile,
                       const StageLinks& links, const StageSplit& split) {
  SteadyCost steady;
  steady_cost(question, strategy, profile, links, split, steady);
  return steady;
}

void steady_cost(const TrainingQuestion& question, const Strategy& strategy, const TrainingProfile& profile,
                 const StageLinks& links, const StageSplit& split, SteadyCost& steady) {
  const double m = microbatches(question, strategy);
  const auto stages = static_cast<double>(strategy.parallelism.pipeline);
  const Formats& formats = question.setup.formats;
  const KernelRates& rates = question.setup.rates;
  const StepEffects& effects = question.setup.effects;
  const Sharing shared = sharing(strategy.parallelism, links);
  const double weight_bytes = storage(formats.weights, 1.0).value(),
               grad_bytes = storage(formats.gradients, 1.0).value();
  const double state_bytes = question.setup.optimizer.state_bytes();
  const double update_bytes =
      grad_bytes + 2.0 * state_bytes + (question.setup.optimizer.master ? 1.0 : 2.0) * weight_bytes;
  const double memory_rate = rates.hbm.value() * (rates.pointwise ? rates.pointwise->optimizer : rates.memory_share);

  // Only those of the model's kinds are filled, and the rest costs nothing.
  std::array<std::optional<PassTime>, max_layer_kinds> forward, backward;
  const std::size_t kinds = std::min<std::size_t>(profile.kinds.size(), forward.size());
  for (std::size_t k = 0; k < kinds; ++k) {
    forward[k] = pass_time(profile.kinds[k].forward, links, question.overlap, effects);
    backward[k] = pass_time(profile.kinds[k].backward, links, question.overlap, effects);
  }
  const PassTime embed_forward = pass_time(profile.embedding.forward, links, question.overlap, effects),
                 embed_backward = pass_time(profile.embedding.backward, links, question.overlap, effects),
                 head_forward = pass_time(profile.head.forward, links, question.overlap, effects),
                 head_backward = pass_time(profile.head.backward, links, question.overlap, effects);
  // What is recomputed keeps the layer's input only, and that is a tensor like any other.
  const double kept_over_fewest = names_kept(strategy.recompute) ? 1.0 : effects.activations;
  const Optimizer& optimizer = question.setup.optimizer;
  const bool casts = optimizer.master && optimizer.cast_when_gathered && shared.weights > 1.0;
  steady.frees_gradients = effects.frees_gradients && m <= 1.0;
  steady.scatters_gradients = shared.gradients > 1.0;
  steady.reserved = effects.reserved, steady.context = effects.context.value();
  steady.microbatches = m;
  steady.fixed = effects.fixed.value();
  steady.stragglers = effects.straggler * std::max(0.0, std::log2(question.chips / 8.0));
  steady.stages = stages;
  steady.boundary_ideal = stages > 1.0 ? profile.boundary.value() * links.between_stages.rate.value() : 0.0;
  steady.hop = stages > 1.0 ? steady.boundary_ideal / links.network_share + links.between_stages.floor.value() : 0.0;
  steady.parts.clear();
  for (const StageSplit::Part& part : split.parts) {
    PassTime f, b;
    double dense = 0.0, expert = 0.0, layer_elements = 0.0, layer_kept = 0.0;
    SteadyCost::Part out;
    for (std::size_t k = 0; k < kinds; ++k) {
      const double n = part.layers[k];
      if (n == 0.0) continue;
      f.add(*forward[k], n), b.add(*backward[k], n);
      const LayerProfile& layer = profile.kinds[k];
      dense += n * layer.dense_elements, expert += n * layer.expert_elements;
      out.kept += n * layer.kept.value() * kept_over_fewest;
      layer_elements = std::max(layer_elements, elements_of(layer));
      layer_kept = std::max(layer_kept, layer.kept.value() * kept_over_fewest);
      out.memory.workspace =
          std::max(out.memory.workspace, layer.again.value() * effects.activations + layer.widest.value());
    }
    if (part.first) f.add(embed_forward, 1.0), b.add(embed_backward, 1.0), dense += elements_of(profile.embedding);
    if (part.last) {
      f.add(head_forward, 1.0), b.add(head_backward, 1.0), dense += elements_of(profile.head);
      out.memory.head =
          effects.logits * (profile.head.kept.value() + profile.head.gathered.value() + profile.head.widest.value());
    }
    out.stages = part.stages, out.first = part.first, out.last = part.last;
    out.forward = f.chain() + f.exposed, out.backward = b.chain() + b.exposed;
    out.compute = f.compute + b.compute, out.recompute = b.recompute;
    out.tensor = f.tensor + b.tensor, out.context = f.context + b.context, out.expert = f.expert + b.expert;
    out.weights = f.exposed + b.exposed;
    out.ideal_compute = f.ideal_compute + b.ideal_compute, out.ideal_memory = f.ideal_memory + b.ideal_memory;
    out.lower = std::max(out.ideal_compute, out.ideal_memory);
    for (std::size_t r = 0; r < roles; ++r) {
      out.network[r] = f.ideal_network[r] + b.ideal_network[r];
      out.lower = std::max(out.lower, out.network[r]);
    }
    out.upper =
        std::max(out.ideal_compute, out.ideal_memory) + f.all_network + b.all_network + 2.0 * steady.boundary_ideal;
    out.model_flops = 3.0 * f.flops, out.executed_flops = f.flops + b.flops;
    // The end of the step: gradients are reduced while the last microbatch's backward pass runs, new weights are
    // brought back while the next step begins.
    const double reduce = f.gradients + b.gradients, bring = f.new_weights + b.new_weights;
    out.gradients = question.overlap ? std::max(effects.gradients_waited * reduce, reduce - b.chain()) : reduce;
    const double update = (dense / shared.states + expert / shared.expert_states) * update_bytes / memory_rate;
    out.update = update + (question.overlap ? std::max(0.0, bring - f.chain()) : bring);
    out.memory.weights = casts ? 0.0 : weight_bytes * (dense / shared.weights + expert / shared.expert_weights);
    out.memory.gradients = grad_bytes * (dense / shared.gradients + expert / shared.expert_gradients);
    out.memory.master = optimizer.master_bytes() * (dense / shared.states + expert / shared.expert_states);
    out.memory.moments = optimizer.moment_bytes() * (dense / shared.states + expert / shared.expert_states);
    // Weights in use are whole: this layer's and the next one's. So are gradients that are not yet reduced.
    if (shared.weights > 1.0) out.memory.buffers = 2.0 * weight_bytes * layer_elements;
    if (shared.gradients > 1.0) out.memory.buffers += (weight_bytes + grad_bytes) * layer_elements;
    if (strategy.offload != Offload::none)
      move_to_host(question, strategy.offload, {f.chain(), b.chain(), update}, layer_kept,
                   layer_elements / (dense + expert), out);
    steady.parts.push_back(out);
  }
}

MemoryParts memory_holding(const SteadyCost& steady, const SteadyCost::Part& part, double held, double copies) {
  MemoryParts memory = part.memory;
  memory.weights *= copies;
  // What goes to the host does so microbatch by microbatch: one is on its way at a time.
  memory.activations = part.offloaded > 0.0 ? part.kept : part.kept * held;
  memory.host += part.offloaded * held;
  // At the loss no gradient exists yet; behind it activations make room for them. The allocator keeps memory apart by
  // stream, and gradients that are scattered come to be on that of the collectives: room made elsewhere is none for
  // them.
  const double late = steady.frees_gradients ? std::min(memory.gradients, memory.activations + memory.head) : 0.0;
  memory.gradients -= late;
  // Either logits are there, or a layer is on its way back.
  (memory.head > memory.workspace ? memory.workspace : memory.head) = 0.0;
  memory.reserve = (steady.reserved - 1.0) * memory.allocated() + (steady.scatters_gradients ? late : 0.0);
  memory.context = steady.context;
  return memory;
}

TrainingCost training_cost(const SteadyCost& steady, const Strategy& strategy) {
  const double m = steady.microbatches, stages = steady.stages;
  const PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline, static_cast<std::int64_t>(m),
                            strategy.interleave};
  const double copies = strategy.schedule == PipelineSchedule::dualpipe && stages > 1.0 ? 2.0 : 1.0;
  const double handover = 2.0 * static_cast<double>(strategy.interleave) * steady.hop;
  TrainingCost cost;
  double slowest = -1.0, slowest_lower = 0.0, slowest_upper = 0.0, sum_lower = 0.0, sum_upper = 0.0;
  double mean_forward = 0.0, mean_backward = 0.0;
  for (const SteadyCost::Part& part : steady.parts) {
    const double share = part.stages / stages;
    mean_forward += share * (part.forward + handover / 2.0);
    mean_backward += share * (part.backward + handover / 2.0);
    cost.compute += share * m * part.ideal_compute;
    cost.model_flops += share * m * part.model_flops;
    cost.executed_flops += share * m * part.executed_flops;
    cost.memory_time = std::max(cost.memory_time, m * part.ideal_memory);
    for (std::size_t r = 0; r < roles; ++r) cost.network[r] = std::max(cost.network[r], m * part.network[r]);
    slowest_lower = std::max(slowest_lower, part.lower), slowest_upper = std::max(slowest_upper, part.upper);
    sum_lower += part.stages * part.lower, sum_upper += part.stages * part.upper;
    const double whole = m * (part.forward + part.backward) + part.gradients + part.update + part.host.update;
    cost.host_time = std::max(cost.host_time, m * part.host.ideal + part.host.ideal_update);
    if (whole > slowest) {
      slowest = whole;
      StepParts& step = cost.parts;
      step.compute = m * part.compute, step.recompute = m * part.recompute;
      step.tensor = m * part.tensor, step.context = m * part.context, step.expert = m * part.expert;
      step.weights = m * part.weights;
      step.handover = m * handover, step.gradients = part.gradients, step.update = part.update;
      step.host = m * (part.host.forward + part.host.backward) + part.host.update;
    }
    // A later stage holds fewer microbatches; the first of those like this one holds the most.
    const std::int64_t first = part.first || shape.stages == 1 ? 0 : part.last ? shape.stages - 1 : 1;
    const double held = shape.stages > 1 ? peak_microbatches(shape, first) : 1.0;
    MemoryParts memory = memory_holding(steady, part, held, copies);
    memory.stage = first;
    if (memory.total() > cost.memory.total()) cost.memory = memory;
  }
  cost.parts.bubble = stages > 1.0 ? bubble_time(shape, mean_forward, mean_backward) : 0.0;
  cost.parts.overhead = steady.stragglers * cost.parts.total() + steady.fixed;
  cost.estimate = cost.parts.total();
  // Ideal hardware still has to fill the pipeline.
  const double fill = stages > 1.0 ? bubble_time(shape, 1.0, 2.0) / 3.0 / stages : 0.0;
  cost.fill = fill * sum_lower;
  cost.lower = std::min(cost.estimate, std::max(m * slowest_lower + cost.fill, cost.host_time));
  cost.upper = m * slowest_upper + (stages - 1.0) / stages * sum_upper;
  return cost;
}

Result<TrainingCost> price_strategy(const TrainingQuestion& question, std::int64_t sequence, const Cluster& cluster,
                                    const Strategy& strategy) {
  ASSAY_TRY(links, stage_links(strategy.parallelism, strategy.layout, cluster,
                               question.collectives ? &*question.collectives : nullptr));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  const StageSplit split = split_stages(*question.setup.model, strategy.parallelism.pipeline);
  return training_cost(steady_cost(question, strategy, profile, links, split), strategy);
}

}  // namespace assay
