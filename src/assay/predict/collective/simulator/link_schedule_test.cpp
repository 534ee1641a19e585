#include "assay/predict/collective/simulator/link_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "assay/hardware/catalogue.h"
#include "assay/predict/collective/simulator/simulator.h"

namespace assay::collective {
namespace {

CollectiveGroup group_on(const char* cluster, const std::vector<std::string>& axes) {
  return *make_group(*hardware::parse_cluster(cluster, hardware::Catalogue::builtin(), "test"), axes, 1.0, "test");
}

TEST(LinkSchedule, LinksCarryOneTransferAtATime) {
  const std::pair<const char*, std::vector<std::string>> places[] = {
      {"tpu-v5e:4x4", {"Y"}}, {"tpu-v5p:4x4x4", {}}, {"tpu-v5p:4x4x4", {"X", "Z"}}, {"h100-sxm:64", {}}};
  for (const auto& [cluster, axes] : places)
    for (const program::CollectiveFacts& each : program::all_collectives) {
      if (each.kind == program::Collective::ragged_all_to_all) continue;
      const auto schedule = link_schedule(each.kind, 1_GiB, group_on(cluster, axes), 1e4);
      ASSERT_TRUE(schedule) << each.name << " on " << cluster;
      std::vector<ScheduledTransfer> transfers = schedule->transfers;
      std::sort(transfers.begin(), transfers.end(), [](const ScheduledTransfer& a, const ScheduledTransfer& b) {
        return a.link != b.link ? a.link < b.link : a.start < b.start;
      });
      for (std::size_t i = 1; i < transfers.size(); ++i) {
        ASSERT_LT(transfers[i].link, schedule->links.size());
        if (transfers[i].link == transfers[i - 1].link) {
          ASSERT_GE(transfers[i].start.value(), transfers[i - 1].end.value() * (1 - 1e-9)) << each.name;
        }
      }
    }
}

// Chips 0 to 3 in a row: the shard of chip 0 leaves chip 2 upwards as its third hop.
TEST(LinkSchedule, OnALineEveryTransferKnowsItsShard) {
  const auto schedule = link_schedule(program::Collective::all_gather, 32_MiB, group_on("tpu-v5e:4x4", {"Y"}), 1e4);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->chips, LinkSchedule::Chips::all);
  EXPECT_EQ(schedule->links.size(), 6u);
  EXPECT_TRUE(
      std::any_of(schedule->transfers.begin(), schedule->transfers.end(), [&](const ScheduledTransfer& transfer) {
        const ScheduledLink& link = schedule->links[transfer.link];
        return link.chip == 2 && link.direction == 0 && transfer.hop == 3 && transfer.origin == 0 &&
               transfer.bytes == 8_MiB;
      }));
}

TEST(LinkSchedule, EndsWhenTheSimulationDoes) {
  const CollectiveGroup group = group_on("tpu-v5p:4x4x4", {});
  const auto schedule = link_schedule(program::Collective::all_gather, 1_GiB, group, 1e4);
  ASSERT_TRUE(schedule);
  Seconds end;
  for (const ScheduledTransfer& transfer : schedule->transfers) end = std::max(end, transfer.end);
  SimulationOptions options;
  options.chunks = 1;
  const Seconds simulated = simulate_collective(program::Collective::all_gather, 1_GiB, group, options).time;
  EXPECT_NEAR((end + group.hop_latency).value(), simulated.value(), 1e-9 * simulated.value());
}

TEST(LinkSchedule, IsAbsentIfItHasTooManyTransfers) {
  EXPECT_FALSE(link_schedule(program::Collective::all_gather, 1_GiB, group_on("tpu-v5e:4x4", {"Y"}), 3));
}

}  // namespace
}  // namespace assay::collective
