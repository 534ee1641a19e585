#include "assay/predict/training/stage_links.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"

namespace assay::training {
namespace {

bool is_same(const collective::CollectiveLine& a, const collective::CollectiveLine& b) {
  return a.rate.value() == b.rate.value() && a.floor.value() == b.floor.value();
}

std::vector<lower::Parallelism> some_meshes() {
  std::vector<lower::Parallelism> all;
  for (const std::int64_t tensor : {1, 2, 4, 8})
    for (const std::int64_t context : {1, 2, 4})
      for (const std::int64_t pipeline : {1, 2}) {
        lower::Parallelism p;
        p.tensor = tensor, p.context = context, p.pipeline = pipeline, p.fsdp = 2;
        p.data = 128 / p.devices();
        if (p.data >= 1) all.push_back(p);
      }
  return all;
}

// A linker keeps what groups cost, those of axes that lie alike once: whatever it has laid before, links are those of a
// linker that knows nothing yet.
TEST(StageLinker, GivesTheSameLinksWhateverItKnows) {
  for (const char* where : {"h100-sxm:128", "gb200-nvl72:128", "tpu-v5e:8x16"}) {
    const hardware::Cluster cluster = *hardware::parse_cluster(where, hardware::Catalogue::builtin(), "test");
    StageLinker knowing(cluster, nullptr, {});
    int laid = 0;
    for (const lower::Parallelism& p : some_meshes())
      for (const collective::AxisLayout& layout : collective::axis_layouts(whole_mesh_sizes(p), cluster)) {
        const auto links = knowing.links(p, layout), fresh = stage_links(p, layout, cluster);
        ASSERT_EQ(links.has_value(), fresh.has_value());
        if (!links) continue;
        ++laid;
        EXPECT_EQ(links->forms, fresh->forms);
        EXPECT_EQ(links->resources, fresh->resources);
        for (std::size_t set = 0; set < links->lines.size(); ++set)
          for (std::size_t kind = 0; kind < links->lines[set].size(); ++kind)
            EXPECT_TRUE(is_same(links->lines[set][kind], fresh->lines[set][kind])) << where << " " << set;
        EXPECT_TRUE(is_same(links->between_stages, fresh->between_stages));
        EXPECT_TRUE(is_same(links->copies, fresh->copies));
      }
    EXPECT_GT(laid, 50) << where;
  }
}

// Of some sets of roles: these are as among all, and nothing is left of what the links held before.
TEST(StageLinker, FillsTheSetsThatAreAskedForAndNoOthers) {
  const hardware::Cluster cluster = *hardware::parse_cluster("h100-sxm:128", hardware::Catalogue::builtin(), "test");
  StageLinker linker(cluster, nullptr, {});
  const lower::Parallelism p = some_meshes().back();
  const StageLinks all = *linker.links(p, {});
  for (RoleSets sets : {RoleSets{0b10}, RoleSets{0b1000100}, every_role_set & ~RoleSets{0b100}}) {
    StageLinks links = all;
    linker.fill(p, *linker.place_links(p, {}, sets), links);
    for (std::size_t set = 0; set < all.forms.size(); ++set)
      EXPECT_EQ(links.forms[set], sets >> set & 1u ? all.forms[set] : StageLinks{}.forms[set]) << sets << " " << set;
  }
}

}  // namespace
}  // namespace assay::training
