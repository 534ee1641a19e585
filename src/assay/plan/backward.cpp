#include "assay/plan/backward.h"

#include <algorithm>

#include "assay/plan/correspondence.h"

namespace assay::plan {
namespace {

program::Sharding without_partial_sums(program::Sharding sharding) {
  sharding.unreduced = 0;
  return sharding;
}

program::Tensor gradient_of(const program::Tensor& tensor, const program::Sharding& sharding) {
  program::Tensor gradient = tensor;
  gradient.name = "d" + tensor.name;
  gradient.sharding = sharding;
  return gradient;
}

/// A gradient on its way back: its sharding, the axes over which it is a partial sum, and the steps so far.
class Gradient {
 public:
  Gradient(const program::Mesh& mesh, const program::Tensor& tensor, const program::Sharding& start)
      : mesh_(mesh), tensor_(gradient_of(tensor, start)) {}

  void undo(const PlanStep& step) {
    const program::Sharding to = without_partial_sums(step.before.sharding);
    switch (step.kind) {
      case StepKind::all_gather:
        return cut(to);
      case StepKind::slice:
      case StepKind::reduce_scatter:
        return move(StepKind::all_gather, step.axes, partial(to));
      case StepKind::all_reduce:
        return sum(step.axes);
      case StepKind::permute:
        // Devices that exchange axes cannot also hold different addends over them.
        sum(to.split_axes() ^ at().split_axes());
        return move(StepKind::permute, step.axes, partial(to));
      case StepKind::all_to_all:
        return move(StepKind::all_to_all, step.axes, partial(to));
      case StepKind::multiply:
        break;
    }
    throw InternalError("a product cannot be undone by one step");
  }

  /// Adds up the partial sums over some axes, if there are any.
  void sum(program::AxisSet axes) {
    axes &= at().unreduced;
    if (axes == 0) return;
    program::Sharding to = at();
    to.unreduced &= ~axes;
    move(StepKind::all_reduce, axes, to);
  }

  std::vector<PlanStep> take() { return std::move(steps_); }

 private:
  const program::Sharding& at() const { return tensor_.sharding; }
  program::Sharding partial(program::Sharding to) const {
    to.unreduced = at().unreduced;
    return to;
  }

  /// Splits by the inner axes that `to` has: as a slice where copies agree, by a reduce-scatter where they are partial
  /// sums. Adjacent steps of one kind are merged; slices of other dimensions go first, as they make the tensor smaller.
  void cut(const program::Sharding& to) {
    for (const bool agree : {true, false})
      for (std::size_t d = 0; d < tensor_.dims.size(); ++d) cut_dimension(to, d, agree);
  }

  void cut_dimension(const program::Sharding& to, std::size_t d, bool slices_only) {
    const std::vector<int> axes = to.dims[d].axes();
    for (std::size_t i = at().dims[d].axes().size(); i < axes.size();) {
      const bool sums = (at().unreduced & program::axis_bit(axes[i])) != 0;
      if (sums && slices_only) return;
      program::Sharding next = at();
      program::AxisSet moved = 0;
      for (; i < axes.size() && ((at().unreduced & program::axis_bit(axes[i])) != 0) == sums; ++i) {
        next.dims[d] = next.dims[d].pushed(axes[i]);
        next.unreduced &= ~program::axis_bit(axes[i]);
        moved |= program::axis_bit(axes[i]);
      }
      move(sums ? StepKind::reduce_scatter : StepKind::slice, moved, next);
    }
  }

  void move(StepKind kind, program::AxisSet axes, const program::Sharding& to) {
    PlanStep step{kind, axes, tensor_, std::nullopt, tensor_, {}, 0.0};
    step.after.sharding = to;
    step.bytes = received_bytes(mesh_, kind, axes, program::local_bytes(mesh_, tensor_));
    tensor_.sharding = to;
    steps_.push_back(std::move(step));
  }

