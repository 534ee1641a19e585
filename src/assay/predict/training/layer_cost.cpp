#include "assay/predict/training/layer_cost.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "assay/base/index.h"
#include "assay/base/text.h"
#include "assay/model/layer_parts.h"
#include "assay/predict/collective/placement.h"
#include "assay/predict/training/recompute_profiles.h"

namespace assay::training {
namespace {

/// Stand-in for the size of a data axis: any above one shows which collectives run over it.
constexpr std::int64_t stand_in_size = 2;

Bytes bytes_of(const program::ProgramTensor& tensor) { return program::local_bytes(tensor, tensor.elements); }

/// Whether a collective of the backward pass can overlap weight-gradient products: they do not read the reduced input
/// gradient, and a kept input that is gathered again can be prefetched. What arrives from the next layer and what
/// recomputation needs is exposed.
bool overlaps_weight_gradients(const program::Step& step, const program::ProgramTensor& before, program::Phase phase) {
  if (phase != program::Phase::backward || step.urgency != program::Urgency::critical) return false;
  if (program::gathers(step.collective)) return step.is_recomputed && !before.is_gradient;  // if `before` is kept
  return program::facts(step.collective).sums && !step.is_recomputed;
}

/// The roles of the axes of a program's mesh.
struct AxisRoles {
  std::array<RoleSet, program::max_mesh_axes> of_axis{};

  explicit AxisRoles(const program::Mesh& mesh) {
    for (std::size_t i = 0; i < mesh.axes.size(); ++i)
      if (mesh.axes[i].role) of_axis[i] = role_bit(*mesh.axes[i].role);
  }
  RoleSet of(program::AxisSet axes) const {
    RoleSet all = 0;
    for (; axes != 0; axes &= axes - 1) all |= of_axis[static_cast<std::size_t>(std::countr_zero(axes))];
    return all;
  }
};

RoleSet collective_roles(const AxisRoles& roles_by, const program::Program& program, const program::Step& step) {
  const RoleSet over = roles_by.of(step.axes);
  const bool between_experts =
      program::is_exchange(step.collective) && program.tensor(step.in[0]).find(model::LogicalDim::capacity) >= 0;
  return between_experts ? over | role_bit(Role::expert) : over;
}

/// Whether a step only changes the format of an activation or sums partial results that it passes on.
bool passes_on(const program::Step& step) { return step.op == program::Op::cast || step.op == program::Op::add; }

/// Data axes that shard the array of a collective besides those that it runs over: of weights, and of their gradients.
program::AxisSet open_axes(const AxisRoles& roles_by, const program::Program& program, const program::Step& step) {
  constexpr RoleSet open = role_bit(Role::data) | role_bit(Role::fsdp);
  const program::ProgramTensor& before = program.tensor(step.in[0]);
  if (!program::is_weight(before) && step.urgency != program::Urgency::afterwards) return 0;
  const program::AxisSet rest = before.sharding.split_axes() & ~step.axes;
  program::AxisSet axes = 0;
  for (std::size_t i = 0; i < program.mesh.axes.size(); ++i)
    if (rest >> i & 1u && roles_by.of_axis[i] & open) axes |= program::axis_bit(static_cast<int>(i));
  return axes;
}

template <class N>
NumberOf<N, Bytes> bytes_by_role(const N& num, const AxisRoles& roles_by, const program::Program& program,
                                 const program::Step& step) {
  return num.times("shards", program.ways(open_axes(roles_by, program, step)), "of the array, over other devices",
                   collective::array_bytes(num, program, step));
}

/// Nothing where it belongs to the other part.
std::optional<Traffic> traffic_of(const AxisRoles& roles_by, const program::Program& program, const program::Step& step,
                                  program::Phase phase, ProfilePart part) {
  if (part == (is_work(step) ? ProfilePart::weights_traffic : ProfilePart::work)) return std::nullopt;
  const program::ProgramTensor& before = program.tensor(step.in[0]);
  Traffic entry;
  entry.kind = step.collective;
  entry.over = collective_roles(roles_by, program, step);
  entry.urgency = step.urgency;
  entry.once = step.once;
  entry.overlaps_weight_gradients = overlaps_weight_gradients(step, before, phase);
  entry.bytes = bytes_by_role(Plain{}, roles_by, program, step);
  entry.count = 1.0;
  entry.divided = roles_by.of(open_axes(roles_by, program, step));
  return entry;
}

/// Whether products next to a collective may hide it.
bool has_neighbours(const Traffic& traffic) {
  constexpr RoleSet tensor = role_bit(Role::tensor), expert = role_bit(Role::expert);
  return traffic.urgency == program::Urgency::critical && !traffic.once && traffic.over & tensor &&
         !(traffic.over & expert) && traffic.kind != program::Collective::all_to_all;
}

/// Sets what a collective of a block runs next to.
void set_neighbours(const program::Program& program, const program::Block& block, std::int32_t collective,
                    Traffic& traffic) {
  if (!has_neighbours(traffic)) return;
  for (const std::int32_t product : neighbour_products(program, block, collective))
    traffic.beside += program.steps[at(product)].flops;
}

/// Prices the steps of a block, and keeps the steps of a layer for recomputation.
class BlockPricer {
 public:
  BlockPricer(const TrainingSetup& setup, FusedPrices& prices, const program::Program& program, ProfilePart part)
      : setup_(setup),
        kernels_(training_kernels(setup)),
        prices_(prices),
        program_(program),
        part_(part),
        roles_(program.mesh),
        numbers_(program.tensors.size()) {}

