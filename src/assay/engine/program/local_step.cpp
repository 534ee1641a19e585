#include "assay/engine/program/local_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/base/result.h"
#include "assay/engine/kernels/attention.h"
#include "assay/engine/kernels/elements.h"
#include "assay/engine/kernels/expert.h"
#include "assay/engine/kernels/layer.h"
#include "assay/engine/kernels/product.h"
#include "assay/engine/kernels/recurrence.h"
#include "assay/engine/kernels/shift.h"

namespace assay::engine {
namespace {

using model::LogicalDim;
using program::Op;
using Results = std::vector<Array>;

/// A step on one device: its operands, and where they lie in the whole tensors.
struct Local {
  const program::Step& step;
  const LocalContext& context;
  const TensorLayout& layout = context.layout;
  const program::Program& program = layout.program();

  /// nullptr where the step has no such input.
  const Array* maybe(std::size_t i) const {
    if (i >= step.in.size() || step.in[i] < 0) return nullptr;
    return &context.memory[static_cast<std::size_t>(step.in[i])][context.device];
  }
  const Array& in(std::size_t i) const {
    const Array* found = maybe(i);
    if (!found) throw InternalError(fmt::format("{} lacks an input", program::name(step.op)));
    return *found;
  }
  std::vector<const Array*> all_inputs() const {
    std::vector<const Array*> inputs;
    for (std::size_t i = 0; i < step.in.size(); ++i)
      if (maybe(i)) inputs.push_back(maybe(i));
    return inputs;
  }
  struct InputGroups {
    std::vector<const Array*> first, others;
  };
  InputGroups inputs_cut_at(std::size_t first) const {
    const std::vector<const Array*> each = all_inputs();
    const auto end = each.begin() + static_cast<std::ptrdiff_t>(first);
    return {{each.begin(), end}, {end, each.end()}};
  }
  /// Widths of the rows of all results.
  std::vector<std::int64_t> widths() const {
    std::vector<std::int64_t> each;
    for (int id : step.out)
      if (id >= 0) each.push_back(width(id));
    return each;
  }

