#include "assay/validate/rows/inference_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/validate/rows/known_chips.h"
#include "assay/validate/rows/table_line.h"

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
                     estimate::fusion_names[static_cast<std::size_t>(row.software.fusion)]);
}

/// The first column that is stated but not understood.
Why unread_inference(const TableLine& in) {
  using enum Field::Kind;
  static constexpr Field fields[] = {
      {"n_chips", count},
      {"tp", count},
      {"pp", whole},
      {"ep", whole},
      {"dp_attention", whole},
      {"batch", amount},
      {"concurrency", amount},
      {"input_len", amount},
      {"output_len", amount},
      {"ttft_ms", amount},
      {"tpot_ms", amount},
      {"e2e_latency_ms", amount},
      {"output_tokens_per_s", amount},
      {"year", count},
      {"weight_precision", words, "bf16|bfloat16|fp16|fp16/bf16|mixed|fp8|fp4|nvfp4|mxfp4|int8|int4|int4(*"},
      {"kv_precision", words, "bf16|fp16|fp8"},
      {"phase", words, "prefill|decode|prefill+decode|serving"},
      {"trust", words, "A|B|C"}};
  if (auto why = unread_model(in)) return why;
  return unread(in.table, in.row, fields);
}

/// A format as the tables write it: weights, compute format, cache.
Why read_formats(const TableLine& in, const hardware::Chip& chip, InferenceRow& row) {
  const std::string_view weights = in.text("weight_precision"), cache = in.text("kv_precision"),
                         engine = in.text("engine");
  lower::Formats& f = row.formats;
  const auto has = [&](Dtype dtype) { return chip.peak[static_cast<std::size_t>(dtype)].has_value(); };
  const bool tensorrt = contains(engine, "TensorRT") || engine == "trtllm";
  if (contains(weights, "fp8")) {
    f.weights = Dtype::fp8;
    f.outer = Dtype::bf16;
    f.compute = has(Dtype::fp8) ? Dtype::fp8 : Dtype::bf16;
    if (tensorrt) f.kv_cache = Dtype::fp8;  // its recipe for 8-bit weights quantises the cache too
  } else if (contains(weights, "fp4")) {
    f.weights = Dtype::fp4;
    f.outer = Dtype::bf16;
    f.compute = has(Dtype::fp4) ? Dtype::fp4 : Dtype::bf16;  // otherwise weights are converted inside the product
    if (tensorrt) f.kv_cache = Dtype::fp8;
  } else if (contains(weights, "int8")) {
    f.weights = Dtype::int8;  // weights only
  } else if (contains(weights, "int4")) {
    f.weights = Dtype::int4;
  }
  if (cache == "fp8") f.kv_cache = Dtype::fp8;
  return std::nullopt;
}

