// Small transformers, executed under every parallelism scheme: losses and gradients equal those of one device, which
// equal finite differences; cached decoding equals recomputation.
#include "assay/execute/run_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "assay/execute/program_step.h"
#include "assay/lower/lowering.h"

namespace assay {
namespace {

constexpr std::int64_t sequences = 8, length = 8;

Attention grouped_attention() {
  Attention a;
  a.heads = 4, a.kv_heads = 2, a.head_dim = 4, a.value_dim = 4;
  return a;
}

Attention latent_attention(std::int64_t q_rank) {
  Attention a;
  a.heads = a.kv_heads = 4;
  a.head_dim = 6, a.value_dim = 4, a.rope_dim = 2, a.kv_rank = 8, a.q_rank = q_rank;
  return a;
}

/// Over the keys that an index picks.
Attention picking_attention(std::int64_t picks) {
  Attention a = latent_attention(8);
  a.index_heads = 2, a.index_dim = 4, a.index_picks = picks;
  return a;
}

FeedForward dense() {
  FeedForward f;
  f.width = 24;
  return f;
}

FeedForward experts() {
  FeedForward f;
  f.width = 8, f.experts = 4, f.experts_per_token = 2;
  return f;
}

Layer layer(const Attention& attention, const FeedForward& feed_forward) {
  Layer l;
  l.attention = attention, l.feed_forward = feed_forward;
  return l;
}

Transformer model(std::initializer_list<Layer> layers) {
  Transformer m;
  m.id = "small";
  m.d_model = 16, m.vocabulary = 32;
  for (const Layer& l : layers) m.decoder.add(l);
  return m;
}

struct Variety {
  std::string name;
  Transformer model;
};

std::vector<Variety> varieties() {
  std::vector<Variety> out;
  const Layer grouped = layer(grouped_attention(), dense());
  out.push_back({"grouped queries", model({grouped, grouped})});
  {
    Transformer m = model({grouped});
    m.tied = true, m.final_norm = false;
    out.push_back({"tied head, no final norm", m});
  }
  {
    Layer l = grouped, side = grouped, sandwich = grouped;
    for (Layer* one : {&l, &side, &sandwich}) {
      Attention& a = *one->attention;
      a.q_bias = a.k_bias = a.v_bias = a.o_bias = true;
      one->feed_forward->up_bias = one->feed_forward->down_bias = true;
    }
    side.parallel = true, side.norms = 1;
    sandwich.norms = 4;
    Transformer m = model({l, side, sandwich});
    m.norm = {true, true, true};
    m.learned_positions = 12, m.embedding_norm = m.head_bias = true;
    out.push_back({"biases everywhere, learned positions", m});
  }
  {
    FeedForward f = experts();
    f.up_bias = f.down_bias = f.router_bias = true;
    f.shared_width = 8, f.shared_gate = true;
    Layer l = layer(grouped_attention(), f);
    l.attention->kv_heads = 1, l.attention->k_bias = true;
    out.push_back({"experts with biases, a gated shared one", model({l})});
  }
  {
    Transformer m = model({grouped});
    m.embedding_width = 8, m.tied = true, m.learned_positions = 12;
    out.push_back({"narrow embedding, tied", m});
    m.tied = false;
    out.push_back({"narrow embedding and head", m});
  }
  {
    Layer near = grouped, far = grouped;
    for (Layer* one : {&near, &far}) one->norms = 5, one->token_input = 8;
    near.attention->window = 3;
    Transformer m = model({near, far});
    m.token_input_vocabulary = 32, m.tied = true;
    out.push_back({"an input of each layer from the token", m});
  }
  {
    Layer l = grouped;
    l.attention->kv_heads = 1;
    l.attention->qk_norm = Attention::QkNorm::per_head;
    out.push_back({"one head of keys beside two", model({l, grouped})});
  }
  {
    Layer l = grouped;
    l.parallel = true, l.norms = 1;
    l.feed_forward->gated = false;
    Transformer m = model({l, l});
    m.norm = {true, true, true};
    out.push_back({"parallel layer with layer norm", m});
    l.norms = 2;
    out.push_back({"parallel layer with two norms", model({l})});
  }
  {
    Layer l = grouped, local = grouped;
    l.norms = local.norms = 4;
    l.attention->qk_norm = local.attention->qk_norm = Attention::QkNorm::per_head;
    local.attention->window = 3;
    out.push_back({"sandwich norms, sliding window", model({local, l, local})});
  }
  {
    Layer l = grouped;
    l.attention->qk_norm = Attention::QkNorm::whole;
    l.attention->chunk = 4;
    l.attention->output_gate = true;
    out.push_back({"chunks, wide norms of queries and keys, output gate", model({l})});
  }
  {
    FeedForward f = experts();
    f.shared_width = 8;
    out.push_back({"experts beside a shared one", model({grouped, layer(grouped_attention(), f)})});
    f.shared_width = 0, f.latent = 8;
    out.push_back({"experts in latent dimensions", model({layer(grouped_attention(), f)})});
  }
  out.push_back(
      {"latent attention", model({layer(latent_attention(8), dense()), layer(latent_attention(8), dense())})});
  out.push_back({"latent attention with experts", model({layer(latent_attention(0), experts())})});
  out.push_back({"picked keys", model({layer(picking_attention(3), dense()), layer(latent_attention(8), experts())})});
  return out;
}

StateSpace recurrent(StateSpace::Kind kind) {
  StateSpace s;
  s.kind = kind;
  s.heads = 4, s.key_heads = 2, s.key_dim = 4, s.inner = 16, s.convolution = 2;
  s.convolution_bias = true;
  if (kind == StateSpace::Kind::mamba1) s.dt_rank = 2, s.inner_norms = true, s.output_norm = false;
  if (kind == StateSpace::Kind::mamba2) s.projection_bias = true;
  if (kind == StateSpace::Kind::lightning) s.key_heads = 4, s.convolution = 0;
  return s;
}

std::vector<Variety> all_varieties() {
  std::vector<Variety> out;
  const Layer grouped = layer(grouped_attention(), dense());
  {
    Layer near = grouped, far = grouped, near_again = grouped, far_again = grouped;
    near.attention->window = near_again.attention->window = 3;
    near.attention->lends_kv = far.attention->lends_kv = true;
    near_again.attention->shares_kv = far_again.attention->shares_kv = true;
    near_again.attention->qk_norm = Attention::QkNorm::per_head;
    out.push_back({"keys of earlier layers", model({grouped, near, far, near_again, far_again, near_again})});
  }
  {
    Layer encoder = grouped, decoder = grouped;
    encoder.attention->causal = false;
    encoder.attention->relative_buckets = decoder.attention->relative_buckets = 8;
    decoder.cross_attention = grouped_attention();
    decoder.cross_attention->causal = false, decoder.cross_attention->cross = true;
    decoder.norms = 3;
    Transformer m = model({decoder, decoder});
    m.tied = true;
    m.encoder.emplace();
    m.encoder->add(encoder), m.encoder->add(encoder);
    out.push_back({"encoder and decoder, relative positions", m});
    m.tied = m.final_norm = false, m.embedding_norm = true;
    m.learned_positions = 8;
    out.push_back({"encoder and decoder, learned positions", m});
  }
  {
    Layer l = grouped;
    l.attention->sinks = true;
    out.push_back({"sinks", model({l})});
  }
  using enum StateSpace::Kind;
  for (const auto& [name, kind] : {std::pair{"mamba 1", mamba1}, std::pair{"mamba 2", mamba2},
                                   std::pair{"gated delta rule", gated_delta}, std::pair{"lightning", lightning}}) {
    Layer l = grouped;
    l.attention.reset();
    l.state_space = recurrent(kind);
    out.push_back({name, model({l, grouped})});
  }
  {
    Layer l = grouped;
    l.state_space = recurrent(mamba2);
    out.push_back({"attention beside a state space", model({l})});
  }
  const std::vector<Variety> more = varieties();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

bool has_experts(const Transformer& m) {
  for (const Layer& l : m.decoder.kinds)
    if (l.feed_forward->experts > 0) return true;
  return false;
}

TrainingPlan plan(const Transformer& m, std::int64_t microbatches = 1) {
  TrainingPlan p;
  p.work.sequences = sequences / microbatches;
  p.work.queries = p.work.keys = length;
  p.work.source = m.encoder ? length : 0;
  p.microbatches = microbatches;
  // Room for every token at every expert: nothing is dropped, so that sharding changes nothing.
  if (has_experts(m)) p.work.expert_load = 2.0;
  return p;
}

Array<double> random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  Array<double> out = zeros<double>({sequences, count});
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = static_cast<double>(mixed(seed, i) % static_cast<std::uint64_t>(vocabulary));
  return out;
}

TrainingRun train(const Transformer& m, const Parallelism& p, const TrainingPlan& how, const NamedArrays& weights) {
  const auto [mesh, rules] = training_stage(p, m);
  const Program program = lower_training(m, mesh, rules, how);
  const auto some = [&](std::uint64_t seed) {
    return part(random_tokens(length, m.vocabulary, seed), 0, 0, how.work.sequences * how.microbatches);
  };
  return run_training(program, m, weights, some(1), some(2));
}

NamedArrays weights_of(const Transformer& m) { return random_weights(lower_training(m, {}, {}, plan(m)), m, 7); }

/// The largest difference between two sets of arrays, each as a share of its largest value.
double difference(const NamedArrays& a, const NamedArrays& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (const auto& [name, array] : a) {
    if (!b.contains(name)) return INFINITY;
    worst = std::max(worst, largest_difference(array, b.at(name)) / std::max(1e-3, largest_magnitude(array)));
  }
  return worst;
}

void expect_equal(const TrainingRun& run, const TrainingRun& one) {
  EXPECT_NEAR(run.loss, one.loss, 1e-11);
  EXPECT_LT(difference(run.gradients, one.gradients), 1e-9);
  EXPECT_LT(difference(run.updated, one.updated), 1e-9);
  EXPECT_LT(run.facts.disagreement, 1e-12);
  EXPECT_LT(run.facts.byte_error, 1e-12);
}

struct Scheme {
  std::string name;
  Parallelism parallelism;
};

std::vector<Scheme> schemes(const Transformer& m) {
  using enum ResidualScheme;
  std::vector<Scheme> out{
      {"data", {.data = 4}},
      {"zero 1", {.data = 4, .zero = 1}},
      {"zero 2", {.data = 4, .zero = 2}},
      {"zero 3", {.data = 4, .zero = 3}},
      {"fsdp", {.fsdp = 4}},
      {"hybrid fsdp", {.data = 2, .fsdp = 2}},
      {"hybrid fsdp, zero 1", {.data = 2, .fsdp = 2, .zero = 1}},
      {"tensor", {.tensor = 2}},
      {"tensor, sequence", {.tensor = 2, .residual = sequence}},
      {"tensor, split d_model", {.tensor = 2, .residual = ResidualScheme::model}},
      {"fsdp x tensor", {.fsdp = 2, .tensor = 2}},
      {"data x fsdp x tensor, sequence", {.data = 2, .fsdp = 2, .tensor = 2, .zero = 2, .residual = sequence}},
      {"context, gather", {.context = 2}},
      {"context, exchange", {.context = 2, .context_scheme = ContextScheme::exchange}},
      {"fsdp x context", {.fsdp = 2, .context = 2}},
      {"tensor x context, sequence", {.tensor = 2, .context = 2, .residual = sequence}},
      {"data x tensor x context, split d_model",
       {.data = 2, .tensor = 2, .context = 2, .zero = 1, .residual = ResidualScheme::model}},
  };
  // More devices than heads of keys: some hold copies of them.
  out.push_back({"tensor, copied keys", {.tensor = 4}});
  out.push_back({"fsdp x tensor, copied keys, sequence", {.fsdp = 2, .tensor = 4, .residual = sequence}});
  out.push_back({"tensor x context, more than heads of keys", {.tensor = 2, .context = 4}});
  out.push_back({"tensor x context, copied keys, exchange",
                 {.tensor = 2, .context = 2, .context_scheme = ContextScheme::exchange}});
  if (!has_experts(m)) return out;
  const std::vector<Scheme> with_experts{
      {"expert from data", {.data = 4, .expert = 2}},
      {"expert from fsdp", {.fsdp = 4, .expert = 2}},
      {"expert from both, zero 1", {.data = 2, .fsdp = 2, .expert = 4, .zero = 1}},
      {"expert x tensor", {.fsdp = 2, .tensor = 2, .expert = 2}},
      {"expert x tensor, sequence", {.data = 2, .tensor = 2, .expert = 2, .residual = sequence}},
      {"expert x tensor, split d_model",
       {.data = 2, .fsdp = 2, .tensor = 2, .expert = 2, .residual = ResidualScheme::model}},
      {"expert x context", {.fsdp = 2, .context = 2, .expert = 2}},
      {"experts over tensor", {.tensor = 2, .expert = 2, .expert_over = {.tensor = true}}},
      {"experts over tensor, sequence",
       {.tensor = 2, .expert = 2, .expert_over = {.tensor = true}, .residual = sequence}},
      {"experts over tensor, split d_model",
       {.data = 2, .tensor = 2, .expert = 4, .expert_over = {.tensor = true}, .residual = ResidualScheme::model}},
      {"experts over data and tensor", {.fsdp = 2, .tensor = 2, .expert = 4, .expert_over = {.tensor = true}}},
      {"experts over data and tensor, sequence, zero 1",
       {.data = 4, .tensor = 2, .expert = 4, .expert_over = {.tensor = true}, .zero = 1, .residual = sequence}},
      {"experts over tensor, copied keys, sequence",
       {.fsdp = 2, .tensor = 4, .expert = 4, .expert_over = {.tensor = true}, .residual = sequence}},
      {"experts over context", {.fsdp = 2, .context = 2, .expert = 2, .expert_over = {.context = true}}},
      {"experts over data and context, exchange",
       {.data = 2,
        .context = 2,
        .expert = 4,
        .expert_over = {.context = true},
        .zero = 2,
        .context_scheme = ContextScheme::exchange}},
      {"experts over tensor and context, sequence",
       {.fsdp = 2,
        .tensor = 2,
        .context = 2,
        .expert = 4,
        .expert_over = {.tensor = true, .context = true},
        .residual = sequence}},
  };
  out.insert(out.end(), with_experts.begin(), with_experts.end());
  return out;
}

TEST(RunTraining, EverySchemeGivesTheGradientsOfOneDevice) {
  for (const Variety& variety : all_varieties()) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, plan(variety.model), weights);
    for (const Scheme& scheme : schemes(variety.model)) {
      SCOPED_TRACE(variety.name + ", " + scheme.name);
      ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, plan(variety.model), weights), one));
    }
  }
}

