// The weights of state spaces and linear attention.
#include <utility>

#include "assay/model/mixers.h"
#include "assay/model/weight_list.h"

namespace assay::model {
namespace {

using enum LogicalDim;

void add_mamba1(const WeightList& list, const StateSpace& s, std::int64_t width) {
  list.matrix("W_x", {{d_model, width}, {inner, s.inner}});
  list.vector(s.projection_bias, "b_x", {{inner, s.inner}});
  list.matrix("W_z", {{d_model, width}, {inner, s.inner}});
  list.vector(s.projection_bias, "b_z", {{inner, s.inner}});
  list.vector(s.convolution > 0, "conv", {{inner, s.inner}, {other, s.convolution}});
  list.vector(s.convolution_bias, "b_conv", {{inner, s.inner}});
  list.matrix("W_dt_down", {{inner, s.inner}, {rank, s.dt_rank}});
  list.matrix("W_B", {{inner, s.inner}, {state, s.key_dim}});
  list.matrix("W_C", {{inner, s.inner}, {state, s.key_dim}});
  list.vector(s.inner_norms, "dt_norm", {{rank, s.dt_rank}});
  list.vector(s.inner_norms, "B_norm", {{state, s.key_dim}});
  list.vector(s.inner_norms, "C_norm", {{state, s.key_dim}});
  list.matrix("W_dt", {{rank, s.dt_rank}, {inner, s.inner}});
  list.vector("b_dt", {{inner, s.inner}});
  list.vector("A", {{inner, s.inner}, {state, s.key_dim}});
  list.vector("skip", {{inner, s.inner}});
}

void add_mamba2(const WeightList& list, const StateSpace& s, std::int64_t width) {
  const std::int64_t groups = s.key_heads * s.key_dim;
  list.matrix("W_z", {{d_model, width}, {inner, s.inner}});
  list.matrix("W_x", {{d_model, width}, {inner, s.inner}});
  list.matrix("W_B", {{d_model, width}, {state, groups}});
  list.matrix("W_C", {{d_model, width}, {state, groups}});
  list.matrix("W_dt", {{d_model, width}, {heads, s.heads}});
  list.vector(s.projection_bias, "b_z", {{inner, s.inner}});
  list.vector(s.projection_bias, "b_x", {{inner, s.inner}});
  list.vector(s.projection_bias, "b_B", {{state, groups}});
  list.vector(s.projection_bias, "b_C", {{state, groups}});
  list.vector(s.projection_bias, "b_dt_in", {{heads, s.heads}});
  if (s.convolution > 0) {
    list.vector("conv_x", {{inner, s.inner}, {other, s.convolution}});
    list.vector("conv_B", {{state, groups}, {other, s.convolution}});
    list.vector("conv_C", {{state, groups}, {other, s.convolution}});
    list.vector(s.convolution_bias, "b_conv_x", {{inner, s.inner}});
    list.vector(s.convolution_bias, "b_conv_B", {{state, groups}});
    list.vector(s.convolution_bias, "b_conv_C", {{state, groups}});
  }
  list.vector("b_dt", {{heads, s.heads}});
  list.vector("A", {{heads, s.heads}});
  list.vector("skip", {{heads, s.heads}});
  list.vector(s.output_norm, "inner_norm", {{inner, s.inner}});
}

void add_gated_delta(const WeightList& list, const StateSpace& s, std::int64_t width) {
  const std::int64_t keys = s.key_heads * s.key_dim;
  list.matrix("W_q", {{d_model, width}, {state, keys}});
  list.matrix("W_k", {{d_model, width}, {state, keys}});
  list.matrix("W_v", {{d_model, width}, {inner, s.inner}});
  const bool low = s.gate_rank > 0;
  if (low) list.matrix("W_z_low", {{d_model, width}, {rank, s.gate_rank}});
  list.matrix("W_z", {low ? Weight::Size{rank, s.gate_rank} : Weight::Size{d_model, width}, {inner, s.inner}});
  list.matrix("W_beta", {{d_model, width}, {heads, s.heads}});
  if (low) {
    list.matrix("W_alpha_low", {{d_model, width}, {rank, s.gate_rank}});
    list.matrix("W_alpha", {{rank, s.gate_rank}, {heads, s.heads}, {head_dim, s.key_dim}});
  } else {
    list.matrix("W_alpha", {{d_model, width}, {heads, s.heads}});
  }
  if (s.convolution > 0) {
    list.vector("conv_q", {{state, keys}, {other, s.convolution}});
    list.vector("conv_k", {{state, keys}, {other, s.convolution}});
    list.vector("conv_v", {{inner, s.inner}, {other, s.convolution}});
    list.vector(s.convolution_bias, "b_conv_q", {{state, keys}});
    list.vector(s.convolution_bias, "b_conv_k", {{state, keys}});
    list.vector(s.convolution_bias, "b_conv_v", {{inner, s.inner}});
  }
  if (low)
    list.vector("b_dt", {{heads, s.heads}, {head_dim, s.key_dim}});
  else
    list.vector("b_dt", {{heads, s.heads}});
  list.vector("A", {{heads, s.heads}});
  list.vector(s.output_norm, "head_norm", {{value_dim, s.inner / s.heads}});
}

/// Queries, keys, values and the gate of the result.
void add_projections(const WeightList& list, const StateSpace& s, std::int64_t width) {
  list.matrix("W_q", {{d_model, width}, {heads, s.heads}, {head_dim, s.key_dim}});
  list.matrix("W_k", {{d_model, width}, {heads, s.heads}, {head_dim, s.key_dim}});
  list.matrix("W_v", {{d_model, width}, {inner, s.inner}});
  list.matrix("W_og", {{d_model, width}, {inner, s.inner}});
}

void add_lightning(const WeightList& list, const StateSpace& s, std::int64_t width) {
  add_projections(list, s, width);
  list.vector(s.output_norm, "inner_norm", {{inner, s.inner}});
}

void add_gated_convolution(const WeightList& list, const StateSpace& s, std::int64_t width) {
  for (const auto& [matrix, bias] : {std::pair{"W_x", "b_x"}, std::pair{"W_B", "b_B"}, std::pair{"W_C", "b_C"}}) {
    list.matrix(matrix, {{d_model, width}, {inner, s.inner}});
    list.vector(s.projection_bias, bias, {{inner, s.inner}});
  }
  list.vector("conv", {{inner, s.inner}, {other, s.convolution}});
  list.vector(s.convolution_bias, "b_conv", {{inner, s.inner}});
}

void add_gated_linear(const WeightList& list, const StateSpace& s, std::int64_t width) {
  list.matrix("W_x", {{d_model, width}, {inner, s.inner}});
  list.vector(s.projection_bias, "b_x", {{inner, s.inner}});
  list.matrix("W_z", {{d_model, width}, {inner, s.inner}});
  list.vector(s.projection_bias, "b_z", {{inner, s.inner}});
  list.vector("conv", {{inner, s.inner}, {other, s.convolution}});
  list.vector(s.convolution_bias, "b_conv", {{inner, s.inner}});
  const std::int64_t block = s.inner / s.heads;
  for (const auto& [matrix, bias] : {std::pair{"W_input", "b_input"}, std::pair{"W_decay", "b_decay"}}) {
    list.matrix(matrix, {{heads, s.heads}, {head_dim, block}, {value_dim, block}});
    list.vector(bias, {{heads, s.heads}, {value_dim, block}});
  }
  list.vector("A", {{heads, s.heads}, {value_dim, block}});
}

void add_rwkv4(const WeightList& list, const StateSpace& s, std::int64_t width) {
  add_mix(list, "mix", 3, width);
  for (const std::string_view matrix : {"W_r", "W_k", "W_v"}) list.matrix(matrix, {{d_model, width}, {inner, s.inner}});
  list.vector("A", {{inner, s.inner}});
  list.vector("bonus", {{inner, s.inner}});
}

void add_rwkv5(const WeightList& list, const StateSpace& s, std::int64_t width) {
  const Weight::Size uses{other, s.decay_rank > 0 ? 5 : 4}, of_heads{heads, s.heads}, each{head_dim, s.key_dim};
  if (s.mix_rank > 0) {
    add_mix(list, "mix_x", 1, width);
    list.matrix("W_mix_low", {{d_model, width}, uses, {rank, s.mix_rank}});
    list.matrix("W_mix", {uses, {rank, s.mix_rank}, {d_model, width}});
  }
  add_mix(list, "mix", uses.size, width);
  if (s.decay_rank > 0) {
    list.matrix("W_w_low", {{d_model, width}, {rank, s.decay_rank}});
    list.matrix("W_w", {{rank, s.decay_rank}, of_heads, each});
  }
  list.vector("A", {of_heads, each});
  list.matrix("W_r", {{d_model, width}, of_heads, each});
  list.matrix("W_k", {{d_model, width}, of_heads, each});
  list.matrix("W_v", {{d_model, width}, {inner, s.inner}});
  list.matrix("W_g", {{d_model, width}, {inner, s.inner}});
  list.vector("bonus", {of_heads, each});
  list.vector("inner_norm", {{inner, s.inner}});
  list.vector("b_inner_norm", {{inner, s.inner}});
}

void add_rwkv7(const WeightList& list, const StateSpace& s, std::int64_t width) {
  const Weight::Size from{d_model, width}, of_heads{heads, s.heads}, each{head_dim, s.key_dim}, values{inner, s.inner};
  add_mix(list, "mix_low", 3, width);
  list.matrix("W_w_low", {from, {rank, s.decay_rank}});
  list.matrix("W_w", {{rank, s.decay_rank}, of_heads, each});
  list.vector("b_w", {of_heads, each});
  list.matrix("W_a_low", {from, {rank, s.rate_rank}});
  list.matrix("W_a", {{rank, s.rate_rank}, of_heads, each});
  list.vector("b_a", {of_heads, each});
  list.matrix("W_g_low", {from, {rank, s.gate_rank}});
  list.matrix("W_g", {{rank, s.gate_rank}, values});
  add_mix(list, "mix", 3, width);
  list.matrix("W_r", {from, of_heads, each});
  list.matrix("W_k", {from, of_heads, each});
  list.matrix("W_v", {from, values});
  if (s.value_rank > 0) {
    list.matrix("W_vg_low", {from, {rank, s.value_rank}});
    list.matrix("W_vg", {{rank, s.value_rank}, values});
    list.vector("b_vg", {values});
  }
  list.vector("key_scales", {of_heads, each, {other, 3}});  // of what is removed, of what is written, of the bonus
  list.vector("inner_norm", {values});
  list.vector("b_inner_norm", {values});
}

void add_mlstm(const WeightList& list, const StateSpace& s, std::int64_t width) {
  add_projections(list, s, width);
  for (const auto& [matrix, bias] : {std::pair{"W_input", "b_input"}, std::pair{"W_forget", "b_forget"}}) {
    list.matrix(matrix, {{d_model, width}, {heads, s.heads}});
    list.vector(bias, {{heads, s.heads}});
  }
  list.vector("inner_norm", {{inner, s.inner}});
}

}  // namespace

void add_state_space(std::vector<Weight>& out, const StateSpace& s, std::int64_t width) {
  static constexpr void (*by_kind[])(const WeightList&, const StateSpace&, std::int64_t) = {
      &add_mamba1,       &add_mamba2, &add_gated_delta, &add_lightning, &add_gated_convolution,
      &add_gated_linear, &add_rwkv4,  &add_rwkv5,       &add_rwkv7,     &add_mlstm};
  static_assert(std::size(by_kind) == std::size(mixers));
  const WeightList list(out, Part::state_space);
  by_kind[static_cast<std::size_t>(s.kind)](list, s, width);
  list.matrix("W_so", {{inner, s.inner}, {d_model, width}});
  list.vector(s.projection_bias, "b_so", {{d_model, width}});
}

}  // namespace assay::model
