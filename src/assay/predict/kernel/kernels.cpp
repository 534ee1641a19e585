#include "assay/predict/kernel/kernels.h"

#include <algorithm>
#include <cmath>

namespace assay::kernel {
namespace {

/// The format in which a step multiplies.
Dtype product_format(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  const Dtype dtype = program.tensor(step.in[0]).dtype;
  if (rates.rate(dtype).value() > 0.0) return dtype;
  return rates.rate(Dtype::bf16).value() > 0.0 ? Dtype::bf16 : Dtype::fp16;
}

/// The share of the bandwidth that a step which streams memory reaches.
void set_stream(const hardware::PointwiseCalibration& fit, program::CostClass cost, KernelWork& work) {
  work.stream_share = fit.stream;
  if (cost == program::CostClass::norm) {
    work.stream_share = fit.norm;
    work.stream_key = "pointwise.norm";
  } else if (cost == program::CostClass::optimizer) {
    work.stream_share = fit.optimizer;
    work.stream_key = "pointwise.optimizer";
  }
}

void set_product(const KernelRates& rates, const program::Program& program, const program::Step& step,
                 KernelWork& work) {
  MatmulShape& shape = work.product = product_shape(rates, program, step);
  // Experts that get more than their part make the product longer than its tensors say. Experts without tokens do not
  // take part; the others have more tokens each.
  const auto [filled, touched] = expert_shares(program, step, Flops(2.0 * shape.batch * shape.m * shape.n * shape.k));
  work.load = filled;
  shape.batch *= touched;
  shape.m /= touched;
}

void set_attention(const program::Program& program, const program::Step& step, KernelWork& kernel) {
  kernel.backward = step.op == program::Op::attention_grad;
  const std::size_t first = kernel.backward ? 1 : 0;
  const program::ProgramTensor &q = program.tensor(step.in[first]), &k = program.tensor(step.in[first + 1]);
  const program::AttentionShape& shape = program.attentions[static_cast<std::size_t>(step.detail)];
  const AttentionSizes<Plain> sizes = attention_sizes(Plain{}, program, step);
  kernel.items = sizes.items;
  kernel.cache_head = k.rank == 4 ? program::local_extent(program, k, 3) : 0.0;
  kernel.model = kernel.backward                        ? KernelWork::Model::attention
                 : shape.queries <= most_decode_queries ? KernelWork::Model::decode
                 : is_split(shape)                      ? KernelWork::Model::split
                                                        : KernelWork::Model::attention;
  AttentionWork& work = kernel.attention;
  work.queries = sizes.queries;
  work.heads = sizes.heads;
  work.shared = sizes.shared;
  const int values = step.in[first + 2];
  const program::ProgramTensor& v = values >= 0 ? program.tensor(values) : k;
  const double keys = program::local_extent(program, q, q.rank - 1),
               of_values = program::local_extent(program, v, v.rank - 1);
  work.head_dim = (keys + of_values) / 2.0;
  work.key_lead = keys - of_values;
  work.shape = shape;
  work.bytes = step.bytes / (kernel.backward ? 2.5 : 1.0);  // the model counts the backward pass in forward passes
}

template <class N>
NumberOf<N, Seconds> product_estimate(const N& num, const KernelRates& rates, const KernelWork& work) {
  const auto time = matmul_time(num, product_rates(rates, work), work.product, rates.regime);
  if (!(work.load > 1.0)) return time.total;
  const auto launch = num.given("launch", rates.regime.launch, &rates.sources, "regime.launch");
  return launch + num.given("load", work.load, "tokens of the fullest expert over its part") * (time.total - launch);
}

template <class N>
NumberOf<N, Seconds> attention_estimate(const N& num, const KernelRates& rates, const KernelWork& work) {
  using enum KernelWork::Model;
  const auto read = [&] { return decode_time(num, decode_rates(rates), work.items, work.cache_head, work.bytes); };
  if (work.model == decode) return read();
  const AttentionRates by = attention_rates(rates, work);
  const auto whole = attention_time(num, by, work.attention, work.backward);
  if (work.model == attention) return whole;
  return max(read(), min(whole, split_attention_time(num, by, work.attention, work.items)));
}

template <class N>
KernelTimeOf<N> ideal_time(const N& num, const KernelRates& rates, const KernelWork& work) {
  KernelTimeOf<N> time{};
  const auto bytes = num.given("bytes", work.bytes, "read and written by the step");
  time.memory = num.named("memory", bytes / num.given("hbm", rates.hbm, &rates.sources, "hbm"));
  if (!(work.flops.value() > 0.0)) {
    time.compute = num.given("compute", Seconds(0), "no arithmetic on matrix units");
    return time;
  }
  const auto flops = num.given("flops", work.flops, "arithmetic of the step");
  if constexpr (N::traced)
    time.compute = num.named(
        "compute", flops / num.given("peak", work.peak, &rates.sources, "peak." + std::string(name(work.format))));
  else
    time.compute = flops / work.peak;
  return time;
}

}  // namespace

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

ExpertShares expert_shares(const program::Program& program, const program::Step& step, Flops of_tensors) {
  ExpertShares shares;
  if (of_tensors > Flops()) shares.filled = step.flops / of_tensors;
  const program::ProgramTensor& weight = program.tensor(step.in[1]);
  if (!program::is_weight(weight) || weight.find(model::LogicalDim::experts) < 0) return shares;
  // From the bytes of weights that the step reads.
  const Bytes weights = program::local_bytes(program, weight);
  const Bytes rest = program::local_bytes(program, program.tensor(step.in[0])) +
                     program::local_bytes(program, program.tensor(step.out[0]));
  shares.touched = std::clamp((step.bytes - shares.filled * rest) / weights, 1e-6, 1.0);
  return shares;
}

template <class N>
AttentionSizes<N> attention_sizes(const N& num, const program::Program& program, const program::Step& step) {
  const std::size_t first = step.op == program::Op::attention_grad ? 1 : 0;
  const program::ProgramTensor &q = program.tensor(step.in[first]), &k = program.tensor(step.in[first + 1]);
  const auto extent = [&](const program::ProgramTensor& tensor, int dim) {
    return program::local_extent(num, program, tensor, dim);
  };
  AttentionSizes<N> sizes{extent(q, 1), extent(q, 0) * extent(q, 2), extent(k, 0), {}};
  if (k.rank != 4) return sizes;
  sizes.items = sizes.items * extent(k, 2);
  sizes.shared = (sizes.heads / sizes.items - 1.0) * 2.0 * program::local_bytes(num, program, k);
  return sizes;
}

template <class N>
NumberOf<N, Bytes> gradient_buffer(const N& num, const program::Program& program, const program::Step& step) {
  if (!program::makes_weight_gradient(program, step)) return {};
  return program::local_bytes(num, program, program.tensor(step.out[0]));
}

namespace {

/// What divides the rows of a tensor: everything that it holds for a token or, of a weight, for all of it. Weights have
/// the dimensions of the rows that they are multiplied with.
double alignment_of_rows(const KernelRates& rates, const program::Program& program,
                         const program::ProgramTensor& tensor) {
  using enum model::LogicalDim;
  double row = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    const model::LogicalDim dim = tensor.dims[static_cast<std::size_t>(i)].dim;
    if (dim == batch || dim == sequence || dim == context || dim == capacity) break;
    if (dim == vocabulary && rates.pads_vocabulary) return cache_line;
    row *= std::ceil(program::local_extent(program, tensor, i));
  }
  return row_alignment(tensor.dtype, row);
}

}  // namespace

