// Operations on elements, constants and counts.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "assay/profile/hlo/execute/evaluate.h"

namespace assay::hlo {
namespace {

double erf_inverse(double y) {
  if (y <= -1.0 || y >= 1.0) return std::abs(y) == 1.0 ? std::copysign(HUGE_VAL, y) : NAN;
  const double log = std::log1p(-y * y), a = 4.33 + log / 2.0;  // Winitzki's formula, then Newton's steps
  double x = std::copysign(std::sqrt(std::sqrt(a * a - log / 0.147) - a), y);
  for (int i = 0; i < 4; ++i) x -= (std::erf(x) - y) / (1.1283791670955126 * std::exp(-x * x));
  return x;
}

/// The function of a name; null where there is none.
template <class Function, std::size_t count>
Function found(const std::pair<std::string_view, Function> (&known)[count], std::string_view name) {
  for (const auto& [of, function] : known)
    if (of == name) return function;
  return nullptr;
}

OfOne of_one(std::string_view opcode) {
  static constexpr std::pair<std::string_view, OfOne> known[] = {
      {"negate", [](double x) { return -x; }},
      {"square", [](double x) { return x * x; }},
      {"abs", [](double x) { return std::abs(x); }},
      {"sign", [](double x) { return x > 0.0   ? 1.0
                                     : x < 0.0 ? -1.0
                                               : x; }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round-nearest-even", [](double x) { return std::nearbyint(x); }},
      {"round-nearest-afz", [](double x) { return std::round(x); }},
      {"exponential", [](double x) { return std::exp(x); }},
      {"exponential-minus-one", [](double x) { return std::expm1(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"log-plus-one", [](double x) { return std::log1p(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"rsqrt", [](double x) { return 1.0 / std::sqrt(x); }},
      {"cbrt", [](double x) { return std::cbrt(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sine", [](double x) { return std::sin(x); }},
      {"cosine", [](double x) { return std::cos(x); }},
      {"tan", [](double x) { return std::tan(x); }},
      {"logistic", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"erfc", [](double x) { return std::erfc(x); }},
      {"erf-inv", &erf_inverse},
      {"lgamma", [](double x) { return std::lgamma(x); }},
      {"asin", [](double x) { return std::asin(x); }},
      {"acos", [](double x) { return std::acos(x); }},
      {"atan", [](double x) { return std::atan(x); }},
      {"sinh", [](double x) { return std::sinh(x); }},
      {"cosh", [](double x) { return std::cosh(x); }},
      {"asinh", [](double x) { return std::asinh(x); }},
      {"acosh", [](double x) { return std::acosh(x); }},
      {"atanh", [](double x) { return std::atanh(x); }},
      {"copy", [](double x) { return x; }},
      {"reduce-precision", [](double x) { return x; }},
  };
  return found(known, opcode);
}

std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

/// An operation on the bits of two whole numbers of a type.
using OfBits = std::uint64_t (*)(const ElementType& element, std::uint64_t a, std::uint64_t b);

OfBits of_bits_of(std::string_view opcode) {
  using Type = const ElementType&;
  using Bits = std::uint64_t;
  static constexpr std::pair<std::string_view, OfBits> known[] = {
      {"and", [](Type, Bits a, Bits b) { return a & b; }},
      {"or", [](Type, Bits a, Bits b) { return a | b; }},
      {"xor", [](Type, Bits a, Bits b) { return a ^ b; }},
      {"add", [](Type, Bits a, Bits b) { return a + b; }},
      {"subtract", [](Type, Bits a, Bits b) { return a - b; }},
      {"multiply", [](Type, Bits a, Bits b) { return a * b; }},
      {"shift-left", [](Type of, Bits a, Bits b) { return b >= static_cast<Bits>(of.bits) ? 0 : a << b; }},
      {"shift-right-logical", [](Type of, Bits a, Bits b) { return b >= static_cast<Bits>(of.bits) ? 0 : a >> b; }},
      {"shift-right-arithmetic",
       [](Type of, Bits a, Bits b) {
         return static_cast<Bits>(static_cast<std::int64_t>(of_bits(of, a)) >> std::min<Bits>(b, 63));
       }},
  };
  return found(known, opcode);
}

/// An operation that looks at more than the values of one or two numbers.
using OfThree = double (*)(const ElementType& from, const ElementType& to, double x, double y, double z);

OfThree of_three(std::string_view opcode) {
  using Type = const ElementType&;
  static constexpr std::pair<std::string_view, OfThree> known[] = {
      {"not", [](Type, Type to, double x, double, double) { return std::isnan(x) ? x : of_bits(to, ~bits_of(to, x)); }},
      {"popcnt", [](Type, Type to, double x, double,
                    double) { return std::isnan(x) ? x : static_cast<double>(std::popcount(bits_of(to, x))); }},
      {"count-leading-zeros",
       [](Type, Type to, double x, double, double) {
         return std::isnan(x) ? x : static_cast<double>(std::countl_zero(bits_of(to, x)) - (64 - to.bits));
       }},
      {"is-finite",
       [](Type, Type, double x, double, double) { return is_absent(x)       ? x
                                                         : std::isfinite(x) ? 1.0
                                                                            : 0.0; }},
      {"bitcast-convert",
       [](Type from, Type to, double x, double, double) { return is_absent(x) ? x : of_bits(to, bits_of(from, x)); }},
      {"convert",
       [](Type from, Type to, double x, double, double) {
         const double made = held(to, x);
         return from.is_float && !to.is_float && std::isnan(made) && !is_absent(made) ? 0.0 : made;
       }},
      {"select", [](Type, Type, double x, double y, double z) { return std::isnan(x) ? x
                                                                       : x != 0.0    ? y
                                                                                     : z; }},
      {"clamp",  // lowest, value, highest
       [](Type, Type, double x, double y, double z) {
         return std::isnan(x) || std::isnan(y) || std::isnan(z) ? x + y + z : std::min(std::max(x, y), z);
       }},
  };
  return found(known, opcode);
}

OfTwo comparison(std::string_view direction) {
  static constexpr std::pair<std::string_view, OfTwo> known[] = {
      {"EQ", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"NE", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
      {"LT", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"LE", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"GT", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"GE", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
  };
  return found(known, direction);
}

/// The number of one element of an operand: scalars go with all.
double element_at(const Array& array, std::size_t i) { return array.values[array.values.size() == 1 ? 0 : i]; }

OfTwo of_two(std::string_view opcode, bool whole_numbers) {
  static constexpr std::pair<std::string_view, OfTwo> of_whole[] = {
      {"divide", [](double a, double b) { return b == 0.0 ? -1.0 : static_cast<double>(whole(a) / whole(b)); }},
      {"remainder", [](double a, double b) { return b == 0.0 ? a : static_cast<double>(whole(a) % whole(b)); }},
  };
  static constexpr std::pair<std::string_view, OfTwo> known[] = {
      {"maximum", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }},
      {"minimum", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }},
      {"add", [](double a, double b) { return a + b; }},
      {"subtract", [](double a, double b) { return a - b; }},
      {"multiply", [](double a, double b) { return a * b; }},
      {"divide", [](double a, double b) { return a / b; }},
      {"remainder", [](double a, double b) { return std::fmod(a, b); }},
      {"power", [](double a, double b) { return std::pow(a, b); }},
      {"atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"and",
       [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b
                                       : a != 0.0 && b != 0.0         ? 1.0
                                                                      : 0.0; }},
      {"or",
       [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b
                                       : a != 0.0 || b != 0.0         ? 1.0
                                                                      : 0.0; }},
  };
  const OfTwo special = whole_numbers ? found(of_whole, opcode) : nullptr;
  return special ? special : found(known, opcode);
}

}  // namespace

std::optional<ElementOperation> ElementOperation::of(const Instruction& at, const ElementType& from,
                                                     const ElementType& to) {
  ElementOperation out(from, to);
  out.three_ = of_three(at.opcode);
  if (out.three_) {
    out.operands_ = at.opcode == "select" || at.opcode == "clamp" ? 3 : 1;
    return out;
  }
  if ((out.one_ = of_one(at.opcode))) return out;
  out.operands_ = 2;
  if (at.opcode == "compare")
    out.compares_ = comparison(at.attribute("direction"));
  else
    out.two_ = of_two(at.opcode, !to.is_float);
  if (!to.is_float) out.bits_ = of_bits_of(at.opcode);
  return out.two_ || out.bits_ || out.compares_ ? std::optional(out) : std::nullopt;
}

double ElementOperation::operator()(double x, double y, double z) const {
  if (three_) return three_(*from_, *to_, x, y, z);
  if (one_) return held(*to_, one_(x));
  if (compares_) return is_absent(x) || is_absent(y) ? absent() : compares_(x, y);
  if (!to_->is_float && (std::isnan(x) || std::isnan(y))) return absent();
  if (bits_) return of_bits(*to_, bits_(*to_, bits_of(*to_, x), bits_of(*to_, y)));
  return held(*to_, two_(x, y));
}

std::optional<Evaluation> evaluate_elements(const Evaluated& operation, const Arrays& in,
                                            const std::vector<Shape>& out) {
  const std::string_view opcode = operation.at.opcode;
  if (out.size() != 1 || !out[0].element) return std::nullopt;
  const ElementType& to = *out[0].element;
  if (opcode == "constant") {
    auto made = constant_array(operation.at.argument, out[0], operation.module.where(operation.at));
    if (!made) return tl::unexpected<Error>(made.error());
    return single(std::move(*made));
  }
  Array made = Array::of(out[0]);
  if (opcode == "iota") {
    const Dims along = operation.numbers("iota_dimension");
    if (along.size() != 1 || along[0] < 0 || static_cast<std::size_t>(along[0]) >= made.shape.size())
      return operation.fault("a count has a dimension");
    std::size_t i = 0;
    for (Indices index(made.shape); !index.done(); index.next())
      made.values[i++] = held(to, static_cast<double>(index.at[static_cast<std::size_t>(along[0])]));
    return single(std::move(made));
  }
  if (in.empty() || !in[0]->element) return std::nullopt;
  const auto element = ElementOperation::of(operation.at, *in[0]->element, to);
  if (!element) return std::nullopt;
  if (in.size() != element->operands()) return operation.fault(fmt::format("{} of {} operands", opcode, in.size()));
  for (const Array* operand : in)
    if (operand->values.size() != made.values.size() && operand->values.size() != 1)
      return operation.fault("operands of other sizes than the result");
  const std::size_t last = in.size() - 1;
  for (std::size_t i = 0; i < made.values.size(); ++i)
    made.values[i] =
        (*element)(element_at(*in[0], i), element_at(*in[std::min<std::size_t>(1, last)], i), element_at(*in[last], i));
  return single(std::move(made));
}

}  // namespace assay::hlo
