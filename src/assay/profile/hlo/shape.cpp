#include "assay/profile/hlo/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/base/text.h"

namespace assay::hlo {
namespace {

constexpr int deepest_tuple = 50;
constexpr std::int64_t largest_dim = std::int64_t{1} << 48;
constexpr std::size_t most_dims = 64;

// Bits in memory: pred has a byte, and types below a byte are packed.
constexpr ElementType element_types[] = {
    {"pred", 8, false, std::nullopt},  {"s1", 1, false, std::nullopt},      {"u1", 1, false, std::nullopt},
    {"s2", 2, false, std::nullopt},    {"u2", 2, false, std::nullopt},      {"s4", 4, false, Dtype::int4},
    {"u4", 4, false, Dtype::int4},     {"s8", 8, false, Dtype::int8},       {"u8", 8, false, Dtype::int8},
    {"s16", 16, false, Dtype::int16},  {"u16", 16, false, Dtype::int16},    {"s32", 32, false, Dtype::int32},
    {"u32", 32, false, Dtype::int32},  {"s64", 64, false, std::nullopt},    {"u64", 64, false, std::nullopt},
    {"f4e2m1fn", 4, true, Dtype::fp4}, {"f8e3m4", 8, true, Dtype::fp8},     {"f8e4m3", 8, true, Dtype::fp8},
    {"f8e4m3fn", 8, true, Dtype::fp8}, {"f8e4m3fnuz", 8, true, Dtype::fp8}, {"f8e4m3b11fnuz", 8, true, Dtype::fp8},
    {"f8e5m2", 8, true, Dtype::fp8},   {"f8e5m2fnuz", 8, true, Dtype::fp8}, {"f8e8m0fnu", 8, true, Dtype::fp8},
    {"f16", 16, true, Dtype::fp16},    {"bf16", 16, true, Dtype::bf16},     {"f32", 32, true, Dtype::fp32},
    {"f64", 64, true, Dtype::fp64},    {"c64", 64, true, Dtype::fp32},      {"c128", 128, true, Dtype::fp64},
    {"token", 0, false, std::nullopt}, {"opaque", 0, false, std::nullopt},
};

/// A list in brackets that are next: "(8,128)"; * stands for 1, since it joins a dimension to the next one.
Result<std::vector<std::int64_t>> read_tile(Cursor& in) {
  std::vector<std::int64_t> out;
  if (!in.take("(")) return in.fault("expected ( of a tile", "a tile is written as T(8,128)");
  while (!in.take(")")) {
    const auto size = in.take("*") ? std::optional<std::int64_t>(1) : in.integer();
    if (!size || *size < 1 || *size > largest_dim)
      return in.fault("a tile has sizes of 1 and more", "a tile is written as T(8,128)");
    out.push_back(*size);
    in.take(",");
  }
  return out;
}

/// What follows the colon of a layout.
Result<void> read_placement(Cursor& in, Layout& out) {
  while (!in.done() && in.peek() != '}') {
    const char kind = in.peek();
    if (kind == 'T' || (kind == '(' && !out.tiles.empty())) {
      if (kind == 'T') in.take("T");
      ASSAY_TRY(tile, read_tile(in));
      out.tiles.push_back(std::move(tile));
    } else if (kind == 'S') {
      in.take("S(");
      const auto space = in.integer();
      if (!space) return in.fault("expected a number of a memory space", "it is written as S(1)");
      out.memory_space = *space;
      ASSAY_CHECK(in.expect(")", "behind a memory space"));
    } else {  // element sizes, dimension kinds, tail padding: they do not move elements
      while (!in.done() && in.peek() != '(' && in.peek() != '}') in.move_to(in.at() + 1);
      if (in.peek() != '(') break;
      ASSAY_CHECK(in.bracketed());
    }
  }
  return {};
}

Result<Layout> read_layout(Cursor& in, std::size_t rank) {
  Layout out;
  const std::size_t start = in.at();
  ASSAY_CHECK(in.expect("{", "of a layout"));
  std::vector<bool> seen(rank, false);
  while (!in.done() && in.peek() != ':' && in.peek() != '}') {
    const auto dim = in.integer();
    if (!dim) return in.fault("expected a number of a dimension", "a layout lists dimensions, the most minor first");
    if (*dim < 0 || static_cast<std::size_t>(*dim) >= rank || seen[static_cast<std::size_t>(*dim)])
      return in.fault(fmt::format("dimension {} of a layout is not one of {}, once each", *dim, rank),
                      "a layout is a permutation of the dimensions");
    seen[static_cast<std::size_t>(*dim)] = true;
    out.minor_to_major.push_back(*dim);
    in.take(",");
  }
  if (in.take(":")) ASSAY_CHECK(read_placement(in, out));
  ASSAY_CHECK(in.expect("}", "at the end of a layout"));
  if (out.minor_to_major.size() != rank && !(out.minor_to_major.empty()))
    return in.fault_at(start, fmt::format("a layout names {} of {} dimensions", out.minor_to_major.size(), rank),
                       "a layout is a permutation of the dimensions");
  return out;
}

Result<Shape> read_nested_shape(Cursor& in, int depth) {
  Shape out;
  in.skip_blanks();
  if (in.take("(")) {
    if (depth == deepest_tuple)
      return in.fault(fmt::format("tuples nest deeper than {}", deepest_tuple), "write the module as XLA prints it");
    out.is_tuple = true;
    while (!in.take(")")) {
      ASSAY_TRY(member, read_nested_shape(in, depth + 1));
      out.members.push_back(std::move(member));
      in.take(",");
    }
    return out;
  }
  const std::size_t start = in.at();
  const std::string_view name = in.name();
  out.element = find_element_type(name);
  if (!out.element)
    return in.fault_at(start,
                       name.empty() ? "expected a shape" : fmt::format("unknown element type {}", in_quotes(name)),
                       "a shape is written as bf16[8,128]{1,0}");
  if (!in.sees("[")) {
    if (out.element->bits == 0) return out;
    return in.fault("expected [ of a shape", "a shape is written as bf16[8,128]{1,0}");
  }
  in.take("[");
  while (!in.take("]")) {
    in.take("<=");  // a dynamic dimension has its largest size
    const auto size = in.take("?") ? std::optional<std::int64_t>(1) : in.integer();
    if (!size || *size < 0 || *size > largest_dim || out.dims.size() == most_dims)
      return in.fault("expected a size of a dimension", "a shape is written as bf16[8,128]{1,0}");
    out.dims.push_back(*size);
    in.take(",");
  }
  if (in.peek() == '{') {
    ASSAY_TRY(layout, read_layout(in, out.dims.size()));
    out.layout = std::move(layout);
  }
  return out;
}

/// Sizes of the dimensions that lie in memory one inside of the other, the most major first, before tiling.
std::vector<std::int64_t> physical_order(const Shape& shape) {
  const std::size_t rank = shape.dims.size();
  std::vector<std::int64_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i)
    order[i] =
        shape.layout.minor_to_major.empty() ? static_cast<std::int64_t>(i) : shape.layout.minor_to_major[rank - 1 - i];
  return order;
}

std::int64_t up_to(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile * tile; }

/// Dimensions as they lie in memory, the most major first, and where an element is in each.
struct Tiled {
  std::vector<std::int64_t> sizes, at;
};

Tiled tiled_index(const Shape& shape, std::span<const std::int64_t> index) {
  Tiled out;
  for (const std::int64_t dim : physical_order(shape)) {
    out.sizes.push_back(shape.dims[static_cast<std::size_t>(dim)]);
    out.at.push_back(index.empty() ? 0 : index[static_cast<std::size_t>(dim)]);
  }
  // Each tile replaces the most minor dimensions by as many of whole tiles and as many within a tile.
  for (const std::vector<std::int64_t>& tile : shape.layout.tiles) {
    while (out.sizes.size() < tile.size()) {
      out.sizes.insert(out.sizes.begin(), 1);
      out.at.insert(out.at.begin(), 0);
    }
    const std::size_t first = out.sizes.size() - tile.size();
    for (std::size_t i = 0; i < tile.size(); ++i) {
      out.sizes.push_back(tile[i]);
      out.at.push_back(out.at[first + i] % tile[i]);
      out.sizes[first + i] = up_to(out.sizes[first + i], tile[i]) / tile[i];
      out.at[first + i] /= tile[i];
    }
  }
  return out;
}

}  // namespace

