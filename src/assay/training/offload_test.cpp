#include "assay/training/offload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::training {
namespace {

TEST(HostLink, MemoryIsSharedByBothDirections) {
  // 60 GB/s each way, but 80 GB/s of the memory behind: 6 GB out and 2 GB in take 100 ms, either 6 alone as well.
  const HostLink link{60e9, 1.0, 80e9, 0.0};
  EXPECT_DOUBLE_EQ(link.copy(6e9, 2e9), 0.1);
  EXPECT_DOUBLE_EQ(link.copy(6e9, 0.0), 0.1);
  EXPECT_DOUBLE_EQ(link.copy(6e9, 6e9), 0.15);
}

// A host of 8 chips has one PCIe link per chip; its memory and the bandwidth of that are shared by eight.
TEST(HostLink, ChipsShareTheMemoryOfTheirHost) {
  const auto cluster = *hardware::parse_cluster("h100-sxm:64", hardware::Catalogue::builtin(), "test");
  const hardware::Host& host = cluster.chip.host;
  ASSERT_TRUE(host.memory && host.memory_bandwidth);
  const HostLink link = host_link(cluster);
  EXPECT_EQ(link.rate, host.pcie.value.value());
  EXPECT_DOUBLE_EQ(8.0 * link.capacity, host.memory->value.value());
  EXPECT_DOUBLE_EQ(8.0 * link.memory, host.memory_bandwidth->value.value());
}

TEST(HostTime, IsWhatTheBusiestLaneTakes) {
  // 6.4 GB at 32 GB/s: 200 ms, of which 150 ms of the forward and all of the backward pass hide. The first pass brings
  // 1.6 GB of states besides: 250 ms out.
  HostTime time;
  time.add({64e9, 0.5, 1e12, 0.0}, {6.4e9, 1.6e9, 0.15, 0.3, 0.02}, 3.0, 3.0, true);
  EXPECT_NEAR(time.forward, 3 * 0.05, 1e-12);
  EXPECT_EQ(time.backward, 0.0);
  EXPECT_NEAR(time.first, 3 * 0.25, 1e-12);
  EXPECT_NEAR(time.ideal, 3 * 0.1, 1e-12);
  EXPECT_NEAR(time.ideal_update, 3 * 0.025, 1e-12);
}

TEST(HostTime, WithoutOverlapEverythingIsWaitedFor) {
  HostTime time;
  time.add({1e9, 1.0, 1e12, 0.0}, {1e9, 0.0, 10.0, 10.0, 1.0}, 1.0, 1.0, false);
  EXPECT_DOUBLE_EQ(time.forward, 1.0);
  EXPECT_DOUBLE_EQ(time.backward, 1.0);
  EXPECT_DOUBLE_EQ(time.first, 12.0);
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
  const HostLayer layer{1e9 * seconds("gigabytes"), 0.0, seconds("forward"), seconds("backward"), 0.0};
  const HostLink link{1e9 * seconds("rate"), 0.8, 1e9 * seconds("memory"), 0.0};
  const int layers = *rc::gen::inRange(1, 20);
  HostTime time;
  time.add(link, layer, layers, layers, true);
  const double copy = layer.activations / std::min(link.rate, link.memory) / link.share;
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * b; };
  RC_ASSERT(same(layers * layer.forward + time.forward, simulated_pass(layers, layer.forward, copy, true)));
  RC_ASSERT(same(layers * layer.backward + time.backward, simulated_pass(layers, layer.backward, copy, false)));
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
  const HostLayer layer{1e9 * seconds("activations"), 1e9 * seconds("states"), seconds("forward"), 1.0,
                        seconds("update")};
  const HostLink link{1e9, 1.0, 1e15, 0.0};  // lanes alone: the simulation knows no memory behind them
  const int layers = 3 * *rc::gen::inRange(1, 7);
  HostTime time;
  time.add(link, layer, layers, layers, true);
  const double simulated = simulated_first(layers, layer.forward + layer.update, layer.states / link.rate,
                                           (layer.activations + layer.states) / link.rate);
  RC_ASSERT(std::abs(time.first - simulated) <= 1e-9 * simulated);
}

}  // namespace
}  // namespace assay::training
