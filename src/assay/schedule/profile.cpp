#include "assay/schedule/profile.h"

#include <algorithm>
#include <string_view>

#include "assay/cost/placement.h"
#include "assay/schedule/joined_products.h"

namespace assay {
namespace {

std::size_t at(int id) { return static_cast<std::size_t>(id); }

/// Stand-in for the size of a data axis: any above one shows which collectives run over it.
constexpr std::int64_t some = 2;

bool is_weight(const ProgramTensor& tensor) {
  return tensor.tensor_class == TensorClass::weight || tensor.tensor_class == TensorClass::used_weight;
}

/// Whether gradients of weights can be made while a collective of the backward pass is under way: the sum of an input's
/// gradient is not what they read, and a kept input that is gathered again can be asked for before it is needed. What
/// arrives from the layer behind is waited for, and so is what forward work done again needs.
bool runs_beside(const Step& step, const ProgramTensor& before, Phase phase) {
  if (phase != Phase::backward || step.urgency != Urgency::critical) return false;
  if (step.op == Op::all_gather) return before.is_kept && !before.is_gradient;
  return (step.op == Op::reduce_scatter || step.op == Op::all_reduce) && !step.is_repeated;
}

void add_collective(PassProfile& pass, const Program& program, const Step& step, Phase phase, ProfilePart part) {
  const bool of_work = step.urgency == Urgency::critical && !step.once;
  if (part == (of_work ? ProfilePart::weights_traffic : ProfilePart::work)) return;
  const ProgramTensor& before = program.tensor(step.in[0]);
  Traffic entry;
  entry.kind = collective_of(step.op);
  entry.over = roles_of(program.mesh, step.axes);
  entry.urgency = step.urgency;
  entry.once = step.once;
  entry.beside = runs_beside(step, before, phase);
  double bytes = array_bytes(program, step).value();
  if (is_weight(before) || step.urgency == Urgency::afterwards) {  // weights, or their gradients
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
        known.urgency == entry.urgency && known.once == entry.once && known.beside == entry.beside) {
      known.bytes += bytes;
      if (!bucketed) known.count += 1.0;
      return;
    }
  entry.bytes = bytes;
  entry.count = 1.0;
  pass.traffic.push_back(entry);
}

bool is_plain_attention(const Program& program, const Step& step) {
  return step.op == Op::attention && step.detail >= 0 && !program.attentions[at(step.detail)].flash;
}
bool is_plain_attention_grad(const Program& program, const Step& step) {
  return step.op == Op::attention_grad && step.detail >= 0 && !program.attentions[at(step.detail)].flash;
}

bool is_flash_attention(const Program& program, const Step& step) {
  return (step.op == Op::attention || step.op == Op::attention_grad) && !is_plain_attention(program, step) &&
         !is_plain_attention_grad(program, step);
}

/// The probabilities of plain attention: what it makes besides its result.
const ProgramTensor& scores(const Program& program, const Step& step) {
  return program.tensor(step.op == Op::attention ? step.out[1] : step.in[5]);
}

/// Dropped probabilities and their mask of one byte, over the probabilities (two bytes).
constexpr double dropped_copies = 1.5;
/// What drawing the mask moves besides, in the same measure: probabilities are read, written and their mask written;
/// backward the mask is read, their gradients read and written.
constexpr double dropped_traffic = 2.5;

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
    case Op::attention_grad: {
      if (!is_plain_attention(program, step) && !is_plain_attention_grad(program, step)) return effects.attention;
      constexpr std::int64_t aligned = 8;  // elements of 16 bits in the 16 bytes that tensor cores load at once
      const ProgramTensor& q = program.tensor(step.in[step.op == Op::attention ? 0 : 1]);
      return effects.plain_attention * (q.dims[at(q.rank - 1)].size % aligned == 0 ? 1.0 : effects.unaligned);
    }
    case Op::dispatch:
    case Op::dispatch_grad:
    case Op::combine:
    case Op::combine_grad:
    case Op::route:
    case Op::route_grad:
      return effects.expert_traffic;
    case Op::scan:
    case Op::scan_grad:
    case Op::convolve:
    case Op::convolve_grad:
      return effects.scan;
    case Op::loss_sums:
    case Op::loss:
    case Op::loss_grad:
      return effects.loss;
    case Op::cast:
      return effects.cast;
    default:
      return effects.pointwise;
  }
}

bool makes_weight_gradient(const Program& program, const Step& step) {
  return step.op == Op::product && program.tensor(step.out[0]).is_gradient && !is_weight(program.tensor(step.in[0])) &&
         !is_weight(program.tensor(step.in[1]));
}

/// Time to move bytes as element-wise steps do.
Seconds streamed(const KernelRates& rates, Bytes bytes) {
  return bytes / rates.hbm / (rates.pointwise ? rates.pointwise->stream : rates.memory_share);
}

