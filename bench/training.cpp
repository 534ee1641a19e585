// Strategies evaluated per second, time and memory each, and the whole search: GPT-3 175B on 4096 A100 80 GB, a batch
// of 4096 sequences of 2048 tokens, over tensor, pipeline, data and sharded data parallelism, interleaving and
// schedules, microbatch, three recompute policies, sequence parallelism, ZeRO stages and overlap.
#include <benchmark/benchmark.h>

#include "assay/model/model_catalogue.h"
#include "assay/search/training_search.h"

namespace {

using namespace assay;

struct Question {
  ImportedModel imported;
  Cluster cluster;
  TrainingQuestion question;

  Question()
      : imported(*load_model("gpt-3-175b", Catalogue::builtin(), "bench")),
        cluster(*parse_cluster("a100-sxm-80:4096", Catalogue::builtin(), "bench")) {
    question.setup.model = &imported.model;
    question.setup.rates = *kernel_rates(cluster.chip, Dtype::bf16, "bench");
    question.setup.flash = false;  // so that selective recomputation is a choice of its own
    question.sequences = 4096;
    question.chips = 4096;
  }
};

/// The search without pruning: every strategy is evaluated, but for those that make again what fits when it is kept.
void search(benchmark::State& state) {
  Question q;
  TrainingChoices choices;
  choices.context = 1;
  std::int64_t evaluated = 0, considered = 0;
  for (auto _ : state)
    for (bool overlap : {true, false}) {
      q.question.overlap = overlap;
      const auto found = search_training(q.question, 2048, q.cluster, choices,
                                         q.cluster.chip.hbm().capacity.value.value(), 10, state.range(0) != 0);
      evaluated += found->count.evaluated, considered += found->count.considered;
    }
  state.SetItemsProcessed(evaluated);
  state.counters["considered"] =
      benchmark::Counter(static_cast<double>(considered), benchmark::Counter::kAvgIterations);
}
BENCHMARK(search)->ArgName("pruned")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// One program: lowering a training step with sharded weights and tensor parallelism, and counting its work.
void lower(benchmark::State& state, const char* id, std::int64_t experts) {
  const ImportedModel imported = *load_model(id, Catalogue::builtin(), "bench");
  Parallelism p;
  p.fsdp = 64, p.tensor = 8, p.expert = experts;
  const auto [mesh, rules] = training_stage(p, imported.model);
  TrainingPlan plan;
  plan.work.sequences = 64, plan.work.queries = plan.work.keys = 2048;
  std::size_t steps = 0;
  for (auto _ : state) {
    const Program program = lower_training(imported.model, mesh, rules, plan);
    benchmark::DoNotOptimize(count(program).flops);
    steps = program.steps.size();
  }
  state.counters["steps"] = static_cast<double>(steps);
}
BENCHMARK_CAPTURE(lower, gpt_3, "gpt-3-175b", 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower, llama_70b, "llama-3-70b", 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower, mixtral, "mixtral-8x22b", 8)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower, deepseek_v3, "deepseek-v3", 8)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
