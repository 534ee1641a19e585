#include "assay/profile/hlo/execute/execution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "assay/profile/hlo/execute/evaluate.h"
#include "assay/profile/trace/bytes.h"
#include "assay/testing/catalogue.h"
#include "assay/testing/sampling.h"

namespace assay::hlo {
namespace {

constexpr const char* folder = "tests/data/jax/";

/// Programs that JAX lowered, with what it computed.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (file.path().extension() == ".mlir") found.push_back(file.path().stem());
    std::sort(found.begin(), found.end());
    return found;
  }();
  return all;
}

Module program_of(const std::string& name) {
  return *read_module(*trace::file_bytes(folder + name + ".mlir", "test"), name, **calls_of(testing::catalogue()));
}

std::vector<Array> arrays_of(const std::string& name, std::string_view kind) {
  static const std::string bytes = *trace::file_bytes(std::string(folder) + "values.npz", "test");
  return *npz_arrays(bytes, fmt::format("{}.{}", name, kind), "values.npz");
}

struct Executed {
  std::vector<ExecutedResult> planned, whole;
};

Executed executed(const Module& module, const std::vector<Array>& inputs) {
  const PartitionMesh mesh = *partition_mesh(module);
  const plan::Prices prices = plan::byte_prices(mesh.mesh);
  auto partitioner = *Partitioner::make(module, mesh, prices);
  const PartitionedProgram plan = *partitioner.best(), whole = *undivided(module, partitioner.pricing());
  auto planned = execute(module, partitioner.pricing(), plan, inputs);
  auto undivided = execute(module, partitioner.pricing(), whole, inputs);
  if (!planned) throw InternalError(planned.error().where + ": " + planned.error().what);
  if (!undivided) throw InternalError(undivided.error().where + ": " + undivided.error().what);
  return {std::move(*planned), std::move(*undivided)};
}

bool is_rounded(const std::string& name) { return name.find("mixed_precision") != std::string::npos; }

