#include "assay/predict/kernel/effects/serving_effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/model/accounting.h"
#include "assay/predict/kernel/effects/effects_writer.h"

namespace assay::kernel {
namespace {

/// Who launches kernels, by which memory of the runtime differs.
constexpr std::string_view memory_kinds[] = {"launched", "compiled_whole"};

constexpr std::string_view host_names[] = {"native", "python"};

/// Every number with its table and key, once for reading and writing.
template <class C, class V>
void visit_serving_steps(C& c, V& v) {
  const std::vector<std::string_view> ids = c.family_ids();
  v.table("products", [&](auto& t) {
    t.numbers_of("slowdown", "family", ids, c.measured, c.product);
    t.number("experts", c.experts);
    t.number("quantise", c.quantise);
  });
  v.table("attention", [&](auto& t) {
    t.numbers_of("slowdown", "family", ids, c.measured, c.attention);
    t.numbers_of("decode", "family", ids, c.measured, c.decode);
    t.numbers_of("item", "family", ids, c.without_kernels, c.item);
    t.number("vector", c.vector);
    t.number("token", c.token);
    t.number("copies", c.copies);
  });
  v.table("pointwise", [&](auto& t) {
    t.numbers("kernels", fusion_names, c.kernels);
    t.numbers("traffic", fusion_names, c.pointwise);
  });
  v.table("collectives", [&](auto& t) {
    t.numbers_of("one_shot", "family", ids, c.measured, c.one_shot);
    t.numbers_of("meet", "family", ids, c.measured, c.meet);
  });
  v.table("step", [&](auto& t) {
    t.numbers("start", fusion_names, c.start);
    t.numbers("launch", host_names, c.launch);
    t.numbers("host", scheduler_names, c.step);
    t.numbers("sequence", scheduler_names, c.sequence);
    t.number("first", c.first);
  });
}

}  // namespace

ServingCalibration::ServingCalibration(Families all) : MeasuredFamilies(std::move(all)) {
  product = attention = decode = std::vector<double>(families.size(), 1.0);
  one_shot = meet = item = std::vector<Seconds>(families.size());
  without_kernels = std::vector<char>(families.size());
}

ServingEffects ServingCalibration::effects(const hardware::Chip& chip, const ServingSoftware& software,
                                           SourceTable* sources) const {
  const std::optional<std::size_t> family = family_index(families, chip);
  const auto number = [&](const std::vector<double>& numbers) { return family ? numbers[*family] : 1.0; };
  const auto time = [&](const std::vector<Seconds>& times) { return family ? times[*family] : Seconds(0); };
  const bool whole = compiled_whole(chip);
  const auto way = static_cast<std::size_t>(whole ? Fusion::xla : software.fusion);
  ServingEffects out;
  out.joined = way != static_cast<std::size_t>(Fusion::eager);
  out.kernels = kernels[way];
  out.pointwise = pointwise[way];
  if (way == static_cast<std::size_t>(Fusion::eager) && code.start > Seconds(0)) out.code = code;
  out.product = number(product);
  out.attention = number(attention);
  out.decode = number(decode);
  out.item = time(item);
  out.experts = experts;
  out.quantise = quantise;
  if (software.one_shot) out.one_shot = time(one_shot);
  const auto scheduler = static_cast<std::size_t>(software.scheduler);
  out.start = start[way];
  out.step = step[scheduler];
  out.sequence = sequence[scheduler];
  if (software.scheduler != Scheduler::loop) out.first = first;
  const bool python = software.scheduler >= Scheduler::python || software.fusion != Fusion::fused;
  if (!whole) out.launch = launch[python ? 1 : 0];
  out.captured = software.captured;
  // Hosts that launch every kernel drift apart: devices wait for the one that is a launch behind.
  out.meet = time(meet) + (software.captured ? Seconds(0) : out.launch);
  if (software.repeats_kv) out.copies = copies;
  if (software.vector_decode) out.vector = vector;
  if (software.whole_rows) out.token = token;
  out.memory = memory[way];
  if (!software.captured) out.memory.graphs = 0;
  if (!sources) return out;
  sources->add("product", source_of_family(chip, "products.slowdown"));
  sources->add("attention", source_of_family(chip, "attention.slowdown"));
  sources->add("decode", source_of_family(chip, "attention.decode"));
  sources->add("item", source_of_family(chip, "attention.item"));
  sources->add("kernels", source_of_fusion(way, "pointwise.kernels"));
  sources->add("pointwise", source_of_fusion(way, "pointwise.traffic"));
  sources->add("start", source_of_fusion(way, "step.start"));
  sources->add("composition", std::string(origins.of("code.composition")));
  sources->add("kernel_start", std::string(origins.of("code.start")));
  for (const auto& [effect, key] :
       {std::pair("experts", "products.experts"), std::pair("quantise", "products.quantise"),
        std::pair("vector", "attention.vector"), std::pair("copies", "attention.copies")})
    sources->add(effect, std::string(origins.of(key)));
  sources->add("one_shot", source_of_family(chip, "collectives.one_shot"));
  sources->add("meet", source_of_family(chip, "collectives.meet"));
  sources->add("launch", whole ? "0: one program per step"
                               : std::string(origins.of(fmt::format("step.launch.{}", host_names[python ? 1 : 0]))));
  sources->add("step", std::string(origins.of(fmt::format("step.host.{}", scheduler_names[scheduler]))));
  sources->add("sequence", std::string(origins.of(fmt::format("step.sequence.{}", scheduler_names[scheduler]))));
  sources->add("first",
               software.scheduler == Scheduler::loop ? "0: no scheduler" : std::string(origins.of("step.first")));
  const bool is_whole = way == static_cast<std::size_t>(Fusion::xla);
  for (const auto& [effect, key] : {std::pair("hidden", "driver.hidden"), std::pair("context", "process.context"),
                                    std::pair("communication", "process.communication"),
                                    std::pair("graphs", "graphs.captured"), std::pair("kernel", "graphs.kernel")})
    sources->add(effect, std::string(origins.of(fmt::format("{}.{}", key, memory_kinds[is_whole ? 1 : 0]))));
  sources->add("activations", source_of_fusion(way, "activations.held"));
  sources->add("reserved", source_of_fusion(way, "memory.reserved"));
  sources->add("token", software.whole_rows ? std::string(origins.of("attention.token")) : "0: caches are split");
  return out;
}

std::vector<std::string> serving_classes(const Family* family, const model::Transformer& model) {
  if (!family || !family->serving) return {};
  const bool experts =
      std::any_of(model.decoder.kinds.begin(), model.decoder.kinds.end(),
                  [](const model::Layer& layer) { return layer.feed_forward && layer.feed_forward->experts > 0; });
  const std::string kind = experts ? "experts" : "dense";
  return {kind + ", " + family->id, kind, "all"};
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

Result<ServingCalibration> read_serving_steps(std::string_view document, std::string_view file, Families families) {
  ServingCalibration steps(std::move(families));
  steps.measured.clear();  // the first table by family says which were
  steps.without_kernels.clear();
  RecordFile shared = effects_file(file);
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    visit_serving_steps(steps, reader);
    read_intervals(reader, "prefill_interval", steps.prefill_intervals);
    read_intervals(reader, "decode_interval", steps.decode_intervals);
  }));
  steps.origins = std::move(shared.origins);
  return steps;
}

