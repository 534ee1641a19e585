#include <gtest/gtest.h>

#include "assay/profile/hlo/kernels.h"

namespace assay::hlo {
namespace {

constexpr const char* small =
    R"(HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }, entry_computation_layout={(f32[8,4]{1,0}, f32[4]{0})->(f32[4]{0}, f32[8]{0})}, num_partitions=2

FileNames
1 "step.py"

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,4], w: f32[4]) -> (f32[4], f32[8]) {
  %x = f32[8,4]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name="x, \"quoted\""}
  %w = f32[4]{0} parameter(1)
  %zero = f32[] constant(0)
  %r = f32[8]{0} reduce(%x, %zero), dimensions={1}, to_apply=%add
  %n = f32[4]{0} negate(f32[4]{0} %w)
  ROOT %t = (f32[4]{0}, /*index=1*/f32[8]{0}) tuple(%n, /*index=1*/%r), frontend_attributes={a={
b}}
}
)";

TEST(HloReader, ReadsHeaderComputationsAndInstructions) {
  const auto module = read_hlo(small, "small.hlo");
  ASSERT_TRUE(module) << module.error().what;
  EXPECT_EQ(module->name, "jit_f");
  EXPECT_TRUE(module->scheduled);
  EXPECT_EQ(module->devices(), 2);
  ASSERT_EQ(module->aliases.size(), 1u);
  EXPECT_EQ(module->aliases[0].parameter, 1);
  ASSERT_EQ(module->parameters.size(), 2u);
  const Computation& entry = *module->entry_computation();
  EXPECT_EQ(entry.name, "main");
  EXPECT_EQ(entry.root, 5u);
  const Instruction& reduce = entry.instructions[3];
  EXPECT_EQ(reduce.opcode, "reduce");
  EXPECT_EQ(reduce.operands, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(reduce.attribute("dimensions"), "{1}");
  EXPECT_EQ(module->computations[reduce.callee("to_apply")].name, "add");
  EXPECT_EQ(entry.instructions[4].operands, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(entry.instructions[0].op_name(), "x, \\\"quoted\\\"");
  EXPECT_EQ(module->where(reduce), "small.hlo:16:4");
}

TEST(HloReader, NamesNeedNoPercentAndComputationsNoHeader) {
  const auto module = read_hlo(
      "e {\n  a = u4[1024,512]{1,0:E(4)} parameter(0)\n  b = u4[1024,4096] all-gather(a), dimensions={1}\n}\n", "e");
  ASSERT_TRUE(module) << module.error().what;
  EXPECT_EQ(module->entry_computation()->instructions[1].operands, (std::vector<std::uint32_t>{0}));
}

TEST(HloReader, ATextThatIsCutOffKeepsWhatIsThere) {
  const std::string text(small);
  const auto module = read_hlo(text.substr(0, text.find("  %n = ")), "cut.hlo");
  ASSERT_TRUE(module) << module.error().what;
  EXPECT_TRUE(module->cut);
  EXPECT_EQ(module->entry_computation(), nullptr);
  EXPECT_EQ(module->parameters.size(), 2u);
}

TEST(HloReader, FaultsHaveAPlaceARuleAndARemedy) {
  const std::string text(small);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string out = text;
    return out.replace(out.find(from), from.size(), to);
  };
  const std::pair<std::string, std::string> cases[] = {
      {with("negate(f32[4]{0} %w)", "negate(%q)"), "bad.hlo:17:4"},
      {with("%r = f32[8]{0}", "%r = f99[8]{0}"), "bad.hlo:16:8"},
      {with("to_apply=%add", "to_apply=%sub"), "bad.hlo:16:4"},
      {with("negate(f32[4]{0} %w)", "negate(f32[4]{0} %w"), "bad.hlo"},
      {with("num_partitions=2", "num_partitions=0"), "bad.hlo:1:"},
      {with("ROOT %s = f32[] add(%a, %b)", "ROOT %s = f32[] call(%a, %b), to_apply=%add"), "bad.hlo:9:9"},
      {"HloModule x\n", "bad.hlo:2:1"},
  };
  for (const auto& [bad, where] : cases) {
    const auto read = read_hlo(bad, "bad.hlo");
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().where.substr(0, where.size()), where) << read.error().what;
    EXPECT_FALSE(read.error().what.empty() || read.error().hint.empty());
  }
}

