#include "assay/ask/verbs/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/report/figures.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/base/text.h"
#include "assay/profile/compare/explains.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::profile {
namespace {

namespace trace = assay::trace;

Result<Predicted> predicted_training(const Request& request, const Context& context) {
  ASSAY_TRY(sizes, train::train_sizes(request, context));
  const train::SizedTraining& size = sizes.best();
  const search::Candidate* best = size.shown();
  if (!best)
    return fail("--against", "no plan of the request is possible", "ask for it with `assay train`, which says why");
  ASSAY_TRY(steps, compare::training_predictions(size.query.question, size.query.sequence, size.query.cluster,
                                                 best->strategy, best->cost));
  return Predicted{std::move(steps), size.query.cluster.chip.id, size.query.cluster.text, size.query.cluster.chips(),
                   size.fits()};
}

Result<Predicted> predicted_serving(const Request& given, const Context& context) {
  ASSAY_TRY(request, serve::to_run(given, context));
  ASSAY_TRY(query, serve::read_serve_query(request, context));
  serve::bind(query);
  ASSAY_TRY(first, serve::search_as_measured(query));
  ASSAY_TRY(found, serve::first_that_serves(query, std::move(first), request, context));
  if (!found.best && !found.closest)
    return fail("--against", "no plan of the request is possible", "ask for it with `assay serve`, which says why");
  const serving::ServingPoint& point = found.best ? *found.best : *found.closest;
  ASSAY_TRY(steps, serve::listed_steps(query, point));
  kernel::KernelRates& rates = query.question.setup.rates;
  const Seconds launch = rates.regime.launch;
  if (rates.matmul) rates.matmul->droop = 0.0;
  ASSAY_TRY(cool, serve::listed_steps(query, point));
  std::vector<compare::Prediction> predictions{
      compare::serving_prediction(steps.decode, cool.decode, point.decode.estimate, "decode step"),
      compare::serving_prediction(steps.prefill, cool.prefill, point.prefill.estimate, "prefill")};
  for (compare::Prediction& one : predictions) one.launch = launch;
  return Predicted{std::move(predictions), query.cluster.chip.id, query.cluster.text, query.cluster.chips(),
                   found.best.has_value()};
}

/// How often a profile and a prediction have products of each size.
struct ProductCount {
  Flops measured, predicted;
};

/// The part of the products' FLOP that a profile and a prediction have in common, over all of either. A profile may
/// hold several steps.
double common_products(const compare::Prediction& prediction, const compare::MeasuredStep& measured) {
  std::map<std::int64_t, ProductCount> counts;  // products of one size differ by rounding alone
  const auto at = [&](Flops flops) -> ProductCount& {
    return counts[static_cast<std::int64_t>(std::llround(1e4 * std::log(std::max(1.0, flops.value()))))];
  };
  Flops ran, planned;
  for (const compare::MeasuredCall& call : measured.calls)
    if (call.kind == compare::MeasuredCall::Kind::product) at(call.flops).measured += call.flops, ran += call.flops;
  for (const compare::PredictedLine& line : prediction.lines)
    if (line.op == program::Op::product) {
      const Flops flops = static_cast<double>(line.runs) * line.flops;
      at(line.flops).predicted += flops;
      planned += flops;
    }
  const double steps = measured.name.empty() && planned > Flops() ? std::max(1.0, std::round(ran / planned)) : 1.0;
  Flops common;
  for (const auto& [size, count] : counts) common += std::min(count.measured, steps * count.predicted);
  const Flops all = std::max(ran, steps * planned);
  return all > Flops() ? common / all : 0.0;
}

/// Whether a profile looks tokens up as the prediction does: the first stage of a pipeline has no other sign.
bool embeds_alike(const compare::Prediction& prediction, const compare::MeasuredStep& measured) {
  const bool ran = std::any_of(measured.calls.begin(), measured.calls.end(), [](const compare::MeasuredCall& call) {
    return call.names.find("embedding") != std::string::npos && call.names.find("rotary") == std::string::npos;
  });
  const bool planned = std::any_of(prediction.lines.begin(), prediction.lines.end(),
                                   [](const compare::PredictedLine& line) { return line.op == program::Op::embed; });
  return ran == planned;
}

/// Of a decode step and a prefill, or of the stages of a pipeline, the one whose products the profile has.
const compare::Prediction& fitting(const std::vector<compare::Prediction>& steps,
                                   const compare::MeasuredStep& measured) {
  constexpr double embedding = 0.05;  // less than a layer of those that a stage has
  const auto score = [&](const compare::Prediction& one) {
    return common_products(one, measured) + (embeds_alike(one, measured) ? embedding : 0.0);
  };
  const compare::Prediction* best = &steps.front();
  for (const compare::Prediction& one : steps)
    if (score(one) > score(*best)) best = &one;
  return *best;
}

/// Which stage of a pipeline the profile is taken for, and why.
std::string stage_note(const compare::Prediction& prediction) {
  const compare::StageOfPrediction& stage = *prediction.stage;
  bool embeds = false, predicts = false;
  for (const compare::PredictedLine& line : prediction.lines) {
    embeds |= line.op == program::Op::embed;
    predicts |= line.op == program::Op::loss;
  }
  const std::string which = stage.first == stage.last
                                ? fmt::format("stage {}", stage.first)
                                : fmt::format("one of the stages {} to {}", stage.first, stage.last);
  return fmt::format("by its kernels the profile is of {} of {} in the pipeline{}", which, stage.stages,
                     embeds && predicts ? ", with the embedding and the loss"
                     : embeds           ? ", with the embedding"
                     : predicts         ? ", with the loss"
                                        : "");
}

Result<void> check_device(const Query& query, const Predicted& predicted, std::vector<std::string>& notes) {
  const trace::DeviceSummary& summary = query.device().summary;
  if (query.chip && query.chip->id != predicted.chip)
    return fail("--against",
                fmt::format("the request is for {}, and the profile is of {} ({})", predicted.chip, query.chip->id,
                            summary.name.empty() ? "--on" : summary.name),
                fmt::format("ask with --on {}, or say with the profile's own --on which chip it is", query.chip->id));
  if (!query.chip) notes.push_back(fmt::format("the profile is taken to be of the request's chip, {}", predicted.chip));
  if (const auto world = query.traces[query.device().trace].world_size; world && *world != predicted.devices)
    notes.push_back(
        fmt::format("the profiled run has {} ranks, and the request {} devices", *world, predicted.devices));
  return {};
}

/// Products that ran in another format than predicted.
void note_formats(Comparison& comparison) {
  Flops all, other;
  std::string formats;
  for (std::size_t i = 0; i < comparison.measured.calls.size(); ++i) {
    const compare::MeasuredCall& call = comparison.measured.calls[i];
    const std::vector<std::uint32_t>& places = comparison.matching.places(comparison.matching.calls[i]);
    if (call.kind != compare::MeasuredCall::Kind::product || !call.format || places.empty()) continue;
    const auto predicted = comparison.prediction.lines[comparison.matching.order[places.front()]].format;
    if (!predicted) continue;
    all += call.flops;
    if (*predicted == *call.format) continue;
    other += call.flops;
    if (formats.empty()) formats = fmt::format("{} instead of {}", name(*call.format), name(*predicted));
  }
  constexpr double notable = 0.1;
  if (other > notable * all)
    comparison.notes.push_back(fmt::format("{} of the FLOP of products ran in {}: ask with --compute as it ran",
                                           report::percent(other / all), formats));
}

}  // namespace

