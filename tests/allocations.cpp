// What a search calls millions of times takes no memory from the heap. Counts every allocation of the test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "assay/predict/collective/collective_models.h"
#include "assay/predict/collective/placement.h"
#include "assay/predict/kernel/kernel_models.h"

namespace {
std::atomic<std::size_t> allocations{0};
}

// Not inlined: g++ 12 would see free() called on memory of operator new, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace assay {
namespace {

hardware::Cluster cluster(const char* text) {
  return *hardware::parse_cluster(text, hardware::Catalogue::builtin(), "test");
}

template <class Act>
std::size_t allocated_by(Act act) {
  const std::size_t before = allocations;
  act();
  return allocations - before;
}

TEST(Allocations, AreCounted) {
  EXPECT_GT(allocated_by([] { std::vector<int>(100).swap(*std::make_unique<std::vector<int>>()); }), 0u);
}

TEST(Allocations, CostingACollectiveMakesNone) {
  const collective::CollectiveGroup groups[] = {
      *collective::make_group(cluster("tpu-v4:4x4x8"), {}, 1, "test"),
      *collective::make_group(cluster("h100-sxm:256"), {}, 1, "test"),
      *collective::make_group(cluster("4*tpu-v5e:16x16"), {"X=4:2", "slices"}, 1, "test")};
  Seconds sum(0);
  EXPECT_EQ(allocated_by([&] {
              for (std::size_t kind = 0; kind < program::collective_kinds; ++kind)
                for (const collective::CollectiveGroup& group : groups) {
                  sum +=
                      collective::collective_cost(Plain{}, static_cast<program::Collective>(kind), 1_GB, group).lower;
                  sum += collective::collective_line(static_cast<program::Collective>(kind), group).floor;
                }
            }),
            0u);
  EXPECT_GT(sum, Seconds(0));
}

TEST(Allocations, EstimatingAProductAndACollectiveMakesNone) {
  const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const hardware::Chip chip = *catalogue.chip("h200-sxm", "test");
  const hardware::Calibration fit = (*hardware::calibration_of(chip, catalogue))->values;
  const kernel::CoreRates cores = kernel::core_rates(chip);
  const collective::CollectiveGroup nodes = *collective::make_group(cluster("h200-sxm:64"), {}, 1, "test");
  Seconds sum(0);
  EXPECT_EQ(allocated_by([&] {
              sum += kernel::matmul_time(Plain{}, {*fit.matmul, cores, FlopsPerSecond(1e15), 0.8},
                                         {1, 512, 4096, 4096, 1_MB}, *fit.burst)
                         .total;
              sum += collective::collective_estimate(*fit.collective, program::Collective::all_reduce, 1_GB, nodes);
            }),
            0u);
  EXPECT_GT(sum, Seconds(0));
}

TEST(Allocations, PlacingAGroupMakesNone) {
  const collective::Placement torus = *collective::Placement::make(*program::parse_mesh("A=4,B=4,C=64", ""),
                                                                   cluster("4*tpu-v5e:16x16"), "test"),
                              tree = *collective::Placement::make(*program::parse_mesh("D=8,P=2,T=4", ""),
                                                                  cluster("h100-sxm:64"), "test");
  double devices = 0;
  EXPECT_EQ(allocated_by([&] {
              for (program::AxisSet axes = 0; axes < 8; ++axes)
                devices += torus.group(axes).devices + tree.group(axes).devices;
            }),
            0u);
  EXPECT_GT(devices, 0);
}

TEST(Allocations, PlanningAProductOfKnownTensorsMakesNone) {
  const program::Mesh mesh = *program::parse_mesh("X=4,Y=4,Z=8", "");
  const plan::DimensionSizes sizes{{"I", 1024}, {"J", 4096}, {"K", 2048}};
  const plan::ShardingExpression e =
      *plan::parse_sharding("A[I_XY, J_Z] * B[J_X, K_ZY] -> C[I_Z, K_X]", mesh, sizes, Dtype::bf16);
  plan::Planner planner(mesh);
  const plan::Prices prices = plan::byte_prices(mesh);
  const double first = planner.outline(e, prices).cost;
  double again = 0;
  EXPECT_EQ(allocated_by([&] { again = planner.outline(e, prices).cost; }), 0u);
  EXPECT_EQ(again, first);
  EXPECT_DOUBLE_EQ(first, plan::plan_product(mesh, e, prices).best.cost);
}

}  // namespace
}  // namespace assay
