// Small transformers, executed under every parallelism scheme: losses and gradients equal those of one device, which
// equal finite differences.
#include "assay/engine/program/run_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "assay/engine/program/step.h"
#include "assay/program/lower/lowering.h"
#include "assay/testing/sampling.h"
#include "assay/testing/small_programs.h"
#include "assay/testing/small_schemes.h"

namespace assay::engine {
namespace {

using namespace testing::small;
using testing::in_turn;
using testing::sampled;

TEST(RunTraining, EverySchemeGivesTheGradientsOfOneDevice) {
  for (const Variety& variety : all_varieties()) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, small_plan(variety.model), weights);
    for (const Scheme& scheme : sampled(schemes(variety.model))) {
      SCOPED_TRACE(variety.name + ", " + scheme.name);
      ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, small_plan(variety.model), weights), one));
    }
  }
}

// Numbers are not rounded: what is cast, and where, changes no result.
TEST(RunTraining, CastsForProductsChangeNothing) {
  for (const Variety& variety : sampled(all_varieties())) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, small_plan(variety.model), weights);
    for (const Scheme& scheme : sampled(in_turn(schemes(variety.model), 4))) {
      lower::TrainingPlan quantised = small_plan(variety.model), wide = quantised, again = quantised;
      quantised.formats.compute = again.formats.compute = Dtype::fp8;
      wide.formats.weights = wide.formats.gradients = Dtype::fp32;
      again.recompute = lower::Recompute::full();
      std::vector<lower::TrainingPlan> plans{quantised, wide};
      if (scheme.parallelism.residual == lower::ResidualScheme::sequence) plans.push_back(again);
      for (const lower::TrainingPlan& how : plans) {
        SCOPED_TRACE(fmt::format("{}, {}, weights {}, products {}, recompute {}", variety.name, scheme.name,
                                 name(how.formats.weights), name(how.formats.compute), lower::name(how.recompute)));
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
       {.data = 2, .fsdp = 2, .tensor = 2, .zero = 1, .residual = lower::ResidualScheme::sequence}},
      {"fsdp x tensor, split d_model", {.fsdp = 2, .tensor = 2, .residual = lower::ResidualScheme::model}},
      {"fsdp x context", {.fsdp = 2, .context = 2}}};
  for (const Variety& variety : sampled(all_varieties())) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, small_plan(variety.model), weights);
    for (const Scheme& scheme : sampled(in_turn(some, 2)))
      for (const lower::Recompute& recompute :
           sampled(std::vector{lower::Recompute::none(), lower::Recompute::selective(), lower::Recompute::full()})) {
        SCOPED_TRACE(fmt::format("{}, {}, recompute {}", variety.name, scheme.name, lower::name(recompute)));
        lower::TrainingPlan how = small_plan(variety.model, 2);
        how.recompute = recompute;
        ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, how, weights), one));
      }
  }
}

TEST(RunTraining, GradientsAreFiniteDifferencesOfTheLoss) {
  constexpr double step = 3e-6;  // errors: step squared from the cut-off, 1e-16 / step from rounding
  for (const Variety& variety : sampled(all_varieties())) {
    const NamedArrays weights = weights_of(variety.model);
    lower::TrainingPlan how = small_plan(variety.model);
    how.work.sequences = 2;
    const TrainingRun one = train(variety.model, {}, how, weights);
    // What an index picks has no gradient.
    const auto picks = [](const auto& named) {
      return named.first.ends_with("W_iq") || named.first.ends_with("W_iw") || named.first.ends_with("W_ik") ||
             named.first.ends_with("ik_norm");
    };
    ASSERT_EQ(one.gradients.size(),
              weights.size() - static_cast<std::size_t>(std::count_if(weights.begin(), weights.end(), picks)));
    std::vector<std::string> names;
    for (const auto& named : one.gradients) names.push_back(named.first);
    for (const std::string& name : sampled(names)) {
      const Array& gradient = one.gradients.at(name);
      // The entry with the largest gradient: of an embedding most are zero.
      std::size_t most = 0;
      for (std::size_t i = 0; i < gradient.values.size(); ++i)
        if (std::abs(gradient.values[i]) > std::abs(gradient.values[most])) most = i;
      for (std::size_t i : sampled<std::size_t>({most, gradient.values.size() / 2})) {
        const auto loss = [&](double by) {
          NamedArrays moved = weights;
          moved.at(name).values[i] += by;
          return train(variety.model, {}, how, moved).loss;
        };
        const double value = gradient.values[i];  // processors that round otherwise move some by 2e-7 of their size
        EXPECT_NEAR(value, (loss(step) - loss(-step)) / (2 * step), 5e-9 + 1e-6 * std::abs(value))
            << variety.name << ' ' << name;
      }
      // A bias of keys that nothing turns shifts all scores of a query alike: no loss depends on it.
      if (!name.ends_with("b_k") || variety.model.learned_positions == 0)
        EXPECT_GT(std::abs(gradient.values[most]), 1e-6) << variety.name << ' ' << name;
    }
  }
}

