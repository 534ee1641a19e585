#include "assay/predict/kernel/kernel.h"

#include <algorithm>
#include <cmath>

#include "assay/predict/kernel/kernels.h"
#include "assay/predict/roofline/roofline.h"

namespace assay::kernel {
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

void set_product(const KernelRates& rates, const program::Program& program, const program::Step& step, Kernel& kernel) {
  MatmulShape& shape = kernel.product = product_shape(rates, program, step);
  // Experts that get more than their part make the product longer than its tensors say. Experts without tokens do not
  // take part; the others have more tokens each.
  const auto [filled, touched] = expert_shares(program, step, Flops(2.0 * shape.batch * shape.m * shape.n * shape.k));
  kernel.load = filled;
  shape.batch *= touched;
  shape.m /= touched;
}

KernelKind attention_kind(const program::AttentionShape& shape, bool backward) {
  if (backward) return KernelKind::attention_backward;
  if (shape.queries <= most_decode_queries) return KernelKind::decode;
  return shape.queries <= most_split_queries && shape.queries < shape.keys ? KernelKind::split_decode
                                                                           : KernelKind::attention_forward;
}

void set_attention(const program::Program& program, const program::Step& step, Kernel& kernel) {
  const bool backward = step.op == program::Op::attention_grad;
  const std::size_t first = backward ? 1 : 0;
  const program::ProgramTensor &q = program.tensor(step.in[first]), &k = program.tensor(step.in[first + 1]);
  AttentionWork& work = kernel.attention;
  work.shape = program.attentions[static_cast<std::size_t>(step.detail)];
  kernel.kind = attention_kind(work.shape, backward);
  const AttentionSizes<Plain> sizes = attention_sizes(Plain{}, program, step);
  kernel.items = sizes.items;
  kernel.cache_head = k.rank == 4 ? program::local_extent(program, k, 3) : 0.0;
  work.queries = sizes.queries;
  work.heads = sizes.heads;
  work.shared = sizes.shared;
  const int values = step.in[first + 2];
  const program::ProgramTensor& v = values >= 0 ? program.tensor(values) : k;
  const double keys = program::local_extent(program, q, q.rank - 1),
               of_values = program::local_extent(program, v, v.rank - 1);
  work.head_dim = (keys + of_values) / 2.0;
  work.key_lead = keys - of_values;
  work.bytes = step.bytes / (backward ? program::backward_passes : 1.0);  // the model counts in forward passes
}

KernelKind kind_of(const roofline::PointwiseFunction& function) {
  if (function.name == "softmax") return KernelKind::softmax;
  if (function.name == "adamw") return KernelKind::optimizer;
  return function.name == "rmsnorm" || function.name == "layernorm" ? KernelKind::norm : KernelKind::stream;
}

}  // namespace

Kernel kernel_of(const KernelRates& rates, const program::Program& program, const program::Step& step) {
  Kernel kernel;
  kernel.flops = step.flops;
  kernel.bytes = step.bytes;
  if (step.flops.value() == 0.0) {
    const program::CostClass cost = program::facts(step.op).cost;
    kernel.kind = cost == program::CostClass::norm        ? KernelKind::norm
                  : cost == program::CostClass::optimizer ? KernelKind::optimizer
                                                          : KernelKind::stream;
    return kernel;
  }
  kernel.format = rates.format_of(program.tensor(step.in[0]).dtype);
  if (step.op == program::Op::product) {
    kernel.kind = KernelKind::matmul;
    set_product(rates, program, step, kernel);
  } else if (program::is_attention(step.op) && step.detail >= 0) {
    set_attention(program, step, kernel);
  }
  return kernel;
}

Kernel kernel_of(const roofline::Attention& of, Dtype compute) {
  Kernel kernel;
  kernel.format = compute;
  const bool one_of_many = of.queries == 1.0 && of.keys > 1.0;
  kernel.kind = one_of_many                                        ? KernelKind::decode
                : of.passes == roofline::AttentionPasses::forward  ? KernelKind::attention_forward
                : of.passes == roofline::AttentionPasses::backward ? KernelKind::attention_backward
                                                                   : KernelKind::attention_both;
  kernel.attention = attention_work(of);
  kernel.items = of.batch * of.kv_heads;
  kernel.cache_head = kernel.attention.head_dim;
  const double seen = of.window > 0.0 ? std::min(of.window, of.keys) : of.keys;
  kernel.bytes = storage(of.cache, of.batch * (of.head_dim + of.value_dim) * of.kv_heads * seen);
  return kernel;
}

Kernel kernel_of(const roofline::Operation& operation, Dtype compute, hardware::AttentionKernel library) {
  Kernel kernel;
  if (operation.is_attention()) {
    kernel = kernel_of(operation.attention(), compute);
    kernel.library = library;
    return kernel;
  }
  kernel.format = compute;
  const roofline::Work<Plain> work = roofline::operation_work(Plain{}, operation, {});
  kernel.bytes = work.bytes;
  if (!operation.is_matmul()) {
    kernel.kind = kind_of(*operation.function());
    return kernel;
  }
  kernel.kind = KernelKind::matmul;
  kernel.flops = work.flops;
  const roofline::Matmul m = operation.matmul();
  MatmulShape& shape = kernel.product = {m.batch, m.m, m.n, m.k, work.bytes, m.grouped};
  shape.summed_rows = m.summed_rows;
  shape.even_rows = m.even_rows;
  if (m.grouped) return kernel;
  shape.operand_rows = row_alignment(compute, m.k);
  shape.result_rows = row_alignment(operation.result().dtype, m.n);
  return kernel;
}

AttentionWork attention_work(const roofline::Attention& of) {
  AttentionWork work;
  work.heads = of.batch * of.heads;
  work.head_dim = (of.head_dim + of.value_dim) / 2.0;
  work.key_lead = of.head_dim - of.value_dim;
  work.queries = of.queries;
  work.shape = of.shape();
  const double sizes = of.batch * (of.head_dim + of.value_dim);
  work.bytes = storage(of.query, sizes * of.heads * of.queries) + storage(of.cache, sizes * of.kv_heads * of.keys);
  work.shared = storage(of.cache, sizes * (of.heads - of.kv_heads) * of.keys);
  return work;
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

#define ASSAY_INSTANTIATE(N)                                                                           \
  template ProductSizes<N> product_sizes(const N&, const program::Program&, const program::Step&);     \
  template AttentionSizes<N> attention_sizes(const N&, const program::Program&, const program::Step&); \
  template NumberOf<N, Bytes> gradient_buffer(const N&, const program::Program&, const program::Step&);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::kernel
