#include "assay/predict/kernel/effects/training_effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/model/accounting.h"
#include "assay/predict/kernel/effects/effects_writer.h"

namespace assay::kernel {
namespace {

/// Every number with its table and key, once for reading and writing.
template <class C, class V>
void visit_steps(C& c, V& v) {
  const std::vector<std::string_view> ids = c.family_ids();
  v.table("products", [&](auto& t) { t.numbers_of("slowdown", "family", ids, c.measured, c.product); });
  v.table("attention", [&](auto& t) {
    t.numbers_of("slowdown", "family", ids, c.measured, c.attention);
    t.number("plain", c.plain_attention);
    t.number("first_flash", c.first_flash);
    t.number("unaligned", c.unaligned);
  });
  v.table("pointwise", [&](auto& t) {
    t.numbers_of("slowdown", "family", ids, c.measured, c.stream);
    t.numbers("traffic", fusion_names, c.pointwise);
    t.numbers("casts", fusion_names, c.cast);
    t.numbers("loss", fusion_names, c.loss);
    t.number("compiled_experts", c.compiled_expert_traffic);
    t.number("scans", c.scan);
  });
  v.table("step", [&](auto& t) {
    t.number("straggler", c.straggler);
    t.number("fixed", c.fixed);
    t.numbers("launch", fusion_names, c.launch);
    t.number("routing_launches", c.routing_launches);
  });
  v.table("memory", [&](auto& t) {
    t.numbers("activations", fusion_names, c.activations);
    t.numbers("logits", fusion_names, c.logits);
    t.numbers("reserved", fusion_names, c.reserved);
    t.numbers("context", fusion_names, c.context);
  });
}

}  // namespace

RecordFile effects_file(std::string_view file) {
  return {.name = std::string(file), .keys_hint = "docs/validation.md lists the keys", .largest = 1000};
}

std::vector<std::string_view> MeasuredFamilies::family_ids() const {
  std::vector<std::string_view> ids;
  for (const Family& family : families) ids.push_back(family.id);
  return ids;
}

bool MeasuredFamilies::has_steps(const hardware::Chip& chip) const {
  const std::optional<std::size_t> at = family_index(families, chip);
  return at && measured[*at];
}

bool MeasuredFamilies::compiled_whole(const hardware::Chip& chip) const {
  const Family* known = family(chip);
  return known && known->compiled_whole;
}

std::string MeasuredFamilies::source_of_family(const hardware::Chip& chip, std::string_view table) const {
  const Family* known = family(chip);
  if (!known || !has_steps(chip)) return fmt::format("1: no steps were measured on {} chips", chip.architecture);
  return std::string(origins.of(fmt::format("{}.{}", table, known->id)));
}

std::string MeasuredFamilies::source_of_fusion(std::size_t way, std::string_view table) const {
  return std::string(origins.of(fmt::format("{}.{}", table, fusion_names[way])));
}

StepCalibration::StepCalibration(Families all) : MeasuredFamilies(std::move(all)) {
  product = attention = stream = std::vector<double>(families.size(), 1.0);
}

/// Which of the numbers by software hold.
struct StepCalibration::Chosen {
  std::size_t way = 0, loss_way = 0;
  std::size_t holds = 0, loss_holds = 0;  ///< of memory
  bool fused_experts = false;
};

void StepCalibration::add_sources(const hardware::Chip& chip, const StepSoftware& software, const Chosen& chosen,
                                  SourceTable& sources) const {
  const auto [way, loss_way, holds, loss_holds, fused_experts] = chosen;
  const auto one = [&](std::string_view key) { return std::string(origins.of(key)); };
  const auto times = [](const std::string& a, const std::string& b) { return fmt::format("{} * {}", a, b); };
  const std::string streamed = source_of_family(chip, "pointwise.slowdown"),
                    attended = source_of_family(chip, "attention.slowdown");
  sources.add("product", source_of_family(chip, "products.slowdown"));
  sources.add("attention", software.explicit_mask ? times(attended, one("attention.explicit_mask"))
                           : software.first_flash ? times(attended, one("attention.first_flash"))
                                                  : attended);
  sources.add("plain_attention", one("attention.plain"));
  sources.add("unaligned", one("attention.unaligned"));
  sources.add("pointwise", times(streamed, source_of_fusion(way, "pointwise.traffic")));
  sources.add("cast", times(streamed, source_of_fusion(way, "pointwise.casts")));
  sources.add("loss", times(streamed, source_of_fusion(loss_way, "pointwise.loss")));
  for (std::size_t kind = 0; kind < std::size(stream_kind_names); ++kind) {
    const bool is_loss = kind == static_cast<std::size_t>(StreamKind::loss);
    const std::string key = fmt::format("{}.{}", fusion_names[is_loss ? loss_way : way], stream_kind_names[kind]);
    const std::string_view counted = origins.of(key);
    sources.add(std::string(stream_kind_sources[kind]),
                counted.empty() ? std::string("1: the software has a kernel for it") : std::string(counted));
  }
  const auto add_all = [&](std::string_view table, std::span<const std::string_view> keys) {
    for (const std::string_view key : keys)
      sources.add(fmt::format("{}.{}", table, key), one(fmt::format("{}.{}", table, key)));
  };
  static constexpr std::string_view composed[] = {"joined_gate", "rotated_part", "rejoined_heads", "centred_norm",
                                                  "projections", "scores",       "wide_scores",    "wide_products"};
  add_all("composed", composed);
  add_all("composed", std::span(rotation_keys).subspan(1));
  add_all("functions", model::activation_names);
  add_all("logits", std::span(model::logits_names).subspan(1));
  sources.add("launch",
              software.captured ? "0: kernels are replayed from a graph" : source_of_fusion(way, "step.launch"));
  sources.add("routed_launch", source_of_fusion(way, "step.launch"));
  sources.add("scan", one("pointwise.scans"));
  const bool whole = way == static_cast<std::size_t>(Fusion::xla);
  const bool eager = way == static_cast<std::size_t>(Fusion::eager) && !fused_experts;
  sources.add("expert_traffic", eager ? "1: dispatch and combine are counted by themselves"
                                      : one(whole           ? "pointwise.compiled_experts"
                                            : fused_experts ? "experts.fused_sorting"
                                                            : "experts.sorting"));
  sources.add("expert_pointwise", fused_experts ? "0: part of the products" : "1: as other element-wise steps");
  sources.add("expert_bias", whole ? "1: as other element-wise steps" : one("experts.biases"));
  sources.add("routing_launches", one("step.routing_launches"));
  sources.add("kernel_start", source_of_fusion(way, "kernels.start"));
  sources.add("kernels", one("kernels.norm"));
  sources.add("update", one("update.among_others"));
  sources.add("unfused_update", one("update.unfused"));
  sources.add("memory_power", one("draw.memory"));
  sources.add("attention_droop", one("attention.droop"));
  sources.add("straggler", one("step.straggler"));
  sources.add("fixed",
              idle[way] == 1.0 ? one("step.fixed") : times(one("step.fixed"), source_of_fusion(way, "host.idle")));
  const Family* known = family(chip);
  sources.add("chip_share", known ? std::string(known->origins.of("overlap.chip_share")) : "0: not measured");
  sources.add("piece", one("collectives.piece"));
  sources.add("tail", one("collectives.tail"));
  sources.add("activations", source_of_fusion(holds, "memory.activations"));
  sources.add("logits", source_of_fusion(loss_holds, "memory.logits"));
  sources.add("reserved", source_of_fusion(holds, "memory.reserved"));
  sources.add("context", source_of_fusion(holds, "memory.context"));
}

StepEffects StepCalibration::effects(const hardware::Chip& chip, const StepSoftware& software,
                                     SourceTable* sources) const {
  const std::optional<std::size_t> family = family_index(families, chip);
  const auto of = [&](const std::vector<double>& numbers) { return family ? numbers[*family] : 1.0; };
  const bool whole = compiled_whole(chip);
  const Fusion fusion = whole ? Fusion::xla : software.fusion;
  const auto way = static_cast<std::size_t>(fusion);
  const auto loss_way = static_cast<std::size_t>(fusion == Fusion::xla ? fusion : software.loss.value_or(fusion));
  // XLA's memory is known only for chips that run nothing else; on others the other compiler's memory stands in.
  const auto holds = [&](std::size_t by) {
    return whole || by != static_cast<std::size_t>(Fusion::xla) ? by : static_cast<std::size_t>(Fusion::compiled);
  };
  StepEffects out;
  out.product = of(product);
  out.attention = of(attention) * (software.explicit_mask ? explicit_mask : software.first_flash ? first_flash : 1.0);
  out.masked_attention = software.explicit_mask;
  out.wide_attention = software.wide_attention;
  out.plain_attention = plain_attention;
  out.unaligned = unaligned;
  out.pointwise = of(stream) * pointwise[way];
  out.cast = of(stream) * cast[way];
  out.loss = of(stream) * loss[loss_way];
  out.kinds = kinds[way];
  constexpr auto of_loss = static_cast<std::size_t>(StreamKind::loss);
  out.kinds[of_loss] = kinds[loss_way][of_loss];
  out.kernels = kernels[way];
  out.start = kernel_start[way];
  if (fusion == Fusion::eager) out.composed = composed;
  out.launch = software.captured ? Seconds(0) : launch[way];
  const bool fused_experts = software.fused_experts && fusion != Fusion::xla;
  const bool captures_routing = software.fixed_capacity || fused_experts;
  out.routed_launch = software.captured && captures_routing ? Seconds(0) : launch[way];
  out.scan = scan;
  out.expert_traffic = fusion == Fusion::xla     ? compiled_expert_traffic
                       : fused_experts           ? fused_expert_traffic
                       : fusion == Fusion::eager ? 1.0
                                                 : expert_traffic;
  out.expert_pointwise = fused_experts ? 0.0 : 1.0;
  if (fused_experts)
    for (const StreamKind kind : {StreamKind::dispatch, StreamKind::combine})
      out.kinds[static_cast<std::size_t>(kind)] = {1.0, 1.0};
  out.expert_bias = fusion == Fusion::xla ? 1.0 : expert_bias;
  out.routing_launches = routing_launches;
  const FamilyOverlap overlap = family ? families[*family].overlap : FamilyOverlap{};
  out.overlap.chip_share = overlap.chip_share;
  out.overlap.piece = piece;
  out.overlap.tail = tail;
  out.overlap.tensor =
      overlap.tensor_pieces ? software.tensor_overlap : std::min(software.tensor_overlap, TensorOverlap::backward);
  out.overlap.ring_context = true;
  out.overlap.experts = software.expert_overlap;
  out.contiguous_context = software.contiguous_context;
  // Hand-written software and whole-program compilers gather into the arrays that products read.
  out.overlap.copies_weights = fusion == Fusion::compiled || fusion == Fusion::eager;
  out.activations = activations[holds(way)];
  out.logits = logits[holds(loss_way)];
  out.reserved = reserved[holds(way)];
  out.context = context[holds(way)];
  out.joins_products = out.adds_gradients = fusion == Fusion::fused;
  out.pads_products = fusion == Fusion::compiled;
  // Hand-written layers are recomputed whole; checkpoints of operators stop early, compilers drop what nothing reads.
  out.reruns_layers = fusion == Fusion::fused;
  out.frees_gradients = !whole && fusion != Fusion::fused;
  out.update = update;
  out.unfused_update = software.unfused_update ? unfused_update : 0.0;
  out.memory_power = memory_power;
  out.attention_droop = attention_droop;
  out.straggler = straggler;
  out.fixed = idle[way] * fixed;
  if (sources) add_sources(chip, software, {way, loss_way, holds(way), holds(loss_way), fused_experts}, *sources);
  return out;
}

bool has_experts(const model::Transformer& model) {
  return std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(),
                     [](const model::Layer& layer) { return layer.feed_forward && layer.feed_forward->experts > 0; });
}

