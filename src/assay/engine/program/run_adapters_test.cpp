// Low-rank adapters of small models, executed: only they have gradients, under every scheme those of one device, which
// are finite differences of the loss.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "assay/testing/sampling.h"
#include "assay/testing/small_schemes.h"

namespace assay::engine {
namespace {

using namespace testing::small;
using testing::sampled;

bool is_adapter(const std::string& name) { return name.find("lora_") != std::string::npos; }

/// Decoders of every kind, with adapters wherever they may be, or beside attention alone.
std::vector<Variety> adapted_varieties() {
  std::vector<Variety> out;
  for (Variety& variety : all_varieties()) {
    const auto& kinds = variety.model.decoder.kinds;
    const auto has_own = [](const model::Layer& l) { return l.shared && l.shared->attention_rank > 0; };
    if (variety.model.encoder || std::any_of(kinds.begin(), kinds.end(), has_own)) continue;
    variety.model.adapters = model::Adapters{4, true, out.size() % 3 != 0};
    out.push_back(std::move(variety));
  }
  return out;
}

TEST(RunAdapters, EverySchemeGivesTheGradientsOfOneDevice) {
  for (const Variety& variety : sampled(adapted_varieties())) {
    const NamedArrays weights = weights_of(variety.model);
    const TrainingRun one = train(variety.model, {}, small_plan(variety.model), weights);
    for (const Scheme& scheme : sampled(testing::in_turn(schemes(variety.model), 3))) {
      SCOPED_TRACE(variety.name + ", " + scheme.name);
      ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, small_plan(variety.model), weights), one));
      if (scheme.parallelism.residual != lower::ResidualScheme::sequence) continue;
      lower::TrainingPlan narrow = small_plan(variety.model, 2);
      narrow.formats.compute = Dtype::fp8;
      narrow.formats.freeze();
      narrow.recompute = lower::Recompute::full();
      ASSERT_NO_THROW(expect_equal(train(variety.model, scheme.parallelism, narrow, weights), one));
    }
  }
}

TEST(RunAdapters, OnlyTheyHaveGradientsAndTheseAreFiniteDifferences) {
  constexpr double step = 3e-6;
  for (const Variety& variety : sampled(adapted_varieties())) {
    const NamedArrays weights = weights_of(variety.model);
    lower::TrainingPlan how = small_plan(variety.model);
    how.work.sequences = 2;
    const TrainingRun one = train(variety.model, {}, how, weights);
    // What an index picks has no gradient.
    const bool picks =
        variety.model.decoder.kinds.front().attention && variety.model.decoder.kinds.front().attention->index_heads > 0;
    for (const auto& [name, array] : weights)
      if (!picks) EXPECT_EQ(one.gradients.contains(name), is_adapter(name)) << variety.name << ' ' << name;
    for (const auto& named : one.gradients) {
      const auto& name = named.first;
      const Array& gradient = named.second;
      ASSERT_TRUE(is_adapter(name)) << variety.name << ' ' << name;
      const auto most =
          static_cast<std::size_t>(std::max_element(gradient.values.begin(), gradient.values.end(),
                                                    [](double a, double b) { return std::abs(a) < std::abs(b); }) -
                                   gradient.values.begin());
      const auto loss = [&](double by) {
        NamedArrays moved = weights;
        moved.at(name).values[most] += by;
        return train(variety.model, {}, how, moved).loss;
      };
      EXPECT_NEAR(gradient.values[most], (loss(step) - loss(-step)) / (2 * step), 5e-9) << variety.name << ' ' << name;
      EXPECT_GT(std::abs(gradient.values[most]), 1e-7) << variety.name << ' ' << name;
    }
  }
}

TEST(RunAdapters, WithoutTheirSecondHalfTheyChangeNothing) {
  for (const Variety& variety : sampled(adapted_varieties())) {
    model::Transformer base = variety.model;
    base.adapters.reset();
    NamedArrays weights = weights_of(variety.model), plain;
    for (auto& [name, array] : weights) {
      if (name.find("lora_B") != std::string::npos) std::fill(array.values.begin(), array.values.end(), 0.0);
      if (!is_adapter(name)) plain[name] = array;
    }
    EXPECT_NEAR(train(variety.model, {}, small_plan(variety.model), weights).loss,
                train(base, {}, small_plan(base), plain).loss, 1e-12)
        << variety.name;
  }
}

}  // namespace
}  // namespace assay::engine
