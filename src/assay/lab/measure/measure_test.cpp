#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "assay/hardware/chip.h"
#include "assay/lab/measure/cpu.h"
#include "assay/lab/measure/host_chip.h"
#include "assay/lab/measure/process.h"
#include "assay/lab/measure/team.h"

namespace assay::measure {
namespace {

TEST(Grid, NoShapeComesTwiceAndTheCheckIsOfOtherShapes) {
  const auto key = [](const ProductShape& s) { return std::array{s.m, s.n, s.k, s.batch}; };
  std::set<std::array<std::int64_t, 4>> fitted;
  for (const ProductShape& s : cpu_products(Extent::full))
    EXPECT_TRUE(fitted.insert(key(s)).second) << s.m << " " << s.n;
  for (const ProductShape& s : cpu_products(Extent::check)) EXPECT_FALSE(fitted.contains(key(s)));
  for (const ProductShape& s : gpu_products(Extent::full, 16)) EXPECT_TRUE(s.n % 16 == 0 && s.k % 16 == 0);
  EXPECT_LT(cpu_products(Extent::quick).size(), cpu_products(Extent::full).size() / 2);
  EXPECT_EQ(sizes(1, 9, 2), (std::vector<std::int64_t>{1, 2, 4, 8}));
}

TEST(Rows, FactsComeBackFromTheTable) {
  Measurement m;
  m.facts = {{"processor", "a: b"}, {"cores", "2"}};
  m.rows.push_back({"gemm", "fp32", 1, 2, 3, 0, 0, 1.5_us, 1_us, "sustained"});
  m.notes = {"no ranks"};
  const std::string text = rows_text(m);
  EXPECT_EQ(facts_of(text), m.facts);
  EXPECT_NE(text.find("\ngemm,fp32,1,2,3,,,1.500,1.000,sustained\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# note no ranks\n"), std::string::npos);
  std::vector<Seconds> times{3_s, 1_s, 2_s, 10_s};
  EXPECT_EQ(median_of(times), 2.5_s);
}

/// A directory that looks like the root of a machine with two cores of two threads each.
class FakeRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("assay_machine_" + std::to_string(::getpid()));
    write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Test CPU @ 2.00GHz\nflags\t\t: fpu sse2 avx avx2 fma\n");
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(FakeRoot, TheMachineIsReadFromTheSystemsFiles) {
  // The processor that this test may run on has to exist below the root.
  const Machine mine = read_machine();
  for (int cpu = 0; cpu < 1024; ++cpu) {
    const std::string dir = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
    if (cpu > 0 && !std::filesystem::exists("/sys/devices/system/cpu/cpu" + std::to_string(cpu))) break;
    write(dir + "0/type", "Data\n"), write(dir + "0/level", "1\n"), write(dir + "0/size", "32K\n");
    write(dir + "0/shared_cpu_list", std::to_string(cpu) + "\n");
    write(dir + "1/type", "Instruction\n"), write(dir + "1/level", "1\n"), write(dir + "1/size", "32K\n");
    write(dir + "2/type", "Unified\n"), write(dir + "2/level", "3\n"), write(dir + "2/size", "16M\n");
    write(dir + "2/shared_cpu_list", "0-1023\n");
  }
  const Machine machine = read_machine(root_.string());
  EXPECT_EQ(machine.processor, "Test CPU @ 2.00GHz");
  EXPECT_EQ(machine.vector_bits, 256);
  EXPECT_EQ(machine.memory, 16_GiB);
  EXPECT_EQ(machine.threads, mine.threads);
  ASSERT_EQ(machine.caches.size(), 2u);
  EXPECT_EQ(machine.caches[0].size, 32_KiB);
  EXPECT_EQ(machine.caches[1].level, 3);
  EXPECT_EQ(machine.caches[1].cores, machine.threads);
  const Machine back = machine_of(facts_of(machine));
  EXPECT_EQ(facts_of(back), facts_of(machine));
}

TEST(Machine, FactsThatAreMissingOrAbsurdDoNoHarm) {
  const Machine machine =
      machine_of({{"cores", "-7"}, {"threads", "many"}, {"cache 2", "x"}, {"vector bits", "99999999999999999999"}});
  EXPECT_EQ(machine.cores, 1);
  EXPECT_EQ(machine.threads, 1);
  EXPECT_TRUE(machine.caches.empty());
  EXPECT_GE(machine.vector_bits, 32);
}

Facts facts_of_two_cores() {
  Machine machine;
  machine.processor = "Test \"CPU\" \\ one";
  machine.cores = machine.threads = 2;
  machine.vector_bits = 256;
  machine.memory = 8_GiB;
  machine.caches = {{1, 32_KiB, 1}, {2, 1_MiB, 1}, {3, 16_MiB, 2}};
  Facts facts = facts_of(machine);
  facts.emplace_back("clock Hz", "2000000000");
  return facts;
}

TEST(HostChip, PeaksAreCoresTimesClockTimesLanes) {
  // 2 cores x 2 GHz x 2 units x 8 lanes x 2 = 128 GFLOP/s; half of it with 64 bits. A product at 100 fits below.
  std::vector<MeasuredRow> rows{{"gemm", "fp32", 1000, 1000, 1000, 0, 0, 20_ms, 20_ms},
                                {"gemm", "fp64", 1000, 1000, 1000, 0, 0, 40_ms, 40_ms},
                                {"read", "int8", 32 << 10, 0, 0, 0, 0, 0.5_us, 0.5_us},
                                {"read", "int8", 256 << 20, 0, 0, 0, 0, 10_ms, 10_ms},
                                {"copy", "int8", 256 << 20, 0, 0, 0, 0, 16_ms, 16_ms},
                                {"all_gather", "fp32", 1 << 20, 2, 0, 0, 0, 100_us, 100_us}};
  const HostRates rates = host_rates(facts_of_two_cores(), rows);
  EXPECT_EQ(rates.units, 2);
  EXPECT_DOUBLE_EQ(rates.fp32.in(1_TFLOP_per_s), 0.128);
  EXPECT_DOUBLE_EQ(rates.fp64.in(1_TFLOP_per_s), 0.064);
  EXPECT_EQ(rates.memory, 512_MiB / 16_ms);     // a copy reads and writes
  EXPECT_EQ(rates.caches[0], 32_KiB / 0.5_us);  // 16 KiB on each core
  EXPECT_EQ(rates.link, 512_KiB / 100_us);      // half of the array arrives
  rows[0].median = 12_ms;                       // 167 GFLOP/s: there must be more units
  EXPECT_EQ(host_rates(facts_of_two_cores(), rows).units, 4);
}

TEST(HostChip, TheFileReadsBack) {
  const std::vector<MeasuredRow> rows{{"gemm", "fp32", 1000, 1000, 1000, 0, 0, 20_ms, 20_ms},
                                      {"copy", "int8", 256 << 20, 0, 0, 0, 0, 16_ms, 16_ms},
                                      {"all_reduce", "fp32", 1 << 20, 4, 0, 0, 0, 100_us, 100_us}};
  for (const bool with_facts : {true, false}) {
    const HostRates rates = host_rates(with_facts ? facts_of_two_cores() : Facts{}, rows);
    const auto chip =
        hardware::read_chip(host_chip_text(rates, {"2026-11-15", "assay measure"}, 0.9, 0.8), "chips/host.toml");
    ASSERT_TRUE(chip) << chip.error().where << ": " << chip.error().what;
    EXPECT_EQ(chip->id, "host");
    EXPECT_EQ(chip->network.scale_up->domain->value, 4);
    EXPECT_EQ(chip->efficiency.memory.value, 0.8);
    EXPECT_FALSE(chip->peak[static_cast<std::size_t>(Dtype::fp64)]);
    EXPECT_EQ(chip->memory.size(), with_facts ? 4u : 1u);
  }
}

TEST(Team, EveryMemberWorksOnceInEveryRun) {
  Team team(3);
  std::atomic<int> sum = 0;
  for (int run = 0; run < 50; ++run) team.run([&](int member) { sum += 1 << (4 * member); });
  EXPECT_EQ(sum, 50 * 0x111);
}

TEST(Process, GivesWhatIsPrintedAndTheExitCode) {
  const auto output = run_process({"sh", "-c", "echo one; echo two; exit 3"});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\ntwo\n");
  EXPECT_EQ(output->status, 3);
  const auto absent = run_process({"/no/such/program"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, Error::Kind::missing);
}

TEST(Cpu, TheClockIsThatOfSomeProcessor) {
  EXPECT_GT(measured_clock(), 0.05 * 1_GHz);
  EXPECT_LT(measured_clock(), 8.0 * 1_GHz);
}

}  // namespace
}  // namespace assay::measure
