#include "assay/profile/hlo/proto.h"

#include <gtest/gtest.h>

#include "assay/profile/hlo/module.h"
#include "assay/profile/hlo/work.h"
#include "assay/testing/messages.h"

namespace assay::hlo {
namespace {

TEST(Proto, IsReadAsTheTextThatXlaPrints) {
  const std::string text = hlo_text(testing::module_message());
  EXPECT_NE(text.find("%dot.7 = bf16[64,32] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            std::string::npos)
      << text;
  const auto module = read_hlo(text, "proto");
  ASSERT_TRUE(module) << module.error().what;
  EXPECT_EQ(module->name, "jit_step");
  const Computation& entry = *module->entry_computation();
  ASSERT_EQ(entry.instructions.size(), 4u);
  EXPECT_EQ(entry.root, 3u);
  EXPECT_EQ(entry.instructions[2].op_name(), "jit(step)/transpose(jvp(layer))/dot_general");
  // 2 x 64 x 32 x 128
  EXPECT_DOUBLE_EQ(arithmetic(*module, entry, entry.instructions[2]).matrix().value(), 524288.0);
}

TEST(Proto, EveryTruncationGivesTextOrAnError) {
  const std::string whole = testing::module_message();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto module = read_hlo(hlo_text(std::string_view(whole).substr(0, size)), "cut");
    EXPECT_TRUE(module || !module.error().hint.empty()) << size;
  }
}

TEST(Proto, GroupsWindowsAndShardingsHaveTheirNotation) {
  using testing::field;
  using testing::varint;
  const std::string shape = testing::shape_message({8, 4});
  const std::string gather = field(1, "ag") + field(2, "all-gather") + field(3, shape) + field(35, 2) +
                             field(36, varint(1)) + field(14, varint(0)) +
                             field(87, field(2, field(1, 2) + field(2, 4) + field(3, varint(4) + varint(2)) +
                                                    field(4, varint(1) + varint(0))));
  const std::string sharded = field(40, field(1, 3) + field(3, varint(4) + varint(1)) + field(9, varint(4)));
  const std::string parameter = field(1, "p") + field(2, "parameter") + field(3, shape) + field(35, 1) + sharded;
  const std::string text = hlo_text(
      field(1, "m") + field(3, field(1, "main") + field(2, parameter) + field(2, gather) + field(5, 1) + field(6, 2)) +
      field(6, 1));
  EXPECT_NE(text.find("sharding={devices=[4,1]<=[4]}"), std::string::npos) << text;
  EXPECT_NE(text.find("dimensions={0}, replica_groups=[2,4]<=[4,2]T(1,0)"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::hlo
