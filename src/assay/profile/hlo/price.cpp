#include "assay/profile/hlo/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "assay/predict/collective/collective_models.h"
#include "assay/predict/collective/placement.h"

namespace assay::hlo {
namespace {

/// The format that products run at: XLA's default precision of fp32 is TF32 or, where there is none, bf16.
Dtype rated_format(const kernel::KernelRates& rates, std::optional<Dtype> format) {
  const Dtype wanted = format.value_or(Dtype::fp32);
  if (wanted != Dtype::fp32) return rates.format_of(wanted);
  return rates.format_of(rates.rate(Dtype::tf32) > FlopsPerSecond(0) ? Dtype::tf32 : Dtype::bf16);
}

/// What an instruction, or a group of them, does on one device that has `share` of its counts.
kernel::Kernel kernel_of(const ProgramKernel& of, const kernel::KernelRates& rates, double share) {
  kernel::Kernel kernel;
  kernel.kind = of.streams;
  if (of.work.attention) {
    roofline::Attention sizes = *of.work.attention;
    sizes.batch *= share;
    kernel = kernel::kernel_of(sizes, rated_format(rates, sizes.query));
  }
  kernel.flops = share * of.work.matrix();
  if (!kernel::reads_cache(kernel.kind)) kernel.bytes = share * of.bytes;
  if (!of.work.products.empty()) {
    const Product& largest = of.work.largest();
    kernel.format = rated_format(rates, largest.format);
    // A product of two vectors is no product of matrices.
    if (std::max(largest.m, largest.n) >= 2.0 && largest.flops() > Flops(0)) {
      kernel.kind = kernel::KernelKind::matmul;
      kernel.product = largest;
      kernel.product.m *= share;
      kernel.product.bytes = kernel.bytes;
      kernel.load = kernel.flops / (share * largest.flops());
    }
  }
  if (!(rates.rate(kernel.format) > FlopsPerSecond(0))) kernel.flops = Flops(0);
  return kernel;
}

/// Prices collectives; equal groups are mapped to the cluster once.
class CollectivePricer {
 public:
  CollectivePricer(const Module& module, const PricedOn& on) : devices_(module.devices()), on_(on) {}

  struct Times {
    Seconds ideal, estimate;
  };
  Result<Times> price(const CollectiveCall& call) {
    if (call.size < 2) return Times{};
    ASSAY_TRY(group, group_of(call));
    const program::Collective kind = call.scattered ? program::Collective::reduce_scatter : call.kind;
    const Bytes array = program::array_share(kind, static_cast<double>(call.size)) * call.operand;
    const auto cost = collective::collective_cost(Plain{}, kind, array, group);
    const bool measured = group.axes.empty() && !group.levels.empty();
    const std::optional<hardware::CollectiveCalibration> unmeasured;
    const PricedOn on{on_.cluster, on_.rates, measured ? on_.collectives : unmeasured};
    return Times{cost.lower, clock::collective_time(on, kind, group, array)};
  }

 private:
  Result<collective::CollectiveGroup> group_of(const CollectiveCall& call) {
    std::vector<StridedAxis> axes = strided_axes(call.groups, devices_);
    if (axes.empty()) axes = {{call.size, 1}};
    std::vector<std::int64_t> key;
    for (const StridedAxis& axis : axes) key.insert(key.end(), {axis.size, axis.stride});
    if (const auto known = groups_.find(key); known != groups_.end()) return known->second;
    // Between the axes of a group lie devices of other groups.
    std::vector<std::pair<std::int64_t, bool>> sizes;  // the most minor first
    std::int64_t covered = 1;
    for (const StridedAxis& axis : axes) {
      if (axis.stride % covered != 0)
        return fail("--on", "the groups of a collective overlap", "write the whole module");
      if (axis.stride > covered) sizes.emplace_back(axis.stride / covered, false);
      sizes.emplace_back(axis.size, true);
      covered = axis.stride * axis.size;
    }
    if (devices_ > covered && devices_ % covered == 0) sizes.emplace_back(devices_ / covered, false);
    if (sizes.size() > static_cast<std::size_t>(program::max_mesh_axes))
      return fail("--on", fmt::format("a group of a collective has {} axes", sizes.size()),
                  fmt::format("at most {} are priced", program::max_mesh_axes));
    program::Mesh mesh;
    program::AxisSet inside = 0;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (sizes[i].second) inside |= program::AxisSet(1) << mesh.axes.size();
      mesh.axes.push_back({fmt::format("A{}", mesh.axes.size()), sizes[i].first});
    }
    ASSAY_TRY(placement, collective::Placement::make(mesh, on_.cluster, "--on"));
    return groups_.emplace(std::move(key), placement.group(inside)).first->second;
  }

  std::int64_t devices_;
  const PricedOn& on_;
  std::map<std::vector<std::int64_t>, collective::CollectiveGroup> groups_;
};

/// Runs computations on a clock with one lane for the chip and one for the network. What a computation calls runs by
/// itself, between what precedes and what follows it.
class ProgramClock {
 public:
  ProgramClock(const Module& module, const ProgramKernels& kernels, const std::vector<KernelPrice>& prices)
      : module_(module), kernels_(kernels), prices_(prices), places_(module.computations.size()) {
    for (std::size_t i = 0; i < kernels.kernels.size(); ++i)
      places_[kernels.kernels[i].computation].emplace(kernels.kernels[i].instruction, i);
  }

  /// A computation that is called once.
  const clock::Totals& of(std::uint32_t number) {
    if (const auto known = done_.find(number); known != done_.end()) return known->second;
    return done_.emplace(number, run(number)).first->second;
  }