const ElementType* find_element_type(std::string_view name) {
  for (const ElementType& type : element_types)
    if (type.name == name) return &type;
  return nullptr;
}

double Shape::elements() const {
  double out = 1.0;
  for (const std::int64_t size : dims) out *= static_cast<double>(size);
  return out;
}

Bytes Shape::bytes() const {
  if (!is_tuple) return element ? Bytes(std::ceil(elements() * element->bits / 8.0)) : Bytes(0);
  Bytes sum(0);
  for (const Shape& member : members) sum += member.bytes();
  return sum;
}

Bytes Shape::padded_bytes() const {
  if (is_tuple) {
    Bytes sum(0);
    for (const Shape& member : members) sum += member.padded_bytes();
    return sum;
  }
  if (layout.tiles.empty()) return bytes();
  double padded = 1.0;
  for (const std::int64_t size : tiled_index(*this, {}).sizes) padded *= static_cast<double>(size);
  return element ? Bytes(std::ceil(padded * element->bits / 8.0)) : Bytes(0);
}

bool operator==(const Shape& a, const Shape& b) {
  return a.element == b.element && a.dims == b.dims && a.is_tuple == b.is_tuple && a.members == b.members;
}

Result<Shape> read_shape(Cursor& in) { return read_nested_shape(in, 0); }

