// assay serve: prefill and decode of a model, whether it fits, what limits it, and the front of latency against
// throughput.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/ask/verbs/experts.h"
#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/ranges.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/ask/verbs/verbs.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"

namespace assay::verbs::serve {
namespace {

std::string_view weights_name(lower::WeightScheme scheme) {
  return scheme == lower::WeightScheme::gathered         ? "gathered before use"
         : scheme == lower::WeightScheme::two_dimensions ? "in two directions"
                                                         : "in one direction";
}

/// The mesh axes in their order on the cluster, outermost first: "dp 2, tp 8".
std::string placement_text(const serving::ServingStrategy& strategy) {
  std::vector<std::string> axes;
  for (const program::MeshAxis& axis : training::whole_mesh(strategy.parallelism(), strategy.layout).axes)
    if (axis.size > 1) axes.push_back(fmt::format("{} {}", axis.name, axis.size));
  return join(axes, ", ");
}

/// The batch at which the arithmetic of the layers takes as long as reading their weights.
template <class N>
auto critical_batch(const N& num, const ServeQuery& query) {
  const auto peak = num.given("peak", *hardware::peak_rate(query.cluster.chip, query.compute, "--compute"));
  const auto hbm = num.given("hbm bandwidth", *query.cluster.chip.hbm().bandwidth);
  const auto weight = num.given("bytes of a weight", storage(query.question.setup.formats.most(), 1.0), "--weights");
  const auto dense = peak * weight / (multiply_and_add(num) * hbm);
  return num.named("critical batch", num.times("experts over experts per token", model::most_expert_load(query.model()),
                                               "each expert sees that fraction of the tokens", dense));
}

}  // namespace

report::Members phase_members(const serving::ServingTime& time, report::Members interval, double tokens, double chips) {
  report::Members times = report::range(time.lower, time.estimate, time.upper);
  if (!interval.empty()) times.emplace_back("interval", std::move(interval));
  report::Members out{{"time", std::move(times)},
                      {"tokens_per_second", Tokens(tokens) / time.estimate},
                      {"tokens_per_second_per_chip", Tokens(tokens) / time.estimate / chips},
                      {"limiter", serving::limiter_of(time)},
                      {"compute_time", time.compute},
                      {"memory_time", time.memory},
                      {"network_time", time.network},
                      {"kernels_at_their_rooflines", time.rooflines},
                      {"mfu", time.compute / time.estimate},
                      {"bandwidth_utilisation", time.memory / time.estimate}};
  if (time.attention_bytes > Bytes())
    out.emplace_back("attention_intensity", time.attention_flops / time.attention_bytes);
  return out;
}

namespace {

report::Members prefill_members(const ServeQuery& query, const serving::ServingPoint& point) {
  const auto fresh = serving::fresh_prompt(query.question);
  report::Members out =
      phase_members(point.prefill, step_interval(query, point.strategy, point.prefill, true, point.prompts),
                    static_cast<double>(fresh) * point.prompts, query.chips());
  if (point.prompts != static_cast<double>(point.strategy.data)) out.emplace_back("prompts_at_once", point.prompts);
  if (point.prefill_scheme.weights != point.strategy.scheme.weights)
    out.emplace_back("weights", weights_name(point.prefill_scheme.weights));
  if (point.prefill_scheme.cache != point.strategy.scheme.cache)
    out.emplace_back("cache", cache_name(point.prefill_scheme.cache));
  out.emplace_back("fresh_tokens", Tokens(static_cast<double>(fresh)));
  out.emplace_back("fresh_share", static_cast<double>(fresh) / static_cast<double>(query.question.prompt));
  if (query.mfu && !query.prefill_time) out.emplace_back("time_at_mfu", point.prefill.estimate);
  return out;
}

report::Items front_list(const Request& request, const ServeQuery& query, const search::ServingSearch& found) {
  return report::rows_of(found.front, [&](const serving::ServingPoint& p) {
    const TokensPerSecond rate = p.served.tokens_per_second;
    report::Members row{{"batch", p.batch},
                        {"chips", static_cast<std::int64_t>(query.all_chips(p.strategy))},
                        {"latency", p.served.per_token},
                        {"throughput", rate},
                        {"throughput_per_chip", rate / query.all_chips(p.strategy)},
                        {"ttft", p.prefill.estimate},
                        {"strategy", strategy_text(p.strategy)},
                        {"limiter", serving::limiter_of(p)}};
    if (const auto cost = cost_of_million(query, p, rate)) row.emplace_back("cost", *cost);
    add_plan(request, query, p, row);
    return row;
  });
}

Result<void> add_memory(const ServeQuery& query, const serving::ServingPoint& point,
                        const std::optional<search::Speculation>& speculation, report::Members& out) {
  const Bytes total = point.memory.total() + (speculation ? speculation->draft_memory : Bytes());
  report::Members memory{
      {"weights", point.memory.weights}, {"kv_cache", point.memory.cache}, {"workspace", point.memory.workspace}};
  for (const auto& [part, bytes] :
       {std::pair{"allocator_overhead", point.memory.reserve}, std::pair{"driver_context", point.memory.driver},
        std::pair{"communication_library", point.memory.communication},
        std::pair{"captured_graphs", point.memory.graphs}, std::pair{"prefixes", point.memory.prefixes}})
    if (bytes > Bytes()) memory.emplace_back(part, bytes);
  if (speculation) memory.emplace_back("draft", speculation->draft_memory);
  memory.emplace_back("total", total);
  memory.emplace_back("capacity", query.question.chip_memory);
  memory.emplace_back("margin", query.memory_margin);
  memory.emplace_back("budget", query.question.capacity);
  memory.emplace_back("fits", total <= query.question.chip_memory);
  memory.emplace_back("verdict", memory_verdict(query, total));
  memory.emplace_back("max_batch", speculation ? speculation->max_batch : point.memory.max_batch);
  if (const auto& lengths = query.question.lengths) {
    ASSAY_TRY(links, serving::serving_links(query.question.setup, point.strategy, query.cluster));
    const serving::ServingProfiles profiles = serving::serving_profiles(query.question, point.strategy, links);
    memory.emplace_back("context_in_flight", Tokens(lengths->context));
    memory.emplace_back("mean_kv_cache", point.memory.mean_cache);
    memory.emplace_back("reserved_and_not_used", lengths->waste);
    if (lengths->page > 0) {
      memory.emplace_back("page", Tokens(static_cast<double>(lengths->page)));
      memory.emplace_back("overflow_probability", serving::overflow_probability(query.question, profiles, point.batch));
    }
  }
  out.emplace_back("memory", std::move(memory));
  return {};
}

void add_fits(const ServeQuery& query, const serving::ServingPoint& point, const Request& request,
              const Context& context, report::Members& out) {
  constexpr std::int64_t most_tokens = std::int64_t{1} << 30;
  out.emplace_back("fits", fits_list(query, point.batch));
  if (const auto longest =
          search::longest_context(query.question, query.cluster, point.strategy, point.batch, most_tokens))
    out.emplace_back("longest_context", Tokens(static_cast<double>(*longest)));
  search::SliceQuestion same_batch = slice_question(query, request, context);
  same_batch.choices.batch = static_cast<std::int64_t>(point.batch);
  same_batch.choices.first_token.reset();
  same_batch.choices.per_token.reset();
  if (const auto found = search::first_slice(same_batch, 1, search::ServingGoal::fits))
    out.emplace_back("smallest_slice", report::Members{{"cluster", slice_text(query, found->slice)},
                                                       {"chips", found->point.strategy.chips()},
                                                       {"strategy", strategy_text(found->point.strategy)},
                                                       {"time_per_token", found->point.decode.estimate}});
}

Result<void> explain(const ServeQuery& query, const serving::ServingPoint& point, report::Response& response) {
  const Traced num{&response.ledger};
  const auto critical = critical_batch(num, query);
  ASSAY_TRY(steps, derive_steps(num, query, point));
  const serving::ServedRate& served = point.served;
  const auto step = num.named("mean step", serving::mean_step(num, served.load, steps.mixed, steps.decode));
  const auto rates = serving::steady_rates(num, served.replicas * served.load.requests, served.output, step);
  const auto chips = num.given("chips", query.all_chips(point.strategy), query.cluster.text);
  auto tokens = rates.tokens;
  if (query.question.prefill_servers > 0.0)
    tokens = min(tokens, num.given("output of what is prefilled", served.prefilled * Tokens(served.output),
                                   "--prefill-servers"));
  const auto per_chip = num.named("output tokens per second per chip", tokens / chips);
  const auto first = serving::first_token<Traced>(num, query.question.path, static_cast<double>(query.question.prompt),
                                                  serving::steady_server(query.question, point.strategy, point.batch),
                                                  {steps.mixed, steps.decode, steps.prefill});
  response.derived = {critical.id, per_chip.id, steps.decode.id, steps.prefill.id,
                      num.named("first token", first.time()).id};
  if (const hardware::Price* price = hardware::newest_price(query.cluster.chip)) {
    const auto hourly = num.given("price of a chip", price->value.value, price->value.source);
    response.derived.push_back(serving::cost_of_million_tokens(num, hourly, chips, tokens).id);
  }
  response.derived.push_back(steps.memory.id);
  return {};
}

report::Members strategy_members(const ServeQuery& query, const serving::ServingPoint& point) {
  const serving::ServingStrategy& s = point.strategy;
  report::Members out{{"dp", s.data},
                      {"tp", s.tensor},
                      {"pp", s.pipeline},
                      {"ep", s.expert},
                      {"weights_2d", s.second},
                      {"cache", cache_name(s)},
                      {"batch_per_replica", std::ceil(point.batch / static_cast<double>(s.data))}};
  if (query.redundant_experts > 0) out.emplace_back("redundant_experts", query.redundant_experts);
  if (s.expert > 1) out.emplace_back("ep_over", lower::expert_axes_text(s.parallelism()));
  if (s.second > 1) out.emplace_back("weights", weights_name(s.scheme.weights));
  if (const std::string text = placement_text(s); text.find(',') != std::string::npos)
    out.emplace_back("placement", text);
  return out;
}

/// Adds what the server yields and what tokens cost.
void add_served(const ServeQuery& query, const search::ServingSearch& found, const serving::ServingPoint& point,
                report::Response& response) {
  report::Members& out = response.results;
  out.emplace_back("first_token", first_token_section(query, point));
  out.emplace_back("numbers", origin_rows(query));
  out.emplace_back("served", served_section(query, point));
  out.emplace_back("with_prefill", batching_section(query, found, point));
  out.emplace_back("chip_time_per_token", Seconds(query.chips() * point.decode.estimate / point.batch));
  if (hardware::newest_price(query.cluster.chip))
    out.emplace_back("cost_per_million_tokens", *cost_of_million(query, point, point.served.tokens_per_second));
}

/// Adds the point itself: strategy, both phases, memory, bounds, load and draft.
Result<void> add_point(const ServeQuery& query, const search::ServingSearch& found, const serving::ServingPoint& point,
                       const std::optional<search::Speculation>& speculation, report::Response& response) {
  report::Members& out = response.results;
  out.emplace_back("batch", point.batch);
  add_software(query.software, out);
  out.emplace_back("strategy", strategy_members(query, point));
  out.emplace_back("prefill", prefill_members(query, point));
  report::Members decode = phase_members(
      point.decode, step_interval(query, point.strategy, point.decode, false, point.batch), point.batch, query.chips());
  decode.front().first = "step_time";
  if (const auto cost = cost_of_million(query, point, point.decoded_per_second()))
    decode.emplace_back("cost_per_million_tokens", *cost);
  out.emplace_back("decode", std::move(decode));
  note_intervals(query, point, response);
  note_measured(query, point, response);
  ASSAY_CHECK(add_memory(query, point, speculation, out));
  out.emplace_back("bounds", bounds_section(query, point));
  out.emplace_back("critical_batch", critical_batch(Plain{}, query));
  if (query.question.lengths) ASSAY_CHECK(report::put(out, "lengths", lengths_list(query, point)));
  add_served(query, found, point, response);
  if (query.question.prompts == point.batch) ASSAY_CHECK(report::put(out, "batch_run", batch_section(query, point)));
  if (query.rate && found.fits) {
    ASSAY_CHECK(report::put(out, "load", load_section(query, point, response)));
  }
  if (speculation) out.emplace_back("speculation", speculation_section(query, point, *speculation));
  return {};
}

/// Adds lists, front, sweep, comparison and picture.
Result<void> add_lists(const Request& request, const Context& context, const ServeQuery& query,
                       const search::ServingSearch& found, const serving::ServingPoint& point,
                       report::Response& response) {
  report::Members& out = response.results;
  if (request.has("fits")) add_fits(query, point, request, context, out);
  if (request.has("products")) out.emplace_back("products", balance_list(query, point));
  if (request.has("list")) {
    out.emplace_back("collectives", collectives_list(query, point));
    ASSAY_CHECK(list_steps(query, point, out));
  }
  out.emplace_back("pareto", front_list(request, query, found));
  response.table_key = "pareto";
  if (!query.batches.empty()) {
    ASSAY_TRY(sweep, sweep_list(query, point));
    out.emplace_back("sweep", std::move(sweep));
    response.table_key = "sweep";
  }
  std::vector<Comparison::Front> fronts;
  if (!query.compared.empty() || !query.compared_formats.empty()) {
    ASSAY_TRY(compared, comparison(query, found, request, context));
    fronts = std::move(compared.fronts);
    out.emplace_back("comparison", std::move(compared.best));
    out.emplace_back("front_of_all", std::move(compared.front));
    response.table_key = "comparison";
  }
  out.emplace_back("search", report::Members{{"strategies", found.strategies},
                                             {"placements", found.placements},
                                             {"dropped", found.dropped},
                                             {"points", found.points}});
  std::vector<const hardware::Chip*> chips{&query.cluster.chip};
  for (const Comparison::Front& front : fronts) chips.push_back(&front.query.cluster.chip);
  add_prices(chips, "cost", response);
  const std::string picture = request.value("picture").value_or(query.rate && found.fits ? "load" : "front");
  if (query.prefixes) out.emplace_back("prefix_cache", prefix_section(query, point));
  if (picture == "prefixes" && !query.prefixes)
    return fail("--picture", "there are no requests whose prefixes could be drawn", "add --requests FILE",
                Error::Kind::usage);
  if (picture == "load" && !(query.rate && found.fits))
    return fail("--picture", "there is no load to draw", "add --rate R", Error::Kind::usage);
  if (picture == "cache") out.emplace_back("cache_by_length", cache_rows(query));
  if (request.picture() && picture == "prefixes") {
    response.picture = prefix_picture(query);
  } else if (request.picture() && picture == "load") {
    ASSAY_TRY(scene, load_picture(query, point));
    response.picture = std::move(scene);
  } else if (request.picture() && picture != "drafts") {
    ASSAY_TRY(chart, serve_chart(query, found, point, picture, fronts));
    response.picture = draw::draw(chart);
  }
  return {};
}

/// " at 0.58 USD per million"; empty without a price.
std::string cost_text(const ServeQuery& query, const serving::ServingPoint& point) {
  const auto cost = cost_of_million(query, point, point.served.tokens_per_second);
  return cost ? fmt::format(" at {} per million", human(*cost)) : "";
}

/// The headline, and why nothing does what was asked where nothing does.
void say_outcome(const Request& request, const Context& context, const ServeQuery& query,
                 const search::ServingSearch& found, const serving::ServingPoint& point, const std::string& plan,
                 report::Response& response) {
  if (response.headline.empty())
    response.headline =
        fmt::format("{} to the first token, {} per token, {} of output{} with {}, batch {}; {} limits decoding",
                    human(first_token_of(query, point).time()), human(point.served.per_token),
                    human(point.served.tokens_per_second), cost_text(query, point), plan, human_number(point.batch),
                    serving::limiter_of(point.decode));
  if (!query.impossible.empty()) {
    response.outcome = report::Outcome::infeasible;
    response.results.emplace_back("impossible", query.impossible);
    response.headline = query.impossible;
  } else if (!found.best) {
    response.outcome = report::Outcome::infeasible;
    if (found.fits)
      say_too_slow(query, found, request, context, response);
    else
      say_too_large(query, point, request, context, response);
  }
}

/// The best plan without pipeline stages, where the answered one has stages that share a node: engines rarely run so.
/// Profiles that hold for every batch.
struct ProfilesOfBatches {
  ServeQuery query;
  serving::KnownProfiles profiles{query.question};
  explicit ProfilesOfBatches(const ServeQuery& of) : query(of) { bind(query); }
};

/// Those of this query, made before or now; none where several clusters are asked for.
std::shared_ptr<ProfilesOfBatches> profiles_of(const Request& request, const Context& context,
                                               const ServeQuery& query) {
  if (!query.sizes.empty()) return nullptr;
  if (!context.kept) return std::make_shared<ProfilesOfBatches>(query);
  const std::string text = report::render_json(report::Value(request.without("batch").named_arguments()));
  std::shared_ptr<void>& kept = (*context.kept)["serve " + text];
  if (!kept) kept = std::make_shared<ProfilesOfBatches>(query);
  return std::static_pointer_cast<ProfilesOfBatches>(kept);
}

void add_without_stages(const Request& request, const ServeQuery& query, const serving::ServingPoint& point,
                        serving::KnownProfiles* known, report::Members& out) {
  if (point.strategy.pipeline == 1 || query.choices.pipeline || query.cluster.chips() > query.cluster.chips_per_node)
    return;
  search::ServingChoices choices = query.choices;
  choices.pipeline = 1;
  const auto found = search::search_serving(query.question, query.cluster, choices, search::ServingGoal::best, known);
  if (!found || !found->best) return;
  const serving::ServingPoint& best = *found->best;
  report::Members row{{"strategy", strategy_text(best.strategy)},
                      {"batch", best.batch},
                      {"tokens_per_second", best.served.tokens_per_second},
                      {"gain", best.served.tokens_per_second / point.served.tokens_per_second - 1.0},
                      {"time_per_token", best.served.per_token},
                      {"time_to_first_token", best.prefill.estimate}};
  add_plan(request, query, best, row);
  out.emplace_back("without_stages", std::move(row));
}

}  // namespace

Result<report::Response> answer(const Request& given, const Context& context) {
  ASSAY_TRY(request, to_run(given, context));
  ASSAY_TRY(query, read_serve_query(request, context));
  bind(query);
  if (query.choices.prompts_only) return answer_prompts(query);
  std::optional<search::ServingSearch> search;
  const std::shared_ptr<ProfilesOfBatches> shared = profiles_of(request, context, query);
  serving::KnownProfiles* const known = shared ? &shared->profiles : nullptr;
  if (query.question.setup.rates.hbm.value() > 0.0) {
    ASSAY_TRY(first, search_as_measured(query, known));
    if (!first.best && !first.closest && query.choices.refuses) {
      const auto refuses = std::exchange(query.choices.refuses, nullptr);
      ASSAY_SET(first, search_as_measured(query, known));
      if (const auto& any = first.best ? first.best : first.closest)
        query.notes.push_back(fmt::format("--software {}: {}; every strategy is searched", query.software.text(),
                                          refuses(any->strategy, query.cluster)));
    }
    ASSAY_SET(search, first_that_serves(query, std::move(first), request, context));
  }
  if (search && search->best && !query.sizes.empty()) {
    ASSAY_TRY(range, parse_cluster_range(*request.value("on"), "--on", context.catalogue));
    if (range.coarse)
      return answer(given.with("on", finer_range(range, query.cluster.text, context.catalogue)), context);
  }
  report::Response response;
  response.notes = query.imported.notes;
  response.notes.insert(response.notes.end(), query.notes.begin(), query.notes.end());
  response.important = query.cluster.notes;
  report::Members& out = response.results;
  out.emplace_back("model", query.model().id);
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("chips", query.cluster.chips());
  if (!search) {
    response.outcome = report::Outcome::infeasible;
    response.headline = query.impossible;
    out.emplace_back("impossible", query.impossible);
    return response;
  }
  const search::ServingSearch& found = *search;
  if (!found.best && !found.closest)
    return fail("--batch", "no strategy serves this batch with the given parallelism",
                "leave out some of --tp --pp --ep --dp, or change the batch");
  serving::ServingPoint point = found.best ? *found.best : *found.closest;
  if (query.rate && found.fits) {
    ASSAY_TRY(loaded, best_under_rate(query, found));
    point = loaded.point;
  }
  out.back().second = static_cast<std::int64_t>(query.all_chips(point.strategy));
  if (query.prefixes) ASSAY_CHECK(check_prefix_memory(query, found, point, response));
  std::optional<search::Speculation> speculation;
  if (query.draft && found.fits) ASSAY_SET(speculation, with_draft(query, point, response));
  if (request.picture() && request.value("picture") == "drafts") {
    if (!speculation) return fail("--picture", "nothing is drafted", "add --draft MODEL", Error::Kind::usage);
    response.picture = draw::draw(draft_chart(query, point, *speculation));
  }
  ASSAY_CHECK(add_point(query, found, point, speculation, response));
  ASSAY_CHECK(add_lists(request, context, query, found, point, response));
  ASSAY_TRY(power, power_section(query, context, point));
  if (!power.empty()) response.results.emplace_back("power", std::move(power));
  if (request.explain()) ASSAY_CHECK(explain(query, point, response));
  std::string plan = strategy_text(point.strategy);
  if (query.redundant_experts > 0) plan += fmt::format(", {} redundant experts", query.redundant_experts);
  if (speculation) plan += ", " + draft_text(*query.draft, *speculation);
  say_outcome(request, context, query, found, point, plan, response);
  const bool is_measured = query.step_time || query.prefill_time || query.mfu;
  if (response.outcome == report::Outcome::ok && !is_measured && !query.rate && !context.within) {
    ASSAY_TRY(rows, help_rows(request, context, query, point, known));
    out.emplace_back("helps", std::move(rows));
  }
  if (response.outcome == report::Outcome::ok && !query.rate && !context.within)
    add_without_stages(request, query, point, known, out);
  if (request.has("improve") && found.fits) {
    ASSAY_CHECK(report::put(out, "changes", change_rows(request, query, point)));
    response.table_key = "changes";
  }
  if (request.has("emit") && response.outcome == report::Outcome::ok)
    ASSAY_CHECK(add_launch(request, context, query, point, speculation, response));
  response.screen = serve_screen(request, response, plan);
  return response;
}

}  // namespace assay::verbs::serve
