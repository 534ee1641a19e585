#include "assay/profile/hlo/price.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "assay/hardware/calibration.h"
#include "assay/predict/training/step_list.h"
#include "assay/testing/training_case.h"

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

/// An operation as people write it, and as an instruction of a program.
struct Alike {
  const char *operation, *parameters, *instruction, *fusion = "";
};
constexpr const char* norm_body = R"(
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
body {
  x = bf16[4096,8192] parameter(0)
  y = f32[4096,8192] convert(x)
  z = f32[4096,8192] multiply(y, y)
  n = f32[] constant(0)
  s = f32[4096] reduce(z, n), dimensions={1}, to_apply=sum
  r = f32[4096] rsqrt(s)
  t = f32[4096,8192] broadcast(r), dimensions={0}
  u = f32[4096,8192] multiply(y, t)
  ROOT o = bf16[4096,8192] convert(u)
}
)";
constexpr const char* attention_of = R"(), custom_call_target="__cudnn$fmhaSoftmax", backend_config=)"
                                     R"({"cudnn_fmha_backend_config":{"intermediate_tensor_shape":)";
const Alike alike[] = {
    {"bf16[4096,4096] @ bf16[4096,14336]", "a = bf16[4096,4096] parameter(0)\n  b = bf16[4096,14336] parameter(1)",
     "bf16[4096,14336] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    // Rows that are no whole loads, and a single row.
    {"bf16[4096,1001] @ bf16[1001,1003]", "a = bf16[4096,1001] parameter(0)\n  b = bf16[1003,1001] parameter(1)",
     "bf16[4096,1003] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
    {"bf16[1,8192] @ bf16[8192,8192]", "a = bf16[1,8192] parameter(0)\n  b = bf16[8192,8192] parameter(1)",
     "bf16[1,8192] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"rmsnorm(bf16[4096,8192])", "x = bf16[4096,8192] parameter(0)",
     "bf16[4096,8192] fusion(x), kind=kCustom, calls=body", norm_body},
    {"add(bf16[4096,8192])", "x = bf16[4096,8192] parameter(0)\n  y = bf16[4096,8192] parameter(1)",
     "bf16[4096,8192] add(x, y)"},
    {"attention(bf16[2,32,4096,128], bf16[2,8,4096,128], causal)",
     "q = bf16[2,4096,32,128] parameter(0)\n  k = bf16[2,4096,8,128] parameter(1)\n  v = bf16[2,4096,8,128] "
     "parameter(2)",
     "bf16[2,4096,32,128] custom-call(q, k, v", R"({"dimensions":["2","32","4096","4096"]},"mask_type":"CAUSAL"}})"},
    {"attention(bf16[64,32,1,128], bf16[64,8,8192,128])",
     "q = bf16[64,1,32,128] parameter(0)\n  k = bf16[64,8192,8,128] parameter(1)\n  v = bf16[64,8192,8,128] "
     "parameter(2)",
     "bf16[64,1,32,128] custom-call(q, k, v", R"({"dimensions":["64","32","1","8192"]},"mask_type":"NO_MASK"}})"}};

TEST(Price, OfAKernelIsThatOfTheOperationAsPeopleWriteIt) {
  const hardware::Catalogue& catalogue = hardware::Catalogue::builtin();
  for (const char* where : {"h100-sxm:1", "a100-sxm-80:1", "mi300x:1"})
    for (const Alike& one : alike) {
      const auto cluster = hardware::parse_cluster(where, catalogue, "--on");
      const auto calibration = hardware::calibration_of(cluster->chip, catalogue);
      const hardware::Calibration* fits = calibration && *calibration ? &(*calibration)->values : nullptr;
      const kernel::KernelRates rates = *kernel::kernel_rates(cluster->chip, Dtype::bf16, "test", fits);
      const bool attends = std::string_view(one.operation).starts_with("attention");
      const std::string text = attends ? fmt::format("ENTRY e {{\n  {}\n  ROOT r = {}{}{}\n}}", one.parameters,
                                                     one.instruction, attention_of, one.fusion)
                                       : fmt::format("HloModule m\n{}\nENTRY e {{\n  {}\n  ROOT r = {}\n}}", one.fusion,
                                                     one.parameters, one.instruction);
      const auto module = read_module(text, "test.hlo", **calls_of(catalogue));
      ASSERT_TRUE(module) << module.error().where << module.error().what;
      const ProgramKernels kernels = *program_kernels(*module);
      const ProgramPrice price = *program_price(*module, kernels, {*cluster, rates, std::nullopt});
      ASSERT_EQ(price.kernels.size(), 1u) << one.operation;
      const kernel::Kernel written = kernel::kernel_of(*roofline::parse_operation(one.operation, "test"), Dtype::bf16);
      const kernel::KernelTime time = kernel::kernel_time(Plain{}, rates, written);
      // A chip without a calibration runs attention that it has no price of by its arithmetic, which operations lack.
      if (attends && !rates.attention) continue;
      EXPECT_EQ(price.kernels[0].estimate, max(time.estimate, price.kernels[0].lower()))
          << one.operation << " on " << where;
    }
}

// One price: a program that we lower, written as HLO and read back, is priced as training prices it. Element-wise steps
// but sums and norms are left out: compilers fuse them, and the answer names the fusions.
constexpr std::int64_t own_tokens = 2048;

std::string_view element_of(Dtype dtype) { return dtype == Dtype::fp32 ? "f32" : dtype == Dtype::bf16 ? "bf16" : "s8"; }
std::int64_t whole(double size) { return std::llround(size); }

/// Writes the products, sums and collectives of one device as a module.
class HloWriter {
 public:
  explicit HloWriter(const program::Program& program) : program_(program) {}

  /// Whether the step is written.
  bool add(std::size_t number) {
    const program::Step& step = program_.steps[number];
    if (step.op == program::Op::product) return add_product(number, step);
    if (program::is_collective(step.op)) return add_collective(number, step);
    if (step.op == program::Op::attention) return add_attention(number, step);
    return step.op == program::Op::add && add_sum(number, step);
  }
  std::string text() const {
    std::string results, shapes;
    for (const auto& [name, shape] : results_) {
      results += (results.empty() ? "" : ", ") + name;
      shapes += (shapes.empty() ? "" : ", ") + shape;
    }
    return fmt::format(
        "HloModule own, is_scheduled=true, num_partitions={}\n{}ENTRY e {{\n{}{}  ROOT all = ({}) tuple({})\n}}\n",
        whole(program_.ways(static_cast<program::AxisSet>((1u << program_.mesh.axes.size()) - 1))), fusions_,
        parameters_, lines_, shapes, results);
  }

 private:
  std::string parameter(const std::string& shape) {
    const std::string name = fmt::format("p{}", count_);
    parameters_ += fmt::format("  {} = {} parameter({})\n", name, shape, count_++);
    return name;
  }
  void result(std::size_t number, const std::string& shape, const std::string& operation) {
    lines_ += fmt::format("  s{} = {} {}\n", number, shape, operation);
    results_.emplace_back(fmt::format("s{}", number), shape);
  }

  bool add_product(std::size_t number, const program::Step& step) {
    const auto [batch, m, n, k] = kernel::product_sizes(Plain{}, program_, step);
    const auto shape = [&, batch = batch](Dtype dtype, double rows, double columns) {
      return fmt::format("{}[{},{},{}]", element_of(dtype), whole(batch), whole(rows), whole(columns));
    };
    const auto dtype = [&](int tensor) { return program_.tensor(tensor).dtype; };
    const std::string a = shape(dtype(step.in[0]), m, k), b = shape(dtype(step.in[1]), k, n),
                      c = shape(dtype(step.out[0]), m, n);
    const std::string operands = parameter(a) + ", " + parameter(b);
    constexpr const char* dims =
        "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}";
    if (step.in[2] < 0) {
      result(number, c, fmt::format("dot({}), {}", operands, dims));
      return true;
    }
    // Onto what is there: as compilers fuse it.
    fusions_ += fmt::format(
        "f{0} {{\n  a = {1} parameter(0)\n  b = {2} parameter(1)\n  c = {3} parameter(2)\n  d = {3} dot(a, b), {4}\n  "
        "ROOT r = "
        "{3} add(d, c)\n}}\n",
        number, a, b, c, dims);
    result(number, c, fmt::format("fusion({}, {}), kind=kOutput, calls=f{}", operands, parameter(c), number));
    return true;
  }
  bool add_attention(std::size_t number, const program::Step& step) {
    const auto extent = [&](int tensor, int dim) {
      return whole(program::local_extent(program_, program_.tensor(tensor), dim));
    };
    const auto shape = [&](int tensor) {
      return fmt::format("bf16[{},{},{},{}]", extent(tensor, 0), extent(tensor, 1), extent(tensor, 2),
                         extent(tensor, 3));
    };
    const std::string operands = fmt::format("{}, {}, {}", parameter(shape(step.in[0])), parameter(shape(step.in[1])),
                                             parameter(shape(step.in[2])));
    const std::string scores =
        fmt::format(R"({{"intermediate_tensor_shape":{{"dimensions":["{}","{}","{}","{}"]}},)", extent(step.in[0], 0),
                    extent(step.in[0], 2), extent(step.in[0], 1), extent(step.in[1], 1));
    result(number, shape(step.out[0]),
           fmt::format("custom-call({}), custom_call_target=\"__cudnn$fmhaSoftmax\", "
                       "backend_config={{\"cudnn_fmha_backend_config\":{}\"mask_type\":\"CAUSAL\"}}}}",
                       operands, scores));
    return true;
  }
  bool add_sum(std::size_t number, const program::Step& step) {
    const program::ProgramTensor& sum = program_.tensor(step.out[0]);
    const std::string shape =
        fmt::format("{}[{}]", element_of(sum.dtype), whole(program::local_elements(Plain{}, program_, sum)));
    const std::string left = parameter(shape), right = parameter(shape);
    result(number, shape, fmt::format("add({}, {})", left, right));
    return true;
  }
  bool add_collective(std::size_t number, const program::Step& step) {
    const program::ProgramTensor& before = program_.tensor(step.in[0]);
    const double ways = program_.ways(step.axes);
    const double array = collective::array_bytes(program_, step) / storage(before.dtype, 1.0);
    const bool gathers = step.collective == program::Collective::all_gather,
               scatters = step.collective == program::Collective::reduce_scatter;
    if (!gathers && !scatters && step.collective != program::Collective::all_reduce) return false;
    const auto shape = [&](double elements) {
      return fmt::format("{}[{}]", element_of(before.dtype), whole(elements));
    };
    const std::string operand = parameter(shape(gathers ? array / ways : array));
    result(number, shape(scatters ? array / ways : array),
           fmt::format("{}({}), replica_groups={}, use_global_device_ids=true{}",
                       gathers    ? "all-gather"
                       : scatters ? "reduce-scatter"
                                  : "all-reduce",
                       operand, groups(step.axes), gathers || scatters ? ", dimensions={0}" : ""));
    return true;
  }
  /// Devices in the order of the mesh, the last axis innermost.
  std::string groups(program::AxisSet axes) const {
    std::map<std::int64_t, std::string> members;  // by what they have in common
    const std::int64_t devices =
        whole(program_.ways(static_cast<program::AxisSet>((1u << program_.mesh.axes.size()) - 1)));
    for (std::int64_t device = 0; device < devices; ++device) {
      std::int64_t rest = device, common = 0, scale = 1;
      for (std::size_t axis = program_.mesh.axes.size(); axis-- > 0;) {
        const std::int64_t size = program_.mesh.axes[axis].size;
        if (!(axes & program::axis_bit(static_cast<int>(axis)))) common += scale * (rest % size);
        scale *= size;
        rest /= size;
      }
      std::string& group = members[common];
      group += fmt::format("{}{}", group.empty() ? "" : ",", device);
    }
    std::string all;
    for (const auto& [common, group] : members) all += fmt::format("{}{{{}}}", all.empty() ? "" : ",", group);
    return "{" + all + "}";
  }

  const program::Program& program_;
  std::string fusions_, parameters_, lines_;
  std::vector<std::pair<std::string, std::string>> results_;
  int count_ = 0;
};

struct Compared {
  int products = 0, attention = 0, sums = 0, collectives = 0;
};

/// Compares each step that is written with the price that training gives it.
Compared expect_alike(const char* where, const training::Strategy& strategy) {
  const hardware::Catalogue& catalogue = hardware::Catalogue::builtin();
  testing::TrainingCase c(where, 64);
  c.question.setup.model = &c.model;
  const auto calibration = hardware::calibration_of(c.cluster.chip, catalogue);
  const hardware::Calibration* fits = calibration && *calibration ? &(*calibration)->values : nullptr;
  c.question.setup.rates = *kernel::kernel_rates(c.cluster.chip, Dtype::bf16, "test", fits);
  if (fits) c.question.collectives = fits->collective;
  const program::Program program = training::training_program(c.question, own_tokens, strategy);
  const auto times = training::training_step_times(c.question, own_tokens, c.cluster, strategy, program);
  const kernel::TrainingKernels kernels = training::training_kernels(c.question.setup);
  HloWriter writer(program);
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const program::Step& step = program.steps[i];
    const bool is_bucket = times->steps[i].part_of >= 0 || !times->steps[i].parts.empty();
    if (program::is_collective(step.op) && (is_bucket || !(times->steps[i].time > Seconds()))) continue;
    if (writer.add(i)) written.push_back(i);
  }
  const auto module = read_module(writer.text(), "own.hlo", **calls_of(catalogue));
  EXPECT_TRUE(module) << (module ? "" : module.error().what) << "\n" << writer.text();
  Compared compared;
  if (!module) return compared;
  const ProgramKernels read = *program_kernels(*module);
  const ProgramPrice price = *program_price(*module, read, {c.cluster, c.question.setup.rates, c.question.collectives});
  std::map<std::string, Seconds> by_name;
  for (std::size_t i = 0; i < read.kernels.size(); ++i)
    by_name[std::string(
        module->computations[read.kernels[i].computation].instructions[read.kernels[i].instruction].name)] =
        price.kernels[i].estimate;
  for (const std::size_t i : written) {
    const program::Step& step = program.steps[i];
    const auto known = by_name.find(fmt::format("s{}", i));
    const std::string what = fmt::format("{} on {}", program::step_text(program, step), where);
    EXPECT_NE(known, by_name.end()) << what;
    if (known == by_name.end()) continue;
    const bool moves = program::is_collective(step.op);
    const auto alone = [&] {  // at the clock of a kernel by itself
      const kernel::StepPrice<Plain> of = kernel::price(Plain{}, program, step, kernels);
      return program::is_attention(step.op) ? of.duration - of.slowed : of.duration;
    };
    const Seconds trained = moves ? times->steps[i].time : alone();
    // Calls of attention do not say which sums of the softmax they keep for the backward pass.
    const double rounding = program::is_attention(step.op) ? 1e-3 : 1e-9;
    EXPECT_NEAR(known->second.value(), trained.value(), rounding * trained.value()) << what;
    ++(moves                             ? compared.collectives
       : step.op == program::Op::product ? compared.products
       : program::is_attention(step.op)  ? compared.attention
                                         : compared.sums);
  }
  return compared;
}

TEST(Price, OfAProgramOfOursIsThatOfTraining) {
  for (const char* where : {"h100-sxm:8", "mi300x:8", "a100-sxm-80:16"}) {
    const std::int64_t chips = where == std::string_view("a100-sxm-80:16") ? 16 : 8;
    for (const std::int64_t tensor : {2, 4}) {
      const Compared compared = expect_alike(where, testing::strategy_of(chips / tensor, 1, tensor));
      EXPECT_GE(compared.products, 20) << where;
      EXPECT_GE(compared.attention, 1) << where;
      EXPECT_GE(compared.sums, 4) << where;
      EXPECT_GE(compared.collectives, 4) << where;
    }
  }
}

}  // namespace
}  // namespace assay::hlo
