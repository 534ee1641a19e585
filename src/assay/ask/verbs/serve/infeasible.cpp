// Serve's answers where nothing does what was asked: why, what the floor is, and what would do.
#include <fmt/format.h>

#include <cmath>

#include "assay/ask/verbs/serve/serve.h"
#include "assay/base/text.h"

namespace assay::verbs::serve {
namespace {

/// What would do instead: a note that stands on the screen, too.
void advise(report::Response& response, std::string text) {
  response.notes.push_back(text);
  response.important.push_back(std::move(text));
}

void say_narrower(const ServeQuery& query, report::Response& response) {
  const auto narrower = search::narrower_weights(query.question, query.cluster, query.choices);
  if (!narrower) return;
  response.results.emplace_back("would_fit_here", report::Members{{"weights", name(narrower->weights)},
                                                                  {"strategy", strategy_text(narrower->point.strategy)},
                                                                  {"time_per_token", narrower->point.decode.estimate}});
  advise(response, fmt::format("it fits on {} with --weights {}", query.cluster.text, name(narrower->weights)));
}

}  // namespace

void say_too_large(const ServeQuery& query, const serving::ServingPoint& point, const Request& request,
                   const Context& context, report::Response& response) {
  const Bytes weights = bounds_of(query, point.batch).weights;
  double most = point.memory.max_batch;
  if (query.draft)
    most = search::batch_beside_draft(query.question, *query.draft, query.cluster, point.strategy).value_or(0.0);
  const report::SharedUnit unit = report::shared_unit(query.question.chip_memory);
  response.headline =
      fmt::format("does not fit: with {} each chip needs {} and has {}; ", strategy_text(point.strategy),
                  unit.text(point.memory.total().value()), unit.text(query.question.chip_memory.value()));
  if (weights > query.question.chip_memory * query.chips())
    response.headline += fmt::format("weights alone take {}, which needs {} such chips", unit.text(weights.value()),
                                     std::ceil(weights / query.question.chip_memory));
  else if (most >= 1.0)
    response.headline +=
        fmt::format("at most --batch {} fits{}", human_number(most), query.draft ? " with the draft" : "");
  else if (point.memory.max_batch >= 1.0)
    response.headline += "with the draft there is no room for a single sequence";
  else
    response.headline +=
        fmt::format("weights take {} of it, and the rest is too little for one sequence of {} tokens",
                    unit.text(point.memory.weights.value()), query.question.prompt + query.question.output);
  if (context.within) return;
  say_narrower(query, response);
  const auto slice = search::first_slice(slice_question(query, request, context), query.cluster.chips() + 1,
                                         search::ServingGoal::fits);
  if (!slice) {
    advise(response,
           "no larger slice up to 512 chips fits either: use narrower --weights and --kv, or a smaller --batch");
    return;
  }
  response.results.emplace_back("would_fit", report::Members{{"cluster", slice_text(query, slice->slice)},
                                                             {"strategy", strategy_text(slice->point.strategy)},
                                                             {"time_per_token", slice->point.decode.estimate}});
  advise(response, fmt::format("it fits on {}", slice_text(query, slice->slice)));
}

void say_too_slow(const ServeQuery& query, const search::ServingSearch& found, const Request& request,
                  const Context& context, report::Response& response) {
  const Seconds token = found.fastest_token->served.per_token, prompt = found.fastest_prompt->prefill.estimate;
  const Seconds bound = bounds_of(query, found.fastest_token->batch).step();
  std::string missed;
  if (query.step_time && *query.step_time > query.choices.per_token.value_or(*query.step_time))
    missed = fmt::format("--step-time {} is longer than --tpot {}", human(*query.step_time),
                         human(*query.choices.per_token));
  else if (const Seconds given = found.closest->prefill.estimate;
           (query.prefill_time || query.mfu) && given > query.choices.first_token.value_or(given))
    missed = fmt::format("{} is longer than --ttft {}",
                         query.prefill_time ? fmt::format("--prefill-time {}", human(Seconds(given)))
                                            : fmt::format("{} at --mfu {}", human(Seconds(given)), *query.mfu),
                         human(*query.choices.first_token));
  if (!missed.empty()) {  // measured times do not depend on the sharding
    response.headline = missed;
    return;
  }
  const bool late = query.choices.first_token && prompt > *query.choices.first_token;
  if (late)
    missed = fmt::format("--ttft {} is below the minimum of {} ({})", human(*query.choices.first_token),
                         human(Seconds(prompt)), strategy_text(found.fastest_prompt->strategy));
  if (query.choices.per_token && token > *query.choices.per_token)
    missed += fmt::format("{}--tpot {} is below the minimum of {} ({}, batch {}; {} at full memory bandwidth)",
                          missed.empty() ? "" : "; ", human(*query.choices.per_token), human(Seconds(token)),
                          strategy_text(found.fastest_token->strategy), human_number(found.fastest_token->batch),
                          human(bound));
  if (missed.empty()) missed = "each latency limit can be met, but not both at once";
  response.headline = missed;
  response.results.emplace_back("floors",
                                report::Members{{"time_to_first_token", Seconds(prompt)},
                                                {"time_to_first_token_bound", found.fastest_prompt->prefill.lower},
                                                {"time_per_token", Seconds(token)},
                                                {"time_per_token_bound", bound}});
  if (context.within) return;
  const search::SliceQuestion slices = slice_question(query, request, context);
  const auto slice = search::first_meeting_slice(slices, query.cluster.chips());
  if (!slice) {
    advise(response, "no slice of this chip up to 512 chips meets it, even with 4-bit weights");
    if (const auto fastest = search::fastest_slice(slices, late))
      response.results.emplace_back("fastest", report::Members{{"cluster", slice_text(query, fastest->slice)},
                                                               {"strategy", strategy_text(fastest->point.strategy)},
                                                               {"batch", fastest->point.batch},
                                                               {"time_to_first_token", fastest->point.prefill.estimate},
                                                               {"time_per_token", fastest->point.decode.estimate}});
    return;
  }
  const serving::ServingPoint& point = slice->found.point;
  const lower::Formats& formats = slice->formats;
  const std::string text = slice_text(query, slice->found.slice);
  report::Members met{{"cluster", text},
                      {"strategy", strategy_text(point.strategy)},
                      {"batch", point.batch},
                      {"time_to_first_token", point.prefill.estimate},
                      {"time_per_token", point.decode.estimate}};
  const bool other_formats = formats.most() != query.question.setup.formats.most();
  if (other_formats) {
    met.emplace_back("weights", name(formats.weights));
    met.emplace_back("kv", name(formats.kv_cache));
  }
  response.results.emplace_back("would_meet", std::move(met));
  advise(response, fmt::format("{} meets it{}", text,
                               other_formats ? fmt::format(" with --weights {} --kv {}", name(formats.weights),
                                                           name(formats.kv_cache))
                                             : ""));
}

}  // namespace assay::verbs::serve
