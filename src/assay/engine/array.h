// Dense row-major arrays, with functions to cut, join and transpose them.
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::engine {

using Shape = std::vector<std::int64_t>;

std::int64_t element_count(const Shape& shape);

/// Values in row-major order, the last dimension innermost. Rank 0 holds one value.
struct Array {
  Shape shape;
  std::vector<double> values;

  friend bool operator==(const Array&, const Array&) = default;
};

Array zeros(Shape shape);

/// A 64-bit mix of two numbers: the same on every machine, so that seeds reproduce.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index);
/// A whole number from -4 to 4. Sums and products of such numbers are exact, whatever their order.
double small_integer(std::uint64_t random);

Array random_integers(Shape shape, std::uint64_t seed);
/// Uniform between -1 and 1.
Array random_reals(Shape shape, std::uint64_t seed);

/// Copies a block of `extent` from one array into another.
void copy_block(const Array& from, const Shape& from_start, const Shape& extent, Array& to, const Shape& to_start);

/// The positions [start, start + count) of one dimension.
Array part(const Array& array, std::size_t dim, std::int64_t start, std::int64_t count);

/// Concatenates along one dimension; all other sizes agree.
Array joined(std::span<const Array> parts, std::size_t dim);

/// Dimension i of the result is dimension order[i] of the array.
Array transposed(const Array& array, std::span<const std::size_t> order);

/// Adds element by element; the shapes agree.
void add(Array& sum, const Array& addend);
/// The larger one of two numbers; not a number if one of them is none.
inline double larger(double a, double b) { return b > a || std::isnan(b) ? b : a; }
/// Takes the larger one, element by element; the shapes agree.
void take_larger(Array& largest, const Array& other);

/// The largest absolute difference between elements; infinite if the shapes differ or one of two values is not a
/// number. Two that are both not numbers are equal.
double largest_difference(const Array& a, const Array& b);
double largest_magnitude(const Array& array);

/// Elements of each of `ways` blocks, rounded up.
constexpr std::int64_t block_size(std::int64_t size, std::int64_t ways) { return (size + ways - 1) / ways; }

/// The extent of block `index` when `size` elements are cut into blocks: the last blocks may be short or empty.
struct Chunk {
  std::int64_t start = 0, count = 0;
};
Chunk chunk(std::int64_t size, std::int64_t block, std::int64_t index);

}  // namespace assay::engine
