#include "assay/profile/hlo/execute/array.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <stdexcept>

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

/// Where a block of an array starts, and how far it goes.
std::pair<Dims, Dims> start_and_extent(const Array& whole, const Block& block) {
  std::pair<Dims, Dims> out;
  for (std::size_t d = 0; d < block.size(); ++d) {
    const auto [from, to] = block[d];
    if (from < 0 || to < from || to > whole.shape.at(d)) throw std::out_of_range("a block exceeds its array");
    out.first.push_back(from);
    out.second.push_back(to - from);
  }
  return out;
}

bool is_signed(const ElementType& element) { return element.name.starts_with("s"); }

}  // namespace

Array Array::of(const Shape& shape, double value) {
  return {{shape.dims, std::vector<double>(as_size(element_count(shape.dims)), value)}, shape.element};
}

Dims strides_of(const Dims& dims) {
  Dims out(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) out[d - 1] = out[d] * dims[d];
  return out;
}

Array cut(const Array& whole, const Block& block) {
  const auto [start, extent] = start_and_extent(whole, block);
  Array out{engine::zeros(extent), whole.element};
  engine::copy_block(whole, start, extent, out, Dims(extent.size(), 0));
  return out;
}

void paste(Array& whole, const Array& part, const Block& block, bool adds) {
  const auto [start, extent] = start_and_extent(whole, block);
  if (part.shape != extent) throw std::out_of_range("a part of other sizes than its place");
  if (!adds) return engine::copy_block(part, Dims(extent.size(), 0), extent, whole, start);
  Array sum = cut(whole, block);
  engine::add(sum, part);
  engine::copy_block(sum, Dims(extent.size(), 0), extent, whole, start);
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
    out.values.assign(out.values.size(), values.front());
  else if (values.size() == out.values.size())
    out.values = std::move(values);
  else
    return fault(fmt::format("{} values for {} elements", values.size(), out.values.size()));
  return out;
}

}  // namespace assay::hlo
