// Bytes of the tensors around steps, as profiles count them.
#include "assay/base/index.h"
#include "assay/predict/training/layer_cost.h"

namespace assay::training {
namespace {

/// Dropped probabilities and their mask of one byte, over the probabilities (two bytes).
constexpr double dropped_copies = 1.5;

}  // namespace

template <class N>
DropoutBytesOf<N> dropout_bytes(const N& num, const program::Program& program, const program::Block& forward) {
  DropoutBytesOf<N> sum;
  for (const program::Step& step : program.steps_of(forward)) {
    if (step.op == program::Op::add && program.tensor(step.out[0]).tensor_class == program::TensorClass::residual)
      sum.residual = sum.residual + program::local_elements(num, program, program.tensor(step.out[0])) *
                                        num.given("bytes of a mask", storage(Dtype::int8, 1.0), name(Dtype::int8));
    if (const int scores = program::plain_scores(program, step); step.op == program::Op::attention && scores >= 0)
      sum.attention = sum.attention + num.given("dropped copies", dropped_copies, "probabilities and their mask") *
                                          program::named_bytes(num, program, scores);
  }
  return sum;
}

template <class N, class Ids>
NumberOf<N, Bytes> bytes_of(const N& num, const program::Program& program, const Ids& ids) {
  NumberOf<N, Bytes> sum{};
  for (const int id : ids)
    if (id >= 0 && !program::is_weight(program.tensor(id))) sum = sum + program::named_bytes(num, program, id);
  return sum;
}

template <class N>
NumberOf<N, Bytes> bytes_around(const N& num, const program::Program& program, const program::Step& step) {
  return bytes_of(num, program, step.in) + bytes_made(num, program, step);
}

template <class N>
NumberOf<N, Bytes> bytes_made(const N& num, const program::Program& program, const program::Step& step) {
  return bytes_of(num, program, step.out);
}

template <class N>
NumberOf<N, Bytes> gathered_bytes(const N& num, const program::Program& program, const program::Block& forward) {
  NumberOf<N, Bytes> sum{};
  for (const program::Step& step : program.steps_of(forward))
    for (const int id : step.out)
      if (id >= 0 && program::is_weight(program.tensor(id)) && program.tensor(id).is_kept)
        sum = sum + program::named_bytes(num, program, id);
  return sum;
}

#define ASSAY_INSTANTIATE(N)                                                                          \
  template DropoutBytesOf<N> dropout_bytes(const N&, const program::Program&, const program::Block&); \
  template NumberOf<N, Bytes> bytes_around(const N&, const program::Program&, const program::Step&);  \
  template NumberOf<N, Bytes> bytes_made(const N&, const program::Program&, const program::Step&);    \
  template NumberOf<N, Bytes> gathered_bytes(const N&, const program::Program&, const program::Block&);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::training
