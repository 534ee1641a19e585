#include "assay/estimate/serving_effects.h"

#include <algorithm>

#include "assay/estimate/effects_file.h"
#include "assay/model/accounting.h"

namespace assay::estimate {
namespace {

constexpr std::string_view way_names[] = {"fused", "compiled", "eager", "tpu"};
constexpr std::string_view host_names[] = {"native", "python"};

/// Every number with its table and key, once for reading and writing.
template <class C, class V>
void visit_serving_steps(C& c, V& v) {
  v.table("products");
  v.numbers("slowdown", step_family_names, c.product);
  v.number("experts", c.experts);
  v.time("quantise", c.quantise);
  v.table("attention");
  v.numbers("slowdown", step_family_names, c.attention);
  v.numbers("decode", step_family_names, c.decode);
  v.number("vector", c.vector);
  v.time("token", c.token);
  v.number("copies", c.copies);
  v.table("pointwise");
  v.numbers("kernels", way_names, c.kernels);
  v.numbers("traffic", way_names, c.pointwise);
  v.table("collectives");
  v.times("one_shot", step_family_names, c.one_shot);
  v.times("meet", step_family_names, c.meet);
  v.table("step");
  v.times("start", way_names, c.start);
  v.times("launch", host_names, c.launch);
  v.times("host", scheduler_names, c.step);
  v.times("sequence", scheduler_names, c.sequence);
  v.time("first", c.first);
}

}  // namespace

ServingEffects ServingCalibration::effects(const hardware::Chip& chip, const ServingSoftware& software) const {
  const StepFamily which = step_family(chip);
  const auto family = static_cast<std::size_t>(which);
  const std::size_t way = which == StepFamily::tpu ? ways - 1 : static_cast<std::size_t>(software.fusion);
  ServingEffects out;
  out.joined = way != static_cast<std::size_t>(Fusion::eager);
  out.kernels = kernels[way], out.pointwise = pointwise[way];
  out.product = product[family], out.attention = attention[family], out.decode = decode[family];
  out.experts = experts, out.quantise = quantise;
  if (software.one_shot) out.one_shot = one_shot[family];
  const auto scheduler = static_cast<std::size_t>(software.scheduler);
  out.start = start[way], out.step = step[scheduler], out.sequence = sequence[scheduler], out.meet = meet[family];
  if (software.scheduler != Scheduler::loop) out.first = first;
  const bool python = software.scheduler >= Scheduler::python || software.fusion != Fusion::fused;
  if (which != StepFamily::tpu) out.launch = launch[python ? 1 : 0];
  out.captured = software.captured;
  if (software.repeats_kv) out.copies = copies;
  if (software.vector_decode) out.vector = vector;
  if (software.whole_rows) out.token = token;
  out.memory = memory[way];
  if (!software.captured) out.memory.graphs = 0;
  return out;
}

std::vector<std::string> serving_classes(const hardware::Chip& chip, const model::Transformer& model) {
  const bool experts =
      std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(),
                  [](const model::Layer& layer) { return layer.feed_forward && layer.feed_forward->experts > 0; });
  const std::string of{step_family_names[static_cast<std::size_t>(step_family(chip))]};
  const std::string kind = experts ? "experts" : "dense";
  return {kind + ", " + of, kind, "all"};
}

std::vector<Coordinate> serving_coordinates(double chips, const model::Transformer& model, double batch,
                                            double context) {
  std::vector<Coordinate> at{{"chips", chips},
                             {"parameters", static_cast<double>(model::parameter_counts(model).total)},
                             {"batch", batch},
                             {"context", context}};
  add_kinds(model, at);
  return at;
}

Result<ServingCalibration> read_serving_steps(std::string_view document, std::string_view file) {
  ASSAY_TRY(root, parse_toml(document, file));
  ServingCalibration steps;
  EffectsReader reader(root, file);
  visit_serving_steps(steps, reader);
  if (reader.first_fault()) return tl::unexpected<Error>(*reader.first_fault());
  ASSAY_TRY(prefill, read_intervals(root, "prefill_interval", file));
  ASSAY_TRY(decode, read_intervals(root, "decode_interval", file));
  steps.prefill_intervals = std::move(prefill), steps.decode_intervals = std::move(decode);
  return steps;
}

Result<void> read_serving_memory(std::string_view document, std::string_view file, ServingCalibration& steps) {
  constexpr std::string_view kinds[] = {"gpu", "tpu"};
  ASSAY_TRY(root, parse_toml(document, file));
  EffectsReader reader(root, file);
  std::array<double, 2> hidden{}, graphs{};
  std::array<Bytes, 2> context{}, communication{}, kernel{};
  std::array<double, ServingCalibration::ways> activations{};
  reader.table("driver");
  reader.numbers("hidden", kinds, hidden);
  reader.table("process");
  reader.sizes("context", kinds, context);
  reader.sizes("communication", kinds, communication);
  reader.table("graphs");
  reader.numbers("captured", kinds, graphs);
  reader.sizes("kernel", kinds, kernel);
  reader.table("activations");
  reader.numbers("held", way_names, activations);
  if (reader.first_fault()) return tl::unexpected<Error>(*reader.first_fault());
  for (std::size_t way = 0; way < ServingCalibration::ways; ++way) {
    const std::size_t kind = way + 1 == ServingCalibration::ways ? 1 : 0;
    RuntimeMemory& memory = steps.memory[way];
    memory.hidden = hidden[kind], memory.graphs = graphs[kind], memory.activations = activations[way];
    memory.context = context[kind], memory.communication = communication[kind], memory.kernel = kernel[kind];
  }
  return {};
}

Result<ServingCalibration> serving_steps_of(const hardware::Catalogue& catalogue) {
  ServingCalibration steps;
  for (const auto& [path, text] : catalogue.files("steps/serving.toml")) {
    ASSAY_TRY(read, read_serving_steps(text, path));
    steps = std::move(read);
  }
  for (const auto& [path, text] : catalogue.files("steps/serving_memory.toml"))
    ASSAY_CHECK(read_serving_memory(text, path, steps));
  // One allocator serves training and serving.
  ASSAY_TRY(training, steps_of(catalogue));
  for (std::size_t way = 0; way < ServingCalibration::ways; ++way) steps.memory[way].reserved = training.reserved[way];
  return steps;
}

std::string serving_steps_text(const ServingCalibration& steps, std::string_view source) {
  EffectsWriter writer(source);
  visit_serving_steps(steps, writer);
  return writer.take() + intervals_text(steps.prefill_intervals, "prefill_interval", source) +
         intervals_text(steps.decode_intervals, "decode_interval", source);
}

}  // namespace assay::estimate
