#include "assay/profile/hlo/sharding.h"

#include <gtest/gtest.h>

namespace assay::hlo {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;
using Axes = std::vector<StridedAxis>;

Lists lists(std::string_view text) { return parse_replica_groups(text, "groups")->lists; }
Sharding sharding(std::string_view text) { return *parse_sharding(text, "sharding"); }

TEST(ReplicaGroups, AllNotationsGiveTheSameGroups) {
  const Lists rows{{0, 1, 2, 3}, {4, 5, 6, 7}}, columns{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  for (const char* text : {"{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]", "[2,4]<=[2,4]", "mesh['X'=2,'Y'=4] {'Y'}"})
    EXPECT_EQ(lists(text), rows) << text;
  for (const char* text : {"{{0,4},{1,5},{2,6},{3,7}}", "[4,2]<=[2,4]T(1,0)", "mesh['X'=2,'Y'=4] {'X'}"})
    EXPECT_EQ(lists(text), columns) << text;
  EXPECT_TRUE(lists("{}").empty());
  EXPECT_EQ(parse_replica_groups("{}", "groups")->size(8), 8);
}

TEST(ReplicaGroups, StridesAreFound) {
  const auto axes = [](const char* text) { return strided_axes(*parse_replica_groups(text, "groups"), 16); };
  EXPECT_EQ(axes("[2,8]<=[16]"), (Axes{{8, 1}}));
  EXPECT_EQ(axes("[8,2]<=[2,8]T(1,0)"), (Axes{{2, 8}}));
  EXPECT_EQ(axes("[4,4]<=[2,4,2]T(1,0,2)"), (Axes{{2, 1}, {2, 8}}));
  EXPECT_EQ(axes("{}"), (Axes{{16, 1}}));
  EXPECT_TRUE(axes("{{0,1,5}}").empty());
}

TEST(Sharding, TilesAndCopiesAreRead) {
  const Sharding tiled = sharding("{devices=[2,1,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(tiled.tiles, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(tiled.copies, 4);
  EXPECT_EQ(steps_of(tiled, 0), (Axes{{2, 4}}));
  EXPECT_TRUE(steps_of(tiled, 1).empty());
  const Sharding transposed = sharding("{devices=[64,1,2]<=[2,64]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(transposed.copies, 2);
  EXPECT_EQ(steps_of(transposed, 0), (Axes{{64, 1}}));
  EXPECT_EQ(steps_of(sharding("{devices=[2,2]0,2,1,3}"), 0), (Axes{{2, 1}}));
  EXPECT_EQ(sharding("{devices=[2,1,2]<=[4] last_tile_dims={manual}}").tiles, (std::vector<std::int64_t>{2, 1}));
}

TEST(Sharding, OtherKindsAreTold) {
  EXPECT_EQ(sharding("{replicated}").kind, Sharding::Kind::replicated);
  EXPECT_EQ(sharding("{maximal device=3}").kind, Sharding::Kind::maximal);
  EXPECT_EQ(sharding("{manual}").kind, Sharding::Kind::manual);
  const Sharding tuple = sharding("{{replicated}, {devices=[4]<=[4]}}");
  ASSERT_EQ(tuple.members.size(), 2u);
  EXPECT_EQ(tuple.members[1].tiles, (std::vector<std::int64_t>{4}));
}

TEST(Sharding, MeshesHaveNames) {
  const Sharding named = sharding("{mesh['X'=2,'Y'=4], [{'Y'}, {}, {'X'}]}");
  EXPECT_EQ(named.tiles, (std::vector<std::int64_t>{4, 1, 2}));
  EXPECT_EQ(steps_of(named, 0), (Axes{{4, 1}}));
  EXPECT_EQ(steps_of(named, 2), (Axes{{2, 4}}));
  EXPECT_EQ(sharding("{mesh[], replicated}").kind, Sharding::Kind::replicated);
}

TEST(Sharding, ShardyNamesItsAxes) {
  const auto mesh = *parse_sdy_mesh(R"(#sdy.mesh<["data"=2, "fsdp"=4, "tensor"=1]>)", "mesh");
  ASSERT_EQ(mesh.size(), 3u);
  const Sharding read =
      *parse_sdy_sharding(R"(#sdy.sharding<@mesh, [{"data", "fsdp"}, {}, {"tensor", ?}]>)", mesh, "sharding");
  EXPECT_EQ(read.tiles, (std::vector<std::int64_t>{8, 1, 1}));
  EXPECT_EQ(read.axes[0], (std::vector<std::string>{"data", "fsdp"}));
  EXPECT_TRUE(read.axes[2].empty());  // an axis of one device divides nothing
}

TEST(Sharding, FaultsHaveAPlaceAndARemedy) {
  for (const char* text :
       {"", "{", "{devices=[2,2]<=[8]}", "{devices=[2]0}", "{devices=[0]<=[1]}", "{mesh['X'=2], [{'Z'}]}"}) {
    const auto read = parse_sharding(text, "sharding");
    ASSERT_FALSE(read) << text;
    EXPECT_FALSE(read.error().where.empty() || read.error().hint.empty()) << text;
  }
  for (const char* text : {"", "[2,4]<=[9]", "[2,4]", "{{0,1}", "[2,4]<=[2,4]T(1,1)", "mesh['X'=2] {'Y'}"}) {
    const auto read = parse_replica_groups(text, "groups");
    ASSERT_FALSE(read) << text;
    EXPECT_FALSE(read.error().where.empty() || read.error().hint.empty()) << text;
  }
}

}  // namespace
}  // namespace assay::hlo
