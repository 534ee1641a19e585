// Collectives of programs against numbers worked out by hand, and against what a production compiler made of the same
// training step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "assay/base/text.h"
#include "assay/testing/small_models.h"

namespace assay::lower {
namespace {

using namespace testing::by_hand;

TEST(Lowering, TensorParallelismIsTwoAllReducesPerLayerAndPass) {
  const program::Program program = train({.tensor = 4});
  // 2 (n - 1) / n x B S D x 4 B = 24 MiB each.
  const double each = 2 * 0.75 * tokens * d_model * fp32;
  EXPECT_EQ(each, 25'165'824);
  for (program::Phase phase : {program::Phase::forward, program::Phase::backward}) {
    const Traffic sums = traffic(program, block(program, "layer", phase), program::Collective::all_reduce);
    EXPECT_EQ(sums.steps, 2);
    EXPECT_EQ(sums.bytes, 2 * each);
    EXPECT_EQ(program::count(program, block(program, "layer", phase)).network, Bytes(2 * each));
  }
}

TEST(Lowering, SequenceParallelismSplitsEachAllReduceInTwo) {
  const program::Program program = train({.tensor = 4, .residual = ResidualScheme::sequence});
  const double each = 0.75 * tokens * d_model * fp32;
  const program::Block& forward = block(program, "layer", program::Phase::forward);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).bytes, 2 * each);
  EXPECT_EQ(traffic(program, forward, program::Collective::reduce_scatter).bytes, 2 * each);
  EXPECT_EQ(program::count(program, forward).network, Bytes(4 * each));
  // Backward: gradients are gathered and scattered, and the normalised inputs are gathered again.
  const program::Block& backward = block(program, "layer", program::Phase::backward);
  EXPECT_EQ(traffic(program, backward, program::Collective::all_gather).steps, 4);
  EXPECT_EQ(traffic(program, backward, program::Collective::all_gather).bytes, 4 * each);
  EXPECT_EQ(traffic(program, backward, program::Collective::reduce_scatter).bytes, 2 * each);
}

TEST(Lowering, NarrowProductsGatherWhatIsQuantisedAndKeepTheirPartOfIt) {
  TrainingPlan plan = plain_plan();
  plan.formats = {Dtype::bf16, Dtype::bf16, Dtype::fp8, Dtype::bf16, Dtype::bf16};
  const program::Program program = train({.tensor = 4, .residual = ResidualScheme::sequence}, plan);
  // A byte for each element, and 4 for the scale of 128; sums end in bf16.
  const double elements = tokens * d_model, narrow = 1 + 4.0 / 128, wide = 2;
  const program::Block &forward = block(program, "layer", program::Phase::forward),
                       &backward = block(program, "layer", program::Phase::backward);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).steps, 2);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).bytes, 2 * 0.75 * elements * narrow);
  EXPECT_EQ(traffic(program, forward, program::Collective::reduce_scatter).bytes, 2 * 0.75 * elements * wide);
  // Two gradients, and the two inputs again.
  EXPECT_EQ(traffic(program, backward, program::Collective::all_gather).steps, 4);
  EXPECT_EQ(traffic(program, backward, program::Collective::all_gather).bytes, 4 * 0.75 * elements * narrow);
  EXPECT_EQ(traffic(program, backward, program::Collective::reduce_scatter).bytes, 2 * 0.75 * elements * wide);
  double kept = 0;
  for (std::int32_t i = forward.first; i < forward.last; ++i) {
    const program::ProgramTensor& made = program.tensor(program.steps[static_cast<std::size_t>(i)].out[0]);
    if (made.is_kept && made.name == "Norm") kept += program::local_bytes(program, made).value();
  }
  EXPECT_EQ(kept, 2 * elements / 4 * narrow);
  // Experts' input is gathered in bf16 with a dense share of it for the shared expert: forward, and again backward.
  model::Transformer mixed = small_experts();
  mixed.decoder.kinds[0].feed_forward->shared_width = 768;
  const program::Program experts = train({.tensor = 4, .residual = ResidualScheme::sequence}, plan, mixed);
  EXPECT_EQ(traffic(experts, block(experts, "layer", program::Phase::forward), program::Collective::all_gather).bytes,
            0.75 * (elements * narrow + elements * wide + tokens * 8 * wide));
}