bool has_gated_experts(const model::Transformer& model) {
  return std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(), [](const model::Layer& layer) {
    return layer.feed_forward && layer.feed_forward->experts > 0 && layer.feed_forward->gated;
  });
}

bool has_state_spaces(const model::Transformer& model) {
  return std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(),
                     [](const model::Layer& layer) { return layer.state_space.has_value(); });
}

std::vector<std::string> step_classes(const Family* family, const hardware::Cluster& cluster,
                                      const model::Transformer& model) {
  if (!family || !family->training) return {};
  const bool experts = has_experts(model);
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
  steps.measured.clear();  // the first table by family says which were
  RecordFile shared = effects_file(file);
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    visit_steps(steps, reader);
    read_intervals(reader, "interval", steps.time_intervals);
    read_intervals(reader, "memory_interval", steps.memory_intervals);
  }));
  steps.origins = std::move(shared.origins);
  return steps;
}

namespace {

/// Reads catalogue/steps/overlap.toml.
Result<void> read_overlap(std::string_view text, std::string_view path, StepCalibration& steps) {
  RecordFile file{.name = std::string(path)};
  ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
    reader.sources();
    reader.table("collectives", [&](RecordReader& inner) {
      inner.number("piece", steps.piece);
      inner.number("tail", steps.tail);
      if (!(steps.tail >= 0.0 && steps.tail <= 1.0)) inner.fault("tail", "is a share", "from 0 to 1");
    });
  }));
  for (const auto& [key, source] : file.origins.all()) steps.origins.add(key, source);
  return {};
}

