#include "assay/model/quantisation.h"

#include <fmt/format.h>

#include "assay/model/weights.h"

namespace assay::model {

bool Quantisation::covers(const Weight& weight) const {
  return has(weight.part) && (weight.matrix || weight.part == Part::embedding);
}

Quantisation linear_layers(NumberFormat format) {
  Quantisation made{format, 0, false};
  for (const Part part : {Part::attention, Part::state_space, Part::mlp, Part::experts, Part::shared_experts})
    made.add(part);
  return made;
}

namespace {

/// Calls `visit` with every weight of a model and the number of layers that have it.
template <class Visit>
void for_each_weight(const Transformer& model, Visit visit) {
  for (const Weight& weight : outer_weights(model)) visit(weight, std::int64_t{1});
  model.for_each_kind([&](const Layer& layer, std::int64_t times) {
    for (const Weight& weight : layer_weights(model, layer)) visit(weight, times);
  });
}

}  // namespace

Bytes weight_bytes(const Transformer& model, const std::function<NumberFormat(const Weight&)>& format) {
  Bytes sum;
  for_each_weight(model, [&](const Weight& weight, std::int64_t layers) {
    sum += static_cast<double>(weight.copies(layers)) * storage(format(weight), static_cast<double>(weight.elements()));
  });
  return sum;
}

std::string text(const Quantisation& quantisation, const Transformer& model) {
  Quantisation covered{quantisation.format, 0, false};
  Quantisation linear = covered;
  for_each_weight(model, [&](const Weight& weight, std::int64_t) {
    if (quantisation.covers(weight)) covered.add(weight.part);
    if (linear_layers(quantisation.format).covers(weight)) linear.add(weight.part);
  });
  if (covered.parts == linear.parts) return fmt::format("{} in linear layers", name(quantisation.format));
  std::string parts;
  for (std::size_t i = 0; i < part_count; ++i)
    if (const auto part = static_cast<Part>(i); covered.has(part))
      parts += fmt::format("{}{}", parts.empty() ? "" : ", ", name(part));
  return fmt::format("{} in {}", name(quantisation.format), parts);
}

}  // namespace assay::model
