// Our plans against what a production partitioner inserts, on recorded shardings of one matmul. Both sides are counted
// by one definition: bytes received per device (sharding/planner.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "assay/base/text.h"
#include "assay/program/plan/planner.h"

namespace assay {
namespace {

/// Bytes received from the bytes of a collective's result on one device.
double received(const std::string& kind, double n, double result) {
  if (kind == "all-gather" || kind == "all-to-all") return result * (n - 1) / n;
  if (kind == "reduce-scatter") return result * (n - 1);
  if (kind == "all-reduce") return 2 * result * (n - 1) / n;
  return result;  // collective-permute
}

TEST(XlaMatmul, PlansNeverReceiveMoreThanThePartitioner) {
  const program::Mesh mesh{{{"X", 4}, {"Y", 2}}};
  const plan::DimensionSizes sizes{{"I", 512}, {"J", 1024}, {"K", 2048}};
  std::ifstream file("tests/data/xla_matmul.txt");
  ASSERT_TRUE(file.is_open());
  double ours = 0, theirs = 0;
  int rows = 0, fewer = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto parts = split(line, ';');
    double recorded = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto words = split(parts[i], ' ');
      ASSERT_EQ(words.size(), 3u) << line;
      recorded += received(words[0], *parse_number(words[1]), *parse_number(words[2]));
    }
    const auto expression = plan::parse_sharding(parts[0], mesh, sizes, Dtype::fp32);
    ASSERT_TRUE(expression) << parts[0];
    const double planned = plan::plan_product_thoroughly(mesh, *expression).plan.bytes.value();
    EXPECT_LE(planned, recorded * (1 + 1e-9)) << parts[0];
    ours += planned, theirs += recorded, ++rows, fewer += planned < recorded * (1 - 1e-9);
  }
  EXPECT_EQ(rows, 437);
  EXPECT_LT(ours, 0.5 * theirs);
  fmt::print("{} shardings: fewer bytes in {}, equal in {}; {:.1f} % of the partitioner's bytes in all\n", rows, fewer,
             rows - fewer, 100 * ours / theirs);
}

}  // namespace
}  // namespace assay
