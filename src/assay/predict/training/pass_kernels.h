// The kernels of a pass, and the sums over them that its time follows from. A kernel is a step of the program, or
// several steps that software fuses into one product. Searches keep the sums; lists, pictures and explanations also
// keep which kernels and collectives they consist of.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/predict/kernel/price.h"

namespace assay::training {

/// What the clock of a pass has to know of a kernel besides its price.
struct KernelTraits {
  bool is_product = false, is_attention = false;
  bool makes_weight_gradient = false;  ///< schedules may defer it
  bool is_recomputed = false;          ///< a kernel of the forward pass that the backward pass runs once more
};

/// Sums over the kernels of one pass of one microbatch through one layer, the embedding or the head.
template <class N>
struct KernelSums {
  using Time = NumberOf<N, Seconds>;
  Time compute{}, memory{};  ///< at ideal rates
  Time estimate{};           ///< of all kernels, at the clock of matrix units that never idle, and waiting for the host
  Time recomputed{};         ///< the recomputed part of `estimate`
  Time weight_gradients{}, products{}, attention{};  ///< parts of `estimate`
  NumberOf<N, Flops> product_flops{};                ///< of `products`
  Time busy{};                                       ///< the part of `estimate` at full power of the matrix units
  Time slowed{};            ///< the part of `estimate` that the lower clock under sustained power adds
  Time streams{};           ///< the part of `estimate` without arithmetic on matrix units; searches alone ask for it
  Time gradient_compute{};  ///< the part of `compute` that makes gradients of weights; searches alone ask for it
  Time launching{};         ///< time of the host to launch the kernels, a lower bound on the estimate
  Time idle{};              ///< the part of `estimate` in which the chip waits for the host
  // The block that is being added up, until add_launching() ends it.
  Time own{};  ///< kernels that are not recomputed
  double launches = 0, recomputed_launches = 0;

  void add_ideal(const kernel::StepPrice<N>& price, bool makes_weight_gradient = false) {
    if constexpr (!N::traced)
      if (makes_weight_gradient) gradient_compute += price.compute;
    if (price.compute.value() > 0.0) compute = compute + price.compute;
    if (price.memory.value() > 0.0) memory = memory + price.memory;
  }
  void add(const kernel::StepPrice<N>& price, const KernelTraits& kind) {
    Time& sum = kind.is_recomputed ? recomputed : own;
    sum = sum + price.duration;
    (kind.is_recomputed ? recomputed_launches : launches) += price.launches;
    if constexpr (!N::traced)
      if (price.resource == kernel::Resource::memory) streams += price.duration;
    if (kind.makes_weight_gradient) weight_gradients = weight_gradients + price.duration;
    if (kind.is_product) products = products + price.duration;
    if (kind.is_attention) attention = attention + price.duration;
    if (price.full_power) busy = busy + price.duration;
    if (price.slowed.value() > 0.0) slowed = slowed + price.slowed;
  }
  /// Ends a block: the host starts every kernel, and short ones wait for it.
  void add_launching(const N& num, const Time& launch) {
    Time block = own + recomputed;
    if (launch.value() > 0.0) {
      const auto all = [&](double kernels) {
        return num.given("launches", kernels, "of kernels in the pass") * launch;
      };
      const Time bound = num.named("launching", all(launches + recomputed_launches));
      if (bound.value() > block.value()) idle = idle + num.named("waiting for the host", bound - block);
      block = max(block, bound);
      launching = launching + bound;
      recomputed = max(recomputed, all(recomputed_launches));
    }
    estimate = estimate + block;
    own = Time();
    launches = recomputed_launches = 0;
  }
};

/// What the sums of a pass consist of. Steps are numbered as in the program that was priced; recomputed ones by the
/// step of the forward pass that they repeat.
struct PassRecord {
  struct Kernel {
    std::vector<std::int32_t> steps;
    std::optional<kernel::JoinedProducts::Part> fused;  ///< the product that the steps are fused into
    KernelTraits kind;
    kernel::StepPrice<Plain> price;
  };
  struct Collective {
    std::int32_t step = 0;
    bool is_recomputed = false;
    std::size_t entry = 0;  ///< of the traffic of the pass
  };
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  std::vector<std::size_t> blocks;  ///< of the program; several where an encoder has ends of its own
};

}  // namespace assay::training
