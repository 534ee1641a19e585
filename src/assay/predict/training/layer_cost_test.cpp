#include "assay/predict/training/layer_cost.h"

#include <gtest/gtest.h>

namespace assay::training {
namespace {

// Traffic of one kind is added up wherever it stands in the list, in place or beyond; copies do not share it.
TEST(PassProfile, KeepsTrafficApartByKind) {
  PassProfile pass;
  for (int round = 0; round < 2; ++round)
    for (std::size_t over = 1; over <= max_traffic; ++over) {
      Traffic traffic;
      traffic.over = static_cast<RoleSet>(over), traffic.bytes = Bytes(static_cast<double>(over)), traffic.count = 1;
      pass.add_traffic(traffic);
    }
  const PassProfile copy = pass;
  for (Traffic& traffic : pass.traffic) traffic.bytes = Bytes();
  ASSERT_EQ(copy.traffic.size(), max_traffic);
  double expected = 0;
  for (const Traffic& traffic : copy.traffic) {
    expected += 2;
    EXPECT_EQ(traffic.bytes, Bytes(expected));
    EXPECT_EQ(traffic.count, 2);
  }
  Traffic one_more;
  one_more.over = static_cast<RoleSet>(max_traffic + 1);
  EXPECT_THROW(pass.add_traffic(one_more), InternalError);
}

TEST(TrainingProfile, NamesTheSetsOfRolesThatItsCollectivesRunOver) {
  TrainingProfile profile;
  profile.kinds.resize(2);
  Traffic traffic;
  traffic.over = role_bit(Role::tensor);
  profile.kinds[1].backward.add_traffic(traffic);
  traffic.over = role_bit(Role::data) | role_bit(Role::fsdp);
  profile.head.forward.add_traffic(traffic);
  EXPECT_EQ(role_sets(profile), 1u << 16 | 1u << 3);
}

}  // namespace
}  // namespace assay::training