  const AxisRoles& roles() const { return roles_; }

  /// Adds a block to a layer; `record` is null in searches.
  void add(const program::Block& block, LayerProfile& layer, RecomputableLayer* recomputable, LayerRecord* record) {
    const bool is_forward = block.phase == program::Phase::forward;
    PassProfile& pass = is_forward ? layer.forward : layer.backward;
    PassRecord* parts = !record ? nullptr : is_forward ? &record->forward : &record->backward;
    if (parts) parts->blocks.push_back(static_cast<std::size_t>(&block - program_.blocks.data()));
    if (is_forward) std::fill(numbers_.begin(), numbers_.end(), std::int16_t{-1});
    if (recomputable && is_forward) {
      const std::size_t steps = at(block.last - block.first);
      recomputable->steps.reserve(steps);
      recomputable->tensors.reserve(3 * steps);
    }
    bool routes = false;
    FusedKernels fused(kernels_, prices_);
    std::int64_t products = 0;
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program_.steps[at(i)];
      if (step.is_recomputed) continue;
      RecomputableLayer::Step* kept = nullptr;
      if (recomputable && is_forward) kept = &keep(i, products, *recomputable);
      if (step.op == program::Op::product) ++products;
      if (step.op == program::Op::slice) continue;
      if (program::is_collective(step.op)) {
        if (auto traffic = traffic_of(roles_, program_, step, block.phase, part_)) {
          set_neighbours(program_, block, i, *traffic);
          const std::size_t entry = pass.add_traffic(*traffic);
          if (parts) parts->collectives.push_back({i, false, entry});
          if (kept) keep_traffic(step, traffic->beside, *kept, *recomputable);
        }
        continue;
      }
      // Each device casts its part of the weights, which stages know.
      if (part_ == ProfilePart::weights_traffic || kernel::casts_weight(program_, step)) continue;
      std::optional<kernel::JoinedProducts::Part> part;
      if (setup_.effects.joins_products) part = kernel::JoinedProducts::part_of(setup_.rates, program_, step);
      const bool is_fused = part && fused.take(*part, i, parts);
      const kernel::StepPrice<Plain> price = is_fused ? kernel::fused_part_price(Plain{}, program_, step, kernels_)
                                                      : kernel::price(Plain{}, program_, step, kernels_);
      const KernelTraits kind{step.op == program::Op::product, program::is_attention(step.op),
                              program::makes_weight_gradient(program_, step), false};
      if (!is_fused) {
        pass.add(price, kind);
        if (parts) parts->kernels.push_back({{i}, std::nullopt, kind, price});
      }
      pass.add_ideal(price, kind.makes_weight_gradient);
      if (kind.is_product) pass.product_flops += step.flops;
      pass.flops += step.flops;
      routes |= step.op == program::Op::route || step.op == program::Op::route_grad;
      layer.widest = std::max(layer.widest, bytes_around(Plain{}, program_, step));
      if (!kept) continue;
      kept->is_kernel = true;
      kept->is_product = kind.is_product;
      kept->is_attention = kind.is_attention;
      kept->price = price;
      kept->flops = step.flops;
      if (!part) continue;
      kept->joined = static_cast<std::int16_t>(recomputable->joined.size());
      recomputable->joined.push_back(*part);
    }
    fused.add(false, pass, parts);
    const Seconds launch = (routes ? setup_.effects.routed_launch : setup_.effects.launch).value;
    if (recomputable && !is_forward)
      recomputable->launch = launch;  // together with those of what is recomputed
    else
      pass.add_launching(Plain{}, launch);
  }

