#include "assay/plan/backward.h"

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

/// A gradient on its way back through a plan's steps, whose transposes it adds to another plan.
class Gradient {
 public:
  Gradient(const program::Mesh& mesh, Plan& plan, int start) : mesh_(mesh), plan_(plan), at_(start) {}

  /// The adjoint of a step that moved a tensor from this sharding.
  void undo(const program::Step& step, const program::Sharding& before) {
    const program::Sharding to = without_partial_sums(before);
    if (step.op == program::Op::slice) return move(program::Collective::all_gather, step.axes, partial(to));
    switch (step.collective) {
      case program::Collective::all_gather:
        return cut(to);
      case program::Collective::reduce_scatter:
        return move(program::Collective::all_gather, step.axes, partial(to));
      case program::Collective::all_reduce:
        return sum(step.axes);
      case program::Collective::permute:
        // Devices that exchange axes cannot also hold different addends over them.
        sum(to.split_axes() ^ sharding().split_axes());
        return move(step.collective, step.axes, partial(to));
      case program::Collective::all_to_all:
        return move(step.collective, step.axes, partial(to));
      default:
        throw InternalError("this collective does not reshard");
    }
  }

  /// Adds up the partial sums over some axes, if there are any.
  void sum(program::AxisSet axes) {
    axes &= sharding().unreduced;
    if (axes == 0) return;
    program::Sharding to = sharding();
    to.unreduced &= ~axes;
    move(program::Collective::all_reduce, axes, to);
  }

  int at() const { return at_; }

 private:
  const program::Sharding& sharding() const { return plan_.tensor(at_).sharding; }
  program::Sharding partial(program::Sharding to) const {
    to.unreduced = sharding().unreduced;
    return to;
  }

  /// Splits by the inner axes that `to` has: as a slice where copies agree, by a reduce-scatter where they are partial
  /// sums. Adjacent steps of one kind are merged; slices of other dimensions go first, as they make the tensor smaller.
  void cut(const program::Sharding& to) {
    for (const bool agree : {true, false})
      for (std::size_t d = 0; d < plan_.tensor(at_).dims.size(); ++d) cut_dimension(to, d, agree);
  }

  void cut_dimension(const program::Sharding& to, std::size_t d, bool slices_only) {
    const std::vector<int> axes = to.dims[d].axes();
    for (std::size_t i = sharding().dims[d].axes().size(); i < axes.size();) {
      const bool sums = (sharding().unreduced & program::axis_bit(axes[i])) != 0;
      if (sums && slices_only) return;
      program::Sharding next = sharding();
      program::AxisSet moved = 0;
      for (; i < axes.size() && ((sharding().unreduced & program::axis_bit(axes[i])) != 0) == sums; ++i) {
        next.dims[d] = next.dims[d].pushed(axes[i]);
        next.unreduced &= ~program::axis_bit(axes[i]);
        moved |= program::axis_bit(axes[i]);
      }
      move(sums ? MoveKind(program::Collective::reduce_scatter) : std::nullopt, moved, next);
    }
  }

  void move(MoveKind kind, program::AxisSet axes, const program::Sharding& to) {
    at_ = plan_.move(mesh_, at_, kind, axes, to);
  }

  const program::Mesh& mesh_;
  Plan& plan_;
  int at_;
};

/// The step that makes a tensor, or nothing for an operand.
const program::Step* maker(const Plan& plan, int tensor) {
  for (const program::Step& step : plan.steps)
    if (step.out[0] == tensor) return &step;
  return nullptr;
}

/// Undoes the movements that made a tensor of the forward plan; returns where they start.
int undo_movements(const Plan& forward, int tensor, Gradient& gradient) {
  const program::Step* step = maker(forward, tensor);
  for (; step && program::is_movement(step->op); step = maker(forward, tensor)) {
    tensor = step->in[0];
    gradient.undo(*step, forward.tensor(tensor).sharding);
  }
  return tensor;
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
  BackwardPlan back;
  Plan& plan = back.plan;
  const program::Sharding end = without_partial_sums(without_unit_axes(mesh, e.result->sharding));
  back.flowing = plan.add(gradient_of(*e.result, end));
  Gradient from_result(mesh, plan, back.flowing);
  const program::Step* const product = maker(forward, undo_movements(forward, forward.last(), from_result));
  if (!product || product->op != program::Op::product) throw InternalError("a plan does not multiply");
  const int arriving = from_result.at();
  const program::Tensor &left = forward.tensor(product->in[0]), &right = forward.tensor(product->in[1]);
  back.left_factor = plan.add(left);
  back.right_factor = plan.add(right);

  const Correspondence c = correspond(e);
  const auto finish = [&](int summed, int factor) {
    Gradient gradient(mesh, plan, summed);
    undo_movements(forward, factor, gradient);
    gradient.sum(~program::AxisSet{0});
    return gradient.at();
  };
  const program::Sharding of_left = summed_gradient(c, true, left.sharding, right.sharding),
                          of_right = summed_gradient(c, false, right.sharding, left.sharding);
  back.left_gradient =
      finish(plan.multiply(mesh, arriving, back.right_factor, gradient_of(left, of_left)), product->in[0]);
  back.right_gradient =
      finish(plan.multiply(mesh, back.left_factor, arriving, gradient_of(right, of_right)), product->in[1]);
  return back;
}

Plan reshard_backward(const program::Mesh& mesh, const Plan& forward) {
  Plan plan;
  const program::Tensor& end = forward.tensor(forward.last());
  Gradient gradient(mesh, plan, plan.add(gradient_of(end, without_partial_sums(end.sharding))));
  undo_movements(forward, forward.last(), gradient);
  gradient.sum(~program::AxisSet{0});
  return plan;
}

}  // namespace assay::plan
