#include "assay/ask/verbs/run/planned_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "assay/ask/report/figures.h"

namespace assay::verbs::run {
namespace {

using profile::KernelSum;
using profile::ProgramQuery;

/// Line numbers of places in a text.
class Lines {
 public:
  explicit Lines(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') ends_.push_back(i);
  }
  std::int64_t of(std::size_t offset) const {
    return 1 + (std::lower_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
  }

 private:
  std::vector<std::size_t> ends_;
};

/// "f32[64@X, 32]": which axes split which dimension.
std::string array_text(const program::Mesh& mesh, const hlo::DividedArray& array) {
  std::string dims;
  for (std::size_t d = 0; d < array.shape.dims.size(); ++d) {
    dims += fmt::format("{}{}", d == 0 ? "" : ", ", array.shape.dims[d]);
    if (d < program::max_tensor_rank && !array.sharding.dims[d].empty())
      dims += "@" + program::axes_text(mesh, array.sharding.dims[d]);
  }
  const std::string partial =
      array.sharding.unreduced ? fmt::format(" {{U_{}}}", program::axes_text(mesh, array.sharding.unreduced)) : "";
  return fmt::format("{}[{}]{}", array.shape.element ? array.shape.element->name : "token", dims, partial);
}

void add_shardings(const PlannedProgram& planned, const Lines& lines, report::Members& out) {
  const program::Mesh& mesh = planned.plan.mesh.mesh;
  report::Items rows;
  const auto add = [&](std::string_view role, const std::vector<hlo::DividedArray>& arrays) {
    for (const hlo::DividedArray& array : arrays) {
      double shards = 1.0;
      for (const program::AxisList list : array.sharding.dims) shards *= program::shard_count(mesh, list.set());
      rows.emplace_back(report::Members{{"role", role},
                                        {"name", array.name},
                                        {"array", array_text(mesh, array)},
                                        {"line", lines.of(array.offset)},
                                        {"bytes", array.shape.bytes() / shards}});
    }
  };
  add("input", planned.plan.inputs);
  add("product", planned.plan.products);
  add("result", planned.plan.results);
  out.emplace_back("shardings", std::move(rows));
}

/// An all-reduce of which each device keeps its part is a reduce-scatter.
program::Collective kind_of(const hlo::CollectiveCall& call) {
  return call.scattered ? program::Collective::reduce_scatter : call.kind;
}

/// What a kernel that is a collective adds to a sum.
void add(const ProgramQuery& query, std::size_t i, KernelSum& sum) {
  sum.add(query, i, kind_of(*query.kernels.kernels[i].collective));
}

/// The collectives by line, the most bytes first.
double add_collectives(const PlannedProgram& planned, const Lines& lines, report::Members& out) {
  const ProgramQuery& query = planned.query;
  using Key = std::tuple<std::int64_t, program::Collective, std::string, std::string, std::int64_t>;
  std::map<Key, KernelSum> sums;
  double calls = 0.0;
  for (std::size_t i = 0; i < query.kernels.kernels.size(); ++i) {
    const hlo::ProgramKernel& kernel = query.kernels.kernels[i];
    if (!kernel.collective) continue;
    const hlo::Instruction& at = query.module.computations[kernel.computation].instructions[kernel.instruction];
    const std::string axes = fmt::format("{}", fmt::join(kernel.collective->groups.axes, "+"));
    const std::string_view value = at.attribute("value");
    add(query, i,
        sums[{lines.of(at.offset), kernel.collective->kind, axes, std::string(value.empty() ? at.name : value),
              kernel.collective->size}]);
    calls += kernel.calls;
  }
  std::vector<const std::pair<const Key, KernelSum>*> order;
  for (const auto& one : sums) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.received > b->second.received; });
  out.emplace_back("collectives", report::rows_of(order, [&](const auto* one) {
                     const auto& [line, kind, axes, value, devices] = one->first;
                     report::Members row{{"line", line},
                                         {"kind", program::name(kind)},
                                         {"axes", axes},
                                         {"value", value},
                                         {"devices", devices},
                                         {"calls", one->second.calls},
                                         {"operand", one->second.operand},
                                         {"received", one->second.received}};
                     if (query.price) row.emplace_back("time", one->second.time);
                     return row;
                   }));
  return calls;
}

void add_memory(const PlannedProgram& planned, const Lines& lines, report::Members& out) {
  const hlo::ProgramMemory& memory = planned.query.memory;
  report::Members members{{"peak", memory.peak()},
                          {"given", memory.arguments},
                          {"outputs", memory.outputs},
                          {"temporaries", memory.temporaries}};
  if (planned.query.cluster) {
    const Bytes capacity = planned.query.cluster->chip.hbm().capacity.value;
    members.emplace_back("capacity", capacity);
    members.emplace_back("fits", memory.peak() <= capacity);
  }
  const hlo::Module& module = planned.query.module;
  const hlo::Computation* entry = module.entry_computation();
  if (entry && memory.peak_instruction < entry->instructions.size())
    members.emplace_back("line", lines.of(entry->instructions[memory.peak_instruction].offset));
  constexpr std::size_t most = 20;
  report::Items live;
  for (std::size_t i = 0; i < std::min(most, memory.at_peak.size()); ++i) {
    const hlo::LiveBuffer& buffer = memory.at_peak[i];
    const hlo::Instruction& at = module.computations[buffer.computation].instructions[buffer.instruction];
    live.emplace_back(report::Members{{"name", at.name},
                                      {"array", shape_text(at.shape, false)},
                                      {"line", lines.of(at.offset)},
                                      {"bytes", buffer.bytes}});
  }
  members.emplace_back("at", std::move(live));
  out.emplace_back("memory", std::move(members));
}

/// What takes longest on ideal hardware.
std::string_view limit(const hlo::ProgramPrice& price) {
  if (price.network > price.compute && price.network > price.memory) return "network";
  return price.compute >= price.memory ? "compute" : "memory";
}

/// Both plans beside each other, kind by kind.
void add_against(const PlannedProgram& planned, report::Members& out) {
  if (!planned.compiled) return;
  const ProgramQuery* sides[2] = {&planned.query, &*planned.compiled};
  std::map<std::pair<program::Collective, std::int64_t>, std::array<KernelSum, 2>> sums;
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t i = 0; i < sides[side]->kernels.kernels.size(); ++i)
      if (const auto& call = sides[side]->kernels.kernels[i].collective)
        add(*sides[side], i, sums[{kind_of(*call), call->size}][side]);
  report::Items rows;
  for (const auto& [key, both] : sums) {
    report::Members row{{"kind", program::name(key.first)}, {"devices", key.second},
                        {"calls", both[0].calls},           {"their_calls", both[1].calls},
                        {"received", both[0].received},     {"their_received", both[1].received}};
    if (planned.query.price && planned.compiled->price) {
      row.emplace_back("time", both[0].time);
      row.emplace_back("their_time", both[1].time);
    }
    rows.emplace_back(std::move(row));
  }
  const auto whole = [](const ProgramQuery& of) {
    report::Members members{
        {"received", all_received(of)}, {"flops", of.kernels.totals.matrix}, {"peak", of.memory.peak()}};
    if (of.price) members.emplace_back("time", of.price->estimate);
    return members;
  };
  out.emplace_back("against", report::Members{{"file", planned.compiled->module.file},
                                              {"collectives", std::move(rows)},
                                              {"ours", whole(planned.query)},
                                              {"theirs", whole(*planned.compiled)}});
}

