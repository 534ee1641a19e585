// A directory with a model as it is published: configuration, weights, tokenizer.
#include <fmt/format.h>

#include <filesystem>

#include "assay/ask/verbs/option_values.h"
#include "assay/ask/verbs/run/run.h"
#include "assay/base/text.h"
#include "assay/engine/program/published_weights.h"
#include "assay/model/accounting.h"
#include "assay/model/checkpoint/checkpoint.h"
#include "assay/program/lower/lowering.h"

namespace assay::verbs::run {
namespace {

namespace fs = std::filesystem;

/// In fp64 these take 16 GB.
constexpr std::int64_t most_published_parameters = 2'000'000'000;
constexpr std::int64_t most_published_tokens = 4096;

Result<std::string> read_published_file(const fs::path& path) {
  constexpr Bytes most(256 << 20);
  return hardware::read_file(path.string(), "MODEL", {most, "larger ones are not read"});
}

/// Options that would make another model of it.
Result<void> check_published_options(const Request& request) {
  for (const char* option : {"layers", "hidden", "heads", "kv-heads", "ff", "experts", "vocabulary", "load", "text",
                             "requests", "prompt-length"})
    if (request.has(option))
      return fail(fmt::format("--{}", option), "the model has its published weights, which fit it as it is",
                  "leave it out, or give a config.json alone", Error::Kind::usage);
  if (is_on_gpu(request))
    return fail("--engine cuda",
                "published weights run on virtual devices and on ranks: a GPU's kernels have the "
                "numbers of one family only",
                "use --engine virtual or mpi", Error::Kind::usage);
  return {};
}

/// One number, or a list of them.
void add_ends(const model::Json& config, std::vector<int>& ends) {
  const model::Json* given = config.find("eos_token_id");
  if (!given) return;
  if (given->kind == model::Json::Kind::integer) ends.push_back(static_cast<int>(given->integer));
  for (const model::Json& item : given->items) ends.push_back(static_cast<int>(item.integer));
}

/// Every weight that the model's program reads must be there, in its shape.
Result<void> check_complete(const model::Transformer& model, const engine::NamedArrays& weights) {
  for (const engine::WeightStart& needed : engine::initial_starts(lower::lower_training(model, {}, {}, {}), model, 0)) {
    const auto found = weights.find(needed.name);
    if (found == weights.end() || found->second.shape != needed.shape)
      return fail("MODEL", fmt::format("the weight {} is not read from such files", needed.name),
                  "catalogue/checkpoints has the tensors of each family; --as FAMILY reads it as another one");
  }
  return {};
}

}  // namespace

bool is_published(const std::string& path) {
  std::error_code failed;
  if (!model::is_model_path(path) || !fs::is_directory(path, failed)) return false;
  for (const auto& entry : fs::directory_iterator(path, failed))
    if (entry.path().string().ends_with(".safetensors") || entry.path().string().ends_with(".safetensors.index.json"))
      return true;
  return false;
}

Result<PublishedModel> read_published_model(const Request& request, const Context& context,
                                            std::vector<std::string>& notes) {
  ASSAY_CHECK(check_published_options(request));
  const fs::path directory = request.arguments()[1];
  PublishedModel out;
  ASSAY_TRY(files,
            model::read_checkpoint(directory.string(), "MODEL", context.catalogue, request.value("as").value_or("")));
  if (!files.imported)
    return fail("MODEL", fmt::format("{} has no config.json", in_quotes(directory.string())),
                "weights alone do not say what model they are of", Error::Kind::missing);
  if (!files.notes.empty()) return fail("MODEL", files.notes.front(), "put all of them there", Error::Kind::missing);
  out.imported = *files.imported;
  model::Transformer& model = out.imported.model;
  if (out.imported.quantisation)
    return fail("config.json: quantization_config", "packed weights are not run", "take the model in bf16 or fp16");
  const std::int64_t parameters = model::parameter_counts(model).total;
  if (parameters > most_published_parameters)
    return fail("MODEL",
                fmt::format("{} has {} parameters, and a run in fp64 on this machine takes at most {}", model.id,
                            human_count(parameters), human_count(most_published_parameters)),
                "take a smaller model of its family");
  ASSAY_TRY(text, read_published_file(directory / "config.json"));
  ASSAY_TRY(config, model::parse_json(text, "config.json"));
  ASSAY_TRY(stored, model::read_published(config, out.imported.family, "config.json", context.catalogue, model));
  ASSAY_CHECK(lower::check_lowers(model, "MODEL"));
  ASSAY_SET(out.weights, engine::published_weights(files, stored, model));
  ASSAY_CHECK(check_complete(model, out.weights));
  std::error_code failed;
  if (const fs::path file = directory / "tokenizer.json"; fs::is_regular_file(file, failed) && request.has("prompt")) {
    ASSAY_TRY(json, read_published_file(file));
    ASSAY_SET(out.tokenizer, engine::PublishedTokenizer::parse(json, "tokenizer.json", context.catalogue));
  }
  add_ends(config, out.ends);
  if (const fs::path file = directory / "generation_config.json"; fs::is_regular_file(file, failed)) {
    ASSAY_TRY(more, read_published_file(file));
    ASSAY_TRY(generation, model::parse_json(more, "generation_config.json"));
    add_ends(generation, out.ends);
  }
  notes.push_back(fmt::format("the model as it runs: {}, in fp64", size_text(model)));
  return out;
}

Result<std::vector<engine::Prompt>> published_prompts(const Request& request, const PublishedModel& of,
                                                      std::int64_t wanted) {
  std::vector<engine::Prompt> out;
  const model::Transformer& model = of.imported.model;
  for (const std::string& text : request.values("prompt")) {
    if (!of.tokenizer)
      return fail("--prompt", "the directory has no tokenizer.json", "give prompts as numbers: --tokens 1,15043,3186",
                  Error::Kind::missing);
    ASSAY_TRY(tokens, of.tokenizer->encode(text));
    out.push_back({std::move(tokens), wanted});
  }
  for (const std::string& list : request.values("tokens")) {
    engine::Prompt& prompt = out.emplace_back(engine::Prompt{{}, wanted});
    for (const std::string& word : split(list, ',')) {
      const auto number = parse_number(word);
      if (!number || *number < 0 || *number != static_cast<double>(static_cast<int>(*number)))
        return fail("--tokens", fmt::format("{} is no token", in_quotes(word)), "write numbers with commas: 1,15043");
      prompt.tokens.push_back(static_cast<int>(*number));
    }
  }
  if (out.empty())
    return fail("--prompt", "give at least one prompt", "--prompt TEXT, or as numbers: --tokens 1,15043,3186",
                Error::Kind::usage);
  std::int64_t most = most_published_tokens;
  for (const std::int64_t limit : {model.definition.longest, model.learned_positions})
    if (limit > 0) most = std::min(most, limit);
  for (const engine::Prompt& prompt : out) {
    if (prompt.tokens.empty()) return fail("--prompt", "a prompt is empty", "write what is to be continued");
    for (const int token : prompt.tokens)
      if (token >= model.vocabulary + model.extra_embeddings)
        return fail("--tokens", fmt::format("{} is not one of the model's {} tokens", token, model.vocabulary),
                    fmt::format("tokens are 0 to {}", model.vocabulary + model.extra_embeddings - 1));
    if (std::ssize(prompt.tokens) + wanted > most)
      return fail(
          "--new-tokens",
          fmt::format("a prompt of {} tokens and {} new ones are more than {}", prompt.tokens.size(), wanted, most),
          "give a shorter prompt, or want fewer");
  }
  return out;
}

}  // namespace assay::verbs::run
