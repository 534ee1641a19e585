#include "assay/predict/numbers/serving_effects.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/model/accounting.h"
#include "assay/predict/numbers/rows.h"

namespace assay::numbers {
namespace {

/// Who launches kernels, by which memory of the runtime differs.
constexpr std::string_view memory_kinds[] = {"launched", "compiled_whole"};

}  // namespace

ServingCalibration::ServingCalibration(Families all) : MeasuredFamilies(std::move(all), &Family::serving) {
  product = decode = std::vector<Given<double>>(families.size(), {1.0, "1: as kernels by themselves"});
  meet = item = vector_item = std::vector<Given<Seconds>>(families.size(), {Seconds(0), "0: not measured"});
}

ServingEffects ServingCalibration::effects(const hardware::Chip& chip, const ServingSoftware& software) const {
  const auto number = [&](const std::vector<Given<double>>& numbers) { return of_family(chip, numbers, 1.0); };
  const auto time = [&](const std::vector<Given<Seconds>>& times) { return of_family(chip, times, Seconds(0)); };
  const bool whole = compiled_whole(chip);
  const auto way = static_cast<std::size_t>(whole ? Fusion::xla : software.fusion);
  const bool eager = way == static_cast<std::size_t>(Fusion::eager);
  ServingEffects out;
  out.joined = !eager;
  out.kernels = kernels[way];
  out.pointwise = pointwise[way];
  if (eager && code.start > Seconds(0)) out.code = code;
  out.product = number(product);
  out.decode = number(decode);
  out.item = time(software.vector_decode ? vector_item : item);
  out.quantise = quantise;
  if (const Family* known = family(chip); known && software.one_shot) out.one_shot = known->one_shot;
  const auto scheduler = static_cast<std::size_t>(software.scheduler);
  out.start = start[way];
  out.step = step[scheduler];
  out.sequence = sequence[scheduler];
  out.beside = beside[scheduler];
  out.first = software.scheduler == Scheduler::loop ? Given<Seconds>(Seconds(0), "0: no scheduler") : first;
  const bool python = software.scheduler >= Scheduler::python || software.fusion != Fusion::fused;
  out.launch = whole ? Given<Seconds>(Seconds(0), "0: one program per step") : launch[python ? 1 : 0];
  out.captured = software.captured;
  // Hosts that launch every kernel drift apart: devices wait for the one that is a launch behind.
  out.meet = time(meet);
  if (!software.captured) out.meet.value += out.launch.value;
  if (software.repeats_kv) out.copies = copies;
  if (software.vector_decode) out.vector = vector;
  out.token = software.whole_rows ? token : Given<Seconds>(Seconds(0), "0: caches are split");
  if (experts) out.tile_rows = experts->rows;
  if (experts && way == static_cast<std::size_t>(Fusion::fused)) {
    out.routing = experts->routing;
    out.expert_traffic = experts->traffic;
    out.gathering_routing = experts->gathering_routing;
    if (const Family* known = family(chip); known && known->id == experts->gathering_family)
      out.gathering_formats = experts->gathering_formats;
    out.experts = experts;
    out.expert_kernel = software.experts;
    out.chip = chip.id;
  }
  out.memory = memory[way];
  if (!software.captured) out.memory.graphs.value = 0;
  return out;
}

std::vector<std::string> serving_classes(const Family* family, const model::Transformer& model) {
  if (!family || !family->serving) return {};
  const std::string kind = model.has_experts() ? "experts" : "dense";
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
  RecordFile shared = effects_file(file);
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    NumbersReader numbers(reader, steps);
    visit_serving(steps, numbers);
    read_intervals(reader, "prefill_interval", steps.prefill_intervals);
    read_intervals(reader, "decode_interval", steps.decode_intervals);
  }));
  return steps;
}

Result<void> read_serving_memory(std::string_view document, std::string_view file, ServingCalibration& steps) {
  RuntimeMemory launched, whole;
  const auto numbers = [&](RecordReader& reader, std::string_view key, auto RuntimeMemory::*number) {
    std::array both{launched.*number, whole.*number};
    reader.numbers(key, memory_kinds, both);
    launched.*number = both[0];
    whole.*number = both[1];
  };
  std::array<Given<double>, ServingCalibration::ways> activations;
  RecordFile shared = effects_file(file);
  ASSAY_CHECK(read_record(document, shared, [&](RecordReader& reader) {
    reader.sources();
    reader.table("driver", [&](RecordReader& inner) { numbers(inner, "hidden", &RuntimeMemory::hidden); });
    reader.table("process", [&](RecordReader& inner) {
      numbers(inner, "context", &RuntimeMemory::context);
      numbers(inner, "communication", &RuntimeMemory::communication);
    });
    reader.table("graphs", [&](RecordReader& inner) {
      numbers(inner, "captured", &RuntimeMemory::graphs);
      numbers(inner, "kernel", &RuntimeMemory::kernel);
    });
    reader.table("activations", [&](RecordReader& inner) { inner.numbers("held", fusion_names, activations); });
  }));
  for (std::size_t way = 0; way < ServingCalibration::ways; ++way) {
    steps.memory[way] = way == static_cast<std::size_t>(Fusion::xla) ? whole : launched;
    steps.memory[way].activations = activations[way];
  }
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
  constexpr std::string_view kinds[] = {"chip", "stages"};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    ASSAY_TRY(prefill, unseen_intervals(catalogue, "inference-ttft", kinds[i]));
    ASSAY_TRY(decode, unseen_intervals(catalogue, "inference-tpot", kinds[i]));
    steps.unseen_prefill[i] = std::move(prefill);
    steps.unseen_decode[i] = std::move(decode);
  }
  // One allocator and one code of a model serve training and serving.
  ASSAY_TRY(training, steps_of(catalogue));
  constexpr auto eager = static_cast<std::size_t>(Fusion::eager);
  steps.kernels = training.served_kernels;
  for (const Fusion counted : {Fusion::fused, Fusion::compiled, Fusion::xla})
    steps.pointwise[static_cast<std::size_t>(counted)] = training.served_traffic[static_cast<std::size_t>(counted)];
  steps.code.kinds = training.kinds[eager];
  steps.code.kernels = training.kernels[eager];
  steps.code.start = training.kernel_start[eager];
  steps.code.composed = training.composed;
  steps.code.routing_launches = training.routing_launches;
  for (std::size_t way = 0; way < ServingCalibration::ways; ++way)
    if (way != static_cast<std::size_t>(Fusion::xla)) steps.memory[way].reserved = training.reserved;
  return steps;
}

}  // namespace

Result<ServingCalibration> serving_steps_of(const hardware::Catalogue& catalogue, bool experts) {
  ASSAY_TRY(kept,
            catalogue.kept<ServingCalibration>("serving steps", [&] { return read_serving_steps_of(catalogue); }));
  ServingCalibration steps = *kept;
  if (!experts) return steps;
  ASSAY_TRY(of_experts, expert_kernels_of(catalogue));
  steps.experts = std::move(of_experts);
  return steps;
}

std::string serving_steps_text(const ServingCalibration& steps, std::string_view source) {
  NumbersWriter writer(source, steps);
  visit_serving(steps, writer);
  return writer.take() + intervals_text(steps.prefill_intervals, "prefill_interval", source) +
         intervals_text(steps.decode_intervals, "decode_interval", source);
}

}  // namespace assay::numbers
