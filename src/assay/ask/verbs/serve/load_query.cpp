#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/ask/verbs/experts.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/serve/serve.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"

namespace assay::verbs::serve {
namespace {

/// A share of the prompt ("0.5", "50%"), or a number of its tokens ("512"). At least the last token is computed, since
/// it yields the next one.
Result<void> read_prefix(const Request& request, ServeQuery& query) {
  const auto text = request.value("prefix-hit");
  if (!text) return {};
  serving::ServingQuestion& question = query.question;
  const auto most = static_cast<double>(question.prompt - 1);
  const bool percent = text->ends_with('%');
  const auto number = parse_number(percent ? text->substr(0, text->size() - 1) : *text);
  double tokens = 0.0;
  if (*text == "1")
    return fail("--prefix-hit", "1 could mean one token or the whole prompt",
                "use 100% for the whole prompt, or 2 or more tokens", Error::Kind::usage);
  if (percent || !number || *number < 1.0 || (*number == 1.0 && text->find('.') != text->npos)) {
    const double share = number ? *number / (percent ? 100.0 : 1.0) : -1.0;
    if (!(share >= 0.0 && share <= 1.0))
      return fail("--prefix-hit", fmt::format("{} is neither a share nor a number of tokens", in_quotes(*text)),
                  "e.g. 0.5, 50% or 512");
    tokens = share * static_cast<double>(question.prompt);
  } else {
    ASSAY_TRY(count, parse_count(*text, "--prefix-hit"));
    if (count > question.prompt)
      return fail("--prefix-hit", fmt::format("{} tokens are more than the prompt of {}", count, question.prompt),
                  fmt::format("at most {}", question.prompt));
    tokens = static_cast<double>(count);
  }
  tokens = std::min(tokens, most);
  question.cached_prompt = tokens / static_cast<double>(question.prompt);
  query.notes.push_back(fmt::format("--prefix-hit: {} of the prompt's {} tokens are cached", human_number(tokens),
                                    human_count(question.prompt)));
  return {};
}

/// Lengths of prompts or outputs; their mean becomes the length in the question.
Result<serving::Lengths> read_lengths(const Request& request, std::string_view option, std::string_view of,
                                      bool mean_given, std::int64_t& mean) {
  const auto text = request.value(option);
  if (!text) return serving::Lengths::fixed(mean);
  const std::string where = fmt::format("--{}", option);
  if (mean_given && !serving::lengths_need_mean(*text))
    return fail(where, fmt::format("{} has its own mean, and --{} gives another", in_quotes(*text), of),
                fmt::format("leave --{} out, or use lognormal:SIGMA or exponential around it", of), Error::Kind::usage);
  ASSAY_TRY(lengths, serving::parse_lengths(*text, mean, where));
  return lengths;
}

/// Pages, and lengths that differ.
Result<void> read_distributions(const Request& request, bool prompt_given, bool output_given, ServeQuery& query) {
  serving::ServingQuestion& question = query.question;
  std::optional<std::int64_t> page;
  ASSAY_CHECK(read_count(request, "page", page));
  if (request.has("overflow") && !page)
    return fail("--overflow", "it needs a paged cache, and --page is not given", "add --page 16", Error::Kind::usage);
  ASSAY_CHECK(read_share(request, "overflow", question.overflow, false));
  if (question.overflow <= 0.0) return fail("--overflow", "it must be above 0", "e.g. 0.01");
  if (!page && !request.has("prompt-lengths") && !request.has("output-lengths") && !query.prefixes) return {};
  ASSAY_TRY(prompts, read_lengths(request, "prompt-lengths", "prompt", prompt_given, question.prompt));
  ASSAY_TRY(outputs, read_lengths(request, "output-lengths", "output", output_given, question.output));
  if (query.prefixes) {
    std::vector<std::int64_t> in, out;
    for (const serving::TracedRequest& one : query.prefixes->requests->trace.requests)
      in.push_back(one.prompt), out.push_back(one.output);
    prompts = serving::Lengths::sampled(std::move(in));
    if (!output_given) outputs = serving::Lengths::sampled(std::move(out));
  }
  // Distributions without an end are cut where the model's context ends.
  const std::int64_t limit = query.model().max_context;
  const auto open = [&](std::string_view option) {
    const auto text = request.value(option);
    return text && (serving::lengths_need_mean(*text) || text->starts_with('p'));
  };
  const bool apart = query.model().encoder.has_value();  // prompts and outputs do not share a context
  if (limit > 0 && !request.has("stretch")) {
    if (open("output-lengths") &&
        outputs.cut(apart ? limit : std::max<std::int64_t>(1, limit - std::min(limit / 2, prompts.largest()))))
      query.notes.push_back(
          fmt::format("outputs are truncated at {} tokens, the end of the context", outputs.largest()));
    if (open("prompt-lengths") && prompts.cut(apart ? limit : limit - outputs.largest()))
      query.notes.push_back(
          fmt::format("prompts are truncated at {} tokens, the end of the context", prompts.largest()));
  }
  question.prompt = std::max<std::int64_t>(1, std::llround(prompts.mean()));
  question.output = std::max<std::int64_t>(1, std::llround(outputs.mean()));
  question.lengths = serving::request_lengths(prompts, outputs, page.value_or(0));
  if (!page && !(prompts.is_fixed() && outputs.is_fixed()))
    query.notes.push_back(
        fmt::format("--page not given: each sequence reserves memory for the longest request, {} tokens",
                    prompts.largest() + outputs.largest()));
  if (page && !request.has("overflow"))
    query.notes.emplace_back("--overflow not given: pages may run out 1 % of the time");
  return {};
}

/// Prompts that are processed together. Loads and chunks say themselves how prompts come.
Result<void> read_prompts(const Request& request, ServeQuery& query) {
  std::optional<std::int64_t> prompts;
  ASSAY_CHECK(read_count(request, "prompts", prompts));
  if (!prompts) return {};
  for (const char* option : {"rate", "chunk"})
    if (request.has(option))
      return fail("--prompts", fmt::format("with --{}, prompts are processed as they come", option),
                  "leave --prompts out", Error::Kind::usage);
  if (const auto& batch = query.choices.batch; batch && *prompts > *batch)
    return fail("--prompts", fmt::format("{} prompts are more than the batch of {}", *prompts, *batch),
                fmt::format("at most {}", *batch));
  query.question.prompts = static_cast<double>(*prompts);
  return {};
}

Result<void> read_rate(const Request& request, ServeQuery& query) {
  for (const char* option : {"simulate", "prefill-servers"})
    if (request.has(option) && !request.has("rate"))
      return fail(fmt::format("--{}", option), "it needs a request rate, and --rate is not given", "add --rate 10",
                  Error::Kind::usage);
  ASSAY_SET(query.rate, request_rate(request));
  if (!query.rate) return {};
  std::optional<std::int64_t> servers;
  ASSAY_CHECK(read_count(request, "prefill-servers", servers));
  query.question.prefill_servers = static_cast<double>(servers.value_or(0));
  ASSAY_CHECK(read_count(request, "simulate", query.simulated_requests));
  constexpr std::int64_t most = 1'000'000;
  if (query.simulated_requests && *query.simulated_requests > most)
    return fail("--simulate", fmt::format("more than {} requests", human_count(most)), "20k are usually enough");
  return {};
}

}  // namespace

Result<std::optional<Hertz>> request_rate(const Request& request) {
  const auto text = request.value("rate");
  if (!text) return std::nullopt;
  std::string_view number = *text;
  if (number.ends_with("/s")) number.remove_suffix(2);
  const auto rate = parse_number(trim(number));
  if (!rate || !(*rate > 0.0) || *rate > 1e9)
    return fail("--rate",
                fmt::format("{} is not a number of requests per second above 0 and up to 1e9", in_quotes(*text)),
                "e.g. 10 or 2.5/s");
  return Hertz(*rate);
}

Result<void> read_serve_load(const Request& request, ServeQuery& query) {
  std::optional<std::int64_t> prompt, output;
  ASSAY_CHECK(read_count(request, "prompt", prompt));
  for (const std::string& text : request.values("output")) {
    if (names_output_file(text)) continue;  // the front end's
    if (trim(text) == "0") {
      query.choices.prompts_only = true;
      continue;
    }
    if (!parse_count(text, "--output") && !parse_number(text))
      return fail(
          "--output", fmt::format("{} is neither a number of tokens nor a file", in_quotes(text)),
          "write just a number, e.g. 512; a file name ends in .txt, .json, .csv, .md or .svg, or contains a slash",
          Error::Kind::usage);
    ASSAY_SET(output, parse_count(text, "--output"));
  }
  const bool prompts_only = query.choices.prompts_only;
  if (prompts_only) ASSAY_CHECK(check_prompts_only(request, query));
  if (query.is_encoder && output)
    return fail("--output", fmt::format("{} is an encoder and generates no text", query.model().id), "leave it out");
  const std::int64_t usual = query.is_encoder && query.model().max_context > 0
                                 ? std::min<std::int64_t>(1024, query.model().max_context)
                                 : 1024;
  query.question.prompt = prompt.value_or(usual);
  query.question.output = output.value_or(prompts_only ? 1 : 256);
  const auto has_mean = [&](std::string_view option) {
    const auto text = request.value(option);
    return !query.prefixes && (!text || serving::lengths_need_mean(*text));
  };
  if (!prompt && has_mean("prompt-lengths")) query.notes.push_back(fmt::format("--prompt not given: {} tokens", usual));
  if (!output && !prompts_only && has_mean("output-lengths"))
    query.notes.emplace_back("--output not given: 256 tokens");
  ASSAY_CHECK(read_distributions(request, prompt.has_value(), output.has_value(), query));
  const model::Transformer& model = query.model();
  const auto& lengths = query.question.lengths;
  const std::int64_t longest_prompt = lengths ? lengths->prompt.largest() : query.question.prompt,
                     longest_output = prompts_only ? 0
                                      : lengths    ? lengths->output.largest()
                                                   : query.question.output;
  // An encoder reads the prompt and a decoder writes the output: each has all of the context to itself.
  const std::int64_t longest =
      model.encoder ? std::max(longest_prompt, longest_output) : longest_prompt + longest_output;
  const bool beyond = model.max_context > 0 && longest > model.max_context && !request.has("stretch");
  if (beyond && model.encoder) {
    query.impossible = fmt::format("{} tokens exceed the context of {} tokens of {} on each side; --stretch allows it",
                                   longest, model.max_context, model.id);
  } else if (beyond) {
    const std::int64_t prompt_left = model.max_context - longest_output,
                       output_left = model.max_context - longest_prompt;
    const std::string most = prompt_left > 0   ? fmt::format("--prompt {}", prompt_left)
                             : output_left > 0 ? fmt::format("--output {}", output_left)
                                               : fmt::format("{} together", model.max_context);
    query.impossible =
        fmt::format("{} + {} tokens exceed the context of {} tokens of {}; use at most {}, or --stretch to allow it",
                    longest_prompt, longest_output, model.max_context, model.id, most);
  }
  ASSAY_CHECK(read_prefix(request, query));
  if (const auto text = request.value("imbalance")) {
    const auto load = parse_number(*text);
    const double most = model::most_expert_load(model);
    if (most == 1.0) return fail("--imbalance", fmt::format("{} has no routed experts", model.id), "leave it out");
    if (!load || !(*load >= 1.0) || *load > most)
      return fail("--imbalance",
                  fmt::format("{} is not a load from 1 to {}, reached if all tokens pick the same expert",
                              in_quotes(*text), human_number(most)),
                  "e.g. 1.3");
    query.question.setup.expert_load = *load;
  }
  ASSAY_CHECK(read_dispatch(request, model, query.question.setup.dispatch));
  ASSAY_CHECK(read_count(request, "batch", query.choices.batch));
  ASSAY_CHECK(read_count(request, "most-batch", query.choices.most_batch));
  if (query.choices.batch && query.choices.most_batch)
    return fail("--most-batch", "--batch gives the batch itself", "leave out one of them", Error::Kind::usage);
  if (std::optional<std::int64_t> chunk; request.has("chunk")) {
    ASSAY_CHECK(read_count(request, "chunk", chunk));
    query.question.step_tokens = static_cast<double>(*chunk);
  }
  ASSAY_CHECK(read_prompts(request, query));
  for (const char* option : {"chunk", "prefix-hit"})
    if (model.encoder && request.has(option))
      return fail(
          fmt::format("--{}", option),
          fmt::format("the encoder of {} attends in both directions and needs the whole prompt at once", model.id),
          "leave it out");
  return read_rate(request, query);
}

}  // namespace assay::verbs::serve
