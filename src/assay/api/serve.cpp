// assay serve: prefill and decode of a model, whether it fits, what limits it, and the front of latency against
// throughput.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/api/verbs.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/report/chart.h"
#include "assay/search/serving_search.h"

namespace assay {
namespace {

struct ServeQuery {
  ImportedModel imported;
  Cluster cluster;
  ServingQuestion question;
  ServingChoices choices;
  Dtype compute = Dtype::bf16;
  std::vector<std::string> notes;
};

Result<void> read_count(const Request& request, std::string_view option, std::optional<std::int64_t>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(count, parse_count(*text, fmt::format("--{}", option)));
  out = count;
  return {};
}

Result<void> read_time(const Request& request, std::string_view option, std::optional<double>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(time, parse_as<Seconds>(*text, fmt::format("--{}", option)));
  if (!(time > Seconds(0)))
    return fail(fmt::format("--{}", option), "a latency is more than nothing", "e.g. 50ms");
  out = time.value();
  return {};
}

Result<void> read_dtype(const Request& request, std::string_view option, Dtype& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(dtype, parse_dtype(*text, fmt::format("--{}", option)));
  out = dtype;
  return {};
}

Result<void> read_formats(const Request& request, ServeQuery& query) {
  Formats& formats = query.question.setup.formats;
  formats.weights = query.imported.model.dtype;
  if (facts(formats.weights).bits > 16) formats.weights = Dtype::bf16;
  ASSAY_CHECK(read_dtype(request, "weights", formats.weights));
  ASSAY_CHECK(read_dtype(request, "compute", query.compute));
  formats.compute = query.compute;
  ASSAY_CHECK(read_dtype(request, "kv", formats.kv_cache));
  ASSAY_TRY(rates, kernel_rates(query.cluster.chip, query.compute, "--compute"));
  query.question.setup.rates = rates;
  query.notes.push_back(fmt::format("formats: weights {}, cache {}, products {}; change them with --weights --kv --compute",
                                    name(formats.weights), name(formats.kv_cache), name(query.compute)));
  return {};
}

Result<ServeQuery> read_query(const Request& request, const Context& context) {
  ServeQuery query;
  ASSAY_TRY(imported, load_model(request.arguments().front(), context.catalogue, "MODEL"));
  query.imported = imported;
  ASSAY_TRY(cluster, cluster_of(request, context));
  query.cluster = cluster;
  query.question.capacity = cluster.chip.hbm().capacity.value.value();
  std::optional<std::int64_t> prompt, output;
  ASSAY_CHECK(read_count(request, "prompt", prompt));
  for (const std::string& text : request.values("output"))  // a file name among them is the front end's
    if (const auto count = parse_count(text, "--output")) output = *count;
  query.question.prompt = prompt.value_or(1024), query.question.output = output.value_or(256);
  if (!prompt) query.notes.emplace_back("--prompt not given: 1024 tokens");
  if (!output) query.notes.emplace_back("--output not given: 256 tokens");
  const Transformer& model = query.imported.model;
  const std::int64_t longest = query.question.prompt + query.question.output;
  if (model.max_context > 0 && longest > model.max_context)
    query.notes.push_back(fmt::format("{} + {} tokens are beyond the {} that {} was made for: the times hold, the answers may not",
                                      query.question.prompt, query.question.output, model.max_context, model.id));
  if (const auto text = request.value("prefix-hit")) {
    const auto share = parse_number(*text);
    if (!share || *share < 0.0 || *share >= 1.0)
      return fail("--prefix-hit", fmt::format("{} is not a share from 0 to below 1", in_quotes(*text)), "e.g. 0.5");
    query.question.cached_prompt = *share;
  }
  ServingChoices& c = query.choices;
  ASSAY_CHECK(read_count(request, "batch", c.batch));
  ASSAY_CHECK(read_count(request, "tp", c.tensor));
  ASSAY_CHECK(read_count(request, "pp", c.pipeline));
  ASSAY_CHECK(read_count(request, "ep", c.expert));
  ASSAY_CHECK(read_count(request, "dp", c.data));
  ASSAY_CHECK(read_count(request, "weights-2d", c.second));
  ASSAY_CHECK(read_time(request, "ttft", c.first_token));
  ASSAY_CHECK(read_time(request, "tpot", c.per_token));
  if (const auto text = request.value("cache"))
    c.cache = *text == "heads" ? CacheScheme::heads : *text == "batch" ? CacheScheme::batch : CacheScheme::sequence;
  if (!c.second) c.second = 1;
  Parallelism given;
  given.tensor = c.tensor.value_or(1), given.pipeline = c.pipeline.value_or(1);
  ASSAY_CHECK(check_parallelism(given, model));
  if (c.expert) {
    Parallelism expert;
    expert.expert = expert.data = *c.expert;
    ASSAY_CHECK(check_parallelism(expert, model));
  }
  ASSAY_CHECK(read_formats(request, query));
  return query;
}

std::string strategy_text(const ServingStrategy& s) {
  std::string text;
  const auto part = [&](std::string_view word, std::int64_t n) {
    if (n > 1) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, n);
  };
  part("dp", s.data), part("tp", s.tensor), part("weights-2d", s.second), part("ep", s.expert), part("pp", s.pipeline);
  if (text.empty()) text = "one chip";
  if (s.tensor > 1 && s.scheme.cache != CacheScheme::heads)
    text += s.scheme.cache == CacheScheme::batch ? ", cache by batch" : ", cache by sequence";
  return text;
}

std::string_view cache_name(CacheScheme scheme) {
  return scheme == CacheScheme::heads ? "heads" : scheme == CacheScheme::batch ? "batch" : "sequence";
}

std::string_view limiter_of(const ServingTime& time) {
  if (time.network > time.compute && time.network > time.memory) return "network";
  return time.memory > time.compute ? "memory" : "compute";
}

const Price* price_of(const Chip& chip) {
  const Price* best = nullptr;
  for (const Price& price : chip.prices)
    if (price.kind == "on-demand" && (!best || price.date > best->date)) best = &price;
  return best;
}

/// The batch at which the arithmetic of the layers takes as long as reading their weights.
template <class N>
auto critical_batch(const N& num, const ServeQuery& query) {
  const auto peak = num.given("peak", *peak_rate(query.cluster.chip, query.compute, "--compute"));
  const auto hbm = num.given("hbm bandwidth", *query.cluster.chip.hbm().bandwidth);
  const auto weight = num.given("bytes of a weight", storage(query.question.setup.formats.weights, 1.0), "--weights");
  const auto work = num.given("flops of a weight and token", Flops(2.0), "one multiply and one add");
  double spread = 1.0;
  for (const Layer& layer : query.imported.model.decoder.kinds)
    if (layer.feed_forward && layer.feed_forward->experts > 0)
      spread = std::max(spread, static_cast<double>(layer.feed_forward->experts) /
                                    static_cast<double>(layer.feed_forward->experts_per_token));
  const auto share = num.given("experts over experts per token", spread, "each expert sees that part of the tokens");
  return num.named("critical batch", peak * weight / (work * hbm) * share);
}

Members phase_members(const ServingTime& time, double tokens, double chips) {
  return {{"time", range(Seconds(time.lower), Seconds(time.estimate), Seconds(time.upper))},
          {"tokens_per_second", Tokens(tokens) / Seconds(time.estimate)},
          {"tokens_per_second_per_chip", Tokens(tokens) / Seconds(time.estimate) / chips},
          {"limiter", limiter_of(time)},
          {"compute_time", Seconds(time.compute)},
          {"memory_time", Seconds(time.memory)},
          {"network_time", Seconds(time.network)},
          {"kernels_at_their_rooflines", Seconds(time.rooflines)}};
}

Chart front_chart(const ServeQuery& query, const ServingSearch& found) {
  Chart chart;
  chart.title = fmt::format("{} on {}", query.imported.model.id, query.cluster.text);
  chart.subtitle = fmt::format("decode with {} tokens of prompt and {} of output: the best batch and sharding at every latency",
                               query.question.prompt, query.question.output);
  chart.x = {"time per output token", "s", ScaleKind::log, std::nullopt, NumberStyle::si};
  chart.y = {"tokens per second and chip", "tokens/s", ScaleKind::linear, std::nullopt, NumberStyle::si};
  const auto chips = static_cast<double>(query.cluster.chips());
  ChartSeries line{"front", {}, SeriesStyle::line, 1};
  for (const ServingPoint& point : found.front)
    line.points.push_back({point.decode.estimate, point.tokens_per_second() / chips});
  chart.series.push_back(line);
  const std::size_t every = std::max<std::size_t>(1, found.front.size() / 8);
  for (std::size_t i = 0; i < found.front.size(); i += every) {
    const ServingPoint& point = found.front[i];
    chart.points.push_back({fmt::format("batch {}", human_number(point.batch)), point.decode.estimate,
                            point.tokens_per_second() / chips, 2});
  }
  if (query.choices.per_token) chart.lines.push_back({Orientation::vertical, *query.choices.per_token, "--tpot"});
  return chart;
}

/// What would meet the wishes: the floor of this hardware, and who reaches it.
void say_infeasible(const ServeQuery& query, const ServingSearch& found, Response& response) {
  response.outcome = Outcome::infeasible;
  const ServingPoint& point = *found.closest;
  if (!found.fits) {
    const double total = point.memory.total();
    const double chips = static_cast<double>(query.cluster.chips());
    const double least = point.memory.weights * chips / static_cast<double>(point.strategy.data);
    response.headline = fmt::format(
        "does not fit: with {} a chip needs {} and has {}; the weights of one copy alone take {}, that is {} such chips",
        strategy_text(point.strategy), human(Bytes(total)), human(Bytes(query.question.capacity)), human(Bytes(least)),
        std::ceil(least / query.question.capacity));
    return;
  }
  response.headline = fmt::format(
      "the latencies are not met: the nearest is {} to the first token and {} per token with {}, batch {}",
      human(Seconds(point.prefill.estimate)), human(Seconds(point.decode.estimate)), strategy_text(point.strategy),
      human_number(point.batch));
  response.notes.emplace_back("faster memory, more chips per copy of the model or narrower weights lower the floor");
}

Result<Response> answer(const Request& request, const Context& context) {
  ASSAY_TRY(read, read_query(request, context));
  ServeQuery query = std::move(read);
  query.question.setup.model = &query.imported.model;
  ASSAY_TRY(found, search_serving(query.question, query.cluster, query.choices));
  Response response;
  response.notes = query.imported.notes;
  response.notes.insert(response.notes.end(), query.notes.begin(), query.notes.end());
  if (!found.best && !found.closest)
    return fail("--batch", "no strategy serves a batch as asked", "give fewer of --tp --pp --ep --dp, or another batch");
  const ServingPoint& point = found.best ? *found.best : *found.closest;
  const auto chips = static_cast<double>(query.cluster.chips());
  const ServingStrategy& s = point.strategy;
  Members& out = response.results;
  out.emplace_back("model", query.imported.model.id);
  out.emplace_back("cluster", query.cluster.text);
  out.emplace_back("chips", query.cluster.chips());
  out.emplace_back("batch", point.batch);
  out.emplace_back("strategy", Members{{"dp", s.data},
                                       {"tp", s.tensor},
                                       {"pp", s.pipeline},
                                       {"ep", s.expert},
                                       {"weights_2d", s.second},
                                       {"cache", cache_name(s.scheme.cache)},
                                       {"batch_per_replica", point.batch / static_cast<double>(s.data)}});
  Members prefill = phase_members(point.prefill, static_cast<double>(query.question.prompt * s.data), chips);
  out.emplace_back("prefill", std::move(prefill));
  Members decode = phase_members(point.decode, point.batch, chips);
  decode.front().first = "step_time";
  out.emplace_back("decode", std::move(decode));
  out.emplace_back("memory", Members{{"weights", Bytes(point.memory.weights)},
                                     {"kv_cache", Bytes(point.memory.cache)},
                                     {"workspace", Bytes(point.memory.workspace)},
                                     {"total", Bytes(point.memory.total())},
                                     {"capacity", Bytes(query.question.capacity)},
                                     {"fits", point.memory.total() <= query.question.capacity},
                                     {"max_batch", point.memory.max_batch}});
  out.emplace_back("critical_batch", critical_batch(Plain{}, query));
  // A request costs its prefill and its share of every decode step.
  const auto output = static_cast<double>(query.question.output);
  const double per_request = point.prefill.estimate / static_cast<double>(s.data) + output * point.decode.estimate / point.batch;
  const double tokens_per_second = output / per_request;
  out.emplace_back("with_prefill", Members{{"requests_per_second", 1.0 / per_request},
                                           {"tokens_per_second", TokensPerSecond(tokens_per_second)},
                                           {"time_to_last_token", Seconds(point.prefill.estimate + output * point.decode.estimate)},
                                           {"prefill_servers_per_decode_server",
                                            point.prefill.estimate / static_cast<double>(s.data) * point.batch /
                                                (point.decode.estimate * output)}});
  if (const Price* price = price_of(query.cluster.chip)) {
    const Dollars per_token = price->value.value * Seconds(1.0 / point.tokens_per_second()) * chips;
    out.emplace_back("cost_per_million_tokens", 1e6 * per_token);
    out.emplace_back("cost_per_million_tokens_with_prefill",
                     1e6 * (price->value.value * Seconds(1.0 / tokens_per_second) * chips));
    response.notes.push_back(fmt::format("cost at {} per chip ({}, {}, {})", human(price->value.value), price->provider,
                                         price->kind, price->date));
  }
  Items front;
  for (const ServingPoint& p : found.front) {
    Members row{{"batch", p.batch},
                {"chips", query.cluster.chips()},
                {"latency", Seconds(p.decode.estimate)},
                {"throughput", TokensPerSecond(p.tokens_per_second())},
                {"throughput_per_chip", TokensPerSecond(p.tokens_per_second() / chips)},
                {"ttft", Seconds(p.prefill.estimate)},
                {"strategy", strategy_text(p.strategy)},
                {"limiter", limiter_of(p.decode)}};
    if (const Price* price = price_of(query.cluster.chip))
      row.emplace_back("cost", 1e6 * (price->value.value * Seconds(1.0 / p.tokens_per_second()) * chips));
    front.emplace_back(std::move(row));
  }
  out.emplace_back("pareto", std::move(front));
  out.emplace_back("search", Members{{"points", found.points}});
  response.table_key = "pareto";
  if (request.picture()) response.picture = draw(front_chart(query, found));
  if (request.explain()) {
    const Traced num{&response.ledger};
    const auto critical = critical_batch(num, query);
    const auto step = num.given("decode step", Seconds(point.decode.estimate), "kernels and collectives of the program");
    const auto batch = num.given("batch", Tokens(point.batch), "one token of each sequence");
    const auto n = num.given("chips", chips, query.cluster.text);
    const auto rate = num.named("tokens per second per chip", batch / step / n);
    response.derived = {critical.id, rate.id};
  }
  if (!found.best) {
    say_infeasible(query, found, response);
    return response;
  }
  response.headline = fmt::format("{} to the first token, {} per token, {} with {}, batch {}; {} limits decoding",
                                  human(Seconds(point.prefill.estimate)), human(Seconds(point.decode.estimate)),
                                  human(TokensPerSecond(point.tokens_per_second())), strategy_text(s),
                                  human_number(point.batch), limiter_of(point.decode));
  return response;
}

}  // namespace