void add_block(PassProfile& pass, Bytes& widest, const Program& program, const TrainingSetup& setup, const Block& block,
               ProfilePart part) {
  double launches = 0.0, launches_again = 0.0;
  bool routes = false;
  JoinedProducts joined(setup.rates, program);
  const double droop = setup.rates.matmul ? setup.rates.matmul->droop / (1.0 + setup.rates.matmul->droop) : 0.0;
  const auto add_estimate = [&](Seconds estimate, bool is_repeated, bool of_weight) {
    pass.estimate += estimate, launches += 1.0;
    if (of_weight) pass.weight_gradients += estimate;
    if (is_repeated) pass.repeated += estimate, launches_again += 1.0;
  };
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op == Op::slice) continue;
    if (is_collective(step.op)) {
      add_collective(pass, program, step, block.phase, part);
      continue;
    }
    const KernelTime time = kernel_time(setup.rates, program, step);
    Seconds alone = time.estimate;
    if (setup.dropout && (is_plain_attention(program, step) || is_plain_attention_grad(program, step)))
      alone += streamed(setup.rates, dropped_traffic * local_bytes(program, scores(program, step)));
    if (!setup.effects.joins_products || !joined.take(step)) {
      const Seconds stretched = stretch_of(setup.effects, program, step) * alone;
      add_estimate(stretched, step.is_repeated, makes_weight_gradient(program, step));
      if (step.op == Op::product) pass.slowed += droop * stretched;
      if (step.op == Op::product || is_flash_attention(program, step)) pass.busy += stretched;
    }
    pass.compute += time.compute;
    routes |= step.op == Op::route || step.op == Op::route_grad;
    // Ideal kernels fuse what is element-wise into what is not.
    if (step.flops.value() > 0.0) pass.memory += time.memory;
    pass.flops += step.flops;
    const bool of_slots = program.tensor(step.in[0]).find(LogicalDim::capacity) >= 0;
    pass.model_flops += of_slots ? step.flops / setup.expert_load : step.flops;
    if (step.is_repeated) pass.repeated_flops += step.flops;
    Bytes around;
    for (int id : step.in)
      if (id >= 0 && !is_weight(program.tensor(id))) around += local_bytes(program, program.tensor(id));
    for (int id : step.out)
      if (id >= 0 && !is_weight(program.tensor(id))) around += local_bytes(program, program.tensor(id));
    widest = std::max(widest, around);
  }
  for (const JoinedProducts::Product& product : joined.products()) {
    const Seconds stretched = setup.effects.product * product.estimate;
    add_estimate(stretched, product.is_repeated, product.of_weight);
    pass.slowed += droop * stretched, pass.busy += stretched;
  }
  // The host starts every kernel: short ones wait for it.
  const Seconds launch = routes ? setup.effects.routed_launch : setup.effects.launch;
  pass.started += launches * launch;
  pass.estimate = std::max(pass.estimate, launches * launch);
  pass.repeated = std::max(pass.repeated, launches_again * launch);
}

/// Weights that are gathered and kept for the backward pass.
Bytes gathered_bytes(const Program& program, const Block& forward) {
  Bytes sum;
  for (std::int32_t i = forward.first; i < forward.last; ++i)
    for (int id : program.steps[at(i)].out)
      if (id >= 0 && is_weight(program.tensor(id)) && program.tensor(id).is_kept)
        sum += local_bytes(program, program.tensor(id));
  return sum;
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

/// What dropout writes beside a layer's own results: a byte for each element that goes onto the residual stream, and
/// inside of plain attention a byte and a second copy for each probability. Flash attention draws its mask again.
struct DropoutBytes {
  Bytes residual, attention;
};

DropoutBytes dropout_bytes(const Program& program, const Block& forward) {
  DropoutBytes sum;
  for (std::int32_t i = forward.first; i < forward.last; ++i) {
    const Step& step = program.steps[at(i)];
    if (step.op == Op::add && program.tensor(step.out[0]).tensor_class == TensorClass::residual)
      sum.residual += storage(Dtype::int8, local_elements(program, program.tensor(step.out[0])));
    if (is_plain_attention(program, step))
      sum.attention += dropped_copies * local_bytes(program, scores(program, step));
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

}  // namespace

RoleSet roles_of(const Mesh& mesh, AxisSet axes) {
  unsigned all = 0;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    if (axes >> i & 1u) all |= 1u << stage_axis_names.find(whole_axis(mesh.axes[i].name));
  return static_cast<RoleSet>(all);
}

TrainingProfile make_profile(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part) {
  const Transformer& model = *setup.model;
  Parallelism p;
  p.tensor = key.tensor, p.context = key.context, p.expert = key.expert;
  p.fsdp = key.fsdp ? key.expert * some : 1;
  p.data = (key.replicas ? some : 1) * (key.fsdp ? 1 : key.expert);
  p.zero = key.zero, p.residual = key.residual, p.context_scheme = key.context_scheme;
  const auto [mesh, rules] = training_stage(p, model);
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
        if (is_collective(step.op)) add_collective(layer.backward, program, step, block.phase, part);
      }
      continue;
    }
    PassProfile& pass = block.phase == Phase::forward ? layer.forward : layer.backward;
    if (block.phase == Phase::forward) layer.gathered = gathered_bytes(program, block);
    if (part == ProfilePart::weights_traffic) {
      for (std::int32_t i = block.first; i < block.last; ++i)
        if (is_collective(program.steps[at(i)].op))
          add_collective(pass, program, program.steps[at(i)], block.phase, part);
      continue;
    }
    add_block(pass, layer.widest, program, setup, block, part);
    if (block.phase == Phase::forward) {
      layer.kept = kept_bytes(program, block) - layer.gathered;
      if (setup.dropout) {
        const DropoutBytes drawn = dropout_bytes(program, block);
        (key.recompute.covers(Op::add) ? layer.again : layer.kept) += drawn.residual;
        (key.recompute.covers(Op::attention) ? layer.again : layer.kept) += drawn.attention;
      }
    }
    if (block.phase == Phase::backward) layer.again += made_again(program, block);
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
