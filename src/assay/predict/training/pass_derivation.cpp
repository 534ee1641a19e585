#include "assay/predict/training/pass_derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/base/index.h"
#include "assay/predict/kernel/origins.h"

namespace assay::training {
namespace {

using Part = kernel::JoinedProducts::Part;

/// Steps of a block that belong to a half of the step and recompute nothing, without movements over axes that `mesh`
/// does not have: they cost nothing.
std::vector<std::int32_t> own_steps(const program::Program& program, const program::Block& block,
                                    const program::Mesh& mesh, ProfilePart part) {
  program::AxisSet split = 0;
  for (std::size_t axis = 0; axis < program.mesh.axes.size(); ++axis)
    if (mesh.find(program.mesh.axes[axis].name)) split |= program::axis_bit(static_cast<int>(axis));
  std::vector<std::int32_t> own;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program.steps[at(i)];
    if (step.is_recomputed || step.op == program::Op::slice) continue;
    const bool moves = program::is_collective(step.op);
    if ((part == ProfilePart::work) == (!moves || is_work(step)) && (!moves || step.axes & split)) own.push_back(i);
  }
  return own;
}

/// "recomputed norm Norm", "fused products of Norm".
std::string step_name(const program::Program& program, std::int32_t number, bool is_recomputed) {
  const program::Step& step = program.steps[at(number)];
  const program::ProgramTensor& made = program.tensor(step.out[0]);
  return fmt::format("{}{} {}{}", is_recomputed ? "recomputed " : "", program::name(step.op),
                     made.is_gradient ? "d" : "", made.name);
}
std::string kernel_name(const program::Program& recorded, const PassRecord::Kernel& kernel) {
  const std::string_view recomputed = kernel.kind.is_recomputed ? "recomputed " : "";
  if (!kernel.fused) return step_name(recorded, kernel.steps.front(), kernel.kind.is_recomputed);
  const std::string_view what = kernel.fused->kind == Part::Kind::forward    ? "fused products"
                                : kernel.fused->kind == Part::Kind::of_input ? "fused gradients"
                                                                             : "fused weight gradients";
  return fmt::format("{}{} of {}", recomputed, what,
                     kernel.fused->reads >= 0 ? recorded.tensor(kernel.fused->reads).name : "a sum");
}

/// A kernel as it was priced when it was recorded.
kernel::StepPrice<Traced> derive_price(const Traced& num, const PassSource& source, const RecordedPass& pass,
                                       const PassRecord::Kernel& kernel, DerivedKernels& sums) {
  const kernel::TrainingKernels kernels = training_kernels(source.setup);
  kernel::FusedOrigins fused(num);
  kernel::StepPrice<Traced> price;
  for (const std::int32_t number : kernel.steps) {
    const program::Step& step = source.program.steps[at(pass.steps.kernel(number, kernel.kind.is_recomputed))];
    Origins origins(num);
    kernel::add_origins(num, source.program, step, origins);
    if (kernel.kind.is_product)
      sums.product_flops = sums.product_flops + num.given("flops", step.flops, "arithmetic of the step");
    price = kernel.fused ? kernel::fused_part_price(num, source.program, step, kernels)
                         : kernel::price(num, source.program, step, kernels);
    kernel::StepPrice<Traced> ideal = price;
    const std::string name = step_name(pass.recorded, number, kernel.kind.is_recomputed);
    ideal.compute = num.named(name + " at the peak", price.compute);
    ideal.memory = num.named(name + " at full bandwidth", price.memory);
    sums.add_ideal(ideal);
    if (kernel.fused) fused.add(source.program, step, kernel.fused->kind);
  }
  if (!kernel.fused) return price;
  Origins origins(num);
  fused.add_to(origins);
  return kernel::price(num, *kernel.fused, kernels);
}

}  // namespace

