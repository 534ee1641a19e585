// The planner: turns a product of sharded tensors, or a resharding, into the cheapest sequence of collectives.
// The space: gather any inner axes of any dimensions, slice for free, move an axis by all-to-all, permute devices,
// multiply matching shards, reduce or reduce-scatter partial sums. The search is exhaustive and exact: best-first
// from both operands and backwards from the result, pruned only where the cost already exceeds a complete plan.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/base/result.h"
#include "assay/plan/notation.h"
#include "assay/program/sharding.h"

namespace assay::plan {

enum class StepKind { slice, all_gather, all_to_all, permute, reduce_scatter, all_reduce, multiply };
std::string_view name(StepKind kind);

/// One step of a plan: a collective over `axes` on one tensor, or the local product.
struct PlanStep {
  StepKind kind = StepKind::multiply;
  program::AxisSet axes = 0;
  program::Tensor before;                 ///< of a multiply: the left operand
  std::optional<program::Tensor> second;  ///< of a multiply: the right operand
  program::Tensor after;
  Bytes bytes;      ///< received by one device
  double cost = 0;  ///< in the unit of the planner's prices
};

/// The cost of moving data: every collective over a set of axes costs max(rate x local bytes, floor). By default rates
/// are bytes received per byte held and floors are zero; with a network, seconds per byte and the latency.
class Prices {
 public:
  struct Line {
    double rate = 0, floor = 0;
    friend bool operator==(const Line&, const Line&) = default;
  };
  explicit Prices(const program::Mesh& mesh);

  void set(StepKind kind, program::AxisSet axes, Line line) { table_[index(kind, axes)] = line; }
  double operator()(StepKind kind, program::AxisSet axes, Bytes local) const {
    const Line& line = table_[index(kind, axes)];
    const double moved = line.rate * local.value();
    return moved < line.floor ? line.floor : moved;
  }
  /// True if no collective has a floor: costs are proportional to the bytes.
  bool proportional() const;
  /// The same price for every collective.
  bool same_lines(const Prices& other) const { return axes_ == other.axes_ && table_ == other.table_; }
  /// Cost of one FLOP on a device; compute and communication count as overlapped. Zero when bytes are the price.
  double per_flop = 0;

 private:
  std::size_t index(StepKind kind, program::AxisSet axes) const {
    return static_cast<std::size_t>(kind) << axes_ | axes;
  }
  std::size_t axes_;
  std::vector<Line> table_;
};

/// Bytes one device receives: gather (n-1) local, reduce-scatter and all-to-all (n-1)/n local, all-reduce twice that,
/// permute local, slice none.
Bytes received_bytes(const program::Mesh& mesh, StepKind kind, program::AxisSet axes, Bytes local);

Prices byte_prices(const program::Mesh& mesh);

struct Plan {
  std::vector<PlanStep> steps;
  double cost = 0;   ///< communication, in the unit of the prices
  double total = 0;  ///< max of communication and compute
  Flops flops;       ///< of the local product, per device
  Bytes bytes;       ///< received by one device over all steps
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
    StepKind kind = StepKind::slice;
    program::AxisSet axes = 0;
    program::Sharding before, after;
    double cost = 0;
  };
  std::vector<Move> left, right, result;                 ///< steps of each tensor, in order
  program::Sharding left_factor, right_factor, product;  ///< of the shards that are multiplied
  double cost = 0;                                       ///< communication, in the unit of the prices
  double total = 0;                                      ///< max of communication and compute
  Flops flops;                                           ///< of the local product, per device
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
  std::vector<std::vector<int>> parts;  ///< of each axis of the original, major first

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

/// The cheapest sequence of steps from one sharding of a tensor to another.
Plan plan_reshard(const program::Mesh& mesh, const program::Tensor& from, const program::Sharding& to,
                  const Prices& prices);

/// The adjoint of a single step: gather and reduce-scatter are each other's, all-to-all and permute are undone, a
/// slice is gathered, and an all-reduce of partial sums passes a replicated gradient through. Steps of a whole plan are
/// undone together by plan_backward (sharding/backward.h), which knows where copies of a gradient agree.
PlanStep transpose(const PlanStep& step, const program::Mesh& mesh);

/// "C[I_X, K] = AllReduce_Y(C[I_X, K] {U_Y})"
std::string step_text(const program::Mesh& mesh, const PlanStep& step);

}  // namespace assay::plan
