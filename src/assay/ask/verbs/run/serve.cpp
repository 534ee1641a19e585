// assay run serve: prefills and decodes requests on a sharded model, batch by batch.
#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/report/patterns.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/ask/verbs/train/train.h"
#include "assay/base/text.h"
#include "assay/engine/cuda/cuda_server.h"
#include "assay/engine/cuda/load.h"
#include "assay/engine/kernels/blas.h"
#include "assay/engine/program/weights_file.h"
#include "assay/engine/serving/server.h"

namespace assay::verbs::run {
namespace {

struct ServingTask {
  RunText text;
  model::ImportedModel imported;
  engine::NamedArrays weights;
  std::optional<PublishedModel> published;  ///< its weights and model are those above
  engine::ServerOptions options;
  std::vector<engine::Prompt> prompts;
  std::vector<std::string> notes;
  bool is_trained = false;
  const AssayCuda* engine = nullptr;  ///< of a GPU, which draws its own weights unless some are given
  std::optional<std::int64_t> page;   ///< tokens
};

/// How far below the best a token's logit in fp64 may be that a GPU chose in bf16.
constexpr double logit_tolerance = 5e-2;

Result<double> share_of(const Request& request, std::string_view option, double usual, double most) {
  const auto text = request.value(option);
  if (!text) return usual;
  const auto number = parse_number(*text);
  if (!number || !(*number >= 0.0) || *number > most)
    return fail(fmt::format("--{}", option), fmt::format("{} is not a number from 0 to {}", in_quotes(*text), most),
                "");
  return *number;
}

Result<void> read_strategy(const Request& request, const model::Transformer& model, engine::ServerOptions& options) {
  search::TrainingChoices choices;
  ASSAY_CHECK(train::read_choices(request, {}, choices));
  lower::Parallelism& p = options.parallelism;
  ASSAY_SET(p, parallelism_of(choices, model));
  if (p.fsdp > 1) options.scheme.weights = lower::WeightScheme::two_dimensions;
  static constexpr Word<lower::CacheScheme> schemes[] = {{"heads", lower::CacheScheme::heads},
                                                         {"batch", lower::CacheScheme::batch},
                                                         {"sequence", lower::CacheScheme::sequence}};
  std::optional<lower::CacheScheme> cache;
  ASSAY_CHECK(read_word(request, "cache", schemes, cache));
  options.scheme.cache = cache.value_or(lower::CacheScheme::heads);
  return {};
}

/// Prompts of the request, or pieces of the text.
Result<void> read_prompts(const Request& request, ServingTask& task) {
  if (task.published) {
    ASSAY_TRY(wanted, count_or(request, "new-tokens", 16));
    ASSAY_SET(task.prompts, published_prompts(request, *task.published, wanted));
    return {};
  }
  ASSAY_TRY(requests, count_or(request, "requests", 4));
  ASSAY_TRY(length, count_or(request, "prompt-length", 16));
  ASSAY_TRY(wanted, count_or(request, "new-tokens", 16));
  const std::int64_t most_requests = 1000, most_tokens = is_on_gpu(request) ? 131072 : 4096;
  if (requests > most_requests || length + wanted > most_tokens)
    return fail("run", fmt::format("at most {} requests of {} tokens are run", most_requests, most_tokens), "");
  const std::vector<std::string> given = request.values("prompt");
  for (const std::string& prompt : given) task.prompts.push_back({task.text.tokenizer.encode(prompt), wanted});
  const std::int64_t starts = std::ssize(task.text.tokens) - length;
  if (given.empty() && starts < 1)
    return fail("--text", "the text is shorter than a prompt", "give a longer text or a shorter --prompt-length");
  for (std::int64_t i = 0; given.empty() && i < requests; ++i) {
    const auto first = static_cast<std::ptrdiff_t>(engine::mixed(task.options.seed, static_cast<std::uint64_t>(i)) %
                                                   static_cast<std::uint64_t>(starts));
    const auto begin = task.text.tokens.begin() + first;
    // Unless lengths are given, not all are as long: sequences join and leave at different times.
    const std::int64_t shorter = request.has("prompt-length") ? 0 : i % 3, more = request.has("new-tokens") ? 0 : i % 2;
    task.prompts.push_back({{begin, begin + std::max<std::int64_t>(1, length - shorter)}, wanted + more});
  }
  for (const engine::Prompt& prompt : task.prompts)
    if (prompt.tokens.empty()) return fail("--prompt", "a prompt is empty", "");
  return {};
}

/// What the model is served with: strategy, sampling, prompts.
Result<void> prepare_rest(const Request& request, const Context& context, ServingTask& task) {
  const bool on_gpu = is_on_gpu(request);
  engine::ServerOptions& options = task.options;
  ASSAY_CHECK(read_strategy(request, task.imported.model, options));
  ASSAY_TRY(seed, count_or(request, "seed", 1));
  options.seed = static_cast<std::uint64_t>(seed);
  ASSAY_SET(options.slots, count_or(request, "slots", 4));
  ASSAY_SET(options.drafts, count_or(request, "speculate", 0));
  ASSAY_SET(options.draft_layers, count_or(request, "draft-layers", 1));
  constexpr double hottest = 100;
  ASSAY_TRY(temperature, share_of(request, "temperature", 0.0, hottest));
  ASSAY_TRY(top_p, share_of(request, "top-p", 1.0, 1.0));
  options.sampling = {temperature, top_p};
  std::optional<std::int64_t> prefill;
  ASSAY_CHECK(read_count(request, "prefill-tp", prefill));
  if (prefill) {
    options.prefill.emplace().tensor = *prefill;
    ASSAY_CHECK(check_devices(*options.prefill));
    if (on_gpu) return fail("--prefill-tp", "the GPUs of a server process prompts, too", "leave it out");
    if (request.value("engine") == "mpi" && *prefill != options.parallelism.devices())
      return fail("--prefill-tp", "every rank has a device of the prompts and one that decodes",
                  fmt::format("give {}, as there are ranks", options.parallelism.devices()));
  }
  ASSAY_CHECK(read_count(request, "page", task.page));
  ASSAY_CHECK(read_count(request, "threads", options.queue));
  options.forgets = request.has("no-cache");
  if (options.forgets && on_gpu)
    return fail("--no-cache", "on a GPU, sequences have caches", "use --engine virtual", Error::Kind::usage);
  if (options.queue && request.value("engine").value_or("virtual") != "virtual")
    return fail("--threads", "the threads of a server run on virtual devices", "use --engine virtual",
                Error::Kind::usage);
  options.keeps_logits = request.has("logits");
  options.records = request.has("calls") || request.picture() || task.page;
  ASSAY_CHECK(engine::check_server(task.imported.model, options));
  ASSAY_CHECK(read_prompts(request, task));
  if (on_gpu) {
    const lower::Parallelism& p = options.parallelism;
    if (p.devices() > p.tensor * p.data || p.expert > 1)
      return fail("--engine cuda", "the GPUs of a server share its model by --tp, and have replicas of it by --dp",
                  "leave out --fsdp, --cp and --ep, or use --engine virtual");
    if (std::ssize(task.prompts) < p.data)
      return fail("--dp", fmt::format("{} requests are fewer than {} replicas", task.prompts.size(), p.data),
                  "give more --requests, or fewer replicas");
    if (options.parallelism.tensor > 1 && options.scheme.cache != lower::CacheScheme::heads)
      return fail("--cache", "the caches of GPUs are split by heads", "leave it out, or use --engine virtual");
    if (request.has("check") && temperature > 0)
      return fail("--check", "tokens that a GPU samples are not those of fp64", "check greedy ones: --temperature 0");
    ASSAY_SET(task.engine, engine::load_cuda(context.surroundings.programs));
  }
  return {};
}

Result<std::shared_ptr<ServingTask>> prepare_serving(const Request& request, const Context& context) {
  const bool on_gpu = is_on_gpu(request);
  if (!on_gpu || request.has("check")) ASSAY_CHECK(engine::check_blas());
  auto task = std::make_shared<ServingTask>();
  if (request.arguments().size() == 2 && is_published(request.arguments()[1])) {
    ASSAY_SET(task->published, read_published_model(request, context, task->notes));
    task->imported = task->published->imported;
    task->weights = std::move(task->published->weights);
    task->options.ends = task->published->ends;
    task->is_trained = true;
    ASSAY_CHECK(prepare_rest(request, context, *task));
    return task;
  }
  for (const char* option : {"tokens", "logits"})
    if (request.has(option))
      return fail(fmt::format("--{}", option), "goes with the directory of a model that has its weights",
                  "e.g. assay run serve DIR --tokens 1,15043,3186", Error::Kind::usage);
  ASSAY_SET(task->text, read_text(request, context));
  engine::WeightsFile file;
  if (const auto path = request.value("load")) {
    ASSAY_SET(file, engine::read_weights(*path, "--load"));
    ASSAY_SET(task->text.tokenizer, engine::Tokenizer::from_merges(file.facts["merges"], "--load"));
    task->text.tokens = task->text.tokenizer.encode(task->text.text);
    task->is_trained = true;
  }
  ASSAY_SET(task->imported, read_model(request, context, task->text.tokenizer.vocabulary(), task->notes));
  ASSAY_CHECK(prepare_rest(request, context, *task));
  if (!on_gpu || request.has("check") || task->is_trained)
    task->weights = engine::initial_weights(lower::lower_training(task->imported.model, {}, {}, {}),
                                            task->imported.model, task->options.seed);
  if (task->is_trained) {
    ASSAY_CHECK(engine::check_weights(file.weights, task->weights, "--load"));
    task->weights = std::move(file.weights);
  } else {
    task->notes.emplace_back("the weights are random; `assay run train --save` makes others, which --load reads");
  }
  return task;
}

/// The text of tokens, or their numbers where no tokenizer is there; a model on a GPU has more of them than the text.
std::string text_of(const ServingTask& task, std::vector<int> tokens) {
  if (task.published)
    return task.published->tokenizer ? task.published->tokenizer->decode(tokens)
                                     : fmt::format("{}", fmt::join(tokens, ","));
  for (int& token : tokens)
    if (token >= task.text.tokenizer.vocabulary()) token = '?';
  return task.text.tokenizer.decode(tokens);
}

report::Items as_items(const auto& values) {
  report::Items items;
  for (const auto& value : values) items.emplace_back(value);
  return items;
}

report::Items request_rows(const ServingTask& task, const engine::ServerReport& served) {
  report::Items rows;
  for (std::size_t i = 0; i < task.prompts.size(); ++i) {
    const engine::ServedRequest& made = served.requests[i];
    report::Members row{{"prompt", text_of(task, task.prompts[i].tokens)},
                        {"answer", text_of(task, made.tokens)},
                        {"prompt_tokens", static_cast<std::int64_t>(task.prompts[i].tokens.size())},
                        {"new_tokens", static_cast<std::int64_t>(made.tokens.size())},
                        {"started", made.started},
                        {"finished", made.finished}};
    if (task.published) {
      const std::vector<std::int64_t> read(task.prompts[i].tokens.begin(), task.prompts[i].tokens.end());
      const std::vector<std::int64_t> written(made.tokens.begin(), made.tokens.end());
      row.emplace_back("read", as_items(read));
      row.emplace_back("written", as_items(written));
    }
    if (task.options.keeps_logits) {
      report::Items logits;
      for (const std::vector<double>& scores : made.logits) logits.emplace_back(as_items(scores));
      row.emplace_back("logits", std::move(logits));
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

/// Compares with one virtual device: the tokens or, of a GPU, how far the logits of its tokens are from the best.
Result<void> check_tokens(const ServingTask& task, const engine::ServerReport& served, report::Response& response) {
  const model::Transformer& model = task.imported.model;
  bool equal = true;
  if (task.engine) {
    double shortfall = 0;
    for (std::size_t i = 0; i < task.prompts.size(); ++i)
      shortfall = std::max(
          shortfall, engine::largest_shortfall(model, task.weights, task.prompts[i].tokens, served.requests[i].tokens));
    equal = shortfall <= logit_tolerance;
    response.results.emplace_back("largest_shortfall", shortfall);
    response.important.push_back(fmt::format(
        "in fp64 on one virtual device the logits of its tokens are at most {:.1e} below the best", shortfall));
  } else {
    engine::ServerOptions single = task.options;
    single.parallelism = {};
    single.scheme = {};
    single.prefill.reset();
    single.queue.reset();
    single.forgets = false;
    ASSAY_TRY(one, engine::Server(model, task.weights, single).serve(task.prompts));
    for (std::size_t i = 0; i < task.prompts.size(); ++i)
      equal = equal && one.requests[i].tokens == served.requests[i].tokens;
    response.results.emplace_back("tokens_equal", equal);
    response.important.emplace_back(equal ? "one device makes the same tokens" : "one device makes other tokens");
  }
  if (!equal) response.outcome = report::Outcome::check_failed;
  return {};
}

/// What a replica of a server has of the requests and of their slots; all of them, where it is the only one.
struct ReplicaShare {
  std::vector<engine::Prompt> prompts;
  std::int64_t slots = 1;
};

ReplicaShare share_of_replica(const ServingTask& task, engine::Transport* transport) {
  const lower::Parallelism& p = task.options.parallelism;
  if (!task.engine || !transport) return {task.prompts, task.options.slots};
  const auto devices = static_cast<std::size_t>(p.devices() / p.data), replicas = static_cast<std::size_t>(p.data);
  return {engine::own_prompts(task.prompts, {transport->rank() / devices, replicas}),
          (task.options.slots + p.data - 1) / p.data};
}

/// A server on the GPU with room for the requests.
Result<std::unique_ptr<engine::CudaServer>> server_on_gpu(const ServingTask& task, const ReplicaShare& own,
                                                          engine::Transport* transport) {
  engine::CudaServer::Room room;
  room.sequences = std::min<std::int64_t>(own.slots, std::ssize(own.prompts));
  for (const engine::Prompt& prompt : own.prompts) {
    room.prompt = std::max<std::int64_t>(room.prompt, std::ssize(prompt.tokens));
    room.tokens = std::max<std::int64_t>(room.tokens, std::ssize(prompt.tokens) + prompt.wanted + task.options.drafts);
  }
  room.drafts = task.options.drafts;
  room.draft_layers = task.options.draft_layers;
  ASSAY_TRY(server, engine::CudaServer::open(*task.engine, task.imported.model, room, task.options.seed,
                                             {task.options.parallelism, transport}));
  ASSAY_CHECK(server->set_weights(task.weights));
  return std::move(server);
}

report::Members members_of(const ServingTask& task, const engine::ServerReport& served, std::string_view engine) {
  std::int64_t made = 0;
  for (const engine::ServedRequest& one : served.requests) made += std::ssize(one.tokens);
  const engine::ServerOptions& options = task.options;
  const model::Transformer& model = task.imported.model;
  return {{"run", "serve"},
          {"model", model.id},
          {"engine", std::string(engine)},
          {"mesh", program::mesh_text(lower::serving_stage(options.parallelism, options.scheme, model).mesh)},
          {"devices", options.parallelism.devices()},
          {"trained", task.is_trained},
          {"iterations", served.iterations},
          {"prefills", served.prefills},
          {"decodes", served.decodes},
          {"mean_batch", served.mean_batch},
          {"generated", made},
          {"prefill_time", served.prefill_time},
          {"decode_time", served.decode_time},
          {"tokens_per_second", Tokens(static_cast<double>(made)) / (served.prefill_time + served.decode_time)},
          {"moved", served.moved},
          {"predicted_bytes", served.stated}};
}

/// Adds the engine's calls, its threads, the pages of the cache and what one saves, and draws them.
void add_views(const Request& request, const ServingTask& task, const engine::ServerReport& served,
               report::Response& response) {
  if (task.options.forgets) {
    WorkView work = work_view(task.imported.model, task.prompts.front());
    response.results.emplace_back("work", std::move(work.rows));
    if (!work.sentence.empty()) response.important.push_back(std::move(work.sentence));
    if (request.picture()) response.picture = std::move(work.picture);
    return;
  }
  if (task.options.queue) {
    ThreadsView threads = threads_view(served, *task.options.queue);
    response.results.emplace_back("threads", std::move(threads.members));
    for (std::string& sentence : threads.sentences) response.important.push_back(std::move(sentence));
    if (request.picture()) response.picture = std::move(threads.picture);
    return;
  }
  if (request.has("calls")) response.results.emplace_back("calls", call_rows(served));
  if (request.picture()) response.picture = slots_picture(served);
  if (!task.page) return;
  const ServedRun run{task.prompts, served, [&](const std::vector<int>& tokens) { return text_of(task, tokens); }};
  PagesView pages = pages_view(run, *task.page, request.picture());
  response.results.emplace_back("pages", std::move(pages.members));
  if (request.picture() && !pages.frames.empty()) response.picture = pages.frames.back();
  if (request.frames()) response.frames = std::move(pages.frames);
}

Result<report::Response> serve(const Request& request, const Context& context, const ServingTask& task,
                               engine::Transport* transport) {
  const model::Transformer& model = task.imported.model;
  engine::ServerOptions options = task.options;
  options.transport = transport;
  const std::int64_t devices = options.parallelism.devices();
  const ReplicaShare own = share_of_replica(task, transport);
  std::unique_ptr<engine::CudaServer> gpu;
  if (task.engine) {
    ASSAY_SET(gpu, server_on_gpu(task, own, transport));
    options.engine = gpu.get();
    options.transport = gpu->replica();
    options.slots = own.slots;
    options.parallelism = engine::replica_of(options.parallelism);
  }
  ASSAY_TRY(served, engine::Server(model, task.weights, options).serve(own.prompts));
  if (gpu && transport)
    served = engine::joined_reports(*transport, static_cast<std::size_t>(options.parallelism.devices()), served,
                                    task.prompts.size());
  if (served.iterations == 0) return fail("run", "interrupted before the first step", "run it again");
  report::Response response;
  report::Members& out = response.results;
  out = members_of(task, served, gpu ? "cuda" : transport ? "mpi" : "virtual");
  const std::string where =
      gpu ? (devices == 1 ? "one " : fmt::format("{} ", devices)) + gpu->device()
          : fmt::format("{} {}{}", devices, transport ? "rank" : "virtual device", devices == 1 ? "" : "s");
  response.headline =
      fmt::format("{} on {}: {} request{}, {} tokens in {} iterations", model.id, where, task.prompts.size(),
                  task.prompts.size() == 1 ? "" : "s",
                  std::get<std::int64_t>(find_path(report::Value(out), "generated")->data()), served.iterations);
  if (gpu) add_gpu({gpu->device(), gpu->memory(), gpu->network()}, response);
  if (options.drafts > 0) {
    out.emplace_back("drafted", served.drafted);
    out.emplace_back("accepted", served.accepted);
    response.important.push_back(fmt::format("{} of {} drafted tokens were accepted", served.accepted, served.drafted));
  }
  out.emplace_back("requests", request_rows(task, served));
  add_views(request, task, served, response);
  if (served.is_interrupted) {
    const auto finished = std::count_if(served.requests.begin(), served.requests.end(),
                                        [](const engine::ServedRequest& one) { return one.finished > 0; });
    out.emplace_back("interrupted", true);
    response.important.push_back(fmt::format("interrupted{}: {} of {} requests had finished",
                                             transport ? " on a rank, where all stopped" : "", finished,
                                             task.prompts.size()));
  } else if (request.has("check") && (!transport || transport->rank() == 0)) {
    ASSAY_CHECK(check_tokens(task, served, response));
  }
  if (options.prefill) {
    out.emplace_back("handed_over", served.handed);
    out.emplace_back("predicted_cache", served.cached);
    response.important.push_back(
        fmt::format("the devices of the prompts handed over caches of {}; by the model's keys and values, {}",
                    report::short_binary(served.handed), report::short_binary(served.cached)));
  }
  if (served.moved > Bytes(0) || served.stated > Bytes(0))
    response.important.push_back(fmt::format("each device received {} in collectives; the programs say {}",
                                             report::short_binary(served.moved), report::short_binary(served.stated)));
  predict_serving(request, context,
                  {model, options, served, gpu ? gpu->device() : "",
                   transport ? engine::local_rank(*transport) : engine::LocalRank{0, 0, 0}},
                  response);
  response.notes = task.notes;
  response.notes.insert(response.notes.end(), response.important.begin(), response.important.end());
  response.table_key = "requests";
  response.screen = report::described_screen(declared_text("screens/run_serve.txt"), response);
  return response;
}

}  // namespace

Result<report::Response> serve_answer(const Request& request, const Context& context) {
  return run_on_engine(request, context, [&]() -> Result<PreparedRun> {
    ASSAY_TRY(task, prepare_serving(request, context));
    return PreparedRun{task->options.parallelism.devices(), [&request, &context, task](engine::Transport* transport) {
                         return serve(request, context, *task, transport);
                       }};
  });
}

}  // namespace assay::verbs::run
