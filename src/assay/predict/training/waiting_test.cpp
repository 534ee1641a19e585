#include "assay/predict/training/waiting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "assay/predict/clock/lanes.h"

namespace assay::training {
namespace {

using clock::Item;

/// What the clock adds to kernels that run one after the other.
double added(const std::vector<Item>& items) {
  const clock::Totals totals = clock::totals(items);
  return (totals.whole - totals.computation).value();
}
Item kernel(double seconds, std::vector<std::int32_t> after = {}) {
  return {Item::Kind::kernel, clock::chip_lane, Seconds(seconds), std::move(after)};
}
Item collective(double seconds, double share, std::vector<std::int32_t> after = {}) {
  return {Item::Kind::collective, clock::network_lane, Seconds(seconds), std::move(after), share};
}

// The closed form is the clock's rule: compute that does not need the collective, then a kernel that does.
TEST(Waiting, IsWhatTheClockAdds) {
  for (const double share : {0.0, 0.1, 0.2, 0.4, 0.9, 1.0})
    for (double moved = 0.0; moved <= 4.0; moved += 0.125)
      for (double compute = 0.0; compute <= 4.0; compute += 0.125)
        EXPECT_NEAR(waited(moved, compute, share), added({kernel(compute), collective(moved, share), kernel(1.0, {1})}),
                    1e-12)
            << moved << ' ' << compute << ' ' << share;
}

// Equal sums of items take as long as one of each, however compute and collectives are cut.
TEST(Waiting, OfSumsIsWhatTheClockAddsForTheirItems) {
  std::mt19937 random(3);
  const auto any = [&](double most) { return std::uniform_real_distribution<double>(0.0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    const double share = any(0.9), most = any(1.0);
    std::vector<Item> items;
    double compute = 0.0, moved = 0.0;
    std::int32_t last = -1;
    for (int i = 0; i < 12; ++i) {
      const double seconds = i % 3 == 0 ? any(3.0 * most) : any(1.0);
      (i % 3 == 0 ? moved : compute) += seconds;
      items.push_back(i % 3 == 0 ? collective(seconds, share) : kernel(seconds));
      if (i % 3 == 0) last = i;
    }
    items.push_back(kernel(1.0, {last}));
    EXPECT_NEAR(waited(moved, compute, share), added(items), 1e-12);
  }
}

// A product in as many pieces as there are devices, each of which needs one more part of what is gathered; and buckets
// of gradients of which the last has nothing to run beside.
TEST(Waiting, InPiecesAndOnceAStepIsWhatTheClockAdds) {
  OverlapNumbers<Plain> overlap;
  overlap.tail = 0.125;
  for (const double share : {0.0, 0.1, 0.3, 0.9})
    for (const double devices : {2.0, 4.0, 8.0})
      for (double moved = 0.0; moved <= 4.0; moved += 0.25)
        for (double compute = 0.25; compute <= 4.0; compute += 0.25) {
          overlap.chip_share = share;
          std::vector<Item> items{kernel(compute / devices)};
          for (double piece = 1.0; piece < devices; piece += 1.0) {
            items.push_back(collective(moved / (devices - 1.0), share));
            items.push_back(kernel(compute / devices, {static_cast<std::int32_t>(items.size()) - 1}));
          }
          EXPECT_NEAR(waited_in_pieces(Seconds(moved), Seconds(compute), devices, overlap).value(),
                      std::min(moved, added(items)), 1e-12)
              << moved << ' ' << compute << ' ' << share << ' ' << devices;
          const double tail = overlap.tail * moved;
          EXPECT_NEAR(waited_once(Plain{}, moved, compute, overlap),
                      added({collective(moved - tail, share), kernel(compute), collective(tail, share, {1}),
                             kernel(1.0, {0, 2})}),
                      1e-12)
              << moved << ' ' << compute << ' ' << share;
        }
}

TEST(Waiting, IsNeverLongerThanTheCollectiveAndFallsWithWhatIsBeside) {
  OverlapNumbers<Plain> overlap;
  overlap.piece = Seconds(0.05), overlap.tail = 0.1, overlap.experts = true;
  for (const double share : {0.0, 0.2, 1.0}) {
    overlap.chip_share = share;
    for (double collective = 0.0; collective <= 4.0; collective += 0.25) {
      double least = collective;
      for (double beside = -1.0; beside <= 6.0; beside += 0.25) {
        const double now = waited(collective, beside, share);
        EXPECT_LE(now, least);
        EXPECT_GE(now, share * collective);
        least = now;
        EXPECT_LE(waited(collective, beside, 0.5 * share), now);
        EXPECT_LE(now, waited(collective + 0.25, beside, share));
        for (const double devices : {2.0, 8.0}) {
          const double pieces = waited_in_pieces(Seconds(collective), Seconds(beside), devices, overlap).value();
          EXPECT_LE(pieces, collective);
          EXPECT_GE(pieces, std::min(collective, now));
        }
        EXPECT_LE(waited_once(Plain{}, collective, beside, overlap), collective + 1e-15);
        EXPECT_GE(waited_once(Plain{}, collective, beside, overlap), 0.1 * collective);
        EXPECT_GE(hidden_exchange(collective, beside, overlap), 0.0);
      }
    }
  }
}

// Of four pieces of a product of eight seconds, the first has nothing to run beside: a gather of three seconds next to
// the other six slows them by 0.2 x 3 s, and three further pieces cost 0.1 s each. A gather of nine seconds is waited
// for: 9 s - 6 s + 0.3 s.
TEST(Waiting, PiecesRunNextToAllButOneOfTheProduct) {
  OverlapNumbers<Plain> overlap;
  overlap.chip_share = 0.2, overlap.piece = Seconds(0.1);
  EXPECT_DOUBLE_EQ(waited_in_pieces(3.0_s, 8_s, 4.0, overlap).value(), 0.9);
  EXPECT_DOUBLE_EQ(waited_in_pieces(9.0_s, 8_s, 4.0, overlap).value(), 3.3);
  EXPECT_DOUBLE_EQ(waited_in_pieces(0.3_s, 8_s, 4.0, overlap).value(), 0.3);  // too short to be worth pieces
}

}  // namespace
}  // namespace assay::training
