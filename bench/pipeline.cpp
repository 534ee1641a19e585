// How fast pipeline steps are: the closed form that a search calls and the event simulation that judges it.
// Inputs change from one evaluation to the next, so that the compiler can hoist nothing.
#include "assay/predict/clock/simulation.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>

#include "assay/predict/clock/closed_forms.h"

namespace {

using namespace assay;

constexpr std::array shapes = {clock::PipelineShape{clock::PipelineSchedule::gpipe, 8, 64, 1},
                               clock::PipelineShape{clock::PipelineSchedule::one_f_one_b, 16, 64, 1},
                               clock::PipelineShape{clock::PipelineSchedule::interleaved, 8, 64, 4},
                               clock::PipelineShape{clock::PipelineSchedule::zb_h1, 16, 64, 1},
                               clock::PipelineShape{clock::PipelineSchedule::zb_h2, 8, 64, 1},
                               clock::PipelineShape{clock::PipelineSchedule::zb_v, 16, 64, 1},
                               clock::PipelineShape{clock::PipelineSchedule::dualpipe, 8, 64, 1},
                               clock::PipelineShape{clock::PipelineSchedule::one_f_one_b, 8, 128, 1}};

clock::StageTimes times(std::size_t i) {
  const double grow = 1.0 + static_cast<double>(i % 64) / 64.0;
  return {Seconds(grow), Seconds(1.1 * grow), Seconds(0.9)};
}

void closed_forms(benchmark::State& state) {
  std::size_t i = 0;
  for (auto _ : state) {
    const clock::PipelineShape& shape = shapes[i % shapes.size()];
    benchmark::DoNotOptimize(clock::is_possible(shape));
    benchmark::DoNotOptimize(clock::interval_of_equal_stages(shape, times(i)));
    benchmark::DoNotOptimize(clock::peak_microbatches(shape, 0));
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(closed_forms);

void simulated_operations(benchmark::State& state) {
  const clock::PipelineShape& shape = shapes[static_cast<std::size_t>(state.range(0))];
  state.SetLabel(std::string(clock::schedule_name(shape.schedule)));
  std::size_t i = 0;
  std::int64_t events = 0;
  for (auto _ : state) {
    const clock::PipelineInput input{.shape = shape, .times = {times(i++)}, .transfer = Seconds(0.01)};
    const auto result = clock::simulate_pipeline(input);
    benchmark::DoNotOptimize(result->makespan);
    events += static_cast<std::int64_t>(result->events.size());
  }
  state.SetItemsProcessed(events);
}
BENCHMARK(simulated_operations)->DenseRange(0, static_cast<int>(shapes.size()) - 1);

}  // namespace

BENCHMARK_MAIN();
