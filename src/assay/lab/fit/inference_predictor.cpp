#include "assay/lab/fit/inference_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::validate {

namespace {

/// A row below this share of the lower bound cannot be right.
constexpr double faster_than_possible = 0.98;

/// Sequences over all replicas whose caches fit in memory next to the weights.
double fitting_batch(const serving::ServingProfile& profile, Bytes usable) {
  const Bytes left = usable - profile.weights, each = profile.cache + profile.states;
  const double groups = profile.cache_groups;
  return std::max(profile.unit, groups * std::floor(left / each / groups));
}

}  // namespace

Result<InferencePredictor> InferencePredictor::make(const hardware::Catalogue& catalogue) {
  InferencePredictor predictor(catalogue);
  ASSAY_TRY(steps, numbers::serving_steps_of(catalogue));
  predictor.steps = steps;
  return predictor;
}

Result<const Place*> InferencePredictor::place(const InferenceRow& row) {
  return places_.find(row.cluster, {}, row.id);
}

Result<const hardware::Cluster*> InferencePredictor::cluster(const InferenceRow& row) {
  ASSAY_TRY(where, place(row));
  return &where->cluster;
}

bool InferencePredictor::is_possible(const InferenceRow& row) {
  const Result<Prepared*> ready = prepared(row);
  if (!ready) return false;
  return row.measured.value >= faster_than_possible * (*ready)->least.value();
}

bool InferencePredictor::fits(const InferenceRow& row) {
  const Result<Prepared*> ready = prepared(row);
  return ready && row.batch <= (*ready)->fitting;
}

Result<InferencePredictor::Prepared*> InferencePredictor::prepared(const InferenceRow& row) {
  const std::string key = fmt::format("{} {}", row.id, static_cast<int>(row.figure));
  if (const auto known = prepared_.find(key); known != prepared_.end()) return &known->second;
  ASSAY_TRY(where, place(row));
  ASSAY_CHECK(lower::check_parallelism(row.strategy.parallelism(), row.model));
  Prepared made;
  made.place = where;
  const hardware::Calibration* calibration = where->calibration ? &where->calibration->values : nullptr;
  serving::ServingSetup& setup = made.setup;
  setup.model = &row.model;
  setup.formats = row.formats;
  ASSAY_TRY(rates, kernel::kernel_rates(where->cluster.chip, row.formats.compute, row.id, calibration,
                                        {row.software.attention, true, row.software.pads_vocabulary}));
  setup.rates = rates;
  if (calibration) setup.collectives = calibration->collective;
  setup.effects = steps.effects(where->cluster.chip, row.software.step);
  ASSAY_TRY(links, serving::serving_links(setup, row.strategy, where->cluster));
  made.links = links;
  const bool step = row.figure == InferenceFigure::step && row.output <= 1;
  const std::int64_t context = step ? row.prompt : row.prompt + std::max<std::int64_t>(1, row.output / 2);
  if (row.figure == InferenceFigure::loaded_token) {
    made.question.setup = setup;
    made.question.prompt = row.prompt;
    made.question.output = std::max<std::int64_t>(1, row.output);
    if (row.step_tokens > 0.0) made.question.step_tokens = row.step_tokens;
    made.profiles = serving::serving_profiles(made.question, row.strategy, made.links);
  }
  if (row.figure != InferenceFigure::step)
    made.prefill = serving::make_prompt_profile(setup, row.strategy, row.prompt, row.prompt);
  if (row.figure != InferenceFigure::first_token)
    made.decode =
        serving::make_serving_profile(setup, row.strategy, 1, context, step ? context : row.prompt + row.output);
  made.fitting = made.decode
                     ? fitting_batch(*made.decode, row.software.memory.share * where->cluster.chip.hbm().capacity.value)
                     : row.batch;
  made.least =
      serving::serving_time(setup, row.strategy, made.decode ? *made.decode : *made.prefill, made.links, row.batch)
          .lower;
  return &prepared_.emplace(key, std::move(made)).first->second;
}

Result<Seconds> InferencePredictor::operator()(const InferenceRow& row) {
  ASSAY_TRY(ready, prepared(row));
  // In place: a setup holds the sources of all its numbers, and a fit asks for a row thousands of times.
  serving::ServingSetup& setup = ready->setup;
  setup.model = &row.model;
  setup.effects = steps.effects(ready->place->cluster.chip, row.software.step);
  const auto output = static_cast<double>(row.output);
  const auto prefill = [&](double batch) {
    return serving::serving_time(setup, row.strategy, *ready->prefill, ready->links, batch).estimate;
  };
  const auto step = [&](double batch) {
    return serving::serving_time(setup, row.strategy, *ready->decode, ready->links, batch).estimate;
  };
  switch (row.figure) {
    case InferenceFigure::first_token:
      return Seconds(prefill(row.batch));
    case InferenceFigure::step:
      return Seconds(step(row.batch));
    case InferenceFigure::static_token: {
      // Sequences that do not fit wait for others to finish.
      const double together = std::min(row.batch, ready->fitting);
      return Seconds((prefill(row.batch) + row.batch / together * (output - 1.0) * step(together)) / output);
    }
    case InferenceFigure::loaded_token: {
      serving::ServingQuestion& question = ready->question;
      question.setup.model = setup.model;
      question.setup.effects = setup.effects;
      return Seconds(
          serving::served_rate(question, row.strategy, ready->profiles, ready->links, row.batch, step(row.batch))
              .per_token);
    }
    case InferenceFigure::throughput:
      break;
  }
  return fail(row.id, "no fit uses throughputs", "", Error::Kind::internal);
}

}  // namespace assay::validate
