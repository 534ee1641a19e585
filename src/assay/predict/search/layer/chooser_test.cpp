#include "assay/predict/search/layer/chooser.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "assay/hardware/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::search {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

program::Mesh mesh_of(std::vector<std::int64_t> sizes) {
  program::Mesh mesh;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    mesh.axes.push_back({std::string(1, static_cast<char>('X' + i)), sizes[i]});
  return mesh;
}

program::Tensor tensor_of(std::string name, std::string rows, std::int64_t m, std::string columns, std::int64_t n) {
  return {std::move(name), {{std::move(rows), m}, {std::move(columns), n}}, Dtype::bf16, {}};
}

ChooserProblem layer_of(std::int64_t b, std::int64_t d, std::int64_t f) {
  ChooserProblem problem;
  problem.tensors = {tensor_of("In", "B", b, "D", d), tensor_of("W_in", "D", d, "F", f),
                     tensor_of("W_out", "F", f, "D", d)};
  problem.intermediate = tensor_of("Tmp", "B", b, "F", f);
  problem.result = tensor_of("Out", "B", b, "D", d);
  return problem;
}

/// One second for a byte received and `rate` FLOP a second, so that both matter at small sizes.
ChooserHardware hardware_of(const program::Mesh& mesh, double rate, double memory = infinity,
                            double bandwidth = infinity) {
  ChooserHardware hardware{plan::byte_prices(mesh), FlopsPerSecond(rate), BytesPerSecond(bandwidth), Bytes(memory)};
  hardware.prices.per_flop = 1.0 / rate;
  return hardware;
}

program::Tensor with(program::Tensor tensor, const program::Sharding& sharding) {
  tensor.sharding = sharding;
  return tensor;
}

/// The planner's cost of every product between shardings of its tensors.
double planned(plan::Planner& planner, const program::Tensor& left, const program::Tensor& right,
               const program::Tensor& result, const ChooserHardware& hardware) {
  return planner.product({left, right, result}, hardware.prices).best.total;
}

TEST(LayerChooser, ShardingsOfTwoDimensionsAreAllThereAndOnce) {
  EXPECT_EQ(all_shardings(mesh_of({2}), 2).size(), 3u);
  EXPECT_EQ(all_shardings(mesh_of({2, 2}), 2).size(), 11u);     // 1 + 2*2 + 2!*3
  EXPECT_EQ(all_shardings(mesh_of({2, 2, 2}), 2).size(), 49u);  // 1 + 3*2 + 3*2!*3 + 3!*4
  EXPECT_EQ(all_shardings(mesh_of({4, 1}), 2).size(), 3u);
}

// An exhaustive search by another route: the contraction planner prices every pair of products.
TEST(LayerChooser, AgreesWithThePlannerOnEveryCombinationOfShardings) {
  struct Case {
    std::vector<std::int64_t> mesh;
    std::int64_t b, d, f;
    double rate;
  };
  for (const Case& c : {Case{{2}, 8, 16, 32, 10.0}, Case{{4}, 64, 8, 16, 1e3}, Case{{2, 2}, 4, 16, 64, 20.0},
                        Case{{2, 2}, 64, 8, 8, 100.0}, Case{{2, 3}, 12, 6, 24, 50.0}, Case{{4, 2}, 256, 8, 8, 1e9}}) {
    const program::Mesh mesh = mesh_of(c.mesh);
    const ChooserProblem problem = layer_of(c.b, c.d, c.f);
    const ChooserHardware hardware = hardware_of(mesh, c.rate);
    const std::vector<program::Sharding> all = all_shardings(mesh, 2);
    const std::size_t n = all.size();
    plan::Planner planner(mesh);
    double best = infinity;
    std::vector<double> first(n * n * n);
    for (std::size_t in = 0; in < n; ++in)
      for (std::size_t w = 0; w < n; ++w)
        for (std::size_t t = 0; t < n; ++t)
          first[(in * n + w) * n + t] =
              planned(planner, with(problem.tensors[0], all[in]), with(problem.tensors[1], all[w]),
                      with(problem.intermediate, all[t]), hardware);
    for (std::size_t t = 0; t < n; ++t)
      for (std::size_t in = 0; in < n; ++in) {
        double one = infinity, two = infinity;
        for (std::size_t w = 0; w < n; ++w) {
          one = std::min(one, first[(in * n + w) * n + t]);
          two = std::min(two, planned(planner, with(problem.intermediate, all[t]), with(problem.tensors[2], all[w]),
                                      with(problem.result, all[in]), hardware));
        }
        best = std::min(best, one + two);
      }
    const LayerSearch search = choose_sharding(mesh, problem, hardware);
    ASSERT_FALSE(search.choices.empty());
    EXPECT_NEAR(search.choices.front().times.lower.value(), best, 1e-9 * best) << program::mesh_text(mesh);
    EXPECT_EQ(search.considered, static_cast<std::int64_t>(n * n * n));
  }
}

