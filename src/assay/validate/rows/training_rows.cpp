#include "assay/validate/rows/training_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/validate/rows/known_chips.h"
#include "assay/validate/rows/table_line.h"

namespace assay::validate {
namespace {

bool is_new_megatron(std::string_view framework) {
  return contains(framework, "NeMo") || contains(framework, "Megatron-Bridge") || contains(framework, "NVIDIA Release");
}

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
      {"peak_mem_gb", amount},
      {"precision", words,
       "bf16|fp16|fp8|fp8(*|mxfp8|nvfp4|nvfp4(*|bf16/fp16 mixed|fp16/bf16 mixed|int8|int8 "
       "(*|int8-quantised*|int8/fp8*"},
      {"fsdp_zero", words,
       "none|ddp|zero0|zero1|zero1(*|zero1 over all DP|distopt(zero1)|hybrid zero1*|zero2|zero2(*|zero3|zero3(*|"
       "fsdp|fsdp *|fsdp(*|fsdp=*|FSDP|FSDP(*|megatron-fsdp(*"},
      {"recompute", words,
       "none|null|minimal|full|full layers=*|full offload[*|selective|selective(op)|selective(layer)|selective [*|"
       "custom|custom save[*|custom offload[*|qkv_proj_offloaded"},
      {"sequence_parallel", words, "y|n"},
      {"flash_attention", words, "y|n|y (cuDNN)"},
      {"trust", words, "A|B|C"}};
  if (auto why = unread_model(in)) return why;
  return unread(in.table, in.row, fields);
}

Why read_hardware(const TableLine& in, KnownChips& known, TrainingRow& row) {
  const std::string_view accelerator = in.text("accelerator");
  const std::optional<std::string> chip = known.find(accelerator);
  if (!chip) return fmt::format("{} is not in the catalogue", accelerator);
  const std::int64_t chips = in.count("n_chips");
  if (chips == 0) return "the number of chips is not stated";
  row.compiled_whole = known.compiled_whole(*chip);
  const std::string_view topology = in.text("topology");
  std::int64_t slices = 1;
  if (row.compiled_whole && contains(topology, "x v"))
    slices = std::max(1LL, std::atoll(std::string(topology).c_str()));
  row.cluster =
      slices > 1 ? fmt::format("{}*{}:{}", slices, *chip, chips / slices) : fmt::format("{}:{}", *chip, chips);
  if (const NamedAccelerator* named = known.named(accelerator)) {
    row.changes = named->changes;
    const hardware::Chip* whole = known.chip(*chip);
    if (named->power && whole && whole->power) row.power = *named->power / whole->power->chip.value;
  }
  const NamedNetwork network = known.network(in.text("interconnect"));
  row.omni_path = network.omni_path;
  row.network = network.bandwidth;
  return std::nullopt;
}

/// How weights and optimizer states are sharded, from the column's text.
Why read_sharing(const TableLine& in, std::int64_t groups, TrainingRow& row) {
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
    if (ways == 0) ways = noted(text, "fsdp(");
    if (ways == 0) ways = noted(text, "fsdp ");
    if (contains(text, "DP over DCN") && ways == 0) {
      const std::size_t star = row.cluster.find('*');
      ways = star == std::string::npos ? groups : groups / std::atoll(row.cluster.c_str());
    }
    if (ways <= 0 || groups % ways != 0) ways = groups;
    p.fsdp = ways;
    p.data = groups / ways;
    if (groups == 1 && p.context > 1) p.zero = 3;  // weights are then sharded over the context-parallel devices
  }
  return std::nullopt;
}

