#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/predict/search/serving/measured.h"
#include "assay/predict/search/serving/speculation.h"
#include "assay/predict/serving/critical_batches.h"
#include "assay/predict/serving/power.h"

namespace assay::verbs::serve {
namespace {

serving::BoundsQuestion bounds_question(const ServeQuery& query) {
  return {query.question, query.chips(), query.compute, query.active, query.parameters_given};
}

}  // namespace

serving::ServingBounds bounds_of(const ServeQuery& query, double batch) {
  return serving::serving_bounds(bounds_question(query), batch);
}

Result<search::ServingSearch> search_as_measured(const ServeQuery& query, serving::KnownProfiles* known) {
  search::MeasuredTimes measured;
  measured.step = query.step_time;
  measured.prefill = query.prefill_time;
  measured.prefill_mfu = query.mfu;
  measured.prefill_flops_per_token = Flops(2.0 * (query.model().encoder ? query.encoder_active : query.active));
  measured.peak = query.question.setup.rates.rate(query.compute);
  return search::search_measured(query.question, query.cluster, query.choices, measured, known);
}

void note_measured(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response) {
  const auto compare = [&](std::string_view option, const serving::ServingTime& time) {
    if (time.estimate >= time.lower) return;
    response.notes.push_back(fmt::format(
        "{} {} is below {}, the lower bound on these chips: was it measured with this model, batch and cluster?",
        option, human(time.estimate), human(time.lower)));
  };
  if (query.step_time) compare("--step-time", point.decode);
  if (query.prefill_time) compare("--prefill-time", point.prefill);
}

report::Members bounds_section(const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingBounds b = bounds_of(query, point.batch);
  const kernel::KernelRates& rates = query.question.setup.rates;
  const Bytes total = b.weights + b.cache, per_sequence = b.cache / point.batch;
  const Seconds full_memory = query.question.chip_memory / rates.hbm;
  const TokensPerSecond rate = Tokens(point.batch) / b.step();
  report::Members out{{"weights", b.weights}, {"weights_read", b.weights_read},
                      {"kv_cache", b.cache},  {"kv_cache_of_a_sequence", per_sequence},
                      {"total", total},       {"chips_for_total", total / query.question.chip_memory}};
  if (per_sequence > Bytes(0)) out.emplace_back("sequences_that_outweigh_weights", std::ceil(b.weights / per_sequence));
  for (auto& member : report::Members{{"weights_time", b.weights_time},
                                      {"kv_cache_time", b.cache_time},
                                      {"memory_time", b.weights_time + b.cache_time},
                                      {"compute_time", b.compute_time},
                                      {"step_time", b.step()},
                                      {"tokens_per_second", rate},
                                      {"tokens_per_second_per_chip", rate / query.chips()},
                                      {"full_memory_time", full_memory},
                                      {"full_memory_time_of_output", static_cast<double>(query.question.output) *
                                                                         query.question.chip_memory / rates.hbm}})
    out.push_back(std::move(member));
  if (const auto network = serving::network_bounds(bounds_question(query), query.cluster.chip, point.batch))
    out.emplace_back("network", report::Members{{"axis_bandwidth", network->axis},
                                                {"hbm_over_network", network->hbm_over_axis},
                                                {"intensity", network->intensity},
                                                {"prefill_tp_limit", network->prefill_ways},
                                                {"decode_tp_limit", network->decode_ways}});
  return out;
}

serving::FirstToken first_token_of(const ServeQuery& query, const serving::ServingPoint& point) {
  return serving::first_token<Plain>(Plain{}, query.question.path, static_cast<double>(query.question.prompt),
                                     serving::steady_server(query.question, point.strategy, point.batch),
                                     {point.served.step.estimate, point.decode.estimate, point.prefill.estimate});
}

report::Members first_token_section(const ServeQuery& query, const serving::ServingPoint& point) {
  const numbers::RequestPath& path = query.question.path;
  const auto prompt = static_cast<double>(query.question.prompt);
  const serving::FirstToken first = first_token_of(query, point);
  report::Members out{{"time", first.time()}};
  // Steps are as uncertain as those of prompts; a way that nobody measured takes any time up to twice the usual one.
  const auto way = [&](double share) {
    numbers::RequestPath one = path;
    for (Given<Seconds>* part : {&one.front_end, &one.tokenising, &one.delivery})
      if (!is_measured_here(part->source)) part->value *= share;
    const double places = serving::steady_server(query.question, point.strategy, point.batch).places;
    return serving::front_end_time(Plain{}, one, prompt) + serving::delivery_time(Plain{}, one, places);
  };
  serving::ServingTime steps = point.prefill;
  steps.estimate = first.waits + first.prompt;
  if (report::Members interval = step_interval(query, point.strategy, steps, true, point.prompts); !interval.empty()) {
    for (auto& [key, value] : interval)
      if (key == "low" || key == "high") value = Seconds(*report::numeric(value)) + way(key == "high" ? 2.0 : 0.0);
    out.emplace_back("interval", std::move(interval));
  }
  for (auto& part : first_token_parts(first)) out.push_back(std::move(part));
  out.emplace_back("of_an_idle_server", serving::front_end_time(Plain{}, path, prompt) + point.prefill.estimate +
                                            serving::delivery_time(Plain{}, path, 1.0));
  return out;
}

namespace {

report::Members disaggregated_members(const ServeQuery& query, const search::PrefillPoint& prompts,
                                      const serving::ServingPoint& point) {
  const serving::DisaggregatedRate rate =
      serving::disaggregated_rate(query.question, point, query.chips(), prompts.prompts_per_second());
  report::Members out{{"prefill_strategy", strategy_text(prompts.strategy)},
                      {"prompts_at_once", prompts.prompts},
                      {"prefill_time", prompts.time.estimate},
                      {"prompts_per_second", prompts.prompts_per_second().value()},
                      {"prefill_servers_per_decode_server", rate.prefill_servers},
                      {"requests_per_second_per_chip", rate.requests_per_chip.value()},
                      {"tokens_per_second_per_chip", rate.tokens_per_chip}};
  if (const auto cost = cost_of_million(query, 1.0, rate.tokens_per_chip))
    out.emplace_back("cost_per_million_tokens", *cost);
  return out;
}

}  // namespace

report::Members served_section(const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServedRate& served = point.served;
  const TokensPerSecond in_and_out =
      served.requests_per_second * Tokens(static_cast<double>(query.question.prompt + query.question.output));
  report::Members out{{"requests_per_second", served.requests_per_second.value()},
                      {"output_tokens_per_second", served.tokens_per_second},
                      {"output_tokens_per_second_per_chip", served.tokens_per_second / query.all_chips(point.strategy)},
                      {"tokens_per_second", in_and_out},
                      {"time_per_token", served.per_token},
                      {"time_to_last_token", serving::phase_balance(query.question, point).last_token},
                      {"mixed_step_time", report::range(served.step.lower, served.step.estimate, served.step.upper)},
                      {"limiter", serving::limiter_of(point)},
                      {"prompt_tokens_per_step", Tokens(served.load.tokens)},
                      {"share_of_steps", served.load.share},
                      {"sequences_per_step", served.replicas * served.load.sequences}};
  if (const auto cost = cost_of_million(query, point, served.tokens_per_second)) {
    out.emplace_back("cost_per_million_output_tokens", *cost);
    out.emplace_back("cost_per_million_tokens", *cost_of_million(query, point, in_and_out));
  }
  return out;
}

Result<report::Members> power_section(const ServeQuery& query, const Context& context,
                                      const serving::ServingPoint& point) {
  ASSAY_TRY(load, serving::power_load_of(context.catalogue));
  const auto power = serving::served_power(query.cluster.chip, query.chips(), load, point);
  if (!power) return report::Members{};
  return report::Members{
      {"chip", power->chip},
      {"share_of_limit", power->chip / power->limit},
      {"energy_of_decode_step", power->decode},
      {"energy_of_output_token", power->token},
      {"output_tokens_per_second_per_watt", (point.served.tokens_per_second / (query.chips() * power->chip)).value()}};
}

Result<report::Members> batch_section(const ServeQuery& query, const serving::ServingPoint& point) {
  ASSAY_TRY(run, serving::batch_run(query.question, point, query.cluster));
  const auto output = static_cast<double>(query.question.output);
  return report::Members{{"sequences_at_once", run.together},
                         {"time", run.time},
                         {"time_per_token", run.time / output},
                         {"tokens_per_second", Tokens(point.batch * output) / run.time}};
}

report::Members batching_section(const ServeQuery& query, const search::ServingSearch& found,
                                 const serving::ServingPoint& point) {
  const serving::PhaseBalance balance = serving::phase_balance(query.question, point);
  report::Members out{{"prefill_servers_per_decode_server", balance.prefill_servers},
                      {"finished_per_step", balance.finished_per_step},
                      {"cache_tokens_freed_per_step", balance.freed_per_step},
                      {"balanced_chunk", balance.balanced_chunk}};
  if (found.most_prompts && found.fits)
    out.emplace_back("disaggregated", disaggregated_members(query, *found.most_prompts, point));
  return out;
}

namespace {

std::string name_of(const search::Draft& draft) { return draft.shares_outer ? "mtp" : draft.model.id; }

}  // namespace

std::string draft_text(const search::Draft& draft, const search::Speculation& found) {
  const std::int64_t length = found.loops[found.best].length;
  return fmt::format("draft {} of {} token{}", name_of(draft), length, length == 1 ? "" : "s");
}

Result<search::Speculation> with_draft(const ServeQuery& query, serving::ServingPoint& point,
                                       report::Response& response) {
  const serving::ServingQuestion& question = query.question;
  const search::Draft& draft = *query.draft;
  const std::string name = name_of(draft);
  ASSAY_TRY(most, search::batch_beside_draft(question, draft, query.cluster, point.strategy));
  if (point.batch > most && (query.choices.batch || most < 1.0)) {
    response.outcome = report::Outcome::infeasible;
    response.headline =
        most < 1.0
            ? fmt::format(
                  "does not fit: with the draft {} there is no room for a single sequence with {}; use a smaller "
                  "draft or more chips",
                  name, strategy_text(point.strategy))
            : fmt::format("does not fit: with the draft {} there is room for --batch {} with {}, not for {}", name,
                          human_number(most), strategy_text(point.strategy), human_number(point.batch));
  } else if (point.batch > most) {
    ASSAY_TRY(links, serving::serving_links(question.setup, point.strategy, query.cluster));
    const serving::ServingProfiles profiles = serving::serving_profiles(question, point.strategy, links);
    response.notes.push_back(
        fmt::format("batch {} instead of the {} that fit without the draft, which needs memory too", human_number(most),
                    human_number(point.batch)));
    serving::ServingPoint fewer = serving::serving_point(question, point.strategy, profiles, links, most);
    fewer.scale(point.step_scale, point.prefill_scale);
    fewer.prompts = point.prompts;
    point = fewer;
  }
  ASSAY_TRY(found, search::speculate(question, draft, query.cluster, point.strategy,
                                     {point.batch, query.acceptance, query.draft_lengths, point.step_scale}));
  found.max_batch = most;
  return found;
}

report::Members speculation_section(const ServeQuery& query, const serving::ServingPoint& point,
                                    const search::Speculation& found) {
  const search::SpeculativeLoop& best = found.loops[found.best];
  const Bytes total = point.memory.total() + found.draft_memory;
  report::Members out{{"draft_length", best.length},
                      {"acceptance", query.acceptance},
                      {"tokens_per_loop", Tokens(best.tokens)},
                      {"draft_step_time", best.draft_step},
                      {"verify_step_time", best.verify_step},
                      {"loop_time", best.loop},
                      {"time_per_token", best.per_token()},
                      {"tokens_per_second", Tokens(point.batch) / best.per_token()},
                      {"speedup", point.decode.estimate / best.per_token()},
                      {"draft_strategy", strategy_text(found.draft_strategy)},
                      {"draft_memory", found.draft_memory},
                      {"fits", total <= query.question.chip_memory}};
  report::Items rows;
  for (const search::SpeculativeLoop& loop : found.loops)
    rows.emplace_back(report::Members{{"draft_length", loop.length},
                                      {"tokens_per_loop", Tokens(loop.tokens)},
                                      {"verify_step_time", loop.verify_step},
                                      {"loop_time", loop.loop},
                                      {"time_per_token", loop.per_token()}});
  if (rows.size() > 1) out.emplace_back("lengths", std::move(rows));
  return out;
}

report::Items collectives_list(const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingProfile profile =
      serving::make_serving_profile(query.question.setup, point.strategy, 1, serving::decode_keys(query.question));
  const double sequences = serving::step_sequences(point.strategy, point.batch);
  report::Items rows;
  for (std::size_t b = 0; b < profile.blocks->size(); ++b) {
    const serving::ServingProfile::Block& block = (*profile.blocks)[b];
    for (const serving::ServedCollective& c : block.collectives) {
      rows.emplace_back(report::Members{{"block", b == 0              ? std::string("embedding")
                                                  : block.last_tokens ? std::string("head")
                                                                      : fmt::format("layer kind {}", b)},
                                        {"layers", block.layers},
                                        {"collective", program::name(c.kind)},
                                        {"over", training::roles_text(c.over)},
                                        {"per_layer", c.count},
                                        {"bytes", c.bytes(sequences)}});
    }
  }
  return rows;
}

report::Items balance_list(const ServeQuery& query, const serving::ServingPoint& point) {
  report::Items rows;
  for (const serving::StepBalance& step :
       serving::step_balance(query.question.setup, point.strategy, serving::decode_keys(query.question).seen.front(),
                             point.batch, serving::decode_keys(query.question).source)) {
    report::Members row{{"block", step.block},
                        {"layers", step.layers},
                        {"product", step.what},
                        {"flops", step.flops},
                        {"bytes", step.bytes},
                        {"intensity", step.flops / step.bytes},
                        {"compute_time", step.compute},
                        {"memory_time", step.memory},
                        {"limiter", step.compute > step.memory ? "compute" : "memory"}};
    if (step.critical)
      row.emplace_back("critical_batch", *step.critical);
    else
      row.emplace_back("critical_batch", "never");
    if (step.experts > 0.0) row.emplace_back("experts_touched", step.touched);
    rows.emplace_back(std::move(row));
  }
  return rows;
}

MemoryTime memory_time(const ServeQuery& query, const serving::ServingTime& step) {
  const Seconds cache = Bytes(step.attention_bytes) / query.question.setup.rates.hbm;
  return {step.memory - cache, cache};
}

Result<report::Items> sweep_list(const ServeQuery& query, const serving::ServingPoint& point) {
  ASSAY_TRY(links, serving::serving_links(query.question.setup, point.strategy, query.cluster));
  const serving::ServingProfiles profiles = serving::serving_profiles(query.question, point.strategy, links);
  return report::rows_of(query.batches, [&](std::int64_t n) {
    const auto batch = static_cast<double>(n);
    serving::ServingPoint p = serving::serving_point(query.question, point.strategy, profiles, links, batch);
    p.scale(point.step_scale, point.prefill_scale);
    const serving::ServingBounds bounds = bounds_of(query, batch);
    const MemoryTime read = memory_time(query, p.decode);
    report::Members row{{"batch", n},
                        {"kv_cache", bounds.cache},
                        {"total", bounds.weights + bounds.cache},
                        {"bound", bounds.step()},
                        {"tokens_per_second_at_bound", Tokens(batch) / bounds.step()},
                        {"step_time", p.decode.estimate},
                        {"tokens_per_second", p.decoded_per_second()},
                        {"served_tokens_per_second", p.served.tokens_per_second},
                        {"compute_time", p.decode.compute},
                        {"memory_time", p.decode.memory},
                        {"weights_time", read.weights},
                        {"cache_time", read.cache},
                        {"network_time", p.decode.network},
                        {"limiter", serving::limiter_of(p.decode)},
                        {"fits", p.memory.total() <= query.question.chip_memory}};
    if (const auto cost = cost_of_million(query, p, p.served.tokens_per_second)) row.emplace_back("cost", *cost);
    return row;
  });
}

}  // namespace assay::verbs::serve
