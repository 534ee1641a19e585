// Operations of a program. Each is described by one row of a table, so that a new operation is a row here, a gradient
// rule in program/lower/ and a kernel in engine/; a missing piece does not compile.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::program {

/// The operation of a step. Gradients of products are products; gradients of collectives are collectives.
enum class Op : std::uint8_t {
  product,
  embed,
  embed_grad,
  place,  ///< adds the row of a token's position
  place_grad,
  bias_grad,  ///< sums a gradient over all but the bias's dimensions; adding a bias is part of a product or a sum
  norm,
  norm_grad,
  rotate,
  rotate_grad,
  attention,
  attention_grad,
  pick,  ///< selects the keys that queries attend to, by the scores of an index; has no gradient
  activate,
  activate_grad,
  gate,  ///< multiplies a row by one sigmoid
  gate_grad,
  add,
  split,
  split_grad,
  route,
  route_grad,
  dispatch,
  dispatch_grad,
  combine,
  combine_grad,
  scan,
  scan_grad,
  convolve,
  convolve_grad,
  edge,  ///< the last token of a sequence on each device
  edge_grad,
  shift,  ///< the previous token; for the first on a device, the last token of another device
  shift_grad,
  mix,  ///< x + weight (y - x), with a weight per channel, or per token and channel
  mix_grad,
  cast,
  loss_sums,
  loss,
  loss_grad,
  sample,
  map,  ///< a function of elements (program/form/functions.h, Step::detail); operands may lack dimensions of the result
  map_grad,
  sum,  ///< sums over the dimensions that the result lacks
  sum_grad,
  largest,  ///< the largest element over the dimensions that the result lacks
  largest_grad,
  softmax,  ///< softmax over the dimension Step::detail
  softmax_grad,
  view,  ///< other dimensions, other names or sizes, for the same elements of each device
  view_grad,
  chunk,  ///< one of the equal parts of the dimension Step::detail; the second input says which
  chunk_grad,
  put,  ///< the inverse of `chunk`: zeros outside one of the equal parts
  put_grad,
  update,
  slice,      ///< keeps a part of what a device has
  collective  ///< Step::collective says which
};
inline constexpr std::size_t op_count = 58;

/// How the backward pass differentiates an operation; program/lower/ has a function for each.
enum class GradientRule : std::uint8_t {
  none,       ///< no gradient passes through it
  per_input,  ///< one step computes the gradients of all inputs from the gradients of the results
  product,
  norm,
  attention,
  dispatch,
  embed,
  place,
  loss_sums,
  loss,
  pass_on,  ///< inputs have the gradient of the result
  reshard   ///< the gradient moves back to the input's sharding
};

/// The gradient of an operation.
struct OpGradient {
  GradientRule rule = GradientRule::none;
  std::optional<Op> op = {};  ///< the operation that computes it, if always the same
  bool reads_inputs = false;  ///< per_input only: reads the inputs in addition to the results' gradients
  bool is_linear = false;     ///< per_input only: partial sums may stay partial
};

/// How a step is priced: which kernel model it has, and how it behaves among other kernels.
enum class CostClass : std::uint8_t {
  product,
  attention,
  scan,
  element_wise,    ///< streams its tensors through memory once
  norm,            ///< streams, at a bandwidth of its own
  rotation,        ///< streams, as several kernels of a framework
  activation,      ///< streams, as several kernels where it is gated
  expert_traffic,  ///< streams tokens to and from their experts
  loss,
  cast,
  optimizer,
  free,       ///< takes no time
  collective  ///< moves data between devices
};

/// Kinds of forward results, each kept for the backward pass or recomputed.
enum class ForwardPart : std::uint8_t {
  norms,
  rotary,
  scores,                 ///< the other results of attention: probabilities, or the sums of flash attention
  attention,              ///< the result of attention, and the scores with it
  attention_products,     ///< including other mixers' products
  feed_forward_products,  ///< including experts' products
  second_products,        ///< every second product of a layer
  activations,            ///< activation functions and gates
  router,
  dispatch,    ///< tokens at their experts, and the returned results
  scans,       ///< state-space scans and convolutions
  residual,    ///< sums on the residual stream, and copies that are split or cast
  reductions,  ///< results summed over devices
  exchanges,   ///< results received from other devices
  unread,      ///< also results that no gradient reads: the last product of a layer and what follows it
};

