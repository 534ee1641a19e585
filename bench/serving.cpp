// How fast serving is searched: decode points of prepared strategies, making a strategy's profiles, and a whole front
// of a 70B model over eight kinds of chips. Batches change from one evaluation to the next.
#include <benchmark/benchmark.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "assay/hardware/calibration.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/search/serving/search.h"
#include "assay/predict/serving/step_prices.h"
#include "bench.h"

namespace {

using namespace assay;
using namespace assay::bench;

struct Case {
  model::Transformer model;
  hardware::Cluster cluster;
  serving::ServingQuestion question;

  Case(const std::string& model_id, const std::string& where, bool calibrated)
      : model(required(model::load_model(model_id, catalogue(), "bench")).model),
        cluster(required(hardware::parse_cluster(where, catalogue(), "bench"))) {
    const auto calibration = required(hardware::calibration_of(cluster.chip, catalogue()));
    question.setup.rates = required(kernel::kernel_rates(cluster.chip, Dtype::bf16, "bench",
                                                         calibrated && calibration ? &calibration->values : nullptr));
    if (calibrated && calibration) question.setup.collectives = calibration->values.collective;
    question.prompt = 1024, question.output = 256;
    question.capacity = cluster.chip.hbm().capacity.value;
  }
  /// The question, pointed at this object's model.
  serving::ServingQuestion asked() const {
    serving::ServingQuestion q = question;
    q.setup.model = &model;
    return q;
  }
};

serving::ServingStrategy split(std::int64_t tensor, std::int64_t data = 1) {
  serving::ServingStrategy s;
  s.tensor = tensor, s.data = data;
  return s;
}

void decode_points(benchmark::State& state, const char* model, const char* where, bool calibrated) {
  const Case c(model, where, calibrated);
  const serving::ServingQuestion question = c.asked();
  const serving::ServingStrategy strategy = split(8);
  const training::StageLinks links = required(serving::serving_links(question.setup, strategy, c.cluster));
  const serving::ServingProfiles made = serving::serving_profiles(question, strategy, links);
  constexpr double batches = 1024;
  for (auto _ : state) {
    kernel::TileTables tables;
    serving::ServingProfiles profiles = made;
    for (serving::ServingProfile* profile : {&profiles.decode, &profiles.prefill.profile, &profiles.joined})
      serving::remember_prices(question.setup, tables, *profile);
    for (double batch = 1.0; batch <= batches; ++batch)
      benchmark::DoNotOptimize(serving::serving_point(question, strategy, profiles, links, batch).decode.estimate);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batches));
}
// A thousand batches of a strategy whose prices nobody knows yet.
BENCHMARK_CAPTURE(decode_points, llama_70b_shares, "llama-3-70b", "tpu-v5e:4x2", false);
BENCHMARK_CAPTURE(decode_points, llama_70b_calibrated, "llama-3-70b", "h100-sxm:8", true);
BENCHMARK_CAPTURE(decode_points, mixtral_calibrated, "mixtral-8x22b", "h100-sxm:8", true);
BENCHMARK_CAPTURE(decode_points, deepseek_v3_calibrated, "deepseek-v3", "b200:8", true);

void profiles_of_a_strategy(benchmark::State& state) {
  const Case c("llama-3-70b", "h100-sxm:8", true);
  const serving::ServingQuestion question = c.asked();
  const serving::ServingStrategy strategy = split(8);
  const training::StageLinks links = required(serving::serving_links(question.setup, strategy, c.cluster));
  for (auto _ : state) benchmark::DoNotOptimize(serving::serving_profiles(question, strategy, links).decode.unit);
}
BENCHMARK(profiles_of_a_strategy)->Unit(benchmark::kMicrosecond);

// All slices of eight kinds of chips, all shardings and batches that fit.
void front_over_eight_chips(benchmark::State& state) {
  constexpr std::pair<const char*, std::array<const char*, 4>> chips[] = {
      {"h100-sxm", {"2", "4", "8", "16"}},
      {"h200-sxm", {"1", "2", "4", "8"}},
      {"b200", {"1", "2", "4", "8"}},
      {"mi300x", {"1", "2", "4", "8"}},
      {"a100-sxm-80", {"2", "4", "8", "16"}},
      {"tpu-v5e", {"4x4", "4x8", "8x8", "8x16"}},
      {"tpu-v5p", {"2x2x1", "2x2x2", "2x2x4", "2x4x4"}},
      {"tpu-v6e", {"2x2", "2x4", "4x4", "4x8"}}};
  std::vector<Case> cases;
  for (const auto& [chip, sizes] : chips)
    for (const char* size : sizes) cases.emplace_back("llama-3-70b", std::string(chip) + ":" + size, true);
  std::int64_t points = 0, kept = 0;
  for (auto _ : state) {
    points = kept = 0;
    for (const Case& c : cases) {
      const search::ServingSearch found = required(search::search_serving(c.asked(), c.cluster, {}));
      points += found.points, kept += static_cast<std::int64_t>(found.front.size());
    }
  }
  state.counters["points"] = static_cast<double>(points);
  state.counters["on fronts"] = static_cast<double>(kept);
}
BENCHMARK(front_over_eight_chips)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
