#include "assay/predict/serving/bounds.h"

#include "assay/model/accounting.h"

namespace assay::serving {
namespace {

/// Rows of a table are looked up, unless it is the head, too.
bool is_looked_up(const model::Transformer& model, const model::Weight& weight) {
  const bool table = weight.part == model::Part::embedding && !weight.matrix && weight.rank > 1;
  return (table && !(model.tied && model.head && weight.name == "embedding")) || weight.part == model::Part::positions;
}

/// Weights that are used once per request: for an encoder's keys and values, and for distances.
bool is_used_once(const model::Weight& weight) {
  return weight.name == "W_ck" || weight.name == "W_cv" || weight.name == "b_ck" || weight.name == "b_cv" ||
         weight.name == "W_rel";
}

/// Bytes of the weights that a decode step of `tokens` tokens reads, without experts that no token picks.
Bytes weight_bytes_read(const BoundsQuestion& of, double tokens) {
  const model::Transformer& model = *of.question.setup.model;
  const auto stored = [&](const model::Weight& weight) {
    return storage(of.question.setup.formats.of(weight), static_cast<double>(weight.elements()));
  };
  Bytes read;
  for (const model::Weight& weight : model::outer_weights(model))
    if (of.parameters_given || !is_looked_up(model, weight)) read += stored(weight);
  for (std::size_t k = 0; k < model.decoder.kinds.size(); ++k) {
    const model::Layer& layer = model.decoder.kinds[k];
    if (layer.needs_image && !of.parameters_given) continue;  // no text runs it
    const auto layers = static_cast<double>(model.decoder.count(k));
    double touched = 1.0;
    if (layer.feed_forward && layer.feed_forward->experts > 0)
      touched = lower::touched_share(tokens, static_cast<double>(layer.feed_forward->experts_per_token),
                                     static_cast<double>(layer.feed_forward->experts));
    for (const model::Weight& weight : model::layer_weights(model, layer))
      if (!is_used_once(weight))
        read += layers * stored(weight) * (weight.dims[0].dim == model::LogicalDim::experts ? touched : 1.0);
  }
  return of.question.weight_scale * read;
}

/// Values of the cache that the average decode step of a sequence reads.
double cache_values_read(const ServingQuestion& question) {
  const ServingKeys keys = decode_keys(question);
  if (keys.shares.empty()) return cache_values(question, decode_context(question));
  double values = 0.0, all = 0.0;
  for (std::size_t i = 0; i < keys.seen.size(); ++i) {
    values += keys.shares[i] *
              static_cast<double>(model::kv_values_met(*question.setup.model, keys.seen[i] - keys.source, keys.source));
    all += keys.shares[i];
  }
  return values / all;
}

double widest_layer(const model::Transformer& model) {
  double width = 0.0;
  for (const model::Layer& layer : model.decoder.kinds)
    if (layer.feed_forward) width = std::max(width, static_cast<double>(layer.feed_forward->width));
  return width;
}

}  // namespace

double cache_values(const ServingQuestion& question, std::int64_t tokens) {
  const model::Transformer& model = *question.setup.model;
  const std::int64_t source = model.encoder ? std::min(tokens, question.prompt) : 0;
  return static_cast<double>(model::kv_values_per_sequence(model, tokens - source, source));
}

ServingBounds serving_bounds(const BoundsQuestion& of, double batch) {
  const ServingQuestion& question = of.question;
  const lower::Formats& formats = question.setup.formats;
  const kernel::KernelRates& rates = question.setup.rates;
  const Bytes counted =
      model::weight_bytes(*question.setup.model, [&](const model::Weight& weight) { return formats.of(weight); });
  const BytesPerSecond hbm = rates.hbm * of.chips;
  ServingBounds bounds;
  bounds.weights = question.weight_scale * counted;
  bounds.weights_read = weight_bytes_read(of, batch);
  bounds.cache = storage(formats.kv_cache, cache_values(question, decode_context(question)) * batch);
  bounds.weights_time = bounds.weights_read / hbm;
  bounds.cache_time = storage(formats.kv_cache, cache_values_read(question) * batch) / hbm;
  bounds.compute_time = Flops(2.0 * of.active_parameters * batch) / (rates.rate(of.compute) * of.chips);
  return bounds;
}

LatencyFloors::Pass::Pass(const ServingSetup& setup, const ServingProfile& profile) {
  const numbers::ServingEffects& effects = setup.effects;
  const Seconds start = setup.rates.regime.launch + effects.start.value;
  const Seconds least = effects.code ? std::min(start, effects.code->start.value) : start;
  for (const ServingProfile::Block& block : *profile.blocks)
    for (const ServedKernel& kernel : block.kernels) {
      const double n = block.layers * kernel.count;
      const bool starts_alone =
          kernel.kernel.kind != kernel::KernelKind::other && law_of(setup.rates, kernel.kernel) != kernel::Law::scores;
      if (starts_alone) starts += n * kernel.started(effects) * least;
      if (kernel.kernel.kind == kernel::KernelKind::matmul)
        weights += n * (std::max(Bytes(), kernel.bytes.fixed) / setup.rates.hbm);
      compute += n * (kernel.flops(1.0) * kernel.time_per_flop);
    }
}

Seconds LatencyFloors::next_token(const ServingStrategy& strategy) const {
  return std::max(decode_.starts, decode_.weights / static_cast<double>(strategy.tensor * strategy.second));
}

Seconds LatencyFloors::first_token(const ServingStrategy& strategy) const {
  const auto data = static_cast<double>(strategy.data), chips = static_cast<double>(strategy.chips());
  return std::max(prompt_.starts, prompt_.compute * data / chips);
}

std::optional<NetworkBounds> network_bounds(const BoundsQuestion& of, const hardware::Chip& chip, double batch) {
  if (!chip.network.scale_up) return std::nullopt;
  const hardware::ScaleUp& up = *chip.network.scale_up;
  const kernel::KernelRates& rates = of.question.setup.rates;
  const double width = widest_layer(*of.question.setup.model);
  NetworkBounds out;
  out.axis = up.kind == "torus" ? 2.0 * up.link_bandwidth.value : hardware::scale_up_egress(chip)->value;
  if (!(out.axis > BytesPerSecond(0))) return std::nullopt;
  out.hbm_over_axis = rates.hbm / out.axis;
  out.intensity = rates.rate(of.compute) / out.axis;
  out.prefill_ways = width * out.axis.value() / rates.rate(of.compute).value();
  out.decode_ways = width / (batch * out.hbm_over_axis);
  return out;
}

}  // namespace assay::serving