/// What the engine's name implies about how it works.
Why read_software(const TableLine& in, InferenceRow& row) {
  const std::string_view engine = in.text("engine");
  if (engine == "llama.cpp" || engine == "sambaflow" || engine == "Megatron" || contains(engine, "Neuron"))
    return fmt::format("the kernels of {} have no model", engine);
  estimate::ServingSoftware& s = row.software;
  const std::string_view version = in.text("engine_version");
  const double year = in.number("year", 2025);
  const bool python = engine == "vLLM" || engine == "vllm" || engine == "sglang" || contains(engine, "Deepspeed");
  const bool loops = contains(engine, "gpt-fast") || contains(engine, "HuggingFace");
  // vLLM and SGLang schedule a step ahead of the chips since their 2025 versions.
  s.scheduler =
      python ? (year < 2025 || contains(engine, "Deepspeed") ? estimate::Scheduler::python : estimate::Scheduler::ahead)
      : loops ? estimate::Scheduler::loop
              : estimate::Scheduler::native;
  row.typical = in.text("trust") != "C" && !contains(engine, "Deepspeed");  // its host is slow for every token
  // Kernels of 2023 and 2024 decode on vector units; TensorRT-LLM had others only for groups of eight heads.
  const model::Layer& layer = row.model.decoder.kinds.front();
  const bool eight = layer.attention && layer.attention->heads == 8 * layer.attention->kv_heads;
  const bool old = contains(engine, "TensorRT") && (version.starts_with("0.") || version < "2024-06") && year < 2025;
  s.vector_decode = contains(engine, "FasterTransformer") || (old && !eight) || (python && year < 2025);
  s.whole_rows = contains(engine, "FasterTransformer") || old;
  if (contains(engine, "gpt-fast")) s.fusion = estimate::Fusion::compiled;
  if (contains(engine, "HuggingFace") || contains(engine, "ColossalAI")) {
    s.fusion = estimate::Fusion::eager;
    s.captured = false;
    s.repeats_kv = contains(engine, "HuggingFace");
  }
  s.one_shot = year >= 2024 && !contains(engine, "gpt-fast") && !contains(engine, "Deepspeed");
  const bool pytorch = contains(engine, "(PyTorch)") || engine == "trtllm";
  if (contains(engine, "ColossalAI") || contains(engine, "FasterTransformer") || contains(engine, "Deepspeed") ||
      (contains(engine, "TensorRT") && !pytorch))
    s.captured = false;
  return std::nullopt;
}

Why read_strategy(const TableLine& in, InferenceRow& row) {
  const std::int64_t chips = in.count("n_chips");
  if (chips == 0) return "the number of chips is not stated";
  if (contains(in.text("mode"), "disagg")) return "prefill and decode run on separate chips, which are not stated";
  if (in.text("tp").empty()) return "the parallelism is not stated";
  if (in.text("trust") == "C") return "the parallelism is doubtful";
  serving::ServingStrategy& s = row.strategy;
  s.tensor = in.count("tp", 1);
  s.pipeline = std::max<std::int64_t>(1, in.count("pp", 1));
  s.data = std::max<std::int64_t>(1, in.count("dp_attention", 1));
  // The batch is per data-parallel attention group. If that group is not stated, attention is data-parallel when each
  // device of the tensor group has its own batch.
  const double batch = in.number("batch"), all = in.number("concurrency");
  if (in.text("dp_attention").empty() && s.tensor > 1 && batch > 0.0 && all == batch * static_cast<double>(s.tensor))
    s.data = s.tensor;
  // Attention may be data-parallel within the stated tensor group.
  const bool inside = s.data > 1 && s.tensor * s.pipeline == chips && s.tensor % s.data == 0;
  if (inside) s.tensor /= s.data;
  if (s.tensor * s.pipeline * s.data != chips) return "tp x pp x dp must equal the number of chips";
  // All devices of the group hold experts: whole ones, or slices if fewer devices hold different experts.
  const std::int64_t experts = in.count("ep", 1);
  if (estimate::has_experts(row.model) && (inside || experts > 1)) s.expert = s.data;
  if (estimate::has_experts(row.model) && s.tensor > 1 && experts == s.tensor * s.data) {
    s.expert = experts;
    s.expert_over.tensor = true;
  }
  return std::nullopt;
}

void add_row(InferenceRows& out, InferenceRow row, InferenceFigure figure, Seconds measured) {
  row.figure = figure;
  row.measured = measured;
  row.what = describe(row);
  out.rows.push_back(std::move(row));
}

/// The figures of a row, one row each.
Why add_figures(const TableLine& in, const InferenceRow& row, InferenceRows& out) {
  const double first = in.number("ttft_ms"), next = in.number("tpot_ms"), whole = in.number("e2e_latency_ms"),
               rate = in.number("output_tokens_per_s");
  const bool loaded = in.text("phase") == "serving";
  const std::size_t before = out.rows.size();
  if (first > 0.0 && !loaded) add_row(out, row, InferenceFigure::first_token, first * 1e-3 * 1_s);
  if (row.output <= 0) return out.rows.size() > before ? Why() : "the length of the output is not stated";
  const auto output = static_cast<double>(row.output);
  if (next > 0.0)
    add_row(out, row, loaded ? InferenceFigure::loaded_token : InferenceFigure::step, next * 1e-3 * 1_s);
  else if (row.batch == 0.0 && rate > 0.0)
    add_row(out, row, InferenceFigure::server_token, 1_s / rate);
  else if (whole > 0.0)
    add_row(out, row, InferenceFigure::static_token, whole * 1e-3 / output * 1_s);
  else if (rate > 0.0)
    add_row(out, row, InferenceFigure::static_token, row.batch / rate * 1_s);
  return out.rows.size() > before ? Why() : "no time is stated";
}

}  // namespace