RecordedSteps::RecordedSteps(const program::Program& recorded, const program::Program& program, ProfilePart part)
    : own_(recorded.steps.size(), -1), recomputed_(recorded.steps.size(), -1) {
  const auto is_same = [&](std::int32_t there, std::int32_t here) {
    const program::Step &one = recorded.steps[at(there)], &other = program.steps[at(here)];
    const program::ProgramTensor &made = recorded.tensor(one.out[0]), &also = program.tensor(other.out[0]);
    return one.op == other.op && program::gathers(one.collective) == program::gathers(other.collective) &&
           made.name == also.name && made.is_gradient == also.is_gradient;
  };
  std::vector<std::int32_t> recorded_as(program.steps.size(), -1);
  for (std::size_t b = 0; b < std::min(recorded.blocks.size(), program.blocks.size()); ++b) {
    const std::vector<std::int32_t> here = own_steps(program, program.blocks[b], program.mesh, part);
    auto next = here.begin();
    // Sizes may add a collective: small arrays are not split over all axes that split large ones.
    for (const std::int32_t there : own_steps(recorded, recorded.blocks[b], program.mesh, part)) {
      const auto found = std::find_if(next, here.end(), [&](std::int32_t step) { return is_same(there, step); });
      if (found == here.end()) continue;
      own_[at(there)] = *found;
      recorded_as[at(*found)] = there;
      next = found + 1;
    }
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    if (const program::Step& step = program.steps[i]; step.is_recomputed && recorded_as[at(step.repeated)] >= 0)
      recomputed_[at(recorded_as[at(step.repeated)])] = static_cast<std::int32_t>(i);
}

std::int32_t RecordedSteps::find(std::int32_t step, bool is_recomputed) const {
  return (is_recomputed ? recomputed_ : own_)[at(step)];
}

std::int32_t RecordedSteps::kernel(std::int32_t step, bool is_recomputed) const {
  const std::int32_t found = find(step, is_recomputed);
  if (found < 0) throw InternalError("a strategy lacks a kernel of the profile it was priced by");
  return found;
}

RecordedStep::Half RecordedStep::half(const TrainingSetup& setup, const ProfileKey& key, ProfilePart part,
                                      const program::Program& program) {
  RecordedProfile recorded = record_profile(setup, key, part);
  RecordedSteps steps(recorded.program, program, part);
  return {std::move(recorded), std::move(steps)};
}

RecordedStep::RecordedStep(const TrainingSetup& setup, std::int64_t sequence, const Strategy& strategy,
                           const program::Program& program)
    : halves_{half(setup, work_key(strategy, sequence), ProfilePart::work, program),
              half(setup, traffic_key(strategy, sequence), ProfilePart::weights_traffic, program)} {}

std::array<RecordedPass, 2> RecordedStep::pass(const Place& place, program::Phase phase) const {
  const auto of = [&](const Half& half) -> RecordedPass {
    const auto& [program, profile, record] = half.recorded;
    const LayerProfile& layer = place.end         ? profile.*place.end
                                : place.is_shared ? profile.shared[place.kind]
                                                  : profile.kinds[place.kind];
    const LayerRecord& parts = place.end         ? record.*place.end_record
                               : place.is_shared ? record.shared[place.kind]
                                                 : record.kinds[place.kind];
    const bool is_forward = phase == program::Phase::forward;
    return {program, half.steps, is_forward ? layer.forward : layer.backward,
            is_forward ? parts.forward : parts.backward};
  };
  return {of(halves_[0]), of(halves_[1])};
}

std::vector<RecordedStep::Place> RecordedStep::places() const {
  std::vector<Place> out{embedding(), head()};
  const TrainingProfile& profile = halves_[0].recorded.profile;
  for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) out.push_back({nullptr, nullptr, kind, false});
  for (std::size_t kind = 0; kind < profile.shared.size(); ++kind) out.push_back({nullptr, nullptr, kind, true});
  return out;
}

DerivedKernels derive_kernels(const Traced& num, const PassSource& source, const RecordedPass& pass) {
  DerivedKernels out;
  const auto add = [&](const PassRecord::Kernel& kernel) {
    kernel::StepPrice<Traced> price = derive_price(num, source, pass, kernel, out);
    const std::string name = kernel_name(pass.recorded, kernel);
    const bool slows = price.slowed.value() > 0.0;
    price.duration = num.named(slows ? name + " under sustained power" : name, price.duration);
    out.add(price, kernel.kind);
    out.each.push_back({name, price.duration, price.slowed});
  };
  // Blocks end one after the other; kernels of a block are recorded before those of the next.
  const numbers::StepEffects& effects = source.setup.effects;
  auto next = pass.record.kernels.begin();
  for (std::size_t b = 0; b < pass.record.blocks.size(); ++b) {
    const program::Block& block = pass.recorded.blocks[pass.record.blocks[b]];
    const bool is_last = b + 1 == pass.record.blocks.size();
    bool routes = false;
    for (const program::Step& step : pass.recorded.steps_of(block)) {
      const program::Op op = step.op;
      routes |= op == program::Op::route || op == program::Op::route_grad;
    }
    for (; next != pass.record.kernels.end() && (is_last || next->steps.front() < block.last); ++next) add(*next);
    out.add_launching(num, num.given("launch", routes ? effects.routed_launch : effects.launch));
  }
  out.estimate = num.named("kernels", out.estimate);
  out.products = num.named("products of the pass", out.products);
  out.attention = num.named("attention of the pass", out.attention);
  out.weight_gradients = num.named("weight gradients of the pass", out.weight_gradients);
  out.busy = num.named("at full power", out.busy);
  out.slowed = num.named("slowed by power", out.slowed);
  out.product_flops = num.named("FLOP of the products", out.product_flops);
  return out;
}