  const program::Mesh& mesh_;
  program::Tensor tensor_;
  std::vector<PlanStep> steps_;
};

/// True if steps [first, last) lead from one sharding to the other.
bool leads(const Plan& plan, std::size_t first, std::size_t last, program::Sharding at, const program::Sharding& to) {
  for (std::size_t i = first; i < last; ++i) {
    if (!(plan.steps[i].before.sharding == at)) return false;
    at = plan.steps[i].after.sharding;
  }
  return at == to;
}

/// The sharding of one operand's gradient after the local product: like the forward factor, partial over the
/// axes that split a summed dimension.
program::Sharding summed_gradient(const Correspondence& c, bool left, const program::Sharding& factor,
                                  const program::Sharding& other) {
  program::Sharding gradient = without_partial_sums(factor);
  for (const auto& row : c.rows())
    if ((left ? row.left : row.right) < 0) gradient.unreduced |= list_of(other, left ? row.right : row.left).set();
  gradient.unreduced |= other.unreduced;  // a product with addends gives addends
  return gradient;
}

}  // namespace

BackwardPlan plan_backward(const program::Mesh& mesh, const ShardingExpression& e, const Plan& forward) {
  const auto found = std::find_if(forward.steps.begin(), forward.steps.end(),
                                  [](const PlanStep& step) { return step.kind == StepKind::multiply; });
  if (found == forward.steps.end()) throw InternalError("a plan does not multiply");
  const auto multiply = static_cast<std::size_t>(found - forward.steps.begin());
  const PlanStep& product = *found;
  const program::Sharding left = without_unit_axes(mesh, e.left.sharding),
                          right = without_unit_axes(mesh, e.right->sharding);
  // The left operand's steps come first; where both operands look alike, any division that fits is right.
  std::size_t middle = 0;
  while (middle <= multiply && !(leads(forward, 0, middle, left, product.before.sharding) &&
                                 leads(forward, middle, multiply, right, product.second->sharding)))
    ++middle;
  if (middle > multiply) throw InternalError("a plan's steps do not follow each other");

  BackwardPlan back;
  Gradient from_result(mesh, product.after, without_partial_sums(without_unit_axes(mesh, e.result->sharding)));
  for (std::size_t i = forward.steps.size(); i-- > multiply + 1;) from_result.undo(forward.steps[i]);
  back.result = from_result.take();

  const Correspondence c = correspond(e);
  const program::Tensor arriving = gradient_of(product.after, without_partial_sums(product.after.sharding));
  const auto operand = [&](bool is_left, PlanStep& step, std::vector<PlanStep>& steps) {
    const program::Tensor& factor = is_left ? product.before : *product.second;
    const program::Tensor& other = is_left ? *product.second : product.before;
    const program::Sharding summed = summed_gradient(c, is_left, factor.sharding, other.sharding);
    step = {StepKind::multiply,
            0,
            is_left ? arriving : other,
            is_left ? other : arriving,
            gradient_of(factor, summed),
            {},
            0.0};
    Gradient gradient(mesh, factor, summed);
    for (std::size_t i = is_left ? middle : multiply; i-- > (is_left ? 0 : middle);) gradient.undo(forward.steps[i]);
    gradient.sum(~program::AxisSet{0});
    steps = gradient.take();
  };
  operand(true, back.left_product, back.left);
  operand(false, back.right_product, back.right);
  back.flops = 2.0 * forward.flops;
  for (const auto* steps : {&back.result, &back.left, &back.right})
    for (const PlanStep& step : *steps) back.bytes += step.bytes;
  return back;
}

std::vector<PlanStep> reshard_backward(const program::Mesh& mesh, const Plan& forward) {
  if (forward.steps.empty()) return {};
  const program::Tensor& end = forward.steps.back().after;
  Gradient gradient(mesh, end, without_partial_sums(end.sharding));
  for (std::size_t i = forward.steps.size(); i-- > 0;) gradient.undo(forward.steps[i]);
  gradient.sum(~program::AxisSet{0});
  return gradient.take();
}

}  // namespace assay::plan
