#include "assay/profile/hlo/price.h"

#include <gtest/gtest.h>

namespace assay::hlo {
namespace {

struct Priced {
  ProgramKernels kernels;
  ProgramPrice price;
};

Priced priced(const std::string& text, std::string_view on) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const auto cluster = hardware::parse_cluster(on, catalogue, "--on");
  const auto rates = kernel::kernel_rates(cluster->chip, Dtype::bf16, "--on");
  const auto module = read_module(text, "test.hlo", **calls_of(catalogue));
  if (!cluster || !rates || !module) throw InternalError("the test's program");
  Priced out{*program_kernels(*module), {}};
  out.price = *program_price(*module, out.kernels, {*cluster, *rates, std::nullopt});
  return out;
}

/// An all-gather before a product that does not need it, at once or in two halves.
std::string gathers(const char* collective) {
  return std::string(R"(HloModule m, num_partitions=4
ENTRY e {
  x = bf16[4096,4096] parameter(0)
  w = bf16[1024,4096] parameter(1)
)") + collective +
         R"(
})";
}
constexpr const char* waits = R"(
  g = bf16[4096,4096] all-gather(w), replica_groups=[1,4]<=[4], dimensions={0}
  d = bf16[4096,4096] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (bf16[4096,4096], bf16[4096,4096]) tuple(d, g))";
constexpr const char* overlaps = R"(
  s = (bf16[1024,4096], bf16[4096,4096]) all-gather-start(w), replica_groups=[1,4]<=[4], dimensions={0}
  d = bf16[4096,4096] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = bf16[4096,4096] all-gather-done(s)
  ROOT t = (bf16[4096,4096], bf16[4096,4096]) tuple(d, g))";

TEST(Price, BoundsAreOfIdealHardware) {
  const Priced of = priced(R"(ENTRY e {
  a = bf16[8192,4096] parameter(0)
  b = bf16[4096,8192] parameter(1)
  ROOT d = bf16[8192,8192] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
                           "tpu-v5e");
  // 2 x 8192 x 8192 x 4096 FLOP at 197 TFLOP/s.
  EXPECT_NEAR(of.price.compute.value(), 2.0 * 8192 * 8192 * 4096 / 197e12, 1e-9);
  EXPECT_EQ(of.price.kernels[0].bound, "compute");
  EXPECT_EQ(of.price.lower, of.price.compute);
  EXPECT_GE(of.price.estimate, of.price.lower);
}

TEST(Price, AsynchronousCollectivesRunBesideWhatFollows) {
  const Priced one = priced(gathers(waits), "h100-sxm:4"), two = priced(gathers(overlaps), "h100-sxm:4");
  EXPECT_EQ(one.price.network, two.price.network);
  EXPECT_GT(one.price.network, Seconds(0));
  EXPECT_EQ(one.price.exposed_communication, one.price.communication);
  EXPECT_LT(two.price.exposed_communication, one.price.exposed_communication);
  EXPECT_LT(two.price.estimate, one.price.estimate);
}

TEST(Price, NoKernelIsFasterThanItsBound) {
  const Priced whole = priced(gathers(waits), "h100-sxm:4");
  EXPECT_GE(whole.price.upper, whole.price.lower);
  for (std::size_t i = 0; i < whole.kernels.kernels.size(); ++i)
    EXPECT_GE(whole.price.kernels[i].estimate, whole.price.kernels[i].lower());
}

}  // namespace
}  // namespace assay::hlo
