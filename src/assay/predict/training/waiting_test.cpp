#include "assay/predict/training/waiting.h"

#include <gtest/gtest.h>

namespace assay::training {
namespace {

/// Two lanes from event to event: compute runs at 1 - share while the collective lasts, and at full speed afterwards;
/// what follows needs both.
double simulated(double collective, double compute, double share) {
  const double done = (1.0 - share) * collective;  // of compute, when the collective ends
  const double end = done >= compute ? collective : collective + (compute - done);
  return end - compute;
}

TEST(Waiting, IsWhatTwoLanesThatShareAChipTake) {
  for (const double share : {0.0, 0.1, 0.2, 0.4, 0.9, 1.0})
    for (double collective = 0.0; collective <= 4.0; collective += 0.125)
      for (double compute = 0.0; compute <= 4.0; compute += 0.125)
        EXPECT_NEAR(waited(collective, compute, share), simulated(collective, compute, share), 1e-12)
            << collective << ' ' << compute << ' ' << share;
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
