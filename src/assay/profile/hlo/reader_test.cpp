#include <gtest/gtest.h>

#include "assay/profile/hlo/module.h"

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
