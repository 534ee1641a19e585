#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "assay/ask/verbs/profile/hlo.h"
#include "assay/base/text.h"

namespace assay::verbs::profile {
namespace {

namespace hlo = assay::hlo;

report::Items class_rows(const ProgramQuery& query) {
  const std::map<hlo::KernelClass, KernelSum> sums = class_sums(query);
  Seconds all(0);
  for (const auto& [of, sum] : sums) all += sum.time;
  report::Items rows;
  for (const auto& [of, sum] : sums) {
    report::Members row{{"class", name(of)}, {"calls", sum.calls}, {"flops", sum.flops}, {"bytes", sum.bytes}};
    if (query.price) {
      row.emplace_back("estimate", sum.time);
      if (all > Seconds(0)) row.emplace_back("share", sum.time / all);
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

report::Items collective_rows(const ProgramQuery& query) {
  struct Key {
    program::Collective kind;
    std::int64_t size;
    bool scattered;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, KernelSum> sums;
  for (std::size_t i = 0; i < query.kernels.kernels.size(); ++i)
    if (const auto& call = query.kernels.kernels[i].collective)
      sums[Key{call->kind, call->size, call->scattered}].add(query, i);
  report::Items rows;
  for (const auto& [key, sum] : sums) {
    report::Members row{{"kind", program::name(key.kind)},
                        {"devices", key.size},
                        {"calls", sum.calls},
                        {"operand", sum.operand},
                        {"received", sum.received}};
    if (key.scattered) row.emplace_back("becomes", program::name(program::Collective::reduce_scatter));
    if (query.price) row.emplace_back("estimate", sum.time);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

report::Items kernel_rows(const ProgramQuery& query) {
  const auto& kernels = query.kernels.kernels;
  Seconds all(0);
  if (query.price)
    for (std::size_t i = 0; i < kernels.size(); ++i) all += kernels[i].calls * query.price->kernels[i].estimate;
  return report::rows_of(costliest_kernels(query), [&](const std::size_t i) {
    const hlo::ProgramKernel& kernel = kernels[i];
    const hlo::Instruction& at = query.module.computations[kernel.computation].instructions[kernel.instruction];
    report::Members row{{"name", at.name},
                        {"class", name(kernel.of)},
                        {"operation", kernel_label(query, kernel)},
                        {"shapes", work_text(query.module, kernel)},
                        {"result", shape_text(at.shape, false)},
                        {"calls", kernel.calls}};
    const Flops flops = kernel.work.matrix();
    if (flops > Flops(0)) {
      row.emplace_back("flops", flops);
      Flops exact = flops;  // a sum of k products has k - 1 additions
      for (const hlo::Product& product : kernel.work.products) exact -= Flops(product.batch * product.m * product.n);
      row.emplace_back("exact_flops", exact);
    }
    row.emplace_back("bytes", kernel.bytes);
    if (kernel.collective) row.emplace_back("devices", kernel.collective->size);
    if (query.price) {
      const hlo::KernelPrice& price = query.price->kernels[i];
      row.emplace_back("bound", price.bound);
      row.emplace_back("lower", price.lower());
      row.emplace_back("estimate", price.estimate);
      row.emplace_back("time", kernel.calls * price.estimate);
      if (all > Seconds(0)) row.emplace_back("share", kernel.calls * price.estimate / all);
    }
    return row;
  });
}

report::Members memory_members(const ProgramQuery& query) {
  const hlo::ProgramMemory& memory = query.memory;
  report::Members out{{"arguments", memory.arguments}, {"outputs", memory.outputs}, {"aliased", memory.aliased}};
  if (memory.host > Bytes(0)) out.emplace_back("host", memory.host);
  if (query.module.entry == hlo::no_computation) return out;
  out.emplace_back("temporaries", memory.temporaries);
  out.emplace_back("peak", memory.peak());
  if (query.cluster) {
    const Bytes capacity = query.cluster->chip.hbm().capacity.value;
    out.emplace_back("capacity", capacity);
    out.emplace_back("fits", query.share * memory.peak() <= capacity);
  }
  constexpr std::size_t most = 20;
  report::Items live;
  for (std::size_t i = 0; i < std::min(most, memory.at_peak.size()); ++i) {
    const hlo::LiveBuffer& buffer = memory.at_peak[i];
    const hlo::Instruction& at = query.module.computations[buffer.computation].instructions[buffer.instruction];
    live.emplace_back(
        report::Members{{"name", at.name}, {"shape", shape_text(at.shape, false)}, {"bytes", buffer.bytes}});
  }
  out.emplace_back("at_peak", std::move(live));
  return out;
}

report::Members counts_members(const hlo::Totals& totals) {
  return {{"flops", totals.matrix},
          {"element_wise_flops", totals.element_wise},
          {"transcendentals", totals.transcendentals},
          {"bytes", totals.bytes}};
}

}  // namespace

void KernelSum::add(const ProgramQuery& query, std::size_t i, std::optional<program::Collective> kind) {
  const hlo::ProgramKernel& kernel = query.kernels.kernels[i];
  calls += kernel.calls;
  flops += kernel.calls * kernel.work.matrix();
  bytes += kernel.calls * kernel.bytes;
  if (const auto& call = kernel.collective) {
    operand += kernel.calls * call->operand;
    received += kernel.calls * program::received_share(kind.value_or(call->kind), static_cast<double>(call->size)) *
                call->operand;
  }
  if (query.price) time += kernel.calls * query.price->kernels[i].estimate;
}

std::map<hlo::KernelClass, KernelSum> class_sums(const ProgramQuery& query) {
  std::map<hlo::KernelClass, KernelSum> out;
  for (std::size_t i = 0; i < query.kernels.kernels.size(); ++i) out[query.kernels.kernels[i].of].add(query, i);
  return out;
}

std::vector<std::size_t> costliest_kernels(const ProgramQuery& query) {
  std::vector<std::size_t> out(query.kernels.kernels.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::vector<double> cost(out.size());
  for (const std::size_t i : out) {
    const hlo::ProgramKernel& kernel = query.kernels.kernels[i];
    cost[i] = query.price ? (kernel.calls * query.price->kernels[i].estimate).value()
                          : kernel.calls * kernel.work.matrix().value() + kernel.calls * kernel.bytes.value();
  }
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return cost[a] > cost[b]; });
  return out;
}

std::string kernel_label(const ProgramQuery& query, const hlo::ProgramKernel& kernel) {
  const hlo::Instruction& at = query.module.computations[kernel.computation].instructions[kernel.instruction];
  const std::string_view target = at.attribute("custom_call_target");
  if (target.size() > 2) return std::string(target.substr(1, target.size() - 2));
  const std::string_view operation = at.op_name();
  if (operation.empty()) return std::string(base_opcode(at));
  return std::string(operation.substr(operation.rfind('/') + 1));
}

void add_changes(const ProgramQuery& before, const ProgramQuery& after, report::Members& out) {
  const ProgramQuery* sides[2] = {&before, &after};
  std::vector<std::pair<std::string, std::array<AnyQuantity, 2>>> rows;
  const auto add_row = [&](std::string what, const auto& value) {
    rows.push_back({std::move(what), {AnyQuantity(value(*sides[0])), AnyQuantity(value(*sides[1]))}});
  };
  std::map<hlo::KernelClass, std::array<KernelSum, 2>> sums;
  std::array<Bytes, 2> received{};
  for (std::size_t side = 0; side < 2; ++side)
    for (const auto& [of, sum] : class_sums(*sides[side])) {
      sums[of][side] = sum;
      received[side] += sum.received;
    }
  add_row("FLOP of products", [](const ProgramQuery& of) { return of.kernels.totals.matrix; });
  add_row("bytes through memory", [](const ProgramQuery& of) { return of.kernels.totals.bytes; });
  rows.push_back({"bytes received", {AnyQuantity(received[0]), AnyQuantity(received[1])}});
  add_row("peak memory", [](const ProgramQuery& of) { return of.memory.peak(); });
  if (before.price && after.price) {
    add_row("time", [](const ProgramQuery& of) { return of.price->estimate; });
    add_row("waiting for the network", [](const ProgramQuery& of) { return of.price->exposed_communication; });
    for (const auto& [of, sum] : sums)
      rows.push_back({fmt::format("time of {}", name(of)), {AnyQuantity(sum[0].time), AnyQuantity(sum[1].time)}});
  }
  report::Items items;
  for (const auto& [what, values] : rows) {
    report::Members row{{"what", what}, {"before", values[0]}, {"after", values[1]}};
    if (values[0].value > 0.0) row.emplace_back("relative_change", values[1].value / values[0].value - 1.0);
    items.emplace_back(std::move(row));
  }
  out.emplace_back(
      "changes",
      report::Members{{"before", before.module.file}, {"after", after.module.file}, {"rows", std::move(items)}});
}

void add_program(const ProgramQuery& query, report::Members& out) {
  const hlo::Module& module = query.module;
  report::Members program{{"module", module.name},
                          {"format", module.is_stablehlo ? "stablehlo" : "hlo"},
                          {"devices", module.devices()},
                          {"computations", query.computations},
                          {"instructions", query.instructions},
                          {"partitioned", query.mesh.partitioned},
                          {"fused", query.kernels.fused},
                          {"scheduled", module.scheduled},
                          {"complete", module.entry != hlo::no_computation}};
  for (auto& member : counts_members(query.kernels.totals)) program.push_back(std::move(member));
  program.emplace_back("counted_once", counts_members(query.kernels.once));
  report::Items loops;
  for (const auto& [where, trips] : query.kernels.trips)
    loops.emplace_back(report::Members{{"body", module.computations[where.second].name}, {"trips", trips}});
  program.emplace_back("loops", std::move(loops));
  if (query.price) {
    const hlo::ProgramPrice& price = *query.price;
    program.emplace_back("on", query.cluster->text);
    program.emplace_back("bounds", report::Members{{"compute", price.compute},
                                                   {"memory", price.memory},
                                                   {"network", price.network},
                                                   {"lower", price.lower},
                                                   {"upper", price.upper}});
    program.emplace_back("estimate", price.estimate);
    program.emplace_back("computation_time", price.computation);
    program.emplace_back("communication_time", price.communication);
    program.emplace_back("exposed_communication_time", price.exposed_communication);
    if (price.estimate > Seconds(0)) program.emplace_back("peak_share", price.compute / price.estimate);
  }
  program.emplace_back("classes", class_rows(query));
  program.emplace_back("collectives", collective_rows(query));
  program.emplace_back("memory", memory_members(query));
  out.emplace_back("program", std::move(program));
  out.emplace_back("kernels", kernel_rows(query));
}

}  // namespace assay::verbs::profile