// Numbers are not rounded: what is cast, and where, changes no result.
TEST(RunTraining, CastsForProductsChangeNothing) {
  for (const Variety& variety : all_varieties()) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, plan(variety.model), weights);
    for (const Scheme& scheme : schemes(variety.model)) {
      TrainingPlan quantised = plan(variety.model), wide = quantised, again = quantised;
      quantised.formats.compute = again.formats.compute = Dtype::fp8;
      wide.formats.weights = wide.formats.gradients = Dtype::fp32;
      again.recompute = Recompute::full();
      std::vector<TrainingPlan> plans{quantised, wide};
      if (scheme.parallelism.residual == ResidualScheme::sequence) plans.push_back(again);
      for (const TrainingPlan& how : plans) {
        SCOPED_TRACE(fmt::format("{}, {}, weights {}, products {}, recompute {}", variety.name, scheme.name,
                                 name(how.formats.weights), name(how.formats.compute), name(how.recompute)));
        ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, how, weights), one));
      }
    }
  }
}

TEST(RunTraining, MicrobatchesAndRecomputationChangeNothing) {
  const std::vector<Scheme> some{
      {"one device", {}},
      {"data", {.data = 2}},
      {"zero 2", {.data = 2, .zero = 2}},
      {"hybrid fsdp x tensor, sequence",
       {.data = 2, .fsdp = 2, .tensor = 2, .zero = 1, .residual = ResidualScheme::sequence}},
      {"fsdp x tensor, split d_model", {.fsdp = 2, .tensor = 2, .residual = ResidualScheme::model}},
      {"fsdp x context", {.fsdp = 2, .context = 2}}};
  for (const Variety& variety : all_varieties()) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, plan(variety.model), weights);
    for (const Scheme& scheme : some)
      for (const Recompute& recompute : {Recompute::none(), Recompute::selective(), Recompute::full()}) {
        SCOPED_TRACE(fmt::format("{}, {}, recompute {}", variety.name, scheme.name, name(recompute)));
        TrainingPlan how = plan(variety.model, 2);
        how.recompute = recompute;
        ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, how, weights), one));
      }
  }
}

