// Strong quantities: a number that carries its dimension in its type.
// Values are held in base units (FLOP, byte, second, dollar, joule, token, mm2 of silicon) as double.
// This header is the only place with factors between units.
#pragma once
#include <compare>
#include <cstdint>
#include <string_view>

namespace assay {

/// Exponents of the base units. A frequency is 1/s; counts and ratios have all exponents zero.
struct Dim {
  std::int8_t flop = 0, byte = 0, sec = 0, usd = 0, joule = 0, token = 0, area = 0;
  friend constexpr bool operator==(const Dim&, const Dim&) = default;
  friend constexpr Dim operator+(Dim a, Dim b) {
    return {sum(a.flop, b.flop),   sum(a.byte, b.byte),   sum(a.sec, b.sec),  sum(a.usd, b.usd),
            sum(a.joule, b.joule), sum(a.token, b.token), sum(a.area, b.area)};
  }
  friend constexpr Dim operator-(Dim a) {
    return {sum(0, -a.flop),  sum(0, -a.byte),  sum(0, -a.sec), sum(0, -a.usd),
            sum(0, -a.joule), sum(0, -a.token), sum(0, -a.area)};
  }
  /// The dimension of a square root.
  friend constexpr Dim half(Dim a) {
    return {halved(a.flop),  halved(a.byte),  halved(a.sec), halved(a.usd),
            halved(a.joule), halved(a.token), halved(a.area)};
  }

 private:
  static constexpr std::int8_t sum(int a, int b) { return static_cast<std::int8_t>(a + b); }
  static constexpr std::int8_t halved(int a) {
    return a % 2 == 0 ? static_cast<std::int8_t>(a / 2) : throw "the root of an odd power has no unit";
  }
};

/// A value of one dimension. Construction from a bare number and reading it back are explicit.
template <Dim D>
class Quantity {
 public:
  static constexpr Dim dim = D;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : value_(base_units) {}
  constexpr double value() const { return value_; }                          ///< in base units
  constexpr double in(Quantity unit) const { return value_ / unit.value_; }  ///< t.in(1_ms), m.in(1_GiB)

  constexpr auto operator<=>(const Quantity&) const = default;
  // Spelled out for hot loops: compilers make slower code of a three-way comparison than of comparing the numbers.
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) { return value_ += o.value_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value_ -= o.value_, *this; }
  constexpr Quantity& operator*=(double s) { return value_ *= s, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(double s, Quantity q) { return Quantity(s * q.value_); }
  friend constexpr Quantity operator*(Quantity q, double s) { return Quantity(q.value_ * s); }
  friend constexpr Quantity operator/(Quantity q, double s) { return Quantity(q.value_ / s); }

 private:
  double value_ = 0.0;
};

namespace detail {
template <Dim D>
constexpr auto make_quantity(double v) {
  if constexpr (D == Dim{})
    return v;  // dimensionless collapses to a plain number
  else
    return Quantity<D>(v);
}
}  // namespace detail

template <Dim A, Dim B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  return detail::make_quantity<A + B>(a.value() * b.value());
}
template <Dim A, Dim B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  return detail::make_quantity<A + -B>(a.value() / b.value());
}
template <Dim A>
constexpr auto operator/(double s, Quantity<A> a) {
  return Quantity<-A>(s / a.value());
}

using Flops = Quantity<Dim{.flop = 1}>;  ///< a count of operations; one fused multiply-add is two
using Bytes = Quantity<Dim{.byte = 1}>;
using Seconds = Quantity<Dim{.sec = 1}>;
using Dollars = Quantity<Dim{.usd = 1}>;
using Joules = Quantity<Dim{.joule = 1}>;
using Tokens = Quantity<Dim{.token = 1}>;
using Area = Quantity<Dim{.area = 1}>;
using Hertz = Quantity<Dim{.sec = -1}>;
using FlopsPerSecond = Quantity<Dim{.flop = 1, .sec = -1}>;
using SecondsPerFlop = Quantity<Dim{.flop = -1, .sec = 1}>;
using SecondsPerByte = Quantity<Dim{.byte = -1, .sec = 1}>;
using BytesPerSecond = Quantity<Dim{.byte = 1, .sec = -1}>;
using FlopsPerByte = Quantity<Dim{.flop = 1, .byte = -1}>;  ///< arithmetic intensity
using DollarsPerSecond = Quantity<Dim{.sec = -1, .usd = 1}>;
using FlopsPerDollar = Quantity<Dim{.flop = 1, .usd = -1}>;
using Watts = Quantity<Dim{.sec = -1, .joule = 1}>;
using TokensPerSecond = Quantity<Dim{.sec = -1, .token = 1}>;

/// A quantity whose dimension is known only at run time, for parsing, printing and tracing.
struct AnyQuantity {
  double value = 0.0;
  Dim dim;

