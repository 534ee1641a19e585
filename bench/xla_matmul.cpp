// Our plans against what a production partitioner (XLA's SPMD) inserts, on recorded shardings of one matmul:
//   bench_xla_matmul [FILE]      FILE is tests/data/xla_matmul.txt, or another one in its format
// Both sides are counted by one definition, bytes received per device: docs/sharding.md.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <stdexcept>
#include <string>

#include "assay/base/text.h"
#include "assay/program/plan/planner.h"

namespace {

using namespace assay;

/// Bytes received from the bytes of a collective's result on one device.
double received(const std::string& kind, double n, double result) {
  if (kind == "all-gather" || kind == "all-to-all") return result * (n - 1) / n;
  if (kind == "reduce-scatter") return result * (n - 1);
  if (kind == "all-reduce") return 2 * result * (n - 1) / n;
  if (kind == "collective-permute") return result;
  throw std::runtime_error("unknown collective " + kind);
}

struct Row {
  double theirs = 0, ours = 0;
};

Row read_row(const std::string& line, const program::Mesh& mesh, const plan::DimensionSizes& sizes) {
  const auto parts = split(line, ';');
  Row row;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto words = split(parts[i], ' ');
    if (words.size() != 3) throw std::runtime_error("not KIND PARTICIPANTS BYTES: " + parts[i]);
    row.theirs += received(words[0], *parse_number(words[1]), *parse_number(words[2]));
  }
  const auto expression = plan::parse_sharding(parts[0], mesh, sizes, Dtype::fp32);
  if (!expression) throw std::runtime_error(expression.error().where + ": " + expression.error().what);
  row.ours = plan::plan_product_thoroughly(mesh, *expression).plan.bytes.value();
  return row;
}

constexpr std::array limits = {0.0, 0.25, 0.5, 0.75, 1.0};

struct Tally {
  int rows = 0, fewer = 0, equal = 0, more = 0;
  Row sum;
  std::array<int, limits.size() + 1> ratios{};  ///< rows by ours / theirs, up to each limit

  void count(const Row& row) {
    constexpr double rounding = 1e-9;
    ++rows;
    sum.theirs += row.theirs, sum.ours += row.ours;
    const double slack = rounding * row.theirs;
    ++(row.ours < row.theirs - slack ? fewer : row.ours > row.theirs + slack ? more : equal);
    const double ratio = row.theirs > 0 ? row.ours / row.theirs : row.ours > 0 ? 2.0 : 1.0;
    std::size_t place = 0;
    while (place < limits.size() && ratio > limits[place] + rounding) ++place;
    ++ratios[place];
  }
};

void print(const Tally& tally) {
  fmt::print("| | |\n| --- | --- |\n| shardings | {} |\n| fewer bytes than the partitioner | {} |\n| as many | {} |\n",
             tally.rows, tally.fewer, tally.equal);
  fmt::print("| more | {} |\n| partitioner, all rows | {} |\n| our plans, all rows | {} ({:.1f} %) |\n\n", tally.more,
             human(Bytes(tally.sum.theirs)), human(Bytes(tally.sum.ours)), 100 * tally.sum.ours / tally.sum.theirs);
  fmt::print("| ours over theirs | rows |\n| --- | --- |\n");
  for (std::size_t i = 0; i < tally.ratios.size(); ++i) {
    const std::string range = i == 0               ? "nothing moves"
                              : i == limits.size() ? "above 1"
                                                   : fmt::format("up to {}", limits[i]);
    fmt::print("| {} | {} |\n", range, tally.ratios[i]);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "tests/data/xla_matmul.txt";
  const program::Mesh mesh{{{"X", 4}, {"Y", 2}}};
  const plan::DimensionSizes sizes{{"I", 512}, {"J", 1024}, {"K", 2048}};
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  Tally tally;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') tally.count(read_row(line, mesh, sizes));
  print(tally);
  return tally.more == 0 ? 0 : 4;
} catch (const std::exception& fault) {
  fmt::print(stderr, "{}\n", fault.what());
  return 1;
}
