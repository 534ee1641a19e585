// FLOP and bytes of programs against numbers worked out by hand, laws that hold for all of them, and what a production
// compiler made of the same training step. That programs compute the right thing is tested in execute/.
#include "assay/lower/lowering.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/program/elementwise.h"

namespace assay {
namespace {

// The model of tests/data/xla_train.txt.
constexpr double d_model = 512, ff = 1536, n_heads = 8, n_kv = 4, head = 64, vocabulary = 4096, layers = 2;
constexpr double batch = 32, length = 256, tokens = batch * length;
// Matrices of a layer: queries and output 2 D N H, keys and values 2 D K H, feed-forward 3 D F. 3,145,728.
constexpr double layer_matrices = 2 * d_model * n_heads * head + 2 * d_model * n_kv * head + 3 * d_model * ff;
constexpr double layer_weights_count = layer_matrices + 2 * d_model;  // and two norms
constexpr double table = vocabulary * d_model;                        // embedding, and once more the head
constexpr double all_weights = layers * layer_weights_count + 2 * table;
constexpr double fp32 = 4;

Transformer small_llama() {
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

Transformer small_experts() {
  Transformer m = small_llama();
  m.decoder = {};
  Layer l = small_llama().decoder.kinds[0];
  l.feed_forward->experts = 8, l.feed_forward->experts_per_token = 2, l.feed_forward->width = 768;
  m.decoder.add(l), m.decoder.add(l);
  return m;
}

TrainingPlan plain_plan() {
  TrainingPlan plan;
  plan.work = {.sequences = 32, .queries = 256, .keys = 256, .flash = false, .causal_flops = false};
  plan.formats = {Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32};
  plan.optimizer = {.master = false, .moments = 0};
  return plan;
}

Program train(const Parallelism& p, const TrainingPlan& plan = plain_plan(), const Transformer& m = small_llama()) {
  return lower_training(m, stage_mesh(p), training_rules(p), plan);
}

const Block& block(const Program& program, std::string_view name, Phase phase) {
  for (const Block& found : program.blocks)
    if (found.name == name && found.phase == phase) return found;
  throw InternalError("no such block");
}

struct Traffic {
  int steps = 0;
  double bytes = 0;
};
/// Collectives of one kind in one pass of a block.
Traffic traffic(const Program& program, const Block& block, Op op) {
  Traffic out;
  for (std::int32_t i = block.first; i < block.last; ++i) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    if (step.op == op) ++out.steps, out.bytes += step.bytes.value();
  }
  return out;
}

// --- hand-worked

/// Latent attention over 8 keys that an index of two heads picks.
Transformer small_picking() {
  Transformer m = small_llama();
  m.decoder = {};
  Layer l = small_llama().decoder.kinds[0];
  Attention& a = *l.attention;
  a = {};
  a.heads = a.kv_heads = 4, a.head_dim = 24, a.rope_dim = 8, a.value_dim = 16, a.kv_rank = 32, a.q_rank = 48;
  a.index_heads = 2, a.index_dim = 16, a.index_picks = 8;
  m.decoder.add(l);
  return m;
}

TEST(PickedKeys, FlopByHand) {
  const Transformer m = small_picking();
  TrainingPlan plan;
  plan.work.sequences = 2, plan.work.queries = plan.work.keys = 32;
  const Program program = train({}, plan, m);
  double picked = 0, attended = 0;
  for (std::int32_t i = program.blocks[1].first; i < program.blocks[1].last; ++i) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    if (step.op == Op::pick) picked += step.flops.value();
    if (step.op == Op::attention) attended += step.flops.value();
  }
  // Of 32 queries the first eight see 1 to 8 keys, the others 8: (36 + 24 x 8) / 32 = 7.125 on average, of 16.5.
  EXPECT_DOUBLE_EQ(attended, 2.0 * (2 * 32 * 4) * 7.125 * (24 + 16));
  EXPECT_DOUBLE_EQ(picked, 2.0 * (2 * 32) * 16.5 * 2 * (16 + 1));
  EXPECT_DOUBLE_EQ(attended + picked, 64 * token_flops(Plain{}, m, 32).attention.value());
}

TEST(PickedKeys, DecodingReadsThePickedLatentsAndTheKeysOfTheIndex) {
  const Transformer m = small_picking();
  Workload work;
  work.sequences = 2, work.queries = 1, work.keys = 32, work.cached = true;
  const auto [mesh, rules] = serving_stage({}, {}, m);
  const Program program = lower_serving(m, mesh, rules, work, {});
  double cached = 0;
  for (const Step& step : program.steps) {
    if (step.op ==
        Op::pick)  // queries, keys and weights in bf16, numbers of keys in int32, scores in fp32 there and back
      EXPECT_DOUBLE_EQ(step.bytes.value(), 2 * (2 * (2 * 16 + 32 * 16 + 2) + 4 * 8 + 2 * 4 * 32));
    if (step.op == Op::attention)  // queries and results in latent form, sums in fp32, numbers of keys, eight latents
      EXPECT_DOUBLE_EQ(step.bytes.value(), 2 * (2 * 4 * (40 + 32) + 4 * 4 + 4 * 8 + 2 * 8 * 40));
    for (int id : step.in)
      if (id >= 0 && program.tensor(id).is_given && program.tensor(id).tensor_class == TensorClass::key_value)
        if (step.op == Op::cast) cached += local_bytes(program, program.tensor(id)).value();
  }
  EXPECT_DOUBLE_EQ(cached, 2.0 * 2 * static_cast<double>(kv_values_per_sequence(m, 32)));
}

TEST(Elementwise, OfASmallLlamaByHand) {
  const Program program = train({});
  // Per token and layer: two norms 4 D, rotations 3 (N + K) H, 5 for each of N S scores and D quotients, a gated
  // activation 2 F, two sums D: 4,096 + 2,304 + 10,752 + 3,072 + 1,024. The loss: 4 V + 2.
  const double forward = layers * 21'248 + 16'386;
  EXPECT_DOUBLE_EQ(elementwise_flops(program, Phase::forward).value(), tokens * forward);
  // Norms 9 D each, rotations again, 3 for each score and 2 D, 5 F, two sums D where gradients meet:
  // 9,216 + 2,304 + 7,168 + 7,680 + 1,024. The loss 3 V, and a row of the embedding.
  const double backward = layers * 27'392 + 12'288 + 512;
  EXPECT_DOUBLE_EQ(elementwise_flops(program, Phase::backward).value(), tokens * backward);
}

TEST(Elementwise, DevicesThatShareTokensShareTheWork) {
  for (const Transformer& model : {small_llama(), small_experts()}) {
    const Program one = train({}, plain_plan(), model), four = train({.fsdp = 4}, plain_plan(), model);
    for (Phase phase : {Phase::forward, Phase::backward})
      EXPECT_DOUBLE_EQ(4.0 * elementwise_flops(four, phase).value(), elementwise_flops(one, phase).value());
  }
}

TEST(Lowering, TrainingCostsSixFlopPerWeightAndTokenAndTwelvePerScore) {
  // Products: 2 FLOP per weight and token forward, 4 backward; the embedding is looked up.
  // Attention: QK and PV are 2 x 2 B S T N H forward, twice that backward.
  const ProgramCount sum = count(train({}));
  const double products = 6 * tokens * (layers * layer_matrices + table);
  const double attention = 12 * batch * length * length * n_heads * head * layers;
  EXPECT_EQ(sum.product_flops, Flops(products));
  EXPECT_EQ(sum.attention_flops, Flops(attention));
  EXPECT_EQ(sum.flops, Flops(products + attention));
}

TEST(Lowering, NarrowEmbeddingsAndInputsFromTheTokenAreProductsToo) {
  Transformer m = small_llama();
  m.embedding_width = 128, m.tied = true;
  const double narrow = 2 * 128 * d_model + vocabulary * 128;  // in, out, and the head
  EXPECT_EQ(count(train({}, plain_plan(), m)).product_flops, Flops(6 * tokens * (layers * layer_matrices + narrow)));
  m = small_llama();
  m.token_input_vocabulary = 1024;
  m.decoder.kinds[0].token_input = 32, m.decoder.kinds[0].norms = 3;
  // Every layer has a gate and a way back, and its part of the projected embedding.
  const double inputs = layers * 3 * 32 * d_model;
  const Program program = train({}, plain_plan(), m);
  EXPECT_EQ(count(program).product_flops, Flops(6 * tokens * (layers * layer_matrices + table + inputs)));
  // One row of each table per token is read, and written.
  const Block& embedding = block(program, "embedding", Phase::forward);
  double looked_up = 0;
  for (std::int32_t i = embedding.first; i < embedding.last; ++i)
    if (const Step& step = program.steps[static_cast<std::size_t>(i)]; step.op == Op::embed)
      looked_up += step.bytes.value();
  EXPECT_EQ(looked_up, tokens * fp32 * (2 + 2 * (d_model + layers * 32)));
}

TEST(Lowering, CausalFlashAttentionDoesHalfOfTheScoresAndMakesThemAgain) {
  TrainingPlan plan = plain_plan();
  plan.work.flash = plan.work.causal_flops = true;
  // (S + 1) / 2 keys per query on average; 2 products forward, 5 backward.
  const double scores = batch * n_heads * length * (length + 1) / 2;
  EXPECT_EQ(count(train({}, plan)).attention_flops, Flops(7 * 2 * scores * head * layers));
}

TEST(Lowering, TensorParallelismIsTwoAllReducesPerLayerAndPass) {
  const Program program = train({.tensor = 4});
  // 2 (n - 1) / n x B S D x 4 B = 24 MiB each.
  const double each = 2 * 0.75 * tokens * d_model * fp32;
  EXPECT_EQ(each, 25'165'824);
  for (Phase phase : {Phase::forward, Phase::backward}) {
    const Traffic sums = traffic(program, block(program, "layer", phase), Op::all_reduce);
    EXPECT_EQ(sums.steps, 2);
    EXPECT_EQ(sums.bytes, 2 * each);
    EXPECT_EQ(count(program, block(program, "layer", phase)).network, Bytes(2 * each));
  }
}

TEST(Lowering, SequenceParallelismSplitsEachAllReduceInTwo) {
  const Program program = train({.tensor = 4, .residual = ResidualScheme::sequence});
  const double each = 0.75 * tokens * d_model * fp32;
  const Block& forward = block(program, "layer", Phase::forward);
  EXPECT_EQ(traffic(program, forward, Op::all_gather).bytes, 2 * each);
  EXPECT_EQ(traffic(program, forward, Op::reduce_scatter).bytes, 2 * each);
  EXPECT_EQ(count(program, forward).network, Bytes(4 * each));
  // Backward: gradients are gathered and scattered, and the normalised inputs are gathered again.
  const Block& backward = block(program, "layer", Phase::backward);
  EXPECT_EQ(traffic(program, backward, Op::all_gather).steps, 4);
  EXPECT_EQ(traffic(program, backward, Op::all_gather).bytes, 4 * each);
  EXPECT_EQ(traffic(program, backward, Op::reduce_scatter).bytes, 2 * each);
}

TEST(Lowering, SplitActivationsTakeTwoSumsPerNormAndToken) {
  const Program program = train({.tensor = 4, .residual = ResidualScheme::model});
  const Traffic sums = traffic(program, block(program, "layer", Phase::forward), Op::all_reduce);
  EXPECT_EQ(sums.steps, 2);  // one per norm
  EXPECT_EQ(sums.bytes, 2 * 2 * 0.75 * tokens * 2 * fp32);
}

TEST(Lowering, DataParallelismIsOneAllReduceOfAllGradients) {
  for (std::int64_t microbatches : {1, 4}) {
    TrainingPlan plan = plain_plan();
    plan.work.sequences /= microbatches, plan.microbatches = microbatches;
    EXPECT_EQ(count(train({.data = 8}, plan)).network, Bytes(2 * 7.0 / 8 * all_weights * fp32));
  }
}

TEST(Lowering, ZeroMovesWhatDataParallelismMovesUntilItSharesWeights) {
  const auto moved = [](int zero) { return count(train({.data = 8, .zero = zero})).network.value(); };
  const double once = 7.0 / 8 * all_weights * fp32;
  EXPECT_EQ(moved(0), 2 * once);  // all-reduce
  EXPECT_EQ(moved(1), 2 * once);  // reduce-scatter of gradients, all-gather of weights
  EXPECT_EQ(moved(2), 2 * once);
  // Stage 3 gathers weights in both passes instead, but for the embedding (only read forward) and the head (kept from
  // forward to backward, which follows at once).
  EXPECT_EQ(moved(3), 3 * once - 7.0 / 8 * 2 * table * fp32);
}

TEST(Lowering, ZeroTwoReducesGradientsInEveryMicrobatch) {
  TrainingPlan plan = plain_plan();
  plan.work.sequences = 8, plan.microbatches = 4;
  const double once = 7.0 / 8 * all_weights * fp32;
  EXPECT_EQ(count(train({.data = 8, .zero = 1}, plan)).network, Bytes(2 * once));
  EXPECT_EQ(count(train({.data = 8, .zero = 2}, plan)).network, Bytes(5 * once));
}

TEST(Lowering, FsdpGathersWeightsInBothPassesAndScattersGradients) {
  const Program program = train({.fsdp = 8});
  const double weights = 7.0 / 8 * layer_weights_count * fp32;
  const Block &forward = block(program, "layer", Phase::forward), &backward = block(program, "layer", Phase::backward);
  EXPECT_EQ(traffic(program, forward, Op::all_gather).bytes, weights);
  EXPECT_EQ(traffic(program, backward, Op::all_gather).bytes, weights);
  EXPECT_EQ(traffic(program, backward, Op::reduce_scatter).bytes, weights);
  EXPECT_EQ(count(program).network, Bytes(layers * 3 * weights + 2 * 2 * 7.0 / 8 * table * fp32));
}

TEST(Lowering, HybridShardingReducesTheRestOverReplicasOnce) {
  // 4 ways sharded, 2 replicas: an all-reduce of a quarter of the gradients, 2 x 1/2 x P/4.
  const double sharded = 3.0 / 4 * fp32 * (layers * 3 * layer_weights_count + 4 * table);
  EXPECT_EQ(count(train({.data = 2, .fsdp = 4})).network, Bytes(sharded + all_weights / 4 * fp32));
}

TEST(Lowering, RecomputationRepeatsALayerButForItsLastProduct) {
  TrainingPlan plan = plain_plan();
  plan.recompute = Recompute::full();
  const double forward = 2 * tokens * layer_matrices + 4 * batch * length * length * n_heads * head;
  const double last = 2 * tokens * d_model * ff;  // its result is needed by nobody
  EXPECT_EQ(count(train({}, plan)).repeated_flops, Flops(layers * (forward - last)));
  EXPECT_EQ(count(train({}, plan)).flops, count(train({})).flops + Flops(layers * (forward - last)));
  plan.recompute = Recompute::selective();
  EXPECT_EQ(count(train({}, plan)).repeated_flops, Flops(layers * 4 * batch * length * length * n_heads * head));
}

TEST(Lowering, RecomputationKeepsTheInputOfALayerOnly) {
  TrainingPlan plan = plain_plan();
  const auto kept = [&] {
    const Program program = train({}, plan);
    return kept_bytes(program, block(program, "layer", Phase::forward));
  };
  const Bytes everything = kept();
  plan.recompute = Recompute::selective();
  const Bytes without_scores = kept();
  plan.recompute = Recompute::full();
  EXPECT_EQ(kept(), Bytes(tokens * d_model * fp32));
  // Selective: all but the probabilities.
  EXPECT_EQ(everything - without_scores, Bytes(fp32 * batch * n_heads * length * length));
}

TEST(Lowering, ContextParallelismGathersKeysOrExchangesHeads) {
  TrainingPlan plan = plain_plan();
  plan.work.flash = true;
  const Program ring = train({.context = 4}, plan);
  const double kv = tokens * n_kv * head * fp32, q = tokens * n_heads * head * fp32;
  const Block& forward = block(ring, "layer", Phase::forward);
  EXPECT_EQ(traffic(ring, forward, Op::all_gather).bytes, 0.75 * 2 * kv);
  const Block& backward = block(ring, "layer", Phase::backward);
  EXPECT_EQ(traffic(ring, backward, Op::all_gather).bytes, 0.75 * 2 * kv);      // again
  EXPECT_EQ(traffic(ring, backward, Op::reduce_scatter).bytes, 0.75 * 2 * kv);  // their gradients
  const Program ulysses = train({.context = 4, .context_scheme = ContextScheme::exchange}, plan);
  // Queries, keys, values and results, a quarter of each on a device of which three quarters leave.
  const Traffic there = traffic(ulysses, block(ulysses, "layer", Phase::forward), Op::all_to_all);
  EXPECT_EQ(there.steps, 4);
  EXPECT_EQ(there.bytes, 0.75 / 4 * (2 * q + 2 * kv));
  EXPECT_EQ(traffic(ulysses, block(ulysses, "layer", Phase::backward), Op::all_to_all).bytes, there.bytes);
}

TEST(Lowering, ExpertParallelismExchangesTokensThereAndBack) {
  const Program program = train({.data = 8, .expert = 8}, plain_plan(), small_experts());
  // Each device sends its 1024 tokens to two experts each; 7 of 8 leave.
  const double each = 7.0 / 8 * tokens / 8 * 2 * d_model * fp32;
  for (Phase phase : {Phase::forward, Phase::backward}) {
    const Traffic moved = traffic(program, block(program, "layer", phase), Op::all_to_all);
    EXPECT_EQ(moved.steps, 2);
    EXPECT_EQ(moved.bytes, 2 * each);
  }
  // Experts' gradients stay where the experts are; the others are reduced.
  const double shared =
      layers * (2 * d_model * n_heads * head + 2 * d_model * n_kv * head + 2 * d_model + d_model * 8) + 2 * table;
  double reduced = 0;
  for (const Block& b : program.blocks)
    reduced += static_cast<double>(b.layers) * traffic(program, b, Op::all_reduce).bytes;
  EXPECT_EQ(reduced, 2 * 7.0 / 8 * shared * fp32);
}

TEST(Lowering, ExpertsPartialSumsAreCombinedBeforeTheyAreReduced) {
  // As many bytes as a dense layer moves, not one tensor per chosen expert; the gradient of the gates comes on top.
  const double each = 0.75 * tokens * d_model * fp32, gates = 0.75 * tokens * 8 * fp32;
  const Program whole = train({.tensor = 4}, plain_plan(), small_experts());
  EXPECT_EQ(count(whole, block(whole, "layer", Phase::forward)).network, Bytes(2 * 2 * each));
  EXPECT_EQ(count(whole, block(whole, "layer", Phase::backward)).network, Bytes(2 * (2 * each + gates)));
  const Parallelism split{.tensor = 4, .residual = ResidualScheme::sequence};
  const Program cut = train(split, plain_plan(), small_experts());
  const Block &forward = block(cut, "layer", Phase::forward), &backward = block(cut, "layer", Phase::backward);
  EXPECT_EQ(traffic(cut, forward, Op::all_gather).bytes, 2 * each + gates);
  EXPECT_EQ(traffic(cut, forward, Op::reduce_scatter).bytes, 2 * each);
  // Tokens and gates are gathered again, and copied for their experts again.
  EXPECT_EQ(traffic(cut, backward, Op::all_gather).bytes, 4 * each + gates);
  EXPECT_EQ(traffic(cut, backward, Op::reduce_scatter).bytes, 2 * each + gates);
  EXPECT_EQ(traffic(cut, backward, Op::dispatch).steps, 1);
}

TEST(Lowering, OneExpertPerTokenIsReachedWithTheFewestBytesToo) {
  // Gates would come on top of equal tokens, so that tokens go to their expert before they are gathered.
  Transformer m = small_experts();
  m.decoder.kinds[0].feed_forward->experts_per_token = 1;
  const Program program = train({.tensor = 4, .residual = ResidualScheme::sequence}, plain_plan(), m);
  EXPECT_EQ(count(program, block(program, "layer", Phase::forward)).network, Bytes(4 * 0.75 * tokens * d_model * fp32));
}

TEST(Lowering, AnExchangeOfExpertsCarriesWholeSumsWhereTokensAreSplit) {
  // Tokens of two experts each, from a quarter of the tokens of every second device: one of two leaves.
  const double copies = tokens / 2 * 2 * d_model * fp32;
  const Parallelism split{.data = 2, .tensor = 4, .expert = 2, .residual = ResidualScheme::sequence};
  const Program cut = train(split, plain_plan(), small_experts());
  EXPECT_EQ(traffic(cut, block(cut, "layer", Phase::forward), Op::all_to_all).bytes, 2 * copies / 4 / 2);
  // Where every device of a group has all tokens, the exchange is the same in either order.
  const Program whole = train({.data = 2, .tensor = 4, .expert = 2}, plain_plan(), small_experts());
  for (Phase phase : {Phase::forward, Phase::backward})
    EXPECT_EQ(traffic(whole, block(whole, "layer", phase), Op::all_to_all).bytes, 2 * copies / 2);
  EXPECT_EQ(traffic(whole, block(whole, "layer", Phase::forward), Op::all_reduce).bytes,
            2 * 2 * 0.75 * tokens / 2 * d_model * fp32);
}

TEST(Lowering, AFewTokensReduceNoMoreThanThemselves) {
  // One token at two of eight experts: eight slots, of which one sum of one row leaves.
  const Parallelism p{.tensor = 4};
  const Workload work{.sequences = 1, .queries = 1, .keys = 64, .cached = true};
  const Program program = lower_serving(small_experts(), stage_mesh(p), serving_rules(p, {}), work, Formats{});
  EXPECT_EQ(traffic(program, block(program, "layer", Phase::forward), Op::all_reduce).bytes,
            2 * 2 * 0.75 * d_model * 2);
}

TEST(Lowering, DecodingReadsWeightsAndCachesOnce) {
  const Workload work{.sequences = 8, .queries = 1, .keys = 1024, .cached = true};
  const Program program = lower_serving(small_llama(), {}, {}, work, Formats{});
  const Block& layer = block(program, "layer", Phase::forward);
  double weights = 0;
  for (const ProgramTensor& tensor : program.tensors)
    if (tensor.is_given && tensor.tensor_class == TensorClass::weight && tensor.name != "embedding" &&
        tensor.name != "W_head")
      weights += local_elements(program, tensor);
  EXPECT_EQ(weights, layer_weights_count);
  const double cache = 8 * 1024 * 2 * n_kv * head;
  // Activations of 8 tokens are small beside both.
  EXPECT_LT(count(program, layer).memory, Bytes(1.03 * 2 * (layer_weights_count + cache)));
  EXPECT_GT(count(program, layer).memory, Bytes(2 * (layer_weights_count + cache)));
}

// Keys and values of what the encoder made: two products of D x (N H) in the first step, none later.
TEST(Lowering, DecodingReadsWhatTheEncoderMadeFromACache) {
  Transformer m = small_llama();
  m.decoder = {}, m.encoder.emplace();
  Layer l = small_llama().decoder.kinds[0];
  m.encoder->add(l);
  l.cross_attention = l.attention;
  l.cross_attention->cross = true, l.cross_attention->causal = false, l.norms = 3;
  m.decoder.add(l);
  const auto projections = [&](std::int64_t queries, std::int64_t keys) {
    const Workload work{.sequences = 2, .queries = queries, .keys = keys, .cached = true, .source = 256};
    const Program program = lower_serving(m, {}, {}, work, Formats{});
    int found = 0;
    for (const Step& step : program.steps)
      if (step.op == Op::product)
        found += program.tensor(step.in[1]).name == "W_ck" || program.tensor(step.in[1]).name == "W_cv";
    return found;
  };
  EXPECT_EQ(projections(256, 256), 2);
  EXPECT_EQ(projections(1, 257), 0);
}

// A program and the accounting of models agree on what selective recomputation keeps.
TEST(Lowering, SelectiveRecomputationKeepsWhatModelsCount) {
  TrainingPlan plan = plain_plan();
  plan.work.flash = true;
  plan.formats = {};
  plan.recompute = Recompute::selective();
  const Program program = train({}, plan);
  double kept = 0.0;
  for (const Block& block : program.blocks)
    if (block.kind >= 0 && block.phase == Phase::forward)
      kept += static_cast<double>(block.layers) * kept_bytes(program, block).value();
  EXPECT_DOUBLE_EQ(kept / tokens, kept_bytes_per_token(small_llama(), KeepPolicy::selective, Dtype::bf16).value());
}

// Matrices of experts in 4.25 bits, the rest in 16: what a step reads of them, and nothing else changes.
TEST(Lowering, QuantisedWeightsBringTheirScales) {
  const Transformer m = small_experts();
  Formats formats;
  formats.quantised = linear_layers(NumberFormat(Dtype::fp4, 8, 32));
  formats.quantised->parts = 0, formats.quantised->add(Part::experts);
  const Workload work{.sequences = 64, .queries = 1, .keys = 256, .cached = true};
  const Program program = lower_serving(m, {}, {}, work, formats);
  for (const ProgramTensor& tensor : program.tensors) {
    if (tensor.tensor_class != TensorClass::weight) continue;
    const bool expert = tensor.find(LogicalDim::experts) >= 0;
    EXPECT_DOUBLE_EQ(local_bytes(program, tensor).value(), local_elements(program, tensor) * (expert ? 4.25 : 16) / 8)
        << tensor.name;
  }
  for (const Step& step : program.steps)  // weights alone: activations stay as they are
    if (step.op == Op::product) EXPECT_EQ(program.tensor(step.in[0]).dtype, Dtype::bf16);
}

TEST(Lowering, LatentDecodingNeverExpandsItsCache) {
  // DeepSeek V3: 128 heads, latent 512 + 64 of position.
  Transformer m = small_llama();
  m.decoder = {};
  Layer l;
  Attention a;
  a.heads = a.kv_heads = 128, a.head_dim = 192, a.value_dim = 128, a.q_rank = 1536, a.kv_rank = 512, a.rope_dim = 64;
  l.attention = a, l.feed_forward = FeedForward{};
  m.decoder.add(l);
  const auto attention = [&](std::int64_t queries) {
    const Workload work{.sequences = 1, .queries = queries, .keys = 4096, .cached = true};
    const Program program = lower_serving(m, {}, {}, work, Formats{});
    const Block& forward = block(program, "layer", Phase::forward);
    for (std::int32_t i = forward.first; i < forward.last; ++i)
      if (program.steps[static_cast<std::size_t>(i)].op == Op::attention)
        return program.steps[static_cast<std::size_t>(i)];
    throw InternalError("no attention");
  };
  // One query: 128 heads x 4096 keys x (576 + 512) products; reads the cache of 576 numbers per token once.
  EXPECT_EQ(attention(1).flops, Flops(2.0 * 128 * 4096 * (576 + 512)));
  EXPECT_NEAR(attention(1).bytes.value(), 2.0 * 4096 * 576, 0.1 * 2.0 * 4096 * 576);
  // Many queries: expanding pays off.
  EXPECT_EQ(attention(512).flops, Flops(2.0 * 128 * 512 * (4096 - 512 + 513 / 2.0) * (192 + 128)));
}

// --- laws

std::vector<Parallelism> meshes() {
  using enum ResidualScheme;
  return {{.data = 8},
          {.fsdp = 8},
          {.tensor = 4},
          {.data = 2, .zero = 3},
          {.data = 2, .fsdp = 2, .tensor = 2, .zero = 1},
          {.fsdp = 4, .tensor = 4, .residual = sequence},
          {.fsdp = 2, .tensor = 2, .residual = model},
          {.context = 4},
          {.fsdp = 2, .tensor = 2, .context = 2},
          {.context = 4, .context_scheme = ContextScheme::exchange}};
}

TEST(Lowering, AMeshOfOneDeviceHasNoCollectives) {
  for (const Transformer& m : {small_llama(), small_experts()})
    for (const Step& step : train({}, plain_plan(), m).steps)
      EXPECT_FALSE(is_collective(step.op) || step.op == Op::slice);
}

TEST(Lowering, ShardingDividesTheWork) {
  const double one = count(train({})).flops.value();
  for (const Parallelism& p : meshes())
    EXPECT_DOUBLE_EQ(count(train(p)).flops.value() * static_cast<double>(p.devices()), one) << mesh_text(stage_mesh(p));
}

TEST(Lowering, RoutersAreTheOnlyWorkThatTensorParallelismRepeats) {
  TrainingPlan plan = plain_plan();
  const double one = count(train({}, plan, small_experts())).flops.value();
  const double router = 6 * tokens * d_model * 8 * layers;
  for (const Parallelism& p :
       std::vector<Parallelism>{{.fsdp = 8, .expert = 8}, {.fsdp = 4, .expert = 2}, {.data = 4, .expert = 4}})
    EXPECT_DOUBLE_EQ(count(train(p, plan, small_experts())).flops.value() * static_cast<double>(p.devices()), one);
  const Parallelism both{.fsdp = 2, .tensor = 2, .expert = 2};
  EXPECT_DOUBLE_EQ(count(train(both, plan, small_experts())).flops.value() * 4, one + router);
  Parallelism split = both;
  split.residual = ResidualScheme::sequence;
  EXPECT_DOUBLE_EQ(count(train(split, plan, small_experts())).flops.value() * 4, one);
}

TEST(Lowering, PartsSumToTheWhole) {
  for (const Parallelism& p : meshes()) {
    const Program program = train(p);
    ProgramCount sum;
    for (const Block& b : program.blocks) {
      const ProgramCount part = count(program, b);
      const auto times = static_cast<double>(b.layers);
      sum.flops += times * part.flops, sum.memory += times * part.memory, sum.network += times * part.network;
    }
    EXPECT_EQ(sum.flops, count(program).flops);
    EXPECT_DOUBLE_EQ(sum.memory.value(), count(program).memory.value());
    EXPECT_DOUBLE_EQ(sum.network.value(), count(program).network.value());
  }
}

TEST(Lowering, MicrobatchesDoNotChangeTheWork) {
  for (const Parallelism& p : meshes()) {
    TrainingPlan plan = plain_plan();
    plan.work.sequences = 8, plan.microbatches = 4;
    EXPECT_DOUBLE_EQ(count(train(p, plan)).flops.value(), count(train(p)).flops.value());
  }
}

TEST(Lowering, DeepModelsHaveNoMoreSteps) {
  Transformer deep = small_llama();
  for (int i = 0; i < 100; ++i) deep.decoder.add(deep.decoder.kinds[0]);
  const Program two = train({.fsdp = 8}), many = train({.fsdp = 8}, plain_plan(), deep);
  EXPECT_EQ(two.steps.size(), many.steps.size());
  EXPECT_EQ(count(two, block(two, "layer", Phase::backward)).flops,
            count(many, block(many, "layer", Phase::backward)).flops);
  EXPECT_EQ(block(many, "layer", Phase::forward).layers, 102);
}

RC_GTEST_PROP(Lowering, EveryInputStandsBeforeItsUse, ()) {
  Parallelism p;
  p.data = std::int64_t{1} << *rc::gen::inRange(0, 3);
  p.fsdp = std::int64_t{1} << *rc::gen::inRange(0, 3);
  p.tensor = std::int64_t{1} << *rc::gen::inRange(0, 3);
  p.context = std::int64_t{1} << *rc::gen::inRange(0, 2);
  p.zero = *rc::gen::inRange(0, 4);
  p.residual = *rc::gen::element(ResidualScheme::replicated, ResidualScheme::sequence, ResidualScheme::model);
  TrainingPlan plan = plain_plan();
  plan.recompute = *rc::gen::element(Recompute::none(), Recompute::selective(), Recompute::full());
  const bool with_experts = *rc::gen::arbitrary<bool>();
  if (with_experts) p.expert = p.data * p.fsdp;
  const Program program = train(p, plan, with_experts ? small_experts() : small_llama());
  std::vector<char> made(program.tensors.size(), 0);
  for (const Step& step : program.steps) {
    for (int id : step.in)
      if (id >= 0) RC_ASSERT(made[static_cast<std::size_t>(id)] || program.tensor(id).is_given);
    for (int id : step.out)
      if (id >= 0) made[static_cast<std::size_t>(id)] = 1;
    RC_ASSERT(step.bytes >= Bytes(0));
    RC_ASSERT(step.flops >= Flops(0));
  }
}

// --- against a production compiler

double received(const std::string& kind, double n, double result) {
  if (kind == "all-gather" || kind == "all-to-all") return result * (n - 1) / n;
  if (kind == "reduce-scatter") return result * (n - 1);
  if (kind == "all-reduce") return 2 * result * (n - 1) / n;
  return result;  // collective-permute
}

TEST(XlaTraining, SameFlopAndNoMoreBytesThanThePartitioner) {
  std::ifstream file("tests/data/xla_train.txt");
  ASSERT_TRUE(file.is_open());
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto parts = split(line, ';');
    const auto head_words = split(parts[0], ' ');
    ASSERT_EQ(head_words.size(), 5u) << line;
    const auto number = [](const std::string& text) { return *parse_number(text); };
    Parallelism p;
    (number(head_words[3]) > 0 ? p.fsdp : p.data) = static_cast<std::int64_t>(number(head_words[1]));
    p.tensor = static_cast<std::int64_t>(number(head_words[2]));
    double recorded = 0;
    for (std::size_t i = 2; i < parts.size(); ++i) {
      const auto words = split(parts[i], ' ');
      ASSERT_EQ(words.size(), 5u) << line;
      recorded += number(words[0]) * received(words[2], number(words[3]), number(words[4]));
    }
    const ProgramCount ours = count(train(p));
    const double theirs = number(std::string(trim(parts[1])));
    EXPECT_NEAR(ours.flops.value() / theirs, 1.0, 0.03) << parts[0];
    EXPECT_LE(ours.network.value(), recorded * (1 + 1e-9)) << parts[0];
    fmt::print("{}: FLOP {:.5f} of XLA's, bytes {} against {}\n", head_words[0], ours.flops.value() / theirs,
               ours.network.value(), recorded);
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

// Eight devices share four heads of keys: Y splits them, V holds two copies, and only the gradients of W_k and W_v are
// summed over V, each 512 x 64 numbers on a device, once in each of two layers.
TEST(Lowering, GradientsOfCopiedKeysAreSummedOverTheCopies) {
  const Parallelism p{.tensor = 8};
  const auto [mesh, rules] = training_stage(p, small_llama());
  EXPECT_EQ(mesh_text(mesh), "Y=4,V=2");
  EXPECT_EQ(whole_axis("V"), "Y");
  const Program program = lower_training(small_llama(), mesh, rules, plain_plan());
  const AxisSet copies = axis_bit(1);
  double bytes = 0;
  int summed = 0;
  for (const Step& step : program.steps)
    if (is_collective(step.op) && step.axes == copies) {
      EXPECT_EQ(step.op, Op::all_reduce);
      EXPECT_EQ(step.urgency, Urgency::afterwards);
      bytes += step.bytes.value(), ++summed;
    }
  EXPECT_EQ(summed, 2);
  EXPECT_DOUBLE_EQ(bytes, 2 * d_model * head * fp32);
}

TEST(Lowering, WhatHasNoProgramYetIsNamed) {
  Transformer model = small_llama();
  EXPECT_TRUE(check_lowers(model, "MODEL"));
  model.decoder.kinds[0].attention->compression = 4;
  const auto refused = check_lowers(model, "MODEL");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("compressed keys"), std::string::npos);
  model.decoder.kinds[0].attention->compression = 0;
  model.streams = 4;
  EXPECT_NE(check_lowers(model, "MODEL").error().what.find("residual streams"), std::string::npos);
}

}  // namespace
}  // namespace assay