VerbSpec serve_verb() {
  return {"serve",
          "predict prefill and decode and find the best way to serve a model",
          "MODEL is an id of the catalogue, a config.json or a directory. What is not given is searched: sharding and "
          "batch. With --batch the fastest way, with --ttft or --tpot the cheapest that meets them, else the most tokens.",
          {{"model", "id, config.json or directory", true}},
          {on_option,
           {"prompt", "N", "tokens of a prompt (default 1024)"},
           {"output", "N", "tokens of an answer (default 256); a file name writes there", true},
           {"batch", "B", "sequences decoded together, over all replicas"},
           {"ttft", "TIME", "longest time to the first token, unloaded"},
           {"tpot", "TIME", "longest time per output token"},
           {"weights", "DTYPE", "of weights (default: as published)"},
           {"kv", "DTYPE", "of the cache (default bf16)"},
           {"compute", "DTYPE", "of products (default bf16)"},
           {"tp", "N", "tensor parallelism"},
           {"pp", "N", "pipeline stages"},
           {"ep", "N", "expert parallelism, a part of dp"},
           {"dp", "N", "replicas, or groups with attention of their own"},
           {"weights-2d", "N", "ways that weights are split in their other direction (default 1)"},
           {"cache", "HOW", "how the cache is split within a tensor-parallel group", false, "heads|batch|sequence"},
           {"prefix-hit", "SHARE", "of the prompt that is cached already"},
           set_option},
          {{"assay serve llama-3-70b --on tpu-v5e:4x4 --prompt 8192 --output 512 --batch 32 --weights int8 --kv int8",
            "one batch"},
           {"assay serve llama-3-70b --on h100-sxm:8 --prompt 1024 --output 256 --tpot 30ms", "the cheapest point"}},
          &answer,
          true};
}

}  // namespace assay
