// Executes a plan on real numbers, device by device: each holds the parts that the plan gives it, and computes from
// these alone. An element that a device needs and does not have makes what it computes absent, which is an error.
#pragma once
#include <vector>

#include "assay/profile/hlo/execute/array.h"
#include "assay/profile/hlo/partition/partition.h"

namespace assay::hlo {

/// What each device has of a result once all of its parts are brought together, or one array where all have the same.
struct ExecutedResult {
  std::string name;
  std::vector<Array> copies;
};

/// Results of the steps on inputs that are whole arrays, by number.
Result<std::vector<ExecutedResult>> execute(const Module& module, const PartitionPricing& pricing,
                                            const PartitionedProgram& plan, const std::vector<Array>& inputs);

/// The program without a plan: every device computes everything, except in manual computations.
Result<PartitionedProgram> undivided(const Module& module, const PartitionPricing& pricing);

/// Numbers for the parameters of a program: multiples of 1/16 below 1, and small whole numbers.
std::vector<Array> drawn_inputs(const Module& module, std::uint64_t seed);

/// The largest difference between arrays, as a share of the largest number of the second one; infinite where one of two
/// is no number, or sizes differ.
double difference(const Array& array, const Array& expected);

}  // namespace assay::hlo
