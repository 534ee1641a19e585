#include "assay/training/step_derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "assay/base/index.h"
#include "assay/training/memory.h"
#include "assay/training/step_list.h"

namespace assay::training {
namespace {

using TracedSum = SumOf<Traced, Seconds>;

/// The kernels of blocks.
class DerivedKernels {
 public:
  DerivedKernels(const Traced& num, const DerivedPass& pass)
      : num_(num), pass_(pass), kernels_(training_kernels(pass.setup)) {}

  /// Adds the steps of a block that are recomputed, or those that are not.
  void add(const program::Block& block, bool recomputed) {
    estimate::JoinedProducts joined;
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = pass_.program.steps[at(i)];
      if (step.is_recomputed != recomputed || step.op == program::Op::slice || program::is_collective(step.op) ||
          estimate::casts_weight(pass_.program, step))
        continue;
      routes_ |= step.op == program::Op::route || step.op == program::Op::route_grad;
      if (pass_.setup.effects.joins_products)
        if (const auto part = estimate::JoinedProducts::part_of(pass_.setup.rates, pass_.program, step);
            part && joined.take(*part))
          continue;
      const program::ProgramTensor& made = pass_.program.tensor(step.out[0]);
      add(fmt::format("{}{} {}{}", recomputed ? "recomputed " : "", program::name(step.op), made.is_gradient ? "d" : "",
                      made.name),
          estimate::price(num_, pass_.program, step, kernels_));
    }
    using Part = estimate::JoinedProducts::Part;
    for (const Part& fused : joined.joints())
      add(fmt::format("{}{} of {}", recomputed ? "recomputed " : "",
                      fused.kind == Part::Kind::forward    ? "fused products"
                      : fused.kind == Part::Kind::of_input ? "fused gradients"
                                                           : "fused weight gradients",
                      fused.reads >= 0 ? pass_.program.tensor(fused.reads).name : "a sum"),
          estimate::price(num_, fused, kernels_));
  }

  /// The sum since the last call, in the order of the program, as the price adds them up.
  TracedSeconds take() { return std::exchange(sum_, {}).total(num_); }
  bool has_kernels() const { return !sum_.empty(); }

  /// Time of the host to launch all kernels so far; nothing where it takes none.
  std::optional<TracedSeconds> launching() const {
    const estimate::StepEffects& effects = pass_.setup.effects;
    const Seconds launch = routes_ ? effects.routed_launch : effects.launch;
    if (!(launch * launches_ > Seconds(0))) return std::nullopt;
    return num_.named("launching",
                      num_.given("launches", launches_, "kernels of the pass") *
                          num_.given("launch", launch, kernels_.sources, routes_ ? "routed_launch" : "launch"));
  }
  void forget_launches() { launches_ = 0.0, routes_ = false; }

  const TracedSum& busy() const { return busy_; }
  const TracedSum& slowed() const { return slowed_; }

 private:
  void add(const std::string& name, const estimate::StepPrice<Traced>& price) {
    const TracedSeconds duration = num_.named(name, price.duration);
    sum_.add(duration);
    launches_ += 1.0;
    if (price.full_power) busy_.add(duration);
    if (price.slowed.value() > 0.0) slowed_.add(price.slowed);
  }

  const Traced& num_;
  const DerivedPass& pass_;
  estimate::TrainingKernels kernels_;
  TracedSum sum_, busy_, slowed_;
  double launches_ = 0;
  bool routes_ = false;
};

/// Everything that is derived for one strategy.
class ComputeDeriver {
 public:
  ComputeDeriver(const Traced& num, const StepInputs& inputs, std::int64_t sequence)
      : num_(num), inputs_(inputs), program_(training_program(inputs.question, sequence, inputs.strategy)) {
    fill_passes(inputs, passes_);
  }

  /// Forward and backward pass of a microbatch through a stage.
  std::array<TracedSeconds, 2> stage(const pipeline::StageSplit::Part& part) const {
    const TrainingProfile& profile = inputs_.profile;
    MicrobatchCost::Part memory;
    const StateBytes bytes(inputs_.question, inputs_.strategy, inputs_.links);
    const StageElements elements = add_memory(inputs_, bytes, part, memory);
    const auto cast = bytes.cast(profile, part, elements.dense + elements.used_again, elements.expert);
    std::array<TracedSum, 2> sums;
    for (const std::size_t phase : {0u, 1u}) {
      TracedSum& sum = sums[phase];
      for (std::size_t k = 0; k < profile.kinds.size(); ++k)
        if (const double layers = part.layers[k] * part.passed; layers > 0.0)
          sum.add(num_.given("layers", layers, "of the kind on the slowest stage") *
                  pass(static_cast<int>(k), "", phase, profile.kinds[k], passes_.layers[k]));
      const auto ends = [&](const char* name, const LayerProfile& layer, const std::array<PassTime, 2>& priced) {
        const TracedSeconds whole = pass(-1, name, phase, layer, priced);
        sum.add(part.passed < 1.0
                    ? num_.given("share of microbatches", part.passed, "that pass through this copy") * whole
                    : whole);
      };
      if (part.first && passes_.embedding[phase].compute > 0.0) ends("embedding", profile.embedding, passes_.embedding);
      if (part.last && passes_.head[phase].compute > 0.0) ends("head", profile.head, passes_.head);
      if (cast[phase] > 0.0) sum.add(casts(part.passed * cast[phase]));
    }
    return {num_.named("forward", sums[0].total(num_)), num_.named("backward", sums[1].total(num_))};
  }

