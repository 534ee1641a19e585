#include "assay/estimate/origins.h"

#include "assay/lower/layers/layers.h"

namespace assay::estimate {
namespace {

Flops flops_of_tensors(const ProductSizes<Traced>& sizes) {
  return Flops(2.0 * sizes.batch.value() * sizes.m.value() * sizes.n.value() * sizes.k.value());
}

/// Why a step moves more than its tensors, or less.
std::string_view beyond_tensors(program::Op op) {
  using enum program::Op;
  switch (op) {
    case scan:
    case scan_grad:
    case shift:
      return "states of sequences that a server keeps";
    case cast:
      return "tokens that a cache already holds";
    case attention:
    case attention_grad:
      return "keys that are picked, for each query";
    case pick:
      return "scores, written and read";
    case place:
      return "of the table, the rows of the positions";
    case product:
      return "slots without tokens, and experts that nobody picked";
    default:
      return "parts that the step leaves out or reads again";
  }
}

/// Bytes of a product of experts: slots that hold tokens, and the weights of the experts that any token picked.
NumberOf<Traced, Bytes> expert_bytes(const Traced& num, const program::Program& program, const program::Step& step) {
  const ExpertShares shares = expert_shares(program, step, flops_of_tensors(product_sizes(num, program, step)));
  NumberOf<Traced, Bytes> tokens;
  for (std::size_t i = 0; i < step.in.size(); ++i)
    if (step.in[i] >= 0 && i != 1) tokens = tokens + program::named_bytes(num, program, step.in[i]);
  tokens = tokens + program::named_bytes(num, program, step.out[0]);
  return num.given("filled slots", shares.filled, "tokens of experts over the slots for them") * tokens +
         num.given("experts with tokens", shares.touched, "share of those on the device") *
             program::named_bytes(num, program, step.in[1]);
}

}  // namespace

NumberOf<Traced, Flops> derive_flops(const Traced& num, const program::Program& program, const program::Step& step) {
  NumberOf<Traced, Flops> derived;
  if (step.op == program::Op::product) {
    const ProductSizes<Traced> sizes = product_sizes(num, program, step);
    derived =
        num.given("FLOP each", Flops(2.0), "a product and an addition") * sizes.batch * sizes.m * sizes.n * sizes.k;
    if (plain(derived) != step.flops)
      derived = derived * num.given("filled slots", expert_shares(program, step, plain(derived)).filled,
                                    "tokens of experts over the slots for them");
  } else if (program::is_attention(step.op) && step.detail >= 0) {
    derived = lower::attention_flops(num, program, step);
  }
  return derived_as(num, derived, step.flops, "flops", "arithmetic of the step");
}

NumberOf<Traced, Bytes> derive_bytes(const Traced& num, const program::Program& program, const program::Step& step) {
  NumberOf<Traced, Bytes> moved = program::traffic(num, program, step);
  if (plain(moved) == step.bytes) return moved;
  if (step.op == program::Op::product)
    if (const auto of_experts = expert_bytes(num, program, step); plain(of_experts) == step.bytes) return of_experts;
  const Bytes more = step.bytes - plain(moved);
  moved = more > Bytes() ? moved + num.given("besides", more, beyond_tensors(step.op))
                         : moved - num.given("not moved", -1.0 * more, beyond_tensors(step.op));
  return derived_as(num, moved, step.bytes, "bytes", "read and written by the step");
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

void JoinedOrigins::take(const Traced& num, const program::Program& program, const program::Step& step,
                         const JoinedProducts& joined) {
  const ProductSizes<Traced> sizes = product_sizes(num, program, step);
  const FusedSizes<Traced> part{sizes.n, sizes.k, derive_bytes(num, program, step),
                                gradient_buffer(num, program, step)};
  if (joined.last() == joints_.size()) {
    joints_.push_back({sizes.batch, sizes.m, part});
    return;
  }
  const JoinedProducts::Part::Kind kind = joined.joints()[joined.last()].kind;
  joints_[joined.last()].sizes.fuse(kind, part, saved_by_fusing(num, program, step, kind));
}

void JoinedOrigins::add(std::size_t joint, Origins& origins) const {
  const auto& [batch, m, sizes] = joints_[joint];
  origins.add("batch", batch);
  origins.add("m", m);
  origins.add("n", sizes.n);
  origins.add("k", sizes.k);
  origins.add("bytes", sizes.bytes);
  origins.add("buffer", sizes.added);
}

}  // namespace assay::estimate
