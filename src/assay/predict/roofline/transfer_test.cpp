#include "assay/predict/roofline/transfer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::roofline {
namespace {

hardware::Cluster cluster_of(std::string_view text) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const Result<hardware::Cluster> cluster = hardware::parse_cluster(text, catalogue, "--on");
  if (!cluster) throw std::runtime_error(cluster.error().what);
  return *cluster;
}

Result<Route> route_of(const hardware::Cluster& cluster, std::string_view from, std::string_view to) {
  const auto start = parse_place(from, cluster, "--from"), end = parse_place(to, cluster, "--to");
  if (!start) return tl::unexpected<Error>(start.error());
  if (!end) return tl::unexpected<Error>(end.error());
  return plan_route(cluster, *start, *end);
}

TransferTimes<Plain> times_of(std::string_view on, std::string_view from, std::string_view to, Bytes bytes) {
  return transfer_times(Plain{}, route_of(cluster_of(on), from, to).value(), bytes, std::nullopt);
}

Error refused(std::string_view on, std::string_view from, std::string_view to) {
  const auto route = route_of(cluster_of(on), from, to);
  EXPECT_FALSE(route) << on << " " << from << " " << to;
  return route ? Error{} : route.error();
}

// A 4 x 4 slice has no wraparound: 3 + 3 hops of 1 us, and the corners have two links of 45 GB/s each.
// 16 MiB / 90 GB/s = 16777216 / 90e9 s = 186.4 us.
TEST(Transfer, CornerToCornerUsesBothLinks) {
  const TransferTimes<Plain> times = times_of("tpu-v5e:4x4", "chip(0,0)", "chip(3,3)", 16_MiB);
  ASSERT_EQ(times.stages.size(), 1U);
  EXPECT_NEAR(times.stages[0].in(1_us), 186.41, 0.005);
  EXPECT_NEAR(times.first_byte.in(1_us), 6, 1e-9);
  EXPECT_NEAR(times.lower.in(1_us), 192.41, 0.005);
  EXPECT_EQ(times.lower, times.upper);
}

// 16 links of 16 GB/s: 16 GB / 256 GB/s = 62.5 ms. Then 15/16 of it enters the corner over two links of 45 GB/s:
// 15 GB / 90 GB/s = 166.7 ms. First byte: the opposite corner is 6 hops away.
TEST(Transfer, HostMemoryReachesOneChipThroughAllOthers) {
  const TransferTimes<Plain> times = times_of("tpu-v5e:4x4", "host", "chip(0,0)", 16_GB);
  ASSERT_EQ(times.stages.size(), 2U);
  EXPECT_NEAR(times.stages[0].in(1_ms), 62.5, 1e-9);
  EXPECT_NEAR(times.stages[1].in(1_ms), 166.667, 0.001);
  EXPECT_NEAR(times.first_byte.in(1_us), 6, 1e-9);
}

// 64 chips send 6.25 GB/s each into the data-centre network.
TEST(Transfer, SlicesExchangeOverEveryChipsShareOfTheNetwork) {
  const hardware::Cluster cluster = cluster_of("2*tpu-v5p:4x4x4");
  const Route route = route_of(cluster, "slice(0)", "slice(1)").value();
  EXPECT_EQ(route.stages.front().name, "dcn");
  EXPECT_EQ(route.stages.front().lanes, 64);
  const TransferTimes<Plain> times = transfer_times(Plain{}, route, 1_GB, std::nullopt);
  EXPECT_DOUBLE_EQ(times.lower.value(), 1e9 / (64 * cluster.chip.network.scale_out->bandwidth.value.value()));
}

TEST(Transfer, ChipsInOneNodeUseItsSwitchAndOthersTheFabric) {
  const hardware::Cluster cluster = cluster_of("h100-sxm:64");
  EXPECT_EQ(route_of(cluster, "chip(0)", "chip(7)")->stages.front().name, "nvlink");
  EXPECT_NE(route_of(cluster, "chip(0)", "chip(8)")->stages.front().name, "nvlink");
  EXPECT_LT(route_of(cluster, "chip(0)", "chip(8)")->stages.front().rate.value,
            route_of(cluster, "chip(0)", "chip(7)")->stages.front().rate.value);
}

TEST(Transfer, WorkOnTheDataIsOneMoreStage) {
  const Route route = route_of(cluster_of("tpu-v5e"), "host", "hbm").value();
  const TransferTimes<Plain> without = transfer_times(Plain{}, route, 1_GB, std::nullopt);
  const TransferTimes<Plain> slow = transfer_times(Plain{}, route, 1_GB, std::optional<Seconds>(10_s));
  const TransferTimes<Plain> fast = transfer_times(Plain{}, route, 1_GB, std::optional<Seconds>(1_us));
  EXPECT_EQ(slow.lower, 10_s);
  EXPECT_EQ(slow.upper, 10_s + without.upper);
  EXPECT_EQ(fast.lower, without.lower);
}

