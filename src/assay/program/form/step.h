// A step of a program or of a plan: one operation on numbered tensors.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "assay/base/units.h"
#include "assay/program/form/collective.h"
#include "assay/program/form/functions.h"
#include "assay/program/form/mesh.h"
#include "assay/program/form/ops.h"
#include "assay/program/form/sharding.h"

namespace assay::program {

/// How urgently the result of a step is needed.
enum class Urgency : std::uint8_t {
  critical,   ///< the next step waits for it
  ahead,      ///< can be prefetched: gathering weights
  afterwards  ///< nothing in the pass waits for it: reducing weight gradients
};

struct alignas(16) Step {  // 64 bytes, so that indexing is a shift
  Op op = Op::product;
  Urgency urgency = Urgency::critical;
  bool is_recomputed = false;  ///< forward work recomputed in the backward pass
  bool once = false;           ///< done per optimizer step, not per microbatch
  AxisSet axes = 0;            ///< axes of a collective or a slice
  std::array<std::int16_t, 8> in{-1, -1, -1, -1, -1, -1, -1, -1};
  std::array<std::int16_t, 7> out{-1, -1, -1, -1, -1, -1, -1};
  /// Attention: index in `attentions`; pick: in `candidates`; scan: in `scans`; product of experts: in `expert_loads`;
  /// norm: groups that are normalised separately; rotate: dimensions that turn, if not all; shift: 0 if a server keeps
  /// the last tokens of sequences; map: the function; softmax, chunk, put: the dimension; permute: index in
  /// `permutations`, if it is not the one between two shardings.
  std::int16_t detail = -1;
  Flops flops;              ///< on one device
  Bytes bytes;              ///< read and written on one device, or received over the network by a collective
  bool is_centred = false;  ///< norms only: subtracts the mean
  Collective collective = Collective::all_gather;  ///< the kind, if the operation is a collective
  /// Activation: the function, a model::Activation; attention: a model::JoinedProjection; rotate: a model::Rotation;
  /// loss: a model::Logits; norm: 1 where libraries write it as single operations; all-reduce: 1 where it takes the
  /// largest elements instead of sums.
  std::uint8_t composed = 0;
  bool is_joined = false;      ///< activations only: gate and input are halves of one tensor
  std::int32_t repeated = -1;  ///< the step of the forward pass that is recomputed

  bool is(Collective kind) const { return op == Op::collective && collective == kind; }
  bool takes_largest() const { return is(Collective::all_reduce) && composed == 1; }
};
static_assert(sizeof(Step) == 64);

/// The name of a step's operation, or of its collective: "product", "all-gather".
inline std::string_view name(const Step& step) {
  if (step.op == Op::map) return facts(static_cast<Function>(step.detail)).name;
  return is_collective(step.op) ? name(step.collective) : name(step.op);
}

/// A step that moves a tensor from one sharding to another: a collective, or nothing but a slice.
inline Step movement(std::optional<Collective> collective, AxisSet axes, int from, int to) {
  Step step;
  step.op = collective ? Op::collective : Op::slice;
  if (collective) step.collective = *collective;
  step.axes = axes;
  step.in[0] = static_cast<std::int16_t>(from);
  step.out[0] = static_cast<std::int16_t>(to);
  return step;
}
/// Bytes that a device receives in a movement over `ways` devices, from the bytes that it holds before.
inline Bytes received_bytes(const Step& step, double ways, Bytes before) {
  return is_collective(step.op) ? received_share(step.collective, ways) * before : Bytes(0);
}

/// One line: "Q[B_X, S, N_Y, H] = H[B_X, S, D] ·D W_q[D, N_Y, H]", "C[I_X, K] = AllReduce_Y(C[I_X, K] {U_Y})".
std::string step_text(const Mesh& mesh, std::span<const Tensor> tensors, const Step& step);
/// One line for tensors that a function gives; `contracted` names the dimensions that a product sums over.
std::string step_text(const Mesh& mesh, const std::function<Tensor(int)>& tensor, std::string_view contracted,
                      const Step& step);

}  // namespace assay::program
