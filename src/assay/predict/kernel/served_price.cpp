// The price of a serving step.

#include "assay/predict/kernel/grouped_tiles.h"
#include "assay/predict/kernel/price.h"
#include "assay/predict/kernel/served_product.h"

namespace assay::kernel {
namespace {

using numbers::ServingEffects;

template <class N>
NumberOf<N, Seconds> no_time(const N& num, std::string_view why) {
  return num.given("none", Seconds(0), why);
}

/// The numbers of ServingEffects, each under its own name and source.
template <class N>
class ServingFactors {
 public:
  ServingFactors(const N& num, const ServingKernels& kernels) : num_(num), kernels_(kernels) {}

  template <class Q>
  auto operator()(std::string_view name, Given<Q> ServingEffects::*effect) const {
    return num_.given(name, kernels_.effects.*effect);
  }
  /// The start of every kernel: on the device, where that was measured, and what the software adds.
  NumberOf<N, Seconds> launch() const {
    const NumberOf<N, Seconds> start = (*this)("start", &ServingEffects::start);
    const Seconds device = kernels_.rates.regime.launch;
    if (!(device > Seconds(0))) return num_.named("start of a kernel", start);
    return num_.named("start of a kernel",
                      num_.given("launch", device, &kernels_.rates.sources, "regime.launch") + start);
  }
  /// `started` kernels that move `bytes` as element-wise kernels do.
  NumberOf<N, Seconds> stream(const Kernel& kernel, NumberOf<N, double> started, NumberOf<N, Bytes> bytes) const {
    const auto moved = streamed(num_, kernels_.rates, kernel, bytes);
    return kernels_.rates.pointwise ? started * launch() + moved : moved;
  }

