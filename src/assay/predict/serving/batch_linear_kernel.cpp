#include "assay/predict/serving/batch_linear_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/predict/kernel/origins.h"

namespace assay::serving {
namespace {

using kernel::KernelKind;
using kernel::Law;

Bytes expert_weight_bytes(const program::Program& program, const program::Step& step) {
  if (step.op != program::Op::product) return {};
  const program::ProgramTensor& weight = program.tensor(step.in[1]);
  return weight.find(model::LogicalDim::experts) >= 0 ? program::local_bytes(program, weight) : Bytes();
}

}  // namespace

Seconds ServedKernel::padding(double sequences, double touched, double tile_rows) const {
  if (!(expert_bytes > Bytes()) || kernel.kind != KernelKind::matmul || !(touched > 0.0)) return {};
  double rows = tile_rows;
  if (const auto* known = blocks.of(m(sequences) * tokens_of_row))
    for (const numbers::ExpertBlocks& one : *known) rows = std::min(rows, one.rows);
  const double each = m(sequences) / touched;  // of an expert with tokens
  const double empty = touched * batch(sequences) * (std::ceil(each / rows) * rows - each);
  return Flops(2.0 * empty * kernel.product.n * kernel.product.k) * time_per_flop;
}

bool ServedKernel::same_work(const ServedKernel& o) const {
  const kernel::AttentionWork &attention = kernel.attention, &others = o.kernel.attention;
  const program::AttentionShape &mine = attention.shape, &other = others.shape;
  const kernel::MatmulShape &product = kernel.product, &of_other = o.kernel.product;
  const bool same_kind = kernel.kind == o.kernel.kind || (is_stream(kernel.kind) && is_stream(o.kernel.kind));
  return attends == o.attends && same_kind && flops == o.flops && bytes == o.bytes && expert_bytes == o.expert_bytes &&
         time_per_flop == o.time_per_flop && stream_share == o.stream_share && quantises == o.quantises &&
         composition == o.composition && moves_tokens() == o.moves_tokens() && routes() == o.routes() &&
         gathers == o.gathers && blocks == o.blocks && narrowed == o.narrowed &&
         narrowed_experts == o.narrowed_experts && shared_by == o.shared_by && latent == o.latent && batch == o.batch &&
         m == o.m && product.n == of_other.n && product.k == of_other.k &&
         product.operand_rows == of_other.operand_rows && product.result_rows == of_other.result_rows &&
         kernel.format == o.kernel.format && items == o.items && heads == o.heads && met == o.met &&
         attention.queries == others.queries && attention.head_dim == others.head_dim &&
         attention.key_lead == others.key_lead && mine.causal == other.causal && mine.flash == other.flash &&
         mine.window == other.window && mine.chunk == other.chunk && mine.queries == other.queries &&
         mine.keys == other.keys;
}

bool ServedKernel::joins(const ServedKernel& o) const {
  return kernel.kind == KernelKind::matmul && o.kernel.kind == KernelKind::matmul && batch == o.batch && m == o.m &&
         kernel.product.k == o.kernel.product.k && time_per_flop == o.time_per_flop &&
         kernel.format == o.kernel.format && (expert_bytes > Bytes()) == (o.expert_bytes > Bytes());
}

void KernelOrigin::join(const KernelOrigin& o) {
  flops.add(o.flops);
  bytes.add(o.bytes);
  expert_bytes = expert_bytes + o.expert_bytes;
  n = n + o.n;
}

void ServedKernel::join(const ServedKernel& o) {
  if (origin && o.origin) {
    KernelOrigin joined = *origin;
    joined.join(*o.origin);
    origin = std::make_shared<const KernelOrigin>(std::move(joined));
  }
  flops.add(o.flops);
  bytes.add(o.bytes);
  expert_bytes += o.expert_bytes;
  kernel::MatmulShape& product = kernel.product;
  product.n += o.kernel.product.n;
  product.operand_rows = std::min(product.operand_rows, o.kernel.product.operand_rows);
  product.result_rows = std::min(product.result_rows, o.kernel.product.result_rows);
  fused += o.fused;
}

std::string ServedKernel::text() const {
  const std::string one = fmt::format("{} {}", program::name(op), makes);
  return fused > 1 ? fmt::format("{} with {} more", one, fused - 1) : one;
}

double ServedKernel::started(const numbers::ServingEffects& effects) const {
  const bool streams = is_stream(kernel.kind);
  if (!streams && kernel.kind != KernelKind::other) return 1.0;
  return is_view() ? 0.0 : effects.code && streams ? composition.kernels + composition.apart : effects.kernels.value;
}

ServedKernel served_kernel(const kernel::KernelRates& rates, const numbers::ServingEffects& effects,
                           const LoweredStep& once, const LoweredStep& twice, double sequences) {
  const auto& [one, at_one, touched_one] = once;
  const auto& [two, at_two, touched_two] = twice;
  ServedKernel kernel;
  kernel.op = at_one.op;
  kernel.makes = one.tensor(at_one.out[0]).name;
  kernel.attends = at_one.op == program::Op::attention && at_one.detail >= 0;
  kernel.flops = line_through(sequences, at_one.flops, at_two.flops);
  kernel.expert_bytes = expert_weight_bytes(one, at_one);
  Bytes apart_one, apart_two;
  if (kernel.expert_bytes > Bytes()) {
    apart_one = touched_one * kernel.expert_bytes;
    apart_two = touched_two * kernel.expert_bytes;
  }
  kernel.bytes = line_through(sequences, at_one.bytes - apart_one, at_two.bytes - apart_two);
  kernel::Kernel& first = kernel.kernel = kernel::kernel_of(rates, one, at_one);
  const bool streams = is_stream(first.kind);
  if (effects.code && streams) kernel.composition = kernel::stream_composition(*effects.code, one, at_one);
  if (rates.pointwise) kernel.stream_share = kernel::stream_share(*rates.pointwise, first.kind);
  if (!streams) kernel.time_per_flop = (at_one.flops / rates.rate(first.format)) / at_one.flops;
  const Law law = law_of(rates, first);
  if (first.kind == KernelKind::matmul) {
    // Before experts without tokens are taken out, which depends on the batch.
    first.product = kernel::product_shape(rates, one, at_one);
    const kernel::MatmulShape twice_product = kernel::product_shape(rates, two, at_two);
    kernel.batch = line_through(sequences, first.product.batch, twice_product.batch);
    kernel.m = line_through(sequences, first.product.m, twice_product.m);
  }
  const bool split = law == Law::split || law == Law::decode;
  if (law == Law::attention || split) {
    const kernel::Kernel second = kernel::kernel_of(rates, two, at_two);
    kernel.items = split ? line_through(sequences, first.items, second.items)
                         : line_through(sequences, first.attention.heads, second.attention.heads);
    kernel.met = {first.attention.shape.mean_keys(), 0.0};
  }
  if (kernel::reads_cache(first.kind)) {
    const program::ProgramTensor &q = one.tensor(at_one.in[0]), &keys = one.tensor(at_one.in[1]);
    if (keys.rank == 4 || law == Law::split)
      kernel.shared_by =
          program::local_extent(one, q, 2) / (keys.rank == 4 ? program::local_extent(one, keys, 2) : 1.0);
    kernel.latent = keys.rank != 4;
    const program::ProgramTensor& twice_q = two.tensor(at_two.in[0]);
    kernel.heads = line_through(sequences, program::local_extent(one, q, 0) * program::local_extent(one, q, 2),
                                program::local_extent(two, twice_q, 0) * program::local_extent(two, twice_q, 2));
  }
  if (at_one.op == program::Op::cast) {
    const program::ProgramTensor &in = one.tensor(at_one.in[0]), &out = one.tensor(at_one.out[0]);
    kernel.quantises = facts(out.dtype).bits <= 8 && out.tensor_class != program::TensorClass::key_value;
    if (in.tensor_class == program::TensorClass::weight || in.tensor_class == program::TensorClass::used_weight)
      (in.find(model::LogicalDim::experts) >= 0 ? kernel.narrowed_experts : kernel.narrowed) =
          std::max(Bytes(), program::local_bytes(one, in) - program::local_bytes(one, out));
  }
  return kernel;
}

KernelOrigin served_origin(const Traced& num, const LoweredStep& once, const LoweredStep& twice, double sequences) {
  const auto& [one, at_one, touched_one] = once;
  const auto& [two, at_two, touched_two] = twice;
  const auto line = [&](const auto& first, const auto& second) {
    const auto of = [](double n) { return n == 1.0 ? "of one sequence" : fmt::format("of {} sequences", n); };
    auto through = line_through(sequences, num.named(of(sequences), first), num.named(of(2.0 * sequences), second));
    // What is zero leaves no trace.
    if (through.fixed.value() == 0.0) through.fixed = {};
    if (through.moving.value() == 0.0) through.moving = {};
    return through;
  };
  KernelOrigin origin;
  if (at_one.flops > Flops())
    origin.flops = line(kernel::derive_flops(num, one, at_one), kernel::derive_flops(num, two, at_two));
  auto bytes_one = kernel::derive_bytes(num, one, at_one), bytes_two = kernel::derive_bytes(num, two, at_two);
  if (expert_weight_bytes(one, at_one) > Bytes()) {
    origin.expert_bytes = program::named_bytes(num, one, at_one.in[1]);
    const auto apart = [&](double touched) {
      return num.given("experts with tokens", touched, "share of those on the device") * origin.expert_bytes;
    };
    bytes_one = bytes_one - apart(touched_one);
    bytes_two = bytes_two - apart(touched_two);
  }
  origin.bytes = line(bytes_one, bytes_two);
  if (at_one.op == program::Op::product) {
    const kernel::ProductSizes<Traced> a = kernel::product_sizes(num, one, at_one),
                                       b = kernel::product_sizes(num, two, at_two);
    origin.batch = line(a.batch, b.batch);
    origin.m = line(a.m, b.m);
    origin.n = a.n;
    origin.k = a.k;
  } else if (at_one.op == program::Op::attention && at_one.detail >= 0) {
    const kernel::AttentionSizes<Traced> a = kernel::attention_sizes(num, one, at_one),
                                         b = kernel::attention_sizes(num, two, at_two);
    origin.items = line(a.items, b.items);
    origin.heads = line(a.heads, b.heads);
    origin.queries = a.queries;
  }
  return origin;
}

void find_tiles(const kernel::KernelRates& rates, kernel::TileTables& tables, ServedKernel& kernel) {
  if (law_of(rates, kernel.kernel) != Law::product) return;
  kernel.tiles = tables.of(product_rates(rates, kernel.kernel), kernel.kernel.product);
}

ServedWork served_work(const ServedKernel& kernel, const KernelLoad& load) {
  ServedWork work{kernel.kernel, {}};
  work.details = {kernel.is_view(),   kernel.quantises,      kernel.shared_by, 0.0,           {}, 0.0,
                  kernel.composition, kernel.moves_tokens(), kernel.routes(),  kernel.gathers};
  // A latent cache has kernels of its own, for which no head is wide.
  if (is_attention(kernel.kernel.kind)) work.kernel.cache_head = kernel.latent ? 0.0 : kernel.kernel.attention.head_dim;
  set_load(kernel, load, work);
  return work;
}

void set_load(const ServedKernel& kernel, const KernelLoad& load, ServedWork& served) {
  kernel::Kernel& work = served.kernel;
  const double sequences = load.sequences;
  work.flops = kernel.flops(sequences);
  work.bytes = load.bytes;
  served.details.arithmetic = load.arithmetic;
  if (work.kind == KernelKind::matmul) {
    // Experts without tokens are no part of the product; the others have more tokens each.
    const double used = kernel.expert_bytes > Bytes() ? load.touched : 1.0;
    kernel::MatmulShape& shape = work.product;
    shape.batch = used * kernel.batch(sequences);
    shape.m = std::max(1.0, kernel.m(sequences) / used);
    shape.bytes = work.bytes;
    served.details.blocks = kernel.blocks.of(kernel.m(sequences) * kernel.tokens_of_row);
    work.load = std::max(1.0, work.flops.value() / (2.0 * shape.batch * shape.m * shape.n * shape.k));
  } else if (is_attention(work.kind)) {
    work.attention.bytes = work.bytes;
    work.items = kernel.items(sequences);
    work.attention.heads = kernel::reads_cache(work.kind) ? work.items * kernel.shared_by : work.items;
    served.details.met = kernel.met(sequences);
    served.details.heads = kernel.heads(sequences);
  }
}

void add_origins(const Traced& num, const kernel::KernelRates& rates, const ServedKernel& kernel,
                 const KernelLoad& load, Origins& origins) {
  if (!kernel.origin) return;
  const KernelOrigin& of = *kernel.origin;
  const auto sequences = num.given("sequences", load.sequences, "of a step, over all replicas");
  auto bytes = of.bytes(sequences);
  const auto touched = num.given("experts with tokens", load.touched, "share of those on the device");
  if (!of.expert_bytes.is_nothing()) bytes = bytes + of.expert_bytes * touched;
  origins.add("bytes", bytes);
  if (const auto flops = of.flops(sequences); !flops.is_nothing()) {
    origins.add("flops", flops);
    origins.add("FLOP", flops);
    origins.add("compute", flops * num.given("time of a FLOP", kernel.time_per_flop, &rates.sources,
                                             fmt::format("peak.{}", assay::name(kernel.kernel.format))));
  }
  if (!of.n.is_nothing()) {
    const bool of_experts = kernel.expert_bytes > Bytes();
    const auto batch = of.batch(sequences), m = of.m(sequences);
    origins.add("batch", of_experts ? touched * batch : batch);
    const auto rows = of_experts ? m / touched : m;
    origins.add("m", rows.value() < 1.0 ? max(num.given("one", 1.0, "at least one row"), rows) : rows);
    origins.add("n", of.n);
    origins.add("k", of.k);
  }
  if (of.queries.is_nothing()) return;
  const auto items = of.items(sequences), heads = of.heads(sequences);
  origins.add("items", items);
  origins.add("heads", heads);
  origins.add("heads", items * num.given("query heads of a cache", kernel.shared_by, "heads that share keys"));
  origins.add("query heads", heads);
  origins.add("queries", of.queries);
}

template <class N>
NumberOf<N, Seconds> served_estimate(const N& num, const kernel::ServingKernels& kernels, const ServedKernel& kernel,
                                     const KernelLoad& load) {
  const auto [work, details] = served_work(kernel, load);
  return kernel::price(num, work, details, kernels, kernel.tiles.get());
}
template NumberOf<Plain, Seconds> served_estimate(const Plain&, const kernel::ServingKernels&, const ServedKernel&,
                                                  const KernelLoad&);
template NumberOf<Traced, Seconds> served_estimate(const Traced&, const kernel::ServingKernels&, const ServedKernel&,
                                                   const KernelLoad&);

}  // namespace assay::serving
