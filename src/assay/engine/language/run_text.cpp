#include "assay/engine/language/run_text.h"

#include <algorithm>
#include <cmath>

namespace assay::engine {
namespace {

std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The position of each device on some axes, by device along the axes that are longer than one.
Array positions(const program::Mesh& mesh, program::AxisList axes, Shape shape) {
  Array out = zeros(std::move(shape));
  std::vector<std::int64_t> seen;
  for (std::int64_t d = 0; d < mesh.devices(); ++d)
    out.values[index_of(d)] = static_cast<double>(shard_index(mesh, axes.axes(), coordinates(mesh, d)));
  return out;
}

/// Numbers travel between ranks as they are held, in 8 bytes; they count in those of their format.
double travelling_share(const program::Program& program, const program::Step& step) {
  return storage(program.tensor(step.in[0]).dtype, 1.0) / Bytes(sizeof(double));
}

/// Bytes of each step over all ranks: a rank alone may receive more or less than the others, and of a permute in which
/// some keep their shard the busiest one counts, as on virtual devices.
RunFacts facts_of_ranks(Transport& transport, const program::Program& program, const std::vector<double>& moved,
                        const std::vector<double>& stated, double disagreement) {
  const auto all_moved = gather_values(transport, moved), all_stated = gather_values(transport, stated);
  const auto ranks = static_cast<double>(transport.count());
  RunFacts out;
  out.disagreement = disagreement;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const program::Step& step = program.steps[i];
    const bool swaps = step.is(program::Collective::permute) && step.detail < 0;
    double sum = 0.0, most = 0.0, predicted = 0.0;
    for (std::size_t rank = 0; rank < all_moved.size(); ++rank) {
      sum += all_moved[rank][i];
      most = std::max(most, all_moved[rank][i]);
      predicted += all_stated[rank][i] / ranks;
    }
    const double received = swaps ? most : sum / ranks;
    out.moved += Bytes(received);
    out.stated += Bytes(predicted);
    out.byte_error = std::max(out.byte_error, std::abs(received - predicted) / std::max(1.0, predicted));
  }
  return out;
}

ProgramMemory given_memory(const language::Compiled& compiled, const StepRunner& runner) {
  ProgramMemory memory(compiled.program.tensors.size());
  for (const language::GivenTensor& given : compiled.given)
    memory[index_of(given.tensor)] = runner.distributed(given_array(compiled, given), given.tensor);
  return memory;
}

/// A row that a gather asks for and its table lacks.
std::optional<RowBeyond> row_beyond(const program::Program& program, const program::Step& step, StepRunner& runner,
                                    const ProgramMemory& memory) {
  const program::ProgramTensor& table = program.tensor(step.in[1]);
  const std::int64_t rows = table.dims[index_of(std::max<int>(0, step.detail))].size;
  for (const double row : runner.collected(step.in[0], memory).values)
    if (!(row >= 0.0 && row < static_cast<double>(rows))) return RowBeyond{&step - program.steps.data(), row, rows};
  return std::nullopt;
}

std::vector<Seconds> slowest_times(Transport& transport, const StepRunner& runner) {
  std::vector<double> mine;
  for (const StepClock& clock : runner.clocks()) mine.push_back(clock.time.value());
  std::vector<Seconds> slowest(mine.size());
  for (const std::vector<double>& each : gather_values(transport, mine))
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], Seconds(each[i]));
  return slowest;
}

}  // namespace

Array given_array(const language::Compiled& compiled, const language::GivenTensor& given) {
  const program::Program& program = compiled.program;
  const Shape shape = global_shape(program::to_tensor(program, program.tensor(given.tensor)));
  if (given.kind == language::Value::Given::axis_index) return positions(program.mesh, given.axes, shape);
  const language::Fill& fill = given.fill;
  if (fill.kind == language::Fill::Kind::random && fill.below == 0) return random_reals(shape, fill.seed);
  Array out = zeros(shape);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    double& value = out.values[i];
    switch (fill.kind) {
      case language::Fill::Kind::random:
        value = static_cast<double>(mixed(fill.seed, i) % static_cast<std::uint64_t>(fill.below));
        break;
      case language::Fill::Kind::iota:
        value = static_cast<double>(i);
        break;
      case language::Fill::Kind::constant:
        value = fill.constant;
        break;
      case language::Fill::Kind::literal:
        value = fill.literal[i];
        break;
    }
  }
  return out;
}

TextRun run_text(const language::Compiled& compiled, Transport* transport) {
  TextRun run;
  StepRunner runner(compiled.program, 1.0, {transport}, Overlap::none);
  run.memory = given_memory(compiled, runner);
  std::vector<double> moved, stated;
  for (const program::Step& step : compiled.program.steps) {
    const Bytes received = runner.received(), predicted = runner.predicted();
    if (transport)
      gather_values(*transport, {});  // ranks start a step together, so that its time is not one of waiting
    if (step.op == program::Op::embed && !run.beyond)
      run.beyond = row_beyond(compiled.program, step, runner, run.memory);
    runner.run(step, nullptr, run.memory);
    moved.push_back((runner.received() - received).value() *
                    (transport ? travelling_share(compiled.program, step) : 1.0));
    stated.push_back((runner.predicted() - predicted).value());
  }
  for (const auto* named : {&compiled.results, &compiled.gradients})
    for (const language::NamedTensor& one : *named) {
      const double before = runner.disagreement();
      run.results[one.name] = runner.collected(one.tensor, run.memory);
      if (runner.disagreement() > before) run.disagreeing = one.name;
    }
  run.facts = {runner.disagreement(), runner.byte_error(), runner.received(), runner.predicted()};
  if (transport) {
    run.facts = facts_of_ranks(*transport, compiled.program, moved, stated, runner.disagreement());
    run.times = slowest_times(*transport, runner);
  }
  run.predicted = run.facts.stated;
  return run;
}

TimedRun run_timed(const language::Compiled& compiled, Transport& transport, Overlap overlap, int runs) {
  const std::vector<program::Step>& steps = compiled.program.steps;
  TimedRun fastest;
  for (int run = 0; run < runs; ++run) {
    StepRunner runner(compiled.program, 1.0, {&transport}, overlap);
    ProgramMemory memory = given_memory(compiled, runner);
    gather_values(transport, {});
    for (std::size_t i = 0; i < steps.size(); ++i) {
      runner.take_inputs(steps[i], memory);
      for (std::size_t later = i; later < steps.size(); ++later) runner.start_ready(steps[later], memory);
      runner.run(steps[i], nullptr, memory);
    }
    runner.settle();
    RankActivities all = gathered(transport, runner.take_activities());
    if (run > 0 && span(all) >= span(fastest.ranks)) continue;
    fastest.ranks = std::move(all);
    for (const auto* named : {&compiled.results, &compiled.gradients})
      for (const language::NamedTensor& one : *named) fastest.results[one.name] = runner.collected(one.tensor, memory);
  }
  return fastest;
}

Shards gathered(const language::Compiled& compiled, const TextRun& run, int tensor, Transport* transport) {
  return VirtualDevices(compiled.program.mesh, {transport}).gathered(run.memory[index_of(tensor)]);
}

double relative_error(const Array& got, const Array& expected) {
  double scale = 1.0;
  for (const double value : expected.values)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  return largest_difference(got, expected) / scale;
}

}  // namespace assay::engine
