#include "assay/engine/array.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/base/result.h"

namespace assay::engine {
namespace {

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::int64_t dot(const Shape& a, const Shape& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Values that lie together at one position of a dimension.
std::int64_t row_size(const Shape& shape, std::size_t dim) {
  return element_count(Shape(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, shape.end()));
}

/// Advances an index through `extent` in row-major order over its first `rank` dimensions; false after the last.
bool advance(Shape& index, const Shape& extent, std::size_t rank) {
  for (std::size_t i = rank; i-- > 0;) {
    if (++index[i] < extent[i]) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t n : shape) count *= n;
  return count;
}

Array zeros(Shape shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  return {std::move(shape), std::vector<double>(count)};
}

std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  // splitmix64 (Steele, Lea, Flood 2014).
  std::uint64_t z = seed * 0xd1342543de82ef95ull + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double small_integer(std::uint64_t random) { return static_cast<double>(random % 9) - 4.0; }

Array random_integers(Shape shape, std::uint64_t seed) {
  Array array = zeros(std::move(shape));
  for (std::size_t i = 0; i < array.values.size(); ++i) array.values[i] = small_integer(mixed(seed, i));
  return array;
}

Array random_reals(Shape shape, std::uint64_t seed) {
  Array array = zeros(std::move(shape));
  for (std::size_t i = 0; i < array.values.size(); ++i)
    array.values[i] = std::ldexp(static_cast<double>(mixed(seed, i) >> 11), -52) - 1.0;
  return array;
}

void copy_block(const Array& from, const Shape& from_start, const Shape& extent, Array& to, const Shape& to_start) {
  if (element_count(extent) == 0) return;
  const std::size_t rank = extent.size();
  for (std::size_t i = 0; i < rank; ++i)
    if (from_start[i] < 0 || to_start[i] < 0 || from_start[i] + extent[i] > from.shape[i] ||
        to_start[i] + extent[i] > to.shape[i])
      throw InternalError("a block exceeds its array");
  if (rank == 0) {
    to.values = from.values;
    return;
  }
  const Shape from_strides = strides_of(from.shape), to_strides = strides_of(to.shape);
  const std::int64_t from_base = dot(from_start, from_strides), to_base = dot(to_start, to_strides);
  Shape index(rank, 0);
  do {
    std::copy_n(from.values.begin() + from_base + dot(index, from_strides), extent[rank - 1],
                to.values.begin() + to_base + dot(index, to_strides));
  } while (advance(index, extent, rank - 1));
}

Array part(const Array& array, std::size_t dim, std::int64_t start, std::int64_t count) {
  const std::int64_t size = array.shape[dim];
  if (start < 0 || count < 0 || start + count > size) throw InternalError("a part exceeds its array");
  Array out{array.shape, {}};
  out.shape[dim] = count;
  const std::int64_t total = element_count(array.shape), row = row_size(array.shape, dim);
  out.values.reserve(static_cast<std::size_t>(element_count(out.shape)));
  for (auto at = array.values.begin(); total > 0 && at != array.values.end(); at += size * row)
    out.values.insert(out.values.end(), at + start * row, at + (start + count) * row);
  return out;
}

Array joined(std::span<const Array> parts, std::size_t dim) {
  Shape shape = parts.front().shape;
  shape[dim] = 0;
  for (const Array& one : parts) shape[dim] += one.shape[dim];
  Array out{shape, {}};
  const std::int64_t total = element_count(shape), row = row_size(shape, dim);
  out.values.reserve(static_cast<std::size_t>(total));
  for (std::int64_t i = 0; total > 0 && i < total / (shape[dim] * row); ++i)
    for (const Array& one : parts) {
      const auto from = one.values.begin() + i * one.shape[dim] * row;
      out.values.insert(out.values.end(), from, from + one.shape[dim] * row);
    }
  return out;
}

Array transposed(const Array& array, std::span<const std::size_t> order) {
  const std::size_t rank = order.size();
  const Shape strides = strides_of(array.shape);
  Shape shape(rank), steps(rank);
  bool same = true;
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = array.shape[order[i]];
    steps[i] = strides[order[i]];
    same = same && order[i] == i;
  }
  if (same) return array;
  Array out = zeros(shape);
  if (out.values.empty()) return out;
  Shape index(rank, 0);
  auto to = out.values.begin();
  const std::int64_t inner = shape[rank - 1], step = steps[rank - 1];
  do {
    const double* from = array.values.data() + dot(index, steps);
    for (std::int64_t i = 0; i < inner; ++i) *to++ = from[i * step];
  } while (advance(index, shape, rank - 1));
  return out;
}

void add(Array& sum, const Array& addend) {
  if (sum.shape != addend.shape) throw InternalError("arrays of different shapes cannot be added");
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += addend.values[i];
}

void take_larger(Array& largest, const Array& other) {
  if (largest.shape != other.shape) throw InternalError("arrays of different shapes have no common maximum");
  for (std::size_t i = 0; i < largest.values.size(); ++i)
    largest.values[i] = larger(largest.values[i], other.values[i]);
}

double largest_difference(const Array& a, const Array& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.shape != b.shape) return infinity;
  double largest = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    largest = std::max(largest, std::isnan(difference) ? infinity : difference);
  }
  return largest;
}

double largest_magnitude(const Array& array) {
  double largest = 0.0;
  for (double value : array.values) largest = std::max(largest, std::abs(value));
  return largest;
}

Chunk chunk(std::int64_t size, std::int64_t block, std::int64_t index) {
  const std::int64_t start = std::min(size, index * block);
  return {start, std::min(block, size - start)};
}

}  // namespace assay::engine
