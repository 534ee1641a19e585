// What the numbers that prices take as given consist of: the bytes, FLOP and sizes of a step, from its tensors.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "assay/predict/kernel/fused_projections.h"

namespace assay::kernel {

/// The arithmetic of a step on one device, and the bytes that it reads and writes.
NumberOf<Traced, Flops> derive_flops(const Traced& num, const program::Program& program, const program::Step& step);
NumberOf<Traced, Bytes> derive_bytes(const Traced& num, const program::Program& program, const program::Step& step);

/// A derived number if it has the value that was priced to the last bit, else that value as given.
template <Dim D>
TracedQuantity<D> derived_as(const Traced& num, TracedQuantity<D> derived,
                             decltype(detail::make_quantity<D>(0.0)) priced, std::string_view name,
                             std::string_view source) {
  if (!derived.is_nothing() && plain(derived) == priced) return derived;
  return num.given(name, priced, source);
}

/// Adds what price() takes as given of a step.
void add_origins(const Traced& num, const program::Program& program, const program::Step& step, Origins& origins);

/// The same of fused products.
class JoinedOrigins {
 public:
  /// Adds a product that `joined` took last.
  void take(const Traced& num, const program::Program& program, const program::Step& step,
            const JoinedProducts& joined);
  void add(std::size_t joint, Origins& origins) const;

 private:
  struct Joint {
    NumberOf<Traced, double> batch, m;
    FusedSizes<Traced> sizes;
  };
  std::vector<Joint> joints_;
};

}  // namespace assay::kernel
