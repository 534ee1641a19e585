// Bytes that a step reads and writes on one device, from its tensors. Written once over a number policy: programs count
// them when they are built, explanations derive them.
#pragma once
#include <string>

#include "assay/program/program.h"

namespace assay::program {

/// A tensor on one device, under its name.
template <class N>
NumberOf<N, Bytes> named_bytes(const N& num, const Program& program, int id) {
  const ProgramTensor& tensor = program.tensor(id);
  if constexpr (N::traced)
    return num.named((tensor.is_gradient ? "d" : "") + std::string(tensor.name), local_bytes(num, program, tensor));
  else
    return local_bytes(tensor, tensor.elements);
}

/// The probabilities that plain attention writes to memory, or -1.
inline int plain_scores(const Program& program, const Step& step) {
  const bool attends = step.op == Op::attention || step.op == Op::attention_grad;
  if (!attends || step.detail < 0 || program.attentions[static_cast<std::size_t>(step.detail)].flash) return -1;
  return step.op == Op::attention ? step.out[1] : step.in[5];
}

/// Operands and results once each, but of an embedding one row for each token instead of the table. Scores of plain
/// attention pass through memory more often: they are written, read, written as probabilities (counted as a result) and
/// read; backward probabilities are read, their gradients written and read, those of scores written, read and read.
template <class N>
NumberOf<N, Bytes> traffic(const N& num, const Program& program, const Step& step) {
  const auto bytes = [&](int id) { return named_bytes(num, program, id); };
  if (step.op == Op::embed) return bytes(step.in[0]) + 2.0 * bytes(step.out[0]);
  NumberOf<N, Bytes> sum{};
  for (const int id : step.in)
    if (id >= 0) sum = sum + bytes(id);
  for (const int id : step.out)
    if (id >= 0) sum = sum + bytes(id);
  if (const int scores = plain_scores(program, step); scores >= 0)
    sum = sum + (step.op == Op::attention ? 3.0 : 5.0) * bytes(scores);
  return sum;
}

}  // namespace assay::program