/// Peak bytes on a device in addition to the stored tensors, read off the steps themselves; `live` holds what there is
/// at the start. What is sliced off a stored tensor is a view of it.
double working_of(const program::Mesh& mesh, const plan::Plan& plan, std::map<std::string, double> live) {
  double peak = 0;
  for (const program::Step& step : plan.steps) {
    const bool view = step.op == program::Op::slice && live[plan.tensor(step.in[0]).name] == 0.0;
    const double after = view ? 0.0 : program::local_bytes(mesh, plan.tensor(step.out[0])).value();
    double sum = after;
    for (const auto& [name, bytes] : live) sum += bytes;
    peak = std::max(peak, sum);
    if (step.op == program::Op::product) live.clear();
    live[plan.tensor(step.out[0]).name] = after;
  }
  return peak;
}

struct NaiveOption {
  double time, working;
};

/// Every place where a product may happen, tried one by one.
std::vector<NaiveOption> naive_options(const program::Mesh& mesh, plan::Planner& planner, const program::Tensor& left,
                                       bool stored, const program::Tensor& right, const program::Tensor& result,
                                       const ChooserHardware& hardware) {
  std::vector<NaiveOption> options;
  const std::vector<program::Sharding> all = all_shardings(mesh, 2);
  for (const program::Sharding& a : all)
    for (const program::Sharding& b : all) {
      if (a.dims[1] != b.dims[0] || a.dims[0].set() & b.dims[1].set()) continue;
      program::Tensor product = result;
      product.sharding = {};
      product.sharding.dims[0] = a.dims[0];
      product.sharding.dims[1] = b.dims[1];
      product.sharding.unreduced = a.dims[1].set();
      plan::Plan plan;
      const int given_left = plan.add(left), given_right = plan.add(right);
      const int x = planner.reshard(plan, given_left, a, hardware.prices);
      const int y = planner.reshard(plan, given_right, b, hardware.prices);
      planner.reshard(plan, plan.multiply(mesh, x, y, product), result.sharding, hardware.prices);
      double flops = 2.0;
      for (const std::int64_t side : program::local_shape(mesh, with(left, a))) flops *= static_cast<double>(side);
      flops *= static_cast<double>(program::local_shape(mesh, product)[1]);
      const Bytes traffic = program::local_bytes(mesh, with(left, a)) + program::local_bytes(mesh, with(right, b)) +
                            program::local_bytes(mesh, product);
      std::map<std::string, double> live;
      if (!stored) live[left.name] = program::local_bytes(mesh, left).value();
      options.push_back(
          {std::max({plan.cost, flops / hardware.peak.value(), (traffic / hardware.memory_bandwidth).value()}),
           working_of(mesh, plan, live)});
    }
  return options;
}

double fastest_within(const std::vector<NaiveOption>& options, double memory) {
  double best = infinity;
  for (const NaiveOption& option : options)
    if (option.working <= memory) best = std::min(best, option.time);
  return best;
}

TEST(LayerChooser, UnderACapItFindsWhatANaiveSearchFinds) {
  if (testing::sampled_every() > 1) GTEST_SKIP() << testing::left_to_release;
  const program::Mesh mesh = mesh_of({2, 2});
  const ChooserProblem problem = layer_of(16, 32, 64);
  const std::vector<program::Tensor>& t = problem.tensors;
  const ChooserHardware uncapped = hardware_of(mesh, 60.0, infinity, 5.0);
  const std::vector<program::Sharding> all = all_shardings(mesh, 2);
  const std::size_t n = all.size();
  plan::Planner planner(mesh);
  std::vector<std::vector<NaiveOption>> first, second;
  for (const program::Sharding& a : all)
    for (const program::Sharding& b : all)
      for (const program::Sharding& c : all) {
        first.push_back(
            naive_options(mesh, planner, with(t[0], a), true, with(t[1], b), with(problem.intermediate, c), uncapped));
        second.push_back(naive_options(mesh, planner, with(problem.intermediate, a), false, with(t[2], b),
                                       with(problem.result, c), uncapped));
      }
  const double whole = 2.0 * (16 * 32 + 2 * 32 * 64);
  int fits = 0;
  for (const double share : {0.2, 0.3, 0.35, 0.4, 0.44, 0.48, 0.52, 0.6, 0.7, 0.85, 1.0, 2.0}) {
    const ChooserHardware hardware = hardware_of(mesh, 60.0, share * whole, 5.0);
    double best = infinity;
    for (std::size_t in = 0; in < n; ++in)
      for (std::size_t w = 0; w < n; ++w)
        for (std::size_t v = 0; v < n; ++v) {
          const Bytes stored = program::local_bytes(mesh, with(t[0], all[in])) +
                               program::local_bytes(mesh, with(t[1], all[w])) +
                               program::local_bytes(mesh, with(t[2], all[v]));
          const double slack = (hardware.memory - stored).value();
          for (std::size_t m = 0; m < n; ++m)
            best = std::min(best, fastest_within(first[(in * n + w) * n + m], slack) +
                                      fastest_within(second[(m * n + v) * n + in], slack));
        }
    const LayerSearch search = choose_sharding(mesh, problem, hardware);
    ASSERT_EQ(search.choices.empty(), best == infinity) << share;
    if (search.choices.empty()) continue;
    ++fits;
    EXPECT_NEAR(search.choices.front().times.lower.value(), best, 1e-9 * best) << share;
    EXPECT_LE(search.choices.front().memory(), hardware.memory);
  }
  EXPECT_GT(fits, 5);
  EXPECT_LT(fits, 12);
}