std::string command_of(const Request& request) {
  std::string out = fmt::format("assay {}", request.verb().name);
  const auto quoted = [](const std::string& word) {
    return word.find_first_of(" {}\"") == std::string::npos ? word : fmt::format("'{}'", word);
  };
  for (const std::string& argument : request.arguments()) out += " " + quoted(argument);
  for (const OptionSpec& option : request.verb().options)
    for (const std::string& value : request.values(option.name))
      out += option.value.empty() ? fmt::format(" --{}", option.name)
                                  : fmt::format(" --{} {}", option.name, quoted(value));
  return out;
}

Result<Request> read_against(const std::string& text, std::string_view where) {
  std::string words(trim(text));
  if (words.starts_with('@')) {
    ASSAY_TRY(bytes, trace::file_bytes(words.substr(1), where));
    words = trim(bytes);
  }
  Result<Request> request = parse_request_text(words);
  if (!request) return within(where, std::move(request).error());
  if (request->verb().name != "train" && request->verb().name != "serve")
    return fail(std::string(where), fmt::format("{} predicts no step that ran", request->verb().name),
                "give a request of train or serve, as on their command lines");
  return request;
}

Result<Predicted> predict(const Request& request, const Context& context) {
  const Context within{context.catalogue, context.surroundings, true};
  return request.verb().name == "train" ? predicted_training(request, within) : predicted_serving(request, within);
}

