#include "assay/engine/collectives.h"

#include <gtest/gtest.h>

#include "assay/base/result.h"

namespace assay::engine {
namespace {

/// Device d holds d, d + 10, d + 20, ...
Shards numbered(std::size_t devices, std::int64_t size) {
  Shards shards;
  for (std::size_t d = 0; d < devices; ++d) {
    Array shard = zeros({size});
    for (std::size_t i = 0; i < shard.values.size(); ++i) shard.values[i] = static_cast<double>(d + 10 * i);
    shards.push_back(std::move(shard));
  }
  return shards;
}

TEST(Collectives, GatherJoinsInTheOrderOfAxes) {
  const program::Mesh mesh = *program::parse_mesh("X=2,Y=3", "");
  VirtualDevices devices(mesh);
  const Shards in = numbered(6, 1);
  EXPECT_EQ(all_gather(devices, in, {0, 1}, 0, Dtype::fp32)[4].values, (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(all_gather(devices, in, {1, 0}, 0, Dtype::fp32)[4].values, (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(all_gather(devices, in, {0}, 0, Dtype::fp32)[4].values, (std::vector<double>{1, 4}));
  for (Bytes bytes : devices.received()) EXPECT_EQ(bytes.value(), 4.0 * (5 + 5 + 1));
}

TEST(Collectives, SumsOfChunksThatDoNotDivide) {
  // 3 devices, 4 elements: chunks of 2, 2 and 0. In each of 2 steps all chunks move once: 2 * 4 * 4 B in all.
  const program::Mesh mesh = *program::parse_mesh("X=3", "");
  VirtualDevices devices(mesh);
  const Shards sums = reduce_scatter(devices, numbered(3, 4), {0}, 0, Dtype::fp32);
  EXPECT_EQ(sums[0].values, (std::vector<double>{3, 33}));
  EXPECT_EQ(sums[1].values, (std::vector<double>{63, 93}));
  EXPECT_TRUE(sums[2].values.empty());
  Bytes all(0);
  for (Bytes bytes : devices.received()) all += bytes;
  EXPECT_EQ(all.value(), 32.0);
}

TEST(Collectives, AllReduceIsTheSameBitsEverywhere) {
  const program::Mesh mesh = *program::parse_mesh("X=3,Y=2", "");
  VirtualDevices devices(mesh);
  Shards in;
  for (std::uint64_t d = 0; d < 6; ++d) in.push_back(random_reals({5, 7}, d));
  const Shards out = all_reduce(devices, in, {0, 1}, Dtype::fp32);
  for (const Array& array : out) EXPECT_EQ(array, out.front());
}

TEST(Collectives, PermuteLeavesZerosWhereNothingComes) {
  const program::Mesh mesh = *program::parse_mesh("X=3", "");
  VirtualDevices devices(mesh);
  const Shards out = permute(devices, numbered(3, 1), 0, {{0, 1}, {2, 2}}, Dtype::bf16);
  EXPECT_EQ(out[0].values, std::vector<double>{0});
  EXPECT_EQ(out[1].values, std::vector<double>{0});
  EXPECT_EQ(out[2].values, std::vector<double>{2});
  EXPECT_EQ(devices.received()[1].value(), 2.0);
  EXPECT_EQ(devices.received()[2].value(), 0.0);
}

TEST(Devices, MessagesArriveInOrderAndAreCountedWhenReceived) {
  VirtualDevices devices(*program::parse_mesh("X=2", ""));
  devices.send(0, 1, Array{{1}, {7}}, Dtype::int4);
  devices.send(0, 1, Array{{1}, {8}}, Dtype::int4);
  EXPECT_EQ(devices.received()[1].value(), 0.0);
  EXPECT_EQ(devices.receive(1, 0).values.front(), 7.0);
  EXPECT_EQ(devices.receive(1, 0).values.front(), 8.0);
  EXPECT_EQ(devices.received()[1].value(), 1.0);  // two int4
  EXPECT_TRUE(devices.idle());
  EXPECT_THROW(devices.receive(1, 0), InternalError);
}

}  // namespace
}  // namespace assay::engine
