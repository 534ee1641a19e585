#include "assay/predict/training/offload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::training {
namespace {

TEST(HostLink, MemoryIsSharedByBothDirections) {
  // 60 GB/s each way, but 80 GB/s of the memory behind: 6 GB out and 2 GB in take 100 ms, either 6 alone as well.
  const HostLink link{60_GB_per_s, 1.0, 80_GB_per_s, {}};
  EXPECT_DOUBLE_EQ(link.copy(6_GB, 2_GB).value(), 0.1);
  EXPECT_DOUBLE_EQ(link.copy(6_GB, 0_GB).value(), 0.1);
  EXPECT_DOUBLE_EQ(link.copy(6_GB, 6_GB).value(), 0.15);
}

// A host of 8 chips has one PCIe link per chip; its memory and the bandwidth of that are shared by eight.
TEST(HostLink, ChipsShareTheMemoryOfTheirHost) {
  const auto cluster = *hardware::parse_cluster("h100-sxm:64", hardware::Catalogue::builtin(), "test");
  const hardware::Host& host = cluster.chip.host;
  ASSERT_TRUE(host.memory && host.memory_bandwidth);
  const HostLink link = host_link(cluster);
  EXPECT_EQ(link.rate, host.pcie.value);
  EXPECT_DOUBLE_EQ(8.0 * link.capacity.value(), host.memory->value.value());
  EXPECT_DOUBLE_EQ(8.0 * link.memory.value(), host.memory_bandwidth->value.value());
}

TEST(HostTime, IsWhatTheBusiestLaneTakes) {
  // 6.4 GB at 32 GB/s: 200 ms, of which 150 ms of the forward and all of the backward pass hide. The first pass brings
  // 1.6 GB of states besides: 250 ms out.
  HostTime time;
  time.add(Plain{}, {64_GB_per_s, 0.5, 1_TB_per_s, {}}, {6.4_GB, 1.6_GB, 150_ms, 300_ms, 20_ms}, 3.0, 3.0, true);
  EXPECT_NEAR(time.forward.value(), 3 * 0.05, 1e-12);
  EXPECT_EQ(time.backward, Seconds());
  EXPECT_NEAR(time.first.value(), 3 * 0.25, 1e-12);
  EXPECT_NEAR(time.ideal.value(), 3 * 0.1, 1e-12);
  EXPECT_NEAR(time.ideal_update.value(), 3 * 0.025, 1e-12);
}

TEST(HostTime, WithoutOverlapEverythingIsWaitedFor) {
  HostTime time;
  time.add(Plain{}, {1_GB_per_s, 1.0, 1_TB_per_s, {}}, {1_GB, {}, 10_s, 10_s, 1_s}, 1.0, 1.0, false);
  EXPECT_DOUBLE_EQ(time.forward.value(), 1.0);
  EXPECT_DOUBLE_EQ(time.backward.value(), 1.0);
  EXPECT_DOUBLE_EQ(time.first.value(), 12.0);
}

/// When each lane is free again.
struct Lanes {
  double chip = 0, in = 0, out = 0;
};
/// What the busiest lane takes between two times: the others fall behind it or wait for it in the long run.
double busiest(const Lanes& from, const Lanes& to) {
  return std::max({to.chip - from.chip, to.in - from.in, to.out - from.out});
}

/// Runs passes over equal layers one after the other, event by event. A layer holds one of two slots of the chip's
/// memory from when it starts until its copy is out (forward), or from when its copy starts to come until it is done
/// (backward). Returns what one more pass adds.
double simulated_pass(int layers, double chip, double copy, bool forward) {
  constexpr int passes = 40;
  std::vector<double> released(2, 0.0);  // when a slot is free again
  Lanes now, before;
  for (int i = 0; i < passes * layers; ++i) {
    double& slot = released[static_cast<std::size_t>(i % 2)];
    if (i == (passes - 1) * layers) before = now;
    if (forward) {
      now.chip = std::max(now.chip, slot) + chip;
      now.out = slot = std::max(now.chip, now.out) + copy;
    } else {
      now.in = std::max(now.in, slot) + copy;
      now.chip = slot = std::max(now.chip, now.in) + chip;
    }
  }
  return busiest(before, now);
}

RC_GTEST_PROP(HostTime, IsThePeriodOfASimulationWithTwoSlots, ()) {
  const auto seconds = [](const char* what) { return 1e-3 * *rc::gen::inRange(1, 2000).as(what); };
  const HostLayer layer{1_GB * seconds("gigabytes"), {}, Seconds(seconds("forward")), Seconds(seconds("backward")), {}};
  const HostLink link{1_GB_per_s * seconds("rate"), 0.8, 1_GB_per_s * seconds("memory"), {}};
  const int layers = *rc::gen::inRange(1, 20);
  HostTime time;
  time.add(Plain{}, link, layer, layers, layers, true);
  const double copy = (layer.activations / std::min(link.rate, link.memory) / link.share).value();
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * b; };
  RC_ASSERT(
      same((layers * layer.forward + time.forward).value(), simulated_pass(layers, layer.forward.value(), copy, true)));
  RC_ASSERT(same((layers * layer.backward + time.backward).value(),
                 simulated_pass(layers, layer.backward.value(), copy, false)));
}

/// The first pass: states come, are updated, and leave.
double simulated_first(int layers, double chip, double in, double out) {
  constexpr int warm = 42;
  std::vector<double> released(3, 0.0);  // one layer comes, one is at work, one leaves
  Lanes now, before;
  for (int i = 0; i < warm + layers; ++i) {
    double& slot = released[static_cast<std::size_t>(i % 3)];
    if (i == warm) before = now;
    now.in = std::max(now.in, slot) + in;
    now.chip = std::max(now.chip, now.in) + chip;
    now.out = slot = std::max(now.out, now.chip) + out;
  }
  return busiest(before, now);
}

RC_GTEST_PROP(HostTime, OfTheFirstPassIsThatOfASimulation, ()) {
  const auto seconds = [](const char* what) { return 1e-3 * *rc::gen::inRange(1, 2000).as(what); };
  const HostLayer layer{1_GB * seconds("activations"), 1_GB * seconds("states"), Seconds(seconds("forward")), 1_s,
                        Seconds(seconds("update"))};
  const HostLink link{
      1_GB_per_s, 1.0, 1e6 * 1_GB_per_s, {}};  // lanes alone: the simulation knows no memory behind them
  const int layers = 3 * *rc::gen::inRange(1, 7);
  HostTime time;
  time.add(Plain{}, link, layer, layers, layers, true);
  const double simulated =
      simulated_first(layers, (layer.forward + layer.update).value(), (layer.states / link.rate).value(),
                      ((layer.activations + layer.states) / link.rate).value());
  RC_ASSERT(std::abs(time.first.value() - simulated) <= 1e-9 * simulated);
}

}  // namespace
}  // namespace assay::training
