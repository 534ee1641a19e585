// Work of steps on matrix units other than products. Written once over a number policy: programs count it when they are
// built, explanations derive it.
#include "assay/base/index.h"
#include "assay/program/lower/layers/layers.h"

namespace assay::lower {
namespace {

/// FLOP of a product of each index head of a query with each candidate, and of their weighted sum.
template <class N>
NumberOf<N, Flops> pick_flops(const N& num, const program::Program& program, const program::Step& step) {
  const program::ProgramTensor& q = program.tensor(step.in[0]);
  return multiply_and_add(num) * num.named("scores", program::candidate_scores(num, program, step)) *
         num.given("elements of index heads", static_cast<double>(q.dims[2].size * (q.dims[3].size + 1)),
                   "heads x (index dim + 1)");
}

template <class N>
NumberOf<N, Flops> scan_flops(const N& num, const program::Program& program, const program::ProgramTensor& made,
                              const program::Step& step) {
  const program::ScanShape& scan = program.scans[at(step.detail)];
  return num.given("FLOP of a cell", scan.per_cell, scan.formula) * program::local_elements(num, program, made) *
         num.given("cells of a channel", scan.cells, "key dim");
}

template <class N>
NumberOf<N, Flops> convolution_flops(const N& num, const program::Program& program, const program::ProgramTensor& made,
                                     const program::ProgramTensor& kernel) {
  return multiply_and_add(num) *
         num.given("convolution", static_cast<double>(kernel.dims[at(kernel.rank - 1)].size),
                   "tokens that it reaches over") *
         program::local_elements(num, program, made);
}

}  // namespace

template <class N>
NumberOf<N, Flops> arithmetic(const N& num, const program::Program& program, const program::Step& step) {
  const auto gradients = [&](const NumberOf<N, Flops>& forward) {
    return num.given("gradients", 2.0, "of the result and of its inputs, each like the forward pass") * forward;
  };
  using enum program::Op;
  switch (step.op) {
    case attention:
    case attention_grad:
      if (step.detail >= 0) return attention_flops(num, program, step);
      break;
    case pick:
      return pick_flops(num, program, step);
    case scan:
      return scan_flops(num, program, program.tensor(step.out[0]), step);
    case scan_grad:
      return gradients(scan_flops(num, program, program.tensor(step.in[0]), step));
    case convolve:
      return convolution_flops(num, program, program.tensor(step.out[0]), program.tensor(step.in[1]));
    case convolve_grad:
      return gradients(convolution_flops(num, program, program.tensor(step.in[0]), program.tensor(step.in[2])));
    default:
      break;
  }
  return {};
}
template Flops arithmetic(const Plain&, const program::Program&, const program::Step&);
template NumberOf<Traced, Flops> arithmetic(const Traced&, const program::Program&, const program::Step&);

}  // namespace assay::lower
