#include "assay/schedule/profile.h"

#include <algorithm>
#include <string_view>

#include "assay/cost/placement.h"

namespace assay {
namespace {

std::size_t at(int id) { return static_cast<std::size_t>(id); }

/// Stand-in for the size of a data axis: any above one shows which collectives run over it.
constexpr std::int64_t some = 2;

bool is_weight(const ProgramTensor& tensor) {
  return tensor.tensor_class == TensorClass::weight || tensor.tensor_class == TensorClass::used_weight;
}

void add_collective(PassProfile& pass, const Program& program, const Step& step) {
  const ProgramTensor& before = program.tensor(step.in[0]);
  Traffic entry;
  entry.kind = collective_of(step.op);
  entry.over = roles_of(program.mesh, step.axes);
  entry.urgency = step.urgency;
  entry.once = step.once;
  double bytes = array_bytes(program, step).value();
  if (is_weight(before)) {
    constexpr RoleSet open = role_bit(Role::replica) | role_bit(Role::fsdp);
    const AxisSet rest = before.sharding.split_axes() & ~step.axes;
    entry.divided = roles_of(program.mesh, rest) & open;
    for (std::size_t i = 0; i < program.mesh.axes.size(); ++i)
      if (rest & axis_bit(static_cast<int>(i)) && roles_of(program.mesh, axis_bit(static_cast<int>(i))) & open)
        bytes *= program.axis_sizes[i];
  }
  // Weights of a layer travel together, activations one after the other.
  const bool bucketed = entry.urgency != Urgency::critical;
  for (Traffic& known : pass.traffic)
    if (known.kind == entry.kind && known.over == entry.over && known.divided == entry.divided &&
        known.urgency == entry.urgency && known.once == entry.once) {
      known.bytes += bytes;
      if (!bucketed) known.count += 1.0;
      return;
    }
  entry.bytes = bytes;
  entry.count = 1.0;
  pass.traffic.push_back(entry);
}

/// How much longer a step takes in the midst of others than its kernel alone.
double stretch_of(const StepEffects& effects, const Program& program, const Step& step) {
  switch (step.op) {
    case Op::product: {
      const ProgramTensor& second = program.tensor(step.in[1]);
      const bool of_experts =
          second.find(LogicalDim::experts) >= 0 || program.tensor(step.out[0]).find(LogicalDim::experts) >= 0;
      return effects.product * (of_experts ? effects.expert_product : 1.0);
    }
    case Op::attention:
    case Op::attention_grad:
      return effects.attention;
    case Op::dispatch:
    case Op::dispatch_grad:
    case Op::combine:
    case Op::combine_grad:
    case Op::route:
    case Op::route_grad:
      return effects.expert_traffic;
    case Op::loss_sums:
    case Op::loss:
    case Op::loss_grad:
      return effects.loss;
    default:
      return effects.pointwise;
  }
}

void add_block(PassProfile& pass, Bytes& widest, const Program& program, const TrainingSetup& setup,
               const Block& block) {
  double launches = 0.0, launches_again = 0.0;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op == Op::slice) continue;
    if (is_collective(step.op)) {
      add_collective(pass, program, step);
      continue;
    }
    const KernelTime time = kernel_time(setup.rates, program, step);
    const Seconds estimate = stretch_of(setup.effects, program, step) * time.estimate;
    pass.compute += time.compute, pass.estimate += estimate;
    launches += 1.0;
    // Ideal kernels fuse what is element-wise into what is not.
    if (step.flops.value() > 0.0) pass.memory += time.memory;
    pass.flops += step.flops;
    if (step.is_repeated) pass.repeated += estimate, pass.repeated_flops += step.flops, launches_again += 1.0;
    Bytes around;
    for (int id : step.in)
      if (id >= 0 && !is_weight(program.tensor(id))) around += local_bytes(program, program.tensor(id));
    for (int id : step.out)
      if (id >= 0 && !is_weight(program.tensor(id))) around += local_bytes(program, program.tensor(id));
    widest = std::max(widest, around);
  }
  // The host starts every kernel: short ones wait for it.
  pass.estimate = std::max(pass.estimate, launches * setup.effects.launch);
  pass.repeated = std::max(pass.repeated, launches_again * setup.effects.launch);
}

/// What the backward pass makes again and holds until the layer is done.
Bytes made_again(const Program& program, const Block& backward) {
  Bytes sum;
  for (std::int32_t i = backward.first; i < backward.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (!step.is_repeated) continue;
    for (int id : step.out)
      if (id >= 0 && !is_weight(program.tensor(id))) sum += local_bytes(program, program.tensor(id));
  }
  return sum;
}

