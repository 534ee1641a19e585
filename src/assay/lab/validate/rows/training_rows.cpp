#include "assay/lab/validate/rows/training_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/lab/validate/rows/known_chips.h"
#include "assay/lab/validate/rows/known_formats.h"
#include "assay/lab/validate/rows/known_notes.h"
#include "assay/lab/validate/rows/known_readings.h"
#include "assay/lab/validate/rows/known_software.h"
#include "assay/lab/validate/rows/table_line.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/clock/chunks.h"

namespace assay::validate {
namespace {

std::span<const Field> training_fields() {
  using enum Field::Kind;
  static constexpr Field fields[] = {
      {"n_chips", count, {}, "chips|gpus|tpus"},
      {"chips_per_node", count},
      {"seq_len", count, {}, "tokens|tok"},
      {"tp", ways},
      {"pp", ways},
      {"vpp", ways, "max*"},
      {"dp", ways},
      {"cp", ways},
      {"ep", ways},
      {"etp", ways},
      {"global_batch", amount, {}, "seqs|sequences|samples"},
      {"micro_batch", amount, {}, "seqs|sequences|samples"},
      {"grad_accum", amount},
      {"year", count},
      {"step_time_s", amount, {}, "s|sec|seconds"},
      {"derived_step_time_s", amount},
      {"tokens_per_s_per_chip", amount, {}, "tokens/s|tok/s"},
      {"derived_tokens_per_s_per_chip", amount},
      {"tflops_per_s_per_chip", amount, {}, "tflops|tflop/s|tflops/s"},
      {"peak_mem_gb", amount, {}, "gib"},
      {"oom", yes_no},
      {"task", words,
       "pretrain|pretraining|pre-training|sft|finetune|finetuning|fine-tuning|full fine-tuning|lora|lora "
       "*|lora(*|lora-*"},
      {"optimizer", words, "adam|adam (*|adam(*|adam-pax|adamw|adamw (*|adamw(*|fused adam|fused adamw"},
      {"fsdp_zero", words,
       "none|ddp|no|zero0|zero 0|zero1|zero 1|zero1(*|zero 1(*|zero 1 (*|zero1 over all dp|distopt(zero1)|hybrid "
       "zero1*|"
       "dist optimizer|distributed optimizer|zero2|zero 2|zero2(*|zero 2 (*|zero3|zero 3|zero3(*|zero 3 (*|"
       "fsdp|fsdp2|fsdp *|fsdp2 *|fsdp(*|fsdp=*|fsdp2=*|fsdp2(*|hsdp=*|*-fsdp(*"},
      {"sequence_parallel", yes_no},
      {"flash_attention", yes_no, "y (*|cudnn*|fa2|fa3|flash*|fused*"},
      {"trust", words, "a|b|c"}};
  return fields;
}

/// The table with fields as the readers expect them.
CsvTable tidied_steps(CsvTable table) {
  static constexpr NamedWays ways[] = {{"tp", "tp"}, {"pp", "pp"}, {"vpp", "vpp"}, {"dp", "dp"},
                                       {"cp", "cp"}, {"ep", "ep"}, {"etp", "etp"}};
  spread_ways(table, "tp", ways);
  tidy(table, model_fields());
  tidy(table, training_fields());
  return table;
}

/// The first column that is stated but cannot be read.
Why unread_training(const TableLine& in, const KnownFormats& formats) {
  if (auto why = unread(in.table, in.row, model_fields())) return why;
  if (auto why = unread(in.table, in.row, training_fields())) return why;
  if (const std::string_view text = in.text("precision"); !text.empty() && !formats.training(text))
    return fmt::format("precision {} is not understood", in_quotes(text));
  return std::nullopt;
}

/// A network that is slower than the catalogue's, and whose switches do not add.
void read_network(const NamedNetwork& network, const hardware::ScaleOut& usual, TrainingRow& row) {
  const BytesPerSecond reached = network.reached * network.bandwidth;
  if (network.bandwidth == BytesPerSecond(0) || !(reached < usual.bandwidth.value)) return;
  if (usual.in_network_reduction && usual.in_network_reduction->value)
    row.changes.push_back({"network.scale_out.in_network_reduction", "false"});
  row.changes.push_back({"network.scale_out.bandwidth", fmt::format("{} B/s", reached.value())});
}

/// A torus as a table writes it, "4x8x8", if it has as many chips; empty if not.
std::string torus_in(std::string_view topology, std::int64_t chips) {
  for (const std::string& word : split(topology, ' ')) {
    const std::string shape(trim(word));
    std::int64_t product = 1;
    bool sizes = shape.find('x') != std::string::npos;
    for (const std::string& side : split(shape, 'x')) {
      const auto size = parse_number(side);
      sizes = sizes && size && *size >= 1.0;
      product *= sizes ? std::llround(*size) : 1;
    }
    if (sizes && product == chips) return shape;
  }
  return "";
}

Why read_hardware(const TableLine& in, KnownChips& known, TrainingRow& row) {
  const std::string_view accelerator = in.text("accelerator");
  const std::optional<std::string> chip = known.find(accelerator);
  if (!chip) return fmt::format("{} is not in the catalogue", accelerator);
  const std::int64_t chips = in.count("n_chips");
  if (chips == 0) return "the number of chips is not stated";
  row.chip = *chip;
  if (const numbers::Family* family = known.family(*chip)) {
    row.compiled_whole = family->compiled_whole;
    row.family = family->id;
  }
  const std::string_view topology = in.text("topology");
  std::int64_t slices = 1;
  if (row.compiled_whole && contains(topology, "x v"))
    slices = std::max(1LL, std::atoll(std::string(topology).c_str()));
  if (chips % slices != 0) return "the row contradicts itself: the slices do not have as many chips each";
  const std::string torus = row.compiled_whole ? torus_in(topology, chips / slices) : "";
  row.cluster = fmt::format("{}{}:{}", slices > 1 ? fmt::format("{}*", slices) : "", *chip,
                            torus.empty() ? std::to_string(chips / slices) : torus);
  if (const NamedAccelerator* named = known.named(accelerator)) {
    row.changes = named->changes;
    const hardware::Chip* whole = known.chip(*chip);
    if (named->power && whole && whole->power && *named->power < whole->power->chip.value) row.power = named->power;
  }
  const hardware::Chip* whole = known.chip(*chip);
  if (!whole || row.compiled_whole) return std::nullopt;
  const hardware::Networks& network = whole->network;
  const auto domain = network.scale_up && network.scale_up->domain ? network.scale_up->domain->value : 1;
  const std::int64_t node = in.count("chips_per_node", domain);
  // A switched network of several hosts is a rack, whose trays are no nodes of it.
  const bool is_one_host = domain <= whole->host.chips.value;
  if (node < domain && is_one_host && chips > node)
    row.changes.push_back({"network.scale_up.domain", std::to_string(node)});
  if (network.scale_out)
    read_network(known.network(in.text("interconnect"), static_cast<double>(node)), *network.scale_out, row);
  return std::nullopt;
}

/// The level of ZeRO that a text names, "zero-3(offload)"; nothing if it names none.
std::optional<int> zero_level(std::string_view text) {
  const std::size_t at = text.find("zero"), digit = text.find_first_of("0123", at);
  if (at == std::string_view::npos || digit == std::string_view::npos) return std::nullopt;
  return digit <= at + 5 ? std::optional(text[digit] - '0') : std::nullopt;
}

/// Devices that share fully sharded weights; 0: not stated.
std::int64_t fsdp_ways(std::string_view text, std::string_view cluster, std::int64_t groups) {
  for (const std::string_view name : {"fsdp=", "fsdp2=", "hsdp=", "fsdp(", "fsdp2(", "fsdp ", "fsdp2 "})
    if (const std::int64_t ways = noted(text, name); ways > 0) return ways;
  if (!contains(text, "dp over dcn")) return 0;
  return cluster.find('*') == std::string_view::npos ? groups : groups / std::atoll(std::string(cluster).c_str());
}

/// Whether weights are sharded, too.
bool fully_sharded(std::string_view text) {
  return zero_level(text) == 3 || contains(text, "fsdp") || contains(text, "hsdp");
}

/// How weights and optimizer states are sharded, from the column's text.
Why read_sharing(const TableLine& in, const kernel::Software& software, std::int64_t groups, TrainingRow& row) {
  lower::Parallelism& p = row.strategy.parallelism;
  const std::string_view text = in.text("fsdp_zero");
  p.data = groups;
  p.fsdp = 1;
  p.zero = zero_level(text).value_or(contains(text, "dist") ? 1 : 0);
  if (p.zero == 1 || p.zero == 2 || !fully_sharded(text)) return std::nullopt;
  p.zero = 0;
  const std::int64_t stated = fsdp_ways(text, row.cluster, groups), ways = stated > 0 ? stated : groups;
  if (groups % ways != 0) return "the row contradicts itself: fsdp does not divide the data-parallel devices";
  p.fsdp = ways;
  p.data = groups / ways;
  // Weights that stay gathered between the passes of a pipeline's microbatches are sharded between steps only.
  if (in.count("pp", 1) > 1 && software.defaults.pipeline_keeps_weights) {
    p.data = groups;
    p.fsdp = 1;
    p.zero = 2;
  }
  if (groups == 1 && p.context > 1) p.zero = 3;  // weights are then sharded over the context-parallel devices
  return std::nullopt;
}

/// Which devices hold different experts.
Why read_expert_axes(const TableLine& in, std::int64_t groups, lower::Parallelism& p) {
  p.expert = in.count("ep", 1);
  const std::int64_t slices = in.count("etp", p.tensor);
  if (slices != 1 && slices != p.tensor) return "experts are sliced over all tensor-parallel devices or over none";
  if (p.expert > 1 && slices < p.tensor) p.expert_over.tensor = true;
  // If there are too few data-parallel devices, experts are also spread over tensor- and context-parallel ones.
  if (p.expert % p.expert_others() == 0 && groups % p.expert_data() != 0)
    p.expert_over = {p.tensor > 1 && (in.text("etp").empty() || slices < p.tensor), p.context > 1};
  if (p.expert % p.expert_others() != 0 || groups % p.expert_data() != 0)
    return "ep does not divide the devices of a stage";
  return std::nullopt;
}

Why read_strategy(const TableLine& in, const kernel::Software& software, TrainingRow& row) {
  lower::Parallelism& p = row.strategy.parallelism;
  const bool whole = row.compiled_whole;
  const bool sharded = contains(in.text("fsdp_zero"), "fsdp");
  if (in.text("tp").empty() && !sharded && in.count("n_chips") > 1) return "the parallelism is not stated";
  p.tensor = in.count("tp", 1);
  p.pipeline = in.count("pp", 1);
  p.context = in.count("cp", 1);
  const std::int64_t chips = in.count("n_chips"), inner = p.tensor * p.pipeline * p.context;
  if (chips % inner != 0) return "tp x pp x cp must divide the number of chips";
  const std::int64_t groups = chips / inner;
  if (!sharded && in.count("dp", groups) != groups)
    return "the row contradicts itself: dp x tp x pp x cp must be n_chips";
  if (auto why = read_sharing(in, software, groups, row)) return why;
  if (auto why = read_expert_axes(in, groups, p)) return why;
  if (in.text("sequence_parallel") == "y" && p.tensor > 1) p.residual = lower::ResidualScheme::sequence;

  const double accumulated = in.number("grad_accum"), micro = in.number("micro_batch");
  row.sequences = std::round(in.number("global_batch", micro * accumulated * static_cast<double>(groups)));
  row.sequence = in.count("seq_len");
  if (row.sequences < 1.0 || row.sequence == 0) return "the batch or the sequence length is not stated";
  if (p.context > 1 && row.sequence % p.context != 0) return "cp must divide the sequence length";
  const double per_group = row.sequences / static_cast<double>(groups);
  double one = whole || micro == 0.0 ? per_group / std::max(1.0, accumulated) : micro;
  if (micro == 0.0 && accumulated == 0.0 && p.pipeline > 1) one = 1.0;  // pipelines use the smallest microbatch
  if (whole && accumulated == 0.0 && micro > 0.0) one = std::min(per_group, micro * static_cast<double>(p.tensor));
  if (one < 1.0) return "less than one sequence for each data-parallel group";
  row.strategy.micro_batch = std::llround(std::min(one, per_group));
  if (row.strategy.micro_batch < 1) return "less than one sequence for each data-parallel group";

  using enum clock::PipelineSchedule;
  const std::string_view framework = in.text("framework");
  const std::int64_t layers = row.model.decoder.layers(), chunk = std::llround(software.defaults.chunk_layers);
  if (p.pipeline > layers) return "the row contradicts itself: more stages than layers";
  if (p.pipeline > 1) {
    row.strategy.interleave = std::max<std::int64_t>(1, in.count("vpp", 1));
    if (in.text("vpp").empty() && chunk > 0 && layers % (chunk * p.pipeline) == 0)
      row.strategy.interleave = layers / (chunk * p.pipeline);
    if (contains(in.text("vpp"), "max")) row.strategy.interleave = layers / p.pipeline;
    row.strategy.interleave = std::min(row.strategy.interleave, clock::most_chunks(layers, p.pipeline));
    row.strategy.schedule = contains(framework, "ZB-2p")   ? zb_h2
                            : contains(framework, "ZB-1p") ? zb_h1
                            : row.strategy.interleave > 1  ? interleaved
                                                           : one_f_one_b;
    const auto m = static_cast<std::int64_t>(row.sequences / static_cast<double>(groups * row.strategy.micro_batch));
    if (!clock::is_possible({row.strategy.schedule, p.pipeline, m, row.strategy.interleave})) {
      row.strategy.schedule = one_f_one_b;
      row.strategy.interleave = 1;
    }
    if (m < 1) return "less than one microbatch";
  }
  return std::nullopt;
}

/// What is recomputed. Where neither row nor software says it, as little as fits: see TrainingPredictor.
Why read_recompute(const TableLine& in, const kernel::Software& software, TrainingRow& row) {
  const std::string_view stated = in.text("recompute");
  const std::string& usual = software.defaults.recompute;
  row.states_recompute = !stated.empty() || !usual.empty();
  if (!row.states_recompute) return std::nullopt;
  const std::optional<std::string> means =
      stated.empty() ? std::optional(usual) : kernel::recompute_meaning(software.recompute, stated);
  if (!means) return fmt::format("recompute {} is not a setting of {}", in_quotes(stated), software.id);
  row.strategy.recompute = *lower::parse_recompute(*means, "recompute");
  // With flash attention there is nothing inside attention to recompute.
  if (row.software.flash && row.strategy.recompute == lower::Recompute::selective())
    row.strategy.recompute = lower::Recompute::none();
  return std::nullopt;
}

/// What the software does, and what the row says about it.
Why read_software(const TableLine& in, const KnownFormats& formats, const kernel::ChosenSoftware& chosen,
                  TrainingRow& row) {
  const std::string_view notes = in.text("notes"), flash = in.text("flash_attention");
  const kernel::Software& software = *chosen.software;
  row.framework = software.id;
  row.compute = formats.training(in.text("precision")).value_or(Dtype::bf16);
  kernel::SoftwareCase at = kernel::software_case(row.model);
  at.family = row.family;
  at.chip = row.chip;
  at.compute = name(row.compute);
  if (auto set = kernel::apply_software(chosen, at, row.software); !set) return set.error().what;
  if (row.software.step.fusion == numbers::Fusion::eager && contains(notes, "compile")) {
    at.fusion = "compiled";
    row.software = {};
    if (auto set = kernel::apply_software(chosen, at, row.software); !set) return set.error().what;
    row.software.step.fusion = numbers::Fusion::compiled;
  }
  if (!flash.empty()) row.software.flash = flash != "n";
  if (contains(flash, "cudnn")) row.software.attention = hardware::AttentionKernel::cudnn;
  row.software.step.fixed_capacity = notes.starts_with("(tokendrop)");
  if (auto why = read_recompute(in, software, row)) return why;
  // "lora r16"; NVIDIA's recipes and MLPerf adapt attention.
  if (const std::string_view task = in.text("task"); task.starts_with("lora")) {
    constexpr std::int64_t usual = 16;
    std::int64_t rank = 0;
    for (const std::string_view name : {" r", "-r", "(r", "(r=", " r=", "rank=", "rank "})
      if (rank == 0) rank = noted(task, name);
    row.model.adapters = model::Adapters{rank > 0 ? rank : usual, true, false};
  }
  if (!software.defaults.gradients.empty()) row.gradients = *parse_dtype(software.defaults.gradients, "gradients");
  if (software.defaults.reports == "reserved") row.view = MemoryView::reserved;
  if (contains(notes, "nvidia-smi")) row.view = MemoryView::driver;
  row.trusted = in.text("trust") != "c";
  row.typical = row.trusted && software.atypical.empty() && chosen.name->atypical.empty();
  return std::nullopt;
}

void read_measured(const TableLine& in, TrainingRow& row) {
  const double chips = in.number("n_chips");
  double seconds = in.number("step_time_s");
  if (seconds == 0.0) seconds = in.number("derived_step_time_s");
  for (const std::string_view column : {"tokens_per_s_per_chip", "derived_tokens_per_s_per_chip"})
    if (const double rate = in.number(column); seconds == 0.0 && rate > 0.0)
      seconds = row.sequences * static_cast<double>(row.sequence) / (rate * chips);
  if (seconds > 0.0) row.measured = Seconds(seconds);
  if (const double peak = in.number("peak_mem_gb"); peak > 0.0) row.peak = peak * 1_GiB;
  const std::string_view notes = in.text("notes");
  if (const std::size_t at = notes.find("; reserved "); at != std::string_view::npos)
    row.reserved = std::atof(std::string(notes.substr(at + 11)).c_str()) * 1_GiB;
}

/// Whether the row's arithmetic per second and its seconds agree with its batch. Authors count recomputation and
/// attention or not, but never less than the products of both passes: two FLOP for each weight and token, three times.
Why contradiction(const TableLine& in, const TrainingRow& row) {
  const FlopsPerSecond printed = in.number("tflops_per_s_per_chip") * 1_TFLOP_per_s;
  if (!row.measured || !(printed > FlopsPerSecond(0)) || row.model.adapters) return std::nullopt;
  const Flops stated = in.number("n_chips") * printed * *row.measured;
  const auto weights = static_cast<double>(model::parameter_counts(row.model).active_matrix);
  const Flops least(6.0 * weights * row.sequences * static_cast<double>(row.sequence));
  constexpr double rounding = 0.4;  // of figures, and of what authors leave out: the head, frozen weights
  if (stated >= rounding * least) return std::nullopt;
  return "the row contradicts itself: its FLOP/s x seconds are too few for its batch";
}

std::string describe(const TrainingRow& row) {
  const lower::Parallelism& p = row.strategy.parallelism;
  std::string text = row.cluster;
  const auto add = [&](std::string_view name, std::int64_t n) {
    if (n > 1) text += fmt::format(" {} {}", name, n);
  };
  add("dp", p.data);
  add("fsdp", p.fsdp);
  add("tp", p.tensor);
  add("pp", p.pipeline);
  add("cp", p.context);
  add("ep", p.expert);
  add("interleave", row.strategy.interleave);
  add("micro-batch", row.strategy.micro_batch);
  if (row.strategy.recompute != lower::Recompute::none())
    text += fmt::format(" recompute {}", lower::name(row.strategy.recompute));
  return fmt::format("{}, {} x {} tokens, {}", text, human_number(row.sequences), row.sequence, name(row.compute));
}

}  // namespace

Result<TrainingRows> read_training(const CsvTable& given, const hardware::Catalogue& catalogue) {
  TrainingRows out;
  CsvTable table = given;
  ASSAY_TRY(readings, KnownReadings::make(catalogue));
  const std::vector<Why> refused = readings.apply(table);
  table = tidied_steps(std::move(table));
  ASSAY_TRY(formats, KnownFormats::make(catalogue));
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  ASSAY_TRY(software, kernel::software_of(catalogue));
  ASSAY_TRY(known, KnownModels::make(catalogue));
  ASSAY_TRY(notes, KnownNotes::make(catalogue));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    TrainingRow row;
    row.id = in.text("id");
    row.group = fmt::format("{}, {}, {}", in.text("source_key"), in.text("model"), in.text("accelerator"));
    row.fold = chips.fold(in.text("accelerator"), in.text("source_key"), in.text("split"));
    Why why = refused[i];
    if (!why && in.text("oom") == "y") why = "ran out of memory";
    if (!why) why = notes.refusal(in.text("notes"));
    if (!why) why = unread_training(in, formats);
    NamedSoftware by = software_in(in, software, kernel::SoftwareVerb::train, "framework", "");
    if (!why) why = by.why;
    if (!why) why = read_model(in, std::llround(by.chosen.software->defaults.vocabulary), known, row);
    if (!why) why = read_hardware(in, chips, row);
    if (!why) why = read_strategy(in, *by.chosen.software, row);
    if (!why) why = read_software(in, formats, by.chosen, row);
    if (!why) read_measured(in, row);
    if (!why) why = contradiction(in, row);
    if (!why && !row.measured && !row.peak) why = "neither time nor memory is stated, only a utilisation";
    if (why) {
      const bool memory = in.number("peak_mem_gb") > 0.0;
      read_measured(in, row);
      out.unanswered.push_back({{row.id, row.group, *why}, row.measured || !memory, memory});
      continue;
    }
    row.what = describe(row);
    out.rows.push_back(std::move(row));
  }
  return out;
}

