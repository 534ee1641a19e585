#include "assay/predict/training/kernel_derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "assay/base/index.h"
#include "assay/predict/kernel/origins.h"

namespace assay::training {
namespace {

using TracedTime = NumberOf<Traced, Seconds>;

/// Adds up the kernels of blocks, in the order of the program, as profiles do.
class KernelSums {
 public:
  KernelSums(const Traced& num, const TrainingSetup& setup, const program::Program& program)
      : num_(num), setup_(setup), program_(program), kernels_(training_kernels(setup)) {}

  /// Adds the steps of a block that are recomputed, or those that are not.
  void add(const program::Block& block, bool recomputed) {
    kernel::JoinedProducts joined;
    kernel::JoinedOrigins origins_of;
    for (const program::Step& step : recomputed ? recomputed_steps(program_, block) : own_steps(block)) {
      if (step.op == program::Op::slice || program::is_collective(step.op) || kernel::casts_weight(program_, step))
        continue;
      routes_ |= step.op == program::Op::route || step.op == program::Op::route_grad;
      Origins origins(num_);
      kernel::add_origins(num_, program_, step, origins);
      if (step.op == program::Op::product)
        sums_.product_flops = sums_.product_flops + num_.given("flops", step.flops, "arithmetic of the step");
      if (setup_.effects.joins_products)
        if (const auto part = kernel::JoinedProducts::part_of(setup_.rates, program_, step);
            part && joined.take(*part)) {
          origins_of.take(num_, program_, step, joined);
          add_ideal(name_of(step, recomputed), kernel::fused_part_price(num_, program_, step, kernels_));
          continue;
        }
      const TracedTime time = add(name_of(step, recomputed), kernel::price(num_, program_, step, kernels_));
      if (step.op == program::Op::product) sums_.products = sums_.products + time;
      if (program::is_attention(step.op)) sums_.attention = sums_.attention + time;
      if (!recomputed && makes_weight_gradient(program_, step)) sums_.weight_gradients = sums_.weight_gradients + time;
    }
    using Part = kernel::JoinedProducts::Part;
    for (std::size_t i = 0; i < joined.joints().size(); ++i) {
      const Part& fused = joined.joints()[i];
      Origins origins(num_);
      origins_of.add(i, origins);
      const TracedTime time = add(fmt::format("{}{} of {}", recomputed ? "recomputed " : "",
                                              fused.kind == Part::Kind::forward    ? "fused products"
                                              : fused.kind == Part::Kind::of_input ? "fused gradients"
                                                                                   : "fused weight gradients",
                                              fused.reads >= 0 ? program_.tensor(fused.reads).name : "a sum"),
                                  kernel::price(num_, fused, kernels_));
      sums_.products = sums_.products + time;
      if (!recomputed && fused.kind == Part::Kind::of_weight) sums_.weight_gradients = sums_.weight_gradients + time;
    }
  }

  /// The sum since the last call.
  TracedTime take() { return std::exchange(sum_, {}); }

  /// Time of the host to launch all kernels of a block; nothing where it takes none.
  TracedTime take_launching() {
    const Given<Seconds>& launch = std::exchange(routes_, false) ? setup_.effects.routed_launch : setup_.effects.launch;
    const double launches = std::exchange(launches_, 0.0);
    if (!(launches * launch.value > Seconds(0))) return {};
    return num_.named("launching",
                      num_.given("launches", launches, "kernels of the pass") * num_.given("launch", launch));
  }

  DerivedKernels& sums() { return sums_; }

 private:
  std::vector<program::Step> own_steps(const program::Block& block) const {
    std::vector<program::Step> steps(program_.steps.begin() + block.first, program_.steps.begin() + block.last);
    std::erase_if(steps, [](const program::Step& step) { return step.is_recomputed; });
    return steps;
  }

  TracedTime add(const std::string& name, const kernel::StepPrice<Traced>& price) {
    const TracedTime duration = num_.named(name, price.duration);
    sum_ = sum_ + duration;
    add_ideal(name, price);
    launches_ += price.launches;
    if (price.full_power) sums_.busy = sums_.busy + duration;
    if (price.slowed.value() > 0.0) sums_.slowed = sums_.slowed + price.slowed;
    return duration;
  }

  std::string name_of(const program::Step& step, bool recomputed) const {
    const program::ProgramTensor& made = program_.tensor(step.out[0]);
    return fmt::format("{}{} {}{}", recomputed ? "recomputed " : "", program::name(step.op),
                       made.is_gradient ? "d" : "", made.name);
  }
  void add_ideal(const std::string& name, const kernel::StepPrice<Traced>& price) {
    if (price.compute.value() > 0.0) sums_.compute = sums_.compute + num_.named(name + " at the peak", price.compute);
    if (price.memory.value() > 0.0) sums_.memory = sums_.memory + num_.named(name + " at full bandwidth", price.memory);
  }

  const Traced& num_;
  const TrainingSetup& setup_;
  const program::Program& program_;
  kernel::TrainingKernels kernels_;
  TracedTime sum_;
  DerivedKernels sums_;
  double launches_ = 0;
  bool routes_ = false;
};

}  // namespace

std::vector<program::Step> recomputed_steps(const program::Program& program, const program::Block& block) {
  std::vector<program::Step> steps(program.steps.begin() + block.first, program.steps.begin() + block.last);
  std::erase_if(steps, [](const program::Step& step) { return !step.is_recomputed; });
  std::stable_sort(steps.begin(), steps.end(),
                   [](const program::Step& a, const program::Step& b) { return a.repeated < b.repeated; });
  return steps;
}

DerivedKernels derive_kernels(const Traced& num, const TrainingSetup& setup, const program::Program& program,
                              std::span<const program::Block> blocks) {
  KernelSums kernels(num, setup, program);
  TracedTime all, launching, idle;
  for (const program::Block& block : blocks) {
    kernels.add(block, false);
    TracedTime own = all + kernels.take();
    if (block.kind >= 0 && block.phase == program::Phase::backward) {
      kernels.add(block, true);
      own = own + kernels.take();
    }
    const TracedTime bound = kernels.take_launching();
    idle = bound.value() > own.value() ? num.named("waiting for the host", bound - own) : TracedTime();
    all = max(own, bound);
    launching = launching + bound;
  }
  DerivedKernels& sums = kernels.sums();
  sums.all = num.named("kernels", all);
  sums.launching = launching;
  sums.idle = idle;
  sums.products = num.named("products of the pass", sums.products);
  sums.attention = num.named("attention of the pass", sums.attention);
  sums.weight_gradients = num.named("weight gradients of the pass", sums.weight_gradients);
  sums.busy = num.named("at full power", sums.busy);
  sums.slowed = num.named("slowed by power", sums.slowed);
  sums.product_flops = num.named("FLOP of the products", sums.product_flops);
  return sums;
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
    for (std::int32_t i = block.first; i < block.last; ++i) {
      for (const int id : program.steps[at(i)].in) add(id);
      for (const int id : program.steps[at(i)].out) add(id);
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
