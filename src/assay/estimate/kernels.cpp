#include "assay/estimate/kernels.h"

#include <algorithm>

namespace assay::estimate {
namespace {

/// The format in which a step multiplies.
Dtype product_format(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  const Dtype dtype = program.tensor(step.in[0]).dtype;
  if (rates.rate(dtype).value() > 0.0) return dtype;
  return rates.rate(Dtype::bf16).value() > 0.0 ? Dtype::bf16 : Dtype::fp16;
}

/// The share of the bandwidth that a step which streams memory reaches.
double stream_share(const hardware::PointwiseCalibration& fit, program::CostClass cost) {
  if (cost == program::CostClass::norm) return fit.norm;
  return cost == program::CostClass::optimizer ? fit.optimizer : fit.stream;
}

/// The share of the experts that any token picked, from the bytes of weights that the step reads.
double touched_experts(const program::Program& program, const program::Step& step, double filled) {
  const program::ProgramTensor& weight = program.tensor(step.in[1]);
  const bool of_weights =
      weight.tensor_class == program::TensorClass::weight || weight.tensor_class == program::TensorClass::used_weight;
  if (!of_weights || weight.find(model::LogicalDim::experts) < 0) return 1.0;
  const Bytes weights = program::local_bytes(program, weight);
  const Bytes rest = program::local_bytes(program, program.tensor(step.in[0])) +
                     program::local_bytes(program, program.tensor(step.out[0]));
  return std::clamp((step.bytes - filled * rest) / weights, 1e-6, 1.0);
}

Seconds product_estimate(const KernelRates& rates, FlopsPerSecond peak, double share, const program::Program& program,
                         const program::Step& step) {
  MatmulShape shape = product_shape(program, step);
  const double flops = 2.0 * shape.batch * shape.m * shape.n * shape.k;
  // Experts that get more than their part make the product longer than its tensors say.
  const double load = flops > 0.0 ? step.flops.value() / flops : 1.0;
  // Experts without tokens do not take part; the others have more tokens each.
  const double touched = touched_experts(program, step, load);
  shape.batch *= touched;
  shape.m /= touched;
  const MatmulTime time = matmul_time({*rates.matmul, rates.cores, peak, share}, shape, rates.regime);
  return load > 1.0 ? rates.regime.launch + load * (time.total - rates.regime.launch) : time.total;
}

Seconds attention_estimate(const KernelRates& rates, FlopsPerSecond peak, const program::Program& program,
                           const program::Step& step) {
  const bool backward = step.op == program::Op::attention_grad;
  const std::size_t first = backward ? 1 : 0;
  const program::ProgramTensor &q = program.tensor(step.in[first]), &k = program.tensor(step.in[first + 1]);
  const program::AttentionShape& shape = program.attentions[static_cast<std::size_t>(step.detail)];
  const double items =
      program::local_extent(program, k, 0) * (k.rank == 4 ? program::local_extent(program, k, 2) : 1.0);
  const auto read = [&] {
    return decode_time(rates.attention->decode, rates.cores, items,
                       k.rank == 4 ? program::local_extent(program, k, 3) : 0.0, step.bytes);
  };
  if (!backward && shape.queries <= most_decode_queries) return read();
  AttentionWork work;
  work.queries = program::local_extent(program, q, 1);
  work.heads = program::local_extent(program, q, 0) * program::local_extent(program, q, 2);
  const int values = step.in[first + 2];
  const program::ProgramTensor& v = values >= 0 ? program.tensor(values) : k;
  work.head_dim = (program::local_extent(program, q, q.rank - 1) + program::local_extent(program, v, v.rank - 1)) / 2.0;
  work.shape = shape;
  work.bytes = step.bytes / (backward ? 2.5 : 1.0);  // the model counts the backward pass in forward passes
  if (k.rank == 4) {
    const double kv_heads = program::local_extent(program, k, 0) * program::local_extent(program, k, 2);
    work.shared = (work.heads / kv_heads - 1.0) * 2.0 * program::local_bytes(program, k);
  }
  const Seconds whole = attention_time(backward ? rates.attention->backward : rates.attention->forward, rates.cores,
                                       peak, work, backward);
  if (backward || !is_split(shape)) return whole;
  return std::max(read(),
                  std::min(whole, split_attention_time(rates.attention->forward, rates.cores, peak, work, items)));
}

}  // namespace

double matmul_share(const hardware::MatmulCalibration& fit, Dtype dtype) {
  const auto share = [&](Dtype d) { return fit.share[static_cast<std::size_t>(d)]; };
  if (share(dtype) > 0.0) return share(dtype);
  if (facts(dtype).bits <= 4 && share(Dtype::fp4) > 0.0) return share(Dtype::fp4);
  if (facts(dtype).bits <= 8 && share(Dtype::fp8) > 0.0) return share(Dtype::fp8);
  return share(Dtype::bf16);
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
  if (!calibration) return rates;
  if (calibration->sustained) rates.regime = *calibration->sustained;
  rates.matmul = calibration->matmul;
  if (rates.matmul && software.serves) rates.matmul->grouped = 1.0;
  rates.pointwise = calibration->pointwise;
  if (calibration->attention) {
    const hardware::AttentionKernelCalibration* kernel = attention_kernel(*calibration->attention, software.attention);
    if (kernel) rates.attention = *kernel;
  }
  return rates;
}

MatmulShape product_shape(const program::Program& program, const program::Step& step) {
  const program::ProgramTensor &a = program.tensor(step.in[0]), &b = program.tensor(step.in[1]),
                               &c = program.tensor(step.out[0]);
  MatmulShape shape;
  shape.bytes = step.bytes;
  shape.grouped = b.find(model::LogicalDim::experts) >= 0;
  for (int i = 0; i < c.rank; ++i) {
    const model::LogicalDim dim = c.dims[static_cast<std::size_t>(i)].dim;
    const bool left = a.find(dim) >= 0, right = b.find(dim) >= 0;
    (left && right ? shape.batch : left ? shape.m : shape.n) *= program::local_extent(program, c, i);
  }
  for (int i = 0; i < a.rank; ++i) {
    const model::LogicalDim dim = a.dims[static_cast<std::size_t>(i)].dim;
    if (c.find(dim) < 0 && b.find(dim) >= 0) shape.k *= program::local_extent(program, a, i);
  }
  return shape;
}

KernelTime ideal_kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  KernelTime time;
  time.memory = step.bytes / rates.hbm;
  if (step.flops.value() > 0.0) time.compute = step.flops / rates.rate(product_format(rates, program, step));
  return time;
}

