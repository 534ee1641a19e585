#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <cmath>

#include "assay/base/text.h"

namespace assay::verbs::train {
namespace {

constexpr std::string_view default_restart = "10min", default_bandwidth = "100GB/s";

/// The value of an option that must be above 0.
template <class Q>
Result<Q> positive(std::string_view text, std::string option) {
  ASSAY_TRY(value, parse_as<Q>(text, option));
  if (!(value > Q(0)))
    return fail(std::move(option), fmt::format("{} must be above 0", in_quotes(text)), "give a positive value");
  return value;
}

Result<training::Failures> read_failures(const Request& request, const TrainQuery& query) {
  const auto given = [&](std::string_view option, std::string_view otherwise) {
    return request.value(option).value_or(std::string(otherwise));
  };
  ASSAY_TRY(mtbf, positive<Seconds>(*request.value("mtbf"), "--mtbf"));
  ASSAY_TRY(restart, positive<Seconds>(given("restart", default_restart), "--restart"));
  ASSAY_TRY(bandwidth,
            positive<BytesPerSecond>(given("checkpoint-bandwidth", default_bandwidth), "--checkpoint-bandwidth"));
  training::Failures failures{mtbf / query.question.chips, restart, training::checkpoint_bytes(query.question.setup),
                              bandwidth};
  if (const auto text = request.value("checkpoint-size"))
    ASSAY_SET(failures.checkpoint, positive<Bytes>(*text, "--checkpoint-size"));
  if (const auto text = request.value("checkpoint-interval"))
    ASSAY_SET(failures.checkpoint_interval, positive<Seconds>(*text, "--checkpoint-interval"));
  return failures;
}

}  // namespace

Result<training::TrainingRun> read_run(const Request& request, const TrainQuery& query,
                                       const training::TrainingCost& cost) {
  training::RunQuestion question;
  question.steps = query.tokens ? *query.tokens / query.batch_tokens : 1.0;
  question.chips = query.question.chips;
  if (query.tokens && request.has("mtbf")) ASSAY_SET(question.failures, read_failures(request, query));
  if (const hardware::Price* price = hardware::newest_price(query.cluster.chip)) question.price = price->value.value;
  return training::training_run(cost, question);
}

Result<void> add_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost,
                     report::Response& response) {
  report::Members& out = response.results;
  const hardware::Chip& chip = query.cluster.chip;
  ASSAY_TRY(run, read_run(request, query, cost));
  out.emplace_back("steps", std::ceil(run.steps));
  if (run.goodput) {
    for (const auto& [option, taken] :
         {std::pair{"restart", default_restart}, std::pair{"checkpoint-bandwidth", default_bandwidth}})
      if (!request.has(option)) response.notes.push_back(fmt::format("--{} not given: {}", option, taken));
    out.emplace_back("goodput", report::Members{{"goodput", run.goodput->goodput},
                                                {"failures_every", run.goodput->failures_every},
                                                {"checkpoint_bytes", run.goodput->checkpoint},
                                                {"checkpoint_time", run.goodput->checkpoint_time},
                                                {"checkpoint_interval", run.goodput->checkpoint_interval}});
  }
  if (!run.ends()) {
    for (const char* key : {"training_time", "chip_hours", "cost", "energy"}) out.emplace_back(key, report::Value());
    response.outcome = report::Outcome::infeasible;
    response.notes.push_back(fmt::format(
        "the run never finishes: a failure every {}, {} to restart, and {} between checkpoints",
        human(run.goodput->failures_every), human(run.goodput->restart), human(run.goodput->checkpoint_interval)));
    response.important.push_back(response.notes.back());
    return {};
  }
  out.emplace_back("training_time", time_range(query, run.lower, run.time, run.upper));
  out.emplace_back("chip_hours", run.time.in(1_h) * query.question.chips);
  out.emplace_back("cost", run.cost);
  if (chip.power) {
    const Watts power = training::chip_power(Plain{}, *chip.power, query.power);
    out.emplace_back("energy", training::run_energy<Plain>(power, run.time, query.question.chips));
    response.notes.push_back(fmt::format("energy at {} per chip{}", human(power),
                                         chip.power->system ? ", including its share of the system" : ""));
  } else {
    out.emplace_back("energy", report::Value());
    response.notes.push_back(fmt::format("no energy: the power of {} is not published", chip.id));
  }
  return {};
}

Result<void> explain_run(const Traced& num, const Request& request, const TrainQuery& query,
                         const training::TrainingCost& cost, const NumberOf<Traced, Seconds>& step,
                         std::vector<int>& derived) {
  ASSAY_TRY(run, read_run(request, query, cost));
  if (!run.ends()) return {};
  const auto steps = num.named("steps", num.given("tokens of the run", Tokens(*query.tokens), "--tokens") /
                                            num.given("tokens of a step", Tokens(query.batch_tokens), "--batch"));
  std::optional<NumberOf<Traced, double>> goodput;
  if (run.goodput)
    goodput = num.given("goodput", run.goodput->goodput, "failures, restarts and checkpoints: --mtbf and others");
  const auto time = num.named("training time", training::run_time<Traced>(steps, step, goodput));
  const auto chips = num.given("chips", query.question.chips, query.cluster.text);
  derived.push_back(time.id);
  const hardware::Chip& chip = query.cluster.chip;
  if (const hardware::Price* price = hardware::newest_price(chip)) {
    const auto rate = num.given("price of a chip", price->value.value, hardware::price_source(chip, *price));
    derived.push_back(num.named("cost", training::run_cost<Traced>(time, rate, chips)).id);
  }
  if (chip.power)
    derived.push_back(num.named("energy", training::run_energy<Traced>(
                                              training::chip_power(num, *chip.power, query.power), time, chips))
                          .id);
  return {};
}

}  // namespace assay::verbs::train