// Host to one chip: the two links into the corner take 166.7 ms, PCIe 62.5 ms.
TEST(Transfer, TheSlowestStageLimitsUnlessTheWorkTakesLonger) {
  const Route route = route_of(cluster_of("tpu-v5e:4x4"), "host", "chip(0,0)").value();
  const TransferTimes<Plain> times = transfer_times(Plain{}, route, 16_GB, std::nullopt);
  const TransferLimiter alone = transfer_limiter(route, times, std::nullopt);
  EXPECT_EQ(alone.name, route.stages[1].name);
  EXPECT_EQ(alone.time, times.stages[1]);
  EXPECT_EQ(transfer_limiter(route, times, 1_ms).name, alone.name);
  EXPECT_EQ(transfer_limiter(route, times, 1_s).name, "compute");
  EXPECT_EQ(transfer_limiter(route, times, 1_s).time, 1_s);
}

TEST(Transfer, TheExpectedTimeDividesEachStageByItsEfficiency) {
  hardware::Chip chip = cluster_of("tpu-v5e:4x4").chip;
  const Route pcie = route_of(cluster_of("tpu-v5e"), "host", "hbm").value();
  const TransferTimes<Plain> times = transfer_times(Plain{}, pcie, 1_GB, std::nullopt);
  EXPECT_GE(expected_transfer_time(chip, pcie, times, std::nullopt), times.lower);
  chip.efficiency.matrix.value = 0.5;
  EXPECT_EQ(expected_transfer_time(chip, pcie, times, 10_s), 20_s + times.first_byte);
  const Route links = route_of(cluster_of("tpu-v5e:4x4"), "chip(0,0)", "chip(3,3)").value();
  const TransferTimes<Plain> moved = transfer_times(Plain{}, links, 1_GB, std::nullopt);
  EXPECT_EQ(expected_transfer_time(chip, links, moved, std::nullopt),
            moved.stages[0] / hardware::network_efficiency(chip) + moved.first_byte);
}

TEST(Transfer, PlacesThatDoNotExistAreRefusedWithTheirRange) {
  EXPECT_EQ(refused("tpu-v5e:4x4", "chip(0,4)", "hbm").what, "\"chip(0,4)\" is outside tpu-v5e:4x4");
  EXPECT_EQ(refused("tpu-v5e:4x4", "chip(0,4)", "hbm").hint, "coordinates run from 0 to (3,3)");
  EXPECT_EQ(refused("tpu-v5e:4x4", "chip(1)", "hbm").what, "tpu-v5e:4x4 has 2 axes, \"chip(1)\" has 1");
  EXPECT_EQ(refused("h100-sxm:8", "chip(8)", "host").hint, "chips are chip(0) to chip(7)");
  EXPECT_EQ(refused("tpu-v5e:4x4", "slice(1)", "slice(0)").hint, "it is one slice, slice(0)");
  for (const char* place : {"", "hbn", "chip", "chip(", "chip()", "chip(-1,0)", "chip(0.5,0)", "chip(nan,0)",
                            "chip(1e99,0)", "rack(0)", "chip(0,0"})
    EXPECT_FALSE(parse_place(place, cluster_of("tpu-v5e:4x4"), "--from")) << place;
}

TEST(Transfer, MovingNothingNowhereIsRefused) {
  EXPECT_EQ(refused("tpu-v5e:4x4", "hbm", "hbm").what, "source and destination are the same memory");
  EXPECT_EQ(refused("tpu-v5e:4x4", "chip(1,1)", "chip(1,1)").what, "source and destination are the same place");
  EXPECT_EQ(refused("tpu-v5e", "chip(0,0)", "hbm").what, "source and destination are the same memory");
  EXPECT_EQ(refused("2*tpu-v5p:4x4x4", "slice(0)", "host").what, "a slice exchanges bytes with another slice");
}

// The largest twisted slice has thousands of chips; the farthest one is found without a search from each.
TEST(Transfer, TheFarthestChipOfATwistedTorusIsItsDiameter) {
  const hardware::Cluster cluster = cluster_of("tpu-v4:8x16x16_twisted");
  EXPECT_EQ(route_of(cluster, "hbm", "chip(0,0,0)")->stages.front().hops, hardware::diameter(*cluster.torus));
}

