#include "assay/engine/program/run_program.h"

#include <algorithm>
#include <cmath>

#include "assay/engine/program/runner.h"

namespace assay::engine {
namespace {

std::vector<WeightStart> random_starts(const program::Program& program, const model::Transformer& model,
                                       std::uint64_t seed) {
  std::vector<WeightStart> out;
  const ProgramRunner runner(program, model, 1);
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const auto& [id, text] : runner.names(layer)) {
      const auto same = [&name = text](const WeightStart& other) { return other.name == name; };
      if (std::any_of(out.begin(), out.end(), same)) continue;
      const program::ProgramTensor& tensor = program.tensor(id);
      const bool scale = tensor.name.ends_with("norm") && !tensor.name.starts_with("b_");
      out.push_back({text, id, global_shape(program::to_tensor(program, tensor)), mixed(seed, out.size()),
                     scale ? 1.0 : 0.0, 1.0, 0.0});
    }
  return out;
}

NamedArrays drawn(const std::vector<WeightStart>& starts) {
  NamedArrays out;
  for (const WeightStart& start : starts) {
    Array values = random_reals(start.shape, start.seed);
    for (double& value : values.values)
      value = (WeightStart::spread * value + start.shift) * start.factor + start.constant;
    out[start.name] = std::move(values);
  }
  return out;
}

}  // namespace

std::vector<WeightStart> initial_starts(const program::Program& program, const model::Transformer& model,
                                        std::uint64_t seed) {
  // Uniform, of the variance 1 / d_model.
  const double spread = std::sqrt(3.0 / static_cast<double>(model.d_model));
  std::vector<WeightStart> out = random_starts(program, model, seed);
  for (WeightStart& start : out) {
    const std::string_view text = start.name;
    const std::string_view last = text.substr(text.find('.') == std::string::npos ? 0 : text.find('.') + 1);
    const bool scales = start.shape.size() == 1 && last.find("norm") != std::string_view::npos;
    const bool shifts = start.shape.size() == 1 && last.starts_with("b_");
    if (scales || shifts) {
      start.factor = 0.0;
      start.constant = scales && !shifts ? 1.0 : 0.0;
    } else if (start.shape.size() > 1) {
      start.factor = spread / WeightStart::spread;
    }
  }
  return out;
}

NamedArrays random_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed) {
  return drawn(random_starts(program, model, seed));
}

NamedArrays initial_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed) {
  return drawn(initial_starts(program, model, seed));
}

}  // namespace assay::engine
