#include "assay/profile/hlo/execute/array.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

constexpr std::uint64_t absent_bits = 0x7FF8'0000'0A55'A100;
constexpr double exact = 9007199254740992.0;  // 2^53

/// Significant bits of a float type, and its smallest exponent.
std::pair<int, int> precision_of(const ElementType& element) {
  const std::string_view name = element.name;
  if (name == "f64") return {53, -1074};
  if (name == "f32") return {24, -149};
  if (name == "bf16") return {8, -133};
  if (name == "f16") return {11, -24};
  if (name.starts_with("f8e5m2")) return {3, -16};
  if (name.starts_with("f8e4m3")) return {4, -9};
  if (name.starts_with("f8e3m4")) return {5, -6};
  if (name.starts_with("f4")) return {2, -1};
  return {24, -149};
}

double rounded(const ElementType& element, double value) {
  const auto [bits, least] = precision_of(element);
  if (!std::isfinite(value) || value == 0.0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - bits, least);
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

bool is_signed(const ElementType& element) { return element.name.starts_with("s"); }

}  // namespace

Array Array::of(const Shape& shape, double value) {
  return {shape.element, shape.dims, std::vector<double>(static_cast<std::size_t>(element_count(shape.dims)), value)};
}

std::int64_t element_count(const Dims& dims) {
  std::int64_t out = 1;
  for (const std::int64_t size : dims) out *= size;
  return out;
}

Dims strides_of(const Dims& dims) {
  Dims out(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) out[d - 1] = out[d] * dims[d];
  return out;
}

Array cut(const Array& whole, const Block& block) {
  Array out{whole.element, {}, {}};
  for (const auto& [from, to] : block) out.dims.push_back(to - from);
  const Dims strides = strides_of(whole.dims);
  out.data.reserve(static_cast<std::size_t>(element_count(out.dims)));
  for (Indices index(out.dims); !index.done(); index.next()) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < block.size(); ++d) at += (block[d].first + index.at[d]) * strides[d];
    out.data.push_back(whole.data.at(static_cast<std::size_t>(at)));
  }
  return out;
}

void paste(Array& whole, const Array& part, const Block& block, bool adds) {
  const Dims strides = strides_of(whole.dims);
  std::size_t next = 0;
  for (Indices index(part.dims); !index.done(); index.next(), ++next) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < block.size(); ++d) at += (block[d].first + index.at[d]) * strides[d];
    double& to = whole.data.at(static_cast<std::size_t>(at));
    to = adds ? to + part.data[next] : part.data[next];
  }
}

double absent() { return std::bit_cast<double>(absent_bits); }
bool is_absent(double value) { return std::bit_cast<std::uint64_t>(value) == absent_bits; }

double held(const ElementType& element, double value) {
  if (element.is_float) return element.bits < 32 ? rounded(element, value) : value;
  if (std::isnan(value)) return value;
  if (element.name == "pred") return value != 0.0 ? 1.0 : 0.0;
  if (std::abs(value) < std::ldexp(1.0, element.bits - 1) && (is_signed(element) || value >= 0.0))
    return std::trunc(value);
  return of_bits(element, bits_of(element, std::trunc(value)));
}

std::uint64_t bits_of(const ElementType& element, double value) {
  if (element.name == "f32") return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (element.name == "f64") return std::bit_cast<std::uint64_t>(value);
  if (element.name == "bf16") return std::bit_cast<std::uint32_t>(static_cast<float>(rounded(element, value))) >> 16;
  if (std::isnan(value)) return 0;
  const double turn = std::ldexp(1.0, 64), within = std::fmod(value, turn);  // beyond 64 bits the remainder counts
  const std::uint64_t size = static_cast<std::uint64_t>(std::abs(within)), whole = within < 0.0 ? 0 - size : size;
  return element.bits >= 64 ? whole : whole & ((std::uint64_t{1} << element.bits) - 1);
}

double of_bits(const ElementType& element, std::uint64_t bits) {
  if (element.name == "f32") return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (element.name == "f64") return std::bit_cast<double>(bits);
  if (element.name == "bf16") return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  if (element.name == "pred") return bits != 0 ? 1.0 : 0.0;
  if (element.bits < 64) bits &= (std::uint64_t{1} << element.bits) - 1;
  const bool negative = is_signed(element) && (bits >> (element.bits - 1) & 1) != 0;
  if (!negative) return static_cast<double>(bits);
  const std::uint64_t extended = element.bits >= 64 ? bits : bits | ~((std::uint64_t{1} << element.bits) - 1);
  return static_cast<double>(std::bit_cast<std::int64_t>(extended));
}

Result<Array> constant_array(std::string_view text, const Shape& shape, std::string_view where) {
  const auto fault = [&](std::string what) {
    return fail(std::string(where), std::move(what), "a constant has one value, or one for each element");
  };
  if (!shape.element || shape.element->bits == 0) return fault("a constant without numbers");
  const ElementType& element = *shape.element;
  Array out = Array::of(shape);
  text = trim(text);
  std::vector<double> values;
  if (text.starts_with("\"0x")) {  // all bytes, the lowest first
    text = text.substr(3, text.size() - 4);
    const std::size_t digits = static_cast<std::size_t>(std::max(8, element.bits)) / 4;
    for (std::size_t i = 0; i + digits <= text.size(); i += digits) {
      std::uint64_t bits = 0;
      for (std::size_t byte = 0; byte < digits / 2; ++byte)
        bits |= std::strtoull(std::string(text.substr(i + 2 * byte, 2)).c_str(), nullptr, 16) << (8 * byte);
      values.push_back(of_bits(element, bits));
    }
  } else {
    std::size_t i = 0;
    while ((i = text.find_first_not_of("[], \n\t", i)) != std::string_view::npos) {
      const std::size_t end = std::min(text.find_first_of("[], \n\t", i), text.size());
      const std::string word(text.substr(i, end - i));
      i = end;
      if (word == "true" || word == "false") {
        values.push_back(word == "true" ? 1.0 : 0.0);
      } else if (word.starts_with("0x") && element.is_float) {
        values.push_back(of_bits(element, std::strtoull(word.c_str(), nullptr, 16)));
      } else {
        char* stop = nullptr;
        values.push_back(std::strtod(word.c_str(), &stop));
        if (*stop != 0) return fault(fmt::format("{} is not a number", in_quotes(word)));
        if (!element.is_float && std::abs(values.back()) > exact)
          return fault(fmt::format("{} has more than 53 bits", word));
      }
    }
  }
  if (values.size() == 1)
    out.data.assign(out.data.size(), values.front());
  else if (values.size() == out.data.size())
    out.data = std::move(values);
  else
    return fault(fmt::format("{} values for {} elements", values.size(), out.data.size()));
  return out;
}

}  // namespace assay::hlo
