// Partitions a program of whole arrays over a mesh: the program that each device runs, with the collectives it needs.
// The result is a Module like one that a compiler partitioned, so kernels, memory and time of it are found as of any
// other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "assay/profile/hlo/partition/pricing.h"
#include "assay/program/plan/planner.h"

namespace assay::hlo {

/// How an array of the program is divided.
struct DividedArray {
  std::string name;  ///< of the value, without its %
  Shape shape;       ///< of all devices together
  program::Sharding sharding;
  std::size_t offset = 0;  ///< of the instruction that makes it, in the text
};

/// What all devices do of a plan, in the order in which they do it.
struct PartitionStep {
  enum class Kind : std::uint8_t {
    parameter,  ///< `value` is given, divided as `to` says
    move,       ///< `value` gets from one sharding to the other
    compute,    ///< an operation, on the rows of its division
    rename,     ///< what devices have of `source` is what they have of `value`
    loop,       ///< inside: its condition and its body, whose values are divided as `carried` says
    branch      ///< inside: its branches, whose results are
  };
  Kind kind = Kind::compute;
  int operation = -1, source = -1, value = -1;
  program::Sharding from = {}, to = {};
  Division division = {};
  std::vector<program::Sharding> carried = {};
  std::vector<std::vector<PartitionStep>> inside = {};
};

struct PartitionedProgram {
  PartitionMesh mesh;
  Module module;                     ///< views the text of the module that it was made of, which must outlive it
  std::vector<DividedArray> inputs;  ///< by number
  std::vector<DividedArray> results;
  std::vector<DividedArray> products;    ///< of each product its result, in the order of the program
  std::vector<program::Sharding> homes;  ///< of each value of its graph: where it would lie best
  std::vector<double> moved;             ///< of each value of its graph: the part of the cost that its movements are
  std::vector<PartitionStep> steps;      ///< of the program; all its values are those of its graph
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
  std::vector<PartitionPin> candidates(const PartitionedProgram& best) const {
    return partition_pins(pricing().graph(), pricing().mesh(), best.homes, best.moved);
  }
  /// What the steps of plans refer to.
  const PartitionPricing& pricing() const;

 private:
  struct Workspace;
  explicit Partitioner(std::unique_ptr<Workspace> workspace);
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace assay::hlo