Result<void> read_serving_memory(std::string_view document, std::string_view file, ServingCalibration& steps) {
  const auto& kinds = memory_kinds;
  std::array<double, 2> hidden{}, graphs{};
  std::array<Bytes, 2> context{}, communication{}, kernel{};
  std::array<double, ServingCalibration::ways> activations{};
  RecordFile shared = effects_file(file);
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    reader.table("driver", [&](RecordReader& inner) { inner.numbers("hidden", kinds, hidden); });
    reader.table("process", [&](RecordReader& inner) {
      inner.numbers("context", kinds, context);
      inner.numbers("communication", kinds, communication);
    });
    reader.table("graphs", [&](RecordReader& inner) {
      inner.numbers("captured", kinds, graphs);
      inner.numbers("kernel", kinds, kernel);
    });
    reader.table("activations", [&](RecordReader& inner) { inner.numbers("held", fusion_names, activations); });
  }));
  for (std::size_t way = 0; way < ServingCalibration::ways; ++way) {
    const std::size_t kind = way == static_cast<std::size_t>(Fusion::xla) ? 1 : 0;
    RuntimeMemory& memory = steps.memory[way];
    memory.hidden = hidden[kind];
    memory.graphs = graphs[kind];
    memory.activations = activations[way];
    memory.context = context[kind];
    memory.communication = communication[kind];
    memory.kernel = kernel[kind];
  }
  for (const auto& [key, source] : shared.origins.all()) steps.origins.add(key, source);
  return {};
}

namespace {

Result<ServingCalibration> read_serving_steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(families, families_of(catalogue));
  ServingCalibration steps(families);
  for (const auto& [path, text] : catalogue.files("steps/serving.toml")) {
    ASSAY_TRY(read, read_serving_steps(text, path, families));
    steps = std::move(read);
  }
  for (const auto& [path, text] : catalogue.files("steps/serving_memory.toml"))
    ASSAY_CHECK(read_serving_memory(text, path, steps));
  constexpr std::string_view kinds[] = {"chip", "software"};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    ASSAY_TRY(prefill, unseen_intervals(catalogue, "inference-ttft", kinds[i]));
    ASSAY_TRY(decode, unseen_intervals(catalogue, "inference-tpot", kinds[i]));
    steps.unseen_prefill[i] = std::move(prefill);
    steps.unseen_decode[i] = std::move(decode);
  }
  // One allocator and one code of a model serve training and serving.
  ASSAY_TRY(training, steps_of(catalogue));
  constexpr auto eager = static_cast<std::size_t>(Fusion::eager);
  steps.code.kinds = training.kinds[eager];
  steps.code.kernels = training.kernels[eager];
  steps.code.start = training.kernel_start[eager];
  steps.code.composed = training.composed;
  steps.code.routing_launches = training.routing_launches;
  steps.origins.add("code.composition", std::string(training.origins.of("kernels.norm")));
  steps.origins.add("code.start", training.source_of_fusion(eager, "kernels.start"));
  for (std::size_t way = 0; way < ServingCalibration::ways; ++way) {
    steps.memory[way].reserved = training.reserved[way];
    steps.origins.add(fmt::format("memory.reserved.{}", fusion_names[way]),
                      training.source_of_fusion(way, "memory.reserved"));
  }
  return steps;
}

}  // namespace

Result<ServingCalibration> serving_steps_of(const hardware::Catalogue& catalogue) {
  ASSAY_TRY(steps,
            catalogue.kept<ServingCalibration>("serving steps", [&] { return read_serving_steps_of(catalogue); }));
  return *steps;
}

std::string serving_steps_text(const ServingCalibration& steps, std::string_view source) {
  EffectsWriter writer(source);
  visit_serving_steps(steps, writer);
  return writer.take() + intervals_text(steps.prefill_intervals, "prefill_interval", source) +
         intervals_text(steps.decode_intervals, "decode_interval", source);
}

}  // namespace assay::kernel
