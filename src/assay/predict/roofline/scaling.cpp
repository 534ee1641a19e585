#include "assay/predict/roofline/scaling.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay::roofline {
namespace {

constexpr std::string_view asked = "from the request";
constexpr Tokens one_token(1);

/// How collectives are counted, and the names of their numbers.
struct Counted {
  Counting counting = Counting::exact;
  const collective::CollectiveLabels* labels = nullptr;
};

/// The bandwidth term of a collective, named for what is moved.
template <class N>
auto moved(const N& num, std::string_view name, program::Collective kind, Bytes bytes,
           const collective::CollectiveGroup& group, const Counted& counted) {
  const collective::CollectiveCost<N> cost = collective::collective_cost(num, kind, bytes, group, counted.labels);
  return num.named(name, counted.counting == Counting::exact ? cost.bandwidth : cost.approximate);
}

Bytes activation_bytes(const MlpShape& shape) { return shape.element * shape.d_model; }

/// This many routed experts, plus the shared ones.
template <class N>
Ratio<N> with_shared(const N& num, std::string_view name, double routed, const MlpShape& shape) {
  const auto experts = num.given(name, routed, asked);
  if (shape.shared == 0.0) return experts;
  return experts + num.given("shared experts", shape.shared, "their width over d_ff");
}

}  // namespace

template <class N>
typename N::template Number<TokenFlopCount::dim> layer_flops_per_token(const N& num, const MlpShape& shape) {
  const auto matrices = num.given("matrices", shape.matrices, "of the MLP");
  const auto d = num.given("d_model", shape.d_model, asked), f = num.given("d_ff", shape.d_ff, asked);
  const auto each = num.given("FLOP per parameter", TokenFlopCount(2.0), "one multiply-add per token");
  if (shape.experts_per_token + shape.shared == 1.0) return num.named("FLOP per token", each * matrices * d * f);
  const auto active = with_shared(num, "experts per token", shape.experts_per_token, shape);
  return num.named("FLOP per token", each * matrices * d * f * active);
}

template <class N>
typename N::template Number<Bytes::dim> layer_weight_bytes(const N& num, const MlpShape& shape) {
  const auto matrices = num.given("matrices", shape.matrices, "of the MLP");
  const auto d = num.given("d_model", shape.d_model, asked), f = num.given("d_ff", shape.d_ff, asked);
  const auto each = num.given("bytes per element", shape.element, "dtype");
  if (shape.experts == 1.0) return num.named("weights", each * matrices * d * f);
  return num.named("weights", each * matrices * d * f * with_shared(num, "experts", shape.experts, shape));
}

template <class N>
LayerRates<N> layer_rates(const N& num, const MlpShape& shape, const Sourced<FlopsPerSecond>& peak,
                          const LayerLinks& links, Counting counting, const collective::CollectiveLabels* labels) {
  const Counted counted{counting, labels};
  const auto flops = layer_flops_per_token(num, shape);
  const Bytes bytes = plain(layer_weight_bytes(Plain{}, shape));
  const auto arithmetic = num.named("arithmetic per token", flops / num.given("peak", peak));
  const auto gather = moved(num, "weights gathered", program::Collective::all_gather, bytes, links.weights, counted);
  const auto reduce = moved(num, "gradients reduced", program::Collective::all_reduce, bytes, links.weights, counted);
  const auto token = moved(num, "activations of a token gathered", program::Collective::all_gather,
                           activation_bytes(shape), links.activations, counted);
  const auto exchange = num.named("activations per token", 2.0 * token / num.given("token", one_token, "one"));
  return {arithmetic, gather, reduce, exchange};
}

template <class N>
LayerTimes<N> layer_times(const N& num, const LayerRates<N>& rates, const Split& split, Tokens batch, WeightsAre scheme,
                          Pass pass) {
  const bool back = pass == Pass::backward;
  const auto tokens = num.given("batch", batch, asked);
  const auto chips = num.given("chips", split.chips(), asked);
  const auto inner = num.given("model-parallel ways", split.tensor * split.pipeline, "tensor x pipeline");
  const auto outer = num.given("fsdp x pipeline ways", split.fsdp * split.pipeline, asked);
  const auto once = tokens * rates.arithmetic / chips;
  // The backward pass multiplies twice: for the gradients of the input and of the weights.
  const auto compute = num.named("compute", back ? 2.0 * once : num.given("passes", 1.0, "forward") * once);
  const auto none = [&](std::string_view why) { return num.given("nothing moves", Seconds(0.0), why); };
  // FSDP gathers weights in both passes and reduce-scatters gradients in the second, which costs the same again.
  const auto weights =
      num.named("weight communication",
                split.fsdp <= 1.0 ? none("one copy")
                : scheme == WeightsAre::replicated
                    ? (back ? rates.reduce / inner : none("weights are replicated"))
                    : num.given("collectives per matrix", back ? 2.0 : 1.0, "gather; backward also reduce-scatter") *
                          (rates.gather / inner));
  // Activations move the same bytes in both passes if the gathered input is kept.
  const auto activations = num.named("activation communication", split.tensor <= 1.0 ? none("no tensor parallelism")
                                                                                     : tokens * rates.exchange / outer);
  const auto communication = num.named("communication", max(weights, activations));
  return {compute,
          weights,
          activations,
          communication,
          weights + activations,
          num.named("lower bound", max(compute, communication)),
          num.named("upper bound", compute + weights + activations)};
}

