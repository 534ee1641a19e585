// Servers under load, as their clients measured them: stages of a load generator, and the steady states of a
// leaderboard. Their rows are in no fit.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "assay/base/assign.h"
#include "assay/base/record_reader.h"
#include "assay/base/text.h"
#include "assay/lab/benchmark/benchmark_file.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/lab/validate/rows/tables.h"
#include "assay/lab/validate/sets/sets.h"
#include "assay/model/checkpoint/json_reader.h"
#include "assay/predict/numbers/training_effects.h"

namespace assay::validate {
namespace {

constexpr std::string_view settings_file = "validation/under_load.toml";

/// What files leave out: validation/under_load.toml.
struct LoadSettings {
  std::map<std::string, std::string> chips;  ///< by their names in the table; "" where it has none
  std::vector<std::string> options;
};

Result<LoadSettings> load_settings(const hardware::Catalogue& catalogue, std::string_view wanted) {
  LoadSettings out;
  for (const auto& [path, text] : catalogue.files(settings_file)) {
    RecordFile file{.name = path};
    ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
      reader.sources();
      for (const std::string_view name : {"serving_load", "ml_energy"})
        reader.table(name, [&](RecordReader& inner) {
          LoadSettings one;
          if (inner.has("chip")) inner.text("chip", one.chips[""]);
          inner.each_key("chips",
                         [&](const std::string& key, RecordReader& chips) { chips.text(key, one.chips[key]); });
          inner.texts("options", one.options);
          if (name == wanted) out = std::move(one);
        });
    }));
  }
  return out;
}

/// The words of a request on so many chips, with the settings that all rows share.
std::vector<std::string> request_words(const LoadSettings& settings, const std::string& model, const std::string& chip,
                                       std::string_view chips) {
  std::vector<std::string> words{"serve", model, "--on", fmt::format("{}:{}", chip, chips)};
  words.insert(words.end(), settings.options.begin(), settings.options.end());
  return words;
}

void add_option(std::vector<std::string>& words, std::string_view option, std::string value) {
  words.push_back(fmt::format("--{}", option));
  words.push_back(std::move(value));
}

/// A model by the name that a table has for it.
struct NamedModel {
  std::string id, kind;  ///< of the catalogue; "dense" or "experts". Empty where it does not know the model
};
NamedModel model_of(KnownModels& known, const std::string& name) {
  const model::Transformer* model = known.find(name);
  return model ? NamedModel{model->id, model->has_experts() ? "experts" : "dense"} : NamedModel{};
}

/// "key: value" lines.
std::map<std::string, std::string> plain_yaml(std::string_view text) {
  std::map<std::string, std::string> out;
  for (const std::string& line : split(text, '\n'))
    if (const std::size_t colon = line.find(':'); colon != std::string::npos)
      out[std::string(trim(line.substr(0, colon)))] = trim(line.substr(colon + 1));
  return out;
}

/// Tokens of an output, which the server was told to make: what a stage says is tokenised anew.
std::optional<double> output_length(const model::Json& profile) {
  const model::Json* data = profile.find("data");
  const model::Json* prefix = data ? data->find("shared_prefix") : nullptr;
  const model::Json* length = prefix ? prefix->find("output_len") : nullptr;
  return length && length->number > 1.0 ? std::optional(length->number) : std::nullopt;
}

struct Experiment {
  std::string name, folder, model, kind, tensor, sequences, step_tokens;
  double output = 0;
};

Result<Experiment> read_experiment(const std::string& name, const std::string& folder, KnownModels& models) {
  ASSAY_TRY(server, read_data(folder + "/exp-config.yaml", "--data"));
  ASSAY_TRY(text, read_data(folder + "/profile.yaml", "--data"));
  ASSAY_TRY(profile, model::parse_json(text, name + "/profile.yaml"));
  auto of = plain_yaml(server);
  const auto output = output_length(profile);
  if (!output) return fail(name + "/profile.yaml", "it has no output_len", "serving_load has such files");
  const NamedModel model = model_of(models, of["model"]);
  return Experiment{name,
                    folder,
                    model.id.empty() ? of["model"] : model.id,
                    model.kind,
                    of["tensor_parallelism"],
                    of["max_num_seqs"],
                    of["max_num_batched_tokens"],
                    *output};
}

