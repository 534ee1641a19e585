#include "assay/profile/hlo/partition/pricing.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::hlo {
namespace {

using program::AxisList;
using program::AxisSet;
using Split = program::Sharding;

constexpr double tie = 1e-6;  // weight of bytes that are held: between equal costs, split more
// As for programs in our own language: no device multiplies what another one does, just to save communication.
constexpr double bytes_per_flop = 1e3;

}  // namespace

std::int64_t PartitionPricing::local(std::int64_t size, AxisList axes) const {
  return program::local_size(mesh_.mesh, size, axes);
}

Shape PartitionPricing::local_shape(const Shape& whole, const Split& sharding) const {
  Shape out = whole;
  for (std::size_t d = 0; d < std::min(out.dims.size(), program::max_tensor_rank); ++d)
    out.dims[d] = local(out.dims[d], sharding.dims[d]);
  return out;
}
double PartitionPricing::local_bytes(int value, const Split& sharding) const {
  return local_shape(graph_.shape(value), sharding).bytes().value();
}

program::Tensor PartitionPricing::tensor(int value, const Split& sharding) const {
  const Shape& shape = graph_.shape(value);
  program::Tensor out;
  for (std::size_t d = 0; d < std::min(shape.dims.size(), program::max_tensor_rank); ++d)
    out.dims.push_back({fmt::format("{}", d), shape.dims[d]});
  const int bits = shape.element ? shape.element->bits : 8;
  out.dtype = bits >= 64   ? Dtype::fp64
              : bits >= 32 ? Dtype::fp32
              : bits >= 16 ? Dtype::bf16
              : bits >= 8  ? Dtype::int8
                           : Dtype::int4;
  out.sharding = sharding;
  return out;
}

std::string PartitionPricing::key(int value, const Split& from, const Split& to) const {
  std::string out;
  const auto add = [&](const auto& word) { out.append(reinterpret_cast<const char*>(&word), sizeof word); };
  const Shape& shape = graph_.shape(value);
  add(shape.element);
  for (std::size_t d = 0; d < std::min(shape.dims.size(), program::max_tensor_rank); ++d) {
    add(shape.dims[d]);
    add(from.dims[d]);
    add(to.dims[d]);
  }
  add(from.unreduced);
  add(to.unreduced);
  return out;
}

const Route& PartitionPricing::route(int value, const Split& from, const Split& to) {
  const auto [known, is_new] = known_.try_emplace(key(value, from, to));
  Route& out = known->second;
  if (!is_new) return out;
  if (to.unreduced & ~from.unreduced) {
    out.cost = impossible;
    return out;
  }
  const plan::Plan plan = planner_.reshard(tensor(value, from), to, prices_);
  // Between equal times, fewer bytes.
  out.cost = plan.cost + tie * prices_.per_flop * plan.bytes.value();
  for (const program::Step& step : plan.steps) {
    out.steps.push_back(step);
    out.after.push_back(plan.tensor(step.out[0]).sharding);
  }
  return out;
}
double PartitionPricing::move_cost(int value, const Split& from, const Split& to) {
  return from == to ? 0.0 : route(value, from, to).cost;
}
Division PartitionPricing::empty_division(int number) const {
  return {std::vector<AxisList>(rows_[at(number)].rows.size()),
          std::vector<AxisSet>(graph_.operations[at(number)].in.size(), 0)};
}

Split PartitionPricing::operand_split(int number, const Division& division, std::size_t k) const {
  Split out;
  const auto& rows = rows_[at(number)].rows;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows[r].operand[k] >= 0 && at(rows[r].operand[k]) < program::max_tensor_rank)
      out.dims[at(rows[r].operand[k])] = division.rows[r];
  out.unreduced = division.partial[k];
  return out;
}
Split PartitionPricing::result_split(int number, const Division& division) const {
  Split out;
  const auto& rows = rows_[at(number)].rows;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].result >= 0 && at(rows[r].result) < program::max_tensor_rank)
      out.dims[at(rows[r].result)] = division.rows[r];
    else if (rows[r].kind == PartitionRow::Kind::summed || rows[r].kind == PartitionRow::Kind::found)
      out.unreduced |= division.rows[r].set();
  }
  for (const AxisSet partial : division.partial) out.unreduced |= partial;
  return out;
}

double PartitionPricing::local_flops(int number, const Division& division) const {
  const PartitionOperation& of = graph_.operations[at(number)];
  const std::string_view opcode = of.at->opcode;
  if (opcode != "dot" && opcode != "convolution" && opcode != "ragged-dot") return 0.0;
  double out = 2.0;
  for (std::size_t r = 0; r < division.rows.size(); ++r)
    out *= static_cast<double>(local(rows_[at(number)].rows[r].size, division.rows[r]));
  return out;
}

double PartitionPricing::halo_bytes(int number, const Division& division) const {
  double out = 0.0;
  const auto& rows = rows_[at(number)].rows;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].halo <= 1 || division.rows[r].empty()) continue;
    const Shape part =
        local_shape(graph_.shape(graph_.operations[at(number)].in[0]), operand_split(number, division, 0));
    const double size = static_cast<double>(std::max<std::int64_t>(1, part.dims[at(rows[r].operand[0])]));
    out += part.bytes().value() / size * (rows[r].halo - 1);
  }
  return out;
}

double PartitionPricing::flop_cost(int number, const Division& division) const {
  const double halo = halo_bytes(number, division) * (prices_.per_flop > 0.0 ? prices_.per_flop : 1.0);
  return halo + (prices_.per_flop > 0.0 ? prices_.per_flop : bytes_per_flop) * local_flops(number, division);
}
double PartitionPricing::held_cost(int value, const Split& sharding) const {
  return (prices_.per_flop > 0.0 ? tie * prices_.per_flop : tie) * local_bytes(value, sharding);
}

}  // namespace assay::hlo