Result<InferenceRows> read_inference(const CsvTable& table, const hardware::Catalogue& catalogue) {
  InferenceRows out;
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  KnownModels known_models(catalogue);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    InferenceRow row;
    row.id = in.text("id");
    row.group = fmt::format("{}, {}, {}", in.text("source_key"), in.text("model"), in.text("accelerator"));
    row.fold = fold_of(row.group, in.text("split"));
    Why why;
    if (in.text("oom") == "y") why = "ran out of memory";
    if (!why) why = unread_inference(in);
    if (!why && contains(in.text("notes"), "throughput not equal"))
      why = "the row contradicts itself: throughput does not follow from latency";
    const std::optional<std::string> chip = chips.find(in.text("accelerator"));
    if (!why && !chip) why = fmt::format("{} is not in the catalogue", in.text("accelerator"));
    // GPT-2's vocabulary, padded for tensor parallelism.
    if (!why) why = read_model(in, contains(in.text("model"), "GPT-") ? 51200 : 0, known_models, row.model);
    if (!why) why = read_software(in, row);
    if (!why) why = read_strategy(in, row);
    if (!why) {
      const hardware::Chip* known = chips.chip(*chip);
      why = known ? read_formats(in, *known, row) : Why(fmt::format("the file of {} has a fault", *chip));
      row.cluster = fmt::format("{}:{}", *chip, in.count("n_chips"));
    }
    // Pipeline stages that take turns on the whole batch are as fast as one chip.
    if (contains(in.text("engine"), "HuggingFace") && row.strategy.pipeline > 1 && chip) {
      row.strategy.pipeline = 1;
      row.cluster = fmt::format("{}:1", *chip);
    }
    // A decode benchmark without stated lengths runs short prompts and outputs of 200 tokens.
    const bool decode_only = in.text("phase") == "decode";
    row.prompt = in.count("input_len", decode_only ? 16 : 0);
    row.output = in.count("output_len", decode_only ? 200 : 0);
    // A load is one of many servers where each has fewer sequences than there are in all.
    row.batch = in.number("batch") * static_cast<double>(row.strategy.data);
    if (contains(in.text("metric_def"), "cache len ")) row.cache = noted(in.text("metric_def"), "cache len ");
    if (!why && row.prompt <= 0) why = "the length of the prompt is not stated";
    if (!why) why = add_figures(in, row, out);
    if (why) out.unanswered.push_back({row.id, row.group, *why});
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
        {fmt::format("line {}", in.table.line(in.row)), std::string(in.text("model")), std::move(*why)});
  return !why;
}

/// Reads the columns that both our tables share; `kind` names the column with a row's kind.
Result<InferenceRow> own_row(const TableLine& in, std::string_view kind, const hardware::Catalogue& catalogue) {
  InferenceRow row;
  ASSAY_TRY(model, model::catalogue_model(in.text("model"), catalogue, "model"));
  row.model = model.imported.model;
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
    row.software = {estimate::Fusion::eager, estimate::Scheduler::loop, !prefill, !prefill, false};
    row.attention = prefill ? hardware::AttentionKernel::flash2 : hardware::AttentionKernel::automatic;
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
    row.software = {estimate::Fusion::compiled, estimate::Scheduler::loop, true, false, false};
    row.attention = hardware::AttentionKernel::cudnn;
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
