#include "assay/verbs/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/verbs/train/software.h"

namespace assay::verbs::train {
namespace {

constexpr std::string_view default_restart = "10min", default_bandwidth = "100GB/s";

/// What a restart needs: every trained weight and its optimizer state once, however many chips hold copies. A master
/// copy that is cast as weights are gathered is the only one.
Bytes checkpoint_bytes(const TrainQuery& query) {
  const lower::Optimizer& optimizer = query.question.setup.optimizer;
  const double weight = optimizer.master && optimizer.cast_when_gathered
                            ? 0.0
                            : storage(query.question.setup.formats.weights, 1.0).value();
  const auto parameters = static_cast<double>(model::parameter_counts(query.imported.model).trained);
  return Bytes(parameters * (weight + optimizer.state_bytes()));
}

/// Of a chip and its share of the system; a limit holds for the chip.
Watts power_of(const TrainQuery& query) {
  const hardware::Power& power = *query.cluster.chip.power;
  const Watts whole = power.system ? power.system->value : power.chip.value;
  return query.power ? whole - (power.chip.value - *query.power) : whole;
}

/// The value of an option that must be above 0.
template <class Q>
Result<Q> positive(std::string_view text, std::string option) {
  ASSAY_TRY(value, parse_as<Q>(text, option));
  if (!(value > Q(0)))
    return fail(std::move(option), fmt::format("{} must be above 0", in_quotes(text)), "give a positive value");
  return value;
}

Result<Goodput> goodput_of(const Request& request, const TrainQuery& query) {
  const auto given = [&](std::string_view option, std::string_view otherwise) {
    return request.value(option).value_or(std::string(otherwise));
  };
  ASSAY_TRY(mtbf, positive<Seconds>(*request.value("mtbf"), "--mtbf"));
  ASSAY_TRY(restart, positive<Seconds>(given("restart", default_restart), "--restart"));
  ASSAY_TRY(bandwidth,
            positive<BytesPerSecond>(given("checkpoint-bandwidth", default_bandwidth), "--checkpoint-bandwidth"));
  Bytes state = checkpoint_bytes(query);
  if (const auto text = request.value("checkpoint-size")) {
    ASSAY_TRY(size, positive<Bytes>(*text, "--checkpoint-size"));
    state = size;
  }
  const Seconds checkpoint = state / bandwidth, every = mtbf / query.question.chips;
  Seconds interval = best_interval(every, checkpoint);
  if (const auto text = request.value("checkpoint-interval")) {
    ASSAY_TRY(wanted, positive<Seconds>(*text, "--checkpoint-interval"));
    interval = wanted;
  }
  return Goodput{useful_share(every, restart, checkpoint, interval), every, checkpoint, interval, restart, state};
}

}  // namespace

double useful_share(Seconds failures_every, Seconds restart, Seconds checkpoint, Seconds interval) {
  const double restarts = std::exp(restart / failures_every);
  return interval / failures_every / (restarts * std::expm1((interval + checkpoint) / failures_every));
}

Seconds best_interval(Seconds failures_every, Seconds checkpoint) {
  // log(1 - t) + t + c falls from c to below 0 as t = T/M goes from 0 to 1.
  const double c = checkpoint / failures_every;
  double low = 0.0, high = 1.0;
  for (int halvings = 0; halvings < 100; ++halvings) {
    const double t = (low + high) / 2.0;
    (std::log1p(-t) + t + c > 0.0 ? low : high) = t;
  }
  return high * failures_every;
}

Result<TrainingRun> training_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost) {
  TrainingRun run;
  run.steps = query.tokens ? *query.tokens / query.batch_tokens : 1.0;
  run.lower = Seconds(run.steps * cost.lower), run.upper = Seconds(run.steps * cost.upper);
  run.time = Seconds(run.steps * cost.estimate);
  if (query.tokens && request.has("mtbf")) {
    ASSAY_TRY(goodput, goodput_of(request, query));
    run.goodput = goodput;
    for (Seconds* time : {&run.lower, &run.time, &run.upper})
      *time = run.ends() ? *time / goodput.goodput : Seconds(std::numeric_limits<double>::infinity());
  }
  if (const hardware::Price* price = hardware::newest_price(query.cluster.chip))
    run.cost = run.time * price->value.value * query.question.chips;
  return run;
}

Result<void> add_run(const Request& request, const TrainQuery& query, const training::TrainingCost& cost,
                     report::Response& response) {
  report::Members& out = response.results;
  const hardware::Chip& chip = query.cluster.chip;
  ASSAY_TRY(run, training_run(request, query, cost));
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
    return {};
  }
  out.emplace_back("training_time", time_range(query, run.lower, run.time, run.upper));
  out.emplace_back("chip_hours", run.time.in(1_h) * query.question.chips);
  if (run.cost) {
    const hardware::Price& price = *hardware::newest_price(chip);
    out.emplace_back("cost", *run.cost);
    response.notes.push_back(fmt::format("cost at {} per chip ({}, {}, {})", human(price.value.value), price.provider,
                                         price.kind, price.date));
  } else {
    out.emplace_back("cost", report::Value());
    response.notes.push_back(fmt::format("no cost: the catalogue has no hourly list price for {}", chip.id));
  }
  if (chip.power) {
    const Watts power = power_of(query);
    out.emplace_back("energy", power * run.time * query.question.chips);
    response.notes.push_back(fmt::format("energy at {} per chip{}", human(power),
                                         chip.power->system ? ", including its share of the system" : ""));
  } else {
    out.emplace_back("energy", report::Value());
    response.notes.push_back(fmt::format("no energy: the power of {} is not published", chip.id));
  }
  return {};
}

}  // namespace assay::verbs::train