  Extent extent(int id, LogicalDim dim) const { return layout.extent(id, dim, context.device); }
  Extent vocabulary(int id) const { return extent(id, LogicalDim::vocabulary); }
  /// Rows of a table: its first dimension, unless the step names another one after dimensions that no device splits.
  Extent table_rows(int id) const { return layout.extents(id, context.device)[step.detail < 0 ? 0 : dim()]; }
  std::int64_t first_expert(int id) const { return extent(id, LogicalDim::experts).start; }
  std::int64_t width(int id) const { return layout.row_width(id, context.device); }
  std::int64_t first_position(int id) const { return layout.first_position(id, context.device); }
  std::int64_t sequence_part(int id) const { return layout.sequence_part(id, context.device); }
  Shape strides_in(int small, int large) const { return layout.strides_in(small, large, context.device); }
  Shape result_shape() const { return layout.local_shape(step.out[0]); }
  std::int64_t experts_per_token() const { return context.layer->feed_forward->experts_per_token; }
  /// The dimension that a step names.
  std::size_t dim() const { return static_cast<std::size_t>(step.detail); }
};
using Step = const Local&;

Results pair_of(std::pair<Array, Array> both) { return {std::move(both.first), std::move(both.second)}; }

Array run_product(Step s) {
  // Numbers of the logical dimensions, because some share a letter.
  const auto names = [&](int id) {
    const program::ProgramTensor& tensor = s.program.tensor(id);
    DimensionNames numbers;
    for (int i = 0; i < tensor.rank; ++i)
      numbers.push_back(std::to_string(static_cast<int>(tensor.dims[static_cast<std::size_t>(i)].dim)));
    return numbers;
  };
  Array out = product(s.in(0), names(s.step.in[0]), s.in(1), names(s.step.in[1]), names(s.step.out[0]));
  if (const Array* onto = s.maybe(2)) add(out, *onto);
  if (const Array* bias = s.maybe(3)) {
    out.shape = s.result_shape();
    add_spread(out, *bias, s.strides_in(s.step.in[3], s.step.out[0]));
  }
  return out;
}

/// The sum over the dimensions that the result lacks.
Array run_sum(Step s) {
  return summed_up(s.in(0), element_count(s.result_shape()), s.strides_in(s.step.out[0], s.step.in[0]));
}

/// Whether a norm computes the sums of rows instead of the rows.
bool is_sums_of(Step s, int made, int x) {
  const program::ProgramTensor &sums = s.program.tensor(made), &rows = s.program.tensor(x);
  return sums.rank != rows.rank || sums.dims[sums.rank - 1u].dim != rows.dims[rows.rank - 1u].dim;
}

NormShape norm_shape(Step s, int x, int scale) {
  const program::ProgramTensor& rows = s.program.tensor(x);
  const int over = scale >= 0 ? s.program.tensor(scale).rank : 1;
  NormShape shape{1, 1, s.step.is_centred};
  shape.epsilon = s.context.definition.norm_epsilon;
  for (int i = rows.rank - over; i < rows.rank; ++i) {
    const auto dim = static_cast<std::size_t>(i);
    shape.local *= s.layout.extents(x, s.context.device)[dim].size;
    shape.whole *= rows.dims[dim].size;
  }
  if (s.step.detail <= 0) return shape;
  // Each device holds whole groups: they are separate rows, each with its part of the scale.
  shape.rows_per_scale = shape.local * s.step.detail / shape.whole;
  shape.whole /= s.step.detail;
  shape.local = shape.whole;
  return shape;
}

Array run_norm(Step s) {
  if (is_sums_of(s, s.step.out[0], s.step.in[0])) {
    // All dimensions that the sums lack were summed over.
    NormShape shape{1, 1, s.step.is_centred};
    shape.epsilon = s.context.definition.norm_epsilon;
    for (int i = s.program.tensor(s.step.out[0]).rank - 1; i < s.program.tensor(s.step.in[0]).rank; ++i)
      shape.local *= s.layout.extents(s.step.in[0], s.context.device)[static_cast<std::size_t>(i)].size;
    return norm_sums(s.in(0), shape);
  }
  const NormShape shape = norm_shape(s, s.step.in[0], s.step.in[1]);
  return norm(s.in(0), s.maybe(1), s.maybe(3), s.maybe(2) ? s.in(2) : norm_sums(s.in(0), shape), shape);
}

Results run_norm_grad(Step s) {
  const NormShape shape = norm_shape(s, s.step.in[1], s.step.in[2]);
  const Array sums = s.maybe(3) ? s.in(3) : norm_sums(s.in(1), shape);
  const Array own = s.maybe(4) ? s.in(4) : norm_grad_sums(s.in(0), s.in(1), s.maybe(2), sums, shape);
  if (is_sums_of(s, s.step.out[0], s.step.in[1])) return {own};
  auto [dx, d_scale, d_bias] = norm_grad(s.in(0), s.in(1), s.maybe(2), sums, own, shape);
  return {std::move(dx), std::move(d_scale), std::move(d_bias)};
}

Array run_rotate(Step s) {
  const model::Attention& a = *s.context.layer->attention;
  const model::Definition& all = s.context.definition;
  const model::Rotary& rotary = a.window > 0 ? all.windowed_rotary : all.rotary;
  std::int64_t turned = a.rope_dim > 0 ? a.rope_dim : s.width(s.step.in[0]);
  if (!rotary.frequencies.empty()) turned = 2 * std::ssize(rotary.frequencies);
  return rotate(s.in(0), s.first_position(s.step.in[0]), turned, s.step.op == Op::rotate_grad, rotary);
}

/// Positions for an attention step or its gradient, from the tensors of queries, keys and result.
AttentionPlace attention_place(Step s, int q, int k, int out, const Array* picks) {
  const program::AttentionShape& shape = s.program.attentions[static_cast<std::size_t>(s.step.detail)];
  const model::Attention& a = shape.cross ? *s.context.layer->cross_attention : *s.context.layer->attention;
  const program::ProgramTensor& keys = s.program.tensor(k);
  const LogicalDim along = keys.find(LogicalDim::context) >= 0 ? LogicalDim::context : LogicalDim::sequence;
  AttentionPlace place;
  place.first_query = shape.keys - shape.queries + s.extent(q, LogicalDim::sequence).start;
  place.first_key = shape.keys - keys.dims[1].size + s.extent(k, along).start;
  place.key_count = s.extent(k, along).count;
  place.first_head = s.extent(q, LogicalDim::heads).start;
  const LogicalDim by = keys.find(LogicalDim::kv_heads) >= 0 ? LogicalDim::kv_heads : LogicalDim::heads;
  if (keys.find(by) < 0) {
    place.heads_per_kv_head = 0;
  } else {
    place.first_kv_head = s.extent(k, by).start;
    place.heads_per_kv_head = a.heads / keys.dims[static_cast<std::size_t>(keys.find(by))].size;
  }
  place.value_dim = s.program.tensor(out).dims[3].size;
  place.scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
  place.cap = s.context.definition.attention_cap;
  place.causal = a.causal && !a.cross;
  place.buckets = a.sinks ? 0 : a.relative_buckets;
  place.window = a.window;
  place.chunk = a.chunk;
  place.flash = shape.flash;
  place.picks = picks;
  place.partial = s.program.tensor(out).sharding.unreduced != 0;
  return place;
}

Results run_attention(Step s) {
  if (s.step.detail < 0) return {attention_quotient(s.in(0), s.in(1), s.maybe(2))};
  const AttentionPlace place = attention_place(s, s.step.in[0], s.step.in[1], s.step.out[0], s.maybe(4));
  return pair_of(attention(s.in(0), s.in(1), s.maybe(2), s.maybe(3), place));
}

Results run_attention_grad(Step s) {
  const AttentionPlace place = attention_place(s, s.step.in[1], s.step.in[2], s.step.in[4], s.maybe(7));
  const AttentionPass forward{s.in(1), s.in(2), s.in(3), s.in(4), s.in(5), s.maybe(6)};
  AttentionGradients made = attention_grad(s.in(0), forward, place);
  return {std::move(made.dq), std::move(made.dk), std::move(made.dv), std::move(made.d_terms)};
}

Array run_add(Step s) {
  Array sum = s.in(0);
  for (std::size_t i = 1; i < s.step.in.size(); ++i) {
    const Array* term = s.maybe(i);
    if (!term) continue;
    if (s.program.tensor(s.step.in[i]).rank == s.program.tensor(s.step.out[0]).rank)
      add(sum, *term);
    else if (s.layout.is_first_of(s.step.out[0], s.context.device))
      add_spread(sum, *term, s.strides_in(s.step.in[i], s.step.out[0]));
  }
  return sum;
}

Array run_dispatch(Step s) {
  const Extent here = s.extent(s.step.out[0], LogicalDim::experts);
  return dispatch(s.in(0), s.in(1), here.start, here.count, s.extent(s.step.out[0], LogicalDim::capacity).size);
}

RecurrencePlace recurrence_place(Step s, int values, int keys) {
  const model::StateSpace& space = *s.context.layer->state_space;
  RecurrencePlace place;
  place.kind = space.kind;
  const bool linear = space.kind == model::StateSpace::Kind::gated_linear;
  const bool channels = linear || space.kind == model::StateSpace::Kind::mamba1;  // one head per channel
  place.heads = channels ? space.inner : space.heads;
  place.value_dim = space.inner / place.heads;
  place.key_heads = linear ? space.inner : channels ? 1 : space.key_heads;
  place.key_dim = space.key_dim;
  place.first_head = s.layout.extents(values, s.context.device)[2].start / place.value_dim;
  const bool by_heads = s.program.tensor(keys).rank == 4;
  place.first_key_head = s.layout.extents(keys, s.context.device)[2].start / (by_heads ? 1 : place.key_dim);
  return place;
}

Results run_scan_grad(Step s) {
  const std::size_t results = s.context.layer->state_space->kind == model::StateSpace::Kind::rwkv7 ? 2 : 1;
  const auto [dy, inputs] = s.inputs_cut_at(results);
  return recurrence_grad(dy, inputs, recurrence_place(s, s.step.in[results], s.step.in[results + 1]));
}

Results run_shift_grad(Step s) {
  return shifted_grad(s.in(0), s.sequence_part(s.step.in[0]),
                      s.step.out[1] < 0 ? 0 : s.program.tensor(s.step.out[1]).dims[1].size);
}

Results run_mix_grad(Step s) {
  const auto [dy, inputs] = s.inputs_cut_at(s.all_inputs().size() - 3);
  return mixes_grad(dy, *inputs[0], *inputs[1], *inputs[2]);
}

/// A change of format, or new keys and values written to their place in the cache.
Array run_cast(Step s) {
  if (!s.maybe(1)) return s.in(0);
  Array out = s.in(1);
  const Array& fresh = s.in(0);
  const Extent here = s.extent(s.step.in[1], LogicalDim::context);
  const std::int64_t added = fresh.shape[1], all = s.program.tensor(s.step.in[1]).dims[1].size;
  const std::int64_t row = element_count(out.shape) / (out.shape[0] * out.shape[1]);
  for (std::int64_t b = 0; b < out.shape[0]; ++b)
    for (std::int64_t t = 0; t < here.count; ++t) {
      const std::int64_t from = here.start + t - (all - added);
      if (from >= 0)
        std::copy_n(fresh.values.begin() + (b * added + from) * row, row,
                    out.values.begin() + (b * out.shape[1] + t) * row);
    }
  return out;
}

Array run_sample(Step s) {
  if (s.program.tensor(s.step.in[0]).find(LogicalDim::vocabulary) < 0) return best_of_all(s.in(0));
  const Array best = best_of_part(s.in(0), s.vocabulary(s.step.in[0]));
  return s.program.tensor(s.step.out[0]).rank == 3 ? best : best_of_all(best);
}

/// Operands from the given one on, spread over a tensor that has all of their dimensions.
std::vector<SpreadOperand> spread_operands(Step s, std::size_t first, int over) {
  std::vector<SpreadOperand> operands;
  for (std::size_t i = first; i < s.step.in.size() && s.maybe(i); ++i)
    operands.push_back({s.maybe(i), s.strides_in(s.step.in[i], over)});
  return operands;
}

Array run_map(Step s) {
  return mapped(static_cast<program::Function>(s.step.detail), s.result_shape(), spread_operands(s, 0, s.step.out[0]));
}

Results run_map_grad(Step s) {
  const std::vector<SpreadOperand> operands = spread_operands(s, 1, s.step.in[0]);
  Results made;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (s.step.out[k] >= 0)
      made.push_back(mapped_grad(static_cast<program::Function>(s.step.detail), s.in(0), operands, k));
  return made;
}

std::int64_t whole_number(const Array& x) {
  const double value = x.values.empty() ? 0.0 : std::floor(x.values.front() + 0.5);
  return std::abs(value) < 1e15 ? static_cast<std::int64_t>(value) : -1;
}

Array chunk_at(Step s, std::size_t index) {
  return chunk_of(s.in(0), s.dim(), s.result_shape()[s.dim()], whole_number(s.in(index)));
}

Array put_at(Step s, std::size_t index) {
  return put_into(s.result_shape(), s.in(0), s.dim(), whole_number(s.in(index)));
}

/// The kernel of an operation: what it makes on one device.
struct Kernel {
  Op op;
  Array (*one)(Step) = nullptr;
  Results (*several)(Step) = nullptr;

