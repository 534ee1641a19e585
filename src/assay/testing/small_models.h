// Small models and their training step, with the numbers that tests work out by hand.
#pragma once
#include "assay/program/lower/lowering.h"

namespace assay::testing::by_hand {

// The model of tests/data/xla_train.txt.
inline constexpr double d_model = 512, ff = 1536, n_heads = 8, n_kv = 4, head = 64, vocabulary = 4096, layers = 2;
inline constexpr double batch = 32, length = 256, tokens = batch * length;
// Matrices of a layer: queries and output 2 D N H, keys and values 2 D K H, feed-forward 3 D F. 3,145,728.
inline constexpr double layer_matrices = 2 * d_model * n_heads * head + 2 * d_model * n_kv * head + 3 * d_model * ff;
inline constexpr double layer_weights_count = layer_matrices + 2 * d_model;  // and two norms
inline constexpr double table = vocabulary * d_model;                        // embedding, and again for the head
inline constexpr double all_weights = layers * layer_weights_count + 2 * table;
inline constexpr double fp32 = 4;

inline model::Transformer small_llama() {
  model::Transformer m;
  m.id = "small-llama";
  m.d_model = 512;
  m.vocabulary = 4096;
  m.final_norm = false;
  model::Attention a;
  a.heads = 8;
  a.kv_heads = 4;
  a.head_dim = a.value_dim = 64;
  model::FeedForward f;
  f.width = 1536;
  model::Layer l;
  l.attention = a;
  l.feed_forward = f;
  m.decoder.add(l);
  m.decoder.add(l);
  return m;
}

inline model::Transformer small_experts() {
  model::Transformer m = small_llama();
  m.decoder = {};
  model::Layer l = small_llama().decoder.kinds[0];
  l.feed_forward->experts = 8;
  l.feed_forward->experts_per_token = 2;
  l.feed_forward->width = 768;
  m.decoder.add(l);
  m.decoder.add(l);
  return m;
}

inline lower::TrainingPlan plain_plan() {
  lower::TrainingPlan plan;
  plan.work = {.sequences = 32, .queries = 256, .keys = 256, .flash = false, .causal_flops = false};
  plan.formats = {Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32};
  plan.optimizer = {.master = false, .moments = 0};
  return plan;
}

inline program::Program train(const lower::Parallelism& p, const lower::TrainingPlan& plan = plain_plan(),
                              const model::Transformer& m = small_llama()) {
  return lower::lower_training(m, lower::stage_mesh(p), lower::training_rules(p), plan);
}

inline const program::Block& block(const program::Program& program, std::string_view name, program::Phase phase) {
  for (const program::Block& found : program.blocks)
    if (found.name == name && found.phase == phase) return found;
  throw InternalError("no such block");
}

struct Traffic {
  int steps = 0;
  double bytes = 0;
};
/// Steps of one kind in one pass of a block.
template <class IsKind>
Traffic traffic_if(const program::Program& program, const program::Block& block, IsKind is_kind) {
  Traffic out;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const program::Step& step = program.steps[static_cast<std::size_t>(i)];
    if (is_kind(step)) ++out.steps, out.bytes += step.bytes.value();
  }
  return out;
}
inline Traffic traffic(const program::Program& program, const program::Block& block, program::Collective kind) {
  return traffic_if(program, block, [&](const program::Step& step) { return step.is(kind); });
}
inline Traffic traffic(const program::Program& program, const program::Block& block, program::Op op) {
  return traffic_if(program, block, [&](const program::Step& step) { return step.op == op; });
}

}  // namespace assay::testing::by_hand