TEST(Lowering, SplitActivationsTakeTwoSumsPerNormAndToken) {
  const program::Program program = train({.tensor = 4, .residual = ResidualScheme::model});
  const Traffic sums =
      traffic(program, block(program, "layer", program::Phase::forward), program::Collective::all_reduce);
  EXPECT_EQ(sums.steps, 2);  // one per norm
  EXPECT_EQ(sums.bytes, 2 * 2 * 0.75 * tokens * 2 * fp32);
}

TEST(Lowering, DataParallelismIsOneAllReduceOfAllGradients) {
  for (std::int64_t microbatches : {1, 4}) {
    TrainingPlan plan = plain_plan();
    plan.work.sequences /= microbatches;
    plan.microbatches = microbatches;
    EXPECT_EQ(program::count(train({.data = 8}, plan)).network, Bytes(2 * 7.0 / 8 * all_weights * fp32));
  }
}

TEST(Lowering, ZeroMovesWhatDataParallelismMovesUntilItSharesWeights) {
  const auto moved = [](int zero) { return program::count(train({.data = 8, .zero = zero})).network.value(); };
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
  plan.work.sequences = 8;
  plan.microbatches = 4;
  const double once = 7.0 / 8 * all_weights * fp32;
  EXPECT_EQ(program::count(train({.data = 8, .zero = 1}, plan)).network, Bytes(2 * once));
  EXPECT_EQ(program::count(train({.data = 8, .zero = 2}, plan)).network, Bytes(5 * once));
}

TEST(Lowering, FsdpGathersWeightsInBothPassesAndScattersGradients) {
  const program::Program program = train({.fsdp = 8});
  const double weights = 7.0 / 8 * layer_weights_count * fp32;
  const program::Block &forward = block(program, "layer", program::Phase::forward),
                       &backward = block(program, "layer", program::Phase::backward);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).bytes, weights);
  EXPECT_EQ(traffic(program, backward, program::Collective::all_gather).bytes, weights);
  EXPECT_EQ(traffic(program, backward, program::Collective::reduce_scatter).bytes, weights);
  EXPECT_EQ(program::count(program).network, Bytes(layers * 3 * weights + 2 * 2 * 7.0 / 8 * table * fp32));
}

TEST(Lowering, WideWeightsAreCastBeforeTheyAreGatheredAndMultiplied) {
  TrainingPlan plan = plain_plan();
  plan.formats = {Dtype::fp32, Dtype::bf16, Dtype::bf16, Dtype::fp32, Dtype::bf16};
  const auto casts = [](const program::Program& program, program::Phase phase) {
    return traffic(program, block(program, "layer", phase), program::Op::cast).bytes;
  };
  // Each of eight devices reads 4 bytes of its part and writes 2, in both passes; norms are gathered, too.
  const program::Program program = train({.fsdp = 8}, plan);
  const program::Block &forward = block(program, "layer", program::Phase::forward),
                       &backward = block(program, "layer", program::Phase::backward);
  for (program::Phase phase : {program::Phase::forward, program::Phase::backward}) {
    EXPECT_EQ(casts(program, phase), (4 + 2) * layer_weights_count / 8);
    EXPECT_EQ(traffic(program, block(program, "layer", phase), program::Collective::all_gather).bytes,
              7.0 / 8 * layer_weights_count * 2);
  }
  EXPECT_EQ(traffic(program, backward, program::Collective::reduce_scatter).bytes, 7.0 / 8 * layer_weights_count * 4);
  // Whole matrices where none is gathered; norms and the table of the embedding are read as they are.
  const program::Program whole = train({}, plan);
  for (program::Phase phase : {program::Phase::forward, program::Phase::backward})
    EXPECT_EQ(casts(whole, phase), (4 + 2) * layer_matrices);
  EXPECT_EQ(traffic(whole, block(whole, "embedding", program::Phase::forward), program::Op::cast).steps, 0);
  for (std::int32_t i = forward.first; i < forward.last; ++i)
    if (const program::Step& step = program.steps[static_cast<std::size_t>(i)]; step.op == program::Op::product)
      EXPECT_EQ(program.tensor(step.in[1]).dtype, Dtype::bf16);
  // Weights in the format of products are taken as they are.
  EXPECT_EQ(casts(train({.fsdp = 8}), program::Phase::forward), 0);
}