TEST(Execution, ThePlanOfAJaxProgramComputesWhatJaxComputes) {
  ASSERT_GE(names().size(), 26u);
  for (const std::string& name : testing::sampled(names())) {
    SCOPED_TRACE(name);
    const Module module = program_of(name);
    std::vector<Array> inputs = drawn_inputs(module, 1), given = arrays_of(name, "in");
    ASSERT_EQ(inputs.size(), given.size());
    for (std::size_t i = 0; i < given.size(); ++i) given[i].element = inputs[i].element;
    const std::vector<Array> expected = arrays_of(name, "out");
    const Executed of = executed(module, given);
    ASSERT_EQ(of.planned.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (const Array& copy : of.planned[i].copies)
        EXPECT_LE(difference(copy, expected[i]), is_rounded(name) ? 2e-2 : 1e-5) << "result " << i;
  }
}

/// Shardings that nobody chose: each axis splits a dimension of each argument that it divides, or none.
void shard_at_random(Module& module, std::mt19937& random) {
  Computation& entry = module.computations[module.entry];
  for (Instruction& parameter : entry.instructions) {
    if (parameter.opcode != "parameter") continue;
    std::vector<std::string> dims(parameter.shape.dims.size());
    std::vector<std::int64_t> left = parameter.shape.dims;
    for (const NamedAxis& axis : module.mesh) {
      const std::size_t d = random() % (dims.size() + 1);
      if (d == dims.size() || left[d] % axis.second != 0) continue;
      left[d] /= axis.second;
      dims[d] += fmt::format("{}\"{}\"", dims[d].empty() ? "" : ", ", axis.first);
    }
    std::string text;
    for (const std::string& list : dims) text += fmt::format("{}{{{}}}", text.empty() ? "" : ", ", list);
    std::erase_if(parameter.attributes, [](const auto& attribute) { return attribute.first == "frontend_attributes"; });
    parameter.attributes.emplace_back("frontend_attributes",
                                      module.made->emplace_back(fmt::format("#sdy.sharding<@mesh, [{}]>", text)));
  }
}

TEST(Execution, AnyShardingsOfTheArgumentsGiveTheSameResults) {
  std::mt19937 random(11);
  for (const std::string& name : testing::sampled(names()))
    for (int draw = 0; draw < 2; ++draw) {
      SCOPED_TRACE(fmt::format("{}, draw {}", name, draw));
      Module module = program_of(name);
      if (name.find("by_hand") == std::string::npos) shard_at_random(module, random);
      const Executed of = executed(module, drawn_inputs(module, static_cast<std::uint64_t>(draw) + 1));
      for (std::size_t i = 0; i < of.planned.size(); ++i)
        for (const Array& copy : of.planned[i].copies)
          EXPECT_LE(difference(copy, of.whole[i].copies.front()), is_rounded(name) ? 2e-2 : 1e-9) << "result " << i;
    }
}

TEST(Execution, AnElementThatADeviceDoesNotHaveIsFound) {
  // Four devices have two rows each; a plan that forgets to bring them together is not one.
  const std::string text =
      "module @m attributes {mhlo.num_partitions = 4 : i32} {\n  sdy.mesh @mesh = <[\"X\"=4]>\n"
      "  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"X\"}]>}) -> "
      "(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"X\"}]>}) {\n"
      "    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<8xf32>\n"
      "    return %0 : tensor<8xf32>\n  }\n}\n";
  const Module module = *read_module(text, "test.mlir", **calls_of(testing::catalogue()));
  const PartitionMesh mesh = *partition_mesh(module);
  const plan::Prices prices = plan::byte_prices(mesh.mesh);
  auto partitioner = *Partitioner::make(module, mesh, prices);
  PartitionedProgram plan = *partitioner.best();
  const std::vector<Array> inputs = drawn_inputs(module, 1);
  ASSERT_TRUE(execute(module, partitioner.pricing(), plan, inputs));
  for (PartitionStep& step : plan.steps) {
    if (step.kind == PartitionStep::Kind::move)
      step = {.kind = PartitionStep::Kind::rename,
              .source = step.value,
              .value = step.value,
              .from = step.from,
              .to = step.from};
    if (step.kind == PartitionStep::Kind::compute)
      for (program::AxisList& axes : step.division.rows) axes = program::AxisList().pushed(0);
    if (step.kind == PartitionStep::Kind::compute) step.to.dims[0] = program::AxisList().pushed(0);
  }
  EXPECT_THROW(static_cast<void>(execute(module, partitioner.pricing(), plan, inputs)), InternalError);
}

double evaluated(const std::string& type, const std::string& statement) {
  const std::string text = fmt::format(
      "module @m {{\n  func.func public @main() -> {0} {{\n{1}    return %r : {0}\n  }}\n}}\n", type, statement);
  const Module module = *read_module(text, "test.mlir", **calls_of(testing::catalogue()));
  const PartitionMesh mesh = *partition_mesh(module);
  const plan::Prices prices = plan::byte_prices(mesh.mesh);
  auto partitioner = *Partitioner::make(module, mesh, prices);
  const PartitionedProgram whole = *undivided(module, partitioner.pricing());
  return execute(module, partitioner.pricing(), whole, {})->front().copies.front().values.front();
}

double of_two_numbers(const std::string& opcode, const std::string& type, const std::string& a, const std::string& b) {
  return evaluated(type, fmt::format("    %a = stablehlo.constant dense<{1}> : {0}\n    %b = stablehlo.constant "
                                     "dense<{2}> : {0}\n    %r = stablehlo.{3} %a, %b : {0}\n",
                                     type, a, b, opcode));
}

TEST(Evaluation, WholeNumbersWrapAndDivideTowardsZero) {
  EXPECT_EQ(of_two_numbers("subtract", "tensor<i32>", "-3", "1"), -4);
  EXPECT_EQ(of_two_numbers("add", "tensor<i32>", "2147483647", "1"), -2147483648.0);
  EXPECT_EQ(of_two_numbers("multiply", "tensor<ui32>", "4294967295", "4294967295"), 1);
  EXPECT_EQ(of_two_numbers("divide", "tensor<i32>", "-7", "2"), -3);
  EXPECT_EQ(of_two_numbers("remainder", "tensor<i32>", "-7", "2"), -1);
  EXPECT_EQ(of_two_numbers("shift_right_arithmetic", "tensor<i32>", "-8", "1"), -4);
  EXPECT_EQ(of_two_numbers("shift_right_logical", "tensor<i32>", "-8", "1"), 2147483644.0);
  EXPECT_EQ(of_two_numbers("shift_left", "tensor<ui8>", "255", "4"), 240);
}

TEST(Evaluation, ShortFormatsRound) {
  const auto converted = [](const std::string& value, const std::string& to) {
    return evaluated("tensor<" + to + ">", "    %a = stablehlo.constant dense<" + value +
                                               "> : tensor<f32>\n    %r = stablehlo.convert %a : (tensor<f32>) -> "
                                               "tensor<" +
                                               to + ">\n");
  };
  EXPECT_EQ(converted("1.00390625", "bf16"), 1.0);  // 1 + 2^-8 lies between two numbers: to the even one
  EXPECT_EQ(converted("1.01171875", "bf16"), 1.015625);
  EXPECT_EQ(converted("1.00048828125", "f16"), 1.0);
  EXPECT_EQ(converted("-2.75", "i32"), -2);
  EXPECT_EQ(converted("0x7FC00000", "i32"), 0);
}

TEST(Npz, DamagedFilesAreErrors) {
  const std::string bytes = *trace::file_bytes(std::string(folder) + "values.npz", "test");
  EXPECT_FALSE(npz_arrays("", "in", "f"));
  EXPECT_FALSE(npz_arrays("PK", "in", "f"));
  std::mt19937 random(3);
  const std::string small = bytes.substr(bytes.size() - 4096);  // the list of files
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes.substr(0, 4) + small;
    for (int k = 0; k < 8; ++k) damaged[4 + random() % (damaged.size() - 4)] = static_cast<char>(random());
    static_cast<void>(npz_arrays(damaged, "branches.in", "f"));  // no crash, whatever it says
  }
  EXPECT_EQ(npz_arrays(bytes, "nothing.in", "f")->size(), 0u);
}

}  // namespace
}  // namespace assay::hlo
