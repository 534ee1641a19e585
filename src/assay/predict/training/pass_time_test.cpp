#include "assay/predict/training/pass_time.h"

#include <gtest/gtest.h>

namespace assay::training {
namespace {

/// A chip whose products take a quarter longer under sustained power.
TrainingSetup limited(double memory_power) {
  TrainingSetup setup;
  setup.rates.matmul.emplace().droop = 0.25;
  setup.effects.memory_power = memory_power;
  return setup;
}

TEST(PassTime, MatrixUnitsThatRestAreFasterAfterwards) {
  // Ten seconds, of which two are the price of a clock that gives way: paid in full by a pass that does nothing but
  // multiply, and never below what the host takes to start its kernels. Products would draw 1.5625 of the limit, other
  // kernels 0.4375: half of each are just within it, and three quarters of products pay for half of the droop.
  PassProfile pass;
  pass.estimate = Seconds(10), pass.recomputed = Seconds(5), pass.busy = Seconds(10), pass.slowed = Seconds(2);
  TrainingSetup setup = limited(0.4375);
  const auto time = [&] { return pass_time(pass, {}, StageLinks{}, true, setup); };
  EXPECT_DOUBLE_EQ(time().compute.value(), 10.0);
  pass.busy = Seconds(7.5);
  EXPECT_DOUBLE_EQ(time().compute.value(), 9.0);
  EXPECT_DOUBLE_EQ(time().recompute.value(), 4.5);
  for (const double busy : {5.0, 2.0}) {
    pass.busy = Seconds(busy);
    EXPECT_DOUBLE_EQ(time().compute.value(), 8.0);
  }
  pass.busy = Seconds(7.5);
  pass.launching = Seconds(9.5);
  EXPECT_DOUBLE_EQ(time().compute.value(), 9.5);
  pass.launching = Seconds(10);  // the host bounds it already
  EXPECT_DOUBLE_EQ(time().compute.value(), 10.0);
}

// Kernels of six seconds that the host takes ten to launch, and an exchange of tokens: the chip is idle for four
// seconds, in which the exchange runs on.
TEST(PassTime, CollectivesRunWhileTheChipWaitsForTheHost) {
  StageLinks links;
  constexpr RoleSet expert = role_bit(Role::expert);
  for (auto& form : links.forms[expert]) form.per_byte = 1_s / 1_B;
  PassProfile pass;
  pass.estimate = pass.launching = Seconds(10), pass.idle = Seconds(4);
  pass.traffic.push_back(
      {program::Collective::all_to_all, expert, 0, program::Urgency::critical, false, false, 3_B, 1.0, {}});
  const TrainingSetup setup;
  const auto time = [&] { return pass_time(pass, {}, links, true, setup); };
  EXPECT_DOUBLE_EQ(time().chain().value(), 10.0);
  pass.traffic.begin()->bytes = 7_B;
  EXPECT_DOUBLE_EQ(time().chain().value(), 13.0);
  pass.idle = Seconds();
  EXPECT_DOUBLE_EQ(time().chain().value(), 17.0);
}

// A backward pass of ten seconds whose clock gives way, a sum over tensor axes of four seconds beside gradients of
// weights and traffic of weights that is hidden in part: where those gradients are put off it takes as long as if
// software hid nothing beside them, no more.
TEST(PassTime, WhatIsPutOffCostsAsMuchAsWithoutOverlap) {
  StageLinks links;
  constexpr RoleSet tensor = role_bit(Role::tensor), fsdp = role_bit(Role::fsdp);
  for (const RoleSet over : {tensor, fsdp})
    for (auto& form : links.forms[over]) form.per_byte = 1_s / 1_B;
  PassProfile pass;
  pass.estimate = Seconds(10), pass.busy = Seconds(9), pass.slowed = Seconds(4), pass.weight_gradients = Seconds(5);
  pass.products = Seconds(9), pass.product_flops = Flops(9);  // a second for a FLOP
  Traffic sum{
      program::Collective::reduce_scatter, tensor, 0, program::Urgency::critical, false, true, 4_B, 1.0, Flops(4)};
  links.size[static_cast<std::size_t>(Role::tensor)] = 2.0;
  pass.traffic.push_back(sum);
  const Traffic weights{program::Collective::all_gather, fsdp, 0, program::Urgency::ahead, false, false, 13_B, 1.0, {}};
  TrainingSetup setup = limited(1.0);  // the droop counts in proportion to the work of matrix units
  numbers::CollectiveOverlap& overlap = setup.effects.overlap;
  overlap.chip_share = 0.2;
  for (const bool pieces : {false, true}) {
    using enum numbers::TensorOverlap;
    overlap.tensor = pieces ? all : none;
    pass.traffic.begin()->overlaps_weight_gradients = false;
    const PassTime without = pass_time(pass, {&weights, 1}, links, true, setup);
    overlap.tensor = pieces ? all : backward;
    pass.traffic.begin()->overlaps_weight_gradients = true;
    const PassTime with = pass_time(pass, {&weights, 1}, links, true, setup);
    EXPECT_EQ(without.deferral_cost, Seconds());
    EXPECT_LT(with.chain() + with.exposed, without.chain() + without.exposed);
    EXPECT_DOUBLE_EQ((with.chain() + with.exposed + with.deferral_cost).value(),
                     (without.chain() + without.exposed).value());
    EXPECT_DOUBLE_EQ((with.chain() + with.deferral_chain).value(), without.chain().value());
    EXPECT_DOUBLE_EQ((with.weight_gradients + with.deferral_weight_gradients).value(),
                     without.weight_gradients.value());
    EXPECT_GT(with.compute, without.compute);
    EXPECT_GT(with.exposed, without.exposed);
  }
}

}  // namespace
}  // namespace assay::training
