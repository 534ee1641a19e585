#include "assay/profile/hlo/partition/partition.h"

#include <gtest/gtest.h>

#include "assay/profile/hlo/kernels.h"
#include "assay/testing/catalogue.h"

namespace assay::hlo {
namespace {

/// What one device receives and multiplies, and which collectives it takes part in: "2 all-gather/4".
struct Planned {
  double received = 0.0, flops = 0.0;
  std::string collectives;
  std::vector<DividedArray> results;
  std::vector<std::string> unknown;
};

Planned planned(const std::string& text) {
  const Module module = *read_module(text, "test.mlir", **calls_of(testing::catalogue()));
  const PartitionMesh mesh = *partition_mesh(module);
  const plan::Prices prices = plan::byte_prices(mesh.mesh);
  auto partitioner = Partitioner::make(module, mesh, prices);
  if (!partitioner) throw InternalError(partitioner.error().where + partitioner.error().what);
  const auto plan = partitioner->best();
  if (!plan) throw InternalError(plan.error().where + plan.error().what);
  Planned out;
  out.results = plan->results;
  out.unknown = plan->unknown;
  const ProgramKernels kernels = *program_kernels(plan->module);
  out.flops = kernels.totals.matrix.value();
  std::map<std::string, double> counts;
  for (const ProgramKernel& kernel : kernels.kernels) {
    if (!kernel.collective) continue;
    const auto n = static_cast<double>(kernel.collective->size);
    out.received +=
        kernel.calls * program::received_share(kernel.collective->kind, n) * kernel.collective->operand.value();
    counts[std::string(program::name(kernel.collective->kind)) + "/" + std::to_string(kernel.collective->size)] +=
        kernel.calls;
  }
  for (const auto& [name, count] : counts)
    out.collectives += (out.collectives.empty() ? "" : ", ") + std::to_string(static_cast<int>(count)) + " " + name;
  return out;
}

/// A program on a mesh of X=4, Y=2. In a type, <64x32 X,-> is a tensor<64x32xf32> whose first dimension is split over
/// X.
std::string program(const std::string& arguments, const std::string& results, const std::string& body) {
  const auto written = [](const std::string& list, bool named) {
    std::string out;
    int number = 0;
    for (std::size_t at = list.find('<'); at != std::string::npos; at = list.find('<', at + 1)) {
      const std::size_t space = list.find(' ', at), end = list.find('>', at);
      std::string axes;
      for (std::size_t i = space + 1; i < end; ++i)
        axes += list[i] == ',' ? "}, {" : list[i] == '-' ? "" : "\"" + std::string(1, list[i]) + "\"";
      out += (out.empty() ? "" : ", ") + (named ? "%arg" + std::to_string(number++) + ": " : std::string()) +
             "tensor<" + list.substr(at + 1, space - at - 1) + "xf32> {sdy.sharding = #sdy.sharding<@mesh, [{" + axes +
             "}]>}";
    }
    return out;
  };
  return "module @m attributes {mhlo.num_partitions = 8 : i32} {\n  sdy.mesh @mesh = <[\"X\"=4, \"Y\"=2]>\n"
         "  func.func public @main(" +
         written(arguments, true) + ") -> (" + written(results, false) + ") {\n" + body + "  }\n}\n";
}

TEST(Partition, AProductOverASplitDimensionSumsItsParts) {
  // 64 x 16 numbers of 4 bytes, summed over 2 devices: each receives half of them twice, of its 16 rows.
  const Planned of = planned(program("<64x32 X,Y>, <32x16 Y,->", "<64x16 X,->",
                                     "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : "
                                     "(tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>\n"
                                     "    return %0 : tensor<64x16xf32>\n"));
  EXPECT_EQ(of.collectives, "1 all-reduce/2");
  EXPECT_DOUBLE_EQ(of.received, 16 * 16 * 4);
  EXPECT_DOUBLE_EQ(of.flops, 2.0 * 64 * 32 * 16 / 8);
}

TEST(Partition, OfTwoOperandsOnOneAxisTheSmallerOneMoves) {
  // Both want X: the batch of the left one, the summed dimension of the right one, which is gathered: 3/4 of 32 x 16.
  const Planned of = planned(program("<64x32 X,->, <32x16 X,->", "<64x16 X,->",
                                     "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : "
                                     "(tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>\n"
                                     "    return %0 : tensor<64x16xf32>\n"));
  EXPECT_EQ(of.collectives, "1 all-gather/4");
  EXPECT_DOUBLE_EQ(of.received, 0.75 * 32 * 16 * 4);
}

TEST(Partition, PartialSumsAreAddedBeforeTheyAreReduced) {
  const std::string dots =
      "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x32xf32>, "
      "tensor<32x16xf32>) -> tensor<8x16xf32>\n"
      "    %1 = stablehlo.dot_general %arg2, %arg1, contracting_dims = [1] x [0] : (tensor<8x32xf32>, "
      "tensor<32x16xf32>) -> tensor<8x16xf32>\n"
      "    %2 = stablehlo.add %0, %1 : tensor<8x16xf32>\n"
      "    %3 = stablehlo.tanh %2 : tensor<8x16xf32>\n"
      "    return %3 : tensor<8x16xf32>\n";
  const Planned of = planned(program("<8x32 -,Y>, <32x16 Y,->, <8x32 -,Y>", "<8x16 -,->", dots));
  EXPECT_EQ(of.collectives, "1 all-reduce/2");
  EXPECT_DOUBLE_EQ(of.received, 8 * 16 * 4);
}

TEST(Partition, MaximaAndSumsOfASplitDimensionAreSmall) {
  // A softmax over 1024 columns on four devices: of each row a maximum and a sum travel, never the columns. The planner
  // may do with less than an all-reduce, since the devices along Y hold copies.
  const Planned of =
      planned(program("<8x1024 -,X>", "<8x1024 -,X>",
                      "    %c = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                      "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                      "    %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.maximum across dimensions = [1] : "
                      "(tensor<8x1024xf32>, tensor<f32>) -> tensor<8xf32>\n"
                      "    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> tensor<8x1024xf32>\n"
                      "    %2 = stablehlo.subtract %arg0, %1 : tensor<8x1024xf32>\n"
                      "    %3 = stablehlo.exponential %2 : tensor<8x1024xf32>\n"
                      "    %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : "
                      "(tensor<8x1024xf32>, tensor<f32>) -> tensor<8xf32>\n"
                      "    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<8xf32>) -> tensor<8x1024xf32>\n"
                      "    %6 = stablehlo.divide %3, %5 : tensor<8x1024xf32>\n"
                      "    return %6 : tensor<8x1024xf32>\n"));
  EXPECT_GT(of.received, 0.0);
  EXPECT_LE(of.received, 2 * 2 * 0.75 * 8 * 4);
}

TEST(Partition, RowsOfASplitTableAreFoundWhereTheyAre) {
  // Three tokens of width 16 are summed over the devices that have the table's 1000 rows, rather than the table
  // gathered.
  const std::string text =
      program("<1000x16 X,->", "<3x16 -,->",
              "    %i = stablehlo.constant dense<[[1], [500], [999]]> : tensor<3x1xi32>\n"
              "    %0 = \"stablehlo.gather\"(%arg0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
              "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, "
              "16>}> : (tensor<1000x16xf32>, tensor<3x1xi32>) -> tensor<3x16xf32>\n"
              "    return %0 : tensor<3x16xf32>\n");
  const Planned of = planned(text);
  EXPECT_GT(of.received, 0.0);
  EXPECT_LE(of.received, 2 * 0.75 * 3 * 16 * 4);
}

TEST(Partition, AnUpdateInASplitDimensionMovesNothing) {
  const Planned of =
      planned(program("<8x64x16 -,X,Y>, <8x1x16 -,-,Y>", "<8x64x16 -,X,Y>",
                      "    %i = stablehlo.constant dense<5> : tensor<i32>\n"
                      "    %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %i, %i, %i : (tensor<8x64x16xf32>, "
                      "tensor<8x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x16xf32>\n"
                      "    return %0 : tensor<8x64x16xf32>\n"));
  EXPECT_EQ(of.collectives, "");
}

const std::string& loop_body() {
  static const std::string text =
      "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %0:3 = stablehlo.while(%i = %c, %x = %arg0, %w = %arg1) : tensor<i32>, tensor<64x32xf32>, "
      "tensor<32x32xf32>\n"
      "    cond {\n"
      "      %n = stablehlo.constant dense<5> : tensor<i32>\n"
      "      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %1 : tensor<i1>\n"
      "    } do {\n"
      "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "      %1 = stablehlo.add %i, %one : tensor<i32>\n"
      "      %2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x32xf32>) "
      "-> tensor<64x32xf32>\n"
      "      %3 = func.call @act(%2) : (tensor<64x32xf32>) -> tensor<64x32xf32>\n"
      "      stablehlo.return %1, %3, %w : tensor<i32>, tensor<64x32xf32>, tensor<32x32xf32>\n"
      "    }\n"
      "    return %0#1 : tensor<64x32xf32>\n"
      "  }\n"
      "  func.func private @act(%arg0: tensor<64x32xf32>) -> tensor<64x32xf32> {\n"
      "    %0 = stablehlo.tanh %arg0 : tensor<64x32xf32>\n"
      "    return %0 : tensor<64x32xf32>\n";
  return text;
}

TEST(Partition, WhatALoopMovesCountsAtEachTrip) {
  // The weights are gathered in each of five trips: 3/4 of 32 x 32.
  const Planned of = planned(program("<64x32 X,->, <32x32 X,->", "<64x32 X,->", loop_body()));
  EXPECT_EQ(of.collectives, "5 all-gather/4");
  EXPECT_DOUBLE_EQ(of.received, 5 * 0.75 * 32 * 32 * 4);
  EXPECT_DOUBLE_EQ(of.flops, 5 * 2.0 * 64 * 32 * 32 / 4);
}

TEST(Partition, BothNotationsOfShardingsAreOnePlan) {
  std::string text = program("<64x32 X,->, <32x32 X,->", "<64x32 X,->", loop_body());
  const Planned named = planned(text);
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text.replace(at, from.size(), to);
  };
  replace("  sdy.mesh @mesh = <[\"X\"=4, \"Y\"=2]>\n", "");
  replace("sdy.sharding = #sdy.sharding<@mesh, [{\"X\"}, {}]>",
          "mhlo.sharding = \"{devices=[4,1,2]<=[8] last_tile_dim_replicate}\"");
  const Planned numbered = planned(text);
  EXPECT_EQ(named.collectives, numbered.collectives);
  EXPECT_DOUBLE_EQ(named.received, numbered.received);
}

TEST(Partition, APartOfAnAxisSplits) {
  // X is used as two parts of 2: 64 rows over the outer one, 32 columns over the inner one, which is summed.
  std::string text =
      program("<64x32 X,Y>, <32x16 Y,->", "<64x16 X,->",
              "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, "
              "tensor<32x16xf32>) -> tensor<64x16xf32>\n    return %0 : tensor<64x16xf32>\n");
  for (const auto& [from, to] : {std::pair("{\"X\"}", "{\"X\":(1)2}"), std::pair("{\"Y\"}", "{\"X\":(2)2}")})
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
      text.replace(at, std::string_view(from).size(), to);
  const Planned of = planned(text);
  EXPECT_EQ(of.collectives, "1 all-reduce/2");
  EXPECT_DOUBLE_EQ(of.received, 32 * 16 * 4);
}

TEST(Partition, AManualComputationKeepsItsCollectives) {
  const Planned of =
      planned(program("<64x32 X,->", "<64x32 X,->",
                      "    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"X\"}, {}]>] "
                      "out_shardings=[<@mesh, [{\"X\"}, {}]>] manual_axes={\"X\"} (%a: tensor<16x32xf32>) {\n"
                      "      %1 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> "
                      ": tensor<2x4xi64>}> ({\n"
                      "      ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                      "        %2 = stablehlo.add %x, %y : tensor<f32>\n"
                      "        stablehlo.return %2 : tensor<f32>\n"
                      "      }) : (tensor<16x32xf32>) -> tensor<16x32xf32>\n"
                      "      sdy.return %1 : tensor<16x32xf32>\n"
                      "    } : (tensor<64x32xf32>) -> tensor<64x32xf32>\n"
                      "    return %0 : tensor<64x32xf32>\n"));
  EXPECT_EQ(of.collectives, "1 all-reduce/4");
  EXPECT_DOUBLE_EQ(of.received, 2 * 0.75 * 16 * 32 * 4);
}

TEST(Partition, ReshapesPassTheOutermostFactor) {
  // 8 x 16 rows become 128 and 8 x 16 again: the split of the first dimension stays.
  const Planned of = planned(program("<8x16x32 X,-,->", "<8x16x32 X,-,->",
                                     "    %0 = stablehlo.reshape %arg0 : (tensor<8x16x32xf32>) -> tensor<128x32xf32>\n"
                                     "    %1 = stablehlo.tanh %0 : tensor<128x32xf32>\n"
                                     "    %2 = stablehlo.reshape %1 : (tensor<128x32xf32>) -> tensor<8x16x32xf32>\n"
                                     "    return %2 : tensor<8x16x32xf32>\n"));
  EXPECT_EQ(of.collectives, "");
}

TEST(Partition, UnknownOperationsAreComputedWholeAndNamed) {
  const Planned of =
      planned(program("<64x32 X,->", "<64x32 X,->",
                      "    %0 = stablehlo.custom_call @strange(%arg0) {} : (tensor<64x32xf32>) -> tensor<64x32xf32>\n"
                      "    return %0 : tensor<64x32xf32>\n"));
  EXPECT_EQ(of.collectives, "1 all-gather/4");
  EXPECT_EQ(of.unknown, (std::vector<std::string>{"custom-call"}));
}

}  // namespace
}  // namespace assay::hlo
