#include "assay/predict/kernel/price.h"

#include "assay/base/index.h"
#include "assay/base/result.h"
#include "assay/predict/kernel/around_attention.h"

namespace assay::kernel {
namespace {

using numbers::StepEffects;
using numbers::StreamKind;

/// An activation function times another tensor, or the gradients of both.
bool is_gated(const program::Step& step) { return (step.op == program::Op::activate ? step.in[1] : step.out[1]) >= 0; }

/// A tensor of tokens at their experts.
bool is_at_expert(const program::ProgramTensor& tensor) { return tensor.find(model::LogicalDim::capacity) >= 0; }
/// A tensor between the two products of an expert.
bool is_inside_expert(const program::ProgramTensor& tensor) {
  return is_at_expert(tensor) && tensor.find(model::LogicalDim::width) >= 0;
}

/// Whether a step computes gradients of what another operation of its kind computed.
bool is_gradient(program::Op op) {
  using enum program::Op;
  return op == norm_grad || op == rotate_grad || op == activate_grad || op == gate_grad || op == loss_grad ||
         op == bias_grad || op == route_grad || op == dispatch_grad || op == combine_grad;
}
bool is_dispatch(program::Op op) { return op == program::Op::dispatch || op == program::Op::dispatch_grad; }
/// Whether single operations dispatch tokens, and not the kernels of experts.
bool composes_dispatch(const StepEffects& effects, program::Op op) {
  return is_dispatch(op) && effects.composed && effects.expert_pointwise > 0.0;
}

/// The kind of a step that streams.
StreamKind stream_kind(const program::Program& program, const program::Step& step) {
  using enum program::CostClass;
  switch (program::facts(step.op).cost) {
    case norm:
      return step.is_centred ? StreamKind::centred_norm : StreamKind::norm;
    case rotation:
      return StreamKind::rotation;
    case activation:
      if (!is_gated(step)) return StreamKind::activation;
      return is_inside_expert(program.tensor(step.out[0])) ? StreamKind::expert_gate : StreamKind::gate;
    case expert_traffic:
      return is_dispatch(step.op) ? StreamKind::dispatch : StreamKind::combine;
    case loss:
      return StreamKind::loss;
    default:
      return StreamKind::sum;
  }
}

/// The numbers of StepEffects, each under its own name and source.
template <class N>
class TrainingFactors {
 public:
  TrainingFactors(const N& num, const TrainingKernels& kernels) : num_(num), kernels_(kernels) {}

  auto operator()(std::string_view name, Given<double> StepEffects::*effect) const {
    return num_.given(name, kernels_.effects.*effect);
  }
  auto product() const { return (*this)("products in a step", &StepEffects::product); }
  auto pointwise() const { return (*this)("traffic of element-wise steps", &StepEffects::pointwise); }
  /// Of a step that streams: the software's traffic, and what it composes the kind of.
  auto streamed(StreamKind kind, const program::Step& step) const { return pointwise() * of_kind(kind, step); }
  /// The number of the pass that a step belongs to.
  auto of_pass(std::string_view name, const Given<numbers::Passes>& passes, const program::Step& step) const {
    return num_.given(name, passes.value[is_gradient(step.op) ? 1 : 0], passes.source);
  }
  auto start() const { return num_.given("start of a kernel", effects().start); }
  /// The least that the kernels of a step take.
  auto starts(StreamKind kind, const program::Step& step) const {
    return of_pass("kernels", effects().kernels[static_cast<std::size_t>(kind)], step) * start();
  }
  auto of_kind(StreamKind kind, const program::Step& step) const {
    return composed(effects().kinds[static_cast<std::size_t>(kind)], step);
  }
  /// What eager code composes a step of, by kind or beyond it.
  auto composed(const Given<numbers::Passes>& passes, const program::Step& step) const {
    return of_pass("kernels it is composed of", passes, step);
  }
  auto turned_share(double share) const {
    return num_.given("part of each head", share, "that turns, and is joined with the rest");
  }
  /// Bytes of a function's further kernels, over the fewest of its step.
  auto function(const program::Step& step) const {
    const bool back = is_gradient(step.op), gated = is_gated(step);
    const double fewest = back ? (gated ? 5.0 : 3.0) : gated ? 3.0 : 2.0;
    return of_pass("tensors of a composed function", effects().composed->functions[step.composed], step) /
           num_.given("tensors of the step", fewest, "each once");
  }
  /// Bytes of what happens to logits, over the fewest of the step.
  auto logits(const program::Step& step) const {
    return of_pass("tensors of logits", effects().composed->logits[step.composed], step) /
           num_.given("tensors of the step", is_gradient(step.op) ? 2.0 : 1.0, "each once");
  }
  auto last_part(double share) const {
    return num_.given("work of the last part of the sequence", share, "over the mean, --contiguous-context");
  }
  /// Of dispatch: single operations are on what is at the experts, not on what it is made of.
  auto copies(const program::Program& program, const program::Step& step) const {
    const bool back = is_gradient(step.op);
    return num_.given("copies of tokens",
                      program::local_bytes(program, program.tensor(back ? step.in[0] : step.out[0])) / step.bytes,
                      "over the bytes of the step");
  }
  /// The least that kernels on the choices of tokens take.
  auto routing() const { return (*this)("kernels of routing", &StepEffects::routing_launches) * start(); }
  const StepEffects& effects() const { return kernels_.effects; }
  auto inside_expert() const { return (*this)("inside experts", &StepEffects::expert_pointwise); }