KernelTime kernel_time(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  KernelTime time = ideal_kernel_time(rates, program, step);
  time.estimate =
      rates.pointwise
          ? rates.regime.launch + stream_time(rates.hbm, stream_share(*rates.pointwise, program::facts(step.op).cost),
                                              rates.pointwise->ramp, step.bytes)
          : time.memory / rates.memory_share;
  if (step.flops.value() == 0.0) return time;
  const Dtype dtype = product_format(rates, program, step);
  const FlopsPerSecond peak = rates.rate(dtype);
  const double share = rates.matmul ? matmul_share(*rates.matmul, dtype) : 0.0;
  const bool attends = program::is_attention(step.op) && step.detail >= 0;
  if (step.op == program::Op::product && share > 0.0)
    time.estimate = product_estimate(rates, peak, share, program, step);
  else if (attends && rates.attention && program.attentions[static_cast<std::size_t>(step.detail)].flash)
    time.estimate = rates.regime.launch + attention_estimate(rates, peak, program, step);
  else if (attends && share > 0.0)  // plain attention: products, then scores through memory
    time.estimate += time.compute * ((1.0 + rates.matmul->droop) / share);
  else
    time.estimate = std::max(time.estimate, time.compute / rates.matrix_share);
  return time;
}

}  // namespace assay::estimate