Result<TrainingRows> read_h200_train(const CsvTable& table, const hardware::Catalogue& catalogue) {
  TrainingRows out;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    TrainingRow row;
    using enum Field::Kind;
    static constexpr Field fields[] = {{"batch", count},           {"seq", count},     {"remat", words, "0|1"},
                                       {"compiled", words, "0|1"}, {"step_s", amount}, {"peak_bytes", amount}};
    if (auto why = unread(table, i, fields)) {
      out.unanswered.push_back(
          {{fmt::format("line {}", table.line(i)), std::string(in.text("model")), std::move(*why)}, true, true});
      continue;
    }
    ASSAY_TRY(model, model::catalogue_model(in.text("model"), catalogue, "model"));
    row.model = model.imported.model;
    row.named = in.text("model");
    row.cluster = "h200-sxm:1";
    row.sequences = in.number("batch");
    row.sequence = in.count("seq");
    row.strategy.micro_batch = in.count("batch");
    const bool again = in.text("remat") == "1", compiled = in.text("compiled") == "1";
    if (again) row.strategy.recompute = lower::Recompute::full();
    row.software.step.fusion = compiled ? numbers::Fusion::compiled : numbers::Fusion::eager;
    row.software.attention = hardware::AttentionKernel::cudnn;  // as profiles of such steps show
    row.software.step.explicit_mask = compiled;                 // the same
    row.gradients = Dtype::bf16;
    row.small_states = true;
    row.measured = Seconds(in.number("step_s"));
    row.peak = Bytes(in.number("peak_bytes"));
    row.group = fmt::format("{}, {}", in.text("model"), compiled ? "compiled" : again ? "eager, checkpoints" : "eager");
    row.id = fmt::format("{}-b{}-s{}{}{}", in.text("model"), in.text("batch"), in.text("seq"), again ? "-remat" : "",
                         compiled ? "-compiled" : "");
    row.fold = fold_of(row.id);
    row.what = describe(row);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace assay::validate
