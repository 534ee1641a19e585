#include "assay/lab/validate/rows/inference_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/known_chips.h"
#include "assay/lab/validate/rows/known_formats.h"
#include "assay/lab/validate/rows/known_notes.h"
#include "assay/lab/validate/rows/known_readings.h"
#include "assay/lab/validate/rows/known_software.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/model/cache_mix.h"
#include "assay/model/model_catalogue.h"

namespace assay::validate {
namespace {

std::string describe(const InferenceRow& row) {
  const serving::ServingStrategy& s = row.strategy;
  std::string text = row.cluster;
  const auto add = [&](std::string_view name, std::int64_t n) {
    if (n > 1) text += fmt::format(" {} {}", name, n);
  };
  add("dp", s.data);
  add("tp", s.tensor);
  add("pp", s.pipeline);
  add("ep", s.expert);
  if (s.expert_over.tensor) text += " over tensor";
  text += row.batch > 0.0 ? fmt::format(", batch {}", human_number(row.batch)) : ", largest batch";
  if (row.figure == InferenceFigure::step)
    text += fmt::format(" at {}", row.prompt);
  else if (row.figure == InferenceFigure::first_token)
    text += fmt::format(" x {}", row.prompt);
  else
    text += fmt::format(" x {} + {}", row.prompt, row.output);
  return fmt::format("{}, {}, {}", text, name(row.formats.weights),
                     numbers::fusion_names[static_cast<std::size_t>(row.software.step.fusion)]);
}

std::span<const Field> inference_fields() {
  using enum Field::Kind;
  static constexpr Field fields[] = {{"n_chips", count, {}, "chips|gpus|tpus"},
                                     {"tp", ways},
                                     {"pp", ways},
                                     {"ep", whole},
                                     {"dp_attention", whole},
                                     {"batch", amount, "max|auto", "seqs|sequences"},
                                     {"concurrency", amount, "inf|max", "requests|users"},
                                     {"input_len", amount, {}, "tokens|tok"},
                                     {"output_len", amount, {}, "tokens|tok"},
                                     {"ttft_ms", amount, {}, "ms"},
                                     {"tpot_ms", amount, {}, "ms"},
                                     {"e2e_latency_ms", amount, {}, "ms"},
                                     {"output_tokens_per_s", amount, {}, "tokens/s|tok/s"},
                                     {"output_tokens_per_s_per_chip", amount, {}, "tokens/s|tok/s"},
                                     {"total_tokens_per_s", amount, {}, "tokens/s|tok/s"},
                                     {"year", count},
                                     {"oom", yes_no},
                                     {"phase", words, "prefill|decode|prefill+decode|serving|together"},
                                     {"trust", words, "a|b|c"}};
  return fields;
}

/// The table with fields as the readers expect them.
CsvTable tidied(CsvTable table) {
  static constexpr NamedWays ways[] = {{"tp", "tp"}, {"pp", "pp"}, {"ep", "ep"}, {"dp", "dp_attention"}};
  spread_ways(table, "tp", ways);
  spread_ways(table, "parallel_notes", ways);
  tidy(table, model_fields());
  tidy(table, inference_fields());
  return table;
}

/// The first column that is stated but not understood.
Why unread_inference(const TableLine& in, const KnownFormats& formats) {
  if (auto why = unread(in.table, in.row, model_fields())) return why;
  if (auto why = unread(in.table, in.row, inference_fields())) return why;
  const std::string_view weights = in.text("weight_precision"), cache = in.text("kv_precision");
  if (!weights.empty() && !formats.serving(weights))
    return fmt::format("weight_precision {} is not understood", in_quotes(weights));
  if (!cache.empty() && cache != "auto" && !formats.cache(cache))
    return fmt::format("kv_precision {} is not understood", in_quotes(cache));
  return std::nullopt;
}

/// Weights, compute format, and embeddings and head, by the column or else by the model's name.
void read_formats(const TableLine& in, const KnownFormats& formats, const hardware::Chip& chip, InferenceRow& row) {
  const std::string_view weights = in.text("weight_precision");
  const NamedFormat* stated = weights.empty() ? formats.in_name(in.text("model")) : formats.serving(weights);
  if (!stated) return;
  lower::Formats& f = row.formats;
  f.weights = stated->weights;
  f.outer = stated->outer;
  const bool has = chip.peak[static_cast<std::size_t>(stated->compute)].has_value();
  f.compute = has ? stated->compute : Dtype::bf16;  // otherwise weights are converted inside the product
}

/// What the engine does, for these formats; a stated format of the cache comes first.
Why read_software(const TableLine& in, const KnownFormats& formats, const kernel::ChosenSoftware& chosen,
                  const numbers::Family* family, InferenceRow& row) {
  kernel::SoftwareCase at = kernel::software_case(row.model);
  if (family) at.family = family->id;
  at.weights = name(row.formats.weights);
  at.compute = name(row.formats.compute);
  if (auto set = kernel::apply_software(chosen, at, row.software); !set) return set.error().what;
  kernel::ChosenSoftware by_id = chosen;
  by_id.name = nullptr;
  if (auto set = kernel::apply_software(by_id, at, row.assumed); !set) return set.error().what;
  row.engine = chosen.text();
  if (row.software.kv) row.formats.kv_cache = *row.software.kv;
  if (const auto stated = formats.cache(in.text("kv_precision"))) row.formats.kv_cache = *stated;
  row.step_tokens = chosen.software->defaults.step_tokens;
  row.sequences = chosen.software->defaults.sequences;
  if (row.software.no_windows) model::remove_windows(row.model);
  row.typical = in.text("trust") != "c" && chosen.software->atypical.empty() && chosen.name->atypical.empty();
  return std::nullopt;
}

Why read_strategy(const TableLine& in, InferenceRow& row) {
  const std::int64_t chips = in.count("n_chips");
  if (chips == 0) return "the number of chips is not stated";
  if (in.text("tp").empty() && chips > 1) return "the parallelism is not stated";
  if (in.text("trust") == "c") return "the parallelism is doubtful";
  serving::ServingStrategy& s = row.strategy;
  s.tensor = in.count("tp", 1);
  s.pipeline = std::max<std::int64_t>(1, in.count("pp", 1));
  s.data = std::max<std::int64_t>(1, in.count("dp_attention", 1));
  // The batch is per data-parallel attention group. If that group is not stated, attention is data-parallel when each
  // device of the tensor group has its own batch.
  const double batch = in.number("batch"), all = in.number("concurrency");
  if (in.text("dp_attention").empty() && row.model.has_experts() && s.tensor > 1 && batch > 0.0 &&
      all == batch * static_cast<double>(s.tensor))
    s.data = s.tensor;
  // Attention may be data-parallel within the stated tensor group.
  const bool inside = s.data > 1 && s.tensor * s.pipeline == chips && s.tensor % s.data == 0;
  if (inside) s.tensor /= s.data;
  if (s.tensor * s.pipeline * s.data != chips) return "tp x pp x dp must equal the number of chips";
  // All devices of the group hold experts: whole ones, or slices if fewer devices hold different experts.
  const std::int64_t experts = in.count("ep", 1);
  if (row.model.has_experts() && (inside || experts > 1)) s.expert = s.data;
  if (row.model.has_experts() && s.tensor > 1 && experts == s.tensor * s.data) {
    s.expert = experts;
    s.expert_over.tensor = true;
  }
  return std::nullopt;
}

void add_row(InferenceRows& out, InferenceRow row, InferenceFigure figure, AnyQuantity measured) {
  row.figure = figure;
  row.measured = measured;
  row.what = describe(row);
  out.rows.push_back(std::move(row));
}

struct StatedFigure {
  InferenceFigure figure;
  AnyQuantity measured;
};
/// Sequences of each replica's batch; a table may state only those of the whole server.
double batch_of(const TableLine& in, const InferenceRow& row) {
  const double each = in.number("batch");
  return each > 0.0 ? each * static_cast<double>(row.strategy.data) : in.number("concurrency");
}

/// Output tokens per second of the whole server, by whichever column states them.
double output_rate(const TableLine& in, const InferenceRow& row) {
  if (const double rate = in.number("output_tokens_per_s"); rate > 0.0) return rate;
  if (const double each = in.number("output_tokens_per_s_per_chip"); each > 0.0) return each * in.number("n_chips");
  const auto prompt = static_cast<double>(row.prompt), output = static_cast<double>(row.output);
  return output > 0.0 ? in.number("total_tokens_per_s") * output / (prompt + output) : 0.0;
}

/// The figures that a row states. A row without any counts as one of output tokens.
std::vector<StatedFigure> stated_figures(const TableLine& in, const InferenceRow& row) {
  using enum InferenceFigure;
  const double first = in.number("ttft_ms"), next = in.number("tpot_ms"), whole = in.number("e2e_latency_ms"),
               rate = output_rate(in, row), batch = batch_of(in, row);
  const std::string_view phase = in.text("phase");
  const bool loaded = phase == "serving", prompts = phase == "prefill", together = phase == "together";
  const double output = std::max(1.0, static_cast<double>(row.output));
  std::vector<StatedFigure> out;
  const auto add = [&](InferenceFigure figure, double milliseconds) {
    out.push_back({figure, milliseconds * 1e-3 * 1_s});
  };
  // Requests that start and end together are a static batch, whose prompts end one after the other.
  if (together) {
    if (first > 0.0 && next > 0.0) add(static_token, (first + (output - 1.0) * next) / output);
    return out;
  }
  // Without other requests, a server under load is an idle one.
  const bool alone = in.number("concurrency", batch) == 1.0;
  if (first > 0.0 && (!loaded || alone)) add(first_token, first);
  if (prompts) {
    if (first == 0.0 && whole > 0.0) add(first_token, whole);
    return out;
  }
  if (next > 0.0)
    add(loaded ? loaded_token : step, next);
  else if (rate > 0.0 && (batch == 0.0 || loaded))
    out.push_back({throughput, TokensPerSecond(rate)});
  else if (whole > 0.0)
    add(loaded ? loaded_token : static_token, whole / output);
  else if (rate > 0.0)
    out.push_back({static_token, batch / rate * 1_s});
  return out;
}

/// Requests that wait for a place for most of their time: the load is no batch.
Why waiting(const TableLine& in) {
  const double served = in.number("output_len") * in.number("tpot_ms");
  if (in.text("phase") != "serving" || served == 0.0 || in.number("ttft_ms") <= served) return std::nullopt;
  return "requests wait longer than they are served: fewer than the load are in a batch";
}

/// Adds each figure that a row states, or why it has no prediction.
void add_figures(const TableLine& in, const InferenceRow& row, const Why& why, InferenceRows& out) {
  const std::vector<StatedFigure> figures = stated_figures(in, row);
  const bool queued = in.number("ttft_ms") > 0.0;
  const UnansweredCase refused{
      row.id, row.group,
      why.value_or(queued ? "the first token waits for those of other requests" : "no time is stated")};
  if (figures.empty()) out.unanswered.push_back({refused, InferenceFigure::static_token});
  for (const auto& [figure, measured] : figures) {
    if (why)
      out.unanswered.push_back({refused, figure});
    else if (figure != InferenceFigure::throughput && row.batch < 1.0)
      out.unanswered.push_back({{row.id, row.group, "the batch is not stated"}, figure});
    else if (figure != InferenceFigure::first_token && row.output <= 0)
      out.unanswered.push_back({{row.id, row.group, "the length of the output is not stated"}, figure});
    else
      add_row(out, row, figure, measured);
  }
}

}  // namespace

Result<InferenceRows> read_inference(const CsvTable& given, const hardware::Catalogue& catalogue) {
  InferenceRows out;
  CsvTable table = given;
  ASSAY_TRY(readings, KnownReadings::make(catalogue));
  const std::vector<Why> refused = readings.apply(table);
  table = tidied(std::move(table));
  ASSAY_TRY(formats, KnownFormats::make(catalogue));
  ASSAY_TRY(notes, KnownNotes::make(catalogue));
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  ASSAY_TRY(software, kernel::software_of(catalogue));
  ASSAY_TRY(known_models, KnownModels::make(catalogue));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    InferenceRow row;
    row.id = in.text("id");
    row.source = in.text("source_key");
    row.group = fmt::format("{}, {}, {}", row.source, in.text("model"), in.text("accelerator"));
    row.fold = chips.fold(in.text("accelerator"), row.source, in.text("split"));
    Why why = refused[i];
    if (!why && in.text("oom") == "y") why = "ran out of memory";
    if (!why) why = unread_inference(in, formats);
    for (const std::string_view column : {"notes", "mode", "metric_def"})
      if (!why) why = notes.refusal(in.text(column));
    const std::optional<std::string> chip = chips.find(in.text("accelerator"));
    if (!why && !chip) why = fmt::format("{} is not in the catalogue", in.text("accelerator"));
    // GPT-2's vocabulary, padded for tensor parallelism.
    if (!why) why = read_model(in, contains(in.text("model"), "GPT-") ? 51200 : 0, known_models, row);
    const NamedSoftware by = software_in(in, software, kernel::SoftwareVerb::serve, "engine", "engine_version");
    if (!why) why = by.why;
    if (!why) why = read_strategy(in, row);
    if (!why) {
      const hardware::Chip* known = chips.chip(*chip);
      if (known) read_formats(in, formats, *known, row);
      why = known ? read_software(in, formats, by.chosen, chips.family(*chip), row)
                  : Why(fmt::format("the file of {} has a fault", *chip));
      row.cluster = fmt::format("{}:{}", *chip, in.count("n_chips"));
    }
    // Pipeline stages that take turns on the whole batch are as fast as one chip.
    if (!why && by.chosen.software->defaults.stages_in_turn && row.strategy.pipeline > 1) {
      row.strategy.pipeline = 1;
      row.cluster = fmt::format("{}:1", *chip);
    }
    // A decode benchmark without stated lengths runs short prompts and outputs of 200 tokens.
    const bool decode_only = in.text("phase") == "decode";
    row.prompt = in.count("input_len", decode_only ? 16 : 0);
    row.output = in.count("output_len", decode_only ? 200 : 0);
    row.batch = batch_of(in, row);
    if (!why && row.prompt <= 0) why = "the length of the prompt is not stated";
    if (!why) why = waiting(in);
    add_figures(in, row, why, out);
  }
  return out;
}