TEST(RunTraining, GradientsAreFiniteDifferencesOfTheLoss) {
  constexpr double step = 3e-6;  // errors: step squared from the cut-off, 1e-16 / step from rounding
  for (const Variety& variety : all_varieties()) {
    const NamedArrays weights = weights_of(variety.model);
    TrainingPlan how = plan(variety.model);
    how.work.sequences = 2;
    const TrainingRun one = train(variety.model, {}, how, weights);
    // What an index picks has no gradient.
    const auto picks = [](const auto& named) {
      return named.first.ends_with("W_iq") || named.first.ends_with("W_iw") || named.first.ends_with("W_ik") ||
             named.first.ends_with("ik_norm");
    };
    ASSERT_EQ(one.gradients.size(),
              weights.size() - static_cast<std::size_t>(std::count_if(weights.begin(), weights.end(), picks)));
    for (const auto& [name, gradient] : one.gradients) {
      // The entry with the largest gradient: of an embedding most are zero.
      std::size_t most = 0;
      for (std::size_t i = 0; i < gradient.values.size(); ++i)
        if (std::abs(gradient.values[i]) > std::abs(gradient.values[most])) most = i;
      for (std::size_t i : {most, gradient.values.size() / 2}) {
        const auto loss = [&](double by) {
          NamedArrays moved = weights;
          moved.at(name).values[i] += by;
          return train(variety.model, {}, how, moved).loss;
        };
        EXPECT_NEAR(gradient.values[i], (loss(step) - loss(-step)) / (2 * step), 5e-9) << variety.name << ' ' << name;
      }
      // A bias of keys that nothing turns shifts all scores of a query alike: no loss depends on it.
      if (!name.ends_with("b_k") || variety.model.learned_positions == 0)
        EXPECT_GT(std::abs(gradient.values[most]), 1e-6) << variety.name << ' ' << name;
    }
  }
}