TEST(Lowering, HybridShardingReducesTheRestOverReplicasOnce) {
  // 4 ways sharded, 2 replicas: an all-reduce of a quarter of the gradients, 2 x 1/2 x P/4.
  const double sharded = 3.0 / 4 * fp32 * (layers * 3 * layer_weights_count + 4 * table);
  EXPECT_EQ(program::count(train({.data = 2, .fsdp = 4})).network, Bytes(sharded + all_weights / 4 * fp32));
}

/// A model whose layers share all their weights.
model::Transformer shared_llama() {
  model::Transformer m = small_llama();
  m.decoder = {};
  model::Layer l = small_llama().decoder.kinds[0];
  l.shared = model::SharedBlock{};
  m.decoder.add(l);
  m.decoder.add(l);
  return m;
}

TEST(Lowering, SharedWeightsAreSummedAndUpdatedOnceAndGatheredInEachLayer) {
  // Replicas all-reduce the gradients of one layer, 2 x 7/8 of them, however many use it and in how many microbatches.
  const double held = layer_weights_count + 2 * table;
  TrainingPlan plan = plain_plan();
  plan.microbatches = 2;
  const program::Program data = train({.data = 8}, plan, shared_llama());
  EXPECT_EQ(program::count(data).network, Bytes(2 * 7.0 / 8 * held * fp32));
  double updated = 0;
  for (const program::Block& block : data.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (const program::Step& step = data.steps[static_cast<std::size_t>(i)]; step.op == program::Op::update)
        updated += static_cast<double>(block.layers) * data.tensor(step.in[1]).elements;
  EXPECT_EQ(updated, held);
  // Sharded weights are gathered in both passes of each layer, and their gradients scattered behind each.
  EXPECT_EQ(program::count(train({.fsdp = 8}, plain_plan(), shared_llama())).network,
            program::count(train({.fsdp = 8})).network);
  EXPECT_EQ(program::count(train({}, plain_plan(), shared_llama())).product_flops,
            program::count(train({})).product_flops);
}

TEST(Lowering, ContextParallelismGathersKeysOrExchangesHeads) {
  TrainingPlan plan = plain_plan();
  plan.work.flash = true;
  const program::Program ring = train({.context = 4}, plan);
  const double kv = tokens * n_kv * head * fp32, q = tokens * n_heads * head * fp32;
  const program::Block& forward = block(ring, "layer", program::Phase::forward);
  EXPECT_EQ(traffic(ring, forward, program::Collective::all_gather).bytes, 0.75 * 2 * kv);
  const program::Block& backward = block(ring, "layer", program::Phase::backward);
  EXPECT_EQ(traffic(ring, backward, program::Collective::all_gather).bytes, 0.75 * 2 * kv);      // gathered again
  EXPECT_EQ(traffic(ring, backward, program::Collective::reduce_scatter).bytes, 0.75 * 2 * kv);  // their gradients
  const program::Program ulysses = train({.context = 4, .context_scheme = ContextScheme::exchange}, plan);
  // Queries, keys, values and results, a quarter of each on a device of which three quarters leave.
  const Traffic there =
      traffic(ulysses, block(ulysses, "layer", program::Phase::forward), program::Collective::all_to_all);
  EXPECT_EQ(there.steps, 4);
  EXPECT_EQ(there.bytes, 0.75 / 4 * (2 * q + 2 * kv));
  EXPECT_EQ(traffic(ulysses, block(ulysses, "layer", program::Phase::backward), program::Collective::all_to_all).bytes,
            there.bytes);
}

/// Layers of a state space only.
model::Transformer small_state_space(model::StateSpace::Kind kind) {
  model::Transformer m = small_llama();
  model::Layer l = m.decoder.kinds[0];
  l.attention.reset();
  l.feed_forward.reset();
  model::StateSpace s;
  s.kind = kind;
  s.inner = 1024;
  s.key_dim = 16;
  s.convolution = 4;
  s.heads = kind == model::StateSpace::Kind::mamba1 ? 1 : 16,
  s.key_heads = kind == model::StateSpace::Kind::mamba1 ? 1 : 8;
  s.dt_rank = kind == model::StateSpace::Kind::mamba1 ? 32 : 0;
  s.output_norm = false;
  l.state_space = s;
  m.decoder = {};
  m.decoder.add(l);
  m.decoder.add(l);
  return m;
}

TEST(Lowering, ContextParallelismExchangesTokensForChannelsOfAScan) {
  constexpr double inner = 1024, rank = 32, states = 16;
  // Mamba 1: X there and the result back, a quarter on a device of which three quarters leave. The step size, B and C
  // are sums over all channels.
  const program::Program one = train({}, plain_plan(), small_state_space(model::StateSpace::Kind::mamba1));
  const program::Program program =
      train({.context = 4}, plain_plan(), small_state_space(model::StateSpace::Kind::mamba1));
  const program::Block& forward = block(program, "layer", program::Phase::forward);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_to_all).bytes, 2 * 0.75 * tokens / 4 * inner * fp32);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_reduce).bytes,
            2 * 0.75 * tokens * (rank + 2 * states) * fp32);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).steps, 0);
  EXPECT_DOUBLE_EQ(program::count(program).flops.value() * 4, program::count(one).flops.value());
  // The gated delta rule: queries, keys, values, two numbers for each head and the result.
  const program::Program delta =
      train({.context = 4}, plain_plan(), small_state_space(model::StateSpace::Kind::gated_delta));
  const program::Block& rule = block(delta, "layer", program::Phase::forward);
  EXPECT_EQ(traffic(delta, rule, program::Collective::all_to_all).bytes,
            0.75 * tokens / 4 * (2 * 8 * states + 2 * inner + 2 * 16) * fp32);
  EXPECT_EQ(traffic(delta, rule, program::Collective::all_gather).steps, 0);
  // Keys of eight heads do not split sixteen ways: each device has all of them.
  const program::Program many =
      train({.context = 16}, plain_plan(), small_state_space(model::StateSpace::Kind::gated_delta));
  EXPECT_EQ(traffic(many, block(many, "layer", program::Phase::forward), program::Collective::all_gather).bytes,
            15.0 / 16 * tokens * 2 * 8 * states * fp32);
}