/// Tensors through memory of a list of kernels: those of one operand pass two, those of two operands three.
ComposedTraffic::Passes counted_tensors(RecordReader& reader, std::string_view key) {
  static constexpr std::string_view counts[] = {"forward_one", "forward_two", "backward_one", "backward_two"};
  std::array<double, std::size(counts)> kernels{};
  reader.numbers(key, counts, kernels);
  return {2.0 * kernels[0] + 3.0 * kernels[1], 2.0 * kernels[2] + 3.0 * kernels[3]};
}

/// What code composes beyond the kinds of steps, of catalogue/steps/kinds.toml.
void read_composed(RecordReader& reader, ComposedTraffic& out) {
  static constexpr std::string_view pass_names[] = {"forward", "backward"};
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
      const ComposedTraffic::Passes tensors = counted_tensors(inner, model::activation_names[i]);
      out.functions[i] = {tensors[0] - 2.0, tensors[1] - 3.0};
    }
  });
  reader.table("logits", [&](RecordReader& inner) {
    for (std::size_t i = 1; i < std::size(model::logits_names); ++i)
      out.logits[i] = counted_tensors(inner, model::logits_names[i]);
  });
}

/// Reads catalogue/steps/kinds.toml, of the ways of fusing that it has.
Result<void> read_kinds(std::string_view text, std::string_view path, StepCalibration& steps) {
  static constexpr std::string_view pass_names[] = {"forward", "backward"};
  RecordFile file = effects_file(path);
  ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
    reader.sources();
    reader.table("attention", [&](RecordReader& inner) { inner.number("explicit_mask", steps.explicit_mask); });
    reader.table("update", [&](RecordReader& inner) {
      inner.number("among_others", steps.update);
      inner.number("unfused", steps.unfused_update);
    });
    reader.table("host", [&](RecordReader& inner) { inner.numbers("idle", fusion_names, steps.idle); });
    reader.table("kernels", [&](RecordReader& inner) {
      inner.numbers("start", fusion_names, steps.kernel_start);
      for (std::size_t kind = 0; kind < std::size(stream_kind_names); ++kind)
        inner.numbers(stream_kind_names[kind], pass_names,
                      steps.kernels[static_cast<std::size_t>(Fusion::eager)][kind]);
    });
    read_composed(reader, steps.composed);
    for (std::size_t way = 0; way < StepCalibration::ways; ++way)
      reader.optional_table(fusion_names[way], [&](RecordReader& inner) {
        for (std::size_t kind = 0; kind < std::size(stream_kind_names); ++kind)
          inner.numbers(stream_kind_names[kind], pass_names, steps.kinds[way][kind]);
      });
  }));
  for (const auto& [key, source] : file.origins.all()) steps.origins.add(key, source);
  return {};
}

