#include "assay/schedule/joined_products.h"

namespace assay {
namespace {

bool is_weight(const ProgramTensor& tensor) {
  return tensor.tensor_class == TensorClass::weight || tensor.tensor_class == TensorClass::used_weight;
}

}  // namespace

bool JoinedProducts::take(const Step& step) {
  if (step.op != Op::product || !rates_.matmul) return false;
  const ProgramTensor &a = program_.tensor(step.in[0]), &b = program_.tensor(step.in[1]),
                      &out = program_.tensor(step.out[0]);
  for (const ProgramTensor* tensor : {&a, &b, &out})  // experts are ragged, routers keep their precision
    if (tensor->find(LogicalDim::experts) >= 0 || tensor->find(LogicalDim::other) >= 0) return false;
  if (!(rates_.rate(a.dtype).value() > 0.0) || !(matmul_share(*rates_.matmul, a.dtype) > 0.0)) return false;
  const Kind kind = !is_weight(b) ? Kind::of_weight : out.is_gradient ? Kind::of_input : Kind::forward;
  if (kind == Kind::of_weight && is_weight(a)) return false;
  MatmulShape shape = product_shape(program_, step);
  const int reads = kind == Kind::of_input ? step.in[2] : step.in[0];
  if (kind != Kind::of_input && step.in[2] >= 0) return false;  // adds to an earlier sum
  for (Joint& joint : joints_) {
    if (reads < 0 || joint.kind != kind || joint.is_repeated != step.is_repeated || joint.reads != reads ||
        joint.dtype != a.dtype || joint.shape.m != shape.m || joint.shape.batch != shape.batch)
      continue;
    if (kind == Kind::of_input) {
      if (joint.shape.n != shape.n) continue;
      joint.shape.k += shape.k, joint.reads = step.out[0];
      joint.shape.bytes += shape.bytes - 2.0 * local_bytes(program_, out);  // the sum stays inside
    } else {
      if (joint.shape.k != shape.k) continue;
      joint.shape.n += shape.n;
      joint.shape.bytes += shape.bytes - local_bytes(program_, a);
    }
    return true;
  }
  if (kind == Kind::of_input && reads >= 0) return false;
  joints_.push_back({kind, step.is_repeated, kind == Kind::of_input ? step.out[0] : step.in[0], a.dtype, shape});
  return true;
}

std::vector<JoinedProducts::Product> JoinedProducts::products() const {
  std::vector<Product> out;
  for (const Joint& joint : joints_)
    out.push_back({matmul_time(*rates_.matmul, rates_.cores, rates_.rate(joint.dtype),
                               matmul_share(*rates_.matmul, joint.dtype), joint.shape, rates_.regime)
                       .total,
                   joint.is_repeated, joint.kind == Kind::of_weight});
  return out;
}

}  // namespace assay
