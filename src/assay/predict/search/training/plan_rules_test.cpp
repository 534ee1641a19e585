#include "assay/predict/search/training/plan_rules.h"

#include <gtest/gtest.h>

#include <set>

#include <limits>

#include "assay/predict/search/training/caches.h"
#include "assay/predict/search/training/search.h"
#include "assay/testing/sampling.h"
#include "assay/testing/training_search_case.h"

namespace assay::search {
namespace {

using namespace testing::training_search;

/// The newest rules of every training software that has some.
std::vector<std::pair<std::string, PlanRules>> all_rules() {
  std::vector<std::pair<std::string, PlanRules>> out;
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto all = kernel::software_of(catalogue);
  EXPECT_TRUE(all);
  for (const kernel::Software& one : *all) {
    if (one.plan.empty()) continue;
    EXPECT_FALSE(one.train.empty()) << one.id;
    for (std::size_t version = 0; version < one.versions.size(); ++version) {
      const auto rules = read_plan_rules(kernel::properties({&one, version}, kernel::SoftwareVerb::plan, {}));
      EXPECT_TRUE(rules) << one.id << " " << one.versions[version].id;
      if (rules && version + 1 == one.versions.size()) out.emplace_back(one.id, *rules);
    }
  }
  return out;
}

/// Whether a strategy keeps to the rules, looked at one by one.
void expect_kept(const PlanRules& rules, const training::Strategy& s, const SearchCase& c, const std::string& of) {
  const lower::Parallelism& p = s.parallelism;
  EXPECT_TRUE(rules.allows(p, c.model)) << of;
  EXPECT_TRUE(PlanRules::has(rules.zeros_of(p), p.zero)) << of;
  if (p.pipeline > 1) {
    EXPECT_TRUE(PlanRules::has(rules.schedules, s.schedule)) << of;
    EXPECT_TRUE(rules.splits_layers(clock::layers_of(c.model), p.pipeline, s.interleave, false)) << of;
  }
  if (p.tensor > 1)
    EXPECT_TRUE(PlanRules::has(p.expert > 1 ? rules.expert_residuals : rules.residuals, p.residual)) << of;
  if (p.context > 1) EXPECT_TRUE(PlanRules::has(rules.contexts, p.context_scheme)) << of;
  for (std::size_t i = 0; i < std::size(lower::recompute_policies); ++i)
    if (lower::recompute_policies[i].parts == s.recompute) EXPECT_TRUE(PlanRules::has(rules.policies, i)) << of;
}

// Under the rules of each software, bounds lose nothing, every strategy keeps to them, and none beats the open space.
TEST(PlanRules, WhatSoftwareCanExpressIsSearchedExactly) {
  for (const char* where : {"h100-sxm:16", "tpu-v5e:4x4"})
    for (const auto& [id, rules] : testing::sampled(all_rules())) {
      SearchCase c(where);
      for (int i = 0; i < 2; ++i) c.model.decoder.add(c.model.decoder.kinds.front());
      TrainingChoices choices;
      choices.rules = rules;
      for (const double capacity : {5e8, 8e10}) {
        const auto cut = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 5, true});
        const auto all = search_training(c.question, sequence, c.cluster, choices, {Bytes(capacity), 5, false});
        ASSERT_TRUE(cut && all) << id;
        ASSERT_EQ(cut->best.size(), all->best.size()) << id;
        for (std::size_t i = 0; i < all->best.size(); ++i) {
          EXPECT_EQ(cut->best[i].cost.estimate, all->best[i].cost.estimate) << id;
          expect_kept(rules, cut->best[i].strategy, c, id);
        }
        if (all->best.empty() || PlanRules::has(rules.schedules, clock::PipelineSchedule::gpipe)) continue;
        const auto open = search_training(c.question, sequence, c.cluster, {}, {Bytes(capacity), 1});
        ASSERT_TRUE(open && !open->best.empty());
        EXPECT_LE(open->best.front().cost.estimate, all->best.front().cost.estimate) << id;
      }
    }
}

// A second search of the same question that starts from the time of the first finds what it finds by itself.
TEST(PlanRules, TheOpenSpaceIsTheSameAfterTheSearchOfASoftware) {
  for (const auto& [id, rules] : testing::sampled(all_rules())) {
    const SearchCase c("h100-sxm:16");
    TrainingChoices limited;
    limited.rules = rules;
    TrainingCaches caches(c.question, sequence, c.cluster);
    const auto first = search_training(caches, limited, {Bytes(8e10), 6});
    ASSERT_TRUE(first && !first->best.empty()) << id;
    const Seconds slowest = first->best.front().cost.estimate;
    const auto warm = search_training(caches, {}, {Bytes(8e10), 1, true, slowest});
    const auto alone = search_training(c.question, sequence, c.cluster, {}, {Bytes(8e10), 1});
    ASSERT_TRUE(warm && alone) << id;
    EXPECT_EQ(warm->best.empty(), alone->best.front().cost.estimate >= slowest) << id;
    if (!warm->best.empty()) EXPECT_EQ(warm->best.front().cost.estimate, alone->best.front().cost.estimate) << id;
  }
}

TEST(PlanRules, StagesHoldAsManyLayersEach) {
  PlanRules rules;
  EXPECT_TRUE(rules.splits_layers(61, 7, 3, false));
  rules.layers = 1u << static_cast<unsigned>(PlanRules::Layers::even);
  EXPECT_TRUE(rules.splits_layers(80, 4, 5, false));
  EXPECT_FALSE(rules.splits_layers(80, 4, 3, false));
  EXPECT_FALSE(rules.splits_layers(126, 16, 1, true));
  rules.layers |= 1u << static_cast<unsigned>(PlanRules::Layers::ends);
  EXPECT_TRUE(rules.splits_layers(126, 16, 1, false));  // embedding and loss count: 128 = 16 x 8
  EXPECT_FALSE(rules.splits_layers(61, 4, 1, false));
  rules.layers |= 1u << static_cast<unsigned>(PlanRules::Layers::layout);
  EXPECT_TRUE(rules.splits_layers(61, 4, 1, false));  // a prime number of layers has no even split
  EXPECT_FALSE(rules.splits_layers(80, 7, 1, false));
  EXPECT_TRUE(rules.splits_layers(80, 7, 1, true));
}

TEST(PlanRules, EveryBrokenRuleIsNamed) {
  const SearchCase c("h100-sxm:16");
  PlanRules rules;
  rules.schedules = rules.residuals = rules.expert_residuals = rules.contexts = rules.policies = rules.offloads = 0;
  rules.zeros = rules.stage_zeros = rules.layers = 0;
  rules.tensor = PlanRules::Tensor::none;
  rules.fsdp = rules.hybrid = rules.experts = false;
  rules.orders = {{5, 4, 3, 2, 1, 0}};
  TrainingChoices choices;
  choices.tensor = choices.pipeline = choices.context = choices.fsdp = choices.expert = 2;
  choices.zero = 1;
  choices.schedule = clock::PipelineSchedule::zb_v;
  choices.recompute = lower::Recompute::full();
  choices.residual = lower::ResidualScheme::sequence;
  choices.layout.emplace();
  std::set<std::string> broken;
  for (const PlanConflict& conflict : plan_conflicts(rules, choices, c.model, c.cluster)) broken.insert(conflict.rule);
  EXPECT_GE(broken.size(), 8u);
}

}  // namespace
}  // namespace assay::search
