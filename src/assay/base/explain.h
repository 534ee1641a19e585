// Numbers that can say where they come from. A formula is written once, over a number policy:
// Plain is a bare Quantity (for search; costs nothing), Traced also records how it was computed (for people).
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/units.h"

namespace assay {

/// A number with its provenance: what a data file holds.
template <class T>
struct Sourced {
  struct Other {
    T value{};
    std::string source;
  };
  T value{};
  std::string source;         ///< "chips/h100-sxm.toml:16 (datasheet)"
  std::string note;           ///< what a reader should know about it
  std::vector<Other> also{};  ///< what other sources say; not used
};

/// A number of a formula, and where it comes from: both stay together from the file to the explanation. Converts to the
/// number, so that plain arithmetic does not mention the source.
template <class T>
struct Given {
  T value{};
  std::string source;

  Given(T number = T{}, std::string from = {}) : value(std::move(number)), source(std::move(from)) {}
  operator const T&() const { return value; }
};
/// A product comes from what both come from.
template <std::same_as<double> Factor, class T>
Given<T> operator*(const Given<Factor>& a, const Given<T>& b) {
  return {a.value * b.value, a.source + " * " + b.source};
}

/// Where numbers come from, by key: kept separate from the numbers, so that only a traced evaluation reads it.
class SourceTable {
 public:
  void add(std::string key, std::string source) { sources_.emplace_back(std::move(key), std::move(source)); }
  /// The source of a key; else of the longest table above it ("matmul" for "matmul.droop"); empty if none is known.
  std::string_view of(std::string_view key) const;
  const std::vector<std::pair<std::string, std::string>>& all() const { return sources_; }