TEST(RunTraining, FlashAttentionEqualsPlainAttention) {
  for (const Variety& variety : sampled(all_varieties())) {
    SCOPED_TRACE(variety.name);
    const NamedArrays weights = weights_of(variety.model);
    lower::TrainingPlan plain = small_plan(variety.model);
    plain.work.flash = false;
    expect_equal(train(variety.model, {.tensor = 2, .context = 2}, plain, weights),
                 train(variety.model, {}, small_plan(variety.model), weights));
  }
}

TEST(RunTraining, PickingAllKeysIsDenseAttention) {
  const auto of = [](const model::Attention& a) { return model_of({layer(a, dense())}); };
  const model::Transformer few = of(picking_attention(3)), all = of(picking_attention(length)),
                           none = of(latent_attention(8));
  const NamedArrays weights = weights_of(few);
  for (const lower::Parallelism& p : {lower::Parallelism{}, lower::Parallelism{.fsdp = 2, .tensor = 2, .context = 2}}) {
    const TrainingRun dense_run = train(none, p, small_plan(none), weights);
    EXPECT_NEAR(train(all, p, small_plan(all), weights).loss, dense_run.loss, 1e-12);
    EXPECT_LT(difference(train(all, p, small_plan(all), weights).gradients, dense_run.gradients), 1e-9);
    EXPECT_GT(std::abs(train(few, p, small_plan(few), weights).loss - dense_run.loss), 1e-6);
  }
}

TEST(RunTraining, ADescentLowersTheLoss) {
  const model::Transformer m = embedding_varieties().front().model;
  NamedArrays weights = weights_of(m);
  double before = INFINITY;
  for (int i = 0; i < 3; ++i) {
    const TrainingRun run = train(m, {.data = 2, .tensor = 2, .zero = 1}, small_plan(m), weights);
    EXPECT_LT(run.loss, before);
    before = run.loss;
    weights = run.updated;
  }
}

// --- resharding

/// A random sharding of three dimensions over three axes; axes that stay partial sums only if `partial` allows.
program::Sharding random_sharding(program::AxisSet partial) {
  program::Sharding out;
  std::vector<int> order{0, 1, 2};
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) std::next_permutation(order.begin(), order.end());
  for (int axis : order) {
    const int place = *rc::gen::inRange(0, 5);
    if (place < 3)
      out.dims[static_cast<std::size_t>(place)] = out.dims[static_cast<std::size_t>(place)].pushed(axis);
    else if (place == 3)
      out.unreduced |= program::axis_bit(axis) & partial;
  }
  return out;
}

RC_GTEST_PROP(RunReshard, AnyShardingBecomesAnyOther, ()) {
  program::Program program;
  program.set_mesh({{{"X", 2}, {"Y", 2}, {"Z", 2}}});
  const lower::ShardingRules rules;
  lower::Builder builder(program, rules, lower::Formats{}, lower::Recompute::none());
  builder.begin_block("reshard", program::Phase::forward, -1, 1);
  using enum model::LogicalDim;
  const int from = builder.tensor("A", {{model::LogicalDim::batch, 8}, {model::LogicalDim::sequence, 8}, {d_model, 8}},
                                  program::TensorClass::activation, Dtype::fp32);
  const program::Sharding before = random_sharding(~program::AxisSet{0}), after = random_sharding(before.unreduced);
  program.place(from, before);
  const int to = builder.reshard(from, after, program::Urgency::critical);
  RC_ASSERT(program.tensor(to).sharding == after);
  StepRunner runner(program, 1);
  ProgramMemory memory(program.tensors.size());
  const Array whole = random_integers({8, 8, 8}, 5);
  memory[0] = runner.distributed(whole, from);
  for (const program::Step& step : program.steps) runner.run(step, nullptr, memory);
  RC_ASSERT(runner.collected(to, memory) == whole);
  RC_ASSERT(runner.disagreement() == 0.0);
  RC_ASSERT(runner.byte_error() < 1e-12);
}

// --- serving

}  // namespace
}  // namespace assay::engine
