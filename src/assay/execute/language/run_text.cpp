#include "assay/execute/language/run_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/execute/program/step.h"

namespace assay::execute {
namespace {

std::size_t index_of(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The position of each device on some axes, by device along the axes that are longer than one.
Array<double> positions(const program::Mesh& mesh, program::AxisList axes, Shape shape) {
  Array<double> out = zeros<double>(std::move(shape));
  std::vector<std::int64_t> seen;
  for (std::int64_t d = 0; d < mesh.devices(); ++d)
    out.values[index_of(d)] = static_cast<double>(shard_index(mesh, axes.axes(), coordinates(mesh, d)));
  return out;
}

}  // namespace

Array<double> given_array(const language::Compiled& compiled, const language::GivenTensor& given) {
  const program::Program& program = compiled.program;
  const Shape shape = global_shape(program::to_tensor(program, program.tensor(given.tensor)));
  if (given.kind == language::Value::Given::axis_index) return positions(program.mesh, given.axes, shape);
  const language::Fill& fill = given.fill;
  if (fill.kind == language::Fill::Kind::random && fill.below == 0) return random_reals<double>(shape, fill.seed);
  Array<double> out = zeros<double>(shape);
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

TextRun run_text(const language::Compiled& compiled) {
  TextRun run;
  StepRunner runner(compiled.program, 1.0);
  run.memory.resize(compiled.program.tensors.size());
  for (const language::GivenTensor& given : compiled.given)
    run.memory[index_of(given.tensor)] = runner.distributed(given_array(compiled, given), given.tensor);
  for (const program::Step& step : compiled.program.steps) runner.run(step, nullptr, run.memory);
  for (const auto* named : {&compiled.results, &compiled.gradients})
    for (const language::NamedTensor& one : *named) run.results[one.name] = runner.collected(one.tensor, run.memory);
  run.predicted = runner.predicted();
  run.facts = {runner.disagreement(), runner.byte_error(), runner.received(), runner.predicted()};
  return run;
}

double relative_error(const Array<double>& got, const Array<double>& expected) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (got.shape != expected.shape) return infinity;
  double error = 0.0, scale = 1.0;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double a = got.values[i], b = expected.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double difference = std::abs(a - b);
    error = std::max(error, std::isnan(difference) ? infinity : difference);
  }
  for (const double value : expected.values)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  return error / scale;
}

}  // namespace assay::execute