/// FLOP outside matrix products, if proportional to one tensor; program/form/elementwise.cpp has the others.
struct ElementFlops {
  double per_result = 0;  ///< per element of the first result
  double per_input = 0;   ///< per element of the first input
};

/// All properties of an operation.
struct OpFacts {
  Op op;
  std::string_view name;  ///< as listed in programs
  OpGradient gradient;
  CostClass cost;
  ForwardPart part;  ///< part of its result in recomputation policies; for products and collectives, see parts_of()
  ElementFlops flops = {};
};

namespace ops {

inline constexpr OpGradient no_gradient{};
/// A gradient step that reads the gradients of the results, but not the inputs.
constexpr OpGradient from_results(Op op) { return {GradientRule::per_input, op}; }
constexpr OpGradient from_inputs(Op op) { return {GradientRule::per_input, op, true}; }
constexpr OpGradient linear(Op op, bool reads_inputs = false) {
  return {GradientRule::per_input, op, reads_inputs, true};
}
inline constexpr OpGradient resharded{GradientRule::reshard};

using enum CostClass;
using Part = ForwardPart;

// clang-format off
inline constexpr std::array<OpFacts, op_count> table{{
    {Op::product, "product", {GradientRule::product, Op::product}, product, Part::attention_products},
    {Op::embed, "embed", {GradientRule::embed, Op::embed_grad}, element_wise, Part::residual},
    {Op::embed_grad, "embed grad", no_gradient, element_wise, Part::residual, {.per_input = 1.0}},
    {Op::place, "place", {GradientRule::place, Op::place_grad}, element_wise, Part::residual, {.per_result = 1.0}},
    {Op::place_grad, "place grad", no_gradient, element_wise, Part::residual, {.per_input = 1.0}},
    {Op::bias_grad, "bias grad", no_gradient, element_wise, Part::residual, {.per_input = 1.0}},
    {Op::norm, "norm", {GradientRule::norm, Op::norm_grad}, norm, Part::norms},
    {Op::norm_grad, "norm grad", no_gradient, norm, Part::residual},
    {Op::rotate, "rotate", from_results(Op::rotate_grad), rotation, Part::rotary},
    {Op::rotate_grad, "rotate grad", no_gradient, rotation, Part::residual},
    {Op::attention, "attention", {GradientRule::attention, Op::attention_grad}, attention, Part::attention},
    {Op::attention_grad, "attention grad", no_gradient, attention, Part::residual},
    {Op::pick, "pick", no_gradient, element_wise, Part::residual},
    {Op::activate, "activation", from_inputs(Op::activate_grad), activation, Part::activations},
    {Op::activate_grad, "activation grad", no_gradient, activation, Part::residual},
    {Op::gate, "gate", from_inputs(Op::gate_grad), element_wise, Part::activations},
    {Op::gate_grad, "gate grad", no_gradient, element_wise, Part::residual},
    {Op::add, "add", {GradientRule::pass_on}, element_wise, Part::residual},
    {Op::split, "split", from_results(Op::split_grad), element_wise, Part::residual},
    {Op::split_grad, "split grad", no_gradient, element_wise, Part::residual},
    // A softmax, and one comparison to choose; backward p (dp - sum of p dp).
    {Op::route, "route", from_inputs(Op::route_grad), expert_traffic, Part::router, {.per_result = 6.0}},
    {Op::route_grad, "route grad", no_gradient, expert_traffic, Part::residual, {.per_input = 4.0}},
    {Op::dispatch, "dispatch", {GradientRule::dispatch, Op::dispatch_grad}, expert_traffic, Part::dispatch},
    {Op::dispatch_grad, "dispatch grad", no_gradient, expert_traffic, Part::residual},
    {Op::combine, "combine", from_inputs(Op::combine_grad), expert_traffic, Part::dispatch, {.per_input = 2.0}},
    {Op::combine_grad, "combine grad", no_gradient, expert_traffic, Part::residual},
    {Op::scan, "scan", from_inputs(Op::scan_grad), scan, Part::scans},
    {Op::scan_grad, "scan grad", no_gradient, scan, Part::residual},
    {Op::convolve, "convolution", from_inputs(Op::convolve_grad), element_wise, Part::scans},
    {Op::convolve_grad, "convolution grad", no_gradient, element_wise, Part::residual},
    {Op::edge, "edge", linear(Op::edge_grad), element_wise, Part::scans},
    {Op::edge_grad, "edge grad", no_gradient, element_wise, Part::residual},
    {Op::shift, "shift", linear(Op::shift_grad), element_wise, Part::scans},
    {Op::shift_grad, "shift grad", no_gradient, element_wise, Part::residual},
    {Op::mix, "mix", linear(Op::mix_grad, true), element_wise, Part::scans, {.per_result = 3.0}},
    {Op::mix_grad, "mix grad", no_gradient, element_wise, Part::residual},
    {Op::cast, "cast", {GradientRule::pass_on}, cast, Part::residual},
    {Op::loss_sums, "loss sums", {GradientRule::loss_sums, Op::loss_grad}, loss, Part::residual, {.per_input = 4.0}},
    {Op::loss, "loss", {GradientRule::loss}, loss, Part::residual, {.per_result = 2.0}},
    {Op::loss_grad, "loss grad", no_gradient, loss, Part::residual, {.per_result = 3.0}},
    {Op::sample, "sample", no_gradient, element_wise, Part::residual, {.per_input = 1.0}},
    {Op::map, "map", from_inputs(Op::map_grad), element_wise, Part::activations, {.per_result = 1.0}},
    {Op::map_grad, "map grad", no_gradient, element_wise, Part::residual, {.per_input = 2.0}},
    {Op::sum, "sum", linear(Op::sum_grad), element_wise, Part::residual, {.per_input = 1.0}},
    {Op::sum_grad, "sum grad", no_gradient, element_wise, Part::residual},
    {Op::largest, "max", from_inputs(Op::largest_grad), element_wise, Part::residual, {.per_input = 1.0}},
    {Op::largest_grad, "max grad", no_gradient, element_wise, Part::residual, {.per_result = 1.0}},
    // A comparison and a difference, an exponential, a sum and a quotient; backward p (dp - sum of p dp) and p again.
    {Op::softmax, "softmax", from_inputs(Op::softmax_grad), norm, Part::scores, {.per_result = 5.0}},
    {Op::softmax_grad, "softmax grad", no_gradient, norm, Part::residual, {.per_result = 9.0}},
    {Op::view, "view", linear(Op::view_grad), free, Part::residual},
    {Op::view_grad, "view grad", no_gradient, free, Part::residual},
    {Op::chunk, "chunk", linear(Op::chunk_grad, true), element_wise, Part::residual},
    {Op::chunk_grad, "chunk grad", no_gradient, element_wise, Part::residual},
    {Op::put, "put", linear(Op::put_grad, true), element_wise, Part::residual},
    {Op::put_grad, "put grad", no_gradient, element_wise, Part::residual},
    {Op::update, "update", no_gradient, optimizer, Part::residual},
    {Op::slice, "slice", resharded, free, Part::residual},
    {Op::collective, "collective", resharded, collective, Part::exchanges},
}};
// clang-format on

/// Whether every operation has its row, at the index of its number.
constexpr bool is_complete() {
  for (std::size_t i = 0; i < op_count; ++i)
    if (table[i].op != static_cast<Op>(i) || table[i].name.empty()) return false;
  return static_cast<std::size_t>(Op::collective) + 1 == op_count;
}
static_assert(is_complete());

}  // namespace ops

constexpr const OpFacts& facts(Op op) { return ops::table[static_cast<std::size_t>(op)]; }
constexpr std::string_view name(Op op) { return facts(op).name; }
constexpr bool is_collective(Op op) { return op == Op::collective; }
/// Whether the operation only changes the sharding of its input.
constexpr bool is_movement(Op op) { return facts(op).gradient.rule == GradientRule::reshard; }
/// Whether it is attention or its gradient.
constexpr bool is_attention(Op op) { return facts(op).cost == CostClass::attention; }
/// Whether it is a scan or its gradient.
constexpr bool is_scan(Op op) { return facts(op).cost == CostClass::scan; }

/// The group of a step in a breakdown of kernel time.
std::string_view kernel_group(CostClass cost);

}  // namespace assay::program
