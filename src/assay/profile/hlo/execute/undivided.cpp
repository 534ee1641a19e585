// Programs without a plan, and the numbers that both forms of a program are compared with.
#include <algorithm>
#include <cmath>
#include <random>

#include "assay/profile/hlo/execute/execution.h"

namespace assay::hlo {
namespace {

using program::AxisSet;
using Split = program::Sharding;

/// Steps in which all devices compute all of everything.
class Undivided {
 public:
  Undivided(const PartitionPricing& pricing, const PartitionHints& hints)
      : pricing_(pricing), graph_(pricing.graph()), hints_(hints) {}

  std::vector<PartitionStep> region(int number) const {
    using Kind = PartitionOperation::Kind;
    std::vector<PartitionStep> out;
    for (const int i : graph_.regions[at(number)].operations) {
      const PartitionOperation& of = graph_.operations[at(i)];
      if (of.kind == Kind::parameter) {
        if (of.at->opcode == "parameter" && number == 0)
          out.push_back({.kind = PartitionStep::Kind::parameter, .operation = of.number, .value = of.out.front()});
      } else if (of.kind == Kind::enter) {
        const Split part = by_hand(of.in.front(), graph_.values[at(of.out.front())].manual);
        move(out, of.in.front(), {}, part);
        rename(out, of.in.front(), part, of.out.front(), {});
      } else if (of.kind == Kind::leave) {
        const Split part = by_hand(of.out.front(), graph_.values[at(of.in.front())].manual);
        rename(out, of.in.front(), {}, of.out.front(), part);
        move(out, of.out.front(), part, {});
      } else if (of.kind == Kind::loop || of.kind == Kind::branch) {
        PartitionStep step{.kind = of.kind == Kind::loop ? PartitionStep::Kind::loop : PartitionStep::Kind::branch,
                           .operation = i,
                           .carried = std::vector<Split>(of.out.size())};
        for (const int inside : of.regions) step.inside.push_back(region(inside));
        out.push_back(std::move(step));
      } else if (of.kind == Kind::constraint || of.at->opcode == "optimization-barrier") {
        for (std::size_t k = 0; k < std::min(of.in.size(), of.out.size()); ++k)
          rename(out, of.in[k], {}, of.out[k], {});
      } else {
        out.push_back({.kind = PartitionStep::Kind::compute, .operation = i, .division = pricing_.empty_division(i)});
      }
    }
    return out;
  }

 private:
  /// How the program divides a value by hand.
  Split by_hand(int value, AxisSet manual) const {
    Split out = hints_.shardings[at(value)];
    AxisSet free = 0;
    for (int axis = 0; axis < static_cast<int>(pricing_.mesh().mesh.axes.size()); ++axis)
      free |= program::axis_bit(axis);
    for (program::AxisList& list : out.dims)
      list = without_axes(list, free & ~(manual & ~graph_.values[at(value)].manual));
    out.unreduced = 0;
    return out;
  }
  static void rename(std::vector<PartitionStep>& out, int source, const Split& from, int value, const Split& to) {
    out.push_back({.kind = PartitionStep::Kind::rename, .source = source, .value = value, .from = from, .to = to});
  }
  static void move(std::vector<PartitionStep>& out, int value, const Split& from, const Split& to) {
    if (!(from == to)) out.push_back({.kind = PartitionStep::Kind::move, .value = value, .from = from, .to = to});
  }

  const PartitionPricing& pricing_;
  const PartitionGraph& graph_;
  const PartitionHints& hints_;
};

}  // namespace

Result<PartitionedProgram> undivided(const Module& module, const PartitionPricing& pricing) {
  ASSAY_TRY(hints, partition_hints(module, pricing.graph(), pricing.mesh(), pricing.rows(), {}));
  PartitionedProgram out;
  out.mesh = pricing.mesh();
  out.steps = Undivided(pricing, hints).region(0);
  for (const int value : pricing.graph().regions.front().results) {
    const PartitionOperation& of = pricing.graph().operations[at(pricing.graph().values[at(value)].operation)];
    out.results.push_back({std::string(of.at->name), pricing.graph().shape(value), {}, of.at->offset});
  }
  return out;
}

std::vector<Array> drawn_inputs(const Module& module, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Array> out;
  for (const Instruction& parameter : module.entry_computation()->instructions) {
    if (parameter.opcode != "parameter") continue;
    const std::size_t number = at(static_cast<int>(number_list(parameter.argument).front()));
    if (out.size() <= number) out.resize(number + 1);
    Array& array = out[number] = Array::of(parameter.shape);
    const bool truth = parameter.shape.element && parameter.shape.element->name == "pred";
    for (double& value : array.values)
      value = array.is_float() ? static_cast<double>(static_cast<std::int64_t>(random() % 31) - 15) / 16.0
                               : static_cast<double>(random() % (truth ? 2 : 8));
  }
  return out;
}

double difference(const Array& array, const Array& expected) {
  if (array.values.size() != expected.values.size()) return HUGE_VAL;
  double largest = 0.0, most = 0.0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double a = array.values[i], b = expected.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return HUGE_VAL;
    largest = std::max(largest, std::abs(b));
    most = std::max(most, std::abs(a - b));
  }
  return most == 0.0 ? 0.0 : largest == 0.0 ? HUGE_VAL : most / largest;
}

}  // namespace assay::hlo