std::vector<DerivedTraffic> derive_traffic(const Traced& num, const PassSource& source, const RecordedPass& pass) {
  const std::span entries(pass.profile.traffic.begin(), pass.profile.traffic.size());
  std::vector<DerivedTraffic> out(entries.size());
  std::vector<NumberOf<Traced, Bytes>> counted(entries.size());
  for (std::size_t e = 0; e < entries.size(); ++e) out[e].entry = &entries[e];
  for (const PassRecord::Collective& one : pass.record.collectives) {
    const Traffic& entry = entries[one.entry];
    DerivedTraffic& derived = out[one.entry];
    const bool is_equal = entry.urgency == program::Urgency::critical && !derived.bytes.is_nothing();
    if (!is_equal) {  // equal ones are derived once
      const std::int32_t step = pass.steps.find(one.step, one.is_recomputed);
      if (step < 0) continue;  // over axes of one device
      derived.bytes = derived.bytes + traffic_bytes(num, source.program, source.program.steps[at(step)]);
      counted[one.entry] = counted[one.entry] + traffic_bytes(num, pass.recorded, pass.recorded.steps[at(one.step)]);
    }
    if (!(entry.beside > Flops())) continue;
    // What is recomputed runs next to the products that it ran next to in the forward pass.
    const auto block = std::find_if(pass.recorded.blocks.begin(), pass.recorded.blocks.end(),
                                    [&](const program::Block& b) { return b.first <= one.step && one.step < b.last; });
    for (const std::int32_t product : neighbour_products(pass.recorded, *block, one.step)) {
      const program::Step& step = source.program.steps[at(pass.steps.kernel(product, false))];
      derived.beside = derived.beside + num.named(program::step_text(source.program, step),
                                                  kernel::derive_flops(num, source.program, step));
    }
  }
  for (std::size_t e = 0; e < entries.size(); ++e)
    if (plain(out[e].bytes) != entries[e].bytes / entries[e].count)
      out[e].bytes = num.named("arrays that two data-parallel devices share evenly", counted[e]);
  return out;
}

std::vector<program::Step> recomputed_steps(const program::Program& program, const program::Block& block) {
  std::vector<program::Step> steps(program.steps.begin() + block.first, program.steps.begin() + block.last);
  std::erase_if(steps, [](const program::Step& step) { return !step.is_recomputed; });
  std::stable_sort(steps.begin(), steps.end(),
                   [](const program::Step& a, const program::Step& b) { return a.repeated < b.repeated; });
  return steps;
}

NumberOf<Traced, Bytes> derive_kept(const Traced& num, const TrainingSetup& setup, const program::Program& program,
                                    std::span<const program::Block> blocks, lower::Recompute recompute) {
  NumberOf<Traced, Bytes> sum;
  std::vector<char> counted(program.tensors.size(), 0);
  for (const program::Block& block : blocks) {
    const auto add = [&](int id) {
      if (id < 0 || counted[at(id)]) return;
      counted[at(id)] = 1;
      const program::ProgramTensor& tensor = program.tensor(id);
      const bool is_weight = tensor.tensor_class == program::TensorClass::weight ||
                             tensor.tensor_class == program::TensorClass::used_weight;
      if (tensor.is_kept && !is_weight && !(tensor.is_given && tensor.is_cross_layer))
        sum = sum + program::named_bytes(num, program, id);
    };
    for (const program::Step& step : program.steps_of(block)) {
      for (const int id : step.in) add(id);
      for (const int id : step.out) add(id);
    }
    if (!setup.dropout) continue;
    const DropoutBytesOf<Traced> drawn = dropout_bytes(num, program, block);
    const bool of_layer = block.kind >= 0;
    const bool inside =
        of_layer && (recompute.covers(lower::ForwardPart::attention) || recompute.covers(lower::ForwardPart::scores));
    if (!(of_layer && recompute.covers(lower::ForwardPart::residual)))
      sum = sum + num.named("masks of dropout", drawn.residual);
    if (!inside) sum = sum + num.named("dropout inside attention", drawn.attention);
  }
  return sum;
}

}  // namespace assay::training