constexpr const char* stable =
    R"(module @jit_f attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x16xbf16> {tf.aliasing_output = 0 : i32}) -> (tensor<8x16xbf16> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %0) : tensor<i32>, tensor<8x16xbf16>
    cond {
      %4 = stablehlo.compare  LT, %iterArg, %c_0,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg, %c_2 : tensor<i32>
      %5 = func.call @half(%iterArg_1) : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
      stablehlo.return %4, %5 : tensor<i32>, tensor<8x16xbf16>
    }
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %2 = stablehlo.reduce(%1#1 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<8x16xbf16>, tensor<bf16>) -> tensor<8xbf16>
    %3 = "stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %4 = stablehlo.add %arg2, %arg3 : tensor<bf16>
      stablehlo.return %4 : tensor<bf16>
    }) : (tensor<8xbf16>) -> tensor<8xbf16>
    return %1#1 : tensor<8x16xbf16>
  }
  func.func private @half(%arg0: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<8x16xbf16>
    %1 = stablehlo.multiply %arg0, %0 : tensor<8x16xbf16>
    return %1 : tensor<8x16xbf16>
  }
}
)";

TEST(StableHloReader, ReadsIntoTheSameModule) {
  ASSERT_TRUE(is_stablehlo_text(stable));
  ASSERT_FALSE(is_hlo_text(stable));
  const auto module = read_module(stable, "f.mlir", {});
  ASSERT_TRUE(module) << module.error().where << module.error().what;
  EXPECT_EQ(module->devices(), 2);
  EXPECT_EQ(module->mesh, (std::vector<NamedAxis>{{"x", 2}}));
  ASSERT_EQ(module->aliases.size(), 1u);
  const Computation& entry = *module->entry_computation();
  const auto find = [&](std::string_view opcode) {
    for (const Instruction& at : entry.instructions)
      if (at.opcode == opcode) return &at;
    return static_cast<const Instruction*>(nullptr);
  };
  ASSERT_NE(find("dot"), nullptr);
  EXPECT_EQ(find("dot")->attribute("lhs_contracting_dims"), "{1}");
  EXPECT_EQ(find("dot")->attribute("rhs_contracting_dims"), "{0}");
  ASSERT_NE(find("while"), nullptr);
  EXPECT_NE(find("while")->callee("body"), no_computation);
  ASSERT_NE(find("all-reduce"), nullptr);
  EXPECT_EQ(find("all-reduce")->attribute("replica_groups"), "{{0, 1}}");
  EXPECT_EQ(find("reduce")->operands.size(), 2u);
}

/// The same program in the generic form, with locations.
constexpr const char* generic =
    R"(#loc1 = loc("x")
"builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, {tf.aliasing_output = 0 : i32}], function_type = (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>, res_attrs = [{jax.result_info = ""}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x4xbf16> loc("x"), %arg1: tensor<4x16xbf16> loc(unknown)):
    %c = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32> loc(#loc3)
    %c_0 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16> loc("dot"("a.py":3:1 to :9))
    %1:2 = "stablehlo.while"(%c, %0) ({
    ^bb0(%iterArg: tensor<i32>, %iterArg_1: tensor<8x16xbf16>):
      %4 = "stablehlo.compare"(%iterArg, %c_0) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%4) : (tensor<i1>) -> ()
    }, {
    ^bb0(%iterArg: tensor<i32>, %iterArg_1: tensor<8x16xbf16>):
      %c_2 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %4 = "stablehlo.add"(%iterArg, %c_2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %5 = "func.call"(%iterArg_1) <{callee = @half}> : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
      "stablehlo.return"(%4, %5) : (tensor<i32>, tensor<8x16xbf16>) -> ()
    }) : (tensor<i32>, tensor<8x16xbf16>) -> (tensor<i32>, tensor<8x16xbf16>)
    %cst = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<bf16>}> : () -> tensor<bf16>
    %2 = "stablehlo.reduce"(%1#1, %cst) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %4 = "stablehlo.add"(%arg2, %arg3) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "stablehlo.return"(%4) : (tensor<bf16>) -> ()
    }) : (tensor<8x16xbf16>, tensor<bf16>) -> tensor<8xbf16>
    %3 = "stablehlo.all_reduce"(%2) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %4 = "stablehlo.add"(%arg2, %arg3) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "stablehlo.return"(%4) : (tensor<bf16>) -> ()
    }) : (tensor<8xbf16>) -> tensor<8xbf16>
    "func.return"(%1#1) : (tensor<8x16xbf16>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8x16xbf16>) -> tensor<8x16xbf16>, sym_name = "half", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<8x16xbf16>):
    %cst = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<bf16>}> : () -> tensor<bf16>
    %0 = "stablehlo.broadcast_in_dim"(%cst) <{broadcast_dimensions = array<i64>}> : (tensor<bf16>) -> tensor<8x16xbf16>
    %1 = "stablehlo.multiply"(%arg0, %0) : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
    "func.return"(%1) : (tensor<8x16xbf16>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
#loc = loc(unknown)
#loc3 = loc("zero"(#loc1))
)";

TEST(StableHloReader, BothFormsAreOneProgram) {
  const auto a = read_module(stable, "f.mlir", {}), b = read_module(generic, "f.mlir", {});
  ASSERT_TRUE(a && b) << b.error().where << b.error().what;
  EXPECT_EQ(a->name, b->name);
  EXPECT_EQ(a->mesh, b->mesh);
  EXPECT_EQ(a->devices(), b->devices());
  EXPECT_EQ(a->aliases.size(), b->aliases.size());
  EXPECT_EQ(b->result_shardings.size(), 1u);
  ASSERT_EQ(a->computations.size(), b->computations.size());
  for (std::size_t c = 0; c < a->computations.size(); ++c) {
    const auto &left = a->computations[c].instructions, &right = b->computations[c].instructions;
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].opcode, right[i].opcode);
      EXPECT_EQ(left[i].operands, right[i].operands) << left[i].name;
      EXPECT_TRUE(left[i].shape == right[i].shape) << left[i].name;
      EXPECT_EQ(left[i].argument, right[i].argument);
      for (const char* key : {"lhs_contracting_dims", "rhs_contracting_dims", "dimensions", "direction", "applies",
                              "frontend_attributes"})
        EXPECT_EQ(left[i].attribute(key), right[i].attribute(key)) << left[i].name << " " << key;
    }
  }
  EXPECT_EQ(a->entry_computation()->instructions.back().opcode, "all-reduce");
  EXPECT_EQ(b->entry_computation()->instructions.back().attribute("replica_groups"), "mesh['x'=2] {'x'}");
}

std::string in_main(std::string_view body) {
  return "module @m attributes {mhlo.num_partitions = 8 : i32} {\n  sdy.mesh @mesh = <[\"X\"=4, \"Y\"=2]>\n"
         "  func.func public @main(%arg0: tensor<8x4xf32> {mhlo.sharding = \"{devices=[4,1,2]<=[8] "
         "last_tile_dim_replicate}\"}, %arg1: tensor<4x4xf32>) -> tensor<8x4xf32> {\n" +
         std::string(body) + "  }\n}\n";
}