namespace {

/// Whether the numbers of a row of our tables can be read; reports it if not.
bool readable(const TableLine& in, InferenceRows& out) {
  using enum Field::Kind;
  static constexpr Field fields[] = {{"batch", count}, {"context", count}, {"step_s", amount}};
  auto why = unread(in.table, in.row, fields);
  if (why)
    out.unanswered.push_back(
        {{fmt::format("line {}", in.table.line(in.row)), std::string(in.text("model")), std::move(*why)}});
  return !why;
}

/// Reads the columns that both our tables share; `kind` names the column with a row's kind.
Result<InferenceRow> own_row(const TableLine& in, std::string_view kind, const hardware::Catalogue& catalogue) {
  InferenceRow row;
  ASSAY_TRY(model, model::catalogue_model(in.text("model"), catalogue, "model"));
  row.model = model.imported.model;
  row.named = in.text("model");
  row.cluster = "h200-sxm:1";
  row.batch = in.number("batch");
  row.prompt = in.count("context");
  row.id = fmt::format("{}-{}-b{}-s{}", in.text("model"), in.text(kind), in.text("batch"), in.text("context"));
  row.fold = fold_of(row.id);
  return row;
}
}  // namespace

Result<InferenceRows> read_h200_infer(const CsvTable& table, const hardware::Catalogue& catalogue) {
  InferenceRows out;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    if (!readable(in, out)) continue;
    ASSAY_TRY(row, own_row(in, "phase", catalogue));
    const bool prefill = in.text("phase") == "prefill";
    row.software.step = {numbers::Fusion::eager, numbers::Scheduler::loop, !prefill, !prefill, false};
    // Prompts run as training steps do, whose profiles show the vendor's kernel.
    row.software.attention = prefill ? hardware::AttentionKernel::cudnn : hardware::AttentionKernel::automatic;
    row.group = fmt::format("{}, {}", in.text("model"), prefill ? "eager" : "static cache");
    add_row(out, row, prefill ? InferenceFigure::first_token : InferenceFigure::step, in.number("step_s") * 1_s);
  }
  return out;
}

Result<InferenceRows> read_h200_decode(const CsvTable& table, const hardware::Catalogue& catalogue) {
  InferenceRows out;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    if (!readable(in, out)) continue;
    ASSAY_TRY(row, own_row(in, "weights", catalogue));
    row.software.step = {numbers::Fusion::compiled, numbers::Scheduler::loop, true, false, false};
    row.software.attention = hardware::AttentionKernel::cudnn;
    if (in.text("weights") == "fp8") {
      row.formats.weights = row.formats.compute = Dtype::fp8;
      row.formats.outer = Dtype::bf16;
    }
    row.group = fmt::format("{}, {}", in.text("model"), in.text("weights"));
    add_row(out, row, InferenceFigure::step, in.number("step_s") * 1_s);
  }
  return out;
}

}  // namespace assay::validate
