#include "assay/ask/verbs/collective/collective.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/hardware/cluster.h"

namespace assay::verbs::collective_verb {
namespace {

collective::CollectiveGroup group_of(const std::string& cluster, std::vector<std::string> axes = {}) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto parsed = hardware::parse_cluster(cluster, catalogue, "test");
  EXPECT_TRUE(parsed);
  const auto group = collective::make_group(*parsed, axes, 1.0, "test");
  EXPECT_TRUE(group);
  return *group;
}

std::size_t held_in_all(const HeldBlocks& held) {
  std::size_t n = 0;
  for (const auto& blocks : held) n += blocks.size();
  return n;
}

TEST(CollectiveStates, AGatherEndsWithEverythingEverywhere) {
  const auto states = collective_states(program::Collective::all_gather, group_of("tpu-v5e:16x16", {"X"}));
  ASSERT_EQ(states.size(), 9u);  // a ring of 16 in both directions
  EXPECT_EQ(held_in_all(states.front()), 16u);
  EXPECT_EQ(states[1][5].size(), 3u);  // its own shard and one of each neighbour
  EXPECT_EQ(held_in_all(states.back()), 256u);
}

TEST(CollectiveStates, PartialSumsOfAReductionNeitherVanishNorCountTwice) {
  for (const char* cluster : {"tpu-v5e:16x16", "tpu-v5e:4x4"}) {
    const auto group = group_of(cluster, {"X"});
    const auto states = collective_states(program::Collective::reduce_scatter, group);
    EXPECT_EQ(static_cast<double>(states.size() - 1),
              collective::collective_hops(program::Collective::reduce_scatter, group));
    const auto n = static_cast<std::int64_t>(states.front().size());
    for (const HeldBlocks& held : states)
      for (std::int64_t block = 0; block < n; ++block) {
        std::vector<std::int64_t> summed;
        for (const auto& blocks : held)
          for (const HeldBlock& one : blocks)
            if (one.block == block) summed.insert(summed.end(), one.from.begin(), one.from.end());
        std::sort(summed.begin(), summed.end());
        ASSERT_EQ(static_cast<std::int64_t>(summed.size()), n) << cluster << " block " << block;
        for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(summed[static_cast<std::size_t>(i)], i);
      }
    for (std::size_t device = 0; device < states.back().size(); ++device) {
      ASSERT_EQ(states.back()[device].size(), 1u);
      EXPECT_EQ(states.back()[device][0].block, static_cast<std::int64_t>(device));
    }
  }
}

TEST(CollectiveStates, DataMovesByOneNeighbourAHop) {
  for (const auto kind : {program::Collective::all_gather, program::Collective::all_to_all}) {
    const auto states = collective_states(kind, group_of("tpu-v5e:8x8", {"X"}));
    for (std::size_t hop = 1; hop < states.size(); ++hop)
      for (std::size_t device = 0; device < 8; ++device)
        for (const HeldBlock& one : states[hop][device]) {
          bool near = false;
          for (const std::size_t other : {device, device + 1, device - 1})
            near = near || (other < 8 && std::count(states[hop - 1][other].begin(), states[hop - 1][other].end(), one));
          EXPECT_TRUE(near) << "hop " << hop << " device " << device;
        }
  }
}

TEST(CollectiveStates, AllReduceIsAReductionAndAGather) {
  const auto group = group_of("tpu-v5e:16x16", {"Y"});
  const auto states = collective_states(program::Collective::all_reduce, group);
  EXPECT_EQ(static_cast<double>(states.size() - 1),
            collective::collective_hops(program::Collective::all_reduce, group));
  for (const auto& blocks : states.back()) {
    ASSERT_EQ(blocks.size(), 16u);
    for (const HeldBlock& one : blocks) EXPECT_EQ(one.from.size(), 16u);
  }
}

TEST(CollectiveStates, SwitchedGroupsTellBeforeAndAfterAndLargeOnesNothing) {
  EXPECT_EQ(collective_states(program::Collective::all_to_all, group_of("h100-sxm:8")).size(), 2u);
  EXPECT_EQ(collective_states(program::Collective::all_gather, group_of("tpu-v5e:4x4")).size(), 2u);
  EXPECT_TRUE(collective_states(program::Collective::all_gather, group_of("h100-sxm:64")).empty());
  EXPECT_TRUE(collective_states(program::Collective::broadcast, group_of("h100-sxm:8")).empty());
}

}  // namespace
}  // namespace assay::verbs::collective_verb
