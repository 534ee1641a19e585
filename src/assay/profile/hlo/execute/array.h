// Arrays of numbers, row by row, as programs that are executed to be checked have them.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/base/result.h"
#include "assay/engine/array.h"
#include "assay/profile/hlo/shape.h"

namespace assay::hlo {

using Dims = engine::Shape;
using engine::element_count;

constexpr std::size_t as_size(std::int64_t number) { return static_cast<std::size_t>(number); }

/// Whole numbers and truth values are doubles, too, which hold them exactly up to 2^53.
struct Array : engine::Array {
  const ElementType* element = nullptr;

  static Array of(const Shape& shape, double value = 0.0);
  bool is_float() const { return element && element->is_float; }
};

/// Most elements of an array that is executed.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 24;

/// How far apart in memory neighbours along each dimension are.
Dims strides_of(const Dims& dims);

/// Counts through all indices of some sizes, the last dimension fastest.
class Indices {
 public:
  explicit Indices(Dims dims) : at(dims.size(), 0), dims_(std::move(dims)), left_(element_count(dims_)) {}
  bool done() const { return left_ == 0; }
  void next() {
    --left_;
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < dims_[d]) return;
      at[d] = 0;
    }
  }
  Dims at;

 private:
  Dims dims_;
  std::int64_t left_;
};

/// A part of an array: from and to of each dimension.
using Block = std::vector<std::pair<std::int64_t, std::int64_t>>;
Array cut(const Array& whole, const Block& block);
/// Adds or writes a part into its place.
void paste(Array& whole, const Array& part, const Block& block, bool adds);

/// What stands in the place of an element that a device does not have. Whatever is computed from it is not a number.
double absent();
bool is_absent(double value);

/// A number as a type holds it: whole numbers wrap, floats below four bytes are rounded.
double held(const ElementType& element, double value);
/// The bits of a number in a type, and back.
std::uint64_t bits_of(const ElementType& element, double value);
double of_bits(const ElementType& element, std::uint64_t bits);

/// The value of a constant as a program writes it: 1.0, [[1, 2], [3, 4]], true, 0xFF800000, "0x0000803F".
Result<Array> constant_array(std::string_view text, const Shape& shape, std::string_view where);

/// The arrays of an .npz file, as numpy.savez writes it: those whose names begin with a prefix and a number, in order.
Result<std::vector<Array>> npz_arrays(std::string_view bytes, std::string_view prefix, std::string_view where);

}  // namespace assay::hlo
