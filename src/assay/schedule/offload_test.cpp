#include "assay/schedule/offload.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(HostTime, IsWhatComputingDoesNotHide) {
  const HostLink link{64e9, 0.5};
  // 6.4 GB at 32 GB/s: 200 ms; 150 ms of the forward and all of the backward pass hide it.
  HostLoad load;
  load.activations = 6.4e9, load.states = 3.2e9, load.forward = 0.15, load.backward = 0.3, load.update = 0.02;
  const HostTime time = host_time(link, load);
  EXPECT_NEAR(time.forward, 0.05, 1e-12);
  EXPECT_EQ(time.backward, 0.0);
  EXPECT_NEAR(time.update, 0.08, 1e-12);
  EXPECT_NEAR(time.ideal, 0.1, 1e-12);
  EXPECT_NEAR(time.ideal_update, 0.05, 1e-12);
}

TEST(HostTime, WithoutOverlapEverythingIsWaitedFor) {
  HostLoad load;
  load.activations = 1e9, load.forward = load.backward = 10.0, load.overlap = false;
  const HostTime time = host_time({1e9, 1.0}, load);
  EXPECT_DOUBLE_EQ(time.forward, 1.0);
  EXPECT_DOUBLE_EQ(time.backward, 1.0);
}

TEST(HostTime, NothingOffloadedCostsNothing) {
  const HostTime time = host_time({}, {});
  EXPECT_EQ(time.forward + time.backward + time.update + time.ideal + time.ideal_update, 0.0);
}

}  // namespace
}  // namespace assay
