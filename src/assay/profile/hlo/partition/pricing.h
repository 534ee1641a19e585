// What the parts of a partitioned program cost: moves of values between shardings, and operations that split their
// rows.
#pragma once
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "assay/profile/hlo/partition/hints.h"
#include "assay/program/plan/bounded.h"

namespace assay::hlo {

/// How mesh axes split the rows of an operation, and which partial sums it takes as they are.
struct Division {
  std::vector<program::AxisList> rows;
  std::vector<program::AxisSet> partial;  ///< of each operand
};

/// How an array gets from one sharding to another.
struct Route {
  double cost = 0;
  std::vector<program::Step> steps;
  std::vector<program::Sharding> after;
};

inline constexpr double impossible = std::numeric_limits<double>::infinity();

/// Prices for all plans of one program; each route is planned once. Holds references.
class PartitionPricing {
 public:
  PartitionPricing(const PartitionGraph& graph, const PartitionMesh& mesh, const plan::Prices& prices,
                   const std::vector<PartitionRows>& rows)
      : graph_(graph), mesh_(mesh), prices_(prices), rows_(rows), planner_(mesh.mesh) {}

  const PartitionGraph& graph() const { return graph_; }
  const PartitionMesh& mesh() const { return mesh_; }
  const std::vector<PartitionRows>& rows() const { return rows_; }

  Shape local_shape(const Shape& whole, const program::Sharding& sharding) const;
  const Route& route(int value, const program::Sharding& from, const program::Sharding& to);
  double move_cost(int value, const program::Sharding& from, const program::Sharding& to);
  /// Of what a device holds: so small that it decides between equal costs alone.
  double held_cost(int value, const program::Sharding& sharding) const;

  Division empty_division(int operation) const;
  /// The sharding in which a divided operation needs an operand, and that of what it makes.
  program::Sharding operand_split(int operation, const Division& division, std::size_t k) const;
  program::Sharding result_split(int operation, const Division& division) const;
  /// Bytes that neighbours send a device which splits a dimension that a window moves along.
  double halo_bytes(int operation, const Division& division) const;
  /// Of a product on one device, and of what its neighbours send.
  double flop_cost(int operation, const Division& division) const;

 private:
  std::int64_t local(std::int64_t size, program::AxisList axes) const;
  double local_bytes(int value, const program::Sharding& sharding) const;
  program::Tensor tensor(int value, const program::Sharding& sharding) const;
  std::string key(int value, const program::Sharding& from, const program::Sharding& to) const;
  double local_flops(int operation, const Division& division) const;

  const PartitionGraph& graph_;
  const PartitionMesh& mesh_;
  const plan::Prices& prices_;
  const std::vector<PartitionRows>& rows_;
  plan::BoundedPlanner planner_;
  std::unordered_map<std::string, Route> known_;
};

/// A value as some computation has it.
struct PartitionForm {
  int region = 0;
  program::Sharding sharding;
  std::uint32_t instruction = 0;
};

/// Finds the division of each operation that costs least, from the forms that its operands have so far. Holds
/// references.
class DivisionChooser {
 public:
  DivisionChooser(PartitionPricing& pricing, PartitionHints hints);

  const PartitionHints& hints() const { return hints_; }
  /// Whether each device makes the part of an operation's results that it needs: constants, counts and what is made of
  /// them alone, element by element.
  bool remakes(int operation) const { return cheap_[static_cast<std::size_t>(operation)] > 0; }
  bool is_cheap(int value) const;
  /// Where a value goes once partial sums end.
  program::Sharding home(int value) const;
  Division chosen(int operation);

  std::vector<std::vector<PartitionForm>> forms;  ///< of each value

 private:
  /// What each axis may do: split a row that an operand or the result's home has it on, stay a partial sum, or nothing.
  struct Choices {
    int axis;
    std::vector<int> rows;
    bool partial = false;
  };
  double need_cost(int value, const program::Sharding& wanted);
  double cost_of(int operation, const Division& division);
  std::vector<Choices> choices_of(int operation, std::vector<program::AxisList>& orders) const;

  PartitionPricing& pricing_;
  const PartitionGraph& graph_;
  PartitionHints hints_;
  std::vector<int> cheap_;  ///< of each operation: how deep it is; 0: not
};

}  // namespace assay::hlo
