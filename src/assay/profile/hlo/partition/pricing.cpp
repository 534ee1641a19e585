#include "assay/profile/hlo/partition/pricing.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/profile/hlo/work.h"

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

DivisionChooser::DivisionChooser(PartitionPricing& pricing, PartitionHints hints)
    : forms(pricing.graph().values.size()),
      pricing_(pricing),
      graph_(pricing.graph()),
      hints_(std::move(hints)),
      cheap_(graph_.operations.size(), 0) {
  constexpr int deepest = 16;
  for (std::size_t i = 0; i < graph_.operations.size(); ++i) {
    const PartitionOperation& of = graph_.operations[i];
    if (of.kind != PartitionOperation::Kind::plain) continue;
    const std::string_view opcode = of.at->opcode;
    int depth = opcode == "constant" || opcode == "iota" ? 1 : 0;
    if (is_element_wise(opcode) || opcode == "broadcast") {
      depth = 1;
      for (std::size_t k = 0; k < of.in.size(); ++k) {
        const bool scalar = opcode == "broadcast" && graph_.shape(of.in[k]).dims.empty();
        const int below = cheap_[at(graph_.values[at(of.in[k])].operation)];
        if (!scalar && below == 0) depth = deepest;
        depth = std::max(depth, scalar ? 1 : below + 1);
      }
    }
    cheap_[i] = depth > 0 && depth < deepest ? depth : 0;
  }
}

bool DivisionChooser::is_cheap(int value) const { return remakes(graph_.values[at(value)].operation); }

/// The cheapest way from any form of a value to the one that is needed.
double DivisionChooser::need_cost(int value, const Split& wanted) {
  if (is_cheap(value)) return wanted.unreduced ? impossible : 0.0;
  double best = impossible;
  for (const PartitionForm& form : forms[at(value)])
    best = std::min(best, pricing_.move_cost(value, form.sharding, wanted));
  return best;
}

Split DivisionChooser::home(int value) const {
  Split out = hints_.shardings[at(value)];
  out.unreduced = 0;
  return out;
}

double DivisionChooser::cost_of(int number, const Division& division) {
  const PartitionOperation& of = graph_.operations[at(number)];
  double cost = 0.0;
  for (std::size_t k = 0; k < of.in.size(); ++k) {
    cost += need_cost(of.in[k], pricing_.operand_split(number, division, k));
    if (cost == impossible) return cost;
  }
  const Split made = pricing_.result_split(number, division);
  for (const int value : of.out) {
    cost += pricing_.move_cost(value, made, home(value));
    cost += pricing_.held_cost(value, made);
  }
  return cost + pricing_.flop_cost(number, division);
}

std::vector<DivisionChooser::Choices> DivisionChooser::choices_of(int number, std::vector<AxisList>& orders) const {
  const PartitionOperation& of = graph_.operations[at(number)];
  const auto& rows = pricing_.rows()[at(number)].rows;
  std::vector<Choices> out;
  AxisSet manual = 0;
  for (const int value : of.out) manual |= graph_.values[at(value)].manual;
  for (int axis = 0; axis < static_cast<int>(pricing_.mesh().mesh.axes.size()); ++axis) {
    const AxisSet bit = program::axis_bit(axis);
    if (manual & bit) continue;
    Choices choice{axis, {}, false};
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].kind == PartitionRow::Kind::whole) continue;
      bool there = false;
      const auto look = [&](const Split& sharding, int dim) {
        if (dim < 0 || at(dim) >= program::max_tensor_rank) return;
        const AxisList list = sharding.dims[at(dim)];
        if (!list.has(axis)) return;
        there = true;
        if (std::find(orders.begin(), orders.end(), list) == orders.end()) orders.push_back(list);
      };
      for (std::size_t k = 0; k < of.in.size(); ++k) {
        if (is_cheap(of.in[k])) continue;
        for (const PartitionForm& form : forms[at(of.in[k])]) look(form.sharding, rows[r].operand[k]);
        look(hints_.shardings[at(of.in[k])], rows[r].operand[k]);
      }
      for (const int value : of.out) look(hints_.shardings[at(value)], rows[r].result);
      if (there) choice.rows.push_back(static_cast<int>(r));
    }
    for (std::size_t k = 0; k < of.in.size(); ++k)
      for (const PartitionForm& form : forms[at(of.in[k])])
        choice.partial = choice.partial || (pricing_.rows()[at(number)].linear.size() > k &&
                                            pricing_.rows()[at(number)].linear[k] && (form.sharding.unreduced & bit));
    if (!choice.rows.empty() || choice.partial) out.push_back(std::move(choice));
  }
  return out;
}

Division DivisionChooser::chosen(int number) {
  const PartitionOperation& of = graph_.operations[at(number)];
  const PartitionRows& rows = pricing_.rows()[at(number)];
  std::vector<AxisList> orders;
  const std::vector<Choices> choices = choices_of(number, orders);
  Division best = pricing_.empty_division(number), trial = best;
  if (choices.empty()) return best;
  double least = impossible;
  std::vector<AxisSet> sets(rows.rows.size(), 0);
  int left = 600;
  const auto descend = [&](const auto& self, std::size_t i) -> void {
    if (left <= 0) return;
    if (i == choices.size()) {
      --left;
      for (std::size_t r = 0; r < sets.size(); ++r)
        trial.rows[r] = program::ordered(pricing_.mesh().mesh, sets[r], orders);
      const double cost = cost_of(number, trial);
      if (cost < least) {
        least = cost;
        best = trial;
      }
      return;
    }
    const AxisSet bit = program::axis_bit(choices[i].axis);
    for (const int r : choices[i].rows) {
      const auto count = static_cast<std::int64_t>(program::shard_count(pricing_.mesh().mesh, sets[at(r)] | bit));
      const bool everywhere = rows.rows[at(r)].size % count == 0;
      if (!everywhere) continue;
      sets[at(r)] |= bit;
      self(self, i + 1);
      sets[at(r)] &= ~bit;
    }
    if (choices[i].partial)
      for (std::size_t k = 0; k < of.in.size(); ++k) {
        if (!rows.linear[k] || (rows.together && k > 0)) continue;
        for (std::size_t other = 0; other < of.in.size(); ++other)
          if (other == k || (rows.together && rows.linear[other])) trial.partial[other] |= bit;
        self(self, i + 1);
        for (AxisSet& partial : trial.partial) partial &= ~bit;
      }
    self(self, i + 1);
  };
  descend(descend, 0);
  return best;
}

}  // namespace assay::hlo