TEST(StableHloReader, AManualComputationCountsOnEachDevice) {
  const auto module = read_module(
      in_main(
          R"(    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"X"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"X"}, {}]>] manual_axes={"X"} (%arg2: tensor<2x4xf32>, %arg3: tensor<4x4xf32>) {
      %1 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      sdy.return %1 : tensor<2x4xf32>
    } : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
)"),
      "f.mlir", {});
  ASSERT_TRUE(module) << module.error().where << module.error().what;
  const Instruction& call = module->entry_computation()->instructions.back();
  EXPECT_EQ(call.opcode, "call");
  EXPECT_EQ(call.attribute("manual_axes"), "\"X\"");
  const auto kernels = program_kernels(*module);
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels->totals.matrix, Flops(4 * 2 * 2 * 4 * 4));  // four devices, 2 x 4 by 4 x 4 each
}

TEST(StableHloReader, SeveralResultsWithNamesOrNumbers) {
  const auto module = read_module(
      in_main(
          R"(    %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
    %1:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<8x4xf32>, tensor<4x4xf32>
    %2:2 = stablehlo.reduce(%1#0 init: %arg1), (%indices init: %arg1) across dimensions = [1] : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>)  {
      %9 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %10 = stablehlo.select %9, %a, %b : tensor<i1>, tensor<f32>
      stablehlo.return %10, %c : tensor<f32>, tensor<i32>
    }
    return %1#0 : tensor<8x4xf32>
)"),
      "f.mlir", {});
  ASSERT_TRUE(module) << module.error().where << module.error().what;
  const auto& all = module->entry_computation()->instructions;
  EXPECT_EQ(all[2].opcode, "topk");
  EXPECT_EQ(all[4].name, "indices");
  EXPECT_EQ(shape_text(all[4].shape, false), "s32[8,2]");
  EXPECT_EQ(all[5].opcode, "optimization-barrier");
  EXPECT_EQ(shape_text(all[7].shape, false), "f32[4,4]");
  EXPECT_EQ(all[8].operands, (std::vector<std::uint32_t>{6, 4, 1, 1}));
  EXPECT_EQ(all[8].attribute("applies"), "");
}

TEST(StableHloReader, DimensionNumbersOfBothFormsAreHlos) {
  const auto module =
      read_module(in_main(R"(    %0 = stablehlo.slice %arg0 [0:8:2, 1:4] : (tensor<8x4xf32>) -> tensor<4x3xf32>
    %1 = "stablehlo.pad"(%arg1, %arg0) <{edge_padding_high = array<i64: 2, 0>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x4xf32>, tensor<f32>) -> tensor<7x4xf32>
    %2 = "stablehlo.reduce_window"(%arg0, %arg1) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %9 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %3 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<4x1xi32>) -> tensor<4x4xf32>
    return %arg0 : tensor<8x4xf32>
)"),
                  "f.mlir", {});
  ASSERT_TRUE(module) << module.error().where << module.error().what;
  const auto& all = module->entry_computation()->instructions;
  EXPECT_EQ(all[0].attribute("sharding"), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(all[2].attribute("slice"), "{[0:8:2],[1:4]}");
  EXPECT_EQ(all[3].attribute("padding"), "1_2_0x0_0_0");
  EXPECT_EQ(all[4].attribute("window"), "{size=2x1 stride=2x1 pad=0_0x0_0}");
  EXPECT_EQ(all[4].attribute("applies"), "maximum");
  EXPECT_EQ(all[5].attribute("slice_sizes"), "{1,4}");
  EXPECT_EQ(all[5].attribute("index_vector_dim"), "1");
}

TEST(StableHloReader, FaultsHaveAPlaceARuleAndARemedy) {
  const std::string text(stable);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string out = text;
    return out.replace(out.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {with("%arg0, %arg1, contracting", "%arg0, %arg9, contracting"), with("@half(%iterArg_1)", "@third(%iterArg_1)"),
        with("tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>",
             "tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xq4>"),
        text.substr(0, 900), std::string("module {}")}) {
    const auto read = read_module(bad, "bad.mlir", {});
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().where.substr(0, 9), "bad.mlir:");
    EXPECT_FALSE(read.error().what.empty() || read.error().hint.empty());
  }
}

}  // namespace
}  // namespace assay::hlo
