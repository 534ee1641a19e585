#include "assay/lab/fit/ranges.h"

#include <gtest/gtest.h>

namespace assay::validate {
namespace {

/// The fault of fits/kernels.toml with further text.
std::string fault_with(std::string_view more) {
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::string text(catalogue.files("fits/kernels.toml").front().second);
  catalogue.put("fits/kernels.toml", text.append(more));
  const auto read = kernel_ranges_of(catalogue);
  return read ? "" : read.error().what;
}

TEST(KernelRanges, OneTableIsUsualAndOneShowsEachSubject) {
  EXPECT_EQ(fault_with(""), "");
  EXPECT_EQ(fault_with("\n[[own_table]]\nname = \"a\"\nsource = \"harness\"\nusual = true\n"), "2 tables are usual");
  EXPECT_EQ(fault_with("\n[[own_table]]\nname = \"a\"\nsource = \"harness\"\nmeasured_as = \"b\"\nshows = "
                       "\"grouped\"\n"),
            "2 tables show grouped");
  EXPECT_EQ(fault_with("\n[[own_table]]\nname = \"a\"\nsource = \"harness\"\nmeasured_as = \"b\"\nshows = "
                       "\"norms\"\n"),
            "no fit takes \"norms\"");
}

/// Each number has a range that says where it starts, or within what it stays.
void expect_ranges(const RangeTable& table, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const FitRange<double> range = table[key];
    EXPECT_TRUE(range.start > 0.0 || (0.0 < range.low && range.low < range.high)) << key;
  }
}

TEST(KernelRanges, HoldEveryNumberThatAFitAsksFor) {
  const KernelRanges all = *kernel_ranges_of(hardware::Catalogue::builtin());
  expect_ranges(all.of("matmul"),
                {"share", "droop", "memory_share", "small_tile", "fill", "split_cost", "scales", "stage", "port",
                 "narrow_port", "scattered_port", "scattered_result_port", "grouped_port", "grouped_fill", "straddle"});
  expect_ranges(all.of("pointwise"), {"stream", "norm", "softmax", "optimizer", "ramp"});
  const RangeTable attention = all.of("attention");
  expect_ranges(attention, {"table_share"});
  for (const char* pass : {"forward", "backward"})
    expect_ranges(attention.inside(pass),
                  {"share", "wide", "softmax", "passes", "start", "tail", "uneven", "part_row"});
  expect_ranges(attention.inside("decode"), {"share", "crowded", "wide", "item"});
  expect_ranges(all.of("collective"), {"latency", "member", "share", "pair", "chunk", "in_network"});
  expect_ranges(all.of("across"), {"latency", "chunk"});
  expect_ranges(all.of("measuring"), {"product_launch", "kernel_launch", "collective_launch", "gap", "burst_gap",
                                      "ramp", "dirty", "evicts", "attention_passes"});
  expect_ranges(all.of("quantise"), {"fixed", "fixed_fp4", "element", "passes"});
  EXPECT_EQ(all.of("measuring")["dirty"].start<Bytes>(), 20_MB);
}

}  // namespace
}  // namespace assay::validate
