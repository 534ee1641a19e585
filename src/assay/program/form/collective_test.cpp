#include "assay/program/form/collective.h"

#include <gtest/gtest.h>

#include <set>

#include "assay/program/form/step.h"

namespace assay::program {
namespace {

TEST(Collective, NamesAndNotationsDiffer) {
  std::set<std::string_view> names, notations;
  for (const CollectiveFacts& row : all_collectives) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(notations.insert(row.notation).second) << row.name;
    EXPECT_EQ(parse_collective(row.name, ""), row.kind);
  }
  EXPECT_FALSE(parse_collective("all-gahter", ""));
}

TEST(Collective, AMeasuredKindIsMeasuredAsItself) {
  for (const CollectiveFacts& row : all_collectives)
    EXPECT_EQ(facts(row.measured_as).measured_as, row.measured_as) << row.name;
}

// Eight devices with 10 bytes each: gathered they are 80, one part of which a device has already. For partial sums of
// 80 bytes, a device receives the 7 others' addends of its eighth, and all-reduced also the other parts of the result.
TEST(Collective, DevicesReceiveWhatTheyLack) {
  EXPECT_EQ(received_share(Collective::all_gather, 8) * 10, 70);
  EXPECT_EQ(received_share(Collective::reduce_scatter, 8) * 80, 70);
  EXPECT_EQ(received_share(Collective::all_reduce, 8) * 80, 140);
  EXPECT_EQ(received_share(Collective::all_to_all, 8) * 80, 70);
  EXPECT_EQ(received_share(Collective::permute, 8) * 80, 80);
  EXPECT_EQ(array_share(Collective::all_gather, 8) * 10, 80);
  EXPECT_EQ(received_of_array(Collective::all_gather, 8), received_of_array(Collective::reduce_scatter, 8));
  EXPECT_EQ(received_bytes(movement(std::nullopt, axis_bit(0), 0, 1), 8, 80_B), 0_B);
}

// An all-reduce is a reduce-scatter and an all-gather of what that leaves.
TEST(Collective, AnAllReduceReceivesWhatItsTwoHalvesReceive) {
  for (const double n : {2.0, 3.0, 16.0})
    EXPECT_DOUBLE_EQ(received_share(Collective::all_reduce, n),
                     received_share(Collective::reduce_scatter, n) + received_share(Collective::all_gather, n) / n);
}

}  // namespace
}  // namespace assay::program