Result<Comparison> compare_with(const Query& query, const compare::MeasuredStep& measured, const Request& against,
                                const Context& context) {
  ASSAY_TRY(predicted, predict(against, context));
  Comparison out;
  out.command = command_of(against);
  ASSAY_CHECK(check_device(query, predicted, out.notes));
  out.fits = predicted.fits;
  out.measured = measured;
  out.prediction = fitting(predicted.steps, out.measured);
  if (out.prediction.stage) out.notes.push_back(stage_note(out.prediction));
  compare::set_clock(query.vocabulary->clock.settled(trace::seconds(out.measured.busy)), out.prediction);
  out.matching = compare::match(out.measured, out.prediction, *query.vocabulary);
  ASSAY_CHECK(compare::check_prediction(out.measured, out.prediction, out.matching, *query.vocabulary));
  out.waterfall = compare::waterfall(out.measured, out.prediction, out.matching, *query.vocabulary);
  if (out.matching.steps > 1 || out.measured.name.empty())
    out.notes.push_back(fmt::format("no steps are marked: by its {}, the profile holds {}",
                                    out.matching.by_class ? "kernel time" : "layers", out.matching.steps));
  if (out.matching.by_class)
    out.notes.emplace_back(
        "products have no shapes: kernels are matched by what they do, not with single steps of the program");
  if (const auto& host = out.waterfall.host)
    out.notes.push_back(
        fmt::format("host gaps are predicted for {} launches of {} each, as this host takes with the profiler on",
                    std::llround(host->launches), report::short_quantity(std::max(host->forward, host->backward))));
  const bool communicates =
      std::any_of(out.measured.calls.begin(), out.measured.calls.end(),
                  [](const compare::MeasuredCall& call) { return call.work == trace::WorkClass::communication; });
  if (communicates && query.ranks.size() == 1)
    out.notes.emplace_back("with one rank, waiting for other ranks cannot be told from moving data: give all of them");
  note_formats(out);
  return out;
}

std::string against_headline(const Comparison& comparison) {
  const compare::Waterfall& gap = comparison.waterfall;
  const double more = gap.measured / gap.predicted - 1.0;
  return fmt::format("the {} takes {}, {} {} than predicted ({}); {}", comparison.prediction.what,
                     report::short_quantity(gap.measured), report::percent(std::abs(more)),
                     more < 0.0 ? "less" : "more", report::short_quantity(gap.predicted),
                     comparison.matching.by_class
                         ? "without shapes, only classes of kernels are compared"
                         : fmt::format("{} of kernel time is matched", report::percent(gap.matched_share)));
}

