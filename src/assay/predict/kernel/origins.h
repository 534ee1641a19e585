// What the numbers that prices take as given consist of: the bytes, FLOP and sizes of a step, from its tensors.
#pragma once
#include <string_view>

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

/// What the price of a fused product takes as given, from the products that it consists of.
class FusedOrigins {
 public:
  explicit FusedOrigins(const Traced& num) : num_(num) {}
  /// Adds a product, in the order in which they are fused.
  void add(const program::Program& program, const program::Step& step, JoinedProducts::Part::Kind kind);
  void add_to(Origins& origins) const;

 private:
  const Traced& num_;
  bool is_first_ = true;
  NumberOf<Traced, double> batch_, m_;
  FusedSizes<Traced> sizes_;
};

}  // namespace assay::kernel
