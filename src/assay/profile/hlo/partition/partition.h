// Partitions a program of whole arrays over a mesh: the program that each device runs, with the collectives it needs.
// The result is a Module like one that a compiler partitioned, so kernels, memory and time of it are found as of any
// other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/profile/hlo/partition/hints.h"
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
  std::vector<DividedArray> products;    ///< of each product its result, in the order of the program
  std::vector<program::Sharding> homes;  ///< of each value of its graph: where it would lie best
  std::vector<double> moved;             ///< of each value of its graph: the part of the cost that its movements are
  double cost = 0;                       ///< of all movements and products, in the unit of the prices
  std::vector<std::string> unknown;  ///< operations that are computed whole, since nothing is known of their dimensions
};

/// Plans of one program. Holds references.
class Partitioner {
 public:
  /// `prices` are over the mesh.
  static Result<Partitioner> make(const Module& module, const PartitionMesh& mesh, const plan::Prices& prices);
  Partitioner(Partitioner&&) noexcept;
  ~Partitioner();

  /// The cheapest plan of all orders in which shardings spread.
  Result<PartitionedProgram> best();
  /// The plan with one more constraint, in the order of the best one.
  Result<PartitionedProgram> with(const PartitionPin& pin) const;
  /// Constraints that could help: other places for what moves in the best plan, the costliest first.
  std::vector<PartitionPin> candidates(const PartitionedProgram& best) const;

 private:
  struct Workspace;
  explicit Partitioner(std::unique_ptr<Workspace> workspace);
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace assay::hlo
