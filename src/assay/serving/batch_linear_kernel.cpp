#include "assay/serving/batch_linear_kernel.h"

#include <algorithm>

namespace assay::serving {
namespace {

using Model = ServedKernel::Model;

double expert_weight_bytes(const program::Program& program, const program::Step& step) {
  if (step.op != program::Op::product) return 0.0;
  const program::ProgramTensor& weight = program.tensor(step.in[1]);
  return weight.find(model::LogicalDim::experts) >= 0 ? program::local_bytes(program, weight).value() : 0.0;
}

bool is_flash(const program::Program& program, const program::Step& step) {
  return program.attentions[static_cast<std::size_t>(step.detail)].flash;
}

Model model_of(const estimate::KernelRates& rates, const program::Program& program, const program::Step& step,
               double share) {
  if (step.flops.value() == 0.0) return rates.pointwise ? Model::stream : Model::shares;
  if (step.op == program::Op::product && share > 0.0) return Model::product;
  const bool attends = step.op == program::Op::attention && step.detail >= 0;
  if (attends && rates.attention && is_flash(program, step)) {
    const program::AttentionShape& shape = program.attentions[static_cast<std::size_t>(step.detail)];
    return shape.queries <= estimate::most_decode_queries ? Model::decode
           : estimate::is_split(shape)                    ? Model::split
                                                          : Model::attention;
  }
  return attends && share > 0.0 ? Model::scores : Model::shares;
}

/// Sequences times heads of queries, or of keys where the cache is split.
double attended_items(const program::Program& program, const program::Step& step, Model model) {
  const program::ProgramTensor& tensor = program.tensor(step.in[model == Model::attention ? 0 : 1]);
  return program::local_extent(program, tensor, 0) *
         (tensor.rank == 4 ? program::local_extent(program, tensor, 2) : 1.0);
}

estimate::AttentionWork attention_work(const program::Program& program, const program::Step& step) {
  const program::ProgramTensor &q = program.tensor(step.in[0]), &k = program.tensor(step.in[1]);
  const program::ProgramTensor& v = step.in[2] >= 0 ? program.tensor(step.in[2]) : k;
  estimate::AttentionWork work;
  work.queries = program::local_extent(program, q, 1);
  work.head_dim = (program::local_extent(program, q, q.rank - 1) + program::local_extent(program, v, v.rank - 1)) / 2.0;
  work.shape = program.attentions[static_cast<std::size_t>(step.detail)];
  return work;
}

}  // namespace

bool ServedKernel::same_work(const ServedKernel& o) const {
  const program::AttentionShape &mine = attention.shape, &other = o.attention.shape;
  return attends == o.attends && model == o.model && flops == o.flops && bytes == o.bytes &&
         expert_bytes == o.expert_bytes && seconds_per_flop == o.seconds_per_flop && stream_share == o.stream_share &&
         quantises == o.quantises && narrowed == o.narrowed && narrowed_experts == o.narrowed_experts &&
         shared_by == o.shared_by && narrow_cache == o.narrow_cache && latent == o.latent && batch == o.batch &&
         m == o.m && n == o.n && k == o.k && share == o.share && peak == o.peak && items == o.items && met == o.met &&
         attention.queries == o.attention.queries && attention.head_dim == o.attention.head_dim &&
         mine.causal == other.causal && mine.flash == other.flash && mine.window == other.window &&
         mine.chunk == other.chunk && mine.queries == other.queries && mine.keys == other.keys;
}

bool ServedKernel::joins(const ServedKernel& o) const {
  return model == Model::product && o.model == Model::product && batch == o.batch && m == o.m && k == o.k &&
         seconds_per_flop == o.seconds_per_flop && share == o.share && (expert_bytes > 0.0) == (o.expert_bytes > 0.0);
}

void ServedKernel::join(const ServedKernel& o) {
  const auto add = [](StraightLine& a, const StraightLine& b) {
    a.fixed += b.fixed;
    a.moving += b.moving;
  };
  add(flops, o.flops);
  add(bytes, o.bytes);
  expert_bytes += o.expert_bytes;
  n += o.n;
}

double ServedKernel::started(const estimate::ServingEffects& effects) const {
  if (model != Model::stream && model != Model::shares) return 1.0;
  return is_view() ? 0.0 : effects.kernels;
}

ServedKernel served_kernel(const estimate::KernelRates& rates, const LoweredStep& once, const LoweredStep& twice,
                           double sequences) {
  const auto& [one, at_one, touched_one] = once;
  const auto& [two, at_two, touched_two] = twice;
  ServedKernel kernel;
  kernel.attends = at_one.op == program::Op::attention && at_one.detail >= 0;
  kernel.flops = line_through(sequences, at_one.flops.value(), at_two.flops.value());
  kernel.expert_bytes = expert_weight_bytes(one, at_one);
  double apart_one = 0.0, apart_two = 0.0;
  if (kernel.expert_bytes > 0.0) {
    apart_one = touched_one * kernel.expert_bytes;
    apart_two = touched_two * kernel.expert_bytes;
  }
  kernel.bytes = line_through(sequences, at_one.bytes.value() - apart_one, at_two.bytes.value() - apart_two);
  if (rates.pointwise)
    kernel.stream_share = at_one.op == program::Op::norm ? rates.pointwise->norm : rates.pointwise->stream;
  double share = 0.0;
  if (at_one.flops.value() > 0.0) {
    kernel.seconds_per_flop = estimate::kernel_time(rates, one, at_one).compute.value() / at_one.flops.value();
    kernel.peak = 1.0 / kernel.seconds_per_flop;
    if (rates.matmul) {
      Dtype format = one.tensor(at_one.in[0]).dtype;
      if (rates.rate(format).value() == 0.0) format = rates.rate(Dtype::bf16).value() > 0.0 ? Dtype::bf16 : Dtype::fp16;
      share = estimate::matmul_share(*rates.matmul, format);
    }
  }
  kernel.share = share;
  kernel.model = model_of(rates, one, at_one, share);
  if (kernel.model == Model::product) {
    const estimate::MatmulShape a = estimate::product_shape(one, at_one), b = estimate::product_shape(two, at_two);
    kernel.batch = line_through(sequences, a.batch, b.batch);
    kernel.m = line_through(sequences, a.m, b.m);
    kernel.n = a.n;
    kernel.k = a.k;
    kernel.tiles = estimate::tile_steps({*rates.matmul, rates.cores, FlopsPerSecond(kernel.peak), kernel.share});
  }
  const bool split = kernel.model == Model::split || kernel.model == Model::decode;
  if (kernel.model == Model::attention || split) {
    kernel.items =
        line_through(sequences, attended_items(one, at_one, kernel.model), attended_items(two, at_two, kernel.model));
    kernel.attention = attention_work(one, at_one);
    kernel.met = {kernel.attention.shape.mean_keys(), 0.0};
  }
  if (split) {
    const program::ProgramTensor &q = one.tensor(at_one.in[0]), &keys = one.tensor(at_one.in[1]);
    if (keys.rank == 4 || kernel.model == Model::split)
      kernel.shared_by =
          program::local_extent(one, q, 2) / (keys.rank == 4 ? program::local_extent(one, keys, 2) : 1.0);
    kernel.latent = keys.rank != 4;
  }
  if (at_one.op == program::Op::cast) {
    const program::ProgramTensor &in = one.tensor(at_one.in[0]), &out = one.tensor(at_one.out[0]);
    kernel.quantises = facts(out.dtype).bits <= 8 && out.tensor_class != program::TensorClass::key_value;
    if (in.tensor_class == program::TensorClass::weight || in.tensor_class == program::TensorClass::used_weight)
      (in.find(model::LogicalDim::experts) >= 0 ? kernel.narrowed_experts : kernel.narrowed) =
          std::max(0.0, (program::local_bytes(one, in) - program::local_bytes(one, out)).value());
  }
  return kernel;
}

void find_tiles(const estimate::KernelRates& rates, ServedKernel& kernel, double sequences) {
  if (kernel.model != Model::product || kernel.expert_bytes > 0.0 || kernel.batch.moving != 0.0) return;
  const estimate::MatmulShape product{kernel.batch.fixed, 1, kernel.n, kernel.k, {}};
  kernel.rows =
      estimate::tile_rows(*rates.matmul, rates.cores, kernel.tiles, product, std::max(1.0, kernel.m(sequences)));
}

double served_estimate(const estimate::KernelRates& rates, const estimate::ServingEffects& effects,
                       const ServedKernel& kernel, const KernelLoad& step) {
  const double sequences = step.sequences, bytes = step.bytes;
  const double launch = rates.regime.launch.value() + effects.start.value();
  const auto stream = [&](double moved, double started) {
    return kernel.stream_share > 0.0
               ? started * launch +
                     estimate::stream_time(rates.hbm, kernel.stream_share, rates.pointwise->ramp, Bytes(moved)).value()
               : moved / rates.hbm.value() / rates.memory_share;
  };
  switch (kernel.model) {
    case Model::stream:
      if (kernel.is_view() && effects.joined) return 0.0;
      return stream(effects.pointwise * bytes, effects.kernels) + (kernel.quantises ? effects.quantise.value() : 0.0);
    case Model::product: {
      // Experts without tokens are no part of the product; the others have more tokens each.
      const double used = kernel.expert_bytes > 0.0 ? step.touched : 1.0;
      estimate::MatmulShape shape{
          used * kernel.batch(sequences), std::max(1.0, kernel.m(sequences) / used), kernel.n, kernel.k, Bytes(bytes),
          kernel.expert_bytes > 0.0};
      hardware::Regime regime = rates.regime;
      regime.launch = Seconds(0);
      const double total =
          estimate::matmul_time({*rates.matmul, rates.cores, FlopsPerSecond(kernel.peak), kernel.share}, shape, regime,
                                kernel.tiles, kernel.rows)
              .total.value();
      const double whole = 2.0 * shape.batch * shape.m * shape.n * shape.k;
      const double load = std::max(1.0, kernel.flops(sequences) / whole);
      const double slower = effects.product * (kernel.expert_bytes > 0.0 ? effects.experts : 1.0);
      return launch + slower * load * total;
    }
    case Model::split:
    case Model::decode: {
      const double items = kernel.items(sequences);
      const double copied = effects.copies * kernel.shared_by * bytes;
      // A latent cache has kernels of its own, for which no head is wide.
      double read =
          effects.decode * estimate::decode_time(rates.attention->decode, rates.cores, items,
                                                 kernel.latent ? 0.0 : kernel.attention.head_dim, Bytes(bytes))
                               .value();
      if (kernel.model == Model::split) {
        estimate::AttentionWork work = kernel.attention;
        work.heads = items * kernel.shared_by;
        work.bytes = Bytes(bytes);
        const hardware::AttentionPass& pass = rates.attention->forward;
        const Seconds whole = estimate::attention_time(pass, rates.cores, FlopsPerSecond(kernel.peak), work, false);
        const Seconds split =
            estimate::split_attention_time(pass, rates.cores, FlopsPerSecond(kernel.peak), work, items);
        read = std::max(read, effects.attention * std::min(whole, split).value());
      }
      const double vector = kernel.narrow_cache ? effects.vector / 2.0 : effects.vector;
      const double scores = vector > 0.0 ? kernel.flops(sequences) / (vector * rates.cores.vector.value()) : 0.0;
      const double row = kernel.met(sequences) * effects.token.value();
      return launch + (copied > 0.0 ? stream(copied, 2.0) : 0.0) + row + std::max(read, scores);
    }
    case Model::attention: {
      estimate::AttentionWork work = kernel.attention;
      work.heads = kernel.items(sequences);
      work.bytes = Bytes(bytes);
      return launch + effects.attention * estimate::attention_time(rates.attention->forward, rates.cores,
                                                                   FlopsPerSecond(kernel.peak), work, false)
                                              .value();
    }
    case Model::scores:
      return stream(bytes, 1.0) + step.arithmetic * ((1.0 + rates.matmul->droop) / kernel.share);
    case Model::shares:
      break;
  }
  return std::max(stream(bytes, 1.0), step.arithmetic / rates.matrix_share);
}

}  // namespace assay::serving