 private:
  /// Keeps a forward step with its tensors, by their numbers in the layer.
  RecomputableLayer::Step& keep(std::int32_t number, std::int64_t products, RecomputableLayer& layer) {
    const program::Step& step = program_.steps[at(number)];
    RecomputableLayer::Step& recorded = layer.steps.emplace_back();
    recorded.number = number;
    for (std::size_t i = 0; i < step.in.size(); ++i) recorded.in[i] = number_of(step.in[i], layer);
    for (std::size_t o = 0; o < step.out.size(); ++o) {
      const int id = step.out[o];
      recorded.out[o] = number_of(id, layer);
    }
    recorded.made = bytes_made(Plain{}, program_, step);
    recorded.first = lower::parts_of(program_, step, step.out[0], products);
    recorded.others = lower::parts_of(program_, step, -1, products);
    recorded.reads_own = step.op == program::Op::attention;
    recorded.is_gathered = lower::is_gathered(program_, step, step.out[0]);
    return recorded;
  }

  void keep_traffic(program::Step step, Flops beside, RecomputableLayer::Step& recorded, RecomputableLayer& layer) {
    step.is_recomputed = true;
    auto traffic = traffic_of(roles_, program_, step, program::Phase::backward, part_);
    if (!traffic) return;
    traffic->beside = beside;
    recorded.traffic = static_cast<std::int16_t>(layer.traffic.size());
    layer.traffic.push_back(*traffic);
  }

  std::int16_t number_of(int id, RecomputableLayer& layer) {
    if (id < 0) return -1;
    std::int16_t& number = numbers_[at(id)];
    if (number < 0) {
      const program::ProgramTensor& tensor = program_.tensor(id);
      number = static_cast<std::int16_t>(layer.tensors.size());
      const bool is_own = tensor.tensor_class == program::TensorClass::residual && !tensor.is_cross_layer;
      layer.tensors.push_back({tensor.is_needed, !tensor.is_given || is_own, bytes_of(tensor)});
    }
    return number;
  }

  const TrainingSetup& setup_;
  kernel::TrainingKernels kernels_;
  FusedPrices& prices_;
  const program::Program& program_;
  ProfilePart part_;
  AxisRoles roles_;
  std::vector<std::int16_t> numbers_;  ///< of tensors in the current layer
};

/// The layer, the shared weights or the end of a model that a block belongs to.
template <class Parts>
auto& part_of(Parts& all, const program::Block& block) {
  return block.is_shared             ? all.shared[at(block.kind)]
         : block.kind >= 0           ? all.kinds[at(block.kind)]
         : block.name == "embedding" ? all.embedding
                                     : all.head;
}

void add_weight(LayerProfile& layer, const model::Weight& weight, double elements) {
  (of_experts(weight) ? layer.expert_elements : layer.dense_elements) += elements;
  if (weight.trained) (of_experts(weight) ? layer.trained_experts : layer.trained_dense) += elements;
}

}  // namespace