TEST(RunTraining, FlashAttentionEqualsPlainAttention) {
  for (const Variety& variety : all_varieties()) {
    SCOPED_TRACE(variety.name);
    const NamedArrays weights = weights_of(variety.model);
    TrainingPlan plain = plan(variety.model);
    plain.work.flash = false;
    expect_equal(train(variety.model, {.tensor = 2, .context = 2}, plain, weights),
                 train(variety.model, {}, plan(variety.model), weights));
  }
}

TEST(RunTraining, PickingAllKeysIsDenseAttention) {
  const auto of = [](const Attention& a) { return model({layer(a, dense())}); };
  const Transformer few = of(picking_attention(3)), all = of(picking_attention(length)), none = of(latent_attention(8));
  const NamedArrays weights = weights_of(few);
  for (const Parallelism& p : {Parallelism{}, Parallelism{.fsdp = 2, .tensor = 2, .context = 2}}) {
    const TrainingRun dense_run = train(none, p, plan(none), weights);
    EXPECT_NEAR(train(all, p, plan(all), weights).loss, dense_run.loss, 1e-12);
    EXPECT_LT(difference(train(all, p, plan(all), weights).gradients, dense_run.gradients), 1e-9);
    EXPECT_GT(std::abs(train(few, p, plan(few), weights).loss - dense_run.loss), 1e-6);
  }
}

