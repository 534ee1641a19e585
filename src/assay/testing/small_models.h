// Small models and their training step, with the numbers that tests work out by hand.
#pragma once
#include "assay/lower/lowering.h"

namespace assay::by_hand {

// The model of tests/data/xla_train.txt.
inline constexpr double d_model = 512, ff = 1536, n_heads = 8, n_kv = 4, head = 64, vocabulary = 4096, layers = 2;
inline constexpr double batch = 32, length = 256, tokens = batch * length;
// Matrices of a layer: queries and output 2 D N H, keys and values 2 D K H, feed-forward 3 D F. 3,145,728.
inline constexpr double layer_matrices = 2 * d_model * n_heads * head + 2 * d_model * n_kv * head + 3 * d_model * ff;
inline constexpr double layer_weights_count = layer_matrices + 2 * d_model;  // and two norms
inline constexpr double table = vocabulary * d_model;                        // embedding, and once more the head
inline constexpr double all_weights = layers * layer_weights_count + 2 * table;
inline constexpr double fp32 = 4;

inline Transformer small_llama() {
  Transformer m;
  m.id = "small-llama";
  m.d_model = 512, m.vocabulary = 4096;
  m.final_norm = false;
  Attention a;
  a.heads = 8, a.kv_heads = 4, a.head_dim = a.value_dim = 64;
  FeedForward f;
  f.width = 1536;
  Layer l;
  l.attention = a, l.feed_forward = f;
  m.decoder.add(l), m.decoder.add(l);
  return m;
}

inline Transformer small_experts() {
  Transformer m = small_llama();
  m.decoder = {};
  Layer l = small_llama().decoder.kinds[0];
  l.feed_forward->experts = 8, l.feed_forward->experts_per_token = 2, l.feed_forward->width = 768;
  m.decoder.add(l), m.decoder.add(l);
  return m;
}

inline TrainingPlan plain_plan() {
  TrainingPlan plan;
  plan.work = {.sequences = 32, .queries = 256, .keys = 256, .flash = false, .causal_flops = false};
  plan.formats = {Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32};
  plan.optimizer = {.master = false, .moments = 0};
  return plan;
}

inline Program train(const Parallelism& p, const TrainingPlan& plan = plain_plan(),
                     const Transformer& m = small_llama()) {
  return lower_training(m, stage_mesh(p), training_rules(p), plan);
}

inline const Block& block(const Program& program, std::string_view name, Phase phase) {
  for (const Block& found : program.blocks)
    if (found.name == name && found.phase == phase) return found;
  throw InternalError("no such block");
}

struct Traffic {
  int steps = 0;
  double bytes = 0;
};
/// Collectives of one kind in one pass of a block.
inline Traffic traffic(const Program& program, const Block& block, Op op) {
  Traffic out;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    if (step.op == op) ++out.steps, out.bytes += step.bytes.value();
  }
  return out;
}

}  // namespace assay::by_hand