template <class N>
NumberOf<N, Bytes> traffic_bytes(const N& num, const program::Program& program, const program::Step& step) {
  return bytes_by_role(num, AxisRoles(program.mesh), program, step);
}

template Bytes traffic_bytes(const Plain&, const program::Program&, const program::Step&);
template NumberOf<Traced, Bytes> traffic_bytes(const Traced&, const program::Program&, const program::Step&);

kernel::TrainingKernels training_kernels(const TrainingSetup& setup) {
  return {setup.rates, setup.effects, setup.dropout};
}

namespace {

/// Without leaving at the first: the few numbers are compared at once.
template <std::size_t n>
bool has(const std::array<std::int16_t, n>& tensors, std::int16_t tensor) {
  bool found = false;
  for (const std::int16_t one : tensors) found |= one == tensor;
  return found;
}

}  // namespace

std::vector<std::int32_t> neighbour_products(const program::Program& program, const program::Block& block,
                                             std::int32_t collective) {
  const program::Step& moved = program.steps[at(collective)];
  std::vector<std::int32_t> found;
  if (program::gathers(moved.collective)) {
    std::vector<std::int16_t> gathered{moved.out[0]};
    bool of_weights = true;
    for (std::int32_t i = collective + 1; i < block.last; ++i) {
      const program::Step& step = program.steps[at(i)];
      if (std::none_of(gathered.begin(), gathered.end(), [&](std::int16_t id) { return has(step.in, id); })) continue;
      if (step.op == program::Op::cast) gathered.push_back(step.out[0]);
      if (step.op != program::Op::product) continue;
      const bool of_weight = program::makes_weight_gradient(program, step);
      if (of_weights && !of_weight) found.clear();
      if (of_weights || !of_weight) found.push_back(i);
      of_weights = of_weights && of_weight;
    }
    return found;
  }
  // What is reduced may be a sum of products, each added to the one before.
  std::vector<std::int16_t> reduced{moved.in[0]};
  while (!reduced.empty()) {
    const std::int16_t id = reduced.back();
    reduced.pop_back();
    // Of a tensor that is computed again, the step of this block, not the one of the forward pass.
    std::int32_t maker = collective - 1;
    while (maker >= block.first && !has(program.steps[at(maker)].out, id)) --maker;
    if (maker < block.first) continue;
    const program::Step& step = program.steps[at(maker)];
    if (step.op == program::Op::product) found.push_back(maker);
    for (std::size_t i = step.op == program::Op::product ? 2 : 0; i < step.in.size(); ++i)
      if (step.in[i] >= 0 && (step.op == program::Op::product || passes_on(step))) reduced.push_back(step.in[i]);
  }
  return found;
}

std::vector<std::int32_t> hiding_products(const program::Program& program, const program::Block& block,
                                          std::int32_t collective, bool overlaps_weight_gradients) {
  const std::vector<std::int32_t> neighbours = neighbour_products(program, block, collective);
  std::vector<std::int32_t> found;
  for (std::int32_t i = block.first; overlaps_weight_gradients && i < block.last; ++i) {
    const program::Step& step = program.steps[at(i)];
    if (step.op != program::Op::product || std::find(neighbours.begin(), neighbours.end(), i) != neighbours.end())
      continue;
    const bool of_same = std::any_of(neighbours.begin(), neighbours.end(), [&](std::int32_t n) {
      const program::Step& other = program.steps[at(n)];
      return std::any_of(step.in.begin(), step.in.end(), [&](int id) {
        return id >= 0 && program.tensor(id).is_gradient &&
               std::find(other.in.begin(), other.in.end(), id) != other.in.end();
      });
    });
    if (of_same) found.push_back(i);
  }
  found.insert(found.end(), neighbours.begin(), neighbours.end());
  return found;
}