struct UnderLoad {
  std::vector<RowQuestion> questions;
  std::vector<UnansweredCase> unanswered;
};

void add_stage(const Experiment& of, const LoadSettings& settings, const benchmark::BenchmarkRow& row,
               const std::string& id, UnderLoad& out) {
  std::vector<std::string> words = request_words(settings, of.model, settings.chips.at(""), of.tensor);
  add_option(words, "tp", of.tensor);
  add_option(words, "prompt", fmt::format("{:.0f}", row.number("prompt").value_or(1)));
  add_option(words, "output", fmt::format("{:.0f}", of.output));
  add_option(words, "rate", exact_number(row.number("rate").value_or(0)));
  add_option(words, "most-batch", of.sequences);
  add_option(words, "chunk", of.step_tokens);
  const auto add = [&](std::string_view part, std::string_view result, double measured) {
    ValidationCase known{fmt::format("{}, {}", id, part), fmt::format("{} {}", part, of.kind), Seconds(measured),
                         Seconds(0), fmt::format("{}, {} requests/s", of.model, *row.number("rate"))};
    known.traits = {settings.chips.at(""), of.model, std::string(part)};
    out.questions.push_back({{words, {}, std::string(result)}, held_out, std::move(known)});
  };
  const double first = *row.number("first_token");
  add("first token", "load.time_to_first_token.mean", first);
  add("per token", "load.time_per_token.mean", (*row.number("latency") - first) / (of.output - 1.0));
}

Result<ValidationResult> run_serving_load(const ValidationInput& input) {
  namespace fs = std::filesystem;
  ASSAY_TRY(settings, load_settings(input.catalogue, "serving_load"));
  ASSAY_TRY(writers, benchmark::writers_of(input.catalogue));
  ASSAY_TRY(models, KnownModels::make(input.catalogue));
  const std::string directory = input.data.value_or("") + "/serving_load";
  std::error_code failed;
  std::vector<fs::path> folders;
  if (input.data)
    for (const auto& entry : fs::directory_iterator(directory, failed))
      if (entry.is_directory(failed)) folders.push_back(entry.path());
  if (folders.empty())
    return fail("--data", "this set is not part of the project", "give the directory that holds serving_load/",
                Error::Kind::missing);
  std::sort(folders.begin(), folders.end());
  UnderLoad all;
  for (const fs::path& folder : folders) {
    ASSAY_TRY(experiment, read_experiment(folder.filename(), folder, models));
    for (int stage = 0;; ++stage) {
      const std::string name = fmt::format("stage_{}_lifecycle_metrics.json", stage);
      const std::string path = fmt::format("{}/results/{}", experiment.folder, name);
      if (!fs::exists(path, failed)) break;
      const std::string id = fmt::format("{}-{}", experiment.name, stage);
      ASSAY_TRY(text, read_data(path, "--data"));
      const auto file = benchmark::read_benchmark(text, name, writers);
      if (!file)
        all.unanswered.push_back({id, "first token " + experiment.kind, file.error().what});
      else
        add_stage(experiment, settings, file->rows.front(), id, all);
    }
  }
  ValidationResult result;
  result.unanswered = std::move(all.unanswered);
  add_answers(std::move(all.questions), input, result);
  return result;
}