const std::vector<std::string> clusters{
    "tpu-v5e",         "tpu-v5e:4x4", "tpu-v5e:16x16", "tpu-v5p:4x4x4", "tpu-v4:4x4x8_twisted",
    "2*tpu-v5p:2x2x1", "h100-sxm",    "h100-sxm:8",    "h100-sxm:1024", "l4",
    "gb200-nvl72:144"};

std::string any_place(const hardware::Cluster& cluster) {
  const std::string kind = *rc::gen::elementOf(std::vector<std::string>{"hbm", "vmem", "host", "chip", "slice"});
  const auto below = [](std::int64_t n) { return std::to_string(*rc::gen::inRange<std::int64_t>(0, n)); };
  if (kind == "slice") return "slice(" + below(cluster.slices) + ")";
  if (kind != "chip") return kind;
  if (!cluster.torus) return "chip(" + below(cluster.chips()) + ")";
  std::string text;
  for (const hardware::Axis& axis : cluster.torus->axes) text += (text.empty() ? "chip(" : ",") + below(axis.size);
  return text + ")";
}

struct Case {
  Route route;
  Bytes bytes;
};

std::optional<Case> any_case() {
  const hardware::Cluster cluster = cluster_of(*rc::gen::elementOf(clusters));
  const Result<Route> route = route_of(cluster, any_place(cluster), any_place(cluster));
  if (!route) return std::nullopt;  // two places that exchange nothing
  return Case{*route, Bytes(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000)))};
}

RC_GTEST_PROP(TransferLaws, EveryRouteHasStagesThatMoveSomething, ()) {
  const auto c = any_case();
  if (!c) return;
  RC_ASSERT(!c->route.stages.empty());
  for (const Stage& stage : c->route.stages) {
    RC_ASSERT(stage.share > 0);
    RC_ASSERT(stage.share <= 1);
    RC_ASSERT(stage.lanes >= 1);
    RC_ASSERT(stage.hops >= 0);
    RC_ASSERT(stage.rate.value > BytesPerSecond(0));
  }
}

RC_GTEST_PROP(TransferLaws, StagesSumToTheSerialBoundAndTheSlowestIsThePipelinedOne, ()) {
  const auto c = any_case();
  if (!c) return;
  const TransferTimes<Plain> times = transfer_times(Plain{}, c->route, c->bytes, std::nullopt);
  const Seconds sum = std::accumulate(times.stages.begin(), times.stages.end(), Seconds(0));
  RC_ASSERT(times.upper == sum + times.first_byte);
  RC_ASSERT(times.lower == *std::max_element(times.stages.begin(), times.stages.end()) + times.first_byte);
  RC_ASSERT(times.lower <= times.upper);
  RC_ASSERT(times.first_byte >= Seconds(0));
}

RC_GTEST_PROP(TransferLaws, MoreBytesNeverTakeLessTimeAndFasterLinksNeverTakeMore, ()) {
  const auto c = any_case();
  if (!c) return;
  const TransferTimes<Plain> before = transfer_times(Plain{}, c->route, c->bytes, std::nullopt);
  const TransferTimes<Plain> larger = transfer_times(Plain{}, c->route, 3.0 * c->bytes, std::nullopt);
  RC_ASSERT(larger.lower >= before.lower);
  RC_ASSERT(larger.upper >= before.upper);
  Route faster = c->route;
  for (Stage& stage : faster.stages) stage.rate.value *= *rc::gen::inRange(1, 10);
  const TransferTimes<Plain> after = transfer_times(Plain{}, faster, c->bytes, std::nullopt);
  RC_ASSERT(after.lower <= before.lower);
  RC_ASSERT(after.upper <= before.upper);
}

RC_GTEST_PROP(TransferLaws, PlainAndTracedAgreeBitForBit, ()) {
  const auto c = any_case();
  if (!c) return;
  Ledger ledger;
  const Traced num{&ledger};
  const bool works = *rc::gen::arbitrary<bool>();
  const Seconds work(static_cast<double>(*rc::gen::inRange(1, 1000)) * 1e-6);
  const auto a = transfer_times(Plain{}, c->route, c->bytes, works ? std::optional(work) : std::nullopt);
  const auto b =
      transfer_times(num, c->route, c->bytes, works ? std::optional(num.given("compute", work, "test")) : std::nullopt);
  RC_ASSERT(a.stages.size() == b.stages.size());
  for (std::size_t i = 0; i < a.stages.size(); ++i) RC_ASSERT(a.stages[i] == plain(b.stages[i]));
  RC_ASSERT(a.first_byte == plain(b.first_byte));
  RC_ASSERT(a.lower == plain(b.lower));
  RC_ASSERT(a.upper == plain(b.upper));
}

}  // namespace
}  // namespace assay::roofline