  constexpr AnyQuantity() = default;
  constexpr AnyQuantity(double base_units, Dim d) : value(base_units), dim(d) {}
  template <Dim D>
  constexpr AnyQuantity(Quantity<D> q) : value(q.value()), dim(D) {}  // NOLINT: widening is safe
  friend constexpr bool operator==(const AnyQuantity&, const AnyQuantity&) = default;
};

/// A unit as people write it: `name` stands for `scale` base units of `dim`; `decimal` and `binary` say which prefixes
/// it takes.
struct UnitName {
  std::string_view name;
  Dim dim;
  double scale = 1.0;
  bool decimal = false, binary = false;
};

inline constexpr UnitName unit_names[] = {
    {"B", {.byte = 1}, 1.0, true, true},
    {"bit", {.byte = 1}, 1.0 / 8.0, true, true},
    {"FLOP", {.flop = 1}, 1.0, true, false},
    {"OP", {.flop = 1}, 1.0, true, false},
    {"s", {.sec = 1}, 1.0, true, false},
    {"min", {.sec = 1}, 60.0},
    {"h", {.sec = 1}, 3600.0},
    {"day", {.sec = 1}, 86400.0},
    {"days", {.sec = 1}, 86400.0},
    {"Hz", {.sec = -1}, 1.0, true, false},
    {"USD", {.usd = 1}, 1.0},
    {"J", {.joule = 1}, 1.0, true, false},
    {"W", {.sec = -1, .joule = 1}, 1.0, true, false},
    {"Wh", {.joule = 1}, 3600.0, true, false},
    {"token", {.token = 1}, 1.0, true, false},
    {"tokens", {.token = 1}, 1.0, true, false},
    {"Tr", {}, 1.0, true, false},
    {"defects", {}, 1.0},
    {"mm2", {.area = 1}, 1.0},
    {"cm2", {.area = 1}, 100.0},
    {"cycle", {}, 1.0},
};

struct Prefix {
  std::string_view name;
  double scale;
};
/// In descending order, so that the first prefix not above a value is its prefix.
inline constexpr Prefix decimal_prefixes[] = {{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9},  {"M", 1e6},
                                              {"k", 1e3},  {"", 1.0},   {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}};
inline constexpr Prefix binary_prefixes[] = {{"Pi", 1125899906842624.0}, {"Ti", 1099511627776.0}, {"Gi", 1073741824.0},
                                             {"Mi", 1048576.0},          {"Ki", 1024.0},          {"", 1.0}};

inline namespace literals {  // 80_GiB, 400_Gbit_per_s: the unit is in the source, not in a comment
#define ASSAY_UNIT(Type, suffix, scale)                                                                \
  constexpr Type operator""_##suffix(long double v) { return Type(static_cast<double>(v) * (scale)); } \
  constexpr Type operator""_##suffix(unsigned long long v) { return Type(static_cast<double>(v) * (scale)); }
ASSAY_UNIT(Bytes, B, 1)
ASSAY_UNIT(Bytes, kB, 1e3)
ASSAY_UNIT(Bytes, MB, 1e6)
ASSAY_UNIT(Bytes, GB, 1e9)
ASSAY_UNIT(Bytes, TB, 1e12)
ASSAY_UNIT(Bytes, KiB, 1024.0)
ASSAY_UNIT(Bytes, MiB, 1048576.0)
ASSAY_UNIT(Bytes, GiB, 1073741824.0)
ASSAY_UNIT(Bytes, TiB, 1099511627776.0)
ASSAY_UNIT(Seconds, s, 1)
ASSAY_UNIT(Seconds, ms, 1e-3)
ASSAY_UNIT(Seconds, us, 1e-6)
ASSAY_UNIT(Seconds, ns, 1e-9)
ASSAY_UNIT(Seconds, h, 3600)
ASSAY_UNIT(Seconds, day, 86400)
ASSAY_UNIT(Hertz, GHz, 1e9)
ASSAY_UNIT(Flops, FLOP, 1)
ASSAY_UNIT(Flops, GFLOP, 1e9)
ASSAY_UNIT(Flops, TFLOP, 1e12)
ASSAY_UNIT(Flops, PFLOP, 1e15)
ASSAY_UNIT(FlopsPerSecond, TFLOP_per_s, 1e12)
ASSAY_UNIT(FlopsPerSecond, PFLOP_per_s, 1e15)
ASSAY_UNIT(BytesPerSecond, GB_per_s, 1e9)
ASSAY_UNIT(BytesPerSecond, TB_per_s, 1e12)
ASSAY_UNIT(BytesPerSecond, Gbit_per_s, 1e9 / 8)
ASSAY_UNIT(Dollars, USD, 1)
ASSAY_UNIT(DollarsPerSecond, USD_per_h, 1.0 / 3600)
ASSAY_UNIT(Watts, W, 1)
ASSAY_UNIT(Tokens, tokens, 1)
#undef ASSAY_UNIT
}  // namespace literals
}  // namespace assay
