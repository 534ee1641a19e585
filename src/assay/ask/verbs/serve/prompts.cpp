// What is served prefill only: encoders, whose output is an embedding or a rank, and any model with --output 0.
#include <fmt/format.h>

#include "assay/ask/report/patterns.h"
#include "assay/ask/report/render.h"
#include "assay/ask/verbs/plan_text.h"
#include "assay/ask/verbs/prices.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/base/text.h"

namespace assay::verbs::serve {

Result<void> check_prompts_only(const Request& request, const ServeQuery& query) {
  for (const char* option :
       {"prompt-lengths", "output-lengths", "page",      "most-batch", "prompts", "tpot",    "rate",   "requests",
        "prefix-hit",     "chunk",          "draft",     "compare",    "formats", "vary",    "fits",   "list",
        "products",       "prefill-time",   "step-time", "mfu",        "emit",    "improve", "picture"})
    if (request.has(option))
      return fail(fmt::format("--{}", option),
                  fmt::format("{} reads prompts and generates nothing: there is a prefill alone", query.model().id),
                  "leave it out; --batch is the number of prompts at once, --ttft limits their time",
                  Error::Kind::usage);
  return {};
}

namespace {

report::Screen screen_of(const report::Response& response, const std::string& plan) {
  const report::Reader results(response.results);
  report::Screen screen;
  screen.headline = {{response.headline, report::Tone::strong}};
  std::vector<report::Phrase> line = plan_phrases(plan);
  for (report::Phrase& phrase : report::phrases(results, {"{prompts.at_once} prompts at once"}))
    line.push_back(std::move(phrase));
  add_line(screen, "Plan", std::move(line));
  add_blocks(screen, results, R"(
Memory: {prompts.memory} of {prompts.memory_of_a_chip}
Prefill: {prefill.limiter} | {prefill.mfu%} of the peak | {prefill.tokens_per_second_per_chip} per chip
Alone: {prompts.time_of_one} for a prompt on an idle server)");
  screen.notes = notes_on_options(response);
  screen.notes.insert(screen.notes.end(), response.important.begin(), response.important.end());
  screen.notes.emplace_back("More: --all, --prompt N, --batch N, --ttft TIME");
  return screen;
}

/// A prompt on an idle server, with the way to the engine and back.
Result<Seconds> time_alone(const ServeQuery& query, const serving::ServingStrategy& strategy) {
  ASSAY_TRY(links, serving::serving_links(query.question.setup, strategy, query.cluster));
  const serving::PrefillOption option{
      strategy.scheme,
      serving::make_prompt_profile(query.question.setup, strategy, query.question.prompt, query.question.prompt)};
  const numbers::RequestPath& path = query.question.path;
  return serving::front_end_time(Plain{}, path, static_cast<double>(query.question.prompt)) +
         serving::prefill_time(query.question, strategy, option, links).estimate +
         serving::delivery_time(Plain{}, path, 1.0);
}

}  // namespace

Result<report::Response> answer_prompts(const ServeQuery& query) {
  if (!query.sizes.empty())
    return fail("--on", "prompts alone are answered for one cluster", "name one, e.g. --on " + query.cluster.text);
  report::Response response;
  response.notes = query.imported.notes;
  response.notes.insert(response.notes.end(), query.notes.begin(), query.notes.end());
  response.important = query.cluster.notes;
  report::Members& out = response.results;
  out = {{"model", query.model().id}, {"cluster", query.cluster.text}, {"chips", query.cluster.chips()}};
  const auto cannot = [&](const std::string& why) {
    response.outcome = report::Outcome::infeasible;
    response.headline = why;
    out.emplace_back("impossible", why);
    return response;
  };
  if (!query.impossible.empty()) return cannot(query.impossible);
  ASSAY_TRY(found, search::search_serving(query.question, query.cluster, query.choices));
  if (!found.most_prompts)
    return cannot(fmt::format("no plan on {} holds the weights and a prompt of {} tokens{}", query.cluster.text,
                              query.question.prompt, query.choices.first_token ? " within --ttft" : ""));
  const search::PrefillPoint& point = *found.most_prompts;
  const auto tokens = static_cast<double>(query.question.prompt);
  const TokensPerSecond rate = point.prompts_per_second() * Tokens(tokens);
  const serving::ServingStrategy& s = point.strategy;
  add_software(query.software, out);
  out.emplace_back("strategy", report::Members{{"dp", s.data},
                                               {"tp", s.tensor},
                                               {"pp", s.pipeline},
                                               {"ep", s.expert},
                                               {"weights_2d", s.second},
                                               {"cache", cache_name(s)},
                                               {"batch_per_replica", point.prompts / static_cast<double>(s.data)}});
  report::Members prefill = phase_members(point.time, step_interval(query, s, point.time, true, point.prompts),
                                          tokens * point.prompts, query.chips());
  prefill.emplace_back("fresh_tokens", Tokens(tokens));
  prefill.emplace_back("fresh_share", 1.0);
  prefill.emplace_back("prompts_at_once", point.prompts);
  out.emplace_back("prefill", std::move(prefill));
  ASSAY_TRY(alone, time_alone(query, s));
  report::Members prompts{{"at_once", point.prompts},
                          {"requests_per_second", point.prompts_per_second().value()},
                          {"tokens_per_second", rate},
                          {"time", point.time.estimate},
                          {"time_of_one", alone},
                          {"memory", point.memory},
                          {"memory_of_a_chip", query.question.chip_memory}};
  const auto cost = cost_of_million(query, query.chips(), rate);
  if (cost) prompts.emplace_back("cost_per_million_input_tokens", *cost);
  out.emplace_back("prompts", std::move(prompts));
  add_prices({&query.cluster.chip}, "cost", response);
  response.headline = fmt::format("{} prompts per second, {} of input{}, {} for {} prompts at once with {}",
                                  human_number(point.prompts_per_second().value()), human(rate),
                                  cost ? fmt::format(" at {} per million tokens", human(*cost)) : "",
                                  human(point.time.estimate), human_number(point.prompts), strategy_text(s));
  response.screen = screen_of(response, strategy_text(s));
  return response;
}

}  // namespace assay::verbs::serve
