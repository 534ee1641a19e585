#include "assay/engine/program/local_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/base/result.h"
#include "assay/engine/kernels/expert.h"
#include "assay/engine/kernels/product.h"
#include "assay/engine/kernels/shift.h"

namespace assay::engine {

/// The kernel of each operation, by its number; nullptr for operations that all devices run together.
struct LocalStep::Kernels {
  using Kernel = Results (LocalStep::*)() const;
  struct Row {
    program::Op op;
    Kernel kernel;
  };
  static constexpr Row rows[] = {
      {program::Op::product, &LocalStep::product},
      {program::Op::embed, &LocalStep::embed},
      {program::Op::embed_grad, &LocalStep::embed_grad},
      {program::Op::place, &LocalStep::place},
      {program::Op::place_grad, &LocalStep::place_grad},
      {program::Op::bias_grad, &LocalStep::bias_grad},
      {program::Op::norm, &LocalStep::norm},
      {program::Op::norm_grad, &LocalStep::norm_grad},
      {program::Op::rotate, &LocalStep::rotate},
      {program::Op::rotate_grad, &LocalStep::rotate},
      {program::Op::attention, &LocalStep::attention},
      {program::Op::attention_grad, &LocalStep::attention_grad},
      {program::Op::pick, &LocalStep::pick},
      {program::Op::activate, &LocalStep::activate},
      {program::Op::activate_grad, &LocalStep::activate_grad},
      {program::Op::gate, &LocalStep::gate},
      {program::Op::gate_grad, &LocalStep::gate_grad},
      {program::Op::add, &LocalStep::add},
      {program::Op::split, &LocalStep::split},
      {program::Op::split_grad, &LocalStep::split_grad},
      {program::Op::route, &LocalStep::route},
      {program::Op::route_grad, &LocalStep::route_grad},
      {program::Op::dispatch, &LocalStep::dispatch},
      {program::Op::dispatch_grad, &LocalStep::dispatch_grad},
      {program::Op::combine, &LocalStep::combine},
      {program::Op::combine_grad, &LocalStep::combine_grad},
      {program::Op::scan, &LocalStep::scan},
      {program::Op::scan_grad, &LocalStep::scan_grad},
      {program::Op::convolve, &LocalStep::convolve},
      {program::Op::convolve_grad, &LocalStep::convolve_grad},
      {program::Op::edge, &LocalStep::edge},
      {program::Op::edge_grad, &LocalStep::edge_grad},
      {program::Op::shift, &LocalStep::shift},
      {program::Op::shift_grad, &LocalStep::shift_grad},
      {program::Op::mix, &LocalStep::mix},
      {program::Op::mix_grad, &LocalStep::mix_grad},
      {program::Op::cast, &LocalStep::cast},
      {program::Op::loss_sums, &LocalStep::loss_sums},
      {program::Op::loss, &LocalStep::loss},
      {program::Op::loss_grad, &LocalStep::loss_grad},
      {program::Op::sample, &LocalStep::sample},
      {program::Op::map, &LocalStep::map},
      {program::Op::map_grad, &LocalStep::map_grad},
      {program::Op::sum, &LocalStep::bias_grad},
      {program::Op::sum_grad, &LocalStep::sum_grad},
      {program::Op::largest, &LocalStep::largest},
      {program::Op::largest_grad, &LocalStep::largest_grad},
      {program::Op::softmax, &LocalStep::softmax},
      {program::Op::softmax_grad, &LocalStep::softmax_grad},
      {program::Op::view, &LocalStep::view},
      {program::Op::view_grad, &LocalStep::view},
      {program::Op::chunk, &LocalStep::chunk},
      {program::Op::chunk_grad, &LocalStep::chunk_grad},
      {program::Op::put, &LocalStep::put},
      {program::Op::put_grad, &LocalStep::put_grad},
  };
  static constexpr std::array<Kernel, program::op_count> by_op() {
    std::array<Kernel, program::op_count> kernels{};
    for (const Row& row : rows) kernels[static_cast<std::size_t>(row.op)] = row.kernel;
    return kernels;
  }
  /// All devices run movements and updates together.
  static constexpr bool is_complete() {
    for (const program::OpFacts& facts : program::ops::table) {
      const bool is_local = !program::is_movement(facts.op) && facts.op != program::Op::update;
      if (is_local != (by_op()[static_cast<std::size_t>(facts.op)] != nullptr)) return false;
    }
    return true;
  }
};

LocalStep::Results LocalStep::run() const {
  static_assert(Kernels::is_complete(), "an operation has no kernel");
  constexpr auto kernels = Kernels::by_op();
  const Kernels::Kernel kernel = kernels[static_cast<std::size_t>(step_.op)];
  if (!kernel) throw InternalError(fmt::format("{} is not executed on one device", program::name(step_.op)));
  return (this->*kernel)();
}

const Numbers* LocalStep::maybe(std::size_t i) const {
  if (i >= step_.in.size() || step_.in[i] < 0) return nullptr;
  return &context_.memory[static_cast<std::size_t>(step_.in[i])][context_.device];
}

const Numbers& LocalStep::in(std::size_t i) const {
  const Numbers* found = maybe(i);
  if (!found) throw InternalError(fmt::format("{} lacks an input", program::name(step_.op)));
  return *found;
}

std::vector<const Numbers*> LocalStep::all_inputs() const {
  std::vector<const Numbers*> inputs;
  for (std::size_t i = 0; i < step_.in.size(); ++i)
    if (maybe(i)) inputs.push_back(maybe(i));
  return inputs;
}

LocalStep::InputGroups LocalStep::inputs_cut_at(std::size_t first) const {
  const std::vector<const Numbers*> each = all_inputs();
  const auto end = each.begin() + static_cast<std::ptrdiff_t>(first);
  return {{each.begin(), end}, {end, each.end()}};
}

std::vector<std::int64_t> LocalStep::widths() const {
  std::vector<std::int64_t> each;
  for (int id : step_.out)
    if (id >= 0) each.push_back(width(id));
  return each;
}

LocalStep::Results LocalStep::product() const {
  // Numbers of the logical dimensions, because some share a letter.
  const auto names = [&](int id) {
    const program::ProgramTensor& tensor = program_.tensor(id);
    DimensionNames numbers;
    for (int i = 0; i < tensor.rank; ++i)
      numbers.push_back(std::to_string(static_cast<int>(tensor.dims[static_cast<std::size_t>(i)].dim)));
    return numbers;
  };
  Numbers out = engine::product(in(0), names(step_.in[0]), in(1), names(step_.in[1]), names(step_.out[0]));
  if (const Numbers* onto = maybe(2)) engine::add(out, *onto);
  if (const Numbers* bias = maybe(3)) {
    out.shape = layout_.local_shape(step_.out[0]);
    add_spread(out, *bias, layout_.strides_in(step_.in[3], step_.out[0], context_.device));
  }
  return {out};
}

LocalStep::Results LocalStep::embed() const {
  return {engine::embed(in(0), in(1), layout_.extents(step_.in[1], context_.device).front())};
}

LocalStep::Results LocalStep::embed_grad() const {
  return {engine::embed_grad(in(0), in(1), layout_.extents(step_.out[0], context_.device).front())};
}

LocalStep::Results LocalStep::place() const { return {placed(in(0), in(1), first_position(step_.in[0]))}; }

LocalStep::Results LocalStep::place_grad() const {
  return {placed_grad(in(0), extent(step_.out[0], model::LogicalDim::positions).size, first_position(step_.in[0]))};
}

LocalStep::Results LocalStep::bias_grad() const {
  return {summed_up(in(0), element_count(layout_.local_shape(step_.out[0])),
                    layout_.strides_in(step_.out[0], step_.in[0], context_.device))};
}

bool LocalStep::is_sums_of(int made, int x) const {
  const program::ProgramTensor &sums = program_.tensor(made), &rows = program_.tensor(x);
  return sums.rank != rows.rank || sums.dims[sums.rank - 1u].dim != rows.dims[rows.rank - 1u].dim;
}

NormShape LocalStep::norm_shape(int x, int scale) const {
  const program::ProgramTensor& rows = program_.tensor(x);
  const int over = scale >= 0 ? program_.tensor(scale).rank : 1;
  NormShape shape{1, 1, step_.is_centred};
  for (int i = rows.rank - over; i < rows.rank; ++i) {
    const auto dim = static_cast<std::size_t>(i);
    shape.local *= layout_.extents(x, context_.device)[dim].size;
    shape.whole *= rows.dims[dim].size;
  }
  return shape;
}

void LocalStep::cut_into_groups(NormShape& shape) const {
  if (step_.detail <= 0) return;
  shape.rows_per_scale = shape.local * step_.detail / shape.whole;
  shape.whole /= step_.detail;
  shape.local = shape.whole;
}

LocalStep::Results LocalStep::norm() const {
  if (is_sums_of(step_.out[0], step_.in[0])) {
    // All dimensions that the sums lack were summed over.
    NormShape shape{1, 1, step_.is_centred};
    for (int i = program_.tensor(step_.out[0]).rank - 1; i < program_.tensor(step_.in[0]).rank; ++i)
      shape.local *= layout_.extents(step_.in[0], context_.device)[static_cast<std::size_t>(i)].size;
    return {norm_sums(in(0), shape)};
  }
  NormShape shape = norm_shape(step_.in[0], step_.in[1]);
  cut_into_groups(shape);
  return {engine::norm(in(0), maybe(1), maybe(3), maybe(2) ? in(2) : norm_sums(in(0), shape), shape)};
}

LocalStep::Results LocalStep::norm_grad() const {
  NormShape shape = norm_shape(step_.in[1], step_.in[2]);
  cut_into_groups(shape);
  const Numbers sums = maybe(3) ? in(3) : norm_sums(in(1), shape);
  const Numbers own = maybe(4) ? in(4) : norm_grad_sums(in(0), in(1), maybe(2), sums, shape);
  if (is_sums_of(step_.out[0], step_.in[1])) return {own};
  auto [dx, d_scale, d_bias] = engine::norm_grad(in(0), in(1), maybe(2), sums, own, shape);
  return {std::move(dx), std::move(d_scale), std::move(d_bias)};
}

LocalStep::Results LocalStep::rotate() const {
  const std::int64_t rope = context_.layer->attention->rope_dim;
  return {engine::rotate(in(0), first_position(step_.in[0]), rope > 0 ? rope : width(step_.in[0]),
                         step_.op == program::Op::rotate_grad)};
}

const model::Attention& LocalStep::attention_of_layer() const {
  const bool cross = step_.detail >= 0 && program_.attentions[static_cast<std::size_t>(step_.detail)].cross;
  return cross ? *context_.layer->cross_attention : *context_.layer->attention;
}

AttentionPlace LocalStep::attention_place(int q, int k, int out, const Numbers* picks) const {
  const model::Attention& a = attention_of_layer();
  const program::AttentionShape& shape = program_.attentions[static_cast<std::size_t>(step_.detail)];
  const program::ProgramTensor& keys = program_.tensor(k);
  const model::LogicalDim along =
      keys.find(model::LogicalDim::context) >= 0 ? model::LogicalDim::context : model::LogicalDim::sequence;
  AttentionPlace place;
  place.first_query = shape.keys - shape.queries + extent(q, model::LogicalDim::sequence).start;
  place.first_key = shape.keys - keys.dims[1].size + extent(k, along).start;
  place.key_count = extent(k, along).count;
  place.first_head = extent(q, model::LogicalDim::heads).start;
  const model::LogicalDim by =
      keys.find(model::LogicalDim::kv_heads) >= 0 ? model::LogicalDim::kv_heads : model::LogicalDim::heads;
  if (keys.find(by) < 0) {
    place.heads_per_kv_head = 0;
  } else {
    place.first_kv_head = extent(k, by).start;
    place.heads_per_kv_head = a.heads / keys.dims[static_cast<std::size_t>(keys.find(by))].size;
  }
  place.value_dim = program_.tensor(out).dims[3].size;
  place.scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
  place.causal = a.causal && !a.cross;
  place.buckets = a.sinks ? 0 : a.relative_buckets;
  place.window = a.window;
  place.chunk = a.chunk;
  place.flash = shape.flash;
  place.picks = picks;
  place.partial = program_.tensor(out).sharding.unreduced != 0;
  return place;
}

LocalStep::Results LocalStep::attention() const {
  if (step_.detail < 0) return {attention_quotient(in(0), in(1), maybe(2))};
  const AttentionPlace place = attention_place(step_.in[0], step_.in[1], step_.out[0], maybe(4));
  auto [result, rest] = engine::attention(in(0), in(1), maybe(2), maybe(3), place);
  return {std::move(result), std::move(rest)};
}

LocalStep::Results LocalStep::attention_grad() const {
  const AttentionPlace place = attention_place(step_.in[1], step_.in[2], step_.in[4], maybe(7));
  const AttentionPass forward{in(1), in(2), in(3), in(4), in(5), maybe(6)};
  AttentionGradients made = engine::attention_grad(in(0), forward, place);
  return {std::move(made.dq), std::move(made.dk), std::move(made.dv), std::move(made.d_terms)};
}

LocalStep::Results LocalStep::pick() const {
  return {picked_keys(in(0), in(1), in(2), width(step_.out[0]), first_position(step_.in[0]))};
}

LocalStep::Results LocalStep::activate() const { return {engine::activate(in(0), maybe(1))}; }

LocalStep::Results LocalStep::activate_grad() const {
  auto [d_up, d_gate] = engine::activate_grad(in(0), in(1), maybe(2));
  return {std::move(d_up), std::move(d_gate)};
}

LocalStep::Results LocalStep::gate() const { return {gated(in(0), in(1))}; }

LocalStep::Results LocalStep::gate_grad() const {
  auto [dx, d_gate] = gated_grad(in(0), in(1), in(2));
  return {std::move(dx), std::move(d_gate)};
}

LocalStep::Results LocalStep::add() const {
  Numbers sum = in(0);
  for (std::size_t i = 1; i < step_.in.size(); ++i) {
    const Numbers* term = maybe(i);
    if (!term) continue;
    if (program_.tensor(step_.in[i]).rank == program_.tensor(step_.out[0]).rank)
      engine::add(sum, *term);
    else if (layout_.is_first_of(step_.out[0], context_.device))
      add_spread(sum, *term, layout_.strides_in(step_.in[i], step_.out[0], context_.device));
  }
  return {sum};
}

LocalStep::Results LocalStep::split() const { return engine::split(all_inputs(), widths()); }

LocalStep::Results LocalStep::split_grad() const { return engine::split_grad(all_inputs(), widths()); }

LocalStep::Results LocalStep::route() const { return {engine::route(in(0), experts_per_token())}; }

LocalStep::Results LocalStep::route_grad() const { return {engine::route_grad(in(0), in(1), experts_per_token())}; }

LocalStep::Results LocalStep::dispatch() const {
  const Extent here = experts(step_.out[0]);
  return {
      engine::dispatch(in(0), in(1), here.start, here.count, extent(step_.out[0], model::LogicalDim::capacity).size)};
}

LocalStep::Results LocalStep::dispatch_grad() const {
  return {engine::dispatch_grad(in(0), in(1), experts(step_.in[0]).start)};
}

LocalStep::Results LocalStep::combine() const { return {engine::combine(in(0), in(1), experts(step_.in[0]).start)}; }

LocalStep::Results LocalStep::combine_grad() const {
  auto [d_slots, d_gates] = engine::combine_grad(in(0), in(1), in(2), experts(step_.in[1]).start);
  return {std::move(d_slots), std::move(d_gates)};
}

RecurrencePlace LocalStep::recurrence_place(int values, int keys) const {
  const model::StateSpace& s = *context_.layer->state_space;
  RecurrencePlace place;
  place.kind = s.kind;
  const bool linear = s.kind == model::StateSpace::Kind::gated_linear;
  const bool channels = linear || s.kind == model::StateSpace::Kind::mamba1;  // one head per channel
  place.heads = channels ? s.inner : s.heads;
  place.value_dim = s.inner / place.heads;
  place.key_heads = linear ? s.inner : channels ? 1 : s.key_heads;
  place.key_dim = s.key_dim;
  place.first_head = layout_.extents(values, context_.device)[2].start / place.value_dim;
  const bool by_heads = program_.tensor(keys).rank == 4;
  place.first_key_head = layout_.extents(keys, context_.device)[2].start / (by_heads ? 1 : place.key_dim);
  return place;
}

LocalStep::Results LocalStep::scan() const {
  return recurrence(all_inputs(), recurrence_place(step_.in[0], step_.in[1]), context_.state);
}

LocalStep::Results LocalStep::scan_grad() const {
  const std::size_t results = context_.layer->state_space->kind == model::StateSpace::Kind::rwkv7 ? 2 : 1;
  const auto [dy, inputs] = inputs_cut_at(results);
  return recurrence_grad(dy, inputs, recurrence_place(step_.in[results], step_.in[results + 1]));
}

LocalStep::Results LocalStep::convolve() const { return {engine::convolve(in(0), in(1), maybe(2), context_.state)}; }

LocalStep::Results LocalStep::convolve_grad() const { return engine::convolve_grad(in(0), in(1), in(2), maybe(3)); }

LocalStep::Results LocalStep::edge() const { return {engine::edge(in(0))}; }

LocalStep::Results LocalStep::edge_grad() const {
  return {engine::edge_grad(in(0), layout_.local_shape(step_.out[0]))};
}

LocalStep::Results LocalStep::shift() const {
  return {shifted(in(0), maybe(1), layout_.sequence_part(step_.in[0], context_.device), context_.state)};
}

LocalStep::Results LocalStep::shift_grad() const {
  return shifted_grad(in(0), layout_.sequence_part(step_.in[0], context_.device),
                      step_.out[1] < 0 ? 0 : program_.tensor(step_.out[1]).dims[1].size);
}

LocalStep::Results LocalStep::mix() const { return mixes(in(0), in(1), in(2), std::ssize(widths())); }

LocalStep::Results LocalStep::mix_grad() const {
  const auto [dy, inputs] = inputs_cut_at(all_inputs().size() - 3);
  return mixes_grad(dy, *inputs[0], *inputs[1], *inputs[2]);
}

Numbers LocalStep::written_cache() const {
  Numbers out = in(1);
  const Numbers& fresh = in(0);
  const Extent here = extent(step_.in[1], model::LogicalDim::context);
  const std::int64_t added = fresh.shape[1], all = program_.tensor(step_.in[1]).dims[1].size;
  const std::int64_t row = element_count(out.shape) / (out.shape[0] * out.shape[1]);
  for (std::int64_t b = 0; b < out.shape[0]; ++b)
    for (std::int64_t t = 0; t < here.count; ++t) {
      const std::int64_t s = here.start + t - (all - added);
      if (s >= 0)
        std::copy_n(fresh.values.begin() + (b * added + s) * row, row,
                    out.values.begin() + (b * out.shape[1] + t) * row);
    }
  return out;
}

LocalStep::Results LocalStep::cast() const { return {maybe(1) ? written_cache() : in(0)}; }

LocalStep::Results LocalStep::loss_sums() const { return {engine::loss_sums(in(0), in(1), vocabulary(step_.in[0]))}; }

LocalStep::Results LocalStep::loss() const { return {engine::loss(in(0))}; }

LocalStep::Results LocalStep::loss_grad() const {
  return {engine::loss_grad(in(0), in(1), in(2), vocabulary(step_.in[0]), context_.tokens)};
}

LocalStep::Results LocalStep::sample() const {
  if (program_.tensor(step_.in[0]).find(model::LogicalDim::vocabulary) < 0) return {best_of_all(in(0))};
  const Numbers best = best_of_part(in(0), vocabulary(step_.in[0]));
  return {program_.tensor(step_.out[0]).rank == 3 ? best : best_of_all(best)};
}

}  // namespace assay::engine
