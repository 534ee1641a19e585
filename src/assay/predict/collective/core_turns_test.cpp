#include "assay/predict/collective/core_turns.h"

#include <gtest/gtest.h>

namespace assay::collective {
namespace {

TEST(CoreTurns, EvenOnesAreSharesAndOthersLoseHalfOfWhatIsLeft) {
  EXPECT_EQ(core_turns(1, 2), 1.0);
  EXPECT_EQ(core_turns(2, 2), 1.0);
  EXPECT_EQ(core_turns(3, 2), 1.75);  // between 1.5 and 2
  EXPECT_EQ(core_turns(4, 2), 2.0);
  EXPECT_EQ(core_turns(7, 2), 3.75);
  EXPECT_EQ(core_turns(8, 2), 4.0);
  EXPECT_EQ(core_turns(3, 16), 1.0);
}

TEST(CoreTurns, MoreMembersNeverTakeFewerTurns) {
  for (double cores = 1; cores <= 9; ++cores)
    for (double members = 1; members < 40; ++members)
      EXPECT_LE(core_turns(members, cores), core_turns(members + 1, cores)) << members << " on " << cores;
}

}  // namespace
}  // namespace assay::collective