model::Transformer small_rwkv() {
  model::Transformer m = small_state_space(model::StateSpace::Kind::rwkv4);
  model::Layer l = m.decoder.kinds[0];
  model::StateSpace& s = *l.state_space;
  s.inner = s.heads = s.key_heads = 512;
  s.key_dim = 1;
  s.convolution = 0;
  l.feed_forward = model::FeedForward{.width = 1536, .gated = false, .shifted = true, .receptance = true};
  m.decoder = {};
  m.decoder.add(l);
  return m;
}

TEST(Lowering, PartsOfASequenceShowEachOtherTheirLastTokens) {
  const program::Program program = train({.context = 4}, plain_plan(), small_rwkv());
  const program::Block &forward = block(program, "layer", program::Phase::forward),
                       &backward = block(program, "layer", program::Phase::backward);
  // A token of each sequence from three others, for the mixer and for the feed-forward block; again for the gradients,
  // of which a fourth stays.
  const double edge = batch * d_model * fp32;
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).bytes, 2 * 3 * edge);
  EXPECT_EQ(traffic(program, backward, program::Collective::reduce_scatter).bytes, 2 * 0.75 * 4 * edge);
  // Keys, values and the result of the scan.
  EXPECT_EQ(traffic(program, forward, program::Collective::all_to_all).bytes, 3 * 0.75 * tokens / 4 * d_model * fp32);
}