bool looks_like_shape(std::string_view text) {
  const std::size_t bracket = text.find('[');
  return bracket != std::string_view::npos && bracket > 0 && text.find_first_of("./") == std::string_view::npos &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bracket),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

Result<Shape> parse_shape(std::string_view text, std::string_view where) {
  Cursor in(text, where);
  ASSAY_TRY(shape, read_shape(in));
  in.skip_blanks();
  if (!in.done()) return in.fault("what follows the shape", "a shape is written as bf16[8,128]{1,0:T(8,128)(2,1)}");
  return shape;
}

std::string shape_text(const Shape& shape, bool with_layout) {
  if (shape.is_tuple) {
    std::string out = "(";
    for (std::size_t i = 0; i < shape.members.size(); ++i)
      out += (i > 0 ? ", " : "") + shape_text(shape.members[i], with_layout);
    return out + ")";
  }
  std::string out = fmt::format("{}[{}]", shape.element ? shape.element->name : "", fmt::join(shape.dims, ","));
  const Layout& layout = shape.layout;
  if (!with_layout || (layout.minor_to_major.empty() && layout.tiles.empty() && layout.memory_space == 0)) return out;
  out += fmt::format("{{{}", fmt::join(layout.minor_to_major, ","));
  if (!layout.tiles.empty() || layout.memory_space != 0) out += ":";
  if (!layout.tiles.empty()) out += "T";
  for (const auto& tile : layout.tiles) out += fmt::format("({})", fmt::join(tile, ","));
  if (layout.memory_space != 0) out += fmt::format("S({})", layout.memory_space);
  return out + "}";
}

std::vector<std::int64_t> padded_dims(const Shape& shape) {
  std::vector<std::int64_t> out = shape.dims;
  if (shape.layout.tiles.empty()) return out;
  const std::vector<std::int64_t>& tile = shape.layout.tiles.front();
  const std::vector<std::int64_t> order = physical_order(shape);
  const std::size_t rank = order.size();
  for (std::size_t i = 0; i < tile.size() && i < rank; ++i) {
    const auto dim = static_cast<std::size_t>(order[rank - 1 - i]);
    out[dim] = up_to(out[dim], tile[tile.size() - 1 - i]);
  }
  if (tile.size() > rank)  // the array is one row of a tile of more dimensions
    out.insert(out.begin(), tile.begin(), tile.end() - static_cast<std::ptrdiff_t>(rank));
  return out;
}

std::int64_t element_offset(const Shape& shape, std::span<const std::int64_t> index) {
  const Tiled tiled = tiled_index(shape, index);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < tiled.sizes.size(); ++i) offset = offset * tiled.sizes[i] + tiled.at[i];
  return offset;
}

std::string memory_name(std::int64_t space) {
  switch (space) {
    case 0:
      return "HBM";
    case 1:
      return "VMEM";
    case 5:
      return "host";
    default:
      return fmt::format("S({})", space);
  }
}

}  // namespace assay::hlo
