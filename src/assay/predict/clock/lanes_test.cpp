#include "assay/predict/clock/lanes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace assay::clock {
namespace {

Item kernel(double time, std::vector<std::int32_t> after = {}) {
  return {Item::Kind::kernel, chip_lane, Seconds(time), std::move(after)};
}
Item collective(double time, std::vector<std::int32_t> after = {}, double share = 0, std::int32_t lane = network_lane) {
  return {Item::Kind::collective, lane, Seconds(time), std::move(after), share};
}

/// Items that wait for random earlier ones; collectives take `share` of the chip.
std::vector<Item> random_items(std::int32_t networks, double share) {
  std::vector<Item> out;
  const auto count = *rc::gen::inRange(1, 24);
  for (std::int32_t i = 0; i < count; ++i) {
    const double time = *rc::gen::inRange(0, 100);
    std::vector<std::int32_t> after;
    if (i > 0 && *rc::gen::inRange(0, 2) == 1) after.push_back(*rc::gen::inRange(0, i));
    const auto lane = *rc::gen::inRange(0, networks + 1);
    out.push_back(lane == 0 ? kernel(time, std::move(after)) : collective(time, std::move(after), share, lane));
  }
  return out;
}

TEST(Lanes, KernelsAloneAddUp) {
  const Totals out = totals({kernel(1), kernel(2), kernel(4)});
  EXPECT_EQ(out.whole, Seconds(7));
  EXPECT_EQ(out.computation, Seconds(7));
  EXPECT_EQ(out.exposed, Seconds(0));
}

// The collective starts with the second kernel and slows it by half: 2 of its 4 s in 4 s, the rest in 2 s.
TEST(Lanes, ACollectiveTakesItsShareOfTheChipWhileItLasts) {
  const auto spans = run({kernel(1), collective(4, {0}, 0.5), kernel(4), kernel(1, {1})});
  EXPECT_EQ(spans[1].start, Seconds(1));
  EXPECT_EQ(spans[1].end, Seconds(5));
  EXPECT_EQ(spans[2].end, Seconds(7));
  EXPECT_EQ(spans[3].end, Seconds(8));
}

TEST(Lanes, ACollectiveThatTakesTheWholeChipStopsIt) {
  EXPECT_EQ(totals({collective(3, {}, 1.0), kernel(2)}).whole, Seconds(5));
}

// Launches run ahead of the chip until it waits for none of them.
TEST(Lanes, AKernelWaitsForItsLaunch) {
  const auto launch = [](double time) { return Item{Item::Kind::launch, 2, Seconds(time), {}}; };
  const auto spans = run({launch(2), kernel(1, {0}), launch(2), kernel(5, {2}), launch(2), kernel(1, {4})});
  EXPECT_EQ(spans[1].start, Seconds(2));
  EXPECT_EQ(spans[3].start, Seconds(4));
  EXPECT_EQ(spans[5].start, Seconds(9));
}

TEST(Lanes, NothingTakesNoTime) { EXPECT_EQ(totals({}).whole, Seconds(0)); }

RC_GTEST_PROP(LanesLaw, AWholeLiesBetweenTheLongestLaneAndTheSum, ()) {
  const std::vector<Item> items = random_items(3, 0.25);
  std::vector<double> lanes(4, 0.0);
  double sum = 0.0;
  for (const Item& item : items) {
    lanes[static_cast<std::size_t>(item.lane)] += item.time.value();
    sum += item.time.value();
  }
  const double whole = totals(items).whole.value();
  RC_ASSERT(whole >= *std::max_element(lanes.begin(), lanes.end()) - 1e-9);
  RC_ASSERT(whole <= sum + 1e-9);
}

// The closed form of training's waited(): hidden and slowing the kernels, or waited for when these are done.
RC_GTEST_PROP(LanesLaw, OneCollectiveAddsItsShareOrWhatIsLeftOfIt, ()) {
  const double c = *rc::gen::inRange(0, 100), share = *rc::gen::inRange(0, 11) / 10.0;
  std::vector<Item> items{collective(c, {}, share)};
  double b = 0.0;
  for (const int time : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 50))) {
    items.push_back(kernel(time));
    b += time;
  }
  items.push_back(kernel(1, {0}));
  const double added = totals(items).exposed.value();
  RC_ASSERT(std::abs(added - std::min(c, std::max(share * c, c - b))) < 1e-9);
}

RC_GTEST_PROP(LanesLaw, ASlowerItemNeverMakesTheWholeShorter, ()) {
  std::vector<Item> items = random_items(3, 0.0);
  const Seconds before = totals(items).whole;
  items[*rc::gen::inRange<std::size_t>(0, items.size())].time += Seconds(*rc::gen::inRange(0, 50));
  RC_ASSERT(totals(items).whole >= before);
}

}  // namespace
}  // namespace assay::clock