template <class N>
TokenCount<N> min_tokens_data_parallel(const N& num, const LayerRates<N>& rates, WeightsAre scheme) {
  if (scheme == WeightsAre::sharded) return num.named("minimum tokens per chip, FSDP", rates.gather / rates.arithmetic);
  return num.named("minimum tokens per chip, data parallel", rates.reduce / (2.0 * rates.arithmetic));
}

template <class N>
Ratio<N> max_tensor_ways(const N& num, const LayerRates<N>& rates) {
  return num.named("maximum tensor-parallel ways", rates.arithmetic / rates.exchange);
}

template <class N>
Ratio<N> best_fsdp_squared(const N& num, const LayerRates<N>& rates, Tokens batch, double chips) {
  return num.named("best fsdp degree, squared",
                   num.given("chips", chips, asked) * num.given("batch", batch, asked) * rates.exchange / rates.gather);
}

template <class N>
TokenCount<N> min_tokens_mixed(const N& num, const LayerRates<N>& rates) {
  return num.named("minimum tokens per chip, FSDP and tensor parallel",
                   rates.gather * rates.exchange / (rates.arithmetic * rates.arithmetic));
}

double mixed_ratio(const LayerRates<Plain>& rates, Tokens tokens_per_chip) {
  return std::sqrt(tokens_per_chip / min_tokens_mixed(Plain{}, rates));
}

template <class N>
ExpertTimes<N> expert_times(const N& num, const MlpShape& shape, const Sourced<FlopsPerSecond>& peak,
                            const collective::CollectiveGroup& group, double ways,
                            const collective::CollectiveLabels* labels) {
  using PerToken = typename N::template Number<TokenSeconds::dim>;
  const auto chips = num.given("expert-parallel ways", ways, asked);
  const auto compute =
      num.named("compute per token", layer_flops_per_token(num, shape) / num.given("peak", peak) / chips);
  const auto token = num.given("token", one_token, "one");
  const auto bytes = num.given("bytes of a token", activation_bytes(shape), "d_model elements");
  std::optional<PerToken> worst;
  const auto add = [&](PerToken time) { worst = worst ? max(*worst, time) : time; };
  if (group.torus()) {
    const auto copies = shape.experts_per_token * activation_bytes(shape);
    add(2.0 *
        moved(num, "tokens to their experts", program::Collective::all_to_all, copies, group,
              {Counting::exact, labels}) /
        token);
  } else {
    double below = 1.0;
    for (const auto& level : group.levels) {
      const double here = below;
      below *= level.groups;
      if (level.groups <= 1.0) continue;
      const auto share = num.given("share that leaves a child", 1.0 - here / ways, "its own experts take the rest");
      const auto reached = num.given("copies of a token", std::min(shape.experts_per_token, ways / here),
                                     "one per child that holds one of its experts");
      const auto chip = num.given("bandwidth per chip", level.chip_bandwidth,
                                  labels ? std::string_view(labels->levels[level.level].source) : "");
      add(num.named(labels ? std::string_view(labels->levels[level.level].name) : "level",
                    2.0 * bytes * share * reached / (chips * chip) / token));
    }
  }
  const auto communication = num.named(
      "exchange per token", worst ? *worst : num.given("one participant", TokenSeconds(0.0), "nothing to exchange"));
  const auto width = num.given("d_ff", shape.d_ff, asked) * communication / compute;
  return {compute, communication, num.named("minimum d_ff, expert parallel", width)};
}

double wide_expert_width(const MlpShape& shape, FlopsPerSecond peak, const collective::CollectiveGroup& group) {
  // Z much larger than k: k copies, which all leave: 2 k b D / (Z w) against 2 m k D F / (Z C).
  double width = 0.0;
  for (const auto& level : group.levels)
    if (level.groups > 1.0)
      width = std::max(width, (shape.element / shape.matrices * (peak / level.chip_bandwidth)).value());
  return width;
}

template <class N>
Ratio<N> pipeline_bubble(const N& num, double stages, double micro_batches, double chunks) {
  const auto idle = num.given("stages", stages, asked) - 1.0;
  const auto work = num.given("chunks per stage", chunks, asked) * num.given("microbatches", micro_batches, asked);
  return num.named("bubble", idle / (work + idle));
}

