#include "assay/profile/compare/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/predict/clock/orders.h"
#include "assay/predict/training/step_list.h"

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
  // Halves of one tensor, and queries, keys and values of one.
  if (step.is_joined) out.push_back(2.0 * program.tensor(step.in[0]).elements);
  if ((step.op == program::Op::rotate || step.op == program::Op::rotate_grad) && step.detail >= 0) {
    // Heads of which a part turns are cut, and put together again.
    const program::ProgramTensor& heads = program.tensor(step.in[0]);
    const double turns = static_cast<double>(step.detail) / static_cast<double>(heads.dims[heads.rank - 1u].size);
    for (const double part : {turns, 1.0 - turns})
      if (part > 0.0) out.push_back(part * heads.elements);
  }
  if (step.op == program::Op::attention_grad && step.composed > 0) {
    double all = 0.0;
    for (std::size_t i = 0; i < 3; ++i)
      if (step.out[i] >= 0) all += program.tensor(step.out[i]).elements;
    out.push_back(all);
  }
  return out;
}

/// The last dimension of the largest tensor, as if no device split it: norms are over whole rows.
double width_of(const program::Program& program, const program::Step& step) {
  double most = 0.0, width = 0.0;
  const auto add = [&](int id) {
    if (id < 0 || program.tensor(id).rank == 0 || program.tensor(id).elements <= most) return;
    const program::ProgramTensor& tensor = program.tensor(id);
    most = tensor.elements;
    width = static_cast<double>(tensor.dims[tensor.rank - 1u].size);
  };
  for (const std::int16_t id : step.in) add(id);
  for (const std::int16_t id : step.out) add(id);
  return width;
}

/// The lines of a program, and the order in which a stage runs them.
class StageWriter {
 public:
  StageWriter(const program::Program& program, const clock::StepTimes& times, const clock::StepTimes& at_full_clock)
      : program_(program) {
    lines_of_.resize(program.steps.size(), -1);
    for (const program::Block& block : program.blocks)
      for (std::int32_t i = block.first; i < block.last; ++i) add_line(block, i, times, at_full_clock);
  }

  /// One pass of a microbatch through a part of the model.
  void run(const clock::StageSplit::Part& part, program::Phase phase, bool with_inputs, bool with_weights) {
    for (const program::Block& block : program_.blocks) {
      if (block.phase != phase) continue;
      for (std::int64_t layer = 0; layer < runs_of(block, part); ++layer)
        for (std::int32_t i = block.first; i < block.last; ++i) {
          const std::int64_t line = lines_of_[static_cast<std::size_t>(i)];
          if (line < 0) continue;
          const PredictedLine& of = lines_[static_cast<std::size_t>(line)];
          // What runs once a step belongs to its last microbatch.
          if (once_[static_cast<std::size_t>(line)] && phase != program::Phase::update) {
            if (ended_) order_.push_back(static_cast<std::uint32_t>(line));
          } else if (of.weight_gradient ? with_weights : with_inputs) {
            order_.push_back(static_cast<std::uint32_t>(line));
          }
        }
    }
  }
  /// Whether the passes that follow are those of the last microbatch.
  void end(bool ends) { ended_ = ends; }

