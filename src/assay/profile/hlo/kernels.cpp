#include "assay/profile/hlo/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "assay/profile/hlo/trips.h"

namespace assay::hlo {
namespace {

/// Calls of computations that run kernels of their own.
bool runs_callees(const Instruction& instruction) {
  return instruction.opcode == "while" || instruction.opcode == "call" || instruction.opcode == "conditional";
}

KernelClass class_of(const ProgramKernel& kernel, const Instruction& instruction) {
  if (kernel.collective) return KernelClass::collective;
  if (kernel.work.attention) return KernelClass::attention;
  if (!kernel.work.products.empty()) return KernelClass::matmul;
  const std::string_view opcode = base_opcode(instruction);
  if (opcode == "copy" || instruction.calls(CallKind::move)) return KernelClass::copy;
  if (opcode == "reduce" || instruction.name.find("reduce") != std::string_view::npos) return KernelClass::reduction;
  if (is_fusible(instruction) || opcode == "fusion") return KernelClass::element_wise;
  return KernelClass::other;
}

/// What a fusion without products does: one that sums up rows and goes over all of them once more is a softmax where it
/// has exponentials, and a norm where it has a root.
kernel::KernelKind streams(const Computation& body) {
  using enum kernel::KernelKind;
  double sums = HUGE_VAL;
  bool exponential = false, root = false;
  for (const Instruction& at : body.instructions) {
    if (at.opcode == "reduce") sums = std::min(sums, at.shape.elements());
    exponential = exponential || at.opcode == "exponential";
    root = root || at.opcode == "rsqrt" || at.opcode == "sqrt";
  }
  const Shape& made = body.instructions[body.root].shape;
  const bool whole = std::any_of(made.members.begin(), made.members.end(),
                                 [&](const Shape& member) { return member.elements() > sums; });
  if (!whole && (made.is_tuple || !(made.elements() > sums))) return stream;
  return exponential ? softmax : root ? norm : stream;
}

/// Devices that each run a call on their own part: of a manual computation, or of what was cut into shards; else 1.
double manual_devices(const Module& module, const Computation& computation, const Instruction& call) {
  double out = 1.0;
  for (const std::uint32_t operand : call.operands)
    if (computation.instructions[operand].calls(CallKind::to_shards)) return static_cast<double>(module.devices());
  for (const NamedAxis& axis : module.mesh)
    if (call.attribute("manual_axes").find(fmt::format("\"{}\"", axis.first)) != std::string_view::npos)
      out *= static_cast<double>(axis.second);
  return out;
}

void add(const ProgramKernel& kernel, double calls, Totals& totals) {
  calls *= kernel.copies;
  totals.matrix += calls * kernel.work.matrix();
  totals.element_wise += calls * kernel.work.element_wise;
  totals.transcendentals += calls * kernel.work.transcendentals;
  totals.bytes += calls * kernel.bytes;
}

/// What a group reads from outside and writes.
Bytes group_bytes(const Computation& computation, const Grouping& groups, std::uint32_t last,
                  const std::vector<std::uint32_t>& members) {
  const Instruction& root = computation.instructions[last];
  const bool update = root.opcode == "dynamic-update-slice" && root.operands.size() >= 2;
  Bytes out = main_memory_bytes(update ? computation.instructions[root.operands[1]].shape : root.shape);
  std::set<std::uint32_t> whole;
  for (const std::uint32_t member : members) {
    const Instruction& at = computation.instructions[member];
    for (std::size_t i = 0; i < at.operands.size(); ++i) {
      const std::uint32_t from = source_of(computation, groups, at.operands[i]);
      const Instruction& source = computation.instructions[from];
      const bool made_here = groups.in_place[from] && groups.kernel[from] != from;
      if (groups.kernel[from] == last || made_here || source.opcode == "constant" || source.opcode == "iota") continue;
      const bool cuts = i == 0 && (at.opcode == "slice" || at.opcode == "dynamic-slice" || at.opcode == "gather");
      if (cuts)
        out += std::min(main_memory_bytes(at.shape), main_memory_bytes(source.shape));
      else if (!(update && member == last && i == 0) && whole.insert(from).second)
        out += main_memory_bytes(source.shape);
    }
  }
  return out;
}

class KernelFinder {
 public:
  explicit KernelFinder(const Module& module) : module_(module) {
    out_.fused = is_fused(module);
    out_.calls.resize(module.computations.size(), 0.0);
    out_.groups.resize(module.computations.size());
    kernels_.resize(module.computations.size());
    sites_.resize(module.computations.size(), 0.0);
    copies_.resize(module.computations.size(), 1.0);
  }

  Result<ProgramKernels> find() {
    if (module_.entry == no_computation) return std::move(out_);
    std::vector<std::uint32_t> order = callees_first(module_, {module_.entry}).computations;
    std::vector<double> work(module_.computations.size(), 0.0);
    for (const std::uint32_t number : order)
      if (!module_.computations[number].fused) ASSAY_CHECK(find_in(number, work));
    out_.calls[module_.entry] = sites_[module_.entry] = 1.0;
    std::reverse(order.begin(), order.end());
    for (const std::uint32_t number : order) {
      if (!(out_.calls[number] > 0.0) || module_.computations[number].fused) continue;
      spread(number, work);
      for (ProgramKernel& kernel : kernels_[number]) {
        kernel.calls = out_.calls[number];
        kernel.copies = copies_[number];
        add(kernel, kernel.calls, out_.totals);
        add(kernel, sites_[number], out_.once);
        out_.kernels.push_back(std::move(kernel));
      }
    }
    return std::move(out_);
  }

