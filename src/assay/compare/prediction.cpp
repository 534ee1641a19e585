#include "assay/compare/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/training/step_list.h"

namespace assay::compare {
namespace {

std::vector<double> tensor_sizes(const program::Program& program, const program::Step& step) {
  std::vector<double> out;
  const auto add = [&](int id) {
    if (id < 0) return;
    const double elements = program.tensor(id).elements;
    if (std::find(out.begin(), out.end(), elements) == out.end()) out.push_back(elements);
  };
  for (const std::int16_t id : step.in) add(id);
  for (const std::int16_t id : step.out) add(id);
  return out;
}

bool makes_weight_gradient(const program::Program& program, const program::Step& step) {
  return step.op == program::Op::product && step.out[0] >= 0 &&
         program.tensor(step.out[0]).tensor_class == program::TensorClass::gradient;
}

/// What layers share is done once.
std::int64_t runs_of(const program::Block& block) { return block.is_shared ? 1 : block.layers; }

/// Appends the lines of a block, once for each of its layers.
void run_block(const program::Block& block, const std::vector<std::int64_t>& line_of,
               std::vector<std::uint32_t>& order) {
  for (std::int64_t layer = 0; layer < runs_of(block); ++layer)
    for (std::int32_t i = block.first; i < block.last; ++i)
      if (const std::int64_t line = line_of[static_cast<std::size_t>(i)]; line >= 0)
        order.push_back(static_cast<std::uint32_t>(line));
}

/// What a step costs beyond kernels and communication; rounding is nothing.
Seconds beyond(Seconds time, Seconds kernels, Seconds communication) {
  const Seconds left = time - kernels - communication;
  constexpr double rounding = 1e-9;
  return std::abs(left.value()) <= rounding * time.value() ? Seconds(0) : left;
}

}  // namespace

std::string_view class_of(program::Op op) {
  using program::Op;
  switch (program::facts(op).cost) {
    case program::CostClass::product:
      return "products";
    case program::CostClass::attention:
      return "attention";
    case program::CostClass::scan:
      return "scans";
    case program::CostClass::norm:
      return "norms";
    case program::CostClass::rotation:
      return "rotations";
    case program::CostClass::activation:
      return "activations";
    case program::CostClass::expert_traffic:
      return "routing";
    case program::CostClass::loss:
      return "loss";
    case program::CostClass::cast:
      return "casts";
    case program::CostClass::optimizer:
      return "update";
    default:
      return op == Op::embed || op == Op::embed_grad ? "embedding" : "element-wise";
  }
}

Result<Prediction> training_prediction(const training::TrainingQuestion& question, std::int64_t sequence,
                                       const hardware::Cluster& cluster, const training::Strategy& strategy,
                                       const training::TrainingCost& cost) {
  if (const std::int64_t stages = strategy.parallelism.pipeline; stages > 1) {
    const std::int64_t layers = question.setup.model->decoder.layers();
    return fail(
        "--against", fmt::format("a profile is of one device, and the request has {} pipeline stages", stages),
        fmt::format("give the ranks of one stage, and ask for its {} of {} layers with --pp 1: {{\"base\": "
                    "\"{}\", \"num_hidden_layers\": {}}}",
                    (layers + stages - 1) / stages, layers, question.setup.model->id, (layers + stages - 1) / stages));
  }
  const program::Program program = training::training_program(question, sequence, strategy);
  ASSAY_TRY(times, training::training_step_times(question, sequence, cluster, strategy, program));
  const double microbatches = training::microbatches(question, strategy);
  const auto repeats = static_cast<std::int64_t>(std::ceil(microbatches));
  Prediction out;
  out.what = "training step";
  out.time = Seconds(cost.estimate);
  std::vector<std::int64_t> line_of(program.steps.size(), -1);
  Seconds kernels;
  for (const program::Block& block : program.blocks)
    for (std::int32_t i = block.first; i < block.last; ++i) {
      const program::Step& step = program.steps[static_cast<std::size_t>(i)];
      const Seconds time = times.steps[static_cast<std::size_t>(i)].time;
      if (program::is_collective(step.op) || !(time > Seconds(0))) continue;
      const bool once = step.once || block.phase == program::Phase::update;
      PredictedLine line;
      line.block = fmt::format("{} {}", block.name, program::name(block.phase));
      line.text = program::step_text(program, step);
      line.op = step.op;
      line.phase = block.phase;
      line.weight_gradient = makes_weight_gradient(program, step);
      line.flops = step.flops;
      line.bytes = step.bytes;
      if (step.op == program::Op::product && step.in[0] >= 0) line.format = program.tensor(step.in[0]).dtype;
      line.elements = tensor_sizes(program, step);
      line.runs = runs_of(block) * (once ? 1 : repeats);
      // A batch that does not divide has a part of a microbatch.
      line.time = once ? time : time * (microbatches / static_cast<double>(repeats));
      kernels += static_cast<double>(line.runs) * line.time;
      line_of[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(out.lines.size());
      out.lines.push_back(std::move(line));
    }
  for (std::int64_t batch = 0; batch < repeats; ++batch)
    for (const program::Block& block : program.blocks)
      if (block.phase != program::Phase::update) run_block(block, line_of, out.order);
  for (const program::Block& block : program.blocks)
    if (block.phase == program::Phase::update) run_block(block, line_of, out.order);
  const training::StepParts& parts = cost.parts;
  out.communication = parts.tensor + parts.context + parts.expert + parts.weights + parts.gradients + parts.handover;
  out.overhead = beyond(out.time, kernels, out.communication);
  return out;
}

Prediction serving_prediction(const std::vector<serving::PricedStep>& steps, Seconds time, std::string what) {
  Prediction out;
  out.what = std::move(what);
  out.time = time;
  out.ordered = false;
  Seconds kernels;
  for (std::size_t first = 0; first < steps.size();) {
    std::size_t last = first;
    while (last < steps.size() && steps[last].block == steps[first].block) ++last;
    const auto layers = static_cast<std::int64_t>(std::llround(std::max(1.0, steps[first].layers)));
    std::vector<std::uint32_t> lines;
    for (std::size_t i = first; i < last; ++i) {
      const serving::PricedStep& step = steps[i];
      const Seconds all = step.layers * step.count * step.time;
      if (step.over != 0) {
        out.communication += all;
        continue;
      }
      const auto per_layer = static_cast<std::int64_t>(std::llround(std::max(1.0, step.count)));
      PredictedLine line;
      line.block = step.block;
      line.text = step.what;
      line.op = step.op;
      line.flops = Flops(step.flops);
      line.bytes = Bytes(step.bytes);
      line.runs = layers * per_layer;
      line.time = Seconds(all / static_cast<double>(line.runs));
      kernels += all;
      for (std::int64_t k = 0; k < per_layer; ++k) lines.push_back(static_cast<std::uint32_t>(out.lines.size()));
      out.lines.push_back(std::move(line));
    }
    for (std::int64_t layer = 0; layer < layers; ++layer) out.order.insert(out.order.end(), lines.begin(), lines.end());
    first = last;
  }
  out.overhead = beyond(out.time, kernels, out.communication);
  return out;
}

}  // namespace assay::compare