TEST(RunTraining, ADescentLowersTheLoss) {
  const Transformer m = varieties().front().model;
  NamedArrays weights = weights_of(m);
  double before = INFINITY;
  for (int i = 0; i < 3; ++i) {
    const TrainingRun run = train(m, {.data = 2, .tensor = 2, .zero = 1}, plan(m), weights);
    EXPECT_LT(run.loss, before);
    before = run.loss;
    weights = run.updated;
  }
}

// --- resharding

/// A random sharding of three dimensions over three axes; axes that stay partial sums only if `partial` allows.
Sharding random_sharding(AxisSet partial) {
  Sharding out;
  std::vector<int> order{0, 1, 2};
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) std::next_permutation(order.begin(), order.end());
  for (int axis : order) {
    const int place = *rc::gen::inRange(0, 5);
    if (place < 3)
      out.dims[static_cast<std::size_t>(place)] = out.dims[static_cast<std::size_t>(place)].pushed(axis);
    else if (place == 3)
      out.unreduced |= axis_bit(axis) & partial;
  }
  return out;
}

RC_GTEST_PROP(RunReshard, AnyShardingBecomesAnyOther, ()) {
  Program program;
  program.mesh = {{{"X", 2}, {"Y", 2}, {"Z", 2}}};
  program.axis_sizes = {2, 2, 2};
  const ShardingRules rules;
  Builder builder(program, rules, Formats{}, Recompute::none());
  builder.begin_block("reshard", Phase::forward, -1, 1);
  using enum LogicalDim;
  const int from = builder.tensor("A", {{LogicalDim::batch, 8}, {LogicalDim::sequence, 8}, {d_model, 8}},
                                  TensorClass::activation, Dtype::fp32);
  const Sharding before = random_sharding(~AxisSet{0}), after = random_sharding(before.unreduced);
  program.place(from, before);
  const int to = builder.reshard(from, after, Urgency::critical);
  RC_ASSERT(program.tensor(to).sharding == after);
  const Transformer none;
  StepRunner runner(program, none, 1);
  ProgramMemory memory(program.tensors.size());
  const Array<double> whole = random_integers<double>({8, 8, 8}, 5);
  memory[0] = runner.distributed(whole, from);
  for (const Step& step : program.steps) runner.run(step, nullptr, memory);
  RC_ASSERT(runner.collected(to, memory) == whole);
  RC_ASSERT(runner.disagreement() == 0.0);
  RC_ASSERT(runner.byte_error() < 1e-12);
}