 private:
  /// Blocks of a pass are those of its kind, or all at its end of the model.
  TracedSeconds pass(int kind, std::string_view end, std::size_t phase, const LayerProfile& layer,
                     const std::array<PassTime, 2>& priced) const {
    const program::Phase wanted = phase == 0 ? program::Phase::forward : program::Phase::backward;
    std::vector<program::Block> blocks;
    for (const program::Block& block : program_.blocks)
      if (block.phase == wanted && !block.is_shared &&
          (kind >= 0 ? block.kind == kind : block.kind < 0 && (block.name == "embedding") == (end == "embedding")))
        blocks.push_back(block);
    const PassWaits waits = pass_waits(phase == 0 ? layer.forward : layer.backward, inputs_.links,
                                       inputs_.question.overlap, inputs_.question.setup);
    return derive_pass(num_, {inputs_.question.setup, program_, blocks, priced[phase], waits});
  }

  TracedSeconds casts(double bytes) const {
    const estimate::KernelRates& rates = inputs_.question.setup.rates;
    const auto share =
        rates.pointwise
            ? num_.given("share of the bandwidth", rates.pointwise->stream, &rates.sources, "pointwise.stream")
            : num_.given("memory efficiency", rates.memory_share, &rates.sources, "efficiency.memory");
    return num_.named("casts of weights", num_.given("weights read and written", Bytes(bytes), "from the master copy") /
                                              (num_.given("hbm", rates.hbm, &rates.sources, "hbm") * share));
  }

  const Traced& num_;
  const StepInputs& inputs_;
  program::Program program_;
  MicrobatchCost passes_;
};

}  // namespace

TracedSeconds derive_pass(const Traced& num, const DerivedPass& pass) {
  DerivedKernels kernels(num, pass);
  std::optional<TracedSeconds> sum, launching;
  for (const program::Block& block : pass.blocks) {
    kernels.forget_launches();
    kernels.add(block, false);
    TracedSeconds own = kernels.take();
    if (sum) own = *sum + own;
    if (block.kind >= 0 && block.phase == program::Phase::backward) {
      kernels.add(block, true);
      if (kernels.has_kernels()) own = own + kernels.take();
    }
    const auto bound = kernels.launching();
    sum = bound ? max(own, *bound) : own;
    if (bound) launching = launching ? *launching + *bound : *bound;
  }
  const program::Block& block = pass.blocks.front();
  auto time = *sum;
  if (!kernels.slowed().empty()) {
    constexpr const char* on_links = "collectives of the pass on the cluster's links";
    const auto never = [&] { return num.given("none", Seconds(0), "kernels are launched ahead"); };
    time = num.named(
        "kernels at the clock that power allows",
        cooled(num, {num.named("kernels", time), num.given("waits for tensor", pass.waits.tensor, on_links),
                     num.given("waits for context", pass.waits.context, on_links),
                     num.given("waits for experts", pass.waits.expert, on_links),
                     num.named("at full power", kernels.busy().total(num)),
                     num.named("slowed by power", kernels.slowed().total(num)), launching ? *launching : never()}));
  }
  if (pass.priced.copies > 0.0)
    time = time + num.given("copies of weights", Seconds(pass.priced.copies),
                            "gathered weights out of buffers, gradients into them");
  return num.named(fmt::format("{} {}", block.name, program::name(block.phase)), time);
}

Result<TracedSeconds> derive_compute(const Traced& num, const TrainingQuestion& question, std::int64_t sequence,
                                     const hardware::Cluster& cluster, const Strategy& strategy, double compute) {
  ASSAY_TRY(links, strategy_links(question, cluster, strategy));
  const TrainingProfile profile = make_profile(question.setup, profile_key(strategy, sequence));
  const pipeline::StageSplit split = stage_split(*question.setup.model, strategy);
  const StepInputs inputs{question, strategy, profile, nullptr, links};
  const MicrobatchCost microbatch = microbatch_cost(inputs, split);
  const auto distance = [&](const MicrobatchCost::Part& part) {
    return std::abs(microbatch.microbatches * part.compute - compute);
  };
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < split.parts.size(); ++i)
    if (distance(microbatch.parts[i]) < distance(microbatch.parts[slowest])) slowest = i;
  const auto [forward, backward] = ComputeDeriver(num, inputs, sequence).stage(split.parts[slowest]);
  return num.named("compute", num.given("microbatches", microbatch.microbatches, "of a step") * (forward + backward));
}

}  // namespace assay::training