  /// Fills in lines that run, each microbatch `share` of one.
  void finish(double share, Prediction& out) {
    std::vector<std::int64_t> runs(lines_.size(), 0), place(lines_.size(), -1);
    for (const std::uint32_t line : order_) ++runs[line];
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (runs[i] == 0) continue;
      place[i] = static_cast<std::int64_t>(out.lines.size());
      PredictedLine line = lines_[i];
      line.runs = runs[i];
      if (!once_[i]) line.time = line.time * share, line.slowed = line.slowed * share;
      out.lines.push_back(std::move(line));
    }
    for (const std::uint32_t line : order_) out.order.push_back(static_cast<std::uint32_t>(place[line]));
  }

 private:
  void add_line(const program::Block& block, std::int32_t i, const clock::StepTimes& times,
                const clock::StepTimes& at_full_clock) {
    const program::Step& step = program_.steps[static_cast<std::size_t>(i)];
    const Seconds time = times.steps[static_cast<std::size_t>(i)].time;
    if (program::is_collective(step.op) || !(time > Seconds(0))) return;
    PredictedLine line;
    line.block = fmt::format("{} {}", block.name, program::name(block.phase));
    line.text = program::step_text(program_, step);
    line.op = step.op;
    line.phase = block.phase;
    line.weight_gradient = program::makes_weight_gradient(program_, step);
    line.flops = step.flops;
    line.bytes = step.bytes;
    if (step.op == program::Op::product && step.in[0] >= 0) line.format = program_.tensor(step.in[0]).dtype;
    line.elements = tensor_sizes(program_, step);
    for (const std::int32_t other : times.steps[static_cast<std::size_t>(i)].parts) {  // fused into one kernel
      const program::Step& part = program_.steps[static_cast<std::size_t>(other)];
      line.flops += part.flops;
      line.bytes += part.bytes;
      for (const double elements : tensor_sizes(program_, part)) line.elements.push_back(elements);
    }
    line.width = width_of(program_, step);
    line.time = time;
    // What slows attention beside products shows in short profiles, too.
    if (step.op == program::Op::product) line.slowed = time - at_full_clock.steps[static_cast<std::size_t>(i)].time;
    lines_of_[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(lines_.size());
    lines_.push_back(std::move(line));
    once_.push_back(step.once || block.phase == program::Phase::update ? 1 : 0);
  }
  /// Layers of a block in a part of the model. What layers share is done once.
  static std::int64_t runs_of(const program::Block& block, const clock::StageSplit::Part& part) {
    if (block.kind < 0) return (block.name == "embedding" ? part.first : part.last) ? 1 : 0;
    const std::int64_t layers = part.layers[static_cast<std::size_t>(block.kind)];
    return block.is_shared ? std::min<std::int64_t>(layers, 1) : layers;
  }

  const program::Program& program_;
  std::vector<PredictedLine> lines_;
  std::vector<char> once_;              ///< by line: once a step
  std::vector<std::int64_t> lines_of_;  ///< by step of the program; below 0: none
  std::vector<std::uint32_t> order_;
  bool ended_ = false;
};

/// Parts of the model that a stage holds, by chunk.
std::vector<clock::StageSplit::Part> chunks_of(const clock::PipelineShape& shape, const clock::StageSplit& runs,
                                               std::int64_t stage) {
  std::vector<clock::StageSplit::Part> out;
  const bool mirrored = training::layout_of(shape.schedule) == clock::StageLayout::mirrored;
  for (std::int64_t direction = 0; direction < (mirrored ? 2 : 1); ++direction)
    for (std::int64_t part = 0; part < clock::model_parts(shape); ++part)
      if (clock::stage_of_part(shape, part, direction) == stage)
        out.push_back(runs.parts[static_cast<std::size_t>(runs.part_of[static_cast<std::size_t>(part)])]);
  return out;
}

/// What a step costs beyond kernels and communication; rounding is nothing.
Seconds beyond(Seconds time, Seconds kernels, Seconds communication) {
  const Seconds left = time - kernels - communication;
  constexpr double rounding = 1e-9;
  return std::abs(left.value()) <= rounding * time.value() ? Seconds(0) : left;
}

}  // namespace

std::string_view class_of(program::Op op) {
  constexpr std::string_view other = "element-wise";
  constexpr std::string_view classes[] = {"products",  "attention",   "scans",   other,  "norms",
                                          "rotations", "activations", "routing", "loss", "casts",
                                          "update",    other,         other};
  if (op == program::Op::embed || op == program::Op::embed_grad) return "embedding";
  return classes[static_cast<std::size_t>(program::facts(op).cost)];
}

namespace {

/// The order of all passes on a stage.
void run_stage(const training::TrainingQuestion& question, const training::Strategy& strategy, std::int64_t stage,
               std::int64_t microbatches, StageWriter& writer) {
  using clock::PipelineWork;
  const clock::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline, microbatches, strategy.interleave};
  const clock::StageSplit runs =
      training::stage_runs(*question.setup.model, shape.stages, shape.schedule, shape.chunks);
  const std::vector<clock::StageSplit::Part> chunks = chunks_of(shape, runs, stage);
  const clock::StageOrder order = clock::stage_order(shape, stage);
  std::vector<std::size_t> last(chunks.size(), 0);  // the last backward work of each chunk
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i].work != PipelineWork::forward) last[static_cast<std::size_t>(order[i].chunk)] = i;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const clock::PipelineOperation& one = order[i];
    const auto chunk = static_cast<std::size_t>(one.chunk);
    if (one.work == PipelineWork::forward) {
      writer.run(chunks[chunk], program::Phase::forward, true, true);
      continue;
    }
    writer.end(last[chunk] == i);
    writer.run(chunks[chunk], program::Phase::backward, one.work != PipelineWork::backward_weight,
               one.work != PipelineWork::backward_input);
  }
  for (const clock::StageSplit::Part& chunk : chunks) writer.run(chunk, program::Phase::update, true, true);
}