RoleSet collective_roles(const program::Program& program, const program::Step& step) {
  return collective_roles(AxisRoles(program.mesh), program, step);
}

RoleSet roles_of(const program::Mesh& mesh, program::AxisSet axes) { return AxisRoles(mesh).of(axes); }

std::string roles_text(RoleSet set) {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < roles; ++r)
    if (set >> r & 1u) names.emplace_back(program::role_names[r]);
  return join(names, "+");
}

std::size_t PassProfile::add_traffic(const Traffic& more) {
  for (Traffic& known : traffic)
    if (known.goes_with(more)) {
      known.bytes += more.bytes;
      known.beside += more.beside;
      if (more.urgency == program::Urgency::critical) known.count += more.count;
      return static_cast<std::size_t>(&known - traffic.begin());
    }
  if (traffic.size() == max_traffic) throw InternalError("a pass has more kinds of traffic than expected");
  traffic.push_back(more);
  return traffic.size() - 1;
}

RoleSets role_sets(const TrainingProfile& profile) {
  RoleSets sets = 0;
  const auto add = [&](const LayerProfile& layer) {
    for (const PassProfile* pass : {&layer.forward, &layer.backward})
      for (const Traffic& traffic : pass->traffic) sets |= RoleSets{1} << traffic.over;
  };
  for (const LayerProfile& layer : profile.kinds) add(layer);
  for (const LayerProfile& layer : profile.shared) add(layer);
  add(profile.embedding);
  add(profile.head);
  return sets & every_role_set;
}

namespace {

/// How a profile splits the model.
lower::Parallelism profile_parallelism(const ProfileKey& key) {
  lower::Parallelism p;
  p.tensor = key.tensor;
  p.context = key.context;
  p.expert = key.expert;
  p.expert_over = key.expert_over;
  p.fsdp = key.fsdp ? p.expert_data() * stand_in_size : 1;
  p.data = (key.replicas ? stand_in_size : 1) * (key.fsdp ? 1 : p.expert_data());
  p.zero = key.zero;
  p.residual = key.residual;
  p.context_scheme = key.context_scheme;
  return p;
}

program::Program lowered(const TrainingSetup& setup, const ProfileKey& key, const lower::StageRules& stage,
                         lower::Recompute recompute) {
  const lower::Parallelism p = profile_parallelism(key);
  lower::TrainingPlan plan;
  plan.work.sequences = key.micro_batch * p.data * p.fsdp;
  plan.work.queries = plan.work.keys = key.sequence;
  plan.work.source = setup.source_of(key.sequence);
  plan.work.flash = setup.flash;
  plan.work.expert_load = setup.expert_load;
  plan.formats = setup.formats;
  plan.optimizer = setup.optimizer;
  plan.recompute = recompute;
  return lower::lower_training(*setup.model, stage.mesh, stage.rules, plan);
}

}  // namespace

PolicyProfiles::PolicyProfiles(const TrainingSetup& setup, FusedPrices& prices, const ProfileKey& key, ProfilePart part)
    : PolicyProfiles(setup, prices, key, part,
                     lowered(setup, key, lower::training_stage(profile_parallelism(key), *setup.model), {}), nullptr) {}

