#include "assay/ask/verbs/train/train.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/verbs/interval_members.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/hardware/calibration.h"
#include "assay/predict/numbers/deployment.h"

namespace assay::verbs::train {
namespace {

/// Slowdown of products on a chip whose power is limited.
Result<double> slowdown_of_power(const Request& request, const Context& context, TrainQuery& query) {
  const hardware::Chip& chip = query.cluster.chip;
  const auto text = request.value("power");
  if (!text) return 1.0;
  ASSAY_TRY(limit, parse_as<Watts>(*text, "--power"));
  if (!chip.power) return fail("--power", fmt::format("the catalogue has no power for {}", chip.id), "leave it out");
  ASSAY_TRY(clock, numbers::power_clock_of(context.catalogue));
  const Watts whole = chip.power->chip.value, least = clock.least_share * whole;
  if (limit < least)
    return fail("--power", fmt::format("{} is too little to run {}", human(limit), chip.id),
                fmt::format("from {} to {}", human(least), human(whole)));
  if (limit >= whole) {
    query.notes.push_back(
        fmt::format("--power {} has no effect: {} draws at most {}", human(limit), chip.id, human(whole)));
    return 1.0;
  }
  query.power = limit;
  return clock.slowdown(limit / whole);
}

}  // namespace

Result<void> read_train_software(const Request& request, const Context& context, TrainQuery& query) {
  const hardware::Chip& chip = query.cluster.chip;
  ASSAY_TRY(steps, numbers::steps_of(context.catalogue));
  kernel::SoftwareCase at = kernel::software_case(query.imported.model);
  if (const numbers::Family* family = steps.family(chip)) at.family = family->id;
  at.chip = chip.id;
  at.compute = name(query.compute);
  std::string maker = chip.vendor;
  if (query.imported.model.adapters && query.cluster.chips() <= hardware::chips_per_host(query.cluster)) {
    const std::string tuning = maker + " with adapters";
    ASSAY_TRY(own, kernel::usual_software(context.catalogue, tuning));
    if (!own.empty()) maker = tuning;
  }
  ASSAY_TRY(assumed, read_software_name(request, context, kernel::SoftwareVerb::train, at, maker));
  kernel::TrainingSoftware software;
  ASSAY_CHECK(set_assumed(request, assumed, kernel::training_software_options(), software));
  ASSAY_TRY(calibration, hardware::calibration_of(chip, context.catalogue));
  const bool own_shares = sets_efficiency(request);
  if (own_shares) calibration.reset();
  if (!calibration && request.has("attention-kernel"))
    return fail(
        "--attention-kernel",
        own_shares ? "--set efficiency replaces measured kernels" : fmt::format("{} has no calibration", chip.id),
        "leave it out: attention then uses the efficiencies in the chip's file");
  ASSAY_TRY(slowdown, slowdown_of_power(request, context, query));
  ASSAY_TRY(rates, kernel::kernel_rates(chip, query.compute, "--compute", calibration ? &calibration->values : nullptr,
                                        {software.attention, false, software.pads_vocabulary}));
  const bool tpu = steps.compiled_whole(chip), stated = assumed.named() || !assumed.fusion.empty();
  if (tpu && stated && software.step.fusion != numbers::Fusion::xla)
    query.notes.push_back(fmt::format("{} has no effect: programs for {} are compiled by XLA",
                                      assumed.named() ? "--software " + assumed.text() : "--fusion " + assumed.fusion,
                                      chip.id));
  if (tpu) software.step.fusion = numbers::Fusion::xla;
  if (request.has("capacity")) software.step.fixed_capacity = true;
  training::TrainingSetup& setup = query.question.setup;
  setup.flash = software.flash;
  setup.dropout = software.dropout;
  if (software.shared_master && !request.has("optimizer") && setup.optimizer.master)
    setup.optimizer.cast_when_gathered = true;
  if (software.copies_per_expert) setup.dispatch = training::Dispatch::per_expert;
  query.question.overlap = software.overlap;
  setup.rates = rates;
  setup.effects = steps.effects(chip, software.step);
  ASSAY_CHECK(numbers::apply_deployment(context.catalogue, setup.effects));
  if (query.power)
    setup.effects.product = setup.effects.product *
                            Given<double>(slowdown, fmt::format("--power {} (steps/power.toml)", human(*query.power)));
  if (calibration) query.question.collectives = calibration->values.collective;
  if (!steps.has_steps(chip))
    query.notes.push_back(fmt::format(
        "no training steps were measured on {} chips: the estimate assumes that kernels and collectives are "
        "as fast in a step as on their own",
        chip.architecture));
  query.steps = std::move(steps);
  query.notes.push_back(
      fmt::format("the estimate uses {} and steps/training.toml for {} element-wise work{} ({})",
                  calibration  ? calibration->basis
                  : own_shares ? std::string("the efficiencies of --set")
                               : fmt::format("the efficiencies in chips/{}.toml, which has no calibration,", chip.id),
                  numbers::fusion_names[static_cast<std::size_t>(software.step.fusion)],
                  software.step.captured ? " in captured graphs" : "",
                  assumed.named() ? assumed.text() : "--software, or --fusion --graphs"));
  if (assumed.is_usual)
    query.notes.push_back(
        fmt::format("{} is the usual training software on {} chips: plans that it cannot run are left out (--software)",
                    assumed.text(), chip.vendor));
  if (!assumed.left_out.empty()) query.notes.push_back(fmt::format("the estimate leaves out: {}", assumed.left_out));
  query.software = std::move(assumed);
  return {};
}

report::Members time_range(const TrainQuery& query, Seconds lower, Seconds estimate, Seconds upper) {
  report::Members out = report::range(lower, estimate, upper);
  if (!query.steps) return out;
  const model::Transformer& model = query.imported.model;
  const numbers::AskedAbout about[] = {{&query.steps->unseen_chips, query.cluster.chip.id}};
  if (const auto found =
          numbers::interval_basis(query.steps->time_intervals,
                                  numbers::step_classes(query.steps->family(query.cluster.chip), query.cluster, model),
                                  "steps/training.toml", about))
    out.emplace_back("interval",
                     interval_members(lower, estimate, numbers::step_coordinates(query.cluster, model, query.sequence),
                                      query.cluster.chip.architecture, *found));
  return out;
}

}  // namespace assay::verbs::train