TEST(LayerChooser, WhatIsNamedAsSmallestFitsInJustThatMemory) {
  const program::Mesh mesh = mesh_of({2, 2});
  const ChooserProblem problem = layer_of(16, 32, 64);
  const LayerSearch none = choose_sharding(mesh, problem, hardware_of(mesh, 60.0, 100.0));
  ASSERT_TRUE(none.choices.empty());
  EXPECT_EQ(none.over_memory, none.considered);
  const double needed = none.smallest.memory().value();
  EXPECT_FALSE(choose_sharding(mesh, problem, hardware_of(mesh, 60.0, needed)).choices.empty());
  EXPECT_TRUE(choose_sharding(mesh, problem, hardware_of(mesh, 60.0, needed - 1.0)).choices.empty());
}

TEST(LayerChooser, MoreMemoryNeverMakesTheBestSlower) {
  rc::check([] {
    const program::Mesh mesh = mesh_of({2, *rc::gen::element<std::int64_t>(1, 2, 4)});
    const auto size = [] { return 8 * *rc::gen::inRange<std::int64_t>(1, 9); };
    const ChooserProblem problem = layer_of(size(), size(), size());
    const double rate = *rc::gen::element(5.0, 50.0, 500.0);
    double before = infinity;
    std::vector<double> caps;
    for (double cap = 500.0; cap < 40000.0; cap *= 1.7) caps.push_back(cap);
    for (const double cap : testing::sampled(caps)) {
      const LayerSearch search = choose_sharding(mesh, problem, hardware_of(mesh, rate, cap, 3.0));
      if (search.choices.empty()) {
        RC_ASSERT(before == infinity);
        continue;
      }
      const double now = search.choices.front().times.lower.value();
      RC_ASSERT(now <= before * (1 + 1e-9));
      before = now;
      for (std::size_t i = 1; i < search.choices.size(); ++i)
        RC_ASSERT(search.choices[i - 1].times.lower.value() <= search.choices[i].times.lower.value() * (1 + 1e-9));
    }
  });
}

TEST(LayerChooser, OneProductWithAReplicatedResultGathersIt) {
  // By hand, X = 4, A[8, 64] * B[64, 8] -> C[8, 8] of 128 bytes: gathering C's quarters receives 3 * 32 = 96 bytes,
  // reducing partial sums twice 3/4 * 128 = 192, and computing everything everywhere takes 4 times as long.
  const program::Mesh mesh = mesh_of({4});
  ChooserProblem problem;
  problem.tensors = {tensor_of("A", "I", 8, "J", 64), tensor_of("B", "J", 64, "K", 8)};
  problem.result = tensor_of("C", "I", 8, "K", 8);
  const LayerSearch search = choose_sharding(mesh, problem, hardware_of(mesh, 20.0));
  const LayerChoice& best = search.choices.front();
  EXPECT_EQ(best.times.communication, Seconds(96));
  EXPECT_EQ(best.times.compute, Seconds(2.0 * 8 * 64 * 8 / 4 / 20));
  problem.result_free = true;
  EXPECT_EQ(choose_sharding(mesh, problem, hardware_of(mesh, 20.0)).choices.front().times.communication, Seconds(0));
}

// The first product is bound by memory for 4 s, the second by the network for 6 s. At half the rates of the chip they
// are expected to take 8 s, and 10 s of arithmetic or what the network takes.
TEST(LayerChoice, TheLongestProductNamesTheLimiter) {
  LayerChoice choice;
  choice.products = {{1_s, 4_s, 2_s, 4_s, 7_s}, {5_s, 1_s, 6_s, 6_s, 12_s}};
  EXPECT_EQ(limiter_of(choice.products[0]), "memory");
  EXPECT_EQ(limiter_of(choice), "network");
  EXPECT_EQ(limiter_of(ProductTimes{3_s, 2_s, 1_s, 3_s, 6_s}), "compute");
  hardware::Chip chip = *hardware::Catalogue::builtin().chip("h100-sxm", "test");
  chip.efficiency.matrix.value = chip.efficiency.memory.value = 0.5;
  const double network = hardware::network_efficiency(chip);
  EXPECT_DOUBLE_EQ(expected_time(chip, choice).value(), 8.0 + std::max(10.0, 6.0 / network));
}

}  // namespace
}  // namespace assay::search
