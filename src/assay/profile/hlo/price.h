// How long a program takes on a cluster: each kernel by the price of kernels, each collective by the price of its
// group's links, and what runs at the same time.
#pragma once
#include <vector>

#include "assay/predict/clock/step_time.h"
#include "assay/profile/hlo/kernels.h"

namespace assay::hlo {

using clock::PricedOn;

/// The time of one call.
struct KernelPrice {
  Seconds compute, memory, network;  ///< of ideal hardware
  Seconds estimate;
  std::string_view bound;  ///< "compute", "memory" or "network": the longest of the three

  Seconds lower() const { return max(max(compute, memory), network); }
};

struct ProgramPrice {
  std::vector<KernelPrice> kernels;  ///< in the order of ProgramKernels
  Seconds compute, memory, network;  ///< sums over all calls, of ideal hardware
  Seconds lower, upper;              ///< everything overlaps, nothing does
  Seconds estimate;                  ///< in the order of the text: asynchronous collectives run beside what follows
  Seconds computation, communication, exposed_communication;  ///< parts of the estimate
};

/// `share` is the part of the counts that one device has: below 1 where the program is not yet partitioned.
Result<ProgramPrice> program_price(const Module& module, const ProgramKernels& kernels, const PricedOn& on,
                                   double share = 1.0);

/// The formats that products of a program are in, by their FLOP, the most first.
std::vector<Dtype> product_formats(const ProgramKernels& kernels);

}  // namespace assay::hlo