 private:
  clock::Totals run(std::uint32_t number) {
    using clock::Item;
    const Computation& computation = module_.computations[number];
    std::vector<Item> items;
    clock::Totals inside;                            // of what it calls
    std::vector<std::int32_t> needed;                // collectives that the chip waits for before it goes on
    std::map<std::uint32_t, std::int32_t> pending;   // collectives by the instruction that started them
    std::optional<std::int32_t> last, last_of_chip;  // collective, item of the chip
    const auto add_to_chip = [&](Item::Kind kind, Seconds time) {
      last_of_chip = static_cast<std::int32_t>(items.size());
      items.push_back({kind, clock::chip_lane, time, std::move(needed)});
      needed.clear();
    };
    for (std::uint32_t i = 0; i < computation.instructions.size(); ++i) {
      const Instruction& at = computation.instructions[i];
      if (is_async_done(at) && !at.operands.empty())
        if (const auto started = pending.find(at.operands.front()); started != pending.end())
          needed.push_back(started->second);
      if (const auto inner = called(number, at)) {
        if (last) needed.push_back(*last);
        add_to_chip(Item::Kind::block, inner->whole);
        inside.computation += inner->computation;
        inside.communication += inner->communication;
        inside.exposed += inner->exposed;
      }
      const auto kernel = places_[number].find(i);
      if (kernel == places_[number].end()) continue;
      const Seconds time = prices_[kernel->second].estimate;
      if (!kernels_.kernels[kernel->second].collective) {
        add_to_chip(Item::Kind::kernel, time);
        continue;
      }
      last = static_cast<std::int32_t>(items.size());
      items.push_back({Item::Kind::collective, clock::network_lane, time, {}});
      if (last_of_chip) items.back().after.push_back(*last_of_chip);
      if (is_async_start(at))
        pending[i] = *last;
      else
        needed.push_back(*last);
    }
    clock::Totals out = clock::totals(items);
    out.computation += inside.computation;
    out.communication += inside.communication;
    out.exposed += inside.exposed;
    return out;
  }

  /// What an instruction calls, as often as it does.
  std::optional<clock::Totals> called(std::uint32_t caller, const Instruction& at) {
    if (at.opcode != "while" && at.opcode != "call" && at.opcode != "conditional") return std::nullopt;
    clock::Totals out;
    for (const std::uint32_t callee : at.callees) {
      if (at.opcode == "while" && callee != at.callee("body")) continue;
      if (!(kernels_.calls[callee] > 0.0)) continue;
      const clock::Totals& one = of(callee);
      const double times = at.opcode == "while" ? kernels_.loop_trips(caller, at) : 1.0;
      if (at.opcode == "conditional" && one.whole < out.whole) continue;
      if (at.opcode == "conditional") out = {};
      out.whole += times * one.whole;
      out.computation += times * one.computation;
      out.communication += times * one.communication;
      out.exposed += times * one.exposed;
    }
    return out;
  }

  const Module& module_;
  const ProgramKernels& kernels_;
  const std::vector<KernelPrice>& prices_;
  std::vector<std::map<std::uint32_t, std::size_t>> places_;
  std::map<std::uint32_t, clock::Totals> done_;
};

}  // namespace

std::vector<Dtype> product_formats(const ProgramKernels& kernels) {
  std::map<Dtype, double> flops;
  for (const ProgramKernel& kernel : kernels.kernels) {
    for (const Product& product : kernel.work.products)
      if (product.format) flops[*product.format] += kernel.calls * product.flops().value();
    if (kernel.work.attention)
      flops[kernel.work.attention->query] += kernel.calls * kernel.work.attention->flops().value();
  }
  std::vector<Dtype> out;
  for (const auto& [format, amount] : flops) out.push_back(format);
  std::stable_sort(out.begin(), out.end(), [&](Dtype a, Dtype b) { return flops[a] > flops[b]; });
  return out;
}

Result<ProgramPrice> program_price(const Module& module, const ProgramKernels& kernels, const PricedOn& on,
                                   double share) {
  ProgramPrice out;
  CollectivePricer collectives(module, on);
  for (const ProgramKernel& kernel : kernels.kernels) {
    KernelPrice price;
    if (kernel.collective) {
      ASSAY_TRY(times, collectives.price(*kernel.collective));
      price.network = times.ideal;
      price.estimate = max(times.estimate, times.ideal);
    } else {
      const double part = std::min(1.0, share * kernel.copies);
      const auto time = kernel::kernel_time(Plain{}, on.rates, kernel_of(kernel, on.rates, part));
      price.compute = time.compute;
      price.memory = part * kernel.bytes / on.rates.hbm;
      price.estimate = max(time.estimate, max(price.compute, price.memory));
    }
    price.bound = price.network > Seconds(0) ? "network" : price.compute >= price.memory ? "compute" : "memory";
    out.compute += kernel.calls * price.compute;
    out.memory += kernel.calls * price.memory;
    out.network += kernel.calls * price.network;
    out.lower += kernel.collective ? Seconds(0) : kernel.calls * price.lower();
    out.upper += kernel.calls * (price.compute + price.memory + price.network);
    out.kernels.push_back(price);
  }
  out.lower = max(out.lower, out.network);
  if (module.entry == no_computation) return out;
  const clock::Totals whole = ProgramClock(module, kernels, out.kernels).of(module.entry);
  out.estimate = whole.whole;
  out.computation = whole.computation;
  out.communication = whole.communication;
  out.exposed_communication = whole.exposed;
  return out;
}

}  // namespace assay::hlo
