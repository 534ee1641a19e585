#include "assay/predict/numbers/training_effects.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/model/accounting.h"
#include "assay/predict/numbers/rows.h"

namespace assay::numbers {
RecordFile effects_file(std::string_view file) {
  return {.name = std::string(file), .keys_hint = "docs/validation.md lists the keys", .largest = 1000};
}

StepCalibration::StepCalibration(Families all) : MeasuredFamilies(std::move(all), &Family::training) {
  product = stream = std::vector<Given<double>>(families.size(), {1.0, "1: as kernels by themselves"});
}

StepEffects StepCalibration::effects(const hardware::Chip& chip, const StepSoftware& software) const {
  const Family* known = family(chip);
  const bool whole = compiled_whole(chip);
  const Fusion fusion = whole ? Fusion::xla : software.fusion;
  const bool by_xla = fusion == Fusion::xla, eager = fusion == Fusion::eager;
  const auto way = static_cast<std::size_t>(fusion);
  const auto loss_way = static_cast<std::size_t>(by_xla ? fusion : software.loss.value_or(fusion));
  // XLA's memory is known only for chips that run nothing else; on others the other compiler's memory stands in.
  const auto holds = [&](std::size_t by) {
    return whole || by != static_cast<std::size_t>(Fusion::xla) ? by : static_cast<std::size_t>(Fusion::compiled);
  };
  const auto of = [&](const std::vector<Given<double>>& numbers) { return of_family(chip, numbers, 1.0); };
  const Given<double> streams = of(stream);
  StepEffects out;
  out.product = of(product);
  out.attention = software.explicit_mask ? explicit_mask
                  : software.first_flash ? first_flash
                                         : Given<double>(1, "1: as kernels by themselves");
  out.masked_attention = software.explicit_mask;
  out.wide_attention = software.wide_attention;
  out.plain_attention = plain_attention;
  out.unaligned = unaligned;
  out.pointwise = streams * pointwise[way];
  out.cast = streams * cast[way];
  out.loss = streams * loss[loss_way];
  out.kinds = kinds[way];
  constexpr auto of_loss = static_cast<std::size_t>(StreamKind::loss);
  out.kinds[of_loss] = kinds[loss_way][of_loss];
  out.kernels = kernels[way];
  out.start = kernel_start[way];
  if (eager) out.composed = composed;
  const Given<Seconds> replayed(Seconds(0), "0: kernels are replayed from a graph");
  out.launch = software.captured ? replayed : launch[way];
  const bool fused_experts = software.fused_experts && !by_xla;
  const bool captures_routing = software.fixed_capacity || fused_experts;
  out.routed_launch = software.captured && captures_routing ? replayed : launch[way];
  out.scan = scan;
  out.expert_traffic = by_xla          ? compiled_expert_traffic
                       : fused_experts ? fused_expert_traffic
                       : eager         ? Given<double>(1, "1: dispatch and combine are counted by themselves")
                                       : expert_traffic;
  out.expert_pointwise =
      fused_experts ? Given<double>(0, "0: part of the products") : Given<double>(1, "1: as other element-wise steps");
  if (fused_experts)
    for (const StreamKind kind : {StreamKind::dispatch, StreamKind::combine})
      out.kinds[static_cast<std::size_t>(kind)].value = {1.0, 1.0};
  out.expert_bias = by_xla ? Given<double>(1, "1: as other element-wise steps") : expert_bias;
  out.routing_launches = routing_launches;
  out.overlap.chip_share = known ? known->overlap.chip_share : Given<double>(0, "0: not measured");
  out.overlap.piece = piece;
  out.overlap.tail = tail;
  out.overlap.tensor = known && known->overlap.tensor_pieces
                           ? software.tensor_overlap
                           : std::min(software.tensor_overlap, TensorOverlap::backward);
  out.overlap.ring_context = true;
  out.overlap.experts = software.expert_overlap;
  out.contiguous_context = software.contiguous_context;
  // Hand-written software and whole-program compilers gather into the arrays that products read.
  out.overlap.copies_weights = fusion == Fusion::compiled || eager;
  out.activations = activations[holds(way)];
  out.logits = logits[holds(loss_way)];
  out.reserved = whole ? Given<double>(1, "1: the compiler plans memory ahead") : reserved;
  out.context = whole ? Given<Bytes>(Bytes(0), "0: not measured") : context;
  out.joins_products = out.adds_gradients = fusion == Fusion::fused;
  out.pads_products = fusion == Fusion::compiled;
  // Hand-written layers are recomputed whole; checkpoints of operators stop early, compilers drop what nothing reads.
  out.reruns_layers = fusion == Fusion::fused;
  out.frees_gradients = !whole && fusion != Fusion::fused;
  out.update = update;
  if (software.unfused_update) out.unfused_update = unfused_update;
  out.memory_power = memory_power;
  out.attention_droop = attention_droop;
  out.straggler = straggler;
  out.fixed =
      idle[way] == 1.0 ? fixed : Given<Seconds>(idle[way] * fixed.value, fixed.source + " * " + idle[way].source);
  return out;
}

std::vector<std::string> step_classes(const Family* family, const hardware::Cluster& cluster,
                                      const model::Transformer& model) {
  if (!family || !family->training) return {};
  const bool experts = model.has_experts();
  // Chips that run one program have no nodes, and their steps are a class of their own.
  if (family->compiled_whole) {
    if (!experts) return {"dense, " + family->id, family->id, "all"};
    return {"experts, " + family->id, "experts", family->id, "all"};
  }
  const std::string regime = experts                                     ? "experts"
                             : cluster.chips() <= cluster.chips_per_node ? "dense, one node"
                                                                         : "dense, many nodes";
  return {regime + ", " + family->id, regime, "all"};
}

std::vector<std::string> memory_classes(const Family* family, const hardware::Cluster& cluster) {
  if (!family || !family->training) return {};
  if (family->compiled_whole) return {"gpu"};  // their peaks were not measured
  // One node has one way to split a model; on many nodes some stages hold more than others, and states are sharded.
  return {cluster.chips() > cluster.chips_per_node ? "many nodes" : "one node", "gpu"};
}

void add_kinds(const model::Transformer& model, std::vector<Coordinate>& at) {
  const auto encoding = static_cast<double>(model.encoder ? model.encoder->layers() : 0);
  const double all = static_cast<double>(model.decoder.layers()) + encoding;
  double scanning = 0.0;
  for (std::size_t i = 0; i < model.decoder.kinds.size(); ++i)
    if (model.decoder.kinds[i].state_space) scanning += static_cast<double>(model.decoder.count(i));
  at.push_back({"state_spaces", scanning / all});
  at.push_back({"encoders", encoding / all});
}

std::vector<Coordinate> step_coordinates(const hardware::Cluster& cluster, const model::Transformer& model,
                                         std::int64_t sequence) {
  std::vector<Coordinate> at{{"chips", static_cast<double>(cluster.chips())},
                             {"parameters", static_cast<double>(model::parameter_counts(model).total)},
                             {"sequence", static_cast<double>(sequence)},
                             {"adapters", model.adapters ? 1.0 : 0.0}};
  add_kinds(model, at);
  return at;
}

Result<StepCalibration> read_steps(std::string_view document, std::string_view file, Families families) {
  StepCalibration steps(std::move(families));
  RecordFile shared = effects_file(file);
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    NumbersReader numbers(reader, steps);
    visit_training(steps, numbers);
    read_intervals(reader, "interval", steps.time_intervals);
    read_intervals(reader, "memory_interval", steps.memory_intervals);
  }));
  return steps;
}

