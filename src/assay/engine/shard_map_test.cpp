#include "assay/engine/shard_map.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "assay/engine/kernels/product.h"
#include "assay/program/plan/notation.h"

namespace assay::engine {
namespace {

using Operands = std::vector<Array<double>>;
using Device = LocalDevice<double>;

program::Tensor tensor(const program::Mesh& mesh, std::string_view text, Dtype dtype = Dtype::fp32) {
  return plan::parse_sharding(text, mesh, {{"I", 12}, {"J", 8}, {"K", 24}}, dtype)->left;
}

TEST(ShardMap, MeanOfEachShard) {
  // The textbook's first exercise: out[x, y] is the mean of shard (x, y); nothing is sent.
  const program::Mesh mesh = *program::parse_mesh("X=3,Y=2", "");
  const program::Tensor a = tensor(mesh, "A[I_X, J_Y]");
  program::Tensor out = a;
  out.dims = {{"X", 3}, {"Y", 2}};
  const Array<double> global = random_integers<double>({12, 8}, 1);
  VirtualDevices<double> devices(mesh);
  const auto means = shard_map<double>(devices,
                                       [](Device&, const Operands& x) {
                                         double sum = 0.0;
                                         for (double value : x[0].values) sum += value;
                                         return Array<double>{{1, 1}, {sum / static_cast<double>(x[0].values.size())}};
                                       },
                                       {distribute(global, a, mesh)});
  const Array<double> mean = collect(*means, out, mesh).array;
  for (std::int64_t x = 0; x < 3; ++x) {
    for (std::int64_t y = 0; y < 2; ++y) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t j = 0; j < 4; ++j)
          sum += global.values[static_cast<std::size_t>((x * 4 + i) * 8 + y * 4 + j)];
      EXPECT_EQ(mean.values[static_cast<std::size_t>(x * 2 + y)], sum / 16.0);
    }
  }
  EXPECT_EQ(devices.received().front().value(), 0.0);
}

TEST(ShardMap, RollWithinEachShardMinusItself) {
  const program::Mesh mesh = *program::parse_mesh("X=3,Y=2", "");
  const program::Tensor a = tensor(mesh, "A[I_X, J_Y]");
  const Array<double> global = random_integers<double>({12, 8}, 1);
  VirtualDevices<double> devices(mesh);
  const auto rolled = shard_map<double>(devices,
                                        [](Device&, const Operands& x) {
                                          const Operands turned{part(x[0], 0, 3, 1), part(x[0], 0, 0, 3)};
                                          Array<double> out = joined(std::span<const Array<double>>(turned), 0);
                                          for (std::size_t i = 0; i < out.values.size(); ++i)
                                            out.values[i] -= x[0].values[i];
                                          return out;
                                        },
                                        {distribute(global, a, mesh)});
  const Array<double> out = collect(*rolled, a, mesh).array;
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t j = 0; j < 8; ++j)
      EXPECT_EQ(out.values[i * 8 + j], global.values[(i / 4 * 4 + (i + 3) % 4) * 8 + j] - global.values[i * 8 + j]);
}

TEST(ShardMap, RollOfTheWholeArrayTakesOneRowOfANeighbour) {
  const program::Mesh mesh = *program::parse_mesh("X=3,Y=2", "");
  const program::Tensor a = tensor(mesh, "A[I_X, J_Y]");
  const Array<double> global = random_integers<double>({12, 8}, 1);
  VirtualDevices<double> devices(mesh);
  const auto rolled =
      shard_map<double>(devices,
                        [](Device& device, const Operands& x) {
                          std::vector<std::pair<std::int64_t, std::int64_t>> up;
                          for (std::int64_t i = 0; i < device.axis_size("X"); ++i)
                            up.emplace_back(i, (i + 1) % device.axis_size("X"));
                          const Operands turned{device.ppermute(part(x[0], 0, 3, 1), "X", up), part(x[0], 0, 0, 3)};
                          return joined(std::span<const Array<double>>(turned), 0);
                        },
                        {distribute(global, a, mesh)});
  const Array<double> out = collect(*rolled, a, mesh).array;
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t j = 0; j < 8; ++j) EXPECT_EQ(out.values[i * 8 + j], global.values[(i + 11) % 12 * 8 + j]);
  for (Bytes bytes : devices.received()) EXPECT_EQ(bytes.value(), 4 * 4.0);  // a row of 4 fp32
}