TEST(Lowering, GradientsOfMixturesAreReducedTogether) {
  const program::Program program = train({.tensor = 4}, plain_plan(), small_rwkv());
  const double each = 2 * 0.75 * tokens * d_model * fp32;
  const program::Block &forward = block(program, "layer", program::Phase::forward),
                       &backward = block(program, "layer", program::Phase::backward);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_reduce).bytes, 2 * each);
  EXPECT_EQ(traffic(program, forward, program::Collective::all_gather).bytes,
            each / 2);  // the gate of the feed-forward block
  // One sum in each block for its products, five in both, and one for its rows of mixing, five in both.
  EXPECT_EQ(traffic(program, backward, program::Collective::all_reduce).steps, 4);
  EXPECT_EQ(traffic(program, backward, program::Collective::all_reduce).bytes,
            2 * each + 2 * 0.75 * 5 * d_model * fp32);
}

TEST(Lowering, ExpertParallelismExchangesTokensThereAndBack) {
  const program::Program program = train({.data = 8, .expert = 8}, plain_plan(), small_experts());
  // Each device sends its 1024 tokens to two experts each; 7 of 8 leave.
  const double each = 7.0 / 8 * tokens / 8 * 2 * d_model * fp32;
  for (program::Phase phase : {program::Phase::forward, program::Phase::backward}) {
    const Traffic moved = traffic(program, block(program, "layer", phase), program::Collective::all_to_all);
    EXPECT_EQ(moved.steps, 2);
    EXPECT_EQ(moved.bytes, 2 * each);
  }
  // Experts' gradients stay where the experts are; the others are reduced.
  const double shared =
      layers * (2 * d_model * n_heads * head + 2 * d_model * n_kv * head + 2 * d_model + d_model * 8) + 2 * table;
  double reduced = 0;
  for (const program::Block& b : program.blocks)
    reduced += static_cast<double>(b.layers) * traffic(program, b, program::Collective::all_reduce).bytes;
  EXPECT_EQ(reduced, 2 * 7.0 / 8 * shared * fp32);
}

TEST(Lowering, ExpertsPartialSumsAreCombinedBeforeTheyAreReduced) {
  // As many bytes as a dense layer moves, not one tensor per chosen expert; the gradient of the gates comes on top.
  const double each = 0.75 * tokens * d_model * fp32, gates = 0.75 * tokens * 8 * fp32;
  const program::Program whole = train({.tensor = 4}, plain_plan(), small_experts());
  EXPECT_EQ(program::count(whole, block(whole, "layer", program::Phase::forward)).network, Bytes(2 * 2 * each));
  EXPECT_EQ(program::count(whole, block(whole, "layer", program::Phase::backward)).network,
            Bytes(2 * (2 * each + gates)));
  const Parallelism split{.tensor = 4, .residual = ResidualScheme::sequence};
  const program::Program cut = train(split, plain_plan(), small_experts());
  const program::Block &forward = block(cut, "layer", program::Phase::forward),
                       &backward = block(cut, "layer", program::Phase::backward);
  EXPECT_EQ(traffic(cut, forward, program::Collective::all_gather).bytes, 2 * each + gates);
  EXPECT_EQ(traffic(cut, forward, program::Collective::reduce_scatter).bytes, 2 * each);
  // Tokens and gates are gathered again, and copied for their experts again.
  EXPECT_EQ(traffic(cut, backward, program::Collective::all_gather).bytes, 4 * each + gates);
  EXPECT_EQ(traffic(cut, backward, program::Collective::reduce_scatter).bytes, 2 * each + gates);
  EXPECT_EQ(traffic(cut, backward, program::Op::dispatch).steps, 1);
}

