#include "assay/predict/kernel/kernels.h"

namespace assay::kernel {
namespace {

template <class N>
NumberOf<N, Seconds> product_estimate(const N& num, const KernelRates& rates, const Kernel& kernel) {
  const auto time = matmul_time(num, product_rates(rates, kernel), kernel.product, rates.regime);
  if (!(kernel.load > 1.0)) return time.total;
  const auto launch = num.given("launch", rates.regime.launch, &rates.sources, "regime.launch");
  return launch + num.given("load", kernel.load, "tokens of the fullest expert over its part") * (time.total - launch);
}

template <class N>
NumberOf<N, Seconds> attention_estimate(const N& num, const KernelRates& rates, const Kernel& kernel) {
  using enum Law;
  const Law law = law_of(rates, kernel);
  const auto read = [&] {
    return decode_time(num, decode_rates(rates), kernel.items, kernel.cache_head, kernel.bytes);
  };
  if (law == decode) return read();
  const AttentionRates by = attention_rates(rates, kernel);
  const auto whole = attention_time(num, by, kernel.attention, kernel.backward());
  if (law == attention) return whole;
  return max(read(), min(whole, split_attention_time(num, by, kernel.attention, kernel.items)));
}

template <class N>
KernelTimeOf<N> ideal_time(const N& num, const KernelRates& rates, const Kernel& kernel) {
  KernelTimeOf<N> time{};
  const auto bytes = num.given("bytes", kernel.bytes, "read and written by the step");
  time.memory = num.named("memory", bytes / num.given("hbm", rates.hbm, &rates.sources, "hbm"));
  if (!(kernel.flops.value() > 0.0)) {
    time.compute = num.given("compute", Seconds(0), "no arithmetic on matrix units");
    return time;
  }
  const auto flops = num.given("flops", kernel.flops, "arithmetic of the step");
  if constexpr (N::traced)
    time.compute = num.named("compute", flops / num.given("peak", rates.rate(kernel.format), &rates.sources,
                                                          "peak." + std::string(name(kernel.format))));
  else
    time.compute = flops / rates.rate(kernel.format);
  return time;
}

}  // namespace

Dtype KernelRates::format_of(Dtype wanted) const {
  for (const Dtype dtype : {wanted, Dtype::bf16, Dtype::fp16, Dtype::fp32})
    if (rate(dtype).value() > 0.0) return dtype;
  return wanted;
}

double matmul_share(const hardware::MatmulCalibration& fit, Dtype dtype) {
  const auto share = [&](Dtype d) { return fit.share[static_cast<std::size_t>(d)]; };
  if (share(dtype) > 0.0) return share(dtype);
  if (facts(dtype).bits <= 4 && share(Dtype::fp4) > 0.0) return share(Dtype::fp4);
  if (facts(dtype).bits <= 8 && share(Dtype::fp8) > 0.0) return share(Dtype::fp8);
  return share(Dtype::bf16);
}

void add_chip_sources(const hardware::Chip& chip, SourceTable& sources) {
  for (const DtypeFacts& dtype : all_dtypes())
    if (const auto& peak = chip.peak[static_cast<std::size_t>(dtype.dtype)])
      sources.add("peak." + std::string(dtype.name), peak->source);
  sources.add("hbm", chip.hbm().bandwidth->source);
  sources.add("cores", chip.cores.count.source);
  sources.add("vector", chip.vector_unit.clock.source);
  if (chip.matrix_unit.tile_m) sources.add("array", chip.matrix_unit.tile_m->source);
  sources.add("efficiency.matrix", chip.efficiency.matrix.source);
  sources.add("efficiency.memory", chip.efficiency.memory.source);
}

void add_calibration_sources(const hardware::Calibration& calibration, std::string_view regime, SourceTable& sources,
                             std::string_view attention) {
  const std::pair<std::string, std::string_view> renamed[] = {{std::string(regime), "regime"},
                                                              {"attention." + std::string(attention), "attention"}};
  for (const auto& [key, source] : calibration.origins.all()) {
    sources.add(key, source);
    for (const auto& [section, under] : renamed)
      if (key.starts_with(section)) sources.add(std::string(under) + key.substr(section.size()), source);
  }
}

Result<KernelRates> kernel_rates(const hardware::Chip& chip, Dtype compute, std::string_view where,
                                 const hardware::Calibration* calibration, const KernelSoftware& software) {
  ASSAY_TRY(asked, hardware::peak_rate(chip, compute, where));
  KernelRates rates;
  for (const DtypeFacts& dtype : all_dtypes()) {
    const auto index = static_cast<std::size_t>(dtype.dtype);
    if (chip.peak[index]) rates.peak[index] = chip.peak[index]->value;
  }
  rates.peak[static_cast<std::size_t>(compute)] = asked.value;
  rates.hbm = chip.hbm().bandwidth->value;
  rates.matrix_share = chip.efficiency.matrix.value;
  rates.memory_share = chip.efficiency.memory.value;
  rates.cores = core_rates(chip);
  rates.sources.add("peak." + std::string(name(compute)), asked.source);
  add_chip_sources(chip, rates.sources);
  if (!calibration) return rates;
  if (calibration->sustained) rates.regime = *calibration->sustained;
  rates.matmul = calibration->matmul;
  if (rates.matmul && software.serves) rates.matmul->grouped_port.reset();  // its kernels are its own
  rates.pads_vocabulary = software.pads_vocabulary;
  rates.pointwise = calibration->pointwise;
  const hardware::AttentionKernelCalibration* kernel =
      calibration->attention ? attention_kernel(*calibration->attention, software.attention) : nullptr;
  if (kernel) rates.attention = *kernel;
  const bool is_flash2 = kernel && calibration->attention->flash2 && kernel == &*calibration->attention->flash2;
  add_calibration_sources(*calibration, "sustained", rates.sources, is_flash2 ? "flash2" : "cudnn");
  return rates;
}

Law law_of(const KernelRates& rates, const Kernel& kernel) {
  using enum KernelKind;
  const bool multiplies = rates.matmul && matmul_share(*rates.matmul, kernel.format) > 0.0;
  if (kernel.kind == matmul) return multiplies ? Law::product : Law::shares;
  if (is_stream(kernel.kind)) return rates.pointwise ? Law::stream : Law::shares;
  if (!is_attention(kernel.kind)) return Law::shares;
  // Plain attention is products, then scores through memory.
  if (!rates.attention || !kernel.attention.shape.flash) return multiplies ? Law::scores : Law::shares;
  return kernel.kind == decode ? Law::decode : kernel.kind == split_decode ? Law::split : Law::attention;
}

double stream_share(const hardware::PointwiseCalibration& fit, KernelKind kind) {
  return kind == KernelKind::norm        ? fit.norm
         : kind == KernelKind::softmax   ? fit.softmax
         : kind == KernelKind::optimizer ? fit.optimizer
                                         : fit.stream;
}

std::string_view stream_key(KernelKind kind) {
  return kind == KernelKind::norm        ? "pointwise.norm"
         : kind == KernelKind::softmax   ? "pointwise.softmax"
         : kind == KernelKind::optimizer ? "pointwise.optimizer"
                                         : "pointwise.stream";
}

ProductRates product_rates(const KernelRates& rates, const Kernel& kernel) {
  return {*rates.matmul, rates.cores,   rates.rate(kernel.format), matmul_share(*rates.matmul, kernel.format),
          kernel.format, &rates.sources};
}

AttentionRates attention_rates(const KernelRates& rates, const Kernel& kernel) {
  return {kernel.backward() ? rates.attention->backward : rates.attention->forward,
          rates.cores,
          rates.rate(kernel.format),
          rates.attention->head_step.value_or(usual_head_step),
          &rates.sources,
          kernel.format};
}

DecodeRates decode_rates(const KernelRates& rates) { return {rates.attention->decode, rates.cores, &rates.sources}; }

template <class N>
NumberOf<N, Seconds> streamed(const N& num, const KernelRates& rates, const Kernel& kernel, NumberOf<N, Bytes> bytes) {
  const auto hbm = num.given("hbm", rates.hbm, &rates.sources, "hbm");
  if (!rates.pointwise)
    return num.named(
        "streaming",
        bytes / hbm / num.given("memory efficiency", rates.memory_share, &rates.sources, "efficiency.memory"));
  const auto share = num.given("share of the bandwidth", stream_share(*rates.pointwise, kernel.kind), &rates.sources,
                               stream_key(kernel.kind));
  const auto ramp = num.given("ramp", rates.pointwise->ramp, &rates.sources, "pointwise.ramp");
  return num.named("streaming", stream_time(num, hbm, share, ramp, bytes));
}

template <class N>
KernelTimeOf<N> kernel_time(const N& num, const KernelRates& rates, const Kernel& kernel) {
  using enum Law;
  KernelTimeOf<N> time = ideal_time(num, rates, kernel);
  const auto launch = [&] { return num.given("launch", rates.regime.launch, &rates.sources, "regime.launch"); };
  const auto whole_stream = [&] {
    const auto moved = streamed(num, rates, kernel, num.given("bytes", kernel.bytes, "read and written by the step"));
    return rates.pointwise ? launch() + moved : moved;
  };
  switch (law_of(rates, kernel)) {
    case product:
      time.estimate = product_estimate(num, rates, kernel);
      return time;
    case decode:
    case split:
    case attention:
      time.estimate = launch() + num.named("attention", attention_estimate(num, rates, kernel));
      return time;
    case scores: {
      const auto droop = num.given("droop", rates.matmul->droop, &rates.sources, "matmul.droop");
      const auto share =
          num.given("matrix share", matmul_share(*rates.matmul, kernel.format), &rates.sources, "matmul.share");
      time.estimate = whole_stream() + time.compute * ((1.0 + droop) / share);
      return time;
    }
    case stream:
    case shares:
      break;
  }
  time.estimate = whole_stream();
  if (kernel.flops.value() == 0.0) return time;
  const auto share = num.given("matrix efficiency", rates.matrix_share, &rates.sources, "efficiency.matrix");
  time.estimate = max(time.estimate, time.compute / share);
  return time;
}

template <class N>
KernelTimeOf<N> ideal_kernel_time(const N& num, const KernelRates& rates, const program::Program& program,
                                  const program::Step& step) {
  Kernel kernel;
  kernel.flops = step.flops;
  kernel.bytes = step.bytes;
  if (step.flops.value() > 0.0) kernel.format = rates.format_of(program.tensor(step.in[0]).dtype);
  return ideal_time(num, rates, kernel);
}

KernelTime kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  return kernel_time(Plain{}, rates, kernel_of(rates, program, step));
}

#define ASSAY_INSTANTIATE(N)                                                                        \
  template KernelTimeOf<N> kernel_time(const N&, const KernelRates&, const Kernel&);                \
  template KernelTimeOf<N> ideal_kernel_time(const N&, const KernelRates&, const program::Program&, \
                                             const program::Step&);                                 \
  template NumberOf<N, Seconds> streamed(const N&, const KernelRates&, const Kernel&, NumberOf<N, Bytes>);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::kernel
