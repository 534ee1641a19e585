#include "assay/execute/program/run_program.h"

#include <cmath>

#include "assay/execute/program/training_session.h"

namespace assay::execute {
namespace {

constexpr double random_spread = 0.3;  // small enough for plain exponentials, large enough for every path to matter

}  // namespace

NamedArrays random_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed) {
  NamedArrays out;
  const ProgramRunner runner(program, model, 1);
  for (std::int64_t layer = -1; layer < runner.layers(); ++layer)
    for (const auto& [id, text] : runner.names(layer)) {
      if (out.contains(text)) continue;
      const program::ProgramTensor& tensor = program.tensor(id);
      Array<double> values =
          random_reals<double>(global_shape(program::to_tensor(program, tensor)), mixed(seed, out.size()));
      const bool scale = tensor.name.ends_with("norm") && !tensor.name.starts_with("b_");
      for (double& value : values.values) value = random_spread * value + (scale ? 1.0 : 0.0);
      out[text] = std::move(values);
    }
  return out;
}

NamedArrays initial_weights(const program::Program& program, const model::Transformer& model, std::uint64_t seed) {
  // Uniform, of the variance 1 / d_model.
  const double spread = std::sqrt(3.0 / static_cast<double>(model.d_model));
  NamedArrays out = random_weights(program, model, seed);
  for (auto& [text, array] : out) {
    const std::string_view last =
        std::string_view(text).substr(text.find('.') == std::string::npos ? 0 : text.find('.') + 1);
    const bool scales = array.shape.size() == 1 && last.find("norm") != std::string_view::npos;
    const bool shifts = array.shape.size() == 1 && last.starts_with("b_");
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      double& value = array.values[i];
      if (scales || shifts)
        value = scales && !shifts ? 1.0 : 0.0;
      else if (array.shape.size() > 1)
        value *= spread / random_spread;
    }
  }
  return out;
}

TrainingRun run_training(const program::Program& program, const model::Transformer& model, const NamedArrays& weights,
                         const Array<double>& tokens, const Array<double>& targets) {
  TrainingSession session(program, model, weights, {});
  session.keep_gradients();
  TrainingRun out;
  out.loss = session.step(tokens, targets).loss;
  out.gradients = session.gradients();
  out.updated = session.weights();
  for (auto weight = out.updated.begin(); weight != out.updated.end();)  // frozen weights have no gradient
    weight = out.gradients.contains(weight->first) ? std::next(weight) : out.updated.erase(weight);
  out.facts = session.facts();
  return out;
}

}  // namespace assay::execute
