#include "assay/hardware/instance_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/hardware/catalogue.h"
#include "assay/testing/catalogue.h"

namespace assay::hardware {
namespace {

constexpr std::string_view header = "cloud,instance,accelerator,count,ondemand_min_usd_h,spot_min_usd_h\n";

Result<InstanceTable> read_prices(std::string_view lines) {
  return read_instance_table(std::string(header) + std::string(lines), "t.csv", testing::catalogue());
}

TEST(InstanceTable, MachinesAndSlicesOfTheCatalogueSayWhatTheyHave) {
  const auto table = read_prices(
      "# 2026-08-22\naws,p4d.24xlarge,A100,8,21.96,\naws,p4de.24xlarge,A100-80GB,8,27.45,9\n"
      "gcp,,tpu-v5litepod-8,1,9.6,1.4\nx,y,H100-80G-SXM5,2,5,\nx,z,K80,1,0.9,\nx,m,A10,0.5,0.4,\n");
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_EQ(table->date, "2026-08-22");
  ASSERT_EQ(table->offers.size(), 6u);
  EXPECT_EQ(table->offers[0].chip, "a100-sxm-40");
  EXPECT_FALSE(table->offers[0].spot);
  EXPECT_EQ(table->offers[1].chip, "a100-sxm-80");
  EXPECT_NEAR((*table->offers[1].price(true) * 1_h).value(), 9.0, 1e-9);
  EXPECT_EQ(table->offers[2].chip, "tpu-v5e");
  EXPECT_EQ(table->offers[2].chips, 8);
  EXPECT_EQ(table->offers[3].chip, "h100-sxm");
  EXPECT_EQ(table->offers[4].chip, "");
  EXPECT_EQ(table->offers[5].chips, 0);  // a share of a chip
}

TEST(InstanceTable, EveryFaultHasItsLine) {
  const auto table = read_prices("a,b,H100,8,x,\na,b,H100,8\na,b,H100,-1,5,\na,b,H100,1,,\n");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().where, "t.csv:2");
  ASSERT_EQ(table.error().also.size(), 3u);
  EXPECT_EQ(table.error().also[0].where, "t.csv:3");
  EXPECT_EQ(table.error().also[2].what, "the instance has no price");
  EXPECT_FALSE(read_instance_table("", "t.csv", testing::catalogue()));
  EXPECT_FALSE(read_instance_table("cloud,price\n", "t.csv", testing::catalogue()));
}

TEST(InstanceTable, InstancesAreRentedWhole) {
  EXPECT_EQ(instances_for(8, 3, 1, 8), 1);
  EXPECT_EQ(instances_for(8, 3, 4, 8), 2);
  EXPECT_EQ(instances_for(8, 3, 16, 8), 6);
  EXPECT_EQ(instances_for(1, 3, 2, 8), std::nullopt);  // a replica does not span parts of nodes
  EXPECT_EQ(instances_for(8, 1, 12, 8), std::nullopt);
}

RC_GTEST_PROP(InstanceTable, InstancesHoldTheReplicasAndNoneIsSuperfluous, ()) {
  const std::int64_t chips = *rc::gen::inRange(1, 17), replicas = *rc::gen::inRange(1, 50),
                     each = *rc::gen::inRange(1, 33);
  const auto instances = instances_for(chips, replicas, each, 8);
  RC_PRE(instances.has_value());
  const auto held = [&](std::int64_t n) { return chips >= each ? n * (chips / each) : n * chips / each; };
  RC_ASSERT(held(*instances) >= replicas);
  RC_ASSERT(held(*instances - 1) < replicas);
}

}  // namespace
}  // namespace assay::hardware
