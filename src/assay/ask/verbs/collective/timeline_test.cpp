#include "assay/ask/verbs/collective/collective.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"
#include "assay/predict/collective/simulator/simulator.h"

namespace assay::verbs::collective_verb {
namespace {

struct Case {
  const char* cluster;
  std::vector<std::string> axes;
};

draw::Timeline timeline_of(program::Collective kind, const Case& where, Bytes bytes) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Cluster cluster = *hardware::parse_cluster(where.cluster, catalogue, "--on");
  const collective::CollectiveGroup group = *collective::make_group(cluster, where.axes, 1.0, "--axes");
  std::vector<std::string> levels;
  for (const auto& level : collective::collective_labels(cluster).levels) levels.push_back(level.name);
  return collective_timeline(kind, bytes, group, torus_axis_names(cluster, where.axes), levels);
}

Seconds last_bar(const draw::Timeline& timeline) {
  Seconds end;
  for (const draw::TimelineBar& bar : timeline.bars) end = std::max(end, bar.end);
  return end;
}

TEST(CollectiveTimeline, EndsNearTheClosedFormAndLinksDoOneThingAtATime) {
  for (const Case& where : {Case{"tpu-v5e:16x16", {"Y"}}, Case{"tpu-v5e:4x4", {"Y"}}, Case{"tpu-v5p:4x4x4", {}},
                            Case{"tpu-v5p:4x4x4", {"X", "Z"}}, Case{"h100-sxm:8", {}}, Case{"h100-sxm:64", {}}})
    for (program::Collective kind :
         {program::Collective::all_gather, program::Collective::reduce_scatter, program::Collective::all_reduce,
          program::Collective::all_to_all, program::Collective::permute, program::Collective::broadcast}) {
      const draw::Timeline timeline = timeline_of(kind, where, 1_GiB);
      const std::string what = std::string(program::name(kind)) + " on " + where.cluster;
      ASSERT_FALSE(timeline.bars.empty()) << what;
      ASSERT_EQ(timeline.marks.size(), 1u);
      EXPECT_GT(last_bar(timeline), 0.8 * timeline.marks[0].at) << what;
      EXPECT_LT(last_bar(timeline), 1.8 * timeline.marks[0].at) << what;
      std::vector<draw::TimelineBar> bars = timeline.bars;
      std::sort(bars.begin(), bars.end(), [](const draw::TimelineBar& a, const draw::TimelineBar& b) {
        return a.lane != b.lane ? a.lane < b.lane : a.start < b.start;
      });
      std::vector<Seconds> busy(timeline.lanes.size());
      for (const draw::TimelineBar& bar : bars) busy[bar.lane] += bar.end - bar.start;
      for (std::size_t lane = 0; lane < busy.size(); ++lane)
        EXPECT_LE(busy[lane], (1 + 1e-9) * timeline.lanes[lane].members * last_bar(timeline)) << what;
      for (std::size_t i = 1; i < bars.size(); ++i)
        if (bars[i].lane == bars[i - 1].lane && timeline.lanes[bars[i].lane].members == 1.0) {
          ASSERT_GE(bars[i].start.value(), bars[i - 1].end.value() * (1 - 1e-9)) << what;
        }
    }
}

TEST(CollectiveTimeline, ALineShowsWhoseShardIsWhere) {
  // Chips 0 to 3 in a row: the shard of chip 0 leaves chip 2 upwards as its third hop.
  const draw::Timeline timeline = timeline_of(program::Collective::all_gather, {"tpu-v5e:4x4", {"Y"}}, 32_MiB);
  bool found = false;
  for (const draw::TimelineBar& bar : timeline.bars)
    found = found || (timeline.lanes[bar.lane].name == "Y+ from chip 2" && bar.label == "hop 3 of shard 0, 8 MiB");
  EXPECT_TRUE(found);
  EXPECT_EQ(timeline.lanes.size(), 6u);
}

TEST(CollectiveTimeline, ManyLinksOfADirectionAreOneLane) {
  const draw::Timeline timeline = timeline_of(program::Collective::all_gather, {"tpu-v5e:4x4", {"X", "Y"}}, 32_MiB);
  ASSERT_EQ(timeline.lanes.size(), 4u);
  EXPECT_EQ(timeline.lanes[0].name, "X+, 12 links");  // three links up in each of four rows
  EXPECT_EQ(timeline.lanes[0].members, 12.0);
}

TEST(CollectiveTimeline, WhatIsTooLargeIsDrawnByHops) {
  const draw::Timeline timeline = timeline_of(program::Collective::all_gather, {"tpu-v5p:16x16x16", {}}, 1_GiB);
  EXPECT_EQ(timeline.lanes.size(), 6u);
  EXPECT_EQ(last_bar(timeline), timeline.marks[0].at);
}

}  // namespace
}  // namespace assay::verbs::collective_verb