/// A step of the only stage.
void run_all(const clock::StageSplit::Part& part, std::int64_t microbatches, StageWriter& writer) {
  for (std::int64_t batch = 0; batch < microbatches; ++batch) {
    writer.end(batch + 1 == microbatches);
    writer.run(part, program::Phase::forward, true, true);
    writer.run(part, program::Phase::backward, true, true);
  }
  writer.run(part, program::Phase::update, true, true);
}

Seconds kernel_time(const Prediction& prediction) {
  Seconds sum;
  for (const PredictedLine& line : prediction.lines) sum += static_cast<double>(line.runs) * line.time;
  return sum;
}

}  // namespace

void set_clock(double settled, Prediction& prediction) {
  for (PredictedLine& line : prediction.lines) {
    const Seconds faster = (1.0 - settled) * line.slowed;
    line.time -= faster;
    prediction.time -= static_cast<double>(line.runs) * faster;
  }
}

Prediction without_gaps(Prediction prediction, Seconds between) {
  const Seconds gap = std::min(between, prediction.launch);
  for (PredictedLine& line : prediction.lines) {
    if (line.op != program::Op::product && !program::is_attention(line.op)) continue;
    const Seconds part = std::min(gap, 0.5 * line.time);
    line.time -= part;
    prediction.time -= static_cast<double>(line.runs) * part;
  }
  return prediction;
}

Result<std::vector<Prediction>> training_predictions(const training::TrainingQuestion& question, std::int64_t sequence,
                                                     const hardware::Cluster& cluster,
                                                     const training::Strategy& strategy,
                                                     const training::TrainingCost& cost) {
  const program::Program program = training::training_program(question, sequence, strategy);
  // Waiting for the host is no part of kernels; stages of a pipeline wait for each other, too.
  training::TrainingQuestion launched = question;
  if (strategy.parallelism.pipeline == 1)
    launched.setup.effects.launch = launched.setup.effects.routed_launch = Seconds(0);
  ASSAY_TRY(times, training::training_step_times(launched, sequence, cluster, strategy, program));
  training::TrainingQuestion cool = launched;
  if (cool.setup.rates.matmul) cool.setup.rates.matmul->droop = 0.0;
  ASSAY_TRY(at_full_clock, training::training_step_times(cool, sequence, cluster, strategy, program));
  const double microbatches = training::microbatches(question, strategy);
  // A batch that does not divide has a part of a microbatch.
  const auto repeats = static_cast<std::int64_t>(std::ceil(microbatches));
  const double share = microbatches / static_cast<double>(repeats);
  const clock::StageSplit split = training::stage_split(*question.setup.model, strategy);
  Prediction step;
  step.what = "training step";
  step.time = Seconds(cost.estimate);
  step.launch = question.setup.rates.regime.launch;
  const training::StepParts& parts = cost.parts;
  if (strategy.parallelism.pipeline == 1) {
    StageWriter writer(program, times, at_full_clock);
    run_all(split.parts.front(), repeats, writer);
    writer.finish(share, step);
    step.communication = parts.tensor + parts.context + parts.expert + parts.weights + parts.gradients + parts.handover;
    step.overhead = beyond(step.time, kernel_time(step), step.communication);
    return std::vector<Prediction>{std::move(step)};
  }
  ASSAY_TRY(priced, training::price_stages(question, sequence, cluster, strategy, split));
  const clock::PipelineShape shape{strategy.schedule, strategy.parallelism.pipeline, repeats, strategy.interleave};
  std::vector<Prediction> out;
  for (std::size_t i = 0; i < split.parts.size(); ++i) {
    const clock::StageSplit::Part& part = split.parts[i];
    const training::MicrobatchCost::Part& price = priced.parts[i];
    Prediction one = step;
    one.stage = StageOfPrediction{part.at, part.to, strategy.parallelism.pipeline};
    StageWriter writer(program, times, at_full_clock);
    run_stage(question, strategy, part.at, repeats, writer);
    writer.finish(share, one);
    one.communication = microbatches * (price.tensor + price.context + price.expert + price.weights) + price.gradients;
    one.handover = microbatches * training::sends(price, shape) * priced.hop.under(strategy.schedule);
    one.overhead = parts.overhead + microbatches * (price.host.forward + price.host.backward) + price.host.update;
    one.bubble = beyond(one.time, kernel_time(one), one.communication + one.handover + one.overhead);
    out.push_back(std::move(one));
  }
  return out;
}

Prediction serving_prediction(const std::vector<serving::PricedStep>& steps,
                              const std::vector<serving::PricedStep>& at_full_clock, Seconds time, std::string what) {
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
      if (step.op == program::Op::product && i < at_full_clock.size() && step.time > Seconds(0))
        line.slowed = (1.0 - at_full_clock[i].time / step.time) * line.time;
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