 private:
  /// Kernels of one computation; `work` is what a call of each costs, to choose among branches.
  Result<void> find_in(std::uint32_t number, std::vector<double>& work) {
    const Computation& computation = module_.computations[number];
    const Users users = users_of(computation);
    Grouping& groups = out_.groups[number] = grouping(computation, users, out_.fused);
    std::vector<std::vector<std::uint32_t>> members(computation.instructions.size());
    for (std::uint32_t i = 0; i < computation.instructions.size(); ++i)
      if (groups.kernel[i] != no_kernel) members[groups.kernel[i]].push_back(i);
    for (std::uint32_t i = 0; i < computation.instructions.size(); ++i) {
      const Instruction& at = computation.instructions[i];
      if (runs_callees(at)) {
        double most = 0.0;
        for (const std::uint32_t callee : at.callees) most = std::max(most, work[callee]);
        work[number] += most;
        continue;
      }
      if (groups.kernel[i] != i) continue;
      ProgramKernel kernel;
      kernel.computation = number;
      kernel.instruction = i;
      for (const std::uint32_t member : members[i])
        kernel.work += arithmetic(module_, computation, computation.instructions[member]);
      ASSAY_TRY(collective, collective_call(module_, computation, at, users));
      kernel.collective = std::move(collective);
      kernel.bytes = is_fusible(at) && !out_.fused ? group_bytes(computation, groups, i, members[i])
                                                   : traffic(module_, computation, at);
      kernel.of = class_of(kernel, at);
      if (at.opcode == "fusion" && at.callees.size() == 1 && !module_.computations[at.callees[0]].instructions.empty())
        kernel.streams = streams(module_.computations[at.callees[0]]);
      work[number] += kernel.work.matrix().value() + kernel.bytes.value();
      kernels_[number].push_back(std::move(kernel));
    }
    return {};
  }

  /// Passes a computation's calls on to those that it calls.
  void spread(std::uint32_t number, const std::vector<double>& work) {
    const Computation& computation = module_.computations[number];
    for (const Instruction& at : computation.instructions) {
      if (!runs_callees(at)) continue;
      if (at.opcode == "while") {
        const std::uint32_t body = at.callee("body");
        if (body == no_computation) continue;
        copies_[body] = copies_[number];
        const auto trips = trip_count(module_, computation, at);
        if (!trips) ++out_.unknown_loops;
        out_.trips[{number, body}] = trips.value_or(1.0);
        out_.calls[body] += out_.calls[number] * trips.value_or(1.0);
        sites_[body] += sites_[number];
      } else if (at.opcode == "conditional") {
        ++out_.conditionals;
        const auto most = std::max_element(at.callees.begin(), at.callees.end(),
                                           [&](std::uint32_t a, std::uint32_t b) { return work[a] < work[b]; });
        if (most == at.callees.end()) continue;
        out_.calls[*most] += out_.calls[number];
        copies_[*most] = copies_[number];
        sites_[*most] += sites_[number];
      } else {
        for (const std::uint32_t callee : at.callees) {
          copies_[callee] = copies_[number] * manual_devices(module_, computation, at);
          out_.calls[callee] += out_.calls[number];
          sites_[callee] += sites_[number];
        }
      }
    }
  }

  const Module& module_;
  ProgramKernels out_;
  std::vector<std::vector<ProgramKernel>> kernels_;
  std::vector<double> sites_, copies_;
};

}  // namespace

double ProgramKernels::loop_trips(std::uint32_t computation, const Instruction& loop) const {
  const auto known = trips.find({computation, loop.callee("body")});
  return known == trips.end() ? 1.0 : known->second;
}

std::string_view name(KernelClass of) {
  constexpr std::string_view names[] = {"matmul",     "attention", "element-wise", "reduction",
                                        "collective", "copy",      "other"};
  return names[static_cast<std::size_t>(of)];
}

Result<ProgramKernels> program_kernels(const Module& module) { return KernelFinder(module).find(); }

std::string work_text(const Module& module, const ProgramKernel& kernel) {
  const Instruction& at = module.computations[kernel.computation].instructions[kernel.instruction];
  if (kernel.work.attention) {
    const FusedAttention& of = *kernel.work.attention;
    return fmt::format("{}x{} heads of {}, {} queries, {} keys", of.batch, of.heads, of.head_dim, of.queries, of.keys);
  }
  if (!kernel.work.products.empty()) {
    const Product& of = kernel.work.largest();
    const std::string batch = of.batch > 1.0 ? fmt::format("{:.0f} x ", of.batch) : "";
    return fmt::format("{}[{:.0f},{:.0f}] [{:.0f},{:.0f}]", batch, of.m, of.k, of.k, of.n);
  }
  const Shape& shape = at.shape.is_tuple && !at.shape.members.empty() ? at.shape.members.front() : at.shape;
  return shape_text(shape, false);
}

}  // namespace assay::hlo
