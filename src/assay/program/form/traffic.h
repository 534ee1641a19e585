// Bytes that a step reads and writes on one device, from its tensors. Written once over a number policy: programs count
// them when they are built, explanations derive them.
#pragma once
#include <string>

#include "assay/program/form/program.h"

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

/// Bytes of so many elements in a plain format.
template <class N>
NumberOf<N, Bytes> stored(const N& num, Dtype format, const NumberOf<N, double>& elements) {
  if constexpr (N::traced)
    return elements * num.given("bytes of an element", storage(format, 1.0), name(format));
  else
    return storage(format, elements);
}

/// Number of scores in a step that picks keys: each query with all candidates.
template <class N>
NumberOf<N, double> candidate_scores(const N& num, const Program& program, const Step& step) {
  const ProgramTensor& picked = program.tensor(step.out[0]);
  return local_extent(num, program, picked, 0) * local_extent(num, program, picked, 1) *
         num.given("candidates per query", program.candidates[static_cast<std::size_t>(step.detail)].mean_keys(),
                   "on average");
}

/// Whether each query reads the keys that it picked, instead of all queries reading all keys once.
inline bool reads_picks(const Program& program, const Step& step) {
  if (step.op != Op::attention || step.detail < 0 || step.in[2] >= 0 || step.in[4] < 0) return false;
  const AttentionShape& shape = program.attentions[static_cast<std::size_t>(step.detail)];
  return shape.picks > 0 && shape.picks < shape.keys;
}

/// Bytes that a step moves beyond reading or writing each of its tensors once; nothing for most.
template <class N>
NumberOf<N, Bytes> traffic_beyond(const N& num, const Program& program, const Step& step) {
  const auto twice = [&](std::string_view name, const NumberOf<N, Bytes>& bytes) {
    return num.given("read and written", 2.0, "once each") * num.named(name, bytes);
  };
  if (step.op == Op::scan && step.detail >= 0) {
    const ScanShape& scan = program.scans[static_cast<std::size_t>(step.detail)];
    if (scan.kept == 0.0) return {};
    const ProgramTensor& made = program.tensor(step.out[0]);
    return twice("states", stored(num, Dtype::fp32,
                                  local_elements(num, program, made) / local_extent(num, program, made, 1) *
                                      num.given("numbers of a channel", scan.kept, "of the state of a sequence")));
  }
  if (step.op == Op::shift && step.detail >= 0)
    return num.named("last tokens", num.given("read and written", 2.0, "once each") *
                                        named_bytes(num, program, step.in[0]) /
                                        local_extent(num, program, program.tensor(step.in[0]), 1));
  if (step.op == Op::pick && step.detail >= 0)
    return twice("scores", stored(num, Dtype::fp32, candidate_scores(num, program, step)));
  if (reads_picks(program, step)) {
    const ProgramTensor &q = program.tensor(step.in[0]), &k = program.tensor(step.in[1]);
    const AttentionShape& shape = program.attentions[static_cast<std::size_t>(step.detail)];
    const auto picked =
        local_extent(num, program, q, 0) * local_extent(num, program, q, 1) *
        num.given("keys per query", shape.flash ? shape.mean_keys() : static_cast<double>(shape.keys), "on average") /
        num.given("devices with parts of the keys", program.ways(program.tensor(step.out[0]).sharding.unreduced),
                  "that share a query") *
        num.given("elements of a key", static_cast<double>(k.dims[2].size), "which all heads share");
    return num.named("picked keys", stored(num, k.dtype, picked)) - named_bytes(num, program, step.in[1]);
  }
  return {};
}

/// Bytes of a product of experts: slots that hold tokens, and the weights of the experts that any token picked.
template <class N>
NumberOf<N, Bytes> expert_traffic(const N& num, const Program& program, const Step& step) {
  const ExpertLoad& load = program.expert_loads[static_cast<std::size_t>(step.detail)];
  NumberOf<N, Bytes> tokens{};
  for (std::size_t i = 0; i < step.in.size(); ++i)
    if (step.in[i] >= 0 && i != 1) tokens = tokens + named_bytes(num, program, step.in[i]);
  tokens = tokens + named_bytes(num, program, step.out[0]);
  return num.named("filled slots", load.filled(num)) * tokens +
         num.given("experts with tokens", load.touched, "share of those on the device") *
             named_bytes(num, program, step.in[1]);
}

/// Bytes that a step moves: operands and results once each. An embedding reads one row for each token instead of the
/// table, learned positions likewise; a cache takes in new tokens only. Scores of plain attention pass through memory
/// more often: they are written, read, written as probabilities (counted as a result) and read; backward, probabilities
/// are read, their gradients written and read, those of scores written, read and read.
template <class N>
NumberOf<N, Bytes> traffic(const N& num, const Program& program, const Step& step) {
  const auto bytes = [&](int id) { return named_bytes(num, program, id); };
  if (step.op == Op::embed) return bytes(step.in[0]) + 2.0 * bytes(step.out[0]);
  if (step.op == Op::edge) return 2.0 * bytes(step.out[0]);
  if (step.op == Op::product && step.detail >= 0) return expert_traffic(num, program, step);
  if (step.op == Op::cast && step.in[1] >= 0)
    return bytes(step.in[0]) +
           num.named("new tokens", stored(num, program.tensor(step.in[1]).dtype,
                                          local_elements(num, program, program.tensor(step.in[0]))));
  if (step.op == Op::place) {
    const ProgramTensor& rows = program.tensor(step.in[1]);
    return bytes(step.in[0]) + bytes(step.out[0]) +
           num.named("rows of the positions", stored(num, rows.dtype,
                                                     local_extent(num, program, program.tensor(step.out[0]), 1) *
                                                         local_extent(num, program, rows, 1)));
  }
  NumberOf<N, Bytes> sum{};
  for (const int id : step.in)
    if (id >= 0) sum = sum + bytes(id);
  for (const int id : step.out)
    if (id >= 0) sum = sum + bytes(id);
  if (const int scores = plain_scores(program, step); scores >= 0)
    sum = sum + (step.op == Op::attention ? 3.0 : 5.0) * bytes(scores);
  return sum + traffic_beyond(num, program, step);
}

}  // namespace assay::program