// --- serving

struct ServingCase {
  std::string name;
  Parallelism parallelism;
  ServingScheme scheme;
};

std::vector<ServingCase> serving_cases(const Transformer& m) {
  using enum CacheScheme;
  using enum WeightScheme;
  std::vector<ServingCase> out{
      {"one device", {}, {}},
      {"replicas", {.data = 2}, {}},
      {"tensor, cache by heads", {.tensor = 2}, {heads, one_dimension}},
      {"tensor, cache by batch", {.data = 2, .tensor = 2}, {batch, one_dimension}},
      {"tensor, cache by position", {.tensor = 2}, {CacheScheme::sequence, one_dimension}},
      {"two dimensions, cache by heads", {.fsdp = 2, .tensor = 2}, {heads, two_dimensions}},
      {"two dimensions, cache by batch", {.fsdp = 2, .tensor = 2}, {batch, two_dimensions}},
      {"two dimensions, cache by position",
       {.data = 2, .fsdp = 2, .tensor = 2},
       {CacheScheme::sequence, two_dimensions}},
      {"gathered, cache by heads", {.fsdp = 2, .tensor = 2}, {heads, gathered}},
      {"gathered, cache by batch", {.fsdp = 2, .tensor = 2}, {batch, gathered}},
      {"gathered, cache by position", {.fsdp = 2, .tensor = 2}, {CacheScheme::sequence, gathered}},
  };
  out.push_back({"tensor, copied keys", {.tensor = 4}, {heads, one_dimension}});
  out.push_back({"two dimensions, copied keys", {.fsdp = 2, .tensor = 4}, {heads, two_dimensions}});
  if (!has_experts(m)) return out;
  out.push_back({"experts", {.data = 4, .expert = 4}, {}});
  out.push_back({"experts x tensor", {.data = 2, .tensor = 2, .expert = 2}, {batch, one_dimension}});
  out.push_back({"experts, two dimensions", {.data = 2, .fsdp = 2, .tensor = 2, .expert = 2}, {heads, two_dimensions}});
  out.push_back({"experts, gathered", {.data = 2, .fsdp = 2, .tensor = 2, .expert = 2}, {batch, gathered}});
  out.push_back(
      {"experts over tensor", {.tensor = 4, .expert = 4, .expert_over = {.tensor = true}}, {heads, one_dimension}});
  out.push_back({"experts over tensor, cache by batch",
                 {.tensor = 2, .expert = 2, .expert_over = {.tensor = true}},
                 {batch, one_dimension}});
  out.push_back({"experts over data and tensor",
                 {.data = 2, .tensor = 2, .expert = 4, .expert_over = {.tensor = true}},
                 {heads, one_dimension}});
  return out;
}