template <class N>
typename N::template Number<Flops::dim> training_flops(const N& num, double parameters, Tokens tokens) {
  const auto each = num.given("FLOP per parameter and token", TokenFlopCount(6.0), "2 forward, 4 backward");
  return num.named("training FLOP",
                   each * num.given("parameters", parameters, "active") * num.given("tokens", tokens, asked));
}

template <class N>
typename N::template Number<Seconds::dim> training_time(const N& num, double parameters, Tokens tokens, double chips,
                                                        const Sourced<FlopsPerSecond>& peak, double mfu) {
  const auto rate = num.given("chips", chips, asked) * num.given("peak", peak) * num.given("mfu", mfu, asked);
  return num.named("training time", training_flops(num, parameters, tokens) / rate);
}

template <class N>
typename N::template Number<Bytes::dim> bytes_per_parameter(const N& num, const StateFormat& format) {
  const auto bytes = [&](std::string_view name, Bytes each) { return num.given(name, each, "number format"); };
  return num.named("bytes per parameter", bytes("parameter", format.parameters) + bytes("gradient", format.gradients) +
                                              bytes("master copy", format.master) +
                                              2.0 * bytes("moment", format.moment));
}

template <class N>
typename N::template Number<Bytes::dim> checkpoint_bytes(const N& num, double layers, Tokens batch, double kept,
                                                         Bytes element) {
  const auto each = num.given("bytes per element", element, "dtype");
  const auto tokens = num.given("batch", batch, asked) / num.given("token", one_token, "one");
  return num.named("saved activations", each * num.given("layers", layers, asked) * tokens *
                                            num.given("elements saved per token and layer", kept, asked));
}

#define ASSAY_INSTANTIATE(N)                                                                                       \
  template N::Number<TokenFlopCount::dim> layer_flops_per_token(const N&, const MlpShape&);                        \
  template N::Number<Bytes::dim> layer_weight_bytes(const N&, const MlpShape&);                                    \
  template LayerRates<N> layer_rates(const N&, const MlpShape&, const Sourced<FlopsPerSecond>&, const LayerLinks&, \
                                     Counting, const collective::CollectiveLabels*);                               \
  template LayerTimes<N> layer_times(const N&, const LayerRates<N>&, const Split&, Tokens, WeightsAre, Pass);      \
  template TokenCount<N> min_tokens_data_parallel(const N&, const LayerRates<N>&, WeightsAre);                     \
  template Ratio<N> max_tensor_ways(const N&, const LayerRates<N>&);                                               \
  template Ratio<N> best_fsdp_squared(const N&, const LayerRates<N>&, Tokens, double);                             \
  template TokenCount<N> min_tokens_mixed(const N&, const LayerRates<N>&);                                         \
  template ExpertTimes<N> expert_times(const N&, const MlpShape&, const Sourced<FlopsPerSecond>&,                  \
                                       const collective::CollectiveGroup&, double,                                 \
                                       const collective::CollectiveLabels*);                                       \
  template Ratio<N> pipeline_bubble(const N&, double, double, double);                                             \
  template N::Number<Flops::dim> training_flops(const N&, double, Tokens);                                         \
  template N::Number<Seconds::dim> training_time(const N&, double, Tokens, double, const Sourced<FlopsPerSecond>&, \
                                                 double);                                                          \
  template N::Number<Bytes::dim> bytes_per_parameter(const N&, const StateFormat&);                                \
  template N::Number<Bytes::dim> checkpoint_bytes(const N&, double, Tokens, double, Bytes);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

double TrainingMemory::min_chips(Bytes capacity) const { return std::ceil(total() / capacity); }

TrainingMemory training_memory(const TrainingMemoryQuestion& of) {
  TrainingMemory memory;
  memory.state = of.parameters * bytes_per_parameter(Plain{}, of.state);
  if (of.layers > 0.0) memory.saved = checkpoint_bytes(Plain{}, of.layers, of.batch, of.kept, of.element);
  return memory;
}

Tokens attention_crossover(const MlpShape& shape, double attention_parameters, Flops flops_per_key) {
  return Tokens((layer_flops_per_token(Plain{}, shape).value() + 2.0 * attention_parameters) / flops_per_key.value());
}

double power_of_two_ways(double ways) { return std::exp2(std::floor(std::log2(std::max(1.0, ways)))); }

MixedSplit best_mixed_split(const LayerRates<Plain>& rates, Tokens batch, double chips) {
  MixedSplit out;
  out.fsdp = std::sqrt(best_fsdp_squared(Plain{}, rates, batch, chips));
  out.tensor = chips / out.fsdp;
  const double nearest = std::exp2(std::max(0.0, std::round(std::log2(out.fsdp))));
  out.rounded_fsdp = std::min(nearest, power_of_two_ways(chips));
  out.rounded_tensor = power_of_two_ways(chips / out.rounded_fsdp);
  return out;
}

}  // namespace assay::roofline