PolicyProfiles::PolicyProfiles(const TrainingSetup& setup, FusedPrices& prices, const ProfileKey& key, ProfilePart part,
                               const program::Program& program, ProfileRecord* record)
    : setup_(&setup), prices_(&prices) {
  const model::Transformer& model = *setup.model;
  const lower::StageRules stage = lower::training_stage(profile_parallelism(key), model);

  TrainingProfile& profile = base_;
  const std::size_t decoder_kinds = model.decoder.kinds.size();
  profile.kinds.resize(decoder_kinds + (model.encoder ? model.encoder->kinds.size() : 0));
  forwards_.resize(profile.kinds.size());
  const bool has_asides = model::has_aside(model.decoder);
  const auto shape = [&](std::size_t kind) -> const model::Layer& {
    return kind < decoder_kinds ? model.decoder.kinds[kind] : model.encoder->kinds[kind - decoder_kinds];
  };
  for (std::size_t i = 0; i < profile.kinds.size(); ++i)
    if (shape(i).shared) profile.shared.resize(profile.kinds.size());
  if (record) record->kinds.resize(profile.kinds.size()), record->shared.resize(profile.shared.size());
  BlockPricer pricer(setup, prices, program, part);
  for (const program::Block& block : program.blocks) {
    LayerProfile& layer = part_of(profile, block);
    LayerRecord* const parts = record ? &part_of(*record, block) : nullptr;
    if (block.phase ==
        program::Phase::update) {  // sharded weights are gathered back after the update, before they are used
      for (std::int32_t i = block.first; i < block.last; ++i) {
        program::Step step = program.steps[at(i)];
        step.urgency = program::Urgency::ahead;
        if (!program::is_collective(step.op)) continue;
        if (const auto traffic = traffic_of(pricer.roles(), program, step, block.phase, part)) {
          const std::size_t entry = layer.backward.add_traffic(*traffic);
          if (parts) parts->backward.collectives.push_back({i, false, entry});
        }
      }
      continue;
    }
    RecomputableLayer* recomputable = block.kind >= 0 && !block.is_shared ? &forwards_[at(block.kind)] : nullptr;
    if (block.phase == program::Phase::forward) layer.gathered = gathered_bytes(Plain{}, program, block);
    pricer.add(block, layer, recomputable, parts);
    if (block.phase != program::Phase::forward || part == ProfilePart::weights_traffic) continue;
    if (model.encoder || has_asides) layer.encoded = lower::kept_encoded_bytes(program, block);
    const DropoutBytes drawn = setup.dropout ? dropout_bytes(Plain{}, program, block) : DropoutBytes{};
    if (recomputable) {
      recomputable->dropped_residual = drawn.residual;
      recomputable->dropped_attention = drawn.attention;
    } else
      layer.kept = lower::kept_bytes(program, block) - layer.gathered + drawn.residual + drawn.attention;
  }
  const auto elements = [&](const model::Weight& weight) {
    return lower::local_elements(stage.rules, program, program::TensorClass::used_weight, weight);
  };
  for (std::size_t i = 0; i < profile.kinds.size(); ++i)
    for (const model::Weight& weight : model::layer_weights(model, shape(i)))
      add_weight(weight.shared ? profile.shared[i] : profile.kinds[i], weight, elements(weight));
  for (const model::Weight& weight : model::outer_weights(model)) {
    const bool is_table = weight.part == model::Part::embedding,
               is_first = is_table || weight.part == model::Part::positions;
    if (model.tied && is_table) profile.tied_elements += elements(weight);
    add_weight(is_first ? profile.embedding : profile.head, weight, elements(weight));
  }
  // A stage sends the activations between layers.
  for (const program::Block& block : program.blocks)
    if (block.kind >= 0 && block.phase == program::Phase::forward) {
      for (const program::Step& step : program.steps_of(block)) {
        const program::ProgramTensor& in = program.tensor(step.in[0]);
        if (is_boundary(in)) profile.boundary = std::max(profile.boundary, program::local_bytes(program, in));
      }
    }
  if (has_asides) profile.boundary *= 2.0;  // and the embedding, which later layers read, too
}

TrainingProfile make_profile(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part) {
  FusedPrices prices;
  return PolicyProfiles(setup, prices, key, part).with(key.recompute);
}

RecordedProfile record_profile(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part) {
  RecordedProfile out;
  out.program = lowered(setup, key, lower::training_stage(profile_parallelism(key), *setup.model), {});
  FusedPrices prices;
  const PolicyProfiles policies(setup, prices, key, part, out.program, &out.record);
  out.profile = policies.with(key.recompute, &out.record);
  return out;
}

}  // namespace assay::training
