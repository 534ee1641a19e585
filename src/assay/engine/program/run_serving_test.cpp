// Decoding from caches against recomputation of everything, sharded in every way.
#include <gtest/gtest.h>

#include "assay/engine/program/step.h"
#include "assay/testing/sampling.h"
#include "assay/testing/small_programs.h"

namespace assay::engine {
namespace {

using namespace testing::small;

struct ServingCase {
  std::string name;
  lower::Parallelism parallelism;
  lower::ServingScheme scheme;
};

std::vector<ServingCase> serving_cases(const model::Transformer& m) {
  using enum lower::CacheScheme;
  using enum lower::WeightScheme;
  std::vector<ServingCase> out{
      {"one device", {}, {}},
      {"replicas", {.data = 2}, {}},
      {"tensor, cache by heads", {.tensor = 2}, {heads, one_dimension}},
      {"tensor, cache by batch", {.data = 2, .tensor = 2}, {batch, one_dimension}},
      {"tensor, cache by position", {.tensor = 2}, {lower::CacheScheme::sequence, one_dimension}},
      {"two dimensions, cache by heads", {.fsdp = 2, .tensor = 2}, {heads, two_dimensions}},
      {"two dimensions, cache by batch", {.fsdp = 2, .tensor = 2}, {batch, two_dimensions}},
      {"two dimensions, cache by position",
       {.data = 2, .fsdp = 2, .tensor = 2},
       {lower::CacheScheme::sequence, two_dimensions}},
      {"gathered, cache by heads", {.fsdp = 2, .tensor = 2}, {heads, gathered}},
      {"gathered, cache by batch", {.fsdp = 2, .tensor = 2}, {batch, gathered}},
      {"gathered, cache by position", {.fsdp = 2, .tensor = 2}, {lower::CacheScheme::sequence, gathered}},
  };
  out.push_back({"tensor, copied keys", {.tensor = 4}, {heads, one_dimension}});
  out.push_back({"two dimensions, copied keys", {.fsdp = 2, .tensor = 4}, {heads, two_dimensions}});
  out.push_back({"tensor, cache by heads and batch", {.tensor = 2, .context = 2}, {batch, one_dimension}});
  out.push_back({"tensor, cache by heads and position",
                 {.tensor = 2, .context = 2},
                 {lower::CacheScheme::sequence, one_dimension}});
  out.push_back(
      {"two dimensions, cache by heads and batch", {.fsdp = 2, .tensor = 2, .context = 2}, {batch, two_dimensions}});
  out.push_back({"two dimensions, cache by heads and position",
                 {.fsdp = 2, .tensor = 2, .context = 2},
                 {lower::CacheScheme::sequence, two_dimensions}});
  out.push_back({"tensor, copied keys on an axis of their own", {.tensor = 2, .context = 2}, {heads, one_dimension}});
  if (!m.has_experts()) return out;
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

lower::Workload served(const model::Transformer& m, std::int64_t queries, std::int64_t keys) {
  lower::Workload work;
  work.sequences = sequences;
  work.queries = queries;
  work.keys = keys;
  work.cached = keys > queries;
  work.source = m.encoder ? length : 0;
  if (m.has_experts()) work.expert_load = 2.0;
  return work;
}

ServingRun serve(const model::Transformer& m, const ServingCase& how, const NamedArrays& weights, const Array& tokens,
                 std::int64_t from, std::int64_t to, ServedSequences& kept) {
  const auto [mesh, rules] = lower::serving_stage(how.parallelism, how.scheme, m);
  const program::Program program = lower::lower_serving(m, mesh, rules, served(m, to - from, to), lower::Formats{});
  return run_serving(program, m, weights, part(tokens, 1, from, to - from), kept);
}

/// Before the first token; of an encoder-decoder with what its encoder made.
ServedSequences unserved(const model::Transformer& m) {
  ServedSequences out;
  if (m.encoder) out.encoded = random_reals({sequences, length, m.d_model}, 5);
  return out;
}

TEST(RunServing, CachedDecodingEqualsRecomputation) {
  constexpr std::int64_t prompt = 4;
  for (const Variety& variety : testing::sampled(all_varieties())) {
    const auto& first = variety.model.decoder.kinds.front().attention;
    if (first && !first->causal) continue;  // an encoder writes nothing
    const model::Transformer& m = variety.model;
    const NamedArrays weights = weights_of(m);
    const Array tokens = random_tokens(length, m.vocabulary, 3);
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
    for (const ServingCase& how : testing::sampled(serving_cases(m))) {
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
}  // namespace assay::engine
