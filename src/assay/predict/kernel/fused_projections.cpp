#include "assay/predict/kernel/fused_projections.h"

#include <algorithm>

namespace assay::kernel {
std::optional<JoinedProducts::Part> JoinedProducts::part_of(const KernelRates& rates, const program::Program& program,
                                                            const program::Step& step) {
  using enum Part::Kind;
  if (step.op != program::Op::product || !rates.matmul) return std::nullopt;
  const program::ProgramTensor &a = program.tensor(step.in[0]), &b = program.tensor(step.in[1]),
                               &out = program.tensor(step.out[0]);
  bool of_adapter = false;
  for (const program::ProgramTensor* tensor : {&a, &b, &out}) {  // experts are ragged, routers keep their precision
    if (tensor->find(model::LogicalDim::experts) >= 0 || tensor->find(model::LogicalDim::other) >= 0)
      return std::nullopt;
    of_adapter |= tensor->find(model::LogicalDim::adapter) >= 0;
  }
  if (!(rates.rate(a.dtype).value() > 0.0) || !(matmul_share(*rates.matmul, a.dtype) > 0.0)) return std::nullopt;
  const Part::Kind kind = !program::is_weight(b) ? of_weight : out.is_gradient ? of_input : forward;
  if (kind == of_weight && program::is_weight(a)) return std::nullopt;
  if (kind != of_input && step.in[2] >= 0) return std::nullopt;  // adds to an earlier sum
  MatmulShape shape = product_shape(rates, program, step);
  shape.added = gradient_buffer(Plain{}, program, step);
  const int reads = kind == of_input ? step.in[2] : step.in[0], next = kind == of_input ? step.out[0] : step.in[0];
  return Part{
      kind, step.is_recomputed, of_adapter, a.dtype, reads, next, shape, saved_by_fusing(Plain{}, program, step, kind)};
}

bool JoinedProducts::take(const Part& part) {
  for (last_ = 0; last_ < joints_.size(); ++last_) {
    Part& joint = joints_[last_];
    if (part.reads < 0 || joint.kind != part.kind || joint.is_recomputed != part.is_recomputed ||
        joint.of_adapter != part.of_adapter || joint.next != part.reads || joint.dtype != part.dtype ||
        joint.shape.m != part.shape.m || joint.shape.batch != part.shape.batch)
      continue;
    if (part.kind == Part::Kind::of_input ? joint.shape.n != part.shape.n : joint.shape.k != part.shape.k) continue;
    const auto sizes = [](const MatmulShape& of) { return FusedSizes<Plain>{of.n, of.k, of.bytes, of.added}; };
    FusedSizes<Plain> fused = sizes(joint.shape);
    fused.fuse(part.kind, sizes(part.shape), part.shared);
    joint.shape.n = fused.n;
    joint.shape.k = fused.k;
    joint.shape.bytes = fused.bytes;
    joint.shape.added = fused.added;
    joint.next = part.next;
    joint.shape.operand_rows = std::min(joint.shape.operand_rows, part.shape.operand_rows);
    joint.shape.result_rows = std::min(joint.shape.result_rows, part.shape.result_rows);
    return true;
  }
  if (part.kind == Part::Kind::of_input && part.reads >= 0) return false;
  joints_.push_back(part);
  return true;
}

}  // namespace assay::kernel