namespace {

constexpr std::string_view pass_names[] = {"forward", "backward"};

/// Reads a file of the catalogue, if there is one: `read(reader)` reads its tables.
template <class F>
Result<void> read_file(const hardware::Catalogue& catalogue, const std::string& path, F read) {
  const auto files = catalogue.files(path);
  if (files.empty()) return {};
  RecordFile shared = effects_file(files.front().first);
  return read_record(files.front().second, shared, [&](RecordReader& reader) {
    reader.sources();
    read(reader);
  });
}

/// Reads catalogue/steps/overlap.toml.
void read_overlap(RecordReader& reader, StepCalibration& steps) {
  reader.table("collectives", [&](RecordReader& inner) {
    inner.number("piece", steps.piece);
    inner.number("tail", steps.tail);
    if (!(steps.tail >= 0.0 && steps.tail <= 1.0)) inner.fault("tail", "is a share", "from 0 to 1");
  });
}

/// Tensors through memory of a list of kernels: those of one operand pass two, those of two operands three.
Given<Passes> counted_tensors(RecordReader& reader, std::string_view key) {
  static constexpr std::string_view counts[] = {"forward_one", "forward_two", "backward_one", "backward_two"};
  Given<std::array<double, std::size(counts)>> kernels;
  reader.numbers(key, counts, kernels);
  const auto& [one, two, back_one, back_two] = kernels.value;
  return {Passes{2.0 * one + 3.0 * two, 2.0 * back_one + 3.0 * back_two}, kernels.source};
}

/// What code composes beyond the kinds of steps, of catalogue/steps/kinds.toml.
void read_composed(RecordReader& reader, ComposedTraffic& out) {
  reader.table("composed", [&](RecordReader& inner) {
    inner.numbers("joined_gate", pass_names, out.joined_gate);
    inner.numbers("rotated_part", pass_names, out.rotated_part);
    inner.numbers("rejoined_heads", pass_names, out.rejoined_heads);
    for (std::size_t i = 1; i < std::size(model::rotation_names); ++i)
      inner.numbers(rotation_keys[i], pass_names, out.rotations[i]);
    inner.numbers("centred_norm", pass_names, out.centred_norm);
    inner.numbers("scores", pass_names, out.scores);
    inner.numbers("wide_scores", pass_names, out.wide_scores);
    inner.number("wide_products", out.wide_products);
    inner.numbers("projections", model::projection_names, out.projections);
  });
  reader.table("functions", [&](RecordReader& inner) {
    for (std::size_t i = 1; i < std::size(model::activation_names); ++i) {
      out.functions[i] = counted_tensors(inner, model::activation_names[i]);
      out.functions[i].value[0] -= 2.0;
      out.functions[i].value[1] -= 3.0;
    }
  });
  reader.table("logits", [&](RecordReader& inner) {
    for (std::size_t i = 1; i < std::size(model::logits_names); ++i)
      out.logits[i] = counted_tensors(inner, model::logits_names[i]);
  });
}

/// Reads catalogue/steps/kinds.toml, of the ways of fusing that it has.
void read_kinds(RecordReader& reader, StepCalibration& steps) {
  static constexpr std::string_view not_fused[] = {"", "compiled", "eager", "xla"}, fused[] = {"fused", "", "", ""},
                                    whole[] = {"", "", "", "xla"};
  reader.table("attention", [&](RecordReader& inner) { inner.number("explicit_mask", steps.explicit_mask); });
  reader.table("counted", [&](RecordReader& inner) {
    inner.numbers("casts", not_fused, steps.cast);
    inner.numbers("loss", fused, steps.loss);
    inner.numbers("logits", fused, steps.logits);
  });
  reader.table("update", [&](RecordReader& inner) {
    inner.number("among_others", steps.update);
    inner.number("unfused", steps.unfused_update);
  });
  reader.table("host", [&](RecordReader& inner) {
    inner.number("fixed", steps.fixed);
    inner.numbers("idle", fusion_names, steps.idle);
  });
  reader.table("routing", [&](RecordReader& inner) { inner.number("launches", steps.routing_launches); });
  reader.table("kernels", [&](RecordReader& inner) {
    inner.numbers("start", fusion_names, steps.kernel_start);
    for (std::size_t kind = 0; kind < std::size(stream_kind_names); ++kind)
      inner.numbers(stream_kind_names[kind], pass_names, steps.kernels[static_cast<std::size_t>(Fusion::eager)][kind]);
  });
  reader.table("served", [&](RecordReader& inner) {
    inner.numbers("kernels", fusion_names, steps.served_kernels);
    inner.numbers("traffic", whole, steps.served_traffic);
  });
  read_composed(reader, steps.composed);
  for (std::size_t way = 0; way < StepCalibration::ways; ++way)
    reader.optional_table(fusion_names[way], [&](RecordReader& inner) {
      for (std::size_t kind = 0; kind < std::size(stream_kind_names); ++kind)
        inner.numbers(stream_kind_names[kind], pass_names, steps.kinds[way][kind]);
    });
}

/// Reads catalogue/steps/experts.toml.
void read_experts(RecordReader& reader, StepCalibration& steps) {
  reader.table("experts", [&](RecordReader& inner) {
    inner.number("sorting", steps.expert_traffic);
    inner.number("fused_sorting", steps.fused_expert_traffic);
    inner.number("biases", steps.expert_bias);
  });
}

Result<StepCalibration> read_steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(families, families_of(catalogue));
  StepCalibration steps(families);
  if (const auto files = catalogue.files("steps/training.toml"); !files.empty()) {
    ASSAY_TRY(read, read_steps(files.front().second, files.front().first, std::move(families)));
    steps = std::move(read);
  }
  const auto into = [&](void (*read)(RecordReader&, StepCalibration&)) {
    return [&steps, read](RecordReader& reader) { read(reader, steps); };
  };
  ASSAY_CHECK(read_file(catalogue, "steps/overlap.toml", into(read_overlap)));
  ASSAY_CHECK(read_file(catalogue, "steps/kinds.toml", into(read_kinds)));
  ASSAY_CHECK(read_file(catalogue, "steps/experts.toml", into(read_experts)));
  ASSAY_TRY(chips, unseen_intervals(catalogue, "training", "chip"));
  steps.unseen_chips = std::move(chips);
  ASSAY_TRY(clock, power_clock_of(catalogue));
  steps.memory_power = clock.memory_power;
  steps.attention_droop = clock.attention_droop;
  return steps;
}

}  // namespace

Result<StepCalibration> steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(steps, catalogue.kept<StepCalibration>("training steps", [&] { return read_steps_of(catalogue); }));
  return *steps;
}

Result<PowerClock> power_clock_of(const hardware::Catalogue& catalogue) {
  PowerClock clock;
  ASSAY_CHECK(read_file(catalogue, "steps/power.toml", [&](RecordReader& reader) {
    reader.table("clock", [&](RecordReader& inner) {
      inner.number("exponent", clock.exponent);
      inner.number("least_share", clock.least_share);
    });
    reader.table("attention", [&](RecordReader& inner) { inner.number("droop", clock.attention_droop); });
    reader.table("draw", [&](RecordReader& inner) {
      inner.number("memory", clock.memory_power);
      if (!(clock.memory_power >= 0.0 && clock.memory_power < 1.0))
        inner.fault("memory", "is a share", "from 0 to below 1");
    });
  }));
  return clock;
}

std::string steps_text(const StepCalibration& steps, std::string_view source) {
  NumbersWriter writer(source, steps);
  visit_training(steps, writer);
  return writer.take() + intervals_text(steps.time_intervals, "interval", source) +
         intervals_text(steps.memory_intervals, "memory_interval", source);
}

}  // namespace assay::numbers
