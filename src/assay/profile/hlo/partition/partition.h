// Partitions a program of whole arrays over a mesh: the program that each device runs, with the collectives it needs.
// The result is a Module like one that a compiler partitioned, so kernels, memory and time of it are found as of any
// other.
#pragma once
#include <string>
#include <vector>

#include "assay/profile/hlo/partition/graph.h"
#include "assay/program/plan/planner.h"

namespace assay::hlo {

/// How an array of the program is divided.
struct DividedArray {
  std::string name;  ///< of the value, without its %
  Shape shape;       ///< of all devices together
  program::Sharding sharding;
  std::size_t offset = 0;  ///< of the instruction that makes it, in the text
};

struct PartitionedProgram {
  PartitionMesh mesh;
  Module module;                     ///< views the text of the module that it was made of, which must outlive it
  std::vector<DividedArray> inputs;  ///< by number
  std::vector<DividedArray> results;
  std::vector<DividedArray> products;  ///< of each product its result, in the order of the program
  double cost = 0;                     ///< of all movements and products, in the unit of the prices
  std::vector<std::string> unknown;  ///< operations that are computed whole, since nothing is known of their dimensions
};

/// `prices` is asked for the prices on the mesh that the program's shardings make.
Result<PartitionedProgram> partition(const Module& module, const PartitionMesh& mesh, const plan::Prices& prices);

}  // namespace assay::hlo