 private:
  const N& num_;
  const TrainingKernels& kernels_;
};

/// Work of the device with the last part of a sequence over the mean of all, where parts are in one piece: its queries
/// meet (ways - 1/2) parts of the keys, on average they meet ways / 2.
double last_device(const StepEffects& effects, const program::Program& program, const program::Step& step) {
  if (!effects.contiguous_context || step.detail < 0) return 1.0;
  const program::AttentionShape& shape = program.attentions[at(step.detail)];
  if (!shape.causal || shape.cross || shape.window > 0 || shape.chunk > 0) return 1.0;
  const program::ProgramTensor& q = program.tensor(step.in[step.op == program::Op::attention ? 0 : 1]);
  return 2.0 - program::local_extent(program, q, 1) / static_cast<double>(shape.queries);
}

template <class N>
NumberOf<N, double> attention_stretch(const TrainingFactors<N>& factor, const program::Program& program,
                                      const program::Step& step) {
  if (!is_plain_attention(program, step)) {
    const auto in_step = factor("attention in a step", &StepEffects::attention);
    const double last = last_device(factor.effects(), program, step);
    return last == 1.0 ? in_step : factor.last_part(last) * in_step;
  }
  const auto plain = factor("plain attention in a step", &StepEffects::plain_attention);
  const program::ProgramTensor& q = program.tensor(step.in[step.op == program::Op::attention ? 0 : 1]);
  if (row_alignment(q.dtype, static_cast<double>(q.dims[at(q.rank - 1)].size)) >= bulk_copy) return plain;
  return plain * factor("unaligned heads", &StepEffects::unaligned);
}

/// Of turning heads: those of which a part turns are cut and put together again.
template <class N>
NumberOf<N, double> rotation_stretch(const TrainingFactors<N>& factor, const program::Program& program,
                                     const program::Step& step) {
  const auto& composed = factor.effects().composed;
  if (composed && step.detail < 0 && step.composed > 0)
    return factor.pointwise() * factor.composed(composed->rotations[step.composed], step);
  if (!composed || step.detail < 0) return factor.streamed(StreamKind::rotation, step);
  const program::ProgramTensor& heads = program.tensor(step.in[0]);
  const double share = static_cast<double>(step.detail) / static_cast<double>(heads.dims[at(heads.rank - 1)].size);
  return factor.pointwise() * (factor.turned_share(share) * factor.composed(composed->rotated_part, step) +
                               factor.composed(composed->rejoined_heads, step));
}

/// Of an activation function, and of its product with another tensor.
template <class N>
NumberOf<N, double> activation_stretch(const TrainingFactors<N>& factor, const program::Program& program,
                                       const program::Step& step) {
  const auto& composed = factor.effects().composed;
  const bool inside = is_inside_expert(program.tensor(step.out[0]));
  NumberOf<N, double> traffic = composed && step.is_joined && !inside
                                    ? factor.composed(composed->joined_gate, step)
                                    : factor.of_kind(stream_kind(program, step), step);
  if (composed && step.composed > 0) traffic = traffic + factor.function(step);
  return inside ? factor.pointwise() * traffic * factor.inside_expert() : factor.pointwise() * traffic;
}

/// Of the loss, and of what happens to logits before it.
template <class N>
NumberOf<N, double> loss_stretch(const TrainingFactors<N>& factor, const program::Step& step) {
  const auto kind = factor.of_kind(StreamKind::loss, step);
  if (!factor.effects().composed || step.composed == 0) return kind;
  return kind + factor.logits(step);
}

/// How much longer a kernel takes among the others of a step than by itself.
template <class N>
NumberOf<N, double> stretch(const TrainingFactors<N>& factor, const program::Program& program,
                            const program::Step& step) {
  using enum program::CostClass;
  switch (program::facts(step.op).cost) {
    case product:
      return factor.product();
    case attention:
      return attention_stretch(factor, program, step);
    case expert_traffic: {
      const auto traffic = factor("traffic of sorting by expert", &StepEffects::expert_traffic) *
                           factor.of_kind(stream_kind(program, step), step);
      if (!composes_dispatch(factor.effects(), step.op)) return traffic;
      return traffic * factor.copies(program, step);
    }
    case loss:
      return factor("traffic of the loss", &StepEffects::loss) * loss_stretch(factor, step);
    case cast: {
      if (facts(program.tensor(step.out[0]).dtype).bits >= 16) return factor.pointwise();
      const auto casting = factor("traffic of casts", &StepEffects::cast);
      return is_inside_expert(program.tensor(step.out[0])) ? casting * factor.inside_expert() : casting;
    }
    case norm:
      if (factor.effects().composed && step.is_centred && step.composed > 0)
        return factor.pointwise() * factor.composed(factor.effects().composed->centred_norm, step);
      return factor.streamed(stream_kind(program, step), step);
    case rotation:
      return rotation_stretch(factor, program, step);
    case activation:
      return activation_stretch(factor, program, step);
    case element_wise:  // biases of experts are added to the rows of one expert after the other
      if (!is_at_expert(program.tensor(step.in[0]))) return factor.streamed(StreamKind::sum, step);
      return factor.streamed(StreamKind::sum, step) * factor.inside_expert() *
             factor("biases of experts", &StepEffects::expert_bias);
    case scan:  // priced by its arithmetic
    case optimizer:
    case free:
    case collective:
      return factor.pointwise();
  }
  throw InternalError("an operation without a cost class");
}

/// Of a step that software composes of kernels. Blocks of a kernel start and end in a time in which memory moves
/// already: the shortest kernels take that time, others take that of their traffic.
template <class N>
NumberOf<N, Seconds> composed_stream(const N& num, const TrainingKernels& kernels, const program::Program& program,
                                     const program::Step& step, const Kernel& work) {
  const TrainingFactors<N> factor(num, kernels);
  const auto bytes = num.given("bytes", work.bytes, "read and written by the step");
  const auto time =
      max(factor.starts(stream_kind(program, step), step),
          stretch(factor, program, step) * num.named("kernel alone", streamed(num, kernels.rates, work, bytes)));
  return composes_dispatch(kernels.effects, step.op) ? factor.routing() + time : time;
}

/// Kernels of a scan: what they move, and their arithmetic. Products inside a chunk are small, and their operands pass
/// through the vector units for their decays, so that their time follows the rate of these instead of the matrix
/// units'.
template <class N>
NumberOf<N, Seconds> scan_time(const N& num, const TrainingKernels& kernels, const program::Program& program,
                               const program::Step& step, const Kernel& work) {
  const TrainingFactors<N> factor(num, kernels);
  const KernelRates& rates = kernels.rates;
  const bool backward = step.op == program::Op::scan_grad;
  const model::ScanPass<N> pass = model::scan_pass(num, program.scans[at(step.detail)].kernels, backward);
  const auto values = program::local_elements(num, program, program.tensor(backward ? step.in[0] : step.out[0]));
  const auto bytes = num.given("bytes", work.bytes, "read and written by the step") + pass.bytes * values;
  const auto flops = pass.flops * values;
  return streamed(num, rates, work, bytes) + factor("time of scans on vector units", &StepEffects::scan) * flops /
                                                 num.given("vector peak", rates.cores.vector, &rates.sources, "vector");
}

template <class N>
NumberOf<N, Seconds> nothing(const N& num, std::string_view why) {
  return num.given("none", Seconds(0), why);
}

}  // namespace

bool is_plain_attention(const program::Program& program, const program::Step& step) {
  return (step.op == program::Op::attention || step.op == program::Op::attention_grad) && step.detail >= 0 &&
         !program.attentions[at(step.detail)].flash;
}

const program::ProgramTensor& attention_scores(const program::Program& program, const program::Step& step) {
  return program.tensor(step.op == program::Op::attention ? step.out[1] : step.in[5]);
}

StreamComposition stream_composition(const StepEffects& effects, const program::Program& program,
                                     const program::Step& step) {
  const Plain num;
  const KernelRates no_rates;
  const TrainingKernels kernels{no_rates, effects};
  const TrainingFactors<Plain> factor(num, kernels);
  const auto kind = static_cast<std::size_t>(stream_kind(program, step));
  return {effects.kernels[kind].value[is_gradient(step.op) ? 1 : 0], stretch(factor, program, step),
          composes_dispatch(effects, step.op) ? effects.routing_launches.value : 0.0};
}

bool casts_weight(const program::Program& program, const program::Step& step) {
  const int bits = facts(program.tensor(step.out[0]).dtype).bits;
  return step.op == program::Op::cast && bits >= 16 && facts(program.tensor(step.in[0]).dtype).bits > bits;
}

template <class N>
StepPrice<N> fused_part_price(const N& num, const program::Program& program, const program::Step& step,
                              const TrainingKernels& kernels) {
  const KernelTimeOf<N> time = ideal_kernel_time(num, kernels.rates, program, step);
  const auto none = nothing(num, "the fused product has it");
  return {none, time.compute, time.memory, none, Resource::matrix_unit, true};
}

template <class N>
StepPrice<N> price(const N& num, const program::Program& program, const program::Step& step,
                   const TrainingKernels& kernels) {
  const TrainingFactors<N> factor(num, kernels);
  const bool is_product = step.op == program::Op::product, is_plain = is_plain_attention(program, step);
  Kernel work = kernel_of(kernels.rates, program, step);
  if (kernels.effects.adds_gradients) work.product.added = gradient_buffer(Plain{}, program, step);
  if (kernels.effects.pads_products) pad_rows(work.product);
  if (kernels.effects.masked_attention) work.attention.shape.causal = false;  // it computes what the mask hides
  const KernelTimeOf<N> time = kernel_time(num, kernels.rates, work);
  auto alone = num.named("kernel alone", time.estimate);
  if (kernels.dropout && is_plain) alone = alone + dropout_time(num, kernels.rates, program, step);
  // Kernels never exceed the peak, however well they run inside a step.
  StepPrice<N> price;
  price.duration = program::is_scan(step.op)
                       ? max(num.named("scan", scan_time(num, kernels, program, step, work)), time.compute)
                   : law_of(kernels.rates, work) == Law::stream && kernels.effects.start > Seconds(0)
                       ? composed_stream(num, kernels, program, step, work)
                       : max(stretch(factor, program, step) * alone, time.compute);
  const auto kernel = price.duration;
  if (kernels.effects.composed && step.op == program::Op::attention_grad && step.composed > 0)
    price.duration = price.duration + projection_time(num, kernels, program, step);
  if (kernels.effects.composed && is_plain)
    price.duration = price.duration + scores_time(num, kernels, program, step, time.compute);
  price.compute = time.compute;
  // Ideal kernels fuse element-wise work into other kernels.
  price.memory = step.flops.value() > 0.0 ? time.memory : nothing(num, "fused into other kernels");
  price.resource = step.flops.value() > 0.0 ? Resource::matrix_unit : Resource::memory;
  if (step.op == program::Op::route || step.op == program::Op::route_grad)
    price.launches += kernels.effects.routing_launches;
  price.full_power = is_product || (program::is_attention(step.op) && !is_plain && !kernels.effects.masked_attention);
  const bool by_arithmetic = time.compute.value() > time.memory.value() && kernels.rates.matmul;
  // Matrix units that read shared memory take as much power for attention; those that wait for registers take less.
  const bool attends = by_arithmetic && price.full_power && !is_product && kernels.rates.matmul->fine_tiles;
  const bool multiplies = by_arithmetic && is_product && !loads_narrowly(*kernels.rates.matmul, work.product);
  if (!multiplies && !attends) {
    price.slowed = nothing(num, "arithmetic on matrix units does not bound it");
    return price;
  }
  const auto droop = num.given("droop", kernels.rates.matmul->droop, &kernels.rates.sources, "matmul.droop");
  if (multiplies) {
    price.slowed = num.named("slowed", droop / (1.0 + droop) * price.duration);
    return price;
  }
  // Measured by itself, it runs at the full clock.
  price.slowed = num.named("slowed", factor("droop of attention", &StepEffects::attention_droop) * droop * kernel);
  price.duration = price.duration + price.slowed;
  return price;
}

template <class N>
StepPrice<N> price(const N& num, const JoinedProducts::Part& fused, const TrainingKernels& kernels) {
  Kernel work;
  work.kind = KernelKind::matmul;
  work.format = fused.dtype;
  MatmulShape shape = fused.shape;
  if (!kernels.effects.adds_gradients) shape.added = Bytes(0);
  const MatmulTimeOf<N> time = matmul_time(num, product_rates(kernels.rates, work), shape, kernels.rates.regime);
  const auto product = TrainingFactors<N>(num, kernels).product();
  const auto none = nothing(num, "its parts have it");
  StepPrice<N> price{product * num.named("kernel alone", time.total), none, none, none, Resource::matrix_unit, true};
  if (time.sustained.value() > time.memory.value())
    price.slowed = num.named("slowed", product * (time.sustained - time.arithmetic));
  return price;
}

#define ASSAY_INSTANTIATE(N)                                                                                    \
  template StepPrice<N> price(const N&, const program::Program&, const program::Step&, const TrainingKernels&); \
  template StepPrice<N> fused_part_price(const N&, const program::Program&, const program::Step&,               \
                                         const TrainingKernels&);                                               \
  template StepPrice<N> price(const N&, const JoinedProducts::Part&, const TrainingKernels&);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::kernel