TEST(Lowering, OneExpertPerTokenIsReachedWithTheFewestBytesToo) {
  // Gates would come on top of equal tokens, so that tokens go to their expert before they are gathered.
  model::Transformer m = small_experts();
  m.decoder.kinds[0].feed_forward->experts_per_token = 1;
  const program::Program program = train({.tensor = 4, .residual = ResidualScheme::sequence}, plain_plan(), m);
  EXPECT_EQ(program::count(program, block(program, "layer", program::Phase::forward)).network,
            Bytes(4 * 0.75 * tokens * d_model * fp32));
}

TEST(Lowering, AnExchangeOfExpertsCarriesWholeSumsWhereTokensAreSplit) {
  // Tokens of two experts each, from a quarter of the tokens of every second device: one of two leaves.
  const double copies = tokens / 2 * 2 * d_model * fp32;
  const Parallelism split{.data = 2, .tensor = 4, .expert = 2, .residual = ResidualScheme::sequence};
  const program::Program cut = train(split, plain_plan(), small_experts());
  EXPECT_EQ(traffic(cut, block(cut, "layer", program::Phase::forward), program::Collective::all_to_all).bytes,
            2 * copies / 4 / 2);
  // Where every device of a group has all tokens, the exchange is the same in either order.
  const program::Program whole = train({.data = 2, .tensor = 4, .expert = 2}, plain_plan(), small_experts());
  for (program::Phase phase : {program::Phase::forward, program::Phase::backward})
    EXPECT_EQ(traffic(whole, block(whole, "layer", phase), program::Collective::all_to_all).bytes, 2 * copies / 2);
  EXPECT_EQ(traffic(whole, block(whole, "layer", program::Phase::forward), program::Collective::all_reduce).bytes,
            2 * 2 * 0.75 * tokens / 2 * d_model * fp32);
}

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
    const program::ProgramCount ours = program::count(train(p));
    const double theirs = number(std::string(trim(parts[1])));
    EXPECT_NEAR(ours.flops.value() / theirs, 1.0, 0.03) << parts[0];
    EXPECT_LE(ours.network.value(), recorded * (1 + 1e-9)) << parts[0];
    fmt::print("{}: FLOP {:.5f} of XLA's, bytes {} against {}\n", head_words[0], ours.flops.value() / theirs,
               ours.network.value(), recorded);
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

// Eight devices share four heads of keys: tp(1) splits them, tp(2) holds two copies, and only the gradients of W_k and
// W_v are summed over tp(2), each 512 x 64 numbers on a device, once in each of two layers.
TEST(Lowering, GradientsOfCopiedKeysAreSummedOverTheCopies) {
  const Parallelism p{.tensor = 8};
  const auto [mesh, rules] = training_stage(p, small_llama());
  EXPECT_EQ(program::mesh_text(mesh), "tp(1)=4,tp(2)=2");
  EXPECT_EQ(mesh.axes[1].role, program::Role::tensor);
  const program::Program program = lower_training(small_llama(), mesh, rules, plain_plan());
  const program::AxisSet copies = program::axis_bit(1);
  double bytes = 0;
  int summed = 0;
  for (const program::Step& step : program.steps)
    if (program::is_collective(step.op) && step.axes == copies) {
      EXPECT_TRUE(step.is(program::Collective::all_reduce));
      EXPECT_EQ(step.urgency, program::Urgency::afterwards);
      bytes += step.bytes.value();
      ++summed;
    }
  EXPECT_EQ(summed, 2);
  EXPECT_DOUBLE_EQ(bytes, 2 * d_model * head * fp32);
}

}  // namespace
}  // namespace assay::lower
