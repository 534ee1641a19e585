#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/profile/trace/readers.h"
#include "assay/profile/trace/summary.h"

namespace assay::trace {
namespace {

const Vocabulary& names_in_captures() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **vocabulary_of(catalogue);
}

std::string launch(const char* name, int correlation, double at, const char* kernel) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":1,"tid":1,"ts":{},"dur":1,"args":{{"correlation":{},"kernel":"{}"}}}},)",
      name, at, correlation, kernel);
}
std::string kernel(const char* name, int correlation, double at) {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":4,"args":{{"correlation":{},"stream":7}}}},)",
      name, at, correlation);
}
std::string product(int m, double at) {
  return fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{},"dur":8,"args":{{"Input Dims":[[{},8],[8,4]],"Input type":["float","float"],"Concrete Inputs":["",""]}}}},)",
      at, m);
}
Trace read(std::string events) {
  events.back() = ']';
  return read_profile("[" + events, "x.json", names_in_captures()).value();
}

// Two graphs with the same kernels but other shapes, captured one behind the other and replayed twice in that order.
TEST(Capture, ReplayedKernelsGetTheirOperations) {
  const Trace capture = read(product(16, 0) + launch("l", 1, 2, "gemm_a") + launch("l", 2, 4, "gemm_b") +
                             product(32, 20) + launch("l", 3, 22, "gemm_a") + launch("l", 4, 24, "gemm_b"));
  std::string events;
  for (int replay = 0; replay < 4; ++replay) {
    events += launch("graph", 100 + replay, 10.0 * replay, "");
    events += kernel("gemm_a", 100 + replay, 10.0 * replay + 1);
    events += kernel("gemm_b", 100 + replay, 10.0 * replay + 5);
  }
  Trace trace = read(events);
  EXPECT_EQ(adopt_capture(trace, capture), 8);
  const auto devices = summarize(trace, names_in_captures());
  ASSERT_EQ(devices.at(0).operations.size(), 2u);
  for (const OperationTime& one : devices[0].operations) {
    EXPECT_EQ(one.name, "aten::mm");
    EXPECT_EQ(one.calls, 2);
    EXPECT_EQ(one.kernels, 4);
  }
  const double flops = (devices[0].operations[0].work->flops + devices[0].operations[1].work->flops).value();
  EXPECT_DOUBLE_EQ(flops, 2.0 * 8 * 4 * (16 + 32));
}

TEST(Capture, OtherKernelsStayAsTheyAre) {
  const Trace capture = read(product(16, 0) + launch("l", 1, 2, "gemm_a"));
  Trace trace = read(launch("graph", 1, 0, "") + kernel("gemm_a", 1, 1) + kernel("gemm_c", 1, 5));
  EXPECT_EQ(adopt_capture(trace, capture), 0);
}

}  // namespace
}  // namespace assay::trace
