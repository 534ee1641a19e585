#include "assay/hardware/collective_protocols.h"

#include <gtest/gtest.h>

#include "assay/hardware/catalogue.h"

namespace assay::hardware {
namespace {

TEST(CollectiveProtocols, FabricsAndChipsRunWhatTheyCan) {
  const auto library = collective_protocols_of(Catalogue::builtin());
  ASSERT_TRUE(library) << library.error().what;
  EXPECT_EQ(library->simple.ring.share, 1.0);
  EXPECT_LT(library->ll.tree.base, library->simple.tree.base);
  const FabricProtocols all = library->of("infiniband", "Hopper");
  EXPECT_TRUE(all.ll && all.ll128 && all.switches);
  EXPECT_FALSE(all.flushes || all.fixed_chunks);
  EXPECT_TRUE(library->of("infiniband", "Ampere").flushes);
  EXPECT_TRUE(library->of("efa", "Hopper").ll);
  EXPECT_FALSE(library->of("efa", "Ampere").ll);
  const FabricProtocols tcpxo = library->of("tcpxo", "Hopper");
  EXPECT_TRUE(tcpxo.ll && tcpxo.fixed_chunks);
  EXPECT_FALSE(tcpxo.ll128 || tcpxo.switches);
}

}  // namespace
}  // namespace assay::hardware
