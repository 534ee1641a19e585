// Shapes of arrays and how they lie in memory: "bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)}".
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base/dtype.h"
#include "assay/base/result.h"
#include "assay/base/units.h"
#include "assay/profile/hlo/cursor.h"

namespace assay::hlo {

/// What an element of an array is.
struct ElementType {
  std::string_view name;  ///< "bf16", "s32", "pred"
  int bits;               ///< in memory; 0 of tokens
  bool is_float;
  std::optional<Dtype> format;  ///< where products in it have a rate
};
/// nullptr for an unknown name.
const ElementType* find_element_type(std::string_view name);

/// How the elements lie in memory.
struct Layout {
  std::vector<std::int64_t> minor_to_major;  ///< empty: row-major
  std::vector<std::vector<std::int64_t>>
      tiles;                      ///< of the most minor dimensions; each further tile splits the last one
  std::int64_t memory_space = 0;  ///< S(n): 0 main memory; of TPUs 1 is the vector memory, 5 the host
};

struct Shape {
  const ElementType* element = nullptr;  ///< nullptr of tuples
  std::vector<std::int64_t> dims;
  Layout layout;
  std::vector<Shape> members;  ///< of tuples
  bool is_tuple = false;

  double elements() const;
  /// Without padding; of a tuple, of all members.
  Bytes bytes() const;
  /// With the padding that tiles add.
  Bytes padded_bytes() const;
};
bool operator==(const Shape& a, const Shape& b);

/// The next shape of a text.
Result<Shape> read_shape(Cursor& in);
/// Whether a text starts as a shape does, "bf16[", so that a fault in it is one of a shape.
bool looks_like_shape(std::string_view text);
/// A whole text as one shape.
Result<Shape> parse_shape(std::string_view text, std::string_view where);
/// "bf16[4,8]{1,0:T(2,4)(2,1)}"; without the layout "bf16[4,8]".
std::string shape_text(const Shape& shape, bool with_layout = true);

/// Sizes after rounding up to whole tiles.
std::vector<std::int64_t> padded_dims(const Shape& shape);
/// The place of an element in memory, counted in elements. The index has one number for each dimension, within it.
std::int64_t element_offset(const Shape& shape, std::span<const std::int64_t> index);
/// What memory is called that a layout is in: "HBM", "VMEM", "host", "S(3)".
std::string memory_name(std::int64_t space);

}  // namespace assay::hlo