Why read_strategy(const TableLine& in, TrainingRow& row) {
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
  if (auto why = read_sharing(in, groups, row)) return why;
  p.expert = in.count("ep", 1);
  // If there are too few data-parallel devices, experts are also spread over tensor- and context-parallel ones.
  if (groups % p.expert != 0) p.expert_over = {p.tensor > 1, p.context > 1};
  if (p.expert % p.expert_others() != 0 || groups % p.expert_data() != 0)
    return "ep does not divide the devices of a stage";
  if (in.text("sequence_parallel") == "y" && p.tensor > 1) p.residual = lower::ResidualScheme::sequence;

  const double accumulated = in.number("grad_accum"), micro = in.number("micro_batch");
  row.sequences = in.number("global_batch", micro * accumulated * static_cast<double>(groups));
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
  const std::int64_t layers = row.model.decoder.layers();
  if (p.pipeline > layers) return "the row contradicts itself: more stages than layers";
  if (p.pipeline > 1) {
    row.strategy.interleave = std::max<std::int64_t>(1, in.count("vpp", 1));
    // Newer Megatron interleaves unless told otherwise: two layers per chunk if nothing is stated.
    if (in.text("vpp").empty() && is_new_megatron(framework) && layers % (2 * p.pipeline) == 0)
      row.strategy.interleave = layers / (2 * p.pipeline);
    if (contains(in.text("vpp"), "max")) row.strategy.interleave = layers / p.pipeline;
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

/// "custom save[decoder_layer_input+context+query_proj]", "minimal", "full", "selective(op)". Lists name what is kept
/// on the chip or offloaded. Empty means no recomputation, except for torchtitan, which checkpoints by operator.
lower::Recompute policy_of(std::string_view text, bool flash, bool torchtitan) {
  if (text == "selective(op)" || (text.empty() && torchtitan)) return lower::Recompute::operators();
  if (text == "selective" && !flash) return lower::Recompute::selective();  // flash attention has nothing to recompute
  if (text == "minimal") return lower::Recompute::all_but_products();
  if (contains(text, "query_proj") || contains(text, "qkv_proj"))
    return contains(text, "context") ? lower::Recompute::feed_forward() : lower::Recompute::all_but_projections();
  if (text.starts_with("full") && !contains(text, "layers=")) return lower::Recompute::full();
  return contains(text, "custom") ? lower::Recompute::full() : lower::Recompute::none();
}

/// What the row says about its software. Unstated recomputation means none, which fits most such rows.
Why read_software(const TableLine& in, TrainingRow& row) {
  const std::string_view framework = in.text("framework"), notes = in.text("notes"), recompute = in.text("recompute"),
                         precision = in.text("precision");
  const double year = in.number("year", 2025);
  const bool whole = row.compiled_whole;
  const std::string_view flash = in.text("flash_attention");
  row.flash = flash != "n" && !(flash.empty() && contains(framework, "Megatron-LM") && year < 2024);
  // With flash attention there is nothing inside attention to recompute.
  row.states_recompute = !recompute.empty() || contains(framework, "torchtitan");
  row.strategy.recompute = policy_of(recompute, row.flash, contains(framework, "torchtitan"));
  // "lora r16"; NVIDIA's recipes and MLPerf adapt attention.
  if (const std::string_view task = in.text("task"); task.starts_with("lora")) {
    constexpr std::int64_t usual = 16;
    const std::int64_t rank = noted(task, " r");
    row.model.adapters = model::Adapters{rank > 0 ? rank : usual, true, false};
  }

  // Megatron's default dropout is 0.1; models since Llama are trained without.
  row.dropout = contains(framework, "Megatron") && year < 2024;
  if (contains(framework, "torchtitan")) row.view = MemoryView::reserved;  // what it logs
  if (contains(notes, "nvidia-smi")) row.view = MemoryView::driver;
  const bool torch = contains(framework, "Composer") || contains(framework, "torchtitan");
  const bool new_megatron = is_new_megatron(framework);
  // llm.c is a C program: it launches kernels without an interpreter.
  row.software.captured = contains(framework, "NVIDIA Release") || contains(framework, "Megatron-Bridge") ||
                          (contains(framework, "NeMo") && year >= 2025) || contains(framework, "llm.c");
  row.trusted = in.text("trust") != "C";
  row.typical = row.trusted && !contains(framework, "TE 2.11");
  const bool cudnn = contains(flash, "cuDNN");
  if (!cudnn && (torch || contains(framework, "ColossalAI") || contains(framework, "InternEvo")))
    row.attention = hardware::AttentionKernel::flash2;
  if (cudnn) row.attention = hardware::AttentionKernel::cudnn;
  row.cast_when_gathered = torch || whole;
  row.software.first_flash = contains(framework, "Composer");  // its benchmarks ran attn_impl triton
  row.software.fixed_capacity = notes.starts_with("(tokendrop)");
  // Release notes of Megatron-Bridge 0.5: gated experts in MXFP8 are fused, in graphs of the whole step.
  const std::size_t release = framework.find("Megatron-Bridge ");
  row.software.fused_experts = release != std::string_view::npos && framework.substr(release + 16) >= "26.06" &&
                               precision == "mxfp8" && estimate::has_gated_experts(row.model);
  const bool compiled = torch && contains(notes, "compile");
  // XLA compiles whole steps: its runtime launches kernels without an interpreter.
  const bool jax = contains(framework, "MaxText") || contains(framework, "maxtext") || contains(framework, "PaxML");
  if (jax && !whole) {
    row.software.fusion = estimate::Fusion::xla;
    row.software.captured = true;
  }
  if (torch) row.software.fusion = compiled ? estimate::Fusion::compiled : estimate::Fusion::eager;
  // torchtitan compiles its layers, and since 2025 also the loss, which then does not cast logits.
  if (compiled) row.software.loss = year >= 2025 ? estimate::Fusion::fused : estimate::Fusion::eager;
  // Since 2022 Megatron-LM overlaps the reduction of input gradients with the weight-gradient product; its forks
  // followed, and InternEvo has the same products. Only newer software overlaps the others in pieces.
  const bool all =
      whole || new_megatron || (contains(framework, "Megatron-LM") && year >= 2024 && !contains(framework, "TE 2.11"));
  const bool backward = (contains(framework, "Megatron-LM") && year >= 2022) || contains(framework, "InternEvo") ||
                        (contains(framework, "Megatron-DeepSpeed") && year >= 2023);
  row.software.tensor_overlap = all        ? estimate::TensorOverlap::all
                                : backward ? estimate::TensorOverlap::backward
                                           : estimate::TensorOverlap::none;
  const bool old_megatron = contains(framework, "Megatron-LM") || contains(framework, "Megatron-DeepSpeed");
  row.overlap = !(old_megatron && (year < 2024 || contains(framework, "TE 2.11")));

  if (contains(precision, "fp4"))
    row.compute = Dtype::fp4;
  else if (contains(precision, "fp8"))
    row.compute = Dtype::fp8;
  else if (contains(precision, "int8"))
    row.compute = Dtype::int8;
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

double peak_bytes(const training::MemoryParts& memory, MemoryView view) {
  return view == MemoryView::allocated  ? memory.allocated()
         : view == MemoryView::reserved ? memory.reserved()
                                        : memory.total();
}

Result<TrainingRows> read_training(const CsvTable& table, const hardware::Catalogue& catalogue) {
  TrainingRows out;
  ASSAY_TRY(chips, KnownChips::make(catalogue));
  KnownModels known(catalogue);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const TableLine in{table, i};
    TrainingRow row;
    row.id = in.text("id");
    row.group = fmt::format("{}, {}, {}", in.text("source_key"), in.text("model"), in.text("accelerator"));
    row.fold = fold_of(row.group, in.text("split"));
    Why why;
    if (in.text("oom") == "y") why = "ran out of memory";
    if (!why) why = unread_training(in);
    // GPT-2's vocabulary as Megatron pads it; its papers do not state it.
    if (!why) why = read_model(in, contains(in.text("framework"), "Megatron-LM") ? 51200 : 0, known, row.model);
    if (!why) why = read_hardware(in, chips, row);
    if (!why) why = read_strategy(in, row);
    if (!why) why = read_software(in, row);
    if (!why) read_measured(in, row);
    if (!why && !row.measured && !row.peak) why = "neither time nor memory is stated, only a utilisation";
    if (why) {
      out.unanswered.push_back({row.id, row.group, *why});
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
      out.unanswered.push_back({fmt::format("line {}", table.line(i)), std::string(in.text("model")), std::move(*why)});
      continue;
    }
    ASSAY_TRY(model, model::catalogue_model(in.text("model"), catalogue, "model"));
    row.model = model.imported.model;
    row.cluster = "h200-sxm:1";
    row.sequences = in.number("batch");
    row.sequence = in.count("seq");
    row.strategy.micro_batch = in.count("batch");
    const bool again = in.text("remat") == "1", compiled = in.text("compiled") == "1";
    if (again) row.strategy.recompute = lower::Recompute::full();
    row.software.fusion = compiled ? estimate::Fusion::compiled : estimate::Fusion::eager;
    row.attention = hardware::AttentionKernel::flash2;  // what PyTorch's attention uses for these shapes
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

Result<TrainingPredictor> TrainingPredictor::make(const hardware::Catalogue& catalogue) {
  TrainingPredictor predictor(catalogue);
  ASSAY_TRY(steps, estimate::steps_of(catalogue));
  predictor.steps = std::move(steps);
  return predictor;
}

Result<const Place*> TrainingPredictor::place(const TrainingRow& row) {
  return places_.find(row.cluster, row.changes, row.id, (row.omni_path ? steps.omni_path : 1.0) * row.network);
}

const hardware::Cluster* TrainingPredictor::cluster(const TrainingRow& row) {
  const auto known = place(row);
  return known ? &(*known)->cluster : nullptr;
}

const estimate::Family* TrainingPredictor::family(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? steps.family(on->chip) : nullptr;
}

const estimate::IntervalClass* TrainingPredictor::time_interval(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? estimate::interval_of(steps.time_intervals,
                                    estimate::step_classes(steps.family(on->chip), *on, row.model))
            : nullptr;
}

const estimate::IntervalClass* TrainingPredictor::memory_interval(const TrainingRow& row) {
  const hardware::Cluster* on = cluster(row);
  return on ? estimate::interval_of(steps.memory_intervals, estimate::memory_classes(steps.family(on->chip), *on))
            : nullptr;
}

Result<training::TrainingCost> TrainingPredictor::operator()(const TrainingRow& row) {
  ASSAY_TRY(cost, recomputing(row));
  if (row.measured && row.measured->value() < cost.lower)
    return fail(row.id, "the row contradicts itself: faster than the lower bound", "");
  return cost;
}

Result<training::TrainingCost> TrainingPredictor::recomputing(const TrainingRow& row) {
  if (row.states_recompute) return priced(row, row.strategy.recompute);
  // A measured run did fit in memory; the margin covers what a row does not state (8-bit activations, offload).
  constexpr double margin = 1.3;
  ASSAY_TRY(known, place(row));
  const double room = margin * known->cluster.chip.hbm().capacity.value.value();
  for (const lower::Recompute policy : {lower::Recompute::none(), lower::Recompute::all_but_products(),
                                        lower::Recompute::feed_forward(), lower::Recompute::all_but_projections()}) {
    ASSAY_TRY(cost, priced(row, policy));
    if (cost.memory.allocated() <= room) return cost;
  }
  return priced(row, lower::Recompute::full());
}

Result<training::TrainingCost> TrainingPredictor::priced(const TrainingRow& row, lower::Recompute policy) {
  ASSAY_TRY(known, place(row));
  ASSAY_CHECK(lower::check_parallelism(row.strategy.parallelism, row.model));
  const hardware::Calibration* calibration = known->calibration ? &known->calibration->values : nullptr;
  training::TrainingQuestion question;
  training::TrainingSetup& setup = question.setup;
  setup.model = &row.model;
  setup.flash = row.flash;
  setup.formats.compute = row.compute;
  if (row.model.adapters) setup.formats.freeze();
  setup.formats.gradients = row.small_states ? Dtype::bf16 : Dtype::fp32;
  setup.optimizer.cast_when_gathered = row.cast_when_gathered;
  setup.dropout = row.dropout;
  if (row.small_states) {
    setup.optimizer.master = false;
    setup.optimizer.first_moment = setup.optimizer.second_moment = Dtype::bf16;
  }
  ASSAY_TRY(rates, estimate::kernel_rates(known->cluster.chip, row.compute, row.id, calibration, {row.attention}));
  setup.rates = rates;
  setup.effects = steps.effects(known->cluster.chip, row.software);
  setup.effects.product /= std::sqrt(row.power);  // the clock scales roughly with the square root of the power
  question.sequences = row.sequences;
  question.overlap = row.overlap;
  question.chips = static_cast<double>(known->cluster.chips());
  if (calibration) question.collectives = calibration->collective;
  training::Strategy strategy = row.strategy;
  strategy.recompute = policy;
  return training::price_strategy(question, row.sequence, known->cluster, strategy);
}

}  // namespace assay::validate
