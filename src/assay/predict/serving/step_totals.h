// What kernels and collectives of a serving step add up to. One formula prices, lists and derives them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "assay/predict/serving/profile.h"

namespace assay::serving {

/// What the kernels and collectives of a step add up to. The estimate is a number of either policy, so that a step is
/// derived by the formula that prices it.
template <class N>
struct StepTotals {
  ServingTime time;  ///< all but the estimate
  NumberOf<N, Seconds> estimate{};
  NumberOf<N, double> kernels{};
  std::vector<PricedStep>* list = nullptr;

  /// Adds `n` times the kernels that one of them starts; `what` gives its name.
  template <class F>
  void launch(const N& num, const F& what, double n, double started) {
    if constexpr (N::traced) {
      if (n * started > 0.0)
        kernels = kernels + num.given(what(), n, "of a step") * num.given("kernels of one", started, "on average");
    } else {
      kernels += n * started;
    }
  }
};

/// Totals of one layer of a block.
template <class N>
struct LayerTotals {
  const ServingProfile::Block& block;
  double layers = 1;  ///< layers of the block
  StepTotals<N>& step;
  NumberOf<N, Seconds> seconds{};

  void add(const N& num, const NumberOf<N, Seconds>& one, double count) {
    seconds = seconds + num.times("equal steps", count, "of a layer", one);
  }
  void finish(const N& num) {
    if constexpr (N::traced) seconds = num.named(block.text(), seconds);
    step.estimate = step.estimate + num.times("layers", layers, "of the model", seconds);
  }
};

/// What a kernel takes on ideal hardware: stored weights that it casts, then arithmetic or the bytes of its operands.
template <class N>
NumberOf<N, Seconds> roofline_of(const N& num, const kernel::KernelRates& rates, const ServedKernel& kernel,
                                 const KernelLoad& load, Flops flops) {
  const auto hbm = num.given("hbm", rates.hbm, &rates.sources, "hbm");
  NumberOf<N, Seconds> time{};
  if (const Bytes narrowed = kernel.narrowed + kernel.narrowed_experts * load.touched; narrowed > Bytes())
    time = num.named("casting", num.given("stored bytes", narrowed, "of weights, beyond what the product reads") / hbm);
  if (!(load.arithmetic > Seconds())) return time;
  const auto each = [&] {
    if constexpr (N::traced)
      return num.given("time of a FLOP", kernel.time_per_flop, &rates.sources,
                       "peak." + std::string(assay::name(kernel.kernel.format)));
    else
      return kernel.time_per_flop;
  }();
  const auto arithmetic = num.given("FLOP", flops, "of the kernel") * each;
  const auto traffic = num.given("bytes", load.bytes, "operands and result, once each") / hbm;
  return time + max(num.named("compute", arithmetic), num.named("memory", traffic));
}

/// A kernel at so many sequences, where such a share of the experts has tokens.
inline KernelLoad load_of(const ServedKernel& kernel, double sequences, double touched) {
  return {sequences, touched, kernel.flops(sequences) * kernel.time_per_flop,
          kernel.bytes(sequences) + kernel.expert_bytes * touched};
}

/// What `n` such kernels take at ideal rates. Ideal kernels fuse what is element-wise; weights are read as they are
/// stored, whatever they are cast to.
inline void add_ideal(const ServingSetup& setup, const ServedKernel& kernel, const KernelLoad& load, double n,
                      ServingTime& time) {
  const Flops flops = kernel.flops(load.sequences);
  time.flops += n * flops;
  if (kernel.attends) {
    time.attention_flops += n * flops;
    time.attention_bytes += n * load.bytes;
  }
  time.memory += n * ((kernel.narrowed + kernel.narrowed_experts * load.touched) / setup.rates.hbm);
  if (!(load.arithmetic > Seconds())) return;
  time.compute += n * load.arithmetic;
  time.memory += n * (load.bytes / setup.rates.hbm);
}

/// `fullest`: the share of experts with tokens on the device with most of them, which ends last. `estimate` gives the
/// time of the kernel at a load.
template <class N, class F>
void add_kernel(const N& num, const ServingSetup& setup, const ServedKernel& kernel, double sequences, double touched,
                double fullest, const F& estimate, LayerTotals<N>& layer) {
  const kernel::KernelRates& rates = setup.rates;
  ServingTime& time = layer.step.time;
  const Flops flops = kernel.flops(sequences);
  const double n = layer.layers * kernel.count;
  const KernelLoad load = load_of(kernel, sequences, touched), last = load_of(kernel, sequences, fullest);
  add_ideal(setup, kernel, load, n, time);
  time.padding += n * kernel.padding(sequences, touched, setup.effects.tile_rows);
  time.rooflines += n * roofline_of(Plain{}, rates, kernel, load, flops);
  std::optional<Origins> origins;
  if constexpr (N::traced) add_origins(num, rates, kernel, last, origins.emplace(num));
  auto seconds = estimate(last);
  // Software may make kernels faster than those measured alone, but never faster than the chip.
  if (plain(seconds) < roofline_of(Plain{}, rates, kernel, last, flops))
    seconds = num.named("roofline", roofline_of(num, rates, kernel, last, flops));
  if constexpr (N::traced)
    if (!kernel.is_view()) seconds = num.named(kernel.text(), seconds);
  if (!N::traced || seconds.value() > 0.0) layer.add(num, seconds, kernel.count);
  if (layer.step.list && !kernel.is_view())
    layer.step.list->push_back({layer.block.text(), layer.layers, kernel.count, kernel.text(), 0, flops, load.bytes,
                                load.arithmetic, load.bytes / rates.hbm, Seconds(), plain(seconds), kernel.op});
}

}  // namespace assay::serving