 private:
  const N& num_;
  const ServingKernels& kernels_;
};

/// A step that streams tensors through memory: as few kernels as the software has for it, or composed as in training.
template <class N>
NumberOf<N, Seconds> served_stream(const N& num, const Kernel& kernel, const ServedDetails& details,
                                   const ServingKernels& kernels) {
  const auto& [rates, effects] = kernels;
  const ServingFactors<N> factor(num, kernels);
  if (details.is_view && (effects.joined || effects.code)) return no_time(num, "another view of a tensor");
  const auto bytes = num.given("bytes", kernel.bytes, "read and written by the step");
  auto traffic = factor("traffic of element-wise steps", &ServingEffects::pointwise);
  if (details.moves_tokens && !details.gathers)
    traffic = traffic * factor("traffic of moving tokens", &ServingEffects::expert_traffic);
  if (effects.code) {
    const std::string_view composition = effects.code->kernels.front().source;
    const auto moved = num.given("kernels it is composed of", details.composition.traffic, composition) *
                       (traffic * num.named("kernel alone", streamed(num, rates, kernel, bytes)));
    const auto start = num.given("start of a kernel", effects.code->start);
    const auto time = max(num.given("kernels", details.composition.kernels, composition) * start, moved);
    if (!(details.composition.apart > 0.0)) return time;
    return time + num.given("kernels of routing", details.composition.apart, composition) * start;
  }
  const auto started = factor("kernels of a step", &ServingEffects::kernels);
  const auto time = law_of(rates, kernel) == Law::stream
                        ? factor.stream(kernel, started, traffic * bytes)
                        : started * factor.launch() + streamed(num, rates, kernel, traffic * bytes);
  if (details.routes)
    return time + factor("routing", details.gathers ? &ServingEffects::gathering_routing : &ServingEffects::routing);
  return details.quantises ? time + factor("quantising", &ServingEffects::quantise) : time;
}

/// Of a product alone: starts are not stretched as it is among other kernels.
hardware::Regime without_launch(hardware::Regime regime) {
  regime.launch = Seconds(0);
  return regime;
}

template <class N>
NumberOf<N, Seconds> served_product(const N& num, const Kernel& kernel, const ServedDetails& details,
                                    const ServingKernels& kernels, TileTable* tiles) {
  const ServingFactors<N> factor(num, kernels);
  const ProductRates rates = product_rates(kernels.rates, kernel);
  const auto load = num.given("load", kernel.load, "tokens of the fullest expert over its part");
  if (details.blocks) {
    const numbers::ExpertBlocks* best = nullptr;
    Seconds least;
    for (const numbers::ExpertBlocks& blocks : *details.blocks) {
      const Seconds time = blocks_time(Plain{}, rates, kernels.rates.hbm, kernel.product, blocks);
      if (best && !(time < least)) continue;
      best = &blocks;
      least = time;
    }
    if constexpr (N::traced)
      return load * blocks_time(num, rates, kernels.rates.hbm, kernel.product, *best);
    else
      return load * least;
  }
  if constexpr (!N::traced)
    if (tiles)
      return ServedProduct(kernels, kernel, tiles)(kernel.product.batch, kernel.product.m, kernel.load,
                                                   kernel.product.bytes / rates.chip.hbm);
  const auto starts = product_starts<N>(num, rates, kernel.product, factor.launch());
  const auto alone = matmul_time(num, rates, kernel.product, without_launch(kernels.rates.regime)).total;
  return product_in_step<N>(starts, factor("products in a step", &ServingEffects::product), load,
                            num.named("kernel alone", alone));
}

/// Attention of a few queries over a cache.
template <class N>
NumberOf<N, Seconds> served_decode(const N& num, Law law, const Kernel& kernel, const ServedDetails& details,
                                   const ServingKernels& kernels) {
  const auto& [rates, effects] = kernels;
  const ServingFactors<N> factor(num, kernels);
  auto read = factor("decoding in a step", &ServingEffects::decode) *
              decode_time(num, decode_rates(rates), kernel.items, kernel.cache_head, kernel.bytes);
  if (law == Law::split) {
    const AttentionRates by = attention_rates(rates, kernel);
    const auto whole = attention_time(num, by, kernel.attention, false);
    const auto split = split_attention_time(num, by, kernel.attention, kernel.items);
    read = max(read, min(whole, split));
  }
  auto start = factor.launch();
  if (const double copies = effects.copies * details.shared_by; copies * kernel.bytes.value() > 0.0) {
    const auto copied = factor("copies of keys and values", &ServingEffects::copies) *
                        num.given("query heads of a cache", details.shared_by, "heads that share keys") *
                        num.given("bytes", kernel.bytes, "keys and values");
    start = start + factor.stream(kernel, num.given("kernels", 2.0, "of copying keys and values"), copied);
  }
  const auto row = num.given("keys per query", details.met, "on average") *
                   factor("token of an unsplit cache", &ServingEffects::token);
  if (!(effects.vector > 0.0)) return start + row + read;
  const auto vector = factor("share of the vector units", &ServingEffects::vector);
  const auto scores = num.given("flops", kernel.flops, "arithmetic of the step") /
                      (vector * num.given("vector peak", rates.cores.vector, &rates.sources, "vector"));
  return start + row + max(read, scores);
}

/// A kernel of a chip whose kernels nobody measured by themselves: shares of the ideal rates, and what whole steps and
/// the software add to them.
template <class N>
NumberOf<N, Seconds> served_by_shares(const N& num, const Kernel& kernel, const ServedDetails& details,
                                      const ServingKernels& kernels) {
  const auto& [rates, effects] = kernels;
  const ServingFactors<N> factor(num, kernels);
  const auto bytes = num.given("bytes", kernel.bytes, "read and written by the step");
  if (is_stream(kernel.kind)) return served_stream(num, kernel, details, kernels);
  const auto arithmetic = num.given("compute", details.arithmetic, "arithmetic at the peak") /
                          num.given("matrix efficiency", rates.matrix_share, &rates.sources, "efficiency.matrix");
  if (kernel.kind == KernelKind::other)
    return max(factor.stream(kernel, num.given("kernels", 1.0, "of the step"), bytes), arithmetic);
  if (reads_cache(kernel.kind)) {
    // Kernels of vector units read shared keys for every query head.
    const double reads = effects.vector > 0.0 ? details.shared_by : 1.0;
    const auto read =
        streamed(num, rates, kernel, num.given("reads of a key", reads, "query heads that do not share them") * bytes);
    const auto items = num.given("query heads", details.heads, "of all sequences") /
                       num.given("cores", rates.cores.cores, &rates.sources, "cores") *
                       factor("core time of a head", &ServingEffects::item);
    return factor.launch() + items + factor("decoding in a step", &ServingEffects::decode) * max(read, arithmetic);
  }
  const auto alone = num.named("kernel alone", max(streamed(num, rates, kernel, bytes), arithmetic));
  if (is_attention(kernel.kind)) return factor.launch() + alone;
  return factor.launch() + factor("products in a step", &ServingEffects::product) * alone;
}

}  // namespace

ServedProduct::ServedProduct(const ServingKernels& kernels, const Kernel& kernel, TileTable* tiles)
    : rates_(product_rates(kernels.rates, kernel)),
      regime_(without_launch(kernels.rates.regime)),
      shape_(kernel.product),
      slowed_(Plain{}, rates_, shape_, regime_),
      starts_(product_starts<Plain>(Plain{}, rates_, shape_, ServingFactors<Plain>(Plain{}, kernels).launch())),
      starts_alone_(started(Plain{}, rates_, shape_, regime_)),
      slower_(kernels.effects.product.value),
      tiles_(tiles) {
  if (tiles) return;
  const GroupedTile<Plain> large(Plain{}, rates_, shape_, false), small(Plain{}, rates_, shape_, true);
  grouped_.emplace(std::array{large, small});
}

template <class N>
NumberOf<N, Seconds> price(const N& num, Law law, const Kernel& kernel, const ServedDetails& details,
                           const ServingKernels& kernels, TileTable* tiles) {
  const KernelRates& rates = kernels.rates;
  const ServingFactors<N> factor(num, kernels);
  const auto bytes = [&] { return num.given("bytes", kernel.bytes, "read and written by the step"); };
  const auto one = [&] { return num.given("kernels", 1.0, "of the step"); };
  const auto arithmetic = [&] { return num.given("compute", details.arithmetic, "arithmetic at the peak"); };
  switch (law) {
    case Law::stream:
      return served_stream(num, kernel, details, kernels);
    case Law::product:
      return served_product(num, kernel, details, kernels, tiles);
    case Law::split:
    case Law::decode:
      return served_decode(num, law, kernel, details, kernels);
    case Law::attention:
      return factor.launch() + attention_time(num, attention_rates(rates, kernel), kernel.attention, false);
    case Law::scores: {
      const auto droop = num.given("droop", rates.matmul->droop, &rates.sources, "matmul.droop");
      const auto share =
          num.given("matrix share", matmul_share(*rates.matmul, kernel.format), &rates.sources, "matmul.share");
      return factor.stream(kernel, one(), bytes()) + arithmetic() * ((1.0 + droop) / share);
    }
    case Law::shares:
      break;
  }
  return served_by_shares(num, kernel, details, kernels);
}

#define ASSAY_INSTANTIATE(N)                                                                                     \
  template NumberOf<N, Seconds> price(const N&, Law, const Kernel&, const ServedDetails&, const ServingKernels&, \
                                      TileTable*);
ASSAY_INSTANTIATE(Plain)
ASSAY_INSTANTIATE(Traced)
#undef ASSAY_INSTANTIATE

}  // namespace assay::kernel