void add_against(const Comparison& comparison, const std::vector<Remedy>& remedies, report::Members& out) {
  const compare::Waterfall& gap = comparison.waterfall;
  const std::vector<compare::PredictedLine>& lines = comparison.prediction.lines;
  out.emplace_back("prediction", report::Members{{"command", comparison.command},
                                                 {"step", comparison.prediction.what},
                                                 {"overhead", comparison.prediction.overhead},
                                                 {"communication", comparison.prediction.communication}});
  out.emplace_back("predicted_time", gap.predicted);
  out.emplace_back("measured_time", gap.measured);
  out.emplace_back("matched_by", comparison.matching.by_class ? "class" : "step");
  if (!comparison.matching.by_class) out.emplace_back("matched_share", gap.matched_share);
  out.emplace_back("residual", gap.residual);
  out.emplace_back("residual_share", std::abs(gap.residual / gap.measured));
  report::Items items;
  for (const compare::GapItem& one : gap.items) {
    report::Members row{{"kind", compare::name(one.kind)}, {"class", item_name(one)}};
    if (one.step >= 0) {
      const compare::PredictedLine& line = lines[static_cast<std::size_t>(one.step)];
      row.emplace_back("step", fmt::format("{}: {}", line.block, line.text));
    }
    row.emplace_back("predicted", one.predicted);
    row.emplace_back("measured", one.measured);
    row.emplace_back("difference", one.difference());
    row.emplace_back("kernels", one.kernels);
    if (one.call >= 0)
      row.emplace_back("kernel", kernel_name(comparison.measured.calls[static_cast<std::size_t>(one.call)].kernel));
    if (std::string remedy = remedy_of(one, comparison, remedies); !remedy.empty())
      row.emplace_back("remedy", std::move(remedy));
    items.emplace_back(std::move(row));
  }
  out.emplace_back("gap", std::move(items));
  if (comparison.matching.by_class) return;  // no kernel is known to be one of these
  out.emplace_back("gap_steps", report::rows_of(gap.steps, [&](const compare::StepGap& one) {
                     const compare::PredictedLine& line = lines[one.line];
                     report::Members row{{"block", line.block},
                                         {"step", line.text},
                                         {"class", compare::class_of(line, comparison.matching)},
                                         {"runs", line.runs},
                                         {"ran", one.ran},
                                         {"predicted", static_cast<double>(line.runs) * line.time},
                                         {"measured", one.measured},
                                         {"around", one.around},
                                         {"kernels", one.kernels}};
                     if (one.measured > Seconds(0))
                       row.emplace_back("kernel", kernel_name(comparison.measured.calls[one.call].kernel));
                     return row;
                   }));
}

draw::Scene change_picture(const ChangeStory& story) {
  draw::Timeline timeline;
  timeline.title = story.title;
  timeline.subtitle = story.subtitle;
  timeline.classes = {
      {"whole step", draw::fixed_cost_colour}, {"slower", draw::network_colour}, {"faster", draw::arithmetic_colour}};
  const auto signed_text = [](Seconds by) { return (by > Seconds(0) ? "+" : "") + report::short_quantity(by); };
  Seconds at = story.before;
  const auto bar = [&](std::string lane, Seconds from, Seconds to, std::string label, int colour) {
    timeline.bars.push_back({timeline.lanes.size(), from, to, std::move(label), colour});
    timeline.lanes.push_back({std::move(lane)});
  };
  const auto change = [&](const std::string& what, Seconds by) {
    bar(fmt::format("{} {}", what, signed_text(by)), std::min(at, at + by), std::max(at, at + by), "",
        by > Seconds(0) ? 1 : 2);
    at += by;
  };
  bar(story.from, Seconds(0), story.before, report::short_quantity(story.before), 0);
  constexpr double least = 0.001;  // of the step: what is smaller is drawn as one
  Seconds rest;
  for (const auto& [what, by] : story.changes)
    if (std::abs(by.value()) < least * story.after.value())
      rest += by;
    else
      change(what, by);
  if (rest != Seconds(0)) change("all others", rest);
  bar(story.to, Seconds(0), story.after, report::short_quantity(story.after), 0);
  return draw::draw_timeline(timeline);
}

draw::Scene waterfall_picture(const Comparison& comparison) {
  const compare::Waterfall& gap = comparison.waterfall;
  ChangeStory story{fmt::format("From predicted to measured: {}", comparison.prediction.what),
                    comparison.command,
                    "predicted",
                    "measured",
                    gap.predicted,
                    gap.measured,
                    {}};
  for (const compare::GapItem& one : gap.items) story.changes.emplace_back(item_name(one), one.difference());
  return change_picture(story);
}

}  // namespace assay::verbs::profile