/// A row of the leaderboard: a server with all of its places taken.
RowQuestion state_of(const CsvTable& table, std::size_t row, const LoadSettings& settings, const std::string& task,
                     const std::string& chip, const NamedModel& model) {
  const std::string chips(table.text(row, "num_gpus"));
  std::vector<std::string> words = request_words(settings, model.id, chip, chips);
  // Its launcher gives all chips to tensor parallelism where it does not name data parallelism; experts divide those.
  const double all = table.number(row, "num_gpus", 1.0), data = table.number(row, "data_parallel", 1.0);
  add_option(words, "tp", fmt::format("{:.0f}", all / data));
  if (table.number(row, "expert_parallel", 1) > 1)
    add_option(words, "ep", std::string(table.text(row, "expert_parallel")));
  if (data > 1) add_option(words, "dp", std::string(table.text(row, "data_parallel")));
  add_option(words, "batch", fmt::format("{:.0f}", table.number(row, "avg_batch_size")));
  add_option(words, "output", fmt::format("{:.0f}", table.number(row, "avg_output_len")));
  if (table.text(row, "weight_precision") == "fp8") {
    add_option(words, "weights", "fp8");
    add_option(words, "compute", "fp8");
  }
  const std::string accelerator(table.text(row, "gpu_model"));
  ValidationCase known{
      fmt::format("{}-{}", task, table.line(row)), fmt::format("{} {}", model.kind, accelerator),
      Seconds(table.number(row, "median_itl_ms") * Seconds(1_ms).value()), Seconds(0),
      fmt::format("{} on {} {}, {} sequences", model.id, chips, accelerator, table.text(row, "max_num_seqs"))};
  const double batch = table.number(row, "max_num_seqs");
  known.traits = {accelerator, model.id, batch <= 16 ? "up to 16" : batch <= 128 ? "to 128" : "above 128"};
  return {{std::move(words), {}, "decode.step_time"}, held_out, std::move(known)};
}

/// The same row, for what its chips draw on average.
RowQuestion power_of(RowQuestion state, const CsvTable& table, std::size_t row) {
  state.question.result = "power.chip";
  state.known.measured = Watts(table.number(row, "avg_power_watts") / table.number(row, "num_gpus", 1.0));
  state.known.predicted = Watts(0);
  return state;
}

template <bool power>
Result<ValidationResult> run_ml_energy(const ValidationInput& input) {
  ASSAY_TRY(settings, load_settings(input.catalogue, "ml_energy"));
  ASSAY_TRY(models, KnownModels::make(input.catalogue));
  ValidationResult result;
  std::vector<RowQuestion> questions;
  for (const std::string task : {"gpqa", "lm-arena-chat", "sourcegraph-fim", "image-chat", "video-chat"}) {
    if (!has_data(input, fmt::format("ml_energy/{}.csv", task))) continue;
    ASSAY_TRY(table, data_table(*input.data, fmt::format("ml_energy/{}.csv", task)));
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const std::string name(table.text(row, "model_id")), accelerator(table.text(row, "gpu_model"));
      const std::string id = fmt::format("{}-{}", task, table.line(row));
      const NamedModel model = model_of(models, name);
      const auto chip = settings.chips.find(accelerator);
      if (task == "image-chat" || task == "video-chat")
        result.unanswered.push_back({id, "vision", "no estimate counts the images of a prompt"});
      else if (model.id.empty() || chip == settings.chips.end())
        result.unanswered.push_back({id, name, "the catalogue does not know the model or the chip"});
      else
        questions.push_back(state_of(table, row, settings, task, chip->second, model));
      if (power && !questions.empty() && questions.back().known.id == id)
        questions.back() = power_of(std::move(questions.back()), table, row);
    }
  }
  if (questions.empty())
    return fail("--data", "this set is not part of the project", "give the directory that holds ml_energy/",
                Error::Kind::missing);
  add_answers(std::move(questions), input, result);
  return result;
}

}  // namespace

std::vector<ValidationSet> load_sets() {
  return {{"serving-load", "first tokens and times per token of servers under load, by the client's clock: seconds",
           true, &run_serving_load, true},
          {"ml-energy", "decode steps of a leaderboard's servers: median seconds between tokens", true,
           &run_ml_energy<false>, true},
          {"ml-energy-power", "what the chips of these servers draw on average: W", true, &run_ml_energy<true>, true}};
}

}  // namespace assay::validate
