// The planner: turns a product of sharded tensors, or a resharding, into the cheapest sequence of collectives.
// The space: gather any inner axes of any dimensions, slice for free, move an axis by all-to-all, permute devices,
// multiply matching shards, reduce or reduce-scatter partial sums. The search is exhaustive and exact: best-first
// from both operands and backwards from the result, pruned only where the cost already exceeds a complete plan.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "assay/base/result.h"
#include "assay/program/form/sharding.h"
#include "assay/program/form/step.h"
#include "assay/program/plan/notation.h"

namespace assay::plan {

/// How a tensor moves from one sharding to another; nothing: each device slices what it has.
using MoveKind = std::optional<program::Collective>;

/// The cost of moving data: every collective over a set of axes costs max(rate x local bytes, floor). By default rates
/// are bytes received per byte held and floors are zero; with a network, seconds per byte and the latency.
class Prices {
 public:
  struct Line {
    double rate = 0, floor = 0;
    friend bool operator==(const Line&, const Line&) = default;
  };
  explicit Prices(const program::Mesh& mesh);

  void set(program::Collective kind, program::AxisSet axes, Line line) { table_[index(kind, axes)] = line; }
  double operator()(program::Collective kind, program::AxisSet axes, Bytes local) const {
    const Line& line = table_[index(kind, axes)];
    const double moved = line.rate * local.value();
    return moved < line.floor ? line.floor : moved;
  }
  const Line& line(program::Collective kind, program::AxisSet axes) const { return table_[index(kind, axes)]; }
  /// True if no collective has a floor: costs are proportional to the bytes.
  bool proportional() const;
  /// Whether `other` has the same prices for all collectives.
  bool same_lines(const Prices& other) const { return axes_ == other.axes_ && table_ == other.table_; }
  /// Cost of one FLOP on a device; compute and communication count as overlapped. Zero when bytes are the price.
  double per_flop = 0;

 private:
  std::size_t index(program::Collective kind, program::AxisSet axes) const {
    return static_cast<std::size_t>(kind) << axes_ | axes;
  }
  std::size_t axes_;
  std::vector<Line> table_;
};

Prices byte_prices(const program::Mesh& mesh);

/// Steps over tensors with named dimensions, in order. The operands are the first tensors; no step makes them.
struct Plan {
  std::vector<program::Tensor> tensors;  ///< steps refer to them by number
  std::vector<program::Step> steps;      ///< local products and movements
  std::vector<double> costs;             ///< cost of each step, in the unit of the prices
  double cost = 0;                       ///< communication, in the unit of the prices
  double total = 0;                      ///< max of communication and compute
  Flops flops;                           ///< FLOP of the local products, per device
  Bytes bytes;                           ///< bytes received by one device over all steps

  const program::Tensor& tensor(int id) const { return tensors[static_cast<std::size_t>(id)]; }
  int add(program::Tensor tensor);
  /// Adds a step that moves a tensor; returns its number afterwards.
  int move(const program::Mesh& mesh, int from, MoveKind kind, program::AxisSet axes, const program::Sharding& to,
           double price = 0);
  /// Adds the local product of two tensors; returns the number of its result.
  int multiply(const program::Mesh& mesh, int left, int right, program::Tensor result);
  /// The tensor that the last step makes, or the only one.
  int last() const { return steps.empty() ? 0 : steps.back().out[0]; }
};

/// The sharding without axes of size one, which split nothing. Plans use only such shardings.
program::Sharding without_unit_axes(const program::Mesh& mesh, const program::Sharding& sharding);

/// The book's case of a product: 1 nothing to do, 2 one operand's contracted dimension is sharded, 3 both are sharded
/// alike, 4 both operands use one axis for dimensions that are kept.
int product_case(const ShardingExpression& expression);

/// Checks that dimensions match: some are contracted, the result has the others. Errors point into `text`, the
/// source of the expression, if given.
Result<void> check_product(const ShardingExpression& expression, std::string_view text = {});

/// The best plan and up to `alternatives` others that move different data, best first.
struct PlanChoice {
  Plan best;
  std::vector<Plan> others;
};

/// The best plan of a product without names, for searches that compare many plans.
struct PlanOutline {
  struct Move {
    MoveKind kind;
    program::AxisSet axes = 0;
    program::Sharding before, after;
    double cost = 0;
  };
  std::vector<Move> left, right, result;                 ///< steps of each tensor, in order
  program::Sharding left_factor, right_factor, product;  ///< shardings of the shards that are multiplied
  double cost = 0;                                       ///< communication, in the unit of the prices
  double total = 0;                                      ///< max of communication and compute
  Flops flops;                                           ///< FLOP of the local product, per device
};

/// Plans on one mesh. Remembers its searches for every tensor and sharding, so that many plans on the
/// same mesh and at the same prices cost microseconds each; outlines of tensors seen before allocate no memory.
class Planner {
 public:
  /// `once`: for a single plan, which then remembers less.
  explicit Planner(const program::Mesh& mesh, bool once = false);
  Planner(Planner&&) noexcept;
  ~Planner();

  PlanChoice product(const ShardingExpression& expression, const Prices& prices, std::size_t alternatives = 0);
  /// The best plan of a product; valid until the next call.
  const PlanOutline& outline(const ShardingExpression& expression, const Prices& prices);
  Plan reshard(const program::Tensor& from, const program::Sharding& to, const Prices& prices);
  /// Adds the steps of a resharding to a plan; returns the number of the tensor in its new sharding.
  int reshard(Plan& plan, int from, const program::Sharding& to, const Prices& prices);

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

/// A single plan on a mesh that is not reused.
PlanChoice plan_product(const program::Mesh& mesh, const ShardingExpression& expression, const Prices& prices,
                        std::size_t alternatives = 0);

/// The mesh with every axis split into its prime factors, X = 4 as X(1) = 2 and X(2) = 2, so that plans may move parts
/// of an axis.
struct RefinedMesh {
  program::Mesh mesh;
  std::vector<std::vector<int>> parts;  ///< parts of each axis of the original, major first

  program::Sharding refine(const program::Sharding& sharding) const;
};
RefinedMesh refine(const program::Mesh& mesh);

/// The cheapest plan by bytes when axes may also be split: never worse than plan_product, but slower to find.
/// The plan's tensors are over `mesh`, which is the refined mesh only if that is cheaper.
struct ThoroughPlan {
  program::Mesh mesh;
  Plan plan;
};
ThoroughPlan plan_product_thoroughly(const program::Mesh& mesh, const ShardingExpression& expression);
/// The cheapest plan with parts of axes, or `whole_axes`, the cheapest one without, where no other is cheaper.
ThoroughPlan plan_product_thoroughly(const program::Mesh& mesh, const ShardingExpression& expression, Plan whole_axes);

/// The cheapest sequence of steps from one sharding of a tensor to another.
Plan plan_reshard(const program::Mesh& mesh, const program::Tensor& from, const program::Sharding& to,
                  const Prices& prices);

}  // namespace assay::plan