  constexpr Kernel(Op made, Array (*kernel)(Step)) : op(made), one(kernel) {}
  constexpr Kernel(Op made, Results (*kernel)(Step)) : op(made), several(kernel) {}
};
constexpr Kernel kernels[] = {
    {Op::product, run_product},
    {Op::embed, [](Step s) { return embed(s.in(0), s.in(1), s.table_rows(s.step.in[1])); }},
    {Op::embed_grad, [](Step s) { return embed_grad(s.in(0), s.in(1), s.table_rows(s.step.out[0])); }},
    {Op::place, [](Step s) { return placed(s.in(0), s.in(1), s.first_position(s.step.in[0])); }},
    {Op::place_grad,
     [](Step s) {
       return placed_grad(s.in(0), s.extent(s.step.out[0], LogicalDim::positions).size, s.first_position(s.step.in[0]));
     }},
    {Op::bias_grad, run_sum},
    {Op::norm, run_norm},
    {Op::norm_grad, run_norm_grad},
    {Op::rotate, run_rotate},
    {Op::rotate_grad, run_rotate},
    {Op::attention, run_attention},
    {Op::attention_grad, run_attention_grad},
    {Op::pick,
     [](Step s) {
       return picked_keys(s.in(0), s.in(1), s.in(2), s.width(s.step.out[0]), s.first_position(s.step.in[0]));
     }},
    {Op::activate, [](Step s) { return activate(s.in(0), s.maybe(1), s.context.definition.nonlinearity); }},
    {Op::activate_grad, [](Step s) { return pair_of(activate_grad(s.in(0), s.in(1), s.maybe(2))); }},
    {Op::gate, [](Step s) { return gated(s.in(0), s.in(1)); }},
    {Op::gate_grad, [](Step s) { return pair_of(gated_grad(s.in(0), s.in(1), s.in(2))); }},
    {Op::add, run_add},
    {Op::split, [](Step s) { return split(s.all_inputs(), s.widths()); }},
    {Op::split_grad, [](Step s) { return split_grad(s.all_inputs(), s.widths()); }},
    {Op::route, [](Step s) { return route(s.in(0), s.experts_per_token(), s.context.definition.shares_of_all); }},
    {Op::route_grad, [](Step s) { return route_grad(s.in(0), s.in(1), s.experts_per_token()); }},
    {Op::dispatch, run_dispatch},
    {Op::dispatch_grad, [](Step s) { return dispatch_grad(s.in(0), s.in(1), s.first_expert(s.step.in[0])); }},
    {Op::combine, [](Step s) { return combine(s.in(0), s.in(1), s.first_expert(s.step.in[0])); }},
    {Op::combine_grad,
     [](Step s) { return pair_of(combine_grad(s.in(0), s.in(1), s.in(2), s.first_expert(s.step.in[1]))); }},
    {Op::scan,
     [](Step s) {
       return recurrence(s.all_inputs(), recurrence_place(s, s.step.in[0], s.step.in[1]), s.context.state);
     }},
    {Op::scan_grad, run_scan_grad},
    {Op::convolve, [](Step s) { return convolve(s.in(0), s.in(1), s.maybe(2), s.context.state); }},
    {Op::convolve_grad, [](Step s) { return convolve_grad(s.in(0), s.in(1), s.in(2), s.maybe(3)); }},
    {Op::edge, [](Step s) { return edge(s.in(0)); }},
    {Op::edge_grad, [](Step s) { return edge_grad(s.in(0), s.result_shape()); }},
    {Op::shift, [](Step s) { return shifted(s.in(0), s.maybe(1), s.sequence_part(s.step.in[0]), s.context.state); }},
    {Op::shift_grad, run_shift_grad},
    {Op::mix, [](Step s) { return mixes(s.in(0), s.in(1), s.in(2), std::ssize(s.widths())); }},
    {Op::mix_grad, run_mix_grad},
    {Op::cast, run_cast},
    {Op::loss_sums, [](Step s) { return loss_sums(s.in(0), s.in(1), s.vocabulary(s.step.in[0])); }},
    {Op::loss, [](Step s) { return loss(s.in(0)); }},
    {Op::loss_grad,
     [](Step s) { return loss_grad(s.in(0), s.in(1), s.in(2), s.vocabulary(s.step.in[0]), s.context.tokens); }},
    {Op::sample, run_sample},
    {Op::map, run_map},
    {Op::map_grad, run_map_grad},
    {Op::sum, run_sum},
    {Op::sum_grad,
     [](Step s) {
       return spread(s.result_shape(), {&s.in(0), s.strides_in(s.step.in[0], s.step.out[0])});
     }},
    {Op::largest,
     [](Step s) {
       return largest_of(s.in(0), element_count(s.result_shape()), s.strides_in(s.step.out[0], s.step.in[0]));
     }},
    {Op::largest_grad, [](Step s) { return largest_grad(s.in(0), s.in(1), s.strides_in(s.step.in[0], s.step.in[1])); }},
    {Op::softmax, [](Step s) { return softmax(s.in(0), s.dim()); }},
    {Op::softmax_grad, [](Step s) { return softmax_grad(s.in(0), s.in(1), s.dim()); }},
    {Op::view, [](Step s) { return s.in(0); }},
    {Op::view_grad, [](Step s) { return s.in(0); }},
    {Op::chunk, [](Step s) { return chunk_at(s, 1); }},
    {Op::chunk_grad, [](Step s) { return s.step.out[0] < 0 ? Results{} : Results{put_at(s, 2)}; }},
    {Op::put, [](Step s) { return put_at(s, 1); }},
    {Op::put_grad, [](Step s) { return s.step.out[0] < 0 ? Results{} : Results{chunk_at(s, 2)}; }},
};

constexpr const Kernel* kernel_of(Op op) {
  for (const Kernel& kernel : kernels)
    if (kernel.op == op) return &kernel;
  return nullptr;
}

/// All devices run movements and updates together.
constexpr bool is_complete() {
  for (const program::OpFacts& facts : program::ops::table)
    if ((!program::is_movement(facts.op) && facts.op != Op::update) != (kernel_of(facts.op) != nullptr)) return false;
  return true;
}
static_assert(is_complete(), "an operation has no kernel");

}  // namespace

std::vector<Array> run_local(const program::Step& step, const LocalContext& context) {
  const Kernel* kernel = kernel_of(step.op);
  if (!kernel) throw InternalError(fmt::format("{} is not executed on one device", program::name(step.op)));
  const Local local{step, context};
  return kernel->one ? Results{kernel->one(local)} : kernel->several(local);
}

}  // namespace assay::engine
