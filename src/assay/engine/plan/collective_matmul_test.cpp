#include "assay/engine/plan/collective_matmul.h"

#include <gtest/gtest.h>

#include "assay/engine/kernels/product.h"
#include "assay/program/plan/planner.h"

namespace assay::engine {
namespace {

using Form = Shards<double> (*)(VirtualDevices<double>&, const Shards<double>&, const Shards<double>&, int, Directions,
                                Dtype);

/// Runs a form on every ring size, also with a second axis in the mesh, and compares result and bytes with the plain
/// product and the planner's collective of `moved`.
void expect_plain(Form form, std::string_view text, program::Collective kind, bool moves_left) {
  for (const char* mesh_words : {"X=1", "X=2", "X=3,Y=2", "Y=2,X=4"}) {
    for (Directions directions : {Directions::one, Directions::two}) {
      const program::Mesh mesh = *program::parse_mesh(mesh_words, "");
      SCOPED_TRACE(std::string(text) + " on " + mesh_words + (directions == Directions::one ? ", one way" : ", two"));
      const plan::ShardingExpression e =
          *plan::parse_sharding(text, mesh, {{"I", 24}, {"J", 48}, {"K", 10}}, Dtype::bf16);
      const Array<double> a = random_integers<double>({24, 48}, 1), b = random_integers<double>({48, 10}, 2);
      VirtualDevices<double> devices(mesh);
      const int axis = *mesh.find("X");
      const Shards<double> c =
          form(devices, distribute(a, e.left, mesh), distribute(b, *e.right, mesh), axis, directions, Dtype::bf16);
      const Collected<double> collected = collect(c, *e.result, mesh);
      EXPECT_EQ(collected.array, product_by_loops(a, {"I", "J"}, b, {"J", "K"}, {"I", "K"}));
      EXPECT_EQ(collected.disagreement, 0.0);
      EXPECT_TRUE(devices.idle());
      program::Tensor moved = moves_left ? e.left : *e.result;
      if (kind == program::Collective::reduce_scatter)
        moved.sharding = {};  // the partial sums, before they are scattered
      const Bytes predicted = program::received_share(kind, program::shard_count(mesh, program::axis_bit(axis))) *
                              program::local_bytes(mesh, moved);
      for (Bytes bytes : devices.received()) EXPECT_DOUBLE_EQ(bytes.value(), predicted.value());
    }
  }
}

TEST(CollectiveMatmul, GatheringRowsEqualsGatherThenMultiply) {
  expect_plain(gather_rows_matmul<double>, "A[I_X, J] * B[J, K] -> C[I, K]", program::Collective::all_gather, true);
}
TEST(CollectiveMatmul, GatheringColumnsEqualsGatherThenMultiply) {
  expect_plain(gather_columns_matmul<double>, "A[I, J_X] * B[J, K] -> C[I, K]", program::Collective::all_gather, true);
}
TEST(CollectiveMatmul, ScatteringSumsEqualsMultiplyThenReduceScatter) {
  expect_plain(reduce_scatter_matmul<double>, "A[I, J_X] * B[J_X, K] -> C[I_X, K]", program::Collective::reduce_scatter,
               false);
}
TEST(CollectiveMatmul, AddingEverywhereEqualsMultiplyThenAllReduce) {
  expect_plain(all_reduce_matmul<double>, "A[I, J_X] * B[J_X, K] -> C[I, K]", program::Collective::all_reduce, false);
}

}  // namespace
}  // namespace assay::engine
