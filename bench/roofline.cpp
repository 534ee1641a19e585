// How fast rooflines are: the bare formula that a search calls, the same one explained, the readers in front of it, and
// a whole request. Inputs change from one evaluation to the next, so that the compiler can hoist nothing.
#include "assay/predict/roofline/roofline.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "assay/ask/verbs/request.h"
#include "assay/hardware/cluster.h"
#include "assay/predict/roofline/operation.h"
#include "bench.h"

namespace {

using namespace assay;
using namespace assay::bench;

roofline::Roof roof_of(std::string_view id) {
  const hardware::Chip chip = required(catalogue().chip(id, "bench"));
  roofline::Roof roof;
  roof.peak = required(hardware::peak_rate(chip, Dtype::bf16, "bench"));
  roof.bandwidth = *chip.hbm().bandwidth;
  roof.compute_efficiency = chip.efficiency.matrix;
  roof.memory_efficiency = chip.efficiency.memory;
  return roof;
}

// Products of many shapes, dtypes and with and without a batch, on two chips; a power of two of each.
struct Inputs {
  std::array<roofline::Matmul, 64> matmuls;
  std::array<roofline::Roof, 2> roofs = {roof_of("tpu-v5e"), roof_of("h100-sxm")};

  Inputs() {
    constexpr std::array dtypes = {Dtype::bf16, Dtype::fp8, Dtype::int8, Dtype::fp32};
    for (std::size_t i = 0; i < matmuls.size(); ++i) {
      const double grow = static_cast<double>(i + 1);
      matmuls[i] = {.batch = i % 4 == 0 ? 8.0 : 1.0,
                    .m = 16.0 * grow,
                    .k = 512.0 + 64.0 * grow,
                    .n = 1024.0 + 128.0 * grow,
                    .a = dtypes[i % 4],
                    .b = dtypes[i / 4 % 4],
                    .out = Dtype::bf16};
    }
  }

  const roofline::Matmul& matmul(std::size_t i) const { return matmuls[i % matmuls.size()]; }
  const roofline::Roof& roof(std::size_t i) const { return roofs[i % roofs.size()]; }
};

roofline::Bound<Plain> plain_bound(const Inputs& inputs, std::size_t i) {
  return roofline::roofline_bound(Plain{}, roofline::matmul_work(Plain{}, inputs.matmul(i), {}), inputs.roof(i));
}

double traced_bound(const Inputs& inputs, std::size_t i) {
  Ledger ledger;
  const Traced num{&ledger};
  return roofline::roofline_bound(num, roofline::matmul_work(num, inputs.matmul(i), {}), inputs.roof(i)).lower.value();
}

void plain_evaluations(benchmark::State& state) {
  const Inputs inputs;
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(plain_bound(inputs, i++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(plain_evaluations);

void traced_evaluations(benchmark::State& state) {
  const Inputs inputs;
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(traced_bound(inputs, i++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(traced_evaluations);

// The cost of an explanation: processor time of traced evaluations relative to as many plain ones, interleaved so that
// a change of the processor's clock affects both alike.
void traced_over_plain(benchmark::State& state) {
  constexpr std::size_t batch = 4096;
  const Inputs inputs;
  std::clock_t plain = 0, traced = 0;
  for (auto _ : state) {
    const auto start = std::clock();
    for (std::size_t i = 0; i < batch; ++i) benchmark::DoNotOptimize(plain_bound(inputs, i));
    const auto middle = std::clock();
    for (std::size_t i = 0; i < batch; ++i) benchmark::DoNotOptimize(traced_bound(inputs, i));
    plain += middle - start;
    traced += std::clock() - middle;
  }
  state.SetItemsProcessed(2 * static_cast<std::int64_t>(batch) * state.iterations());
  state.counters["traced_over_plain"] = static_cast<double>(traced) / static_cast<double>(plain);
}
BENCHMARK(traced_over_plain);

// The same work from an operation as a person writes it: what each point of a sweep over a size costs.
void operation_evaluations(benchmark::State& state) {
  const Inputs inputs;
  const roofline::Operation operation =
      required(roofline::parse_operation("bf16[240,8192] @ int8[8192,32768] -> bf16[240,32768]", "bench"));
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        roofline::roofline_bound(Plain{}, roofline::operation_work(Plain{}, operation, {}), inputs.roof(i++)));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(operation_evaluations);

void find_a_knee(benchmark::State& state) {
  const Inputs inputs;
  const roofline::Operation operation =
      required(roofline::parse_operation("bf16[B,8192] @ int8[8192,32768] -> bf16[B,32768]", "bench"));
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(roofline::find_knee(operation, "B", {}, inputs.roof(i++)).exact);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(find_a_knee);

void parse_operations(benchmark::State& state) {
  constexpr std::array<std::string_view, 4> texts = {"bf16[B,8192] @ bf16[8192,32768] -> bf16[B,32768]",
                                                     "int8[16,240,4Ki] @ int8[16,4Ki,128]",
                                                     "bf16[B,S,D] @ bf16[D,F] -> bf16[B,S,F]", "dot(fp32[1Mi])"};
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(roofline::parse_operation(texts[i++ % texts.size()], "bench").has_value());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(parse_operations);

void parse_clusters(benchmark::State& state) {
  constexpr std::array<std::string_view, 4> texts = {"tpu-v5e:8x16", "4*tpu-v5p:16x20x28", "h100-sxm:1024", "l4"};
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(hardware::parse_cluster(texts[i++ % texts.size()], catalogue(), "bench").has_value());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(parse_clusters);

void read_chips(benchmark::State& state) {
  const auto files = catalogue().files("chips/");
  std::size_t i = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const auto& [path, text] = files[i++ % files.size()];
    benchmark::DoNotOptimize(hardware::read_chip(text, path).has_value());
    bytes += static_cast<std::int64_t>(text.size());
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(bytes);
}
BENCHMARK(read_chips);

// From the words of a command line to the answer; printing it is not part of it.
void ask_for_a_roofline(benchmark::State& state) {
  const std::vector<std::string> words = {"roofline", "bf16[B,8192] @ int8[8192,32768] -> bf16[B,32768]", "--on",
                                          "tpu-v5e"};
  for (auto _ : state) {
    const verbs::Request request = required(verbs::parse_request(words));
    benchmark::DoNotOptimize(verbs::ask(request, {catalogue()}).has_value());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ask_for_a_roofline);

}  // namespace

BENCHMARK_MAIN();
