// Recomputation: which forward results of a layer are recomputed in the backward pass instead of being kept.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "assay/base/result.h"
#include "assay/program/form/program.h"

namespace assay::lower {

using program::ForwardPart;
inline constexpr std::size_t forward_parts = 14;  ///< named parts: all but the last

/// Parts that are recomputed. Gathered tensors are always gathered again, and a layer's input is always kept.
struct Recompute {
  std::uint16_t parts = 0;

  constexpr Recompute with(ForwardPart part) const { return {static_cast<std::uint16_t>(parts | bit(part))}; }
  constexpr Recompute without(Recompute other) const { return {static_cast<std::uint16_t>(parts & ~other.parts)}; }
  constexpr bool covers(ForwardPart part) const { return (parts & bit(part)) != 0; }
  constexpr bool meets(Recompute other) const { return (parts & other.parts) != 0; }
  constexpr bool includes(Recompute other) const { return (other.parts & ~parts) == 0; }
  friend constexpr bool operator==(Recompute, Recompute) = default;

  static constexpr Recompute of(std::initializer_list<ForwardPart> list) {
    Recompute set;
    for (const ForwardPart part : list) set = set.with(part);
    return set;
  }
  static constexpr Recompute none() { return {}; }
  /// The inside of attention: scores and probabilities, if they are stored at all.
  static constexpr Recompute selective() { return of({ForwardPart::scores}); }
  static constexpr Recompute full() { return {(1u << forward_parts) - 1u}; }
  /// All parts, for software that recomputes whole layers, including results that no gradient reads.
  static constexpr Recompute whole() { return full().with(ForwardPart::unread); }
  /// Parts that cost memory but little time: norms, activation functions and gates.
  static constexpr Recompute element_wise() { return of({ForwardPart::norms, ForwardPart::activations}); }
  /// All products are kept, as sums where devices add them up; attention and element-wise steps are recomputed.
  static constexpr Recompute all_but_products() {
    using enum ForwardPart;
    return full().without(of({attention_products, feed_forward_products, second_products, reductions}));
  }
  /// Products around attention are kept, feed-forward products are recomputed.
  static constexpr Recompute all_but_projections() {
    using enum ForwardPart;
    return full().without(of({attention_products, second_products, reductions}));
  }
  /// Products around attention and the result of attention are kept, feed-forward products are recomputed.
  static constexpr Recompute feed_forward() {
    return all_but_projections().without(of({ForwardPart::attention, ForwardPart::scores}));
  }
  /// Selective checkpointing by operator: attention, reduced or exchanged results and every other product are kept, the
  /// rest is recomputed.
  static constexpr Recompute operators() {
    using enum ForwardPart;
    return full().without(of({attention_products, feed_forward_products, attention, scores, reductions, exchanges}));
  }

 private:
  static constexpr std::uint16_t bit(ForwardPart part) {
    return static_cast<std::uint16_t>(1u << static_cast<unsigned>(part));
  }
};

/// Named sets; a policy never precedes one that recomputes a subset of its parts.
struct RecomputePolicy {
  std::string_view name;
  Recompute parts;
};
inline constexpr RecomputePolicy recompute_policies[] = {{"none", Recompute::none()},
                                                         {"element-wise", Recompute::element_wise()},
                                                         {"selective", Recompute::selective()},
                                                         {"feed-forward", Recompute::feed_forward()},
                                                         {"operators", Recompute::operators()},
                                                         {"products", Recompute::all_but_products()},
                                                         {"projections", Recompute::all_but_projections()},
                                                         {"full", Recompute::full()}};

std::string_view name(ForwardPart part);
/// The name of a policy, or a list of parts: "norms,attention".
std::string name(Recompute recompute);
/// Parses the text that name() writes.
Result<Recompute> parse_recompute(std::string_view text, std::string_view where);

/// Parts that the result `id` of a forward step belongs to: a policy that covers one of them recomputes it. Every
/// second product is one with an odd number of them before it in its layer.
Recompute parts_of(const program::Program& program, const program::Step& step, int id, std::int64_t products_before);
/// Whether the result `id` of a step is gathered again instead of kept, whatever the policy.
bool is_gathered(const program::Program& program, const program::Step& step, int id);

}  // namespace assay::lower