TEST(ShardMap, CollectivesDoAsTheirNamesSay) {
  const program::Mesh mesh = *program::parse_mesh("X=3,Y=2", "");
  const Array<double> global = random_integers<double>({12, 8}, 1);
  const auto run = [&](std::string_view before, std::string_view after, const LocalFunction<double>& function) {
    VirtualDevices<double> devices(mesh);
    const auto shards = shard_map<double>(devices, function, {distribute(global, tensor(mesh, before), mesh)});
    EXPECT_TRUE(devices.idle());
    const Collected<double> collected = collect(*shards, tensor(mesh, after), mesh);
    EXPECT_EQ(collected.disagreement, 0.0);
    return collected.array;
  };
  EXPECT_EQ(run("A[I_XY, J]", "A[I, J]",
                [](Device& d, const Operands& x) {
                  return d.all_gather(x[0], {"X", "Y"}, 0);
                }),
            global);
  EXPECT_EQ(run("A[I_XY, J]", "A[I_X, J]", [](Device& d, const Operands& x) { return d.all_gather(x[0], "Y", 0); }),
            global);
  EXPECT_EQ(run("A[I, J] {U_XY}", "A[I, J]",
                [](Device& d, const Operands& x) {
                  return d.psum(x[0], {"X", "Y"});
                }),
            global);
  EXPECT_EQ(run("A[I, J] {U_XY}", "A[I_YX, J]",
                [](Device& d, const Operands& x) {
                  return d.psum_scatter(x[0], {"Y", "X"}, 0);
                }),
            global);
  EXPECT_EQ(
      run("A[I_X, J_Y]", "A[I_XY, J]", [](Device& d, const Operands& x) { return d.all_to_all(x[0], "Y", 0, 1); }),
      global);
  EXPECT_EQ(run("A[I, J]", "A[I, J]", [](Device& d, const Operands& x) { return d.pmean(x[0], "X"); }), global);
  EXPECT_EQ(run("A[I_X, J_Y]", "A[I_X, J_Y]",
                [](Device& d, const Operands& x) {
                  EXPECT_EQ(d.axis_size({"X", "Y"}), 6);
                  Array<double> out = x[0];
                  for (double& value : out.values) value += static_cast<double>(d.axis_index({"Y", "X"}));
                  for (double& value : out.values)
                    value -= static_cast<double>(d.axis_index("Y") * 3 + d.axis_index("X"));
                  return out;
                }),
            global);
}

TEST(ShardMap, CollectiveMatmulEqualsThePlainOne) {
  // A[I, J_X] * B[J, K] with B whole: multiply what is here, pass A on, n times.
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const Array<double> a = random_integers<double>({12, 8}, 1), b = random_integers<double>({8, 24}, 2);
  VirtualDevices<double> devices(mesh);
  const auto c = shard_map<double>(
      devices,
      [](Device& device, const Operands& x) {
        const std::int64_t n = device.axis_size("X"), me = device.axis_index("X"), columns = x[0].shape[1];
        std::vector<std::pair<std::int64_t, std::int64_t>> up;
        for (std::int64_t i = 0; i < n; ++i) up.emplace_back(i, (i + 1) % n);
        Array<double> sum = zeros<double>({x[0].shape[0], x[1].shape[1]}), held = x[0];
        for (std::int64_t step = 0; step < n; ++step) {
          const Array<double> rows = part(x[1], 0, (me - step + n) % n * columns, columns);
          add(sum, product(held, {"I", "J"}, rows, {"J", "K"}, {"I", "K"}));
          if (step + 1 < n) held = device.ppermute(std::move(held), "X", up);
        }
        return sum;
      },
      {distribute(a, tensor(mesh, "A[I, J_X]"), mesh), distribute(b, tensor(mesh, "B[J, K]"), mesh)}, Dtype::bf16);
  const Array<double> plain = product_by_loops(a, {"I", "J"}, b, {"J", "K"}, {"I", "K"});
  for (const Array<double>& shard : *c) EXPECT_EQ(shard, plain);
  for (Bytes bytes : devices.received()) EXPECT_EQ(bytes.value(), 3 * 12 * 2 * 2.0);  // 3 shards of 12 x 2 bf16
}

TEST(ShardMap, MisuseIsAnErrorAndEndsAllDevices) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  const Shards<double> x(4, zeros<double>({3}));
  const auto fault = [&](const LocalFunction<double>& function) {
    VirtualDevices<double> devices(mesh);
    const auto result = shard_map<double>(devices, function, {x});
    return result ? std::string("no error") : result.error().what;
  };
  EXPECT_EQ(fault([](Device& d, const Operands& o) { return d.psum(o[0], "Q"); }), "the mesh X=4 has no axis Q");
  EXPECT_EQ(fault([](Device& d, const Operands& o) { return d.psum_scatter(o[0], "X", 0); }),
            "dimension 0 of shape [3] is not divisible by 4");
  EXPECT_EQ(fault([](Device& d, const Operands& o) { return d.all_gather(o[0], "X", 1); }),
            "an array of shape [3] has no dimension 1");
  EXPECT_NE(fault([](Device& d, const Operands& o) {
              return d.axis_index("X") == 2 ? o[0] : d.psum(o[0], "X");
            }).find("finish"),
            std::string::npos);
  EXPECT_NE(fault([](Device& d, const Operands& o) {
              return d.axis_index("X") == 2 ? d.pmean(o[0], "X") : d.all_gather(o[0], "X", 0);
            }).find("while another device calls"),
            std::string::npos);
  EXPECT_NE(fault([](Device& d, const Operands& o) {
              return d.psum(d.axis_index("X") ? o[0] : zeros<double>({2}), "X");
            }).find("shape"),
            std::string::npos);
}

TEST(ShardMap, AnExceptionOfOneDeviceEndsAllAndComesOut) {
  const program::Mesh mesh = *program::parse_mesh("X=4", "");
  VirtualDevices<double> devices(mesh);
  const LocalFunction<double> function = [](Device& d, const Operands& o) {
    if (d.axis_index("X") == 1) throw std::runtime_error("broken");
    return d.psum(o[0], "X");
  };
  EXPECT_THROW((void)shard_map<double>(devices, function, {Shards<double>(4, zeros<double>({3}))}), std::runtime_error);
}

}  // namespace
}  // namespace assay::engine