/// Reads catalogue/steps/experts.toml.
Result<void> read_experts(std::string_view text, std::string_view path, StepCalibration& steps) {
  RecordFile file = effects_file(path);
  ASSAY_CHECK(read_record(text, file, [&](RecordReader& reader) {
    reader.sources();
    reader.table("experts", [&](RecordReader& inner) {
      inner.number("sorting", steps.expert_traffic);
      inner.number("fused_sorting", steps.fused_expert_traffic);
      inner.number("biases", steps.expert_bias);
    });
  }));
  for (const auto& [key, source] : file.origins.all()) steps.origins.add(key, source);
  return {};
}

Result<StepCalibration> read_steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(families, families_of(catalogue));
  StepCalibration steps(families);
  for (const auto& [path, text] : catalogue.files("steps/training.toml")) {
    ASSAY_TRY(read, read_steps(text, path, std::move(families)));
    steps = std::move(read);
    break;
  }
  for (const auto& [path, text] : catalogue.files("steps/overlap.toml")) {
    ASSAY_CHECK(read_overlap(text, path, steps));
    break;
  }
  for (const auto& [path, text] : catalogue.files("steps/kinds.toml")) {
    ASSAY_CHECK(read_kinds(text, path, steps));
    break;
  }
  for (const auto& [path, text] : catalogue.files("steps/experts.toml")) {
    ASSAY_CHECK(read_experts(text, path, steps));
    break;
  }
  ASSAY_TRY(chips, unseen_intervals(catalogue, "training", "chip"));
  ASSAY_TRY(software, unseen_intervals(catalogue, "training", "software"));
  steps.unseen_chips = std::move(chips);
  steps.unseen_software = std::move(software);
  ASSAY_TRY(clock, power_clock_of(catalogue));
  steps.memory_power = clock.memory_power;
  steps.attention_droop = clock.attention_droop;
  for (const auto& [key, source] : clock.origins.all()) steps.origins.add(key, source);
  return steps;
}

}  // namespace

Result<StepCalibration> steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(steps, catalogue.kept<StepCalibration>("training steps", [&] { return read_steps_of(catalogue); }));
  return *steps;
}

Result<PowerClock> power_clock_of(const hardware::Catalogue& catalogue) {
  PowerClock clock;
  for (const auto& [path, text] : catalogue.files("steps/power.toml")) {
    RecordFile shared = effects_file(path);
    ASSAY_CHECK(read_record(text, shared, [&](RecordReader& reader) {
      reader.sources();
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
    clock.origins = std::move(shared.origins);
    break;
  }
  return clock;
}

std::string steps_text(const StepCalibration& steps, std::string_view source) {
  EffectsWriter writer(source);
  visit_steps(steps, writer);
  return writer.take() + intervals_text(steps.time_intervals, "interval", source) +
         intervals_text(steps.memory_intervals, "memory_interval", source);
}

}  // namespace assay::kernel
