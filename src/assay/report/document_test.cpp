#include "assay/report/document.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

double at(const Value& root, std::string_view path) {
  const auto found = find_path(root, path);
  return found ? numeric(*found).value_or(-2) : -1;
}

TEST(FindPath, WalksMembersListsAndOtherSources) {
  const QuantityValue peak{AnyQuantity(FlopsPerSecond(989e12)), "datasheet", "", {{AnyQuantity(FlopsPerSecond(990e12)), "book"}, {AnyQuantity(FlopsPerSecond(980e12)), "book-2025"}}};
  const Value root{Members{{"peak", Members{{"bf16", peak}}}, {"levels", Items{Members{{"chips", 8}}, Members{{"chips", 256}}}}, {"grid", Items{Items{1, 2}, Items{3, 4}}}}};
  EXPECT_EQ(at(root, "levels[1].chips"), 256);
  EXPECT_EQ(at(root, "grid[1][0]"), 3);
  EXPECT_EQ(at(root, "peak.bf16"), 989e12);
  EXPECT_EQ(at(root, "peak.bf16.also[book]"), 990e12);
  EXPECT_EQ(at(root, "peak.bf16.also[book-2025]"), 980e12);
  EXPECT_EQ(at(root, "peak.bf16.also[1]"), 980e12);
}

TEST(FindPath, FindsNothingWhereNothingIs) {
  const QuantityValue clock{AnyQuantity(Hertz(1e9)), "", "", {{AnyQuantity(Hertz(2e9)), "book"}}};
  const Value root{Members{{"clock", clock}, {"levels", Items{1, 2}}}};
  for (const char* path : {"", "missing", "levels[2]", "levels[-1]", "levels[x]", "levels[0", "levels]0[", "clock.also", "clock.also[]", "clock.also[1]", "clock.also[other]", "clock.also[book].x", "clock[0]"})
    EXPECT_FALSE(find_path(root, path)) << path;
}

}  // namespace
}  // namespace assay
