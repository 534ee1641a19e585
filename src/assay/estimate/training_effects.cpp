#include "assay/estimate/training_effects.h"

#include <algorithm>

#include "assay/estimate/effects_file.h"
#include "assay/model/accounting.h"

namespace assay::estimate {
namespace {

/// Every number with its table and key, once for reading and writing.
template <class C, class V>
void visit_steps(C& c, V& v) {
  v.table("products");
  v.family_numbers("slowdown", c.families, c.measured, c.product);
  v.numbers("experts", fusion_names, c.expert_product);
  v.number("fused_experts", c.fused_expert_product);
  v.table("attention");
  v.family_numbers("slowdown", c.families, c.measured, c.attention);
  v.number("plain", c.plain_attention);
  v.number("first_flash", c.first_flash);
  v.number("unaligned", c.unaligned);
  v.table("pointwise");
  v.family_numbers("slowdown", c.families, c.measured, c.stream);
  v.numbers("traffic", fusion_names, c.pointwise);
  v.number("composed", c.composed);
  v.numbers("casts", fusion_names, c.cast);
  v.numbers("loss", fusion_names, c.loss);
  v.numbers("experts", fusion_names, c.expert_traffic);
  v.number("scans", c.scan);
  v.table("collectives");
  v.family_numbers("tensor_overlapped", c.families, c.measured, c.tensor_overlapped);
  v.number("tensor_beside", c.tensor_backward_exposed);
  v.number("experts", c.expert_exposed);
  v.number("context", c.context_exposed);
  v.number("contention", c.contention);
  v.number("gradients", c.gradients_exposed);
  v.number("omni_path", c.omni_path);
  v.table("step");
  v.number("straggler", c.straggler);
  v.time("fixed", c.fixed);
  v.times("launch", fusion_names, c.launch);
  v.table("memory");
  v.numbers("activations", fusion_names, c.activations);
  v.numbers("logits", fusion_names, c.logits);
  v.numbers("reserved", fusion_names, c.reserved);
  v.sizes("context", fusion_names, c.context);
}

}  // namespace

bool MeasuredFamilies::has_steps(const hardware::Chip& chip) const {
  const std::optional<std::size_t> at = family_index(families, chip);
  return at && measured[*at];
}

bool MeasuredFamilies::compiled_whole(const hardware::Chip& chip) const {
  const Family* known = family(chip);
  return known && known->compiled_whole;
}

StepCalibration::StepCalibration(Families all) : MeasuredFamilies(std::move(all)) {
  product = attention = stream = tensor_overlapped = std::vector<double>(families.size(), 1.0);
}

StepEffects StepCalibration::effects(const hardware::Chip& chip, const StepSoftware& software) const {
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
  out.attention = of(attention) * (software.first_flash ? first_flash : 1.0);
  out.plain_attention = plain_attention;
  out.unaligned = unaligned;
  out.pointwise = of(stream) * pointwise[way];
  out.cast = of(stream) * cast[way];
  out.loss = of(stream) * loss[loss_way];
  out.composed = fusion == Fusion::eager ? composed : 1.0;
  out.launch = software.captured ? Seconds(0) : launch[way];
  const bool fused_experts = software.fused_experts && fusion != Fusion::xla;
  const bool captures_routing = software.fixed_capacity || fused_experts;
  out.routed_launch = software.captured && captures_routing ? Seconds(0) : launch[way];
  out.scan = scan;
  out.expert_traffic = expert_traffic[way];
  out.expert_product = fused_experts ? fused_expert_product : expert_product[way];
  out.expert_pointwise = fused_experts ? 0.0 : 1.0;
  out.expert_exposed = software.expert_overlap ? expert_exposed : 1.0;
  out.context_exposed = context_exposed;
  out.tensor_exposed = software.tensor_overlap == TensorOverlap::all ? of(tensor_overlapped) : 1.0;
  out.tensor_backward_exposed = software.tensor_overlap == TensorOverlap::none ? 1.0 : tensor_backward_exposed;
  out.contention = contention;
  out.gradients_exposed = gradients_exposed;
  out.activations = activations[holds(way)];
  out.logits = logits[holds(loss_way)];
  out.reserved = reserved[holds(way)];
  out.context = context[holds(way)];
  out.joins_products = fusion == Fusion::fused;
  // Hand-written layers are recomputed whole; checkpoints of operators stop early, compilers drop what nothing reads.
  out.reruns_layers = fusion == Fusion::fused;
  out.frees_gradients = !whole && fusion != Fusion::fused;
  out.straggler = straggler;
  out.fixed = fixed;
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
  const bool experts = has_experts(model);
  // Chips that run one program have no nodes, and their steps are a class of their own.
  if (family && family->compiled_whole) {
    if (!experts) return {"dense, " + family->id, family->id, "all"};
    return {"experts, " + family->id, "experts", family->id, "all"};
  }
  const std::string regime = experts                                     ? "experts"
                             : cluster.chips() <= cluster.chips_per_node ? "dense, one node"
                                                                         : "dense, many nodes";
  if (!family) return {regime, "all"};
  return {regime + ", " + family->id, regime, "all"};
}

std::vector<std::string> memory_classes(const Family* family, const hardware::Cluster& cluster) {
  if (family && family->compiled_whole) return {"gpu"};  // their peaks were not measured
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
  ASSAY_TRY(root, parse_toml(document, file));
  StepCalibration steps(std::move(families));
  EffectsReader reader(root, file);
  visit_steps(steps, reader);
  if (reader.first_fault()) return tl::unexpected<Error>(*reader.first_fault());
  ASSAY_TRY(times, read_intervals(root, "interval", file));
  ASSAY_TRY(peaks, read_intervals(root, "memory_interval", file));
  steps.time_intervals = std::move(times);
  steps.memory_intervals = std::move(peaks);
  return steps;
}

Result<StepCalibration> steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(families, families_of(catalogue));
  for (const auto& [path, text] : catalogue.files("steps/training.toml"))
    return read_steps(text, path, std::move(families));
  return StepCalibration(std::move(families));
}

Result<PowerClock> power_clock_of(const hardware::Catalogue& catalogue) {
  PowerClock clock;
  for (const auto& [path, text] : catalogue.files("steps/power.toml")) {
    ASSAY_TRY(root, parse_toml(text, path));
    EffectsReader reader(root, path);
    reader.table("clock");
    reader.number("exponent", clock.exponent);
    reader.number("least_share", clock.least_share);
    if (reader.first_fault()) return tl::unexpected<Error>(*reader.first_fault());
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

}  // namespace assay::estimate