void add_weights(LayerProfile& layer, const std::vector<Weight>& weights, const Program& program,
                 const ShardingRules& rules) {
  for (const Weight& weight : weights) {
    const double elements = local_elements(rules, program, TensorClass::used_weight, weight);
    (weight.part == Part::experts ? layer.expert_elements : layer.dense_elements) += elements;
  }
}

void replace_weights_traffic(PassProfile& pass, const PassProfile& from) {
  FixedList<Traffic, max_traffic> traffic;
  for (const Traffic& entry : pass.traffic)
    if (entry.urgency == Urgency::critical && !entry.once) traffic.push_back(entry);
  for (const Traffic& entry : from.traffic)
    if (entry.urgency != Urgency::critical || entry.once) traffic.push_back(entry);
  pass.traffic = traffic;
}

void replace_weights_traffic(LayerProfile& layer, const LayerProfile& from) {
  replace_weights_traffic(layer.forward, from.forward);
  replace_weights_traffic(layer.backward, from.backward);
}

}  // namespace

RoleSet roles_of(const Mesh& mesh, AxisSet axes) {
  unsigned all = 0;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (axes >> i & 1u) all |= 1u << stage_axis_names.find(mesh.axes[i].name);
  return static_cast<RoleSet>(all);
}

void take_weights_traffic(TrainingProfile& work, const TrainingProfile& sharing) {
  for (std::size_t k = 0; k < work.kinds.size(); ++k) replace_weights_traffic(work.kinds[k], sharing.kinds[k]);
  replace_weights_traffic(work.embedding, sharing.embedding);
  replace_weights_traffic(work.head, sharing.head);
}

TrainingProfile make_profile(const TrainingSetup& setup, const ProfileKey& key) {
  const Transformer& model = *setup.model;
  Parallelism p;
  p.tensor = key.tensor, p.context = key.context, p.expert = key.expert;
  p.fsdp = key.fsdp ? key.expert * some : 1;
  p.data = (key.replicas ? some : 1) * (key.fsdp ? 1 : key.expert);
  p.zero = key.zero, p.residual = key.residual, p.context_scheme = key.context_scheme;
  const Mesh mesh = stage_mesh(p);
  const ShardingRules rules = training_rules(p);
  TrainingPlan plan;
  plan.work.sequences = key.micro_batch * p.data * p.fsdp;
  plan.work.queries = plan.work.keys = key.sequence;
  plan.work.source = model.encoder ? key.sequence : 0;
  plan.work.flash = setup.flash;
  plan.work.expert_load = setup.expert_load;
  plan.formats = setup.formats, plan.recompute = key.recompute, plan.optimizer = setup.optimizer;
  const Program program = lower_training(model, mesh, rules, plan);

  TrainingProfile profile;
  const std::size_t decoder_kinds = model.decoder.kinds.size();
  profile.kinds.resize(decoder_kinds + (model.encoder ? model.encoder->kinds.size() : 0));
  for (const Block& block : program.blocks) {
    LayerProfile& layer = block.kind >= 0             ? profile.kinds[at(block.kind)]
                          : block.name == "embedding" ? profile.embedding
                                                      : profile.head;
    if (block.phase == Phase::update) {  // updated weights that are shared out travel back before they are used
      for (std::int32_t i = block.first; i < block.last; ++i) {
        Step step = program.steps[at(i)];
        step.urgency = Urgency::ahead;
        if (is_collective(step.op)) add_collective(layer.backward, program, step);
      }
      continue;
    }
    PassProfile& pass = block.phase == Phase::forward ? layer.forward : layer.backward;
    add_block(pass, layer.widest, program, setup, block);
    if (block.phase == Phase::forward) layer.kept = kept_bytes(program, block);
    if (block.phase == Phase::backward) layer.again = made_again(program, block);
  }
  for (std::size_t i = 0; i < profile.kinds.size(); ++i) {
    const Layer& layer = i < decoder_kinds ? model.decoder.kinds[i] : model.encoder->kinds[i - decoder_kinds];
    add_weights(profile.kinds[i], layer_weights(model, layer), program, rules);
  }
  for (const Weight& weight : outer_weights(model))
    add_weights(weight.part == Part::embedding || weight.part == Part::positions ? profile.embedding : profile.head,
                {weight}, program, rules);
  // A stage hands on what lies between layers.
  for (const Block& block : program.blocks)
    if (block.kind >= 0 && block.phase == Phase::forward) {
      for (std::int32_t i = block.first; i < block.last; ++i) {
        const ProgramTensor& in = program.tensor(program.steps[at(i)].in[0]);
        if (in.is_given && in.tensor_class == TensorClass::residual)
          profile.boundary = std::max(profile.boundary, local_bytes(program, in));
      }
      break;
    }
  return profile;
}

}  // namespace assay
