// The kernels of a program: what runs, how often, and how much each computes, moves and sends.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "assay/profile/hlo/grouping.h"
#include "assay/profile/hlo/work.h"

namespace assay::hlo {

enum class KernelClass : std::uint8_t { matmul, attention, element_wise, reduction, collective, copy, other };
std::string_view name(KernelClass of);

struct ProgramKernel {
  std::uint32_t computation = 0, instruction = 0;  ///< of a group, its last instruction
  KernelClass of = KernelClass::other;
  double calls = 1;   ///< in one run of the program
  double copies = 1;  ///< devices that each do all of it, in a program that is not partitioned otherwise
  Arithmetic work;
  kernel::KernelKind streams =
      kernel::KernelKind::stream;  ///< without products and attention: a norm, a softmax, or any
  Bytes bytes;
  std::optional<CollectiveCall> collective;
};

/// Sums over kernels.
struct Totals {
  Flops matrix, element_wise;
  double transcendentals = 0;
  Bytes bytes;
};

struct ProgramKernels {
  std::vector<ProgramKernel> kernels;  ///< computation by computation, in their order
  std::vector<double> calls;           ///< of each computation
  std::vector<Grouping> groups;        ///< of each computation that runs
  /// Trips of each loop that runs, by its computation and its body; 1 where they are not known.
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> trips;
  Totals totals;
  Totals once;         ///< with each computation counted once for each place that it is called from, as XLA counts
  bool fused = false;  ///< by the compiler
  std::int64_t unknown_loops = 0, conditionals = 0;

  double loop_trips(std::uint32_t computation, const Instruction& loop) const;
};

/// The kernels of one run. Of the branches of a conditional, the one with most work counts; loops whose trips are not
/// known count once.
Result<ProgramKernels> program_kernels(const Module& module);

/// What of a kernel's name people read: of a product its sizes.
std::string work_text(const Module& module, const ProgramKernel& kernel);

}  // namespace assay::hlo
