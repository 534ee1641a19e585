#include "assay/lab/fit/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "assay/base/toml.h"

namespace assay::validate {
namespace {

TEST(Bounds, NoFittedNumberOfTheCatalogueIsAtOne) {
  const auto found = numbers_at_bounds(hardware::Catalogue::builtin());
  ASSERT_TRUE(found) << found.error().what;
  for (const RangedNumber& number : *found)
    ADD_FAILURE() << number.file << ": " << number.name << " is " << number.value << ", at the bound " << number.bound
                  << " of " << number.range << ": the model lacks something, or no row tells the number";
}

/// The paths of all ranges with bounds in a table.
void add_ranges(const Toml& table, const std::string& path, std::set<std::string>& out) {
  if (table.find("low") && table.find("high")) out.insert(path);
  for (const auto& [key, node] : table.members)
    if (node.kind == Toml::Kind::table) add_ranges(node, path.ends_with(": ") ? path + key : path + "." + key, out);
}

TEST(Bounds, EveryRangeIsThatOfSomeNumber) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::set<std::string> ranges;
  for (const char* files : {"fits/kernels.toml", "fits/training.toml", "fits/serving.toml", "families/"})
    for (const auto& [file, text] : catalogue.files(files)) {
      const auto document = parse_toml(text, file);
      ASSERT_TRUE(document);
      add_ranges(*document, file + ": ", ranges);
    }
  // Further ranges of numbers that have one already: of tables that time more than a kernel, of gaps between bursts, of
  // casts to 4 bits.
  ranges.erase("fits/kernels.toml: attention.table_share");
  ranges.erase("fits/kernels.toml: measuring.burst_gap");
  ranges.erase("fits/kernels.toml: quantise.fixed_fp4");
  EXPECT_GT(ranges.size(), 100u);
  const auto numbers = ranged_numbers(catalogue);
  ASSERT_TRUE(numbers) << numbers.error().what;
  for (const RangedNumber& number : *numbers) ranges.erase(number.range);
  for (const std::string& range : ranges) ADD_FAILURE() << range << " is that of no number in a fitted file";
}

TEST(Bounds, ANumberNextToOneIsFoundWithItsPlace) {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const std::size_t before = numbers_at_bounds(catalogue)->size();
  std::string text(catalogue.files("calibration/hopper.toml").front().second);
  const std::size_t at = text.find("\nfill = ");
  text.replace(at, text.find('\n', at + 1) - at, "\nfill = 599.9");
  catalogue.put("calibration/hopper.toml", text);
  const auto found = numbers_at_bounds(catalogue);
  ASSERT_EQ(found->size(), before + 1);
  const auto fill = std::find_if(found->begin(), found->end(),
                                 [](const RangedNumber& number) { return number.name == "matmul.fill"; });
  ASSERT_NE(fill, found->end());
  EXPECT_EQ(fill->file, "calibration/hopper.toml");
  EXPECT_EQ(fill->range, "fits/kernels.toml: matmul.fill");
  EXPECT_EQ(fill->bound, "600");
}

}  // namespace
}  // namespace assay::validate