 private:
  std::vector<std::pair<std::string, std::string>> sources_;
};

/// One recorded value: an input that was given, or an operation on other values.
struct Node {
  enum class Op : char { given, constant, alias, mul, div, add, sub, max, min, ceil, sqrt };
  Op op = Op::given;
  AnyQuantity quantity;
  int lhs = -1, rhs = -1;  ///< operands; a unary operation has no rhs
  std::string name;        ///< empty for an intermediate result
  std::string source;      ///< where a given number comes from
};

/// Owns the nodes of one evaluation. Children always come before their parents.
class Ledger {
 public:
  int push(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  const Node& at(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  void name(int id, std::string_view text) { nodes_[static_cast<std::size_t>(id)].name = text; }
  int size() const { return static_cast<int>(nodes_.size()); }
  /// The node that derives a number of that name and exactly that value, if an Origins knows it; else -1.
  int origin(std::string_view name, AnyQuantity quantity) const;

 private:
  friend class Origins;
  std::vector<Node> nodes_;
  std::vector<int> origins_;  ///< nodes that derive named numbers, those of the innermost Origins last
};

/// A quantity together with its node in a ledger. Dimensionless numbers are traced like all others. One without a
/// ledger is nothing: a zero that leaves no trace, as a sum has before its first term.
template <Dim D>
struct TracedQuantity {
  double base_value = 0.0;
  Ledger* ledger = nullptr;
  int id = -1;
  constexpr double value() const { return base_value; }
  constexpr bool is_nothing() const { return ledger == nullptr; }
};

namespace detail {
template <Dim R, Dim A, Dim B>
TracedQuantity<R> combine(Node::Op op, double value, TracedQuantity<A> a, TracedQuantity<B> b) {
  return {value, a.ledger, a.ledger->push({op, {value, R}, a.id, b.id, {}, {}})};
}
template <Dim D, Dim L>
TracedQuantity<D> constant(TracedQuantity<L> like, double value) {
  if (like.is_nothing()) return {};
  return {value, like.ledger, like.ledger->push({Node::Op::constant, {value, D}, -1, -1, {}, {}})};
}
template <Dim R, Dim D>
TracedQuantity<R> unary(Node::Op op, double value, TracedQuantity<D> a) {
  if (a.is_nothing()) return {};
  return {value, a.ledger, a.ledger->push({op, {value, R}, a.id, -1, {}, {}})};
}
}  // namespace detail

template <Dim A, Dim B>
auto operator*(TracedQuantity<A> a, TracedQuantity<B> b) {
  if (a.is_nothing() || b.is_nothing()) return TracedQuantity<A + B>();
  return detail::combine<A + B>(Node::Op::mul, a.value() * b.value(), a, b);
}
template <Dim A, Dim B>
auto operator/(TracedQuantity<A> a, TracedQuantity<B> b) {
  if (a.is_nothing()) return TracedQuantity<A + -B>();
  return detail::combine<A + -B>(Node::Op::div, a.value() / b.value(), a, b);
}
template <Dim D>
auto operator+(TracedQuantity<D> a, TracedQuantity<D> b) {
  if (a.is_nothing() || b.is_nothing()) return a.is_nothing() ? b : a;
  return detail::combine<D>(Node::Op::add, a.value() + b.value(), a, b);
}
template <Dim D>
auto operator-(TracedQuantity<D> a, TracedQuantity<D> b) {
  if (b.is_nothing()) return a;
  return detail::combine<D>(Node::Op::sub, a.value() - b.value(), a.is_nothing() ? detail::constant<D>(b, 0.0) : a, b);
}
template <Dim D>
auto operator*(double s, TracedQuantity<D> a) {
  return detail::constant<Dim{}>(a, s) * a;
}
template <Dim D>
auto operator*(TracedQuantity<D> a, double s) {
  return a * detail::constant<Dim{}>(a, s);
}
template <Dim D>
auto operator/(TracedQuantity<D> a, double s) {
  return a / detail::constant<Dim{}>(a, s);
}
inline auto operator-(TracedQuantity<Dim{}> a, double s) { return a - detail::constant<Dim{}>(a, s); }
inline auto operator+(TracedQuantity<Dim{}> a, double s) { return a + detail::constant<Dim{}>(a, s); }
inline auto operator+(double s, TracedQuantity<Dim{}> a) { return detail::constant<Dim{}>(a, s) + a; }

template <Dim D>
auto max(TracedQuantity<D> a, TracedQuantity<D> b) {
  if (a.is_nothing() || b.is_nothing()) return a.value() < b.value() ? b : a;
  return detail::combine<D>(Node::Op::max, a.value() < b.value() ? b.value() : a.value(), a, b);
}
template <Dim D>
auto min(TracedQuantity<D> a, TracedQuantity<D> b) {
  if (a.is_nothing() || b.is_nothing()) return b.value() < a.value() ? b : a;
  return detail::combine<D>(Node::Op::min, b.value() < a.value() ? b.value() : a.value(), a, b);
}
inline TracedQuantity<Dim{}> ceil(TracedQuantity<Dim{}> a) {
  return detail::unary<Dim{}>(Node::Op::ceil, std::ceil(a.value()), a);
}
template <Dim D>
TracedQuantity<half(D)> sqrt(TracedQuantity<D> a) {
  return detail::unary<half(D)>(Node::Op::sqrt, std::sqrt(a.value()), a);
}

template <Dim D>
constexpr Quantity<D> max(Quantity<D> a, Quantity<D> b) {
  return a < b ? b : a;
}
template <Dim D>
constexpr Quantity<D> min(Quantity<D> a, Quantity<D> b) {
  return b < a ? b : a;
}
constexpr double max(double a, double b) { return a < b ? b : a; }
constexpr double min(double a, double b) { return b < a ? b : a; }
template <Dim D>
Quantity<half(D)> sqrt(Quantity<D> a) {
  return Quantity<half(D)>(std::sqrt(a.value()));
}
using std::ceil;
using std::sqrt;

/// The policy of the hot loop: values only.
struct Plain {
  static constexpr bool traced = false;
  template <Dim D>
  using Number = decltype(detail::make_quantity<D>(0.0));

  template <Dim D>
  constexpr Quantity<D> given(std::string_view, Quantity<D> q, std::string_view) const {
    return q;
  }
  template <Dim D>
  constexpr Quantity<D> given(std::string_view, const Sourced<Quantity<D>>& q) const {
    return q.value;
  }
  constexpr double given(std::string_view, const Sourced<double>& q) const { return q.value; }
  constexpr double given(std::string_view, double value, std::string_view) const { return value; }
  template <class Q>
  Q given(std::string_view, const Given<Q>& q) const {
    return q.value;
  }
  /// A number whose source a table knows by key; nullptr: no source is known.
  template <class Q>
  constexpr Q given(std::string_view, Q q, const SourceTable*, std::string_view) const {
    return q;
  }
  template <class Q>
  constexpr Q named(std::string_view, Q q) const {
    return q;
  }
  /// A number of the formula itself.
  template <class Q>
  constexpr Q constant(Q q) const {
    return q;
  }
  /// `n` times a value; a factor of one or zero leaves no trace.
  template <class Q>
  constexpr Q times(std::string_view, double n, std::string_view, Q q) const {
    return n * q;
  }
};

/// The policy for people: every given number, operator and name goes into the ledger.
struct Traced {
  static constexpr bool traced = true;
  template <Dim D>
  using Number = TracedQuantity<D>;

  Ledger* ledger;

  template <Dim D>
  TracedQuantity<D> given(std::string_view name, Quantity<D> q, std::string_view source) const {
    return {q.value(), ledger, derived_or_given(name, q, source)};
  }
  template <Dim D>
  TracedQuantity<D> given(std::string_view name, const Sourced<Quantity<D>>& q) const {
    return given(name, q.value, q.source);
  }
  TracedQuantity<Dim{}> given(std::string_view name, const Sourced<double>& q) const {
    return given(name, q.value, q.source);
  }
  TracedQuantity<Dim{}> given(std::string_view name, double value, std::string_view source) const {
    return {value, ledger, derived_or_given(name, {value, Dim{}}, source)};
  }
  template <class Q>
  auto given(std::string_view name, const Given<Q>& q) const {
    return given(name, q.value, q.source);
  }
  template <class Q>
  auto given(std::string_view name, Q q, const SourceTable* sources, std::string_view key) const {
    return given(name, q, sources ? sources->of(key) : std::string_view());
  }
  template <Dim D>
  TracedQuantity<D> constant(Quantity<D> q) const {
    return {q.value(), ledger, ledger->push({Node::Op::constant, q, -1, -1, {}, {}})};
  }
  TracedQuantity<Dim{}> constant(double value) const {
    return {value, ledger, ledger->push({Node::Op::constant, {value, Dim{}}, -1, -1, {}, {}})};
  }
  template <Dim D>
  TracedQuantity<D> times(std::string_view name, double n, std::string_view source, TracedQuantity<D> t) const {
    if (n == 0.0) return {};
    return n == 1.0 || t.is_nothing() ? t : given(name, n, source) * t;
  }
  template <Dim D>
  TracedQuantity<D> named(std::string_view name, TracedQuantity<D> t) const {
    if (t.is_nothing()) return t;
    // A value that already has a name keeps it: the new name is an alias one level up.
    if (!ledger->at(t.id).name.empty())
      return {t.value(), ledger, ledger->push({Node::Op::alias, {t.value(), D}, t.id, -1, std::string(name), {}})};
    ledger->name(t.id, name);
    return t;
  }

 private:
  int derived_or_given(std::string_view name, AnyQuantity quantity, std::string_view source) const;
};

/// A number of one quantity under a policy: NumberOf<N, Seconds>, NumberOf<N, double>.
template <class N, class Q>
struct NumberType {
  using type = typename N::template Number<Q::dim>;
};
template <class N>
struct NumberType<N, double> {
  using type = typename N::template Number<Dim{}>;
};
template <class N, class Q>
using NumberOf = typename NumberType<N, Q>::type;

/// FLOP per element of a product: one FMA is two FLOP.
template <class N>
NumberOf<N, Flops> multiply_and_add(const N& num) {
  return num.given("FLOP each", 2_FLOP, "a product and an addition");
}

/// What given numbers consist of. A formula that takes a number as given under one of these names, with the very value
/// that is derived here, gets the derivation: who prices a step need not know how its bytes were counted. Lives as long
/// as the numbers are asked for; the innermost one counts.
class Origins {
 public:
  explicit Origins(const Traced& num) : num_(num), outer_(num.ledger->origins_.size()) {}
  ~Origins() { num_.ledger->origins_.resize(outer_); }
  Origins(const Origins&) = delete;
  Origins& operator=(const Origins&) = delete;

  template <Dim D>
  void add(std::string_view name, TracedQuantity<D> number) {
    if (number.is_nothing()) return;
    const bool is_named = num_.ledger->at(number.id).name == name;
    num_.ledger->origins_.push_back(is_named ? number.id : num_.named(name, number).id);
  }

 private:
  Traced num_;
  std::size_t outer_;
};

/// The product of any number of factors, even none.
template <class N>
class Factors {
 public:
  void operator*=(NumberOf<N, double> factor) {
    if constexpr (N::traced)
      all_ = all_.is_nothing() ? factor : all_ * factor;
    else
      all_ *= factor;
  }
  NumberOf<N, double> of(const N& num) const {
    if constexpr (N::traced)
      if (all_.is_nothing()) return num.constant(1.0);
    return all_;
  }

 private:
  static constexpr NumberOf<N, double> none() {
    if constexpr (N::traced)
      return {};
    else
      return 1.0;
  }
  NumberOf<N, double> all_ = none();
};

/// The value of a number under either policy, as a plain quantity.
template <Dim D>
constexpr Quantity<D> plain(Quantity<D> q) {
  return q;
}
template <Dim D>
constexpr auto plain(TracedQuantity<D> t) {
  return detail::make_quantity<D>(t.value());
}
constexpr double plain(double v) { return v; }

/// The last winner when `max` winners are followed down from `id`: the number's limiter.
int limiter(const Ledger& ledger, int id);

/// One line of a derivation, at its depth in the tree.
struct DerivationLine {
  int depth = 0;
  int id = -1;
  std::string name;
  std::string formula;  ///< "flops / peak"; empty for a given number
  AnyQuantity quantity;
  std::string source;     ///< where a given number comes from
  std::string bound_by;   ///< for a max: the name of the winner
  bool repeated = false;  ///< already derived above
};

/// The derivations of some numbers, each root first at depth 0. A named value is derived where it first appears and
/// only mentioned later; a given number appears once. All renderers walk this list.
std::vector<DerivationLine> derivation(const Ledger& ledger, std::span<const int> roots);

}  // namespace assay
