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

Bytes weight_bytes(const Transformer& model, const std::function<NumberFormat(const Weight&)>& format) {
  Bytes sum;
  const auto add = [&](const std::vector<Weight>& weights, std::int64_t times) {
    for (const Weight& weight : weights)
      sum +=
          static_cast<double>(weight.copies(times)) * storage(format(weight), static_cast<double>(weight.elements()));
  };
  add(outer_weights(model), 1);
  for (const LayerStack* stack : {&model.decoder, model.encoder ? &*model.encoder : nullptr})
    for (std::size_t i = 0; stack && i < stack->kinds.size(); ++i)
      add(layer_weights(model, stack->kinds[i]), stack->count(i));
  return sum;
}

std::string text(const Quantisation& quantisation) {
  if (quantisation.parts == linear_layers(quantisation.format).parts)
    return fmt::format("{} in linear layers", name(quantisation.format));
  std::string parts;
  for (std::size_t i = 0; i < part_count; ++i)
    if (const auto part = static_cast<Part>(i); quantisation.has(part))
      parts += fmt::format("{}{}", parts.empty() ? "" : ", ", name(part));
  return fmt::format("{} in {}", name(quantisation.format), parts);
}

}  // namespace assay::model