/// Constraints that would help, the best first.
void add_pins(const PlannedProgram& planned, const Lines& lines, report::Members& out) {
  out.emplace_back("pins", report::rows_of(planned.pins, [&](const PlannedPin& pin) {
                     const hlo::DividedArray array{std::string(pin.pin.at->name), pin.pin.shape, pin.pin.sharding, 0};
                     report::Members row{{"line", lines.of(pin.pin.at->offset)},
                                         {"name", array.name},
                                         {"array", array_text(planned.plan.mesh.mesh, array)},
                                         {"constraint", pin.constraint}};
                     if (planned.query.price)
                       row.emplace_back("gain", pin.gained_time);
                     else
                       row.emplace_back("gain", pin.gained_bytes);
                     return row;
                   }));
}

}  // namespace

Bytes all_received(const ProgramQuery& query) {
  KernelSum out;
  for (std::size_t i = 0; i < query.kernels.kernels.size(); ++i)
    if (query.kernels.kernels[i].collective) add(query, i, out);
  return out.received;
}

void add_planned(const PlannedProgram& planned, report::Response& response) {
  const ProgramQuery& query = planned.query;
  const Lines lines(*query.module.text);
  report::Members& out = response.results;
  const std::int64_t devices = planned.plan.mesh.mesh.devices();
  out = {{"program", query.module.file},
         {"mesh", program::mesh_text(planned.plan.mesh.mesh)},
         {"devices", devices},
         {"flops_per_device", query.kernels.totals.matrix}};
  const Bytes moved = all_received(query);
  out.emplace_back("received", moved);
  if (query.price) {
    out.emplace_back("on", query.cluster->text);
    out.emplace_back("time", query.price->estimate);
    out.emplace_back("compute_time", query.price->computation);
    out.emplace_back("collective_time", query.price->communication);
    out.emplace_back("exposed_time", query.price->exposed_communication);
    out.emplace_back("bound", limit(*query.price));
  }
  add_shardings(planned, lines, out);
  const double calls = add_collectives(planned, lines, out);
  add_memory(planned, lines, out);
  add_pins(planned, lines, out);
  add_against(planned, out);
  std::string headline =
      fmt::format("{} device{}: {} received per device in {} collective{}", devices, devices == 1 ? "" : "s",
                  report::short_binary(moved), report::short_number(calls), calls == 1.0 ? "" : "s");
  if (query.price)
    headline += fmt::format("; {} on {}, bound by {}", report::short_quantity(query.price->estimate),
                            query.cluster->text, limit(*query.price));
  headline += fmt::format("; {} at the peak of memory", report::short_binary(query.memory.peak()));
  response.headline = std::move(headline);
}

}  // namespace assay::verbs::run
