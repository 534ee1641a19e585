#include "assay/predict/kernel/origins.h"

#include <utility>

#include "assay/base/index.h"
#include "assay/program/lower/layers/layers.h"

namespace assay::kernel {
namespace {

Flops flops_of_tensors(const ProductSizes<Traced>& sizes) {
  return Flops(2.0 * sizes.batch.value() * sizes.m.value() * sizes.n.value() * sizes.k.value());
}

}  // namespace

NumberOf<Traced, Flops> derive_flops(const Traced& num, const program::Program& program, const program::Step& step) {
  NumberOf<Traced, Flops> derived;
  if (step.op == program::Op::product) {
    const ProductSizes<Traced> sizes = product_sizes(num, program, step);
    derived = multiply_and_add(num) * sizes.batch * sizes.m * sizes.n * sizes.k;
    if (step.detail >= 0)
      derived = derived * num.named("filled slots", program.expert_loads[at(step.detail)].filled(num));
  } else {
    derived = lower::arithmetic(num, program, step);
  }
  return derived_as(num, derived, step.flops, "flops", "arithmetic of the step");
}

NumberOf<Traced, Bytes> derive_bytes(const Traced& num, const program::Program& program, const program::Step& step) {
  if (step.bytes == Bytes()) return num.given("bytes", Bytes(), "another view of a tensor");
  return derived_as(num, program::traffic(num, program, step), step.bytes, "bytes", "read and written by the step");
}

void add_origins(const Traced& num, const program::Program& program, const program::Step& step, Origins& origins) {
  const auto bytes = derive_bytes(num, program, step);
  origins.add("bytes", bytes);
  if (step.flops > Flops()) origins.add("flops", derive_flops(num, program, step));
  if (const int scores = program::plain_scores(program, step); scores >= 0)
    origins.add("probabilities", program::named_bytes(num, program, scores));
  if (step.op == program::Op::product) {
    ProductSizes<Traced> sizes = product_sizes(num, program, step);
    if (const double touched = expert_shares(program, step, flops_of_tensors(sizes)).touched; touched != 1.0) {
      const auto share = num.given("experts with tokens", touched, "share of those on the device");
      sizes.batch = sizes.batch * share;
      sizes.m = sizes.m / share;
    }
    origins.add("batch", sizes.batch);
    origins.add("m", sizes.m);
    origins.add("n", sizes.n);
    origins.add("k", sizes.k);
    origins.add("buffer", gradient_buffer(num, program, step));
  } else if (program::is_attention(step.op) && step.detail >= 0) {
    const AttentionSizes<Traced> sizes = attention_sizes(num, program, step);
    origins.add("heads", sizes.heads);
    origins.add("queries", sizes.queries);
    origins.add("items", sizes.items);
    origins.add("shared bytes", sizes.shared);
    if (step.op == program::Op::attention_grad)
      origins.add("bytes", bytes / num.given("passes", 2.5, "recomputed scores, and four gradients"));
  }
}

void FusedOrigins::add(const program::Program& program, const program::Step& step, JoinedProducts::Part::Kind kind) {
  const ProductSizes<Traced> sizes = product_sizes(num_, program, step);
  const FusedSizes<Traced> part{sizes.n, sizes.k, derive_bytes(num_, program, step),
                                gradient_buffer(num_, program, step)};
  if (!std::exchange(is_first_, false)) return sizes_.fuse(kind, part, saved_by_fusing(num_, program, step, kind));
  batch_ = sizes.batch;
  m_ = sizes.m;
  sizes_ = part;
}

void FusedOrigins::add_to(Origins& origins) const {
  origins.add("batch", batch_);
  origins.add("m", m_);
  origins.add("n", sizes_.n);
  origins.add("k", sizes_.k);
  origins.add("bytes", sizes_.bytes);
  origins.add("buffer", sizes_.added);
}

}  // namespace assay::kernel
