// Strategies evaluated per second, time and memory each, and the whole search: GPT-3 175B on 4096 A100 80 GB, a batch
// of 4096 sequences of 2048 tokens, over tensor, pipeline, data and sharded data parallelism, interleaving and
// schedules, microbatch, three recompute policies, sequence parallelism, ZeRO stages and overlap.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "assay/model/model_catalogue.h"
#include "assay/predict/search/training/search.h"

namespace {

using namespace assay;

struct Question {
  model::ImportedModel imported;
  hardware::Cluster cluster;
  training::TrainingQuestion question;

  Question()
      : imported(*model::load_model("gpt-3-175b", hardware::Catalogue::builtin(), "bench")),
        cluster(*hardware::parse_cluster("a100-sxm-80:4096", hardware::Catalogue::builtin(), "bench")) {
    question.setup.model = &imported.model;
    question.setup.rates = *kernel::kernel_rates(cluster.chip, Dtype::bf16, "bench");
    question.setup.flash = false;  // so that selective recomputation is a choice of its own
    question.sequences = 4096;
    question.chips = 4096;
  }
};

/// The search without pruning: every strategy is evaluated, except those that recompute what fits when it is kept.
void search(benchmark::State& state) {
  Question q;
  search::TrainingChoices choices;
  choices.context = 1;
  std::int64_t evaluated = 0, considered = 0;
  for (auto _ : state)
    for (bool overlap : {true, false}) {
      q.question.overlap = overlap;
      const auto found = search::search_training(q.question, 2048, q.cluster, choices,
                                                 {q.cluster.chip.hbm().capacity.value, 10, state.range(0) != 0});
      evaluated += found->count.evaluated, considered += found->count.considered;
    }
  state.SetItemsProcessed(evaluated);
  state.counters["considered"] =
      benchmark::Counter(static_cast<double>(considered), benchmark::Counter::kAvgIterations);
}
BENCHMARK(search)->ArgName("pruned")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// One program: lowering a training step with sharded weights, tensor parallelism and expert parallelism, and counting
/// its work.
struct Lowered {
  const model::Transformer& model;
  lower::StageRules stage;
  lower::TrainingPlan plan;

  explicit Lowered(const model::Transformer& of) : model(of) {
    lower::Parallelism p;
    p.fsdp = 64, p.tensor = 8;
    if (has(model, [](const model::Layer& layer) { return layer.feed_forward && layer.feed_forward->experts > 0; }))
      p.expert = 8;
    stage = lower::training_stage(p, model);
    plan.work.sequences = 64, plan.work.queries = plan.work.keys = plan.work.source = 2048;
  }
  std::size_t operator()() const {
    const program::Program program = lower::lower_training(model, stage.mesh, stage.rules, plan);
    benchmark::DoNotOptimize(program::count(program).flops);
    return program.steps.size();
  }
  template <class Test>
  static bool has(const model::Transformer& model, Test test) {
    return std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(), test);
  }
};

void lower(benchmark::State& state, const char* id) {
  const model::ImportedModel imported = *model::load_model(id, hardware::Catalogue::builtin(), "bench");
  const Lowered lowered(imported.model);
  std::size_t steps = 0;
  for (auto _ : state) steps = lowered();
  state.counters["steps"] = static_cast<double>(steps);
}
BENCHMARK_CAPTURE(lower, gpt_3, "gpt-3-175b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower, llama_70b, "llama-3-70b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower, mixtral, "mixtral-8x22b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(lower, deepseek_v3, "deepseek-v3")->Unit(benchmark::kMicrosecond);

/// The slowest model of one family in the catalogue: the time is the best of many tries, the label names it and the
/// next slowest.
enum class Family { dense, experts, state_space, encoder_decoder };

Family family(const model::Transformer& model) {
  if (model.encoder) return Family::encoder_decoder;
  if (Lowered::has(model, [](const model::Layer& layer) { return layer.state_space.has_value(); }))
    return Family::state_space;
  const bool experts = Lowered::has(
      model, [](const model::Layer& layer) { return layer.feed_forward && layer.feed_forward->experts > 0; });
  return experts ? Family::experts : Family::dense;
}

void slowest(benchmark::State& state, Family of) {
  using Clock = std::chrono::steady_clock;
  for (auto _ : state) {
    std::vector<std::pair<double, std::string>> times;
    for (const std::string& id : model::model_ids(hardware::Catalogue::builtin())) {
      const model::ImportedModel imported = *model::load_model(id, hardware::Catalogue::builtin(), "bench");
      if (family(imported.model) != of || !lower::check_lowers(imported.model, "bench")) continue;
      const Lowered lowered(imported.model);
      std::chrono::duration<double> best = std::chrono::seconds(1);
      for (int i = 0; i < 300; ++i) {
        const auto start = Clock::now();
        lowered();
        best = std::min<std::chrono::duration<double>>(best, Clock::now() - start);
      }
      times.emplace_back(best.count(), id);
    }
    std::sort(times.rbegin(), times.rend());
    std::string label = fmt::format("of {}:", times.size());
    const auto under = std::count_if(times.begin(), times.end(), [](const auto& time) { return time.first < 20e-6; });
    for (std::size_t i = 0; i < std::min<std::size_t>(times.size(), 5); ++i)
      label += fmt::format(" {} {:.1f} us,", times[i].second, 1e6 * times[i].first);
    state.SetLabel(label + fmt::format(" {} under 20 us", under));
    state.SetIterationTime(times.front().first);
  }
}
BENCHMARK_CAPTURE(slowest, dense, Family::dense)->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(slowest, experts, Family::experts)->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(slowest, state_space, Family::state_space)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(slowest, encoder_decoder, Family::encoder_decoder)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
