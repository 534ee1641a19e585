#include "assay/predict/clock/step_time.h"

#include <gtest/gtest.h>

namespace assay::clock {
namespace {

/// A collective matmul in two chunks: b = permute(a), x = f(a), y = f(b).
program::Program two_chunks() {
  program::Program out;
  out.tensors.resize(4);
  out.tensors[0].is_given = true;
  const auto add = [&](program::Op op, int from, int to) {
    program::Step& step = out.steps.emplace_back();
    step.op = op;
    step.in[0] = static_cast<std::int16_t>(from);
    step.out[0] = static_cast<std::int16_t>(to);
  };
  add(program::Op::product, 0, 1);
  add(program::Op::collective, 0, 2);
  add(program::Op::product, 2, 3);
  return out;
}

TEST(OverlapTimes, AChunkTravelsWhileAnotherIsMultiplied) {
  // One after the other 10 + 4 + 10 us; beside the first product the chunk takes no time of its own.
  const OverlapTimes out = overlap_times(two_chunks(), {10_us, 4_us, 10_us}, 2.0);
  EXPECT_NEAR(out.blocking.in(1_us), 24.0, 1e-9);
  EXPECT_NEAR(out.overlapped.in(1_us), 20.0, 1e-9);
  EXPECT_NEAR(out.moving.in(1_us), 4.0, 1e-9);
  EXPECT_NEAR(out.hidden.in(1_us), 4.0, 1e-9);
}

TEST(OverlapTimes, WhatIsLongerThanItsProductIsWaitedFor) {
  const OverlapTimes out = overlap_times(two_chunks(), {10_us, 15_us, 10_us}, 2.0);
  EXPECT_NEAR(out.overlapped.in(1_us), 25.0, 1e-9);
  EXPECT_NEAR(out.hidden.in(1_us), 10.0, 1e-9);
}

TEST(OverlapTimes, ARankWithOneCoreCopiesByItself) {
  const OverlapTimes out = overlap_times(two_chunks(), {10_us, 4_us, 10_us}, 1.0);
  EXPECT_NEAR(out.overlapped.in(1_us), 24.0, 1e-9);
  EXPECT_NEAR(out.hidden.in(1_us), 0.0, 1e-9);
}

}  // namespace
}  // namespace assay::clock