Workload served(const Transformer& m, std::int64_t queries, std::int64_t keys) {
  Workload work;
  work.sequences = sequences, work.queries = queries, work.keys = keys;
  work.cached = keys > queries;
  work.source = m.encoder ? length : 0;
  if (has_experts(m)) work.expert_load = 2.0;
  return work;
}

ServingRun serve(const Transformer& m, const ServingCase& how, const NamedArrays& weights, const Array<double>& tokens,
                 std::int64_t from, std::int64_t to, ServedSequences& kept) {
  const auto [mesh, rules] = serving_stage(how.parallelism, how.scheme, m);
  const Program program = lower_serving(m, mesh, rules, served(m, to - from, to), Formats{});
  return run_serving(program, m, weights, part(tokens, 1, from, to - from), kept);
}

/// Before the first token; of an encoder-decoder with what its encoder made.
ServedSequences unserved(const Transformer& m) {
  ServedSequences out;
  if (m.encoder) out.encoded = random_reals<double>({sequences, length, m.d_model}, 5);
  return out;
}

TEST(RunServing, CachedDecodingEqualsRecomputation) {
  constexpr std::int64_t prompt = 4;
  for (const Variety& variety : all_varieties()) {
    const Transformer& m = variety.model;
    const NamedArrays weights = weights_of(m);
    const Array<double> tokens = random_tokens(length, m.vocabulary, 3);
    std::vector<ServingRun> expected;
    for (std::int64_t keys = prompt; keys <= length; ++keys) {
      ServedSequences fresh = unserved(m);
      expected.push_back(serve(m, {"one device", {}, {}}, weights, tokens, 0, keys, fresh));
    }
    const auto check = [&](const ServingRun& run, std::int64_t keys) {
      const ServingRun& full = expected[static_cast<std::size_t>(keys - prompt)];
      EXPECT_LT(largest_difference(run.logits, full.logits), 1e-11) << keys;
      EXPECT_EQ(run.chosen, full.chosen) << keys;
      EXPECT_LT(run.facts.disagreement, 1e-12);
      EXPECT_LT(run.facts.byte_error, 1e-12);
    };
    for (const ServingCase& how : serving_cases(m)) {
      SCOPED_TRACE(variety.name + ", " + how.name);
      ServedSequences kept = unserved(m);
      ASSERT_NO_THROW(check(serve(m, how, weights, tokens, 0, prompt, kept), prompt));
      // Two tokens at once (a chunk of a prompt, or a draft to verify), then one by one.
      ASSERT_NO_THROW(check(serve(m, how, weights, tokens, prompt, prompt + 2, kept), prompt + 2));
      for (std::int64_t keys = prompt + 3; keys <= length; ++keys)
        ASSERT_NO_THROW(check(serve(m, how, weights, tokens, keys - 1, keys, kept), keys));
    }
  }
}

}  // namespace
}  // namespace assay