template <class N>
ProductSizes<N> product_sizes(const N& num, const program::Program& program, const program::Step& step) {
  const program::ProgramTensor &a = program.tensor(step.in[0]), &b = program.tensor(step.in[1]),
                               &c = program.tensor(step.out[0]);
  Factors<N> batch, m, n, k;
  for (int i = 0; i < c.rank; ++i) {
    const model::LogicalDim dim = c.dims[static_cast<std::size_t>(i)].dim;
    const bool left = a.find(dim) >= 0, right = b.find(dim) >= 0;
    (left && right ? batch : left ? m : n) *= program::local_extent(num, program, c, i);
  }
  for (int i = 0; i < a.rank; ++i) {
    const model::LogicalDim dim = a.dims[static_cast<std::size_t>(i)].dim;
    if (c.find(dim) < 0 && b.find(dim) >= 0) k *= program::local_extent(num, program, a, i);
  }
  return {batch.of(num), m.of(num), n.of(num), k.of(num)};
}

MatmulShape product_shape(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  const program::ProgramTensor &a = program.tensor(step.in[0]), &b = program.tensor(step.in[1]),
                               &c = program.tensor(step.out[0]);
  const ProductSizes<Plain> sizes = product_sizes(Plain{}, program, step);
  MatmulShape shape{sizes.batch, sizes.m, sizes.n, sizes.k, step.bytes, b.find(model::LogicalDim::experts) >= 0};
  shape.summed_rows = shape.grouped && program::makes_weight_gradient(program, step);
  if (shape.grouped) return shape;  // kernels over experts are the software's own, which pads
  shape.operand_rows = std::min(alignment_of_rows(rates, program, a), alignment_of_rows(rates, program, b));
  shape.result_rows = alignment_of_rows(rates, program, c);
  return shape;
}

