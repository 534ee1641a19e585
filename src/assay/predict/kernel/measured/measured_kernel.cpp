#include "assay/predict/kernel/measured/measured_kernel.h"

#include "assay/predict/kernel/chip_numbers.h"
#include "assay/predict/kernel/kernels.h"
#include "assay/predict/roofline/roofline.h"

namespace assay::kernel {
namespace {

/// The format itself was measured, or its twin that runs at the same rate.
bool was_measured(const hardware::MatmulCalibration& fit, Dtype dtype) {
  const auto has = [&](Dtype d) { return fit.share[static_cast<std::size_t>(d)] > 0.0; };
  return has(dtype) || (dtype == Dtype::fp16 && has(Dtype::bf16)) || (dtype == Dtype::int8 && has(Dtype::fp8));
}

template <class N>
NumberOf<N, Seconds> casting_time(const N& num, const Kernel& kernel, const KernelPlace& place,
                                  const Harness& harness) {
  const auto cast = harness.quantise.find({kernel.format, std::string(place.architecture)});
  if (cast == harness.quantise.end()) return num.given("casting", Seconds(0), "not part of the measurement");
  const Quantising& q = cast->second;
  const Bytes passed(q.passes * kernel.product.m * kernel.product.k);
  const auto rows = num.given("k", kernel.product.k, "summed over") *
                    num.given("time of an element", q.element, place.sources, "way");
  return num.named("casting", num.given("fixed", q.fixed, place.sources, "way") + rows +
                                  num.given("bytes cast", passed, place.sources, "way") /
                                      main_memory(num, place.cores, place.sources));
}

/// One pass of attention; without tables of measurements that include more, `extra` is 0.
template <class N>
NumberOf<N, Seconds> pass_of(const N& num, const Kernel& kernel, const KernelPlace& place, bool backward,
                             std::optional<double> extra) {
  const hardware::AttentionKernelCalibration& fit = *attention_kernel(*place.fits.attention, kernel.library);
  hardware::AttentionPass pass = backward ? fit.backward : fit.forward;
  pass.passes = extra ? pass.passes + *extra : 0.0;
  return attention_time(
      num, {pass, place.cores, place.peak, fit.head_step.value_or(usual_head_step), place.sources, kernel.format},
      kernel.attention, backward);
}

/// A pass of attention at the clock that power allows.
template <class N>
NumberOf<N, Seconds> at_its_clock(const N& num, const Kernel& kernel, const KernelPlace& place, const Harness& harness,
                                  NumberOf<N, Seconds> pass) {
  if (!place.fits.matmul || !attention_kernel(*place.fits.attention, kernel.library)->full_power) return pass;
  return throttled<N>(pass, num.given("droop", place.fits.matmul->droop, place.sources, "matmul.droop"),
                      num.given("gap", harness.gap, place.sources, "regime.gap"));
}

}  // namespace

bool KernelPlace::has(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::matmul) return fits.matmul && was_measured(*fits.matmul, kernel.format);
  return is_stream(kernel.kind) ? fits.pointwise.has_value() : fits.attention.has_value();
}

std::optional<KernelPlace> kernel_place(const Kernel& kernel, const hardware::Chip& chip,
                                        const hardware::Calibration& calibration) {
  const auto& peak = chip.peak[static_cast<std::size_t>(kernel.format)];
  if (kernel.kind < KernelKind::decode && !peak) return std::nullopt;
  return KernelPlace{calibration, core_rates(chip), peak ? peak->value : FlopsPerSecond(0), chip.architecture, nullptr};
}

template <class N>
MeasuredTimeOf<N> measured_time(const N& num, const Kernel& kernel, const KernelPlace& place, const Harness& harness) {
  const auto& [fits, cores, peak, architecture, sources] = place;
  const Seconds start = harness.launch[static_cast<std::size_t>(kernel.kind)];
  MeasuredTimeOf<N> time;
  if (kernel.kind == KernelKind::matmul) {
    MatmulShape shape = kernel.product;
    shape.bytes = harness.moved(shape.bytes);
    const ProductRates rates{*fits.matmul,  cores,  peak, matmul_share(*fits.matmul, kernel.format),
                             kernel.format, sources};
    time.casting = casting_time(num, kernel, place, harness);
    time.product = matmul_time(num, rates, shape, {start, harness.gap, harness.ramp}, harness.split_k);
    time.total = time.casting + time.product.total;
    if constexpr (!N::traced) time.launch = start;
    return time;
  }
  time.launch = num.given("launch", start, sources, "launch");
  if (is_stream(kernel.kind)) {
    time.memory = num.named("streaming",
                            stream_time(num, main_memory(num, cores, sources),
                                        num.given("share of the bandwidth", stream_share(*fits.pointwise, kernel.kind),
                                                  sources, stream_key(kernel.kind)),
                                        num.given("ramp", fits.pointwise->ramp, sources, "pointwise.ramp"),
                                        num.given("bytes", kernel.bytes, "operands and results, once each")));
    time.total = time.launch + time.memory;
    return time;
  }
  if (kernel.kind == KernelKind::decode) {
    time.memory = decode_time(num, {attention_kernel(*fits.attention, kernel.library)->decode, cores, sources},
                              kernel.items, kernel.cache_head, harness.moved(kernel.bytes));
    time.total = time.launch + time.memory;
    return time;
  }
  time.total = time.launch;
  for (const bool backward : {false, true}) {
    if (kernel.kind == (backward ? KernelKind::attention_forward : KernelKind::attention_backward)) continue;
    const auto all = pass_of(num, kernel, place, backward, harness.attention_passes);
    const auto slowed = at_its_clock<N>(num, kernel, place, harness, all);
    time.total = time.total + num.named(backward ? "backward pass" : "forward pass", slowed);
    if constexpr (!N::traced) {  // the parts that answers show
      const Seconds moved = all - pass_of(num, kernel, place, backward, std::nullopt);
      time.arithmetic += slowed - moved;
      time.memory += moved;
    }
  }
  return time;
}
template MeasuredTimeOf<Plain> measured_time(const Plain&, const Kernel&, const KernelPlace&, const Harness&);
template MeasuredTimeOf<Traced> measured_time(const Traced&, const Kernel&, const KernelPlace&, const Harness&);

double spread_of(const hardware::SpreadCalibration& spread, KernelKind kind) {
  if (is_stream(kind)) return spread.pointwise;
  switch (kind) {
    case KernelKind::matmul:
      return spread.matmul;
    case KernelKind::decode:
      return spread.decode;
    case KernelKind::collective:
      return spread.collective;
    default:
      return spread.attention;
  }
}

}  // namespace assay::kernel
