#include "assay/profile/hlo/profiled.h"

#include <gtest/gtest.h>

#include "assay/profile/trace/readers.h"
#include "assay/profile/trace/summary.h"
#include "assay/testing/messages.h"

namespace assay::hlo {
namespace {

using testing::field;

std::string map_entry(std::uint64_t key, const std::string& value) { return field(1, key) + field(2, value); }
std::string named_entry(std::uint64_t key, std::string_view name) {
  return map_entry(key, field(1, key) + field(2, name));
}

/// A GPU that runs jit_step twice: a product by two kernels, an addition by one. An instruction has one launch.
std::string gpu_profile() {
  const std::string metadata =
      field(2, "/host:metadata") + field(5, named_entry(1, "Hlo Proto")) +
      field(4, map_entry(
                   1, field(2, "jit_step(5)") + field(5, field(1, 1) + field(6, field(1, testing::module_message())))));
  std::string device = field(2, "/device:GPU:0") + field(5, named_entry(1, "correlation_id")) +
                       field(5, named_entry(2, "hlo_op")) + field(5, named_entry(3, "hlo_module")) +
                       field(5, named_entry(4, "program_id")) + field(4, named_entry(1, "gemm_main")) +
                       field(4, named_entry(2, "splitKreduce")) + field(4, named_entry(3, "add_1"));
  std::string stream = field(2, "Stream #1(Kernel)") + field(3, 1000);
  std::string host =
      field(2, "/host:CPU") + field(5, named_entry(1, "correlation_id")) + field(4, named_entry(1, "launch"));
  std::string thread = field(2, "Host Threads/1") + field(3, 1000);
  std::uint64_t at = 1000, launch = 1;
  for (int run = 0; run < 2; ++run)
    for (const std::uint64_t kernel : {1, 2, 3}) {
      const std::string op = kernel == 3 ? "add.1" : "dot.7";
      stream += field(4, field(1, kernel) + field(2, at) + field(3, 1000) + field(4, field(1, 1) + field(3, launch)) +
                             field(4, field(1, 2) + field(5, op)) + field(4, field(1, 3) + field(5, "jit_step")) +
                             field(4, field(1, 4) + field(3, 5)));
      if (kernel != 2)
        thread += field(4, field(1, 1) + field(2, at - 900) + field(3, 100) + field(4, field(1, 1) + field(3, launch)));
      at += 2000;
      launch += kernel == 1 ? 0 : 1;
    }
  return field(1, metadata) + field(1, device + field(3, stream)) + field(1, host + field(3, thread));
}

TEST(Profiled, KernelsHaveShapesScopesAndLaunchesOfTheirPrograms) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const trace::Vocabulary& vocabulary = **trace::vocabulary_of(catalogue);
  auto trace = trace::read_profile(gpu_profile(), "gpu.xplane.pb", vocabulary);
  ASSERT_TRUE(trace) << trace.error().what;
  EXPECT_EQ(adopt_programs(*trace, vocabulary, **calls_of(catalogue)), 6);
  EXPECT_NE(main_program(*trace, 0).find("HloModule jit_step"), std::string::npos);
  ASSERT_EQ(trace->steps.size(), 2u);
  EXPECT_EQ(trace->steps[0].name, "jit_step");
  const auto devices = trace::summarize(*trace, vocabulary);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].launched, 6);
  ASSERT_EQ(devices[0].operations.size(), 2u);
  const trace::OperationTime& product = devices[0].operations[0];
  EXPECT_EQ(product.name, "dot");
  EXPECT_EQ(product.shapes, "[64,128] [128,32]");
  EXPECT_EQ(product.calls, 2);
  EXPECT_EQ(product.kernels, 4);
  EXPECT_DOUBLE_EQ(product.work->flops.value(), 524288.0);
  // An addition of 64 x 32 numbers, read twice at one place and written.
  EXPECT_DOUBLE_EQ(devices[0].operations[1].work->flops.value(), 2048.0);
  EXPECT_EQ(vocabulary.role("jit(step)/transpose(jvp(layer))/dot_general"), trace::MarkRole::backward);
}

TEST(Profiled, ProgramsThatAreDamagedOrMissingAreLeftOut) {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  const trace::Vocabulary& vocabulary = **trace::vocabulary_of(catalogue);
  auto trace = trace::read_profile(gpu_profile(), "gpu.xplane.pb", vocabulary);
  ASSERT_TRUE(trace);
  trace->programs.front().message.resize(40);
  EXPECT_EQ(adopt_programs(*trace, vocabulary, **calls_of(catalogue)), 0);
  trace->programs.clear();
  EXPECT_EQ(adopt_programs(*trace, vocabulary, **calls_of(catalogue)), 0);
  EXPECT_EQ(main_program(*trace, 0), "");
}

}  // namespace
}  // namespace assay::hlo
