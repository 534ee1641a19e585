#include "assay/validate/rows/training_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/model/model_catalogue.h"
#include "assay/validate/rows/known_chips.h"
#include "assay/validate/rows/known_software.h"
#include "assay/validate/rows/table_line.h"

namespace assay::validate {
namespace {

/// The first column that is stated but cannot be read.
Why unread_training(const TableLine& in) {
  using enum Field::Kind;
  static constexpr Field fields[] = {
      {"n_chips", count},
      {"seq_len", count},
      {"tp", count},
      {"pp", count},
      {"vpp", count, "max*"},
      {"dp", count},
      {"cp", count},
      {"ep", count},
      {"global_batch", amount},
      {"micro_batch", amount},
      {"grad_accum", amount},
      {"year", count},
      {"step_time_s", amount},
      {"derived_step_time_s", amount},
      {"tokens_per_s_per_chip", amount},
      {"derived_tokens_per_s_per_chip", amount},
      {"tflops_per_s_per_chip", amount},
      {"peak_mem_gb", amount},
      {"precision", words,
       "bf16|bf16(*|fp16|fp16(*|fp8|fp8(*|mxfp8|nvfp4|nvfp4(*|bf16/fp16 mixed|fp16/bf16 mixed|int8|int8 "
       "(*|int8-quantised*|int8/fp8*"},
      {"fsdp_zero", words,
       "none|ddp|zero0|zero1|zero1(*|zero1 over all DP|distopt(zero1)|hybrid zero1*|zero2|zero2(*|zero3|zero3(*|"
       "fsdp|fsdp *|fsdp(*|fsdp=*|fsdp2=*|FSDP|FSDP(*|*-fsdp(*"},
      {"sequence_parallel", words, "y|n"},
      {"flash_attention", words, "y|n|y (cuDNN)"},
      {"trust", words, "A|B|C"}};
  if (auto why = unread_model(in)) return why;
  return unread(in.table, in.row, fields);
}

/// A network that is slower than the catalogue's, and whose switches do not add.
void read_network(const NamedNetwork& network, const hardware::ScaleOut& usual, TrainingRow& row) {
  if (network.bandwidth == BytesPerSecond(0)) return;
  if (usual.in_network_reduction && usual.in_network_reduction->value)
    row.changes.push_back({"network.scale_out.in_network_reduction", "false"});
  if (const BytesPerSecond reached = network.reached * network.bandwidth; reached < usual.bandwidth.value)
    row.changes.push_back({"network.scale_out.bandwidth", fmt::format("{} B/s", reached.value())});
}

Why read_hardware(const TableLine& in, KnownChips& known, TrainingRow& row) {
  const std::string_view accelerator = in.text("accelerator");
  const std::optional<std::string> chip = known.find(accelerator);
  if (!chip) return fmt::format("{} is not in the catalogue", accelerator);
  const std::int64_t chips = in.count("n_chips");
  if (chips == 0) return "the number of chips is not stated";
  if (const estimate::Family* family = known.family(*chip)) {
    row.compiled_whole = family->compiled_whole;
    row.family = family->id;
  }
  const std::string_view topology = in.text("topology");
  std::int64_t slices = 1;
  if (row.compiled_whole && contains(topology, "x v"))
    slices = std::max(1LL, std::atoll(std::string(topology).c_str()));
  row.cluster =
      slices > 1 ? fmt::format("{}*{}:{}", slices, *chip, chips / slices) : fmt::format("{}:{}", *chip, chips);
  if (const NamedAccelerator* named = known.named(accelerator)) {
    row.changes = named->changes;
    const hardware::Chip* whole = known.chip(*chip);
    if (named->power && whole && whole->power && *named->power < whole->power->chip.value) row.power = named->power;
  }
  if (const hardware::Chip* whole = known.chip(*chip); whole && whole->network.scale_out && !row.compiled_whole)
    read_network(known.network(in.text("interconnect")), *whole->network.scale_out, row);
  return std::nullopt;
}

/// How weights and optimizer states are sharded, from the column's text.
Why read_sharing(const TableLine& in, const estimate::Software& software, std::int64_t groups, TrainingRow& row) {
  lower::Parallelism& p = row.strategy.parallelism;
  const std::string_view text = in.text("fsdp_zero");
  p.data = groups;
  p.fsdp = 1;
  p.zero = 0;
  const bool sharded = contains(text, "zero3") || contains(text, "fsdp") || contains(text, "FSDP");
  if (contains(text, "zero2"))
    p.zero = 2;
  else if (contains(text, "zero1"))
    p.zero = 1;
  else if (sharded) {
    std::int64_t ways = noted(text, "fsdp=");
    if (ways == 0) ways = noted(text, "fsdp2=");
    if (ways == 0) ways = noted(text, "fsdp(");
    if (ways == 0) ways = noted(text, "fsdp ");
    if (contains(text, "DP over DCN") && ways == 0) {
      const std::size_t star = row.cluster.find('*');
      ways = star == std::string::npos ? groups : groups / std::atoll(row.cluster.c_str());
    }
    if (ways <= 0 || groups % ways != 0) ways = groups;
    p.fsdp = ways;
    p.data = groups / ways;
    // Weights that stay gathered between the passes of a pipeline's microbatches are sharded between steps only.
    if (in.count("pp", 1) > 1 && software.defaults.pipeline_keeps_weights) {
      p.data = groups;
      p.fsdp = 1;
      p.zero = 2;
    }
    if (groups == 1 && p.context > 1) p.zero = 3;  // weights are then sharded over the context-parallel devices
  }
  return std::nullopt;
}

Why read_strategy(const TableLine& in, const estimate::Software& software, TrainingRow& row) {
  lower::Parallelism& p = row.strategy.parallelism;
  const bool whole = row.compiled_whole;
  const bool sharded = contains(in.text("fsdp_zero"), "fsdp") || contains(in.text("fsdp_zero"), "FSDP");
  if (in.text("tp").empty() && !sharded) return "the parallelism is not stated";
  p.tensor = in.count("tp", 1);
  p.pipeline = in.count("pp", 1);
  p.context = in.count("cp", 1);
  const std::int64_t chips = in.count("n_chips"), inner = p.tensor * p.pipeline * p.context;
  if (chips % inner != 0) return "tp x pp x cp must divide the number of chips";
  const std::int64_t groups = chips / inner;
  if (!sharded && in.count("dp", groups) != groups)
    return "the row contradicts itself: dp x tp x pp x cp must be n_chips";
  if (auto why = read_sharing(in, software, groups, row)) return why;
  p.expert = in.count("ep", 1);
  // If there are too few data-parallel devices, experts are also spread over tensor- and context-parallel ones.
  if (groups % p.expert != 0) p.expert_over = {p.tensor > 1, p.context > 1};
  if (p.expert % p.expert_others() != 0 || groups % p.expert_data() != 0)
    return "ep does not divide the devices of a stage";
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

  using enum pipeline::PipelineSchedule;
  const std::string_view framework = in.text("framework");
  const std::int64_t layers = row.model.decoder.layers(), chunk = std::llround(software.defaults.chunk_layers);
  if (p.pipeline > layers) return "the row contradicts itself: more stages than layers";
  if (p.pipeline > 1) {
    row.strategy.interleave = std::max<std::int64_t>(1, in.count("vpp", 1));
    if (in.text("vpp").empty() && chunk > 0 && layers % (chunk * p.pipeline) == 0)
      row.strategy.interleave = layers / (chunk * p.pipeline);
    // Tables also count embedding and head as layers.
    if (contains(in.text("vpp"), "max") || row.strategy.interleave * p.pipeline > layers)
      row.strategy.interleave = layers / p.pipeline;
    row.strategy.schedule = contains(framework, "ZB-2p")   ? zb_h2
                            : contains(framework, "ZB-1p") ? zb_h1
                            : row.strategy.interleave > 1  ? interleaved
                                                           : one_f_one_b;
    const auto m = static_cast<std::int64_t>(row.sequences / static_cast<double>(groups * row.strategy.micro_batch));
    if (!pipeline::is_possible({row.strategy.schedule, p.pipeline, m, row.strategy.interleave})) {
      row.strategy.schedule = one_f_one_b;
      row.strategy.interleave = 1;
    }
    if (m < 1) return "less than one microbatch";
  }
  return std::nullopt;
}

/// What is recomputed. Where neither row nor software says it, as little as fits: see TrainingPredictor.
Why read_recompute(const TableLine& in, const estimate::Software& software, TrainingRow& row) {
  const std::string_view stated = in.text("recompute");
  const std::string& usual = software.defaults.recompute;
  row.states_recompute = !stated.empty() || !usual.empty();
  if (!row.states_recompute) return std::nullopt;
  const std::optional<std::string> means =
      stated.empty() ? std::optional(usual) : estimate::recompute_meaning(software.recompute, stated);
  if (!means) return fmt::format("recompute {} is not a setting of {}", in_quotes(stated), software.id);
  row.strategy.recompute = *lower::parse_recompute(*means, "recompute");
  // With flash attention there is nothing inside attention to recompute.
  if (row.software.flash && row.strategy.recompute == lower::Recompute::selective())
    row.strategy.recompute = lower::Recompute::none();
  return std::nullopt;
}

void read_compute(const TableLine& in, TrainingRow& row) {
  const std::string_view precision = in.text("precision");
  if (contains(precision, "fp4"))
    row.compute = Dtype::fp4;
  else if (contains(precision, "fp8"))
    row.compute = Dtype::fp8;
  else if (contains(precision, "int8"))
    row.compute = Dtype::int8;
}

/// What the software does, and what the row says about it.
Why read_software(const TableLine& in, const estimate::ChosenSoftware& chosen, TrainingRow& row) {
  const std::string_view notes = in.text("notes"), flash = in.text("flash_attention");
  const estimate::Software& software = *chosen.software;
  row.framework = software.id;
  read_compute(in, row);
  estimate::SoftwareCase at = estimate::software_case(row.model);
  at.family = row.family;
  at.compute = name(row.compute);
  if (auto set = estimate::apply_software(chosen, at, row.software); !set) return set.error().what;
  if (row.software.step.fusion == estimate::Fusion::eager && contains(notes, "compile")) {
    at.fusion = "compiled";
    row.software = {};
    if (auto set = estimate::apply_software(chosen, at, row.software); !set) return set.error().what;
    row.software.step.fusion = estimate::Fusion::compiled;
  }
  if (!flash.empty()) row.software.flash = flash != "n";
  if (contains(flash, "cuDNN")) row.software.attention = hardware::AttentionKernel::cudnn;
  row.software.step.fixed_capacity = notes.starts_with("(tokendrop)");
  if (auto why = read_recompute(in, software, row)) return why;
  // "lora r16"; NVIDIA's recipes and MLPerf adapt attention.
  if (const std::string_view task = in.text("task"); task.starts_with("lora")) {
    constexpr std::int64_t usual = 16;
    const std::int64_t rank = noted(task, " r");
    row.model.adapters = model::Adapters{rank > 0 ? rank : usual, true, false};
  }
  if (!software.defaults.gradients.empty()) row.gradients = *parse_dtype(software.defaults.gradients, "gradients");
  if (software.defaults.reports == "reserved") row.view = MemoryView::reserved;
  if (contains(notes, "nvidia-smi")) row.view = MemoryView::driver;
  row.trusted = in.text("trust") != "C";
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

Result<TrainingRows> read_training(const CsvTable& table, const hardware::Catalogue& catalogue) {
  TrainingRows out;
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  ASSAY_TRY(software, estimate::software_of(catalogue));
  KnownModels known(catalogue);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    TrainingRow row;
    row.id = in.text("id");
    row.group = fmt::format("{}, {}, {}", in.text("source_key"), in.text("model"), in.text("accelerator"));
    row.fold = chips.fold(in.text("accelerator"), row.group, in.text("split"));
    Why why;
    if (in.text("oom") == "y") why = "ran out of memory";
    if (!why) why = unread_training(in);
    NamedSoftware by = software_in(in, software, estimate::SoftwareVerb::train, "framework", "");
    if (!why) why = by.why;
    if (!why) why = read_model(in, std::llround(by.chosen.software->defaults.vocabulary), known, row);
    if (!why) why = read_hardware(in, chips, row);
    if (!why) why = read_strategy(in, *by.chosen.software, row);
    if (!why) why = read_software(in, by.chosen, row);
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
    row.software.step.fusion = compiled ? estimate::Fusion::compiled : estimate::Fusion::eager;
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