KernelWork kernel_work(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  KernelWork work;
  work.flops = step.flops;
  work.bytes = step.bytes;
  if (rates.pointwise) set_stream(*rates.pointwise, program::facts(step.op).cost, work);
  if (step.flops.value() == 0.0) {
    if (rates.pointwise) work.model = KernelWork::Model::stream;
    return work;
  }
  work.format = product_format(rates, program, step);
  work.peak = rates.rate(work.format);
  work.share = rates.matmul ? matmul_share(*rates.matmul, work.format) : 0.0;
  const bool attends = program::is_attention(step.op) && step.detail >= 0;
  if (step.op == program::Op::product && work.share > 0.0) {
    work.model = KernelWork::Model::product;
    set_product(rates, program, step, work);
  } else if (attends && rates.attention && program.attentions[static_cast<std::size_t>(step.detail)].flash) {
    set_attention(program, step, work);
  } else if (attends && work.share > 0.0) {  // plain attention: products, then scores through memory
    work.model = KernelWork::Model::scores;
  }
  return work;
}

ProductRates product_rates(const KernelRates& rates, const KernelWork& work) {
  return {*rates.matmul, rates.cores, work.peak, work.share, work.format, &rates.sources};
}

AttentionRates attention_rates(const KernelRates& rates, const KernelWork& work) {
  return {work.backward ? rates.attention->backward : rates.attention->forward,
          rates.cores,
          work.peak,
          rates.attention->head_step.value_or(usual_head_step),
          &rates.sources,
          work.format};
}

DecodeRates decode_rates(const KernelRates& rates) { return {rates.attention->decode, rates.cores, &rates.sources}; }

template <class N>
NumberOf<N, Seconds> streamed(const N& num, const KernelRates& rates, const KernelWork& work,
                              NumberOf<N, Bytes> bytes) {
  const auto hbm = num.given("hbm", rates.hbm, &rates.sources, "hbm");
  if (!(work.stream_share > 0.0))
    return num.named(
        "streaming",
        bytes / hbm / num.given("memory efficiency", rates.memory_share, &rates.sources, "efficiency.memory"));
  const auto share = num.given("share of the bandwidth", work.stream_share, &rates.sources, work.stream_key);
  const auto ramp = num.given("ramp", rates.pointwise->ramp, &rates.sources, "pointwise.ramp");
  return num.named("streaming", stream_time(num, hbm, share, ramp, bytes));
}

template <class N>
KernelTimeOf<N> kernel_time(const N& num, const KernelRates& rates, const KernelWork& work) {
  using enum KernelWork::Model;
  KernelTimeOf<N> time = ideal_time(num, rates, work);
  const auto launch = [&] { return num.given("launch", rates.regime.launch, &rates.sources, "regime.launch"); };
  const auto whole_stream = [&] {
    const auto moved = streamed(num, rates, work, num.given("bytes", work.bytes, "read and written by the step"));
    return rates.pointwise ? launch() + moved : moved;
  };
  switch (work.model) {
    case product:
      time.estimate = product_estimate(num, rates, work);
      return time;
    case decode:
    case split:
    case attention:
      time.estimate = launch() + num.named("attention", attention_estimate(num, rates, work));
      return time;
    case scores: {
      const auto droop = num.given("droop", rates.matmul->droop, &rates.sources, "matmul.droop");
      const auto share = num.given("matrix share", work.share, &rates.sources, "matmul.share");
      time.estimate = whole_stream() + time.compute * ((1.0 + droop) / share);
      return time;
    }
    case stream:
    case shares:
      break;
  }
  time.estimate = whole_stream();
  if (work.flops.value() == 0.0) return time;
  const auto share = num.given("matrix efficiency", rates.matrix_share, &rates.sources, "efficiency.matrix");
  time.estimate = max(time.estimate, time.compute / share);
  return time;
}

template <class N>
KernelTimeOf<N> ideal_kernel_time(const N& num, const KernelRates& rates, const program::Program& program,
                                  const program::Step& step) {
  KernelWork work;
  work.flops = step.flops;
  work.bytes = step.bytes;
  if (step.flops.value() > 0.0) {
    work.format = product_format(rates, program, step);
    work.peak = rates.rate(work.format);
  }
  return ideal_time(num, rates, work);
}

KernelTime kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  return kernel_time(Plain{}, rates, kernel_work(rates, program, step));
}

#define ASSAY_INSTANTIATE(N)                                                                            \
  template KernelTimeOf<N> kernel_time(const N&, const KernelRates&, const KernelWork&);                \
  template KernelTimeOf<N> ideal_kernel_time(const N&, const KernelRates&, const program::Program&,     \
                                             const program::Step&);                                     \
  template ProductSizes<N> product_sizes(const N&, const program::Program&, const program::Step&);      \
  template AttentionSizes<N> attention_sizes(const N&, const program::Program&, const program::Step&);  \
  template NumberOf<N, Bytes> gradient_buffer(const N&, const program::Program&, const program::Step&); \
  template NumberOf<N, Seconds> streamed(const N&, const KernelRates&, const KernelWork&, NumberOf<N, Bytes>);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::kernel
