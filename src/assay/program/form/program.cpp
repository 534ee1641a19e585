#include "assay/program/form/program.h"

#include <algorithm>
#include <cmath>

namespace assay::program {

std::string_view name(Phase phase) {
  constexpr std::string_view names[] = {"forward", "backward", "update"};
  return names[static_cast<std::size_t>(phase)];
}

void Program::set_mesh(const Mesh& devices) {
  mesh = devices;
  ways_by[0] = 1.0;
  for (std::size_t i = 0, sets = 1; i < mesh.axes.size(); ++i, sets *= 2)
    for (std::size_t set = 0; set < sets; ++set)
      ways_by[sets + set] = ways_by[set] * static_cast<double>(mesh.axes[i].size);
}

double AttentionShape::mean_keys() const {
  const auto q = static_cast<double>(queries), k = static_cast<double>(keys);
  // Picked keys can be anywhere, but count like a window of that size.
  const std::int64_t most = picks > 0 && (window == 0 || picks < window) ? picks : window;
  if (both_sides && window > 0) {  // a side ends where the sequence does
    const auto reach = static_cast<double>((window - 1) / 2);
    const double side =
        k - 1.0 <= reach ? k * (k - 1.0) / 2.0 : reach * (reach + 1.0) / 2.0 + (k - 1.0 - reach) * reach;
    return 1.0 + 2.0 * side / k;
  }
  if (!causal) {
    const std::int64_t reach = chunk > 0 && (most == 0 || chunk < most) ? chunk : most;
    return reach > 0 ? std::min(k, static_cast<double>(reach)) : k;
  }
  // Query i (from 0) is at position k - q + i and sees the keys up to itself, no further back than the window and
  // the start of its chunk.
  const double before = k - q;
  if (chunk > 0) {
    // The first n positions see whole triangles of keys and a smaller one.
    const auto met = [c = static_cast<double>(chunk)](double n) {
      const double whole = std::floor(n / c), rest = n - whole * c;
      return (whole * c * (c + 1.0) + rest * (rest + 1.0)) / 2.0;
    };
    return (met(k) - met(before)) / q;
  }
  if (most > 0) {
    const auto w = static_cast<double>(most);
    if (k <= w) return before + (q + 1.0) / 2.0;
    // The first queries, at positions below w - 1, see fewer than w keys.
    const double ramp = std::max(0.0, std::min(q, w - before));
    return (ramp * before + ramp * (ramp + 1.0) / 2.0 + (q - ramp) * w) / q;
  }
  return before + (q + 1.0) / 2.0;
}

std::string_view dim_name(const Program& program, model::LogicalDim dim) {
  const auto number = static_cast<std::size_t>(dim);
  return number < model::logical_dims ? model::letter(dim)
                                      : std::string_view(program.own_dims[number - model::logical_dims]);
}

Tensor to_tensor(const Program& program, const ProgramTensor& tensor) {
  Tensor out;
  out.name = (tensor.is_gradient ? "d" : "") + std::string(tensor.name);
  for (int i = 0; i < tensor.rank; ++i) {
    const model::Weight::Size& dim = tensor.dims[static_cast<std::size_t>(i)];
    out.dims.push_back({std::string(dim_name(program, dim.dim)), dim.size});
  }
  out.dtype = tensor.dtype;
  out.sharding = tensor.sharding;
  return out;
}

std::string step_text(const Program& program, const Step& step) {
  std::string contracted;  // both operands have them, the result does not; some dimensions share a letter
  for (int i = 0; step.op == Op::product && i < program.tensor(step.in[0]).rank; ++i) {
    const model::LogicalDim dim = program.tensor(step.in[0]).dims[static_cast<std::size_t>(i)].dim;
    if (program.tensor(step.in[1]).find(dim) >= 0 && program.tensor(step.out[0]).find(dim) < 0)
      contracted += dim_name(program, dim);
  }
  const auto tensor = [&](int id) { return to_tensor(program, program.tensor(id)); };
  return step_text(program.mesh, tensor, contracted, step);
}

namespace {

void add(ProgramCount& sum, const Step& step, double times) {
  if (is_collective(step.op)) {
    sum.network += times * step.bytes;
    return;
  }
  const Flops flops = times * step.flops;
  sum.flops += flops;
  sum.memory += times * step.bytes;
  if (step.op == Op::product) sum.product_flops += flops;
  if (is_attention(step.op)) sum.attention_flops += flops;
  if (step.is_recomputed) sum.recomputed_flops += flops;
}

}  // namespace

ProgramCount count(const Program& program, const Block& block) {
  ProgramCount sum;
  for (const Step& step : program.steps_of(block)) add(sum, step, 1.0);
  return sum;
}

ProgramCount count(const Program& program) {
  ProgramCount sum;
  for (const Block& block : program.blocks) {
    const auto once = static_cast<double>(block.layers), all = once * static_cast<double>(program.microbatches);
    for (const Step& step : program.steps_of(block)) {
      add(sum, step, step.once ? once : all);
    }
  }
  return sum;
}

bool is_matrix(const ProgramTensor& weight) {
  using enum model::LogicalDim;
  int dims = 0;
  bool follows_heads = false;
  for (std::size_t d = 0; d < weight.rank; ++d) {
    const auto dim = static_cast<model::LogicalDim>(weight.dims[d].dim);
    if (dim != experts && !(follows_heads && (dim == head_dim || dim == value_dim))) ++dims;
    follows_heads = dim == heads || dim == kv_heads;
  }
  return dims > 1;
}

bool makes_weight_gradient(const Program& program, const Step& step) {
  return step.op == Op::product && program.tensor(step.out[0]).is_gradient && !is_weight(program.tensor(step.in[0])) &&
         !is_weight(program.tensor(step.in[1]));
}

}  // namespace assay::program
